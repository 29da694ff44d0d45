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


def moment_integrand(order: float, up: FloatArray, down: FloatArray, llr: FloatArray) -> FloatArray:
    """p0 (exp(a l) - 1 - a (exp(l) - 1)) with a = ``order``: integrates to E0[exp(a l)] - 1."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = np.exp(down) * (expm1_minus_x(order * llr) - order * expm1_minus_x(llr))
        power = np.exp(order * up + (1.0 - order) * down)
        large = power - order * np.exp(up) - (1.0 - order) * np.exp(down)
    return np.asarray(np.where(np.abs(llr) < 0.5, small, large))
