"""A mean over records, designs or networks with its 95% interval, by Student's t."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special


class Mean(NamedTuple):
    """A mean, its standard error, and the ends of its 95% interval."""

    value: float
    stderr: float
    low: float
    high: float


def mean_interval(values: ArrayLike) -> Mean:
    """The mean of independent values; without an interval where there is only one.

    Examples
    --------
    >>> from papers.mean_interval import mean_interval
    >>> [round(number, 3) for number in mean_interval([1.0, 2.0, 3.0])]
    [2.0, 0.577, -0.484, 4.484]
    """
    array = np.asarray(values, dtype=np.float64)
    value = float(array.mean())
    if array.size < 2:
        return Mean(value, float("nan"), value, value)
    return around(value, float(array.std(ddof=1) / np.sqrt(array.size)), array.size - 1)


def around(value: float, stderr: float, freedom: float = np.inf) -> Mean:
    """The 95% interval of a value whose standard error is known, normal by default."""
    quantile = special.ndtri(0.975) if np.isinf(freedom) else special.stdtrit(freedom, 0.975)
    reach = float(quantile) * stderr
    return Mean(value, stderr, value - reach, value + reach)
