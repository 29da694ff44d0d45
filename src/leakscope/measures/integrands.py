"""Integrands of divergences that never change sign, so that nearly equal laws keep their digits.

``up`` and ``down`` are log p1 and log p0, and ``llr`` their difference with digits of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakscope._numerics.log_space import expm1_minus_x

FloatArray = npt.NDArray[np.float64]


def kl_integrand(up: FloatArray, down: FloatArray, llr: FloatArray) -> FloatArray:
    """p1 l - p1 + p0, which is never negative and integrates to KL(P1 || P0)."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = np.exp(up) * expm1_minus_x(-llr)
        large = np.exp(up) * (llr - 1.0) + np.exp(down)
    return np.asarray(np.where(np.abs(llr) < 0.5, small, large))


def moment_weight(order: float) -> float:
    """What the integral of `moment_integrand` is multiplied with: a - 1, or -a below 1/2."""
    return order - 1.0 if order >= 0.5 else -order


def moment_integrand(order: float, up: FloatArray, down: FloatArray, llr: FloatArray) -> FloatArray:
    """p1 (exp(r l) - 1)/r - p1 + p0 with r = ``order`` - 1, never negative.

    It integrates to (E0[exp(a l)] - 1)/r with a = ``order``, and becomes `kl_integrand` as a goes
    to 1.  Below a = 1/2 the laws change places, so that a going to 0 costs no digits either; the
    integral times `moment_weight` is the moment minus one in both cases.
    """
    r = moment_weight(order)
    if order < 0.5:
        order, up, down, llr = 1.0 - order, down, up, -llr
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        p1, p0, tilt = np.exp(up), np.exp(down), r * llr
        power = np.exp(order * up - r * down)
        grown = np.where(np.abs(tilt) <= 1.0, p1 * np.expm1(tilt) / r, (power - p1) / r)
        close = np.abs(llr) < 0.5
        small = p1 * (expm1_minus_x(tilt) / r + expm1_minus_x(-llr))
        large = grown + np.where(close, p1 * np.expm1(-llr), p0 - p1)
    return np.asarray(np.where(close & (np.abs(tilt) <= 1.0), small, large))
