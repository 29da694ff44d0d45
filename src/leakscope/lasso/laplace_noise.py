"""Privacy noise with Laplace's law, which Setting P of **lasso** allows: what changes, and how.

A coordinate's field is then m + s n + B l, with n a standard normal and l a standard Laplace
variable, B = Sigma sigma_eta/sqrt(2).  Its density f solves f - B^2 f'' = phi_s, the normal one's;
so does each of its tails with the normal's tail on the right, and nothing needs quadrature:

    P(Y > x)      = Q(x/s) - B^2 f'(x),
    E(Y - x)_+    = s phi(x/s) - x Q(x/s) + B^2 f(x),
    E(Y - x)_+^2  = (s^2 + x^2) Q(x/s) - s x phi(x/s) + 2 B^2 P(Y > x).

Over its own noise alone an estimate is soft(m + B l, T).  In units of B, x = m/B and theta = T/B,
the Fisher information about its location is

    J = 1 for |x| >= theta,   J = (c - e^{-2 theta})/(1 - c), c = e^{-theta} cosh x, otherwise:

an attacker learns as much from a coordinate that is far beyond the threshold as without one, and
twice as much as from normal noise of the same sd.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.interpolate import CubicHermiteSpline

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels

_ROOT_HALF = np.sqrt(0.5)
_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)
_REACH = 10.0
_ORDER = 12
_SIGNAL = np.array([0.0, 0.7, 1.5, 2.5, 4.0, 6.0, _REACH])
_AROUND = np.array([-30.0, -15.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0])


class Tails(NamedTuple):
    """Of Y = s n + B l at x: the density and its slope, and the three moments beyond x."""

    density: FloatArray
    slope: FloatArray
    beyond: FloatArray
    """P(Y > x)."""
    excess: FloatArray
    """E(Y - x)_+."""
    square: FloatArray
    """E(Y - x)_+^2."""


def tails(x: FloatArray, sd: FloatArray, scale: FloatArray) -> Tails:
    """The tails of a normal of this sd plus a Laplace variable of this scale, both above zero.

    Examples
    --------
    >>> from leakscope.lasso.laplace_noise import tails
    >>> found = tails(1.0, 0.5, 0.3)
    >>> round(float(found.density), 6), round(float(found.beyond), 6)
    (0.173374, 0.06095)
    """
    z, ratio = np.asarray(x) / sd, sd / np.asarray(scale)
    near, far = _share(z, ratio), _share(-z, ratio)
    density, slope = 0.5 * (near + far) / scale, 0.5 * (far - near) / (scale * scale)
    upper, height = special.ndtr(-z), np.exp(-0.5 * z * z) / _ROOT_TWO_PI
    beyond = upper + 0.5 * (near - far)
    excess = sd * (height - z * upper) + scale * scale * density
    square = sd * sd * ((1.0 + z * z) * upper - z * height) + 2.0 * scale * scale * beyond
    return Tails(*map(np.asarray, (density, slope, beyond, excess, square)))


def _share(z: FloatArray, ratio: FloatArray) -> FloatArray:
    """exp(r^2/2 - z r) Phi(z - r), which is phi(z) times Mills' ratio of r - z if that is > 0."""
    lag = ratio - z
    with np.errstate(over="ignore", invalid="ignore"):
        mills = np.sqrt(0.5 * np.pi) * special.erfcx(np.maximum(lag, 0.0) * _ROOT_HALF)
        close = np.exp(-0.5 * z * z) / _ROOT_TWO_PI * mills
        away = np.exp(np.minimum(0.5 * ratio * ratio - z * ratio, 0.0)) * special.ndtr(-lag)
    return np.asarray(np.where(lag > 0.0, close, away))


def own_information(x: FloatArray, theta: FloatArray) -> FloatArray:
    """J(x, theta) of soft(m + B l, T), in units of 1/B^2."""
    size = np.minimum(np.abs(x), theta)
    ahead, behind = np.exp(size - theta), np.exp(-size - theta)
    both = 0.5 * (ahead + behind)
    # 1 - c and c - e^{-2 theta} as sums of what is not negative
    missing = -0.5 * (np.expm1(size - theta) + np.expm1(-size - theta))
    told = 0.5 * (ahead * -np.expm1(-theta - size) + behind * -np.expm1(size - theta))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(missing > 0.0, told / missing, 1.0)
    return np.asarray(np.where(np.abs(x) >= theta, 1.0, np.where(both > 0.0, found, 0.0)))


