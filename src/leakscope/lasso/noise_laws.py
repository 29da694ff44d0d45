"""The two laws of the privacy noise that Setting P of **lasso** allows, Gaussian and Laplace.

A coordinate's field is Y = r n + e beside its location: n is standard normal, e the coordinate's
own noise of sd sigma.  With Gaussian noise Y is normal.  With Laplace noise e = B l and
B = sigma/sqrt(2), the density f of Y solves f - B^2 f'' = phi_r, and with Q the normal's tail

    P(Y > x)      = Q(x/r) - B^2 f'(x),
    E(Y - x)_+    = r phi(x/r) - x Q(x/r) + B^2 f(x),
    E(Y - x)_+^2  = (r^2 + x^2) Q(x/r) - r x phi(x/r) + 2 B^2 P(Y > x).

Over its own noise alone an estimate is soft(m + e, T).  Its Fisher information about m is J/s^2.
Gaussian, s = sigma, x = m/s, theta = T/s, a = theta - x and b = theta + x:

    J = Q(a) + a phi(a) + Q(b) + b phi(b) + (phi(a) - phi(b))^2 / P(zero),

the integrand of Eq. (64).  Laplace, s = B:

    J = 1 for |x| >= theta,   J = (c - e^{-2 theta})/(1 - c), c = e^{-theta} cosh x, otherwise:

an attacker learns as much from a coordinate that is far beyond the threshold as without one, and
twice as much as from normal noise of the same sd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope._numerics.special_functions import log_interval
from leakscope.settings.plan import LassoNoise

ROOT_HALF = np.sqrt(0.5)
_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)
# Standard deviations of a location beyond which its mass, 1e-23, is left out.
_REACH = 10.0
# Nodes of a panel, and where panels break: in sds of the location, and around the cut in its width.
_ORDER = 12
_SIGNAL = np.array([0.0, 0.7, 1.5, 2.5, 4.0, 6.0, _REACH])
_AROUND = np.array([-30.0, -15.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0])
# Own noise of a smaller share of the field's sd is as good as none in float64.
_LEAST_SHARE = 1e-12


class Tails(NamedTuple):
    """P(Y > x), E(Y - x)_+ and E(Y - x)_+^2."""

    beyond: FloatArray
    excess: FloatArray
    square: FloatArray


def tails(x: FloatArray, rest: FloatArray, own: FloatArray, noise: LassoNoise) -> Tails:
    """The tails of a normal of sd ``rest`` plus the noise of sd ``own``, for x of any sign.

    Examples
    --------
    >>> from leakscope.lasso.noise_laws import tails
    >>> [round(float(part), 6) for part in tails(1.0, 0.3, 0.4, "gaussian")]
    [0.02275, 0.004245, 0.001442]
    >>> round(float(tails(1.0, 0.5, 0.3 * 2**0.5, "laplace").beyond), 6)
    0.06095
    """
    if noise == "gaussian":
        sd = np.hypot(rest, own)
        z = np.asarray(x) / sd
        upper, height = special.ndtr(-z), np.exp(-0.5 * z * z) / _ROOT_TWO_PI
        square = (1.0 + z * z) * upper - z * height
        return Tails(upper, sd * (height - z * upper), sd * sd * square)
    scale = ROOT_HALF * np.maximum(own, _LEAST_SHARE * rest)
    z, ratio = np.asarray(x) / rest, rest / scale
    near, far = _share(z, ratio), _share(-z, ratio)
    upper, height = special.ndtr(-z), np.exp(-0.5 * z * z) / _ROOT_TWO_PI
    beyond = upper + 0.5 * (near - far)
    excess = rest * (height - z * upper) + 0.5 * scale * (near + far)
    square = rest * rest * ((1.0 + z * z) * upper - z * height) + 2.0 * scale * scale * beyond
    return Tails(np.asarray(beyond), np.asarray(excess), np.asarray(square))


def _share(z: FloatArray, ratio: FloatArray) -> FloatArray:
    """exp(r^2/2 - z r) Phi(z - r), which is phi(z) times Mills' ratio of r - z if that is > 0."""
    lag = ratio - z
    with np.errstate(over="ignore", invalid="ignore"):
        mills = np.sqrt(0.5 * np.pi) * special.erfcx(np.maximum(lag, 0.0) * ROOT_HALF)
        close = np.exp(-0.5 * z * z) / _ROOT_TWO_PI * mills
        away = np.exp(np.minimum(0.5 * ratio * ratio - z * ratio, 0.0)) * special.ndtr(-lag)
    return np.asarray(np.where(lag > 0.0, close, away))


