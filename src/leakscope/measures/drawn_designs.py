"""Measures over random designs, without the bias of a test that is chosen by what scores it.

A mixture's total variation, computed from finitely many drawn components, is biased upwards: the
test is chosen by the draws that score it.  In `scored_advantage` one half of the designs chooses
the region in which the attacker says "member" and the other half scores it, and then the halves
change roles.  Each design's score is an unbiased draw of the advantage of a test that it had no
part in choosing; the test itself falls short of the best only to second order, because at the
region's edges both densities are equal.

`tabulated` takes two densities that are known on nodes of a line only.  Their measures are convex
in the laws, so that those of drawn densities are too large on average, and a test learnt on other
draws and judged on these is too small on average (for KL, the Donsker-Varadhan bound with the
learnt ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal, NormalMixture
from leakscope.laws.pair import LawPair

# Steps of a grid, in standard deviations, up to so many of them from a mean.
_STEPS = ((3.0, 1.0 / 30.0), (9.0, 0.12))
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


def scored_tpr(
    pair: LawPair,
    weights: FloatArray | None = None,
    *,
    fpr: Sequence[float],
    designs: int | None = None,
) -> dict[float, float]:
    """TPR at each FPR of ``pair`` as one population: one threshold on the ratio for all its rows.

    Arguments as for `scored_advantage`.  One half of the designs gives the ratio, cell by cell of
    a line, and the other half the probabilities of the cells, and then the other way round.

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.measures.drawn_designs import scored_tpr
    >>> pair = linear.law_pair(linear.GaussianDesign(100, 400, 3000, 1.0), draws=400)
    >>> {level: round(value, 2) for level, value in scored_tpr(pair, fpr=[0.01]).items()}
    {0.01: 0.14}
    """
    batch = int(np.prod(pair.batch_shape, dtype=int))
    flat = pair.reshape(batch)
    share = np.full(batch, 1.0 / batch) if weights is None else np.ravel(weights)
    sides = [_side(law, designs) for law in (flat.member, flat.nonmember)]
    halves = [side.half(True) for side in sides]
    # (half, side, cell), row after row
    cells = []
    for row in range(batch):
        laws = [[two[half].row(row) for two in halves] for half in (0, 1)]
        x = _grid([*laws[0], *laws[1]])
        cells.append(share[row] * np.array([[_cells(law, x) for law in two] for two in laws]))
    mass = np.concatenate(cells, axis=-1)
    total = dict.fromkeys((float(level) for level in fpr), 0.0)
    for learnt, (member, nonmember) in zip(mass, mass[::-1], strict=True):
        score = np.log(np.maximum(learnt[0], _TINY)) - np.log(np.maximum(learnt[1], _TINY))
        order = np.argsort(-score, kind="stable")
        rates = [np.concatenate([[0.0], np.cumsum(one[order])]) for one in (nonmember, member)]
        for level in total:
            total[level] += 0.5 * float(np.interp(level, rates[0], rates[1]))
    return total


def _cells(law: tuple[FloatArray, FloatArray, FloatArray], x: FloatArray) -> FloatArray:
    """The law's probabilities of the cells between the points ``x`` and beyond them."""
    means, sigmas, weights = law
    below = special.ndtr((x[:, None] - means) / sigmas) @ weights
    return np.diff(np.concatenate([[0.0], below, [weights.sum()]]))


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
    """Points as close together as the narrowest component near them asks for.

    Components at a few levels of the standard deviation stand for the others.  What several ask
    for is not added up: twenty that are alike need no more points than one.
    """
    means, sigmas = np.concatenate(
        [
            [means[order], sigmas[order]]
            for means, sigmas, _ in laws
            for order in [np.argsort(sigmas)[np.round(_LEVELS * (sigmas.size - 1)).astype(int)]]
        ],
        axis=1,
    )
    reach = np.array([far for far, _ in _STEPS])[:, None] * sigmas
    ends = np.unique([means - reach, means + reach])
    middle = 0.5 * (ends[1:] + ends[:-1])
    wanted = np.where(
        np.abs(middle[:, None, None] - means) < reach,
        1.0 / (np.array([step for _, step in _STEPS])[:, None] * sigmas),
        0.0,
    )
    counted = np.concatenate([[0.0], np.cumsum(wanted.max(axis=(1, 2)) * np.diff(ends))])
    whole = np.linspace(0.0, counted[-1], math.ceil(counted[-1]) + 1)
    return np.unique(np.interp(whole, counted, ends))


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


Densities = tuple[FloatArray, FloatArray]
TabulatedMeasure = Literal["advantage", "auc", "kl", "kl_reverse"]
_TINY = 1e-300


def tabulated(
    measure: TabulatedMeasure,
    weights: FloatArray,
    densities: Densities,
    learnt: Densities | None = None,
) -> float:
    """A measure of two densities on nodes, by the best test or by one that was learnt elsewhere.

    Parameters
    ----------
    measure
        ``"advantage"``, ``"auc"``, ``"kl"`` (nonmember from member) or ``"kl_reverse"``.
    weights
        (N,) the nodes' quadrature weights.
    densities
        Member's and nonmember's, (N,) each.
    learnt
        Two other densities whose ratio is the test, to be judged by ``densities``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import tabulated
    >>> x = np.linspace(-10.0, 10.0, 2001)
    >>> one, zero = (np.exp(-0.5 * (x - m) ** 2) / np.sqrt(2.0 * np.pi) for m in (1.0, 0.0))
    >>> [round(tabulated(name, np.gradient(x), (one, zero)), 4) for name in ("advantage", "kl")]
    [0.3829, 0.5]
    """
    if measure not in get_args(TabulatedMeasure):
        raise InputError(
            f"tabulated: measure must be one of {', '.join(get_args(TabulatedMeasure))}, "
            f"not {measure!r}."
        )
    return _MEASURES[measure](weights, *densities, learnt)


def _advantage(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    one, zero = learnt or (member, nonmember)
    return float(0.5 * np.sum(w * np.sign(one - zero) * (member - nonmember)))


def _auc(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    order = np.argsort(_log_ratio(learnt or (member, nonmember)), kind="stable")
    one, zero = (w * member)[order], (w * nonmember)[order]
    below = np.cumsum(zero) - 0.5 * zero
    return float(np.sum(one * below) / (one.sum() * zero.sum()))


def _kl(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    """KL(nonmember || member); with a learnt ratio T, E_0[T] - log E_1[exp T]."""
    if learnt is None:
        return float(np.sum(w * nonmember * -_log_ratio((member, nonmember))))
    score = -_log_ratio(learnt)
    mass = np.sum(w * member * np.exp(np.minimum(score, 600.0)))
    return float(np.sum(w * nonmember * score) - np.log(mass))


def _kl_reverse(
    w: FloatArray, member: FloatArray, nonmember: FloatArray, learnt: Densities | None = None
) -> float:
    turned = None if learnt is None else (learnt[1], learnt[0])
    return _kl(w, nonmember, member, turned)


def _log_ratio(pair: Densities) -> FloatArray:
    return np.asarray(np.log(np.maximum(pair[0], _TINY)) - np.log(np.maximum(pair[1], _TINY)))


_MEASURES: dict[str, Callable[..., float]] = {
    "advantage": _advantage,
    "auc": _auc,
    "kl": _kl,
    "kl_reverse": _kl_reverse,
}
