"""Functions of the normal law and sums of exponentials that keep their digits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.special import ndtr, roots_hermitenorm

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


# products of normal distribution functions of unit scale are smooth: 1e-9 for ten of them
_NORMAL_NODES = 64


def chance_of_largest(z: FloatArray, which: npt.ArrayLike) -> FloatArray:
    """P(Z_t is the largest) of independent Z_c ~ N(z_c, 1), c on the last axis of ``z``.

    ``which`` holds t for each of the leading axes, or broadcasts to them.  It is
    E prod over c != t of Phi(z_t - z_c + x) over a standard normal x, by Gauss-Hermite
    quadrature; one node at a time, so that nothing larger than ``z`` is held.
    """
    chosen = np.broadcast_to(np.asarray(which, dtype=np.intp), z.shape[:-1])[..., None]
    ahead = np.take_along_axis(z, chosen, axis=-1) - z
    nodes, weights = roots_hermitenorm(_NORMAL_NODES)
    chance = np.zeros(z.shape[:-1])
    for node, weight in zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True):
        below = ndtr(ahead + node)
        # a normal is not compared with itself
        np.put_along_axis(below, chosen, 1.0, axis=-1)
        chance += weight * np.prod(below, axis=-1)
    return chance
