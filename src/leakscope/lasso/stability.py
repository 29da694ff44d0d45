"""Where objective perturbation stops having a solution: the stability edge in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.setting import LassoSetting


def stability_edge(alpha: ArrayLike) -> FloatArray:
    """The least lambda/sigma_eta at which objective perturbation has a solution.

    Condition (42) of **lasso**, rho_hat < alpha, holds if and only if lambda/sigma_eta is above

        sqrt(t / (2 phi(t)/alpha - t)),  t = Q^{-1}(alpha/2),

    whatever rho, sigma_xi and the signal are: as the error diverges the estimate forgets all of
    them.  Zero for alpha >= 1, which is always stable.

    Examples
    --------
    >>> from leakscope.lasso import stability_edge
    >>> stability_edge([0.3, 0.5, 0.8, 1.0]).round(4).tolist()
    [1.4146, 1.0633, 0.5963, 0.0]
    """
    value = np.asarray(alpha, dtype=np.float64)
    if not np.all(value > 0.0):
        raise InputError("stability_edge: alpha must be above zero.")
    half = 0.5 * np.minimum(value, 1.0)
    t = np.maximum(-special.ndtri(half), 0.0)
    # phi(t)/Q(t) - t without cancellation: the inverse Mills ratio less t, t = 0 at alpha >= 1
    excess = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) / half - t
    return np.asarray(np.sqrt(t / excess))


def stability_ratio(setting: LassoSetting) -> FloatArray:
    """How much of the noise that the problem can bear is there: below 1 it is stable.

    sigma_eta times the edge over lambda; zero without noise in the objective and for alpha >= 1.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, stability_ratio
    >>> stability_ratio(LassoSetting(0.5, 0.1, 0.1, 1.0, [0.2, 1.0])).round(4).tolist()
    [0.2127, 1.0633]
    """
    return np.asarray(stability_edge(setting.alpha) * setting.objective_noise / setting.lam)
