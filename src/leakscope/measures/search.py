"""Inverse questions for laws without a closed form: TPR at a FPR, epsilon at a delta.

Both search over the threshold of the likelihood-ratio test with `leakscope._numerics.roots`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.log_space import log1mexp
from leakscope._numerics.roots import expand_bracket, shrink_bracket
from leakscope.measures.ratio import Ratio, Tails

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


class SearchedRatio(Ratio):
    """A ratio whose inverse questions are answered by `tpr_by_search` and `epsilon_by_search`."""

    @abstractmethod
    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold), shape (B, m)."""

    @abstractmethod
    def llr_scale(self) -> FloatArray:
        """A typical size of |l| for each pair, shape (B,); zero for equal laws."""

    @abstractmethod
    def take(self, rows: IndexArray) -> Self:
        """The pairs ``rows``, some perhaps several times."""


def tpr_by_search(ratio: SearchedRatio, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log TPR and log FNR of the best test of each size.

    The threshold need not be known exactly: the ROC has the slope exp(threshold) there, and the
    step along this tangent to the size asked for leaves an error of second order, or a relative
    one of the bracket's width.  At an atom of l, where the best test is randomised, the ROC is a
    straight line and the step is exact.
    """
    asked, rows, width = _cells(ratio, log_fpr)
    ends = (asked == 0.0) | np.isneginf(asked)
    target = np.where(ends, -1.0, asked)

    def gap(threshold: FloatArray, which: IndexArray) -> FloatArray:
        return ratio.take(rows[which]).log_fpr(threshold[:, None])[:, 0] - target[which]

    start = expand_bracket(gap, -width, width)
    found = shrink_bracket(gap, start, f_tolerance=1e-11, x_absolute=1e-13)
    cells = ratio.take(rows)
    at = _column(cells.tails(found.high[:, None]))
    with np.errstate(invalid="ignore"):
        missing = target + log1mexp(np.minimum(at.log_fpr - target, 0.0)) + found.high
        log_tpr = np.logaddexp(at.log_tpr, missing)
        log_fnr = at.log_fnr + log1mexp(np.minimum(missing - at.log_fnr, 0.0))
    # across an atom the FNR comes up from the low end instead, where nothing cancels
    jump = np.flatnonzero((np.abs(found.f_high) > 1e-11) & np.isfinite(found.low))
    if jump.size:
        below = _column(cells.take(jump).tails(found.low[jump][:, None]))
        step = np.maximum(below.log_fpr - target[jump], 0.0)
        spare = target[jump] + step + log1mexp(-step) + found.low[jump]
        log_fnr[jump] = np.logaddexp(below.log_fnr, spare)
    # at the ends: everything is called a member, or only what no nonmember can show
    certain = ratio.log_certain()[rows]
    log_tpr = np.where(asked == 0.0, 0.0, np.where(np.isneginf(asked), certain, log_tpr))
    log_fnr = np.where(
        asked == 0.0, -np.inf, np.where(np.isneginf(asked), log1mexp(certain), log_fnr)
    )
    shape = (ratio.size, log_fpr.shape[-1])
    return np.minimum(log_tpr, 0.0).reshape(shape), np.minimum(log_fnr, 0.0).reshape(shape)


def epsilon_by_search(ratio: SearchedRatio, log_delta: FloatArray) -> FloatArray:
    """The least epsilon >= 0 whose hockey stick is at most delta; inf where there is none."""
    target, rows, width = _cells(ratio, log_delta)
    with np.errstate(divide="ignore"):
        already = np.log(ratio.advantage())[rows] <= target
    never = ratio.log_certain()[rows] > target
    result = np.where(never, np.inf, 0.0)
    cells = np.flatnonzero(~already & ~never)

    def gap(epsilon: FloatArray, which: IndexArray) -> FloatArray:
        part = ratio.take(rows[cells[which]])
        return part.log_excess(epsilon[:, None])[:, 0] - target[cells[which]]

    if cells.size:
        start = expand_bracket(gap, np.zeros(cells.size), width[cells])
        found = shrink_bracket(gap, start, f_tolerance=1e-13)
        result[cells] = found.high
    return result.reshape(ratio.size, log_delta.shape[-1])


def _cells(ratio: SearchedRatio, levels: FloatArray) -> tuple[FloatArray, IndexArray, FloatArray]:
    """One cell for each pair and level: the level, the pair's row, a width to start with."""
    shape = (ratio.size, levels.shape[-1])
    rows = np.repeat(np.arange(shape[0]), shape[1])
    scale = ratio.llr_scale()
    return np.broadcast_to(levels, shape).ravel(), rows, np.where(scale > 0.0, scale, 1.0)[rows]


def _column(tails: Tails) -> Tails:
    return Tails(*(a[:, 0] for a in tails))
