"""Measures of a population of records: one threshold on the likelihood ratio for all of them.

The attacker knows x0, and so which pair of laws applies; what he sees is (x0, yhat0).  His
likelihood ratio is that of the record's own pair, and his best test compares it with one threshold
for all: the mean of the records' TPRs at a fixed FPR is a different, worse test.  Sizes, powers and
hockey sticks of the population are weighted means over its pairs at a common threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import linalg, optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import NormalMixture
from leakscope.laws.pair import LawPair
from leakscope.measures.dispatch import as_levels, is_empirical, ratio_of
from leakscope.measures.ratio import (
    IndexArray,
    Ratio,
    SearchedRatio,
    Tails,
    expand_bracket,
    shrink_bracket,
)
from leakscope.settings.measure import MEASURE_DEFAULTS


@dataclass(frozen=True)
class PopulationMeasures:
    """What an attacker gets from a population of records."""

    advantage: float
    kl: float
    kl_reverse: float
    auc: float
    tpr_at_fpr: dict[float, float]


def population_measures(
    pair: LawPair,
    weights: npt.ArrayLike | None = None,
    *,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
) -> PopulationMeasures:
    """All measures of (record, observation) over the batch of ``pair``.

    ``weights`` are the records' shares, equal where left out.  Every number is made of the same
    likelihood ratios as the measures of a single pair and keeps their digits.  The AUC is
    good to 1e-7.  Mixtures of one centre with more than 24 components are first gathered into 24,
    by Gauss's rule for their mixing law, which keeps nine digits of the density (six far out in
    the tails of a heavy-tailed one).

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.measures import population_measures
    >>> design = linear.GaussianDesign(100, 400, 3000, 1.0)
    >>> norms = linear.RecordNorms.nodes(design)
    >>> pair = linear.law_pair(design, norms, method="asymptotic")
    >>> round(population_measures(pair, norms.weight).auc, 6)
    0.669343
    """
    if is_empirical(pair):
        raise InputError("Population measures are for laws that are known, not for samples.")
    levels = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0]
    population = population_ratio(pair, weights)
    with np.errstate(divide="ignore"):
        tpr = np.exp(population.tpr_at(np.log(levels)[None, :])[0][0])
    return PopulationMeasures(
        advantage=float(population.advantage()[0]),
        kl=float(population.reversed().renyi(1.0)[0]),
        kl_reverse=float(population.renyi(1.0)[0]),
        auc=float(population.auc()[0]),
        tpr_at_fpr=dict(zip(levels.tolist(), tpr.tolist(), strict=True)),
    )


def population_threshold(pair: LawPair, fpr: float) -> float:
    """The log likelihood ratio that a share ``fpr`` of nonmembers exceeds, over a batch.

    It is one threshold for all records, as in `population_measures`.
    """
    level = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0].reshape(-1)[0]
    population = population_ratio(pair)

    def excess(threshold: float) -> float:
        return float(population.tails(np.array([[threshold]])).log_fpr[0, 0] - np.log(level))

    low, high = -1.0, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while excess(low) < 0.0:
        low = 2.0 * low
    return float(optimize.brentq(excess, low, high, xtol=1e-10))


def population_ratio(pair: LawPair, weights: npt.ArrayLike | None = None) -> PopulationRatio:
    """The likelihood ratio of the batch of ``pair`` as one population."""
    batch = int(np.prod(pair.batch_shape, dtype=int))
    share = np.ones(batch) if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    if share.size != batch or batch == 0:
        raise InputError(f"Weights must be one for each pair: {batch}, not {share.size}.")
    if not (np.all(share >= 0.0) and np.isfinite(share).all() and share.sum() > 0.0):
        raise InputError("Weights must be finite, zero or above, and not all zero.")
    flat = pair.reshape(batch)
    laws = [
        gathered(law) if isinstance(law, NormalMixture) else law
        for law in (flat.member, flat.nonmember)
    ]
    kept = np.flatnonzero(share > 0.0)
    part = LawPair(laws[0], laws[1], pair.provenance).take(kept)
    return PopulationRatio(ratio_of(part), np.log(share[kept] / share.sum()))


_TAIL = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2])
_SHARES = np.concatenate([_TAIL, [0.5], 1.0 - _TAIL[::-1]])
_CHORD = 0.01  # longest piece of the ROC
_CORRECTION = 1e-7  # largest correction to the trapezoidal rule on one piece
_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class PopulationRatio(SearchedRatio):
    """``pairs`` with shares exp(``log_weight``), (B,), as one pair, ``copies`` times over."""

    pairs: Ratio
    log_weight: FloatArray
    copies: int = 1

    @property
    def size(self) -> int:
        """One pair, or as many copies of it as a search asks for."""
        return self.copies

    def take(self, rows: IndexArray) -> Self:
        """The population once for each of ``rows``."""
        return type(self)(self.pairs, self.log_weight, int(np.size(rows)))

    def reversed(self) -> Self:
        """Exchange the roles."""
        return type(self)(self.pairs.reversed(), self.log_weight, self.copies)

    def _all(self, levels: FloatArray) -> FloatArray:
        """The levels (copies, m) for every pair: (B, copies m)."""
        flat = np.ravel(levels)[None, :]
        return np.broadcast_to(flat, (self.pairs.size, flat.size)).copy()

    def _mean(self, logs: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Log of the weighted mean over pairs of exp(``logs``), (B, ...)."""
        weights = self.log_weight.reshape(-1, *(1,) * (logs.ndim - 1))
        return np.asarray(np.logaddexp.reduce(logs + weights, axis=0).reshape(shape))

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the test with one threshold for all pairs."""
        found = self.pairs.tails(self._all(threshold))
        return Tails(*(np.minimum(self._mean(a, threshold.shape), 0.0) for a in found))

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the mean hockey stick."""
        return self._mean(self.pairs.log_excess(self._all(epsilon)), epsilon.shape)

    def advantage(self) -> FloatArray:
        """The mean total variation distance."""
        return np.full(self.size, float(np.exp(self.log_weight) @ self.pairs.advantage()))

    def log_overlap(self) -> FloatArray:
        """Log of one minus it."""
        return np.full(self.size, float(self._mean(self.pairs.log_overlap(), ())))

    def log_certain(self) -> FloatArray:
        """log P1(l = inf)."""
        return np.full(self.size, float(self._mean(self.pairs.log_certain(), ())))

    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence of the laws of (record, observation)."""
        each = self.pairs.renyi(order)
        if np.isinf(order):
            value = float(each.max())
        elif order == 1.0:
            value = float(np.exp(self.log_weight) @ each)
        else:
            value = float(self._mean((order - 1.0) * each, ())) / (order - 1.0)
        return np.full(self.size, value)

    def llr_scale(self) -> FloatArray:
        """A typical size of |l|, from the mean of the pairs' advantages and divergences."""
        total = float(np.exp(self.log_weight) @ np.minimum(self.pairs.renyi(1.0), 1e6))
        return np.full(self.size, max(total, np.sqrt(total)))

    def kinks(self) -> FloatArray:
        """Those of all pairs."""
        each = self.pairs.kinks()
        return np.tile(each.reshape(1, -1), (self.size, 1))

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)) of two independent records and observations, ties counting one half.

        The ROC's slope at the test with threshold t is exp(t), so that the trapezoidal rule with
        its end correction is of fourth order along the curve, whose points are `_roc_points`.
        Where the slope is above one the area is taken along the other axis.
        """
        if float(self.advantage()[0]) < 1e-14:
            return np.full(self.size, 0.5)
        level, fpr, tpr = self._roc_points()
        middle = int(np.searchsorted(level, 0.0))
        # thresholds rise from (1, 1) to (0, 0)
        right = _corrected(fpr[: middle + 1], tpr[: middle + 1], np.exp(level[: middle + 1]))
        left = _corrected(tpr[middle:], fpr[middle:], np.exp(-level[middle:]))
        return np.full(self.size, fpr[middle] * tpr[middle] - left + right)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision."""
        each = self.pairs.size_of_test(self._all(threshold))
        return np.asarray((np.exp(self.log_weight) @ each).reshape(threshold.shape))

    def _roc_points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rising thresholds, 0 among them, with FPR and TPR, no two further apart than _CHORD.

        Across an atom of l the ROC is a straight line, and both its ends are among the points.
        """
        kinks = np.ravel(self.pairs.kinks())
        kinks = kinks[np.isfinite(kinks)]
        ends = np.concatenate([kinks, np.nextafter(kinks, -np.inf), [0.0], self._quantiles()])
        level = np.unique(ends[np.isfinite(ends)])
        fpr, tpr = self._point(level)
        for _ in range(_ROUNDS):
            wide = np.maximum(-np.diff(fpr), -np.diff(tpr)) > _CHORD
            wide |= np.abs(_corrections(level, fpr, tpr)) > _CORRECTION
            middle = 0.5 * (level[1:] + level[:-1])[wide]
            middle = np.setdiff1d(middle, level)
            if not middle.size:
                break
            more = self._point(middle)
            level = np.concatenate([level, middle])
            order = np.argsort(level)
            level = level[order]
            fpr, tpr = (
                np.concatenate([old, new])[order] for old, new in zip((fpr, tpr), more, strict=True)
            )
        # outside: everything and nothing is called a member
        level = np.concatenate([level[:1], level, level[-1:]])
        return level, np.concatenate([[1.0], fpr, [0.0]]), np.concatenate([[1.0], tpr, [0.0]])

    def _point(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        at = self.tails(level[None, :])
        return np.exp(at.log_fpr[0]), np.exp(at.log_tpr[0])

    def _quantiles(self) -> FloatArray:
        """Levels that both laws together exceed with the probabilities ``_SHARES``, roughly."""
        target = np.log(_SHARES)

        def gap(level: FloatArray, which: IndexArray) -> FloatArray:
            at = self.take(which).tails(level[:, None])
            both = np.logaddexp(at.log_tpr, at.log_fpr)[:, 0] - np.log(2.0)
            return np.asarray(both - target[which])

        width = np.repeat(np.maximum(self.llr_scale()[:1], 1e-12), target.size)
        start = expand_bracket(gap, -width, width)
        found = shrink_bracket(gap, start, f_tolerance=0.05, x_tolerance=0.01)
        return np.asarray(found.high)


def _corrections(level: FloatArray, fpr: FloatArray, tpr: FloatArray) -> FloatArray:
    """What the end correction adds on each piece, along the axis on which the slope is below 1."""
    right = level[1:] <= 0.0
    step = np.where(right, np.diff(fpr), np.diff(tpr))
    steep = np.exp(-np.abs(level))
    return np.asarray(step**2 / 12.0 * np.diff(steep))


def _corrected(x: FloatArray, y: FloatArray, slope: FloatArray) -> float:
    """Area under y(x) over falling x, whose derivatives are known."""
    step = -np.diff(x)
    area = 0.5 * step * (y[1:] + y[:-1]) + step**2 / 12.0 * np.diff(slope)
    return float(area.sum())


NODES = 24


def gathered(law: NormalMixture, nodes: int = NODES) -> NormalMixture:
    """A mixture of many normals of one centre in at most ``nodes`` that are as good.

    The density of N(m, exp(2t)) at a point is an analytic function of t = log sigma, so that
    Gauss's rule for the mixing law of t, which is exact for polynomials of degree 2k - 1, replaces
    thousands of drawn sigmas by k.  The rule comes from the Lanczos process on the diagonal matrix
    of the t.  A flat batch; as it is where centres differ.
    """
    if law.components <= nodes or np.any(law.means != law.means[..., :1]):
        return law
    rows = [
        _gauss(np.log(sigmas), weights, nodes)
        for sigmas, weights in zip(law.sigmas, law.weights, strict=True)
    ]
    padded = [np.pad(weight, (0, nodes - weight.size)) for _, weight in rows]
    filled = [np.pad(t, (0, nodes - t.size), mode="edge") for t, _ in rows]
    means = np.repeat(law.means[..., :1], nodes, axis=-1)
    return NormalMixture(np.stack(padded), means, np.exp(np.stack(filled)))


def _gauss(t: FloatArray, weight: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss's rule for the law with mass ``weight`` at ``t``."""
    middle, half = 0.5 * (t.max() + t.min()), 0.5 * np.ptp(t)
    if half <= 1e-12:
        return np.array([float(weight @ t / weight.sum())]), np.ones(1)
    x = (t - middle) / half
    basis = np.zeros((nodes, t.size))
    basis[0] = np.sqrt(weight / weight.sum())
    diagonal, beside = np.zeros(nodes), np.zeros(nodes - 1)
    count = nodes
    for k in range(nodes):
        product = x * basis[k]
        diagonal[k] = basis[k] @ product
        # twice is enough: orthogonal to machine precision
        for _ in range(2):
            product -= (basis[: k + 1] @ product) @ basis[: k + 1]
        size = float(np.linalg.norm(product))
        if k + 1 == nodes:
            break
        if size <= 1e-13:  # fewer distinct sigmas than nodes
            count = k + 1
            break
        beside[k], basis[k + 1] = size, product / size
    values, vectors = linalg.eigh_tridiagonal(diagonal[:count], beside[: count - 1])
    return middle + half * values, np.asarray(vectors[0] ** 2)
