"""The ROC of the best membership test, points on it, its area, and the f-DP trade-off curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, Provenance
from leakscope.measures import empirical_estimates
from leakscope.measures.dispatch import as_levels, is_empirical, over_pairs, samples
from leakscope.measures.estimate import Estimate
from leakscope.measures.ratio import Ratio
from leakscope.settings import MEASURE_DEFAULTS


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The ROC of the best test: ``tpr`` at each ``fpr``, for one pair or a batch of them.

    ``tpr_low`` and ``tpr_high`` are a simultaneous confidence band for empirical laws, and
    ``None`` for laws that are known.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import roc
    >>> curve = roc(LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0)), fpr=[0.0, 0.5, 1.0])
    >>> curve.tpr.round(4)
    array([0.    , 0.8413, 1.    ])
    """

    fpr: FloatArray
    tpr: FloatArray
    provenance: Provenance
    tpr_low: FloatArray | None = None
    tpr_high: FloatArray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each point of the curve; one pair only."""
        if self.tpr.ndim != 1:
            raise InputError(
                f"RocCurve: a table needs one pair, but this is a batch of {self.tpr.shape[:-1]}."
            )
        columns = {"fpr": self.fpr, "tpr": self.tpr}
        if self.tpr_low is not None and self.tpr_high is not None:
            columns |= {"tpr_low": self.tpr_low, "tpr_high": self.tpr_high}
        return pd.DataFrame(columns)


def auc(pair: LawPair, *, confidence: float = MEASURE_DEFAULTS.confidence) -> FloatArray | Estimate:
    """Area under the ROC of the likelihood-ratio test: 0.5 for equal laws, 1 for disjoint ones.

    For empirical laws, the area under the ROC of the score, with DeLong's interval.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import auc
    >>> round(float(auc(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))), 6)
    0.704833
    """
    if is_empirical(pair):
        return empirical_estimates.auc(*samples(pair), confidence)
    return over_pairs(pair, lambda ratio: ratio.auc())


def tpr_at_fpr(
    pair: LawPair, fpr: npt.ArrayLike, *, confidence: float = MEASURE_DEFAULTS.confidence
) -> FloatArray | Estimate:
    """True-positive rate of the best test whose false-positive rate is ``fpr``.

    ``fpr`` is a fraction or an array of them, down to 1e-12 and below; the result has the shape
    of the batch followed by the shape of ``fpr``.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import tpr_at_fpr
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> [f"{t:.4e}" for t in tpr_at_fpr(pair, [1e-3, 1e-12])]
    ['1.8298e-02', '7.9736e-10']
    """
    levels, shape = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.tpr_at_fpr(*samples(pair), levels, confidence)
        return found.reshape((*pair.batch_shape, *shape))
    with np.errstate(divide="ignore"):
        log_fpr = np.log(levels)[None, :]

    def measure(ratio: Ratio) -> FloatArray:
        return np.exp(ratio.tpr_at(log_fpr)[0])

    flat = over_pairs(pair, measure, (levels.size,))
    return np.asarray(flat.reshape((*pair.batch_shape, *shape)))


def trade_off(
    pair: LawPair, fpr: npt.ArrayLike, *, confidence: float = MEASURE_DEFAULTS.confidence
) -> FloatArray | Estimate:
    """The f-DP trade-off curve: the least false-negative rate at each false-positive rate.

    It is 1 - TPR, with its own digits where the TPR is nearly one.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import trade_off
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> trade_off(pair, [0.0, 0.5, 1.0]).round(4)
    array([1.    , 0.1587, 0.    ])
    """
    levels, shape = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.trade_off(*samples(pair), levels, confidence)
        return found.reshape((*pair.batch_shape, *shape))
    with np.errstate(divide="ignore"):
        log_fpr = np.log(levels)[None, :]

    def measure(ratio: Ratio) -> FloatArray:
        return np.exp(ratio.tpr_at(log_fpr)[1])

    flat = over_pairs(pair, measure, (levels.size,))
    return np.asarray(flat.reshape((*pair.batch_shape, *shape)))


def roc(
    pair: LawPair,
    fpr: npt.ArrayLike | None = None,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> RocCurve:
    """The whole ROC of the best test, on a grid that also shows it on a log-log plot.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import roc
    >>> curve = roc(LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0)))
    >>> bool(curve.fpr[1] < 1e-11), bool((curve.tpr >= curve.fpr).all())
    (True, True)
    """
    if fpr is None:
        low = np.logspace(-12.0, -1.5, 64)
        fpr = np.concatenate([[0.0], low, np.linspace(low[-1], 1.0, 65)[1:]])
    levels, _ = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.roc(*samples(pair), levels, confidence)
        return RocCurve(levels, found.value, pair.provenance, found.low, found.high)
    tpr = tpr_at_fpr(pair, levels)
    return RocCurve(levels, np.asarray(tpr), pair.provenance)
