"""A population of pairs as one pair: one threshold on the likelihood ratio for all records.

The attacker knows which pair of laws applies, and what he sees is (record, observation).  His
likelihood ratio is that of the record's own pair, so sizes, powers and hockey sticks of the
population are weighted means over its pairs at a common threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.roots import expand_bracket, shrink_bracket
from leakscope.measures.ratio import Ratio, Tails
from leakscope.measures.search import SearchedRatio, epsilon_by_search, tpr_by_search

IndexArray = npt.NDArray[np.intp]

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

    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold)."""
        return self.tails(threshold).log_fpr

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

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size."""
        return tpr_by_search(self, log_fpr)

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""
        return epsilon_by_search(self, log_delta)

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
