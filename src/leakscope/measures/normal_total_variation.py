"""The log likelihood ratio of two normals is a parabola: its level sets, masses and integrals.

In the nonmember's standard units the nonmember law is N(0, 1) and the member law N(d, s^2) with
d >= 0 (mirror the line if it is not), and with g = s^2 - 1

    l(w) = w^2/2 - (w - d)^2/(2 s^2) - log s,      vertex at c = -d/g.

The region l > t is the outside of an interval if g > 0, its inside if g < 0, and a half line if
g = 0.  All functions work elementwise on arrays that broadcast together; ``log_s`` is log s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import growing_panels
from leakscope._numerics.special_functions import LOG_SQRT_2PI, log1mexp, log_between, log_interval

CANCELS = 1e-2  # below this log ratio of two masses their difference is integrated instead
_FAR = 40.0  # beyond this many of them nothing is left beside any difference near the centre
_BULK = 9.5  # standard deviations beyond which a normal law has no mass in double precision


class LevelSet(NamedTuple):
    """Roots of l = t, next to the nonmember's centre and far from it, and the slope there.

    Where there is no root both are the vertex and the slope is zero: the region is everything
    or nothing.
    """

    near: FloatArray
    far: FloatArray
    slope: FloatArray


def shift(d: FloatArray) -> FloatArray:
    """d, or zero where its square underflows: such a shift tells nothing apart."""
    return np.where(np.abs(d) < 1e-130, 0.0, d)


def log_scale(sigma1: FloatArray, sigma0: FloatArray) -> FloatArray:
    """log(sigma1/sigma0), subtracting before anything is rounded."""
    relative = (sigma1 - sigma0) / sigma0
    near = np.abs(relative) < 0.5
    return np.where(near, np.log1p(np.where(near, relative, 0.0)), np.log(sigma1 / sigma0))


def level_set(d: FloatArray, log_s: FloatArray, threshold: FloatArray) -> LevelSet:
    """Solve l = threshold; the far root is -inf when g = 0."""
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    lift = log_s + threshold
    root = s * np.sqrt(np.maximum(d * d + 2.0 * g * lift, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        near = (d * d + 2.0 * s * s * lift) / (d + root)
        far = np.where(g == 0.0, -np.inf, -(d + root) / g)
        # equal laws: l = 0 everywhere, and l > t is everything (t < 0) or nothing
        vertex = np.where(g == 0.0, np.where(lift < 0.0, -np.inf, np.inf), -d / g)
    none = root == 0.0
    near = np.where(none, vertex, near)
    far = np.where(none & (g != 0.0), vertex, far)
    return LevelSet(near, far, root / (s * s))


def height(d: FloatArray, log_s: FloatArray, w: FloatArray) -> FloatArray:
    """l(w), without subtracting large squares."""
    gap = d + np.expm1(log_s) * (w - d) * np.exp(-log_s)  # w - z, with z = (w - d)/s
    return np.asarray(gap * (w - 0.5 * gap) - log_s)


def member_units(d: FloatArray, log_s: FloatArray, w: FloatArray) -> FloatArray:
    """The point w in the member's standard units."""
    return np.asarray((w - d) * np.exp(-log_s))


