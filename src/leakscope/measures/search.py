"""Inverse questions for laws without a closed form: TPR at a FPR, epsilon at a delta.

Both search over the threshold of the likelihood-ratio test with `leakscope._numerics.roots`.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from leakscope._numerics.log_space import log1mexp
from leakscope._numerics.roots import expand_bracket, shrink_bracket
from leakscope.measures.ratio import Ratio

FloatArray = npt.NDArray[np.float64]


class SearchedRatio(Ratio):
    """A ratio whose inverse questions are answered by `tpr_by_search` and `epsilon_by_search`."""

    @abstractmethod
    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold), shape (B, m)."""

    @abstractmethod
    def llr_scale(self) -> FloatArray:
        """A typical size of |l| for each pair, shape (B,); zero for equal laws."""

def tpr_by_search(ratio: SearchedRatio, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log TPR and log FNR of the best test of each size.

    The threshold need not be known exactly: the ROC has the slope exp(threshold) there, and the
    step along this tangent to the size asked for leaves an error of second order, or a relative
    one of the bracket's width.  At an atom of l, where the best test is randomised, the ROC is a
    straight line and the step is exact.
    """
    scale = ratio.llr_scale()
    log_fpr = np.broadcast_to(log_fpr, (scale.size, log_fpr.shape[-1]))
    ends = (log_fpr == 0.0) | np.isneginf(log_fpr)
    target = np.where(ends, -1.0, log_fpr)
    width = np.broadcast_to(np.where(scale > 0.0, scale, 1.0)[:, None], target.shape)

    def gap(threshold: FloatArray) -> FloatArray:
        return ratio.log_fpr(threshold) - target

    start = expand_bracket(gap, -width, width)
    found = shrink_bracket(gap, start, f_tolerance=1e-8, x_tolerance=1e-15, x_absolute=1e-12)
    high, at = found.high, ratio.tails(found.high)
    with np.errstate(invalid="ignore"):
        missing = target + log1mexp(np.minimum(at.log_fpr - target, 0.0)) + high
    log_tpr = np.logaddexp(at.log_tpr, missing)
    # FNR: come down from the high end, or, across an atom, up from the low end
    with np.errstate(invalid="ignore"):
        from_high = at.log_fnr + log1mexp(np.minimum(missing - at.log_fnr, 0.0))
    jump = np.abs(found.f_high) > 1e-8
    log_fnr = from_high
    if jump.any():
        below = ratio.tails(found.low)
        with np.errstate(invalid="ignore"):
            spare = target + log1mexp(np.minimum(target - below.log_fpr, 0.0))
            spare = spare + np.maximum(below.log_fpr - target, 0.0) + found.low
        log_fnr = np.where(jump, np.logaddexp(below.log_fnr, spare), log_fnr)
    sure, certain = np.isneginf(log_fpr), ratio.log_certain()[:, None]
    log_tpr = np.where(log_fpr == 0.0, 0.0, np.where(sure, certain, log_tpr))
    log_fnr = np.where(log_fpr == 0.0, -np.inf, np.where(sure, log1mexp(certain), log_fnr))
    return np.minimum(log_tpr, 0.0), np.minimum(log_fnr, 0.0)


def epsilon_by_search(ratio: SearchedRatio, log_delta: FloatArray) -> FloatArray:
    """The least epsilon >= 0 whose hockey stick is at most delta; inf where there is none."""
    scale = ratio.llr_scale()
    log_delta = np.broadcast_to(log_delta, (scale.size, log_delta.shape[-1]))
    width = np.broadcast_to(np.where(scale > 0.0, scale, 1.0)[:, None], log_delta.shape)

    def gap(epsilon: FloatArray) -> FloatArray:
        return ratio.log_excess(epsilon) - log_delta

    zero = np.zeros(log_delta.shape)
    never = ratio.log_certain()[:, None] > log_delta
    already = (gap(zero) <= 0.0) | never

    def gap_or_done(epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.where(already, -epsilon, gap(epsilon)))

    start = expand_bracket(gap_or_done, np.where(already, -width, zero), width)
    found = shrink_bracket(gap_or_done, start, f_tolerance=1e-13, x_tolerance=1e-14)
    return np.asarray(np.where(never, np.inf, np.where(already, 0.0, found.high)))
