"""Which of two predictions follows a measurement better: the difference of two correlations.

Both correlations come from the same records, so the interval is a bootstrap over records that
takes both along.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from leakscope.laws import Key
from leakscope.verifying import Interval
from papers.arrays import FloatArray

RESAMPLES = 2000


def correlation_gap(
    one: FloatArray,
    other: FloatArray,
    measured: FloatArray,
    key: Key,
    *,
    kind: Literal["pearson", "spearman"],
) -> Interval:
    """corr(one, measured) - corr(other, measured), with its 95% interval over records.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.laws import Key
    >>> from papers.paired_correlations import correlation_gap
    >>> x = np.arange(30.0)
    >>> gap = correlation_gap(x, -x, x, Key(0), kind="pearson")
    >>> round(gap.value, 6), round(gap.low, 6)
    (2.0, 2.0)
    """
    draws = key.generator().integers(len(measured), size=(RESAMPLES, len(measured)))
    gaps = _correlation(one[draws], measured[draws], kind) - _correlation(
        other[draws], measured[draws], kind
    )
    gaps = gaps[np.isfinite(gaps)]
    value = _correlation(one, measured, kind) - _correlation(other, measured, kind)
    low, high = np.quantile(gaps, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))


def _correlation(x: FloatArray, y: FloatArray, kind: str) -> FloatArray:
    from scipy.stats import rankdata

    if kind == "spearman":
        x, y = rankdata(x, axis=-1), rankdata(y, axis=-1)
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.sum(x**2, axis=-1) * np.sum(y**2, axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sum(x * y, axis=-1) / scale)