def squared_error(
    cut: FloatArray, rest: FloatArray, own: FloatArray, signal: FloatArray, noise: LassoNoise
) -> tuple[FloatArray, FloatArray]:
    """E(beta0 - soft(beta0 + Y, cut))^2 and P(active), beta0 normal of variance ``signal``."""
    around = np.sqrt(signal + rest * rest)
    if noise == "laplace":
        at = tails(cut, around, own, noise)
        # by Stein's lemma E beta0 soft = signal P(active)
        return signal * (1.0 - 4.0 * at.beyond) + 2.0 * at.square, 2.0 * at.beyond
    # with clip = Y - soft: E(clip - z)^2, which keeps its digits where the signal is strong
    sd = np.hypot(around, own)
    u = cut / sd
    inside = special.erf(u * ROOT_HALF)
    active = special.erfc(u * ROOT_HALF)
    clipped = sd * sd * (inside - u * np.exp(-0.5 * u * u) * 2.0 / _ROOT_TWO_PI)
    return (rest * rest + own * own) * (1.0 - 2.0 * inside) + cut * cut * active + clipped, active


def spread_at(
    m: FloatArray, cut: FloatArray, rest: FloatArray, own: FloatArray, noise: LassoNoise
) -> tuple[FloatArray, FloatArray]:
    """The variance of soft(m + Y, cut) and P(active), for m of zero or above."""
    low, high = cut - m, cut + m
    near, far = tails(np.abs(low), rest, own, noise), tails(high, rest, own, noise)
    # where the location is beyond the cut, the variance is Y's less what the threshold takes
    lost = near.square + near.excess**2
    beyond = rest**2 + own**2 - lost + 2.0 * np.minimum(low, 0.0) * near.excess
    above = np.where(low < 0.0, beyond, near.square - near.excess**2)
    mean = np.where(low < 0.0, near.excess - low, near.excess)
    active = np.where(low < 0.0, 1.0 - near.beyond, near.beyond) + far.beyond
    return above + far.square - far.excess**2 + 2.0 * mean * far.excess, active


def information(x: FloatArray, theta: FloatArray, noise: LassoNoise) -> FloatArray:
    """J(x, theta), in units of one over the noise's variance (Laplace: over B^2)."""
    if noise == "laplace":
        return _laplace_information(x, theta)
    a, b = theta - x, theta + x
    phi_a, phi_b = (np.exp(-0.5 * z * z) / _ROOT_TWO_PI for z in (a, b))
    # phi(a) - phi(b) as a product, which keeps its digits near x = 0
    gap = np.where(x >= 0.0, -phi_a, phi_b) * np.expm1(-2.0 * theta * np.abs(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        atom = np.exp(2.0 * np.log(np.abs(gap)) - log_interval(x, theta))
    upper = special.ndtr(-a) + a * phi_a + special.ndtr(-b) + b * phi_b
    return np.asarray(upper + np.where(np.isfinite(atom), atom, 0.0))


def _laplace_information(x: FloatArray, theta: FloatArray) -> FloatArray:
    size = np.minimum(np.abs(x), theta)
    ahead, behind = np.exp(size - theta), np.exp(-size - theta)
    # 1 - c and c - e^{-2 theta} as sums of what is not negative
    missing = -0.5 * (np.expm1(size - theta) + np.expm1(-size - theta))
    gained = 0.5 * (ahead * -np.expm1(-theta - size) + behind * -np.expm1(size - theta))
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(missing > 0.0, gained / missing, 1.0)
    return np.asarray(np.where(np.abs(x) >= theta, 1.0, inside))


def over_locations(
    work: Callable[[FloatArray], tuple[FloatArray, ...]],
    weights: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    cut: FloatArray,
    width: FloatArray,
) -> list[FloatArray]:
    """Averages of even functions over m ~ N(0, y_j) with weight w_j; all arrays are (B,).

    ``work`` gets locations m >= 0, (B, nodes).  Gauss-Legendre panels follow the normal density
    and close in on ``cut``, where the functions have a step of this ``width``.
    """
    totals: list[FloatArray] = []
    for weight, variance in zip(weights, variances, strict=True):
        sd = np.sqrt(variance)[:, None]
        steps = np.clip(cut[:, None] + width[:, None] * _AROUND, 0.0, _REACH * sd)
        m, dm = panels(np.sort(np.concatenate([sd * _SIGNAL, steps], axis=-1)), _ORDER)
        mass = weight[:, None] * dm * np.exp(-0.5 * (m / sd) ** 2) * (2.0 / _ROOT_TWO_PI) / sd
        parts = [(mass * part).sum(axis=-1) for part in work(m)]
        totals = [a + b for a, b in zip(totals, parts, strict=True)] if totals else parts
    return totals
