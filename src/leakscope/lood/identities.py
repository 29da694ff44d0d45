"""From leverages to laws: the leave-one-out identities, shared by every route.

Symbols: K the kernel matrix of all n records (the paper's K_D'D'), s2 the noise variance (the
paper's sigma^2), M = K + s2 I, a = M^{-1} y, m_i = [M^{-1}]_ii and the leverage
h_i = [K M^{-1}]_ii = 1 - s2 m_i.  A Gaussian process trained on all records has at record i

    mean with    = y_i - s2 a_i        variance with    = s2 - s2^2 m_i = s2 h_i,

and one trained on the others (the classical leave-one-out identities)

    mean without = y_i - a_i / m_i     variance without = 1/m_i - s2    = h_i / m_i,

so that the mean shifts by a_i h_i / m_i and the paper's Def. C.3 at the record itself is, with
x_i = h_i/(s2 m_i) and C outputs,

    KL(without || with) = (C/2) (x_i - log(1 + x_i)) + (1/2) x_i ||a_i||^2 / m_i.

Nothing here is the difference of two nearly equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.log_space import x_minus_log1p
from leakscope.laws import Assumption
from leakscope.lood.separation import Route, Separation

# A record is trusted when its KL is estimated to be right to this relative error.
TRUSTED_BELOW = 1e-8

# Or when it is surely below this: no test then has an advantage of 1e-6 (Pinsker's inequality), and
# nobody needs its digits.
UNSEEN_BELOW = 1e-12

# Below this a sum of squares has lost digits to the range of float64.
TINY_SQUARES = 1e-280

# Below this 1 - s2 m_i would show its rounding (some 1e-16) in the last five of sixteen digits.
SMALL_LEVERAGE = 1e-4

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Leverages:
    """What a route finds out about each record.

    Attributes
    ----------
    leverage
        h_i, with its digits also where it is near 0.
    m
        [M^{-1}]_ii, with its digits also where it is near 0.
    a
        (n, C) rows of M^{-1} y.
    relative_error_h, relative_error_m
        First-order estimates of the relative errors of h_i and m_i.
    error_a
        (n,) the same of the length of a_i, absolute.
    """

    leverage: FloatArray
    m: FloatArray
    a: FloatArray
    relative_error_h: FloatArray
    relative_error_m: FloatArray
    error_a: FloatArray


def laws_from_leverages(
    found: Leverages,
    targets: FloatArray,
    *,
    noise_variance: float,
    condition_number: float,
    route: Route,
    assumptions: tuple[Assumption, ...] = (),
) -> Separation:
    """What each record's leaving changes, the parts of its KL, and whether float64 resolves it."""
    h, m, outputs = found.leverage, found.m, found.a
    mean_distance = 0.5 * np.sum((outputs * (h / m)[:, None]) ** 2, axis=1)
    excess = h / (noise_variance * m)
    kl_label_free = outputs.shape[1] * 0.5 * x_minus_log1p(excess)
    kl_label = mean_distance / (noise_variance * h)
    lost = mean_distance < TINY_SQUARES
    if lost.any():
        squares = np.sum(outputs[lost] ** 2, axis=1)
        kl_label[lost] = 0.5 * (excess[lost] / m[lost]) * squares
    error = _relative_error(found, excess, kl_label_free, kl_label)
    return Separation(
        targets=targets,
        excess=excess,
        residual=outputs / m[:, None],
        kl_label_free=kl_label_free,
        kl_label=kl_label,
        error_estimate=error,
        trusted=resolved(kl_label_free + kl_label, error),
        condition_number=condition_number,
        noise_variance=float(noise_variance),
        route=route,
        assumptions=assumptions,
    )


def resolved(kl: FloatArray, error: FloatArray) -> NDArray[np.bool_]:
    """Whether each KL is known well enough, from its estimated relative error."""
    return (error < TRUSTED_BELOW) | ((error < 1.0) & (kl * (1.0 + error) < UNSEEN_BELOW))


def _relative_error(
    found: Leverages, excess: FloatArray, kl_label_free: FloatArray, kl_label: FloatArray
) -> FloatArray:
    """How the errors of h_i, m_i and a_i reach the KL, to first order."""
    relative_excess = found.relative_error_h + found.relative_error_m
    # d(x - log(1 + x)) = x^2/(1 + x) dx/x
    free_error = found.a.shape[1] * 0.5 * excess * (excess / (1.0 + excess)) * relative_excess
    # kl_label is scale times |a_i|^2; where a label agrees exactly, its error is quadratic.
    scale = 0.5 * excess / found.m
    size = np.sqrt(np.sum(found.a**2, axis=1))
    label_error = scale * found.error_a * (2.0 * size + found.error_a) + kl_label * (
        found.relative_error_h + 2.0 * found.relative_error_m
    )
    total = np.maximum(kl_label_free + kl_label, np.finfo(np.float64).tiny)
    return np.asarray((free_error + label_error) / total)
