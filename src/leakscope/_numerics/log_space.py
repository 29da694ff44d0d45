"""Small functions that keep digits where the obvious formula cancels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray


def log1mexp(x: npt.ArrayLike) -> FloatArray:
    """log(1 - exp(x)) for x <= 0; -inf at 0."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
        )


def x_minus_log1p(x: npt.ArrayLike) -> FloatArray:
    """x - log(1 + x) >= 0, with relative accuracy also for small x."""
    x = np.asarray(x, dtype=np.float64)
    # log(1+x) = 2 atanh(r) with r = x/(2+x);  x - 2r = x r, and 2(atanh(r) - r) is a series in r^2
    r = x / (2.0 + x)
    r2 = r * r
    series = np.zeros_like(r2)
    for k in range(17, 2, -2):
        series = (series + 1.0 / k) * r2
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(np.abs(x) < 0.3, r * (x - 2.0 * series), x - np.log1p(x)))


def expm1_minus_x(x: npt.ArrayLike) -> FloatArray:
    """exp(x) - 1 - x >= 0, with relative accuracy also for small x."""
    x = np.asarray(x, dtype=np.float64)
    small = np.abs(x) < 0.3
    y = np.where(small, x, 0.0)
    series = np.zeros_like(y)
    for k in range(14, 2, -1):
        series = (series + 1.0) * y / k
    with np.errstate(over="ignore"):
        return np.asarray(np.where(small, 0.5 * y * y * (1.0 + series), np.expm1(x) - x))
