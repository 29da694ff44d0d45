"""Probabilities of the standard normal law in logs, with relative accuracy in the tails.

Everything goes through scaled complementary error functions, which keep full relative precision
where differences of distribution functions lose it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray

LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_HALF_NODES, _HALF_WEIGHTS = _NODES[6:], _WEIGHTS[6:]  # the rule is symmetric


def log_upper(z: npt.ArrayLike) -> FloatArray:
    """log P(Z > z)."""
    return np.asarray(special.log_ndtr(-np.asarray(z, dtype=np.float64)))


def mills(z: npt.ArrayLike) -> FloatArray:
    """Mills' ratio P(Z > z) / phi(z)."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(np.sqrt(0.5 * np.pi) * special.erfcx(z * np.sqrt(0.5)))


def log_interval(mid: npt.ArrayLike, half: npt.ArrayLike) -> FloatArray:
    """log P(mid - half <= Z <= mid + half), accurate for narrow and for far-away intervals.

    Middle and half-width instead of two ends: ends that lie close together do not hold the
    width's digits.
    """
    mid, half = np.broadcast_arrays(np.abs(mid), half)
    mid = mid.astype(np.float64)
    half = half.astype(np.float64)
    result = np.full(mid.shape, -np.inf)
    near = mid - half
    narrow = (half * (1.0 + mid) < 0.5) & (half > 0.0)
    tail = ~narrow & (near > 0.0) & (half > 0.0)
    wide = ~narrow & (near <= 0.0) & (half > 0.0)
    if narrow.any():
        m, h = mid[narrow], half[narrow]
        t = h[:, None] * _HALF_NODES
        mean = (np.cosh(m[:, None] * t) * np.exp(-0.5 * t * t)) @ _HALF_WEIGHTS
        result[narrow] = np.log(2.0 * h) - 0.5 * m * m - LOG_SQRT_2PI + np.log(mean)
    if tail.any():
        m, h, u = mid[tail], half[tail], near[tail]
        with np.errstate(over="ignore", invalid="ignore"):
            gone = np.where(np.isinf(h), 0.0, np.exp(-2.0 * m * h) * mills(m + h))
        result[tail] = np.log(mills(u) - gone) - 0.5 * u * u - LOG_SQRT_2PI
    if wide.any():
        outside = special.ndtr(-(mid[wide] + half[wide])) + special.ndtr(near[wide])
        result[wide] = np.log1p(-outside)
    return result


def log_between(low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
    """log P(low <= Z <= high); the ends may be infinite, and an empty interval gives -inf."""
    low, high = np.broadcast_arrays(
        np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    )
    with np.errstate(invalid="ignore"):
        close = high - low < 100.0
    if close.all():
        return log_interval(0.5 * (low + high), np.maximum(0.5 * (high - low), 0.0))
    result = np.full(low.shape, -np.inf)
    if close.any():
        first, last = low[close], high[close]
        result[close] = log_interval(0.5 * (first + last), np.maximum(0.5 * (last - first), 0.0))
    # of a wider interval at most one end lies where there is mass
    wide = ~close & (high > low)
    first, last = low[wide], high[wide]
    result[wide] = special.log_ndtr(np.where(first > -50.0, -first, last))
    return result
