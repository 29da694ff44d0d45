"""Integrals of ratios without a closed form: divergences, and the area under the ROC.

The integrands of divergences never change sign, so that nearly equal laws keep their digits;
``up`` and ``down`` are log p1 and log p0, and ``llr`` their difference with digits of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.log_space import expm1_minus_x


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


# The double-exponential rule on [0, 1]: any power at the ends of a piece is integrated well.
_STEP = np.arange(-19, 20) * 0.16
_ANGLE = 0.5 * np.pi * np.sinh(_STEP)
_NODES = 1.0 / (1.0 + np.exp(-2.0 * _ANGLE))
_WEIGHTS = 0.16 * 0.25 * np.pi * np.cosh(_STEP) / np.cosh(_ANGLE) ** 2


def auc_by_levels(
    size_of_test: Callable[[FloatArray], FloatArray], levels: FloatArray
) -> FloatArray:
    """AUC of B pairs, from the size of the likelihood-ratio test alone.

    With F(t) = P0(l > t), the ROC's slope at that point is exp(t), and integrating by parts

        1 - AUC = (1/2) integral of exp(t) F(t)^2 dt,

    ties counting one half, atoms included.  With s = exp(t) below t = 0 and r = exp(-t) above it,
    both halves are integrals over [0, 1] of functions between 0 and 1 (above, because
    F(t) <= exp(-t)).

    Parameters
    ----------
    size_of_test
        F at thresholds of shape (B, m).
    levels
        (B, K): where F has kinks, and enough other levels to show where l lies; the pieces of
        the integral end there.
    """
    batch = levels.shape[0]
    missed = np.zeros(batch)
    for sign in (-1.0, 1.0):
        ends = np.exp(-np.maximum(sign * levels, 0.0))
        edge = np.broadcast_to(np.array([0.0, 1.0]), (batch, 2))
        breaks = np.sort(np.concatenate([ends, edge], axis=-1), axis=-1)
        breaks = breaks[:, _used(breaks)]
        width = np.diff(breaks, axis=-1)[..., None]
        x = (breaks[:, :-1, None] + width * _NODES).reshape(batch, -1)
        weight = (width * _WEIGHTS).reshape(batch, -1)
        level = sign * -np.log(np.maximum(x, 1e-300))
        value = size_of_test(level)
        if sign > 0.0:
            value = np.minimum(value / np.maximum(x, 1e-300), 1.0)
        missed += (weight * value * value).sum(axis=-1)
    return np.asarray(1.0 - 0.5 * missed)


def _used(breaks: FloatArray) -> npt.NDArray[np.bool_]:
    """Columns that end a piece of some width in at least one row."""
    wide = (np.diff(breaks, axis=-1) > 0.0).any(axis=0)
    return np.concatenate([wide, [True]])
