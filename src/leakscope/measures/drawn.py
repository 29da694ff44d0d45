"""Measures over random designs, without the bias of a test that is chosen by what scores it.

A mixture's total variation, computed from finitely many drawn components, is biased upwards: the
test is chosen by the draws that score it.  In `scored_advantage` one half of the designs chooses
the region in which the attacker says "member" and the other half scores it, and then the halves
change roles.  Each design's score is an unbiased draw of the advantage of a test that it had no
part in choosing; the test itself falls short of the best only to second order, because at the
region's edges both densities are equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal, NormalMixture
from leakscope.laws.pair import LawPair
from leakscope.measures.densities import STEPS

_LEVELS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


@dataclass(frozen=True)
class ScoredAdvantage:
    """An advantage and the standard error that the random designs leave in it."""

    value: float
    stderr: float


def scored_advantage(
    pair: LawPair,
    weights: FloatArray | None = None,
    *,
    choosing: int = 400,
    designs: int | None = None,
) -> ScoredAdvantage:
    """The advantage of ``pair``, averaged over its batch with ``weights``.

    Parameters
    ----------
    pair
        Normals or mixtures of normals over random designs: the drawn components have equal
        weights; components in front of them with another weight are known, not drawn.
    weights
        As many as laws in the batch, summing to one; equal where left out.
    choosing
        How many designs of a half choose the tests, at most.
    designs
        Where both laws are of the same designs, how many there are; the components of one design
        stand together.  Where left out every component is a design of its own.

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.measures import scored_advantage
    >>> pair = linear.law_pair(linear.GaussianDesign(100, 400, 3000, 1.0), draws=4000)
    >>> found = scored_advantage(pair)
    >>> round(found.value, 2), found.stderr < 0.001
    (0.26, True)
    """
    batch = int(np.prod(pair.batch_shape, dtype=int))
    flat = pair.reshape(batch)
    share = np.full(batch, 1.0 / batch) if weights is None else np.ravel(weights)
    sides = [_side(law, designs) for law in (flat.member, flat.nonmember)]
    scores: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for first in (True, False):
        halves = [side.half(first) for side in sides]
        totals = [np.zeros(scoring.drawn.shape[2]) for _, scoring in halves]
        for row in range(batch):
            edges = _region([chooses.some(choosing).row(row) for chooses, _ in halves])
            for total, (_, scoring) in zip(totals, halves, strict=True):
                total += share[row] * scoring.masses(row, edges)
        for total, kept in zip(totals, scores, strict=True):
            kept.append(total)
    member, nonmember = (np.concatenate(kept) for kept in scores)
    value = float(member.mean() - nonmember.mean())
    if designs is not None and member.size == nonmember.size > 2:
        return ScoredAdvantage(max(value, 0.0), _stderr(member - nonmember))
    spread = math.hypot(_stderr(member), _stderr(nonmember))
    return ScoredAdvantage(max(value, 0.0), spread)


def _stderr(scores: FloatArray) -> float:
    return float(scores.std(ddof=1) / np.sqrt(scores.size)) if scores.size > 2 else 0.0


class _Side(NamedTuple):
    """One law: its known components (mean, sigma, weight), (3, batch, E), and the drawn ones.

    ``drawn`` holds means and sigmas, (2, batch, designs, components of a design).
    """

    known: FloatArray
    drawn: FloatArray

    def half(self, first: bool) -> tuple[_Side, _Side]:
        """The half of the designs that chooses the tests, and the other, which scores them.

        A single component is the law itself: it does both without bias.
        """
        count = self.drawn.shape[2]
        if count == 1:
            return self, self
        one = _Side(self.known, self.drawn[:, :, : count // 2])
        two = _Side(self.known, self.drawn[:, :, count // 2 :])
        return (one, two) if first else (two, one)

    def some(self, wanted: int) -> _Side:
        """The first ``wanted`` designs."""
        return _Side(self.known, self.drawn[:, :, :wanted])

    def row(self, row: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, sigmas and weights of one law of the batch."""
        means, sigmas = self.drawn[:, row].reshape(2, -1)
        share = (1.0 - self.known[2, row].sum()) / means.size
        return (
            np.concatenate([self.known[0, row], means]),
            np.concatenate([self.known[1, row], sigmas]),
            np.concatenate([self.known[2, row], np.full(means.size, share)]),
        )

    def masses(self, row: int, edges: FloatArray) -> FloatArray:
        """Probability of the region, design by design, the known part included in each."""
        means, sigmas, weights = self.known[:, row]
        known = float(weights @ _mass(means, sigmas, edges))
        centres, widths = self.drawn[:, row]
        drawn = _mass(centres, widths, edges).mean(axis=-1)
        return np.asarray(known + (1.0 - weights.sum()) * drawn)