def mean_own_information(
    weights: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    theta: FloatArray,
) -> FloatArray:
    """E J over x ~ N(0, y_j) with weight w_j, j = 0 and 1; all arrays of one shape (B,)."""
    value = np.zeros_like(theta)
    for weight, variance in zip(weights, variances, strict=True):
        x, mass = _locations(np.sqrt(variance), theta, np.ones_like(theta))
        value += weight * (mass * own_information(x, theta[:, None])).sum(axis=-1)
    return value


def _locations(sd: FloatArray, cut: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points and masses of |N(0, sd^2)| on panels that close in on the cut; (B, nodes)."""
    far = _REACH * sd[:, None]
    steps = np.clip(cut[:, None] + width[:, None] * _AROUND, 0.0, far)
    x, dx = panels(np.sort(np.concatenate([sd[:, None] * _SIGNAL, steps], axis=-1)), _ORDER)
    z = x / sd[:, None]
    return x, dx * np.exp(-0.5 * z * z) * (2.0 / _ROOT_TWO_PI) / sd[:, None]


class Both(NamedTuple):
    """Over locations: the variance of soft(m + Y, T) at each, and P(active)^2, on average."""

    lost: FloatArray
    both_active: FloatArray


def two_noises(
    weights: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    cut: FloatArray,
    sd: FloatArray,
    scale: FloatArray,
) -> Both:
    """What two independent noises on the same data do not share; all arrays of one shape (B,).

    The location is N(0, y_j) with weight w_j, and Y = sd n + scale l.
    """
    lost, shared = np.zeros_like(cut), np.zeros_like(cut)
    for weight, variance in zip(weights, variances, strict=True):
        m, mass = _locations(np.sqrt(variance), cut, np.hypot(sd, scale))
        up = tails(cut[:, None] - m, sd[:, None], scale[:, None])
        down = tails(cut[:, None] + m, sd[:, None], scale[:, None])
        spread = up.square + down.square - (up.excess - down.excess) ** 2
        active = up.beyond + down.beyond
        lost += weight * (mass * spread).sum(axis=-1)
        shared += weight * (mass * active * active).sum(axis=-1)
    return Both(lost, shared)


def information(m: FloatArray, cut: float, sd: float, scale: float) -> FloatArray:
    """Fisher information about m of soft(m + sd n + scale l, cut), at many m.

    Beyond the cut it is G(x) = int_x^inf f'^2/f, whose own slope is known: a Hermite spline.
    """
    far = 12.0 * sd + 40.0 * scale
    step = min(sd, scale) / 8.0
    grid = np.arange(-far, far + step, max(step, far / 40_000.0))
    y, weight = panels(np.stack([grid[:-1], grid[1:]], axis=-1), 6)
    at = tails(y, np.asarray(sd), np.asarray(scale))
    with np.errstate(divide="ignore", invalid="ignore"):
        pieces = np.where(at.density > 0.0, weight * at.slope**2 / at.density, 0.0).sum(axis=-1)
        edge = tails(grid, np.asarray(sd), np.asarray(scale))
        rate = np.where(edge.density > 0.0, edge.slope**2 / edge.density, 0.0)
    left = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
    spline = CubicHermiteSpline(grid, left, -rate)
    up, down = cut - np.asarray(m), cut + np.asarray(m)
    beyond = sum(spline(np.clip(x, grid[0], grid[-1])) for x in (up, down))
    above, below = (tails(x, np.asarray(sd), np.asarray(scale)) for x in (up, down))
    gap = above.density - below.density
    zero = np.maximum(1.0 - above.beyond - below.beyond, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        atom = np.where(zero > 1e-14, gap * gap / zero, 0.0)
    return np.asarray(beyond + atom)


def mean_information(
    weights: tuple[float, float],
    variances: tuple[float, float],
    cut: float,
    sd: float,
    scale: float,
) -> float:
    """E of `information` over m ~ N(0, y_j) with weight w_j."""
    total = 0.0
    for weight, variance in zip(weights, variances, strict=True):
        size = np.array([np.sqrt(variance)])
        m, mass = _locations(size, np.array([cut]), np.array([np.hypot(sd, scale)]))
        total += weight * float((mass * information(m, cut, sd, scale)).sum())
    return total
