"""Fisher information about its location of an estimate's law over the privacy noise.

The law is soft(N(m, s^2), T), an atom and two branches (Eq. 53 of **lasso**).  In units of s, with
x = m/s and theta = T/s, a = theta - x and b = theta + x,

    J(x, theta) = Q(a) + a phi(a) + Q(b) + b phi(b) + (phi(a) - phi(b))^2 / P(zero)

and the information about m is J/s^2.  It is the integrand of Eq. (64):
(dr/dm)^2/(1 - r) + d2r/dm2 + r/s^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.normal_tails import log_interval
from leakscope._numerics.quadrature import panels

_ORDER = 12
_REACH = 10.0
_SIGNAL = np.array([0.0, 0.7, 1.5, 2.5, 4.0, 6.0, _REACH])
_NEAR = np.array([-10.0, -7.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 7.0, 10.0])


class MeanInformation(NamedTuple):
    """E J(x, theta) over x ~ N(0, y) mixed over two y, and its derivatives."""

    value: FloatArray
    by_theta: FloatArray
    by_y: FloatArray
    """Shape (2, ...): one for each component."""


def information(x: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """J(x, theta) and its derivatives with respect to x and theta."""
    a, b = theta - x, theta + x
    phi_a, phi_b = (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) for z in (a, b))
    # phi(a) - phi(b) as a product, which keeps its digits near x = 0
    gap = np.where(x >= 0.0, -phi_a, phi_b) * np.expm1(-2.0 * theta * np.abs(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.exp(np.log(np.abs(gap)) - log_interval(x, theta))
    hazard = np.sign(gap) * np.where(np.isfinite(size), size, 0.0)
    upper = special.ndtr(-a) + a * phi_a + special.ndtr(-b) + b * phi_b
    value = upper + gap * hazard
    slope_x = (
        a * a * phi_a
        - b * b * phi_b
        + 2.0 * hazard * (a * phi_a + b * phi_b)
        + gap * hazard * hazard
    )
    slope_theta = (
        -a * a * phi_a
        - b * b * phi_b
        + 2.0 * hazard * (b * phi_b - a * phi_a)
        - hazard * hazard * (phi_a + phi_b)
    )
    return value, slope_x, slope_theta


def mean_information(
    weights: tuple[FloatArray, FloatArray], y: tuple[FloatArray, FloatArray], theta: FloatArray
) -> MeanInformation:
    """Average J over x ~ N(0, y_j) with weight w_j, j = 0 and 1; all arrays of one shape (B,).

    Gauss-Legendre on panels that follow both the normal density and the step of J at theta, whose
    width is 1: no rule for the normal density alone sees that step when y is large.
    """
    value, by_theta, by_y = np.zeros_like(theta), np.zeros_like(theta), []
    for weight, variance in zip(weights, y, strict=True):
        sd = np.sqrt(variance)
        far = _REACH * sd
        breaks = np.concatenate(
            [sd[:, None] * _SIGNAL, np.clip(theta[:, None] + _NEAR, 0.0, far[:, None])], axis=-1
        )
        x, dx = panels(np.sort(breaks, axis=-1), _ORDER)
        z = x / sd[:, None]
        mass = dx * np.exp(-0.5 * z * z) * (2.0 / np.sqrt(2.0 * np.pi)) / sd[:, None]
        at, slope_x, slope_theta = information(x, np.broadcast_to(theta[:, None], x.shape))
        value += weight * (mass * at).sum(axis=-1)
        by_theta += weight * (mass * slope_theta).sum(axis=-1)
        by_y.append(weight * (mass * slope_x * x).sum(axis=-1) / (2.0 * variance))
    return MeanInformation(value, by_theta, np.stack(by_y))