def _side(law: object, designs: int | None) -> _Side:
    if isinstance(law, Normal):
        known = np.empty((3, law.mean.size, 0))
        return _Side(known, np.stack([law.mean, law.sigma])[:, :, None, None])
    if not isinstance(law, NormalMixture):
        raise InputError(f"A mixture over designs is needed, not a {type(law).__name__}.")
    if np.ptp(law.sigmas, axis=-1).max() == 0.0 == np.ptp(law.means, axis=-1).max():
        known = np.empty((3, law.sigmas.shape[0], 0))
        return _Side(known, np.stack([law.means[:, :1], law.sigmas[:, :1]])[..., None])
    shares = law.weights
    equal = np.isclose(shares, shares[:, -1:], rtol=1e-9, atol=0.0).all(axis=0)
    first = 0 if equal.all() else int(np.flatnonzero(~equal)[-1]) + 1
    drawn = np.stack([law.means, law.sigmas])[:, :, first:]
    count = drawn.shape[-1] if designs is None else designs
    if drawn.shape[-1] % count:
        raise InputError(
            f"{drawn.shape[-1]} components cannot be those of {count} designs in equal numbers."
        )
    known = np.stack([law.means, law.sigmas, shares])[:, :, :first]
    return _Side(known, drawn.reshape(2, drawn.shape[1], count, -1))


def _region(laws: list[tuple[FloatArray, FloatArray, FloatArray]]) -> FloatArray:
    """Edges (low, high), (2, R), of the intervals in which the first law is the denser."""
    x = _grid(laws)
    difference = _density(laws[0], x) - _density(laws[1], x)
    above = difference > 0.0
    cells = np.flatnonzero(above[1:] != above[:-1])
    run, rise = x[cells + 1] - x[cells], difference[cells + 1] - difference[cells]
    at = x[cells] - difference[cells] * run / rise
    ends = np.concatenate([[-np.inf] if above[0] else [], at, [np.inf] if above[-1] else []])
    return ends.reshape(-1, 2).T


def _grid(laws: list[tuple[FloatArray, FloatArray, FloatArray]]) -> FloatArray:
    """Points around components at a few levels of the standard deviation, which stand for all."""
    ends = []
    for means, sigmas, _ in laws:
        some = np.argsort(sigmas)[np.round(_LEVELS * (sigmas.size - 1)).astype(int)]
        ends.append((means[some, None] + sigmas[some, None] * STEPS).ravel())
    x = np.unique(np.concatenate(ends))
    # an edge of the region is found by a straight line between two points
    return np.sort(np.concatenate([x, 0.5 * (x[1:] + x[:-1])]))


def _density(law: tuple[FloatArray, FloatArray, FloatArray], x: FloatArray) -> FloatArray:
    means, sigmas, weights = law
    z = (x[:, None] - means) / sigmas
    return np.asarray(np.exp(-0.5 * z * z) @ (weights / sigmas))


def _mass(means: FloatArray, sigmas: FloatArray, edges: FloatArray) -> FloatArray:
    """Each component's probability of the region; any shape."""
    total = np.zeros(means.shape)
    for low, high in edges.T:
        total += special.ndtr((high - means) / sigmas) - special.ndtr((low - means) / sigmas)
    return total
