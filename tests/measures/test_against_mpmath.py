"""Every measure against mpmath at 50 digits, on the stored pairs of ``tests/reference``.

Parameters are exact doubles, so nothing but the measure's own error is left.  What is reached is in
docs/measures.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from leakscope import measures
from leakscope.laws import (
    LawPair,
    MultivariateNormal,
    Normal,
    NormalMixture,
    SpikeAndSlab,
    concatenate,
)

REFERENCE = Path(__file__).parents[1] / "reference"

# Relative errors that each engine promises.  Normals and quadratic forms are formulas and
# integrals with an error of their own.  Of atoms a divergence is a quadrature; an advantage, a TPR
# or an epsilon depends on where single nodes lie, whose spacing is 1/25 of a standard deviation.
FORMULA = dict.fromkeys(("kl", "auc", "renyi", "advantage", "overlap", "tpr", "epsilon"), 1e-8)
ATOMS = {
    "kl": 1e-10,
    "renyi": 1e-5,
    "auc": 4e-5,
    "advantage": 5e-4,
    "overlap": 5e-3,
    "tpr": 2.5e-3,
    "epsilon": 1e-2,
}
BOUND = {
    "normal": FORMULA,
    "spike_and_slab": ATOMS,
    "normal_mixture": ATOMS,
    "multivariate_normal": {name: 1e-6 for name in FORMULA},
}
# A loss is a difference of two logs, each rounded: laws closer than so much lose their digits.
ROUNDING = 1e-14
# Of laws that share less than this only its order of magnitude is known.
SHARED = 1e-18
MAKE = {
    "normal": lambda p: Normal([p["mean"]], [p["sigma"]]),
    "spike_and_slab": lambda p: SpikeAndSlab([p["location"]], [p["sigma"]], [p["threshold"]]),
    "normal_mixture": lambda p: NormalMixture([p["weights"]], [p["means"]], [p["sigmas"]]),
    "multivariate_normal": lambda p: MultivariateNormal([p["mean"]], [p["covariance"]]),
}


class Stored:
    """The stored pairs of one kind, batched where their shapes agree."""

    def __init__(self, kind: str) -> None:
        text = (REFERENCE / f"{kind}.json").read_text(encoding="utf-8")
        self.kind, self.pairs = kind, json.loads(text)["pairs"]
        laws = [LawPair(MAKE[kind](p["member"]), MAKE[kind](p["nonmember"])) for p in self.pairs]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, pair in enumerate(laws):
            groups.setdefault(pair.member.event_shape, []).append(index)
        self.batches = [(rows, concatenate([laws[i] for i in rows])) for rows in groups.values()]

    def compute(self, measure, *more: int) -> np.ndarray:
        result = np.empty((len(self.pairs), *more))
        for rows, batch in self.batches:
            result[rows] = measure(batch)
        return result

    def worst(self, measure, *path: str) -> tuple[float, str]:
        """The largest relative error and the pair it belongs to."""
        return self.worst_of(self.compute(measure), *path)

    def worst_of(self, computed: np.ndarray, *path: str) -> tuple[float, str]:
        worst, where = 0.0, ""
        for found, pair in zip(computed, self.pairs, strict=True):
            expected = pair
            for step in path:
                expected = expected[step]
            error = relative_error(float(found), mp.mpf(expected))
            if BOUND[self.kind] is ATOMS:
                error = beyond_rounding(error, path[0], pair, mp.mpf(expected))
            if error >= worst:
                worst, where = error, f"{pair['tag']}: {pair['member']} / {pair['nonmember']}"
        return worst, where


def relative_error(found: float, expected: mp.mpf) -> float:
    if mp.isinf(expected) or expected == 0:
        return 0.0 if found == float(expected) else float("inf")
    if not np.isfinite(found):
        return float("inf")
    if abs(expected) < 1e-300:  # below the range of doubles
        return 0.0 if abs(found) < 1e-290 else float("inf")
    return float(abs(mp.mpf(found) / expected - 1))


def beyond_rounding(error: float, name: str, pair: dict, expected: mp.mpf) -> float:
    """The error without what the rounding of atoms' losses explains."""
    if name == "overlap" and expected < SHARED:
        return 0.0 if error < 1.0 else error
    near = float(mp.mpf(pair["advantage"]))
    return max(error - ROUNDING / near, 0.0) if near > 0.0 else error


@pytest.fixture(scope="module", params=BOUND)
def stored(request: pytest.FixtureRequest) -> Stored:
    return Stored(request.param)


SCALARS = {
    "advantage": measures.advantage,
    "overlap": measures.overlap,
    "kl": measures.kl,
    "kl_reverse": lambda p: measures.kl(p, "member_to_nonmember"),
    "auc": measures.auc,
}


@pytest.mark.parametrize("name", SCALARS)
def test_measure(stored: Stored, name: str) -> None:
    worst, where = stored.worst(SCALARS[name], name)
    assert worst < BOUND[stored.kind][name.removesuffix("_reverse")], where


@pytest.mark.parametrize("order", ["0.5", "2", "8"])
def test_renyi(stored: Stored, order: str) -> None:
    worst, where = stored.worst(
        lambda p: measures.renyi(p, float(order), "member_to_nonmember"), "renyi", order
    )
    assert worst < BOUND[stored.kind]["renyi"], where


def test_tpr_at_fpr(stored: Stored) -> None:
    rates = list(stored.pairs[0]["tpr_at_fpr"])
    # All rates in one call: one search for a batch costs little more than for one of them.
    asked = [float(fpr) for fpr in rates]
    found = stored.compute(lambda p: measures.tpr_at_fpr(p, asked), len(rates))
    for fpr, column in zip(rates, found.T, strict=True):
        worst, where = stored.worst_of(column, "tpr_at_fpr", fpr)
        assert worst < BOUND[stored.kind]["tpr"], (fpr, where)


@pytest.mark.parametrize("direction", ["member_to_nonmember", "nonmember_to_member"])
def test_epsilon_at_delta(stored: Stored, direction: str) -> None:
    worst, where = stored.worst(
        lambda p: measures.epsilon_at_delta(p, 1e-5, direction),
        "epsilon_at_delta",
        "1e-05",
        direction,
    )
    assert worst < BOUND[stored.kind]["epsilon"], where


def test_enough_pairs(stored: Stored) -> None:
    assert len(stored.pairs) >= (80 if stored.kind == "multivariate_normal" else 120)
    advantages = [float(p["advantage"]) for p in stored.pairs]
    assert min(a for a in advantages if a > 0.0) < 1e-7
    assert max(advantages) > 1.0 - 1e-9