def log_between_member(
    d: FloatArray, log_s: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Log of the member's mass between two points given in nonmember units."""
    d, log_s, low, high = np.broadcast_arrays(d, log_s, low, high)
    with np.errstate(invalid="ignore"):
        half = 0.5 * (high - low) * np.exp(-log_s)
    close = half < 50.0
    if close.all():
        mid = member_units(d, log_s, 0.5 * (low + high))
        return log_interval(mid, np.maximum(half, 0.0))
    result = np.empty(half.shape)
    wide = ~close
    result[wide] = log_between(
        member_units(d[wide], log_s[wide], low[wide]),
        member_units(d[wide], log_s[wide], high[wide]),
    )
    mid = member_units(d[close], log_s[close], 0.5 * (low[close] + high[close]))
    result[close] = log_interval(mid, np.maximum(half[close], 0.0))
    return result


def log_total_variation(d: FloatArray, log_s: FloatArray) -> FloatArray:
    """Log of P1(l > 0) - P0(l > 0), as the sum of two short intervals; one-dimensional, d >= 0.

    At a root w of l = 0 let z = (w - d)/s be the same point in the member's units.  The masses
    beyond it differ by the standard normal's between z and w, and those of both roots add up:
    nothing cancels, however alike the laws are.  Nor do the lengths.  At the root near the centre
    w - z = d + (s - 1) z = (d + (s - 1) w)/s, a sum of two positive terms in one form or the other;
    at the far one w - z = 2 log(s)/(w + z), because l = 0.
    """
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    level = level_set(d, log_s, np.zeros_like(d))
    same, spread = level.slope == 0.0, np.expm1(log_s)
    w = np.where(same, 0.0, level.near)
    z = (2.0 * log_s - d * d) / (s * np.where(same, 1.0, d + level.slope))
    apart = d + np.minimum(spread, 0.0) * z + np.maximum(spread, 0.0) * w
    half = 0.5 * apart / np.maximum(s, 1.0)
    high = np.where(half < _FAR, w, np.minimum(w, _FAR))
    half = np.where(half < _FAR, half, 0.5 * (high - np.maximum(z, -_FAR)))
    masses = log_interval(high - half, half)
    far = np.flatnonzero(np.abs(level.far) < _FAR)
    if far.size:
        w = level.far[far]
        z = -(d + level.slope)[far] * s[far] / g[far]
        other = log_interval(0.5 * (w + z), np.abs(log_s[far] / (w + z)))
        masses[far] = np.logaddexp(masses[far], other)
    return np.minimum(masses, 0.0)


def log_difference(
    epsilon: FloatArray, log_p1: FloatArray, log_p0: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """log(p1 - exp(epsilon) p0), and where its digits cancel."""
    with np.errstate(invalid="ignore"):
        gap = log_p1 - log_p0 - epsilon
    gap = np.where(np.isneginf(log_p1), 0.0, gap)
    value = log_p1 + log1mexp(-np.maximum(gap, 0.0))
    return np.where(gap > 0.0, value, -np.inf), (gap < CANCELS) & (log_p1 > -np.inf)


def log_excess_between(
    d: FloatArray,
    log_s: FloatArray,
    epsilon: FloatArray,
    start: FloatArray,
    stop: FloatArray,
    root: FloatArray,
    slope: FloatArray,
    lift: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Log of the integral of p1 - exp(epsilon) p0 from ``start`` upwards to ``stop``, and of p0.

    The interval must lie in the region l > epsilon.  One-dimensional arrays; here d may have
    either sign, ``stop`` may be infinite, and l - epsilon = lift + slope u + g u^2/(2 s^2) at
    the distance u from ``root`` (a root, where lift = 0, or the vertex).  Masses are subtracted
    where they differ, and the difference is integrated where their digits would cancel.
    """
    log_p0 = log_between(start, stop)
    value, lost = log_difference(epsilon, log_between_member(d, log_s, start, stop), log_p0)
    if lost.any():
        arrays = np.broadcast_arrays(d, log_s, epsilon, start, stop, root, slope, lift)
        d, log_s, epsilon, start, stop, root, slope, lift = (a[lost] for a in arrays)
        value[lost] = epsilon + _log_rise(d, log_s, start, stop, root, slope, lift)
    return value, log_p0


def _log_rise(
    d: FloatArray,
    log_s: FloatArray,
    start: FloatArray,
    stop: FloatArray,
    root: FloatArray,
    slope: FloatArray,
    lift: FloatArray,
) -> FloatArray:
    """Log of the integral of phi(w) (exp(l(w) - epsilon) - 1): a positive integrand."""
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    start = np.minimum(np.maximum(start, -_BULK), np.maximum(stop, start))
    reach0, first0 = _reach(start)
    reach1, first1 = _reach(member_units(d, log_s, start))
    last = np.maximum(np.minimum(np.maximum(reach0, s * reach1), stop - start), 0.0)
    first = np.minimum(first0, s * first1)
    bend = 0.5 * g / (s * s)
    result = np.empty(start.shape)
    short = last < 4.0 * first  # one panel resolves it
    for some, count, order in ((short, 1, 20), (~short, 32, 12)):
        if not some.any():
            continue
        v, weights = growing_panels(first[some], last[some], count, order)
        a = start[some][:, None]
        u = v + (start - root)[some][:, None]
        rise = lift[some][:, None] + u * (slope[some][:, None] + bend[some][:, None] * u)
        # phi(a + v) relative to its peak on the interval, so that far tails do not underflow
        peak = np.where(a > 0.0, -0.5 * a * a, 0.0)
        base = np.where(a > 0.0, -v * (a + 0.5 * v), -0.5 * (a + v) ** 2)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            small = np.exp(base) * np.expm1(np.minimum(rise, 1.0))
            density = np.where(rise < 1.0, small, np.exp(base + rise) - np.exp(base))
            total = np.log(np.maximum((density * weights).sum(axis=-1), 0.0))
        result[some] = total + peak[:, 0] - LOG_SQRT_2PI
    return result


def _reach(start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far from ``start`` upwards the standard normal has mass, and its shortest scale."""
    positive = np.maximum(start, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        tail = np.minimum(_BULK, 42.0 / positive)
    return np.where(start > 0.0, tail, _BULK - start), 0.25 / (1.0 + positive)
