"""How the fixed point moves with the setting: implicit differentiation of its two equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.state_evolution import FixedPoint, equations

Parameter = Literal["alpha", "rho", "sigma_xi", "signal_variance", "lam", "sigma_eta"]


@dataclass(frozen=True, eq=False)
class FixedPointDerivative:
    """Derivatives of E, Sigma, rho_hat and v with respect to one parameter of the setting.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, fixed_point_derivative, state_evolution
    >>> found = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.3))
    >>> round(float(fixed_point_derivative(found, "sigma_eta").error), 4)
    -0.0054
    """

    parameter: Parameter
    error: FloatArray
    scale: FloatArray
    active_fraction: FloatArray
    field_variance: FloatArray


def fixed_point_derivative(found: FixedPoint, parameter: Parameter) -> FixedPointDerivative:
    """Differentiate the fixed point at every setting of the batch.

    Under output perturbation the derivative with respect to ``sigma_eta`` is zero: that noise is
    added after the fit.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, fixed_point_derivative, state_evolution
    >>> found = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=[0.3, 1.0], sigma_eta=0.0))
    >>> fixed_point_derivative(found, "lam").error.round(3).tolist()
    [0.114, 0.039]
    """
    if parameter not in get_args(Parameter):
        raise InputError(
            f"parameter must be one of {', '.join(get_args(Parameter))}, not {parameter!r}."
        )
    setting = found.setting
    alpha, rho, lam = setting.alpha, setting.rho, setting.lam
    signal, noise = setting.signal_variance, setting.objective_noise
    v = found.field_variance
    w = 1.0 / np.sqrt(v)
    t = lam * found.scale * w
    at = equations(t, w, alpha, rho, setting.sigma_xi, signal, lam, noise)
    share = 1.0 + signal * w * w
    u = t / np.sqrt(share)
    p0, p1 = special.erfc(t * np.sqrt(0.5)), special.erfc(u * np.sqrt(0.5))
    h0, h1 = (np.sqrt(2.0 / np.pi) * np.exp(-0.5 * x * x) for x in (t, u))
    bias = special.erf(u * np.sqrt(0.5)) + u * (u * p1 - h1)
    g0, g1 = (1.0 + t * t) * p0 - t * h0, (1.0 + u * u) * p1 - u * h1
    zero = np.zeros_like(t)
    u_t, u_w = u / t, -u * signal * w / share
    active_p = zero
    if parameter == "alpha":
        first, second = t, 1.0 - (noise * t / lam) ** 2
    elif parameter == "rho":
        active_p = p1 - p0
        first, second = -t * active_p, g0 - (signal * w * w * bias + g1)
    elif parameter == "sigma_xi":
        first, second = zero, -2.0 * setting.sigma_xi * w * w
    elif parameter == "signal_variance":
        u_p = -0.5 * u * w * w / share
        active_p = -rho * h1 * u_p
        moment_u = signal * w * w * (2.0 * h1 + 2.0 * (u * p1 - h1)) + 2.0 * (u * p1 - h1)
        first, second = -t * active_p, -rho * (moment_u * u_p + w * w * bias)
    elif parameter == "lam":
        first, second = -w, 2.0 * alpha * t * t * noise * noise / lam**3
    elif setting.mechanism == "output":
        first, second = zero, zero
    else:
        first, second = zero, -2.0 * alpha * t * t * noise / (lam * lam)
    det = at.first_t * at.second_w - at.first_w * at.second_t
    dt = (at.first_w * second - at.second_w * first) / det
    dw = (at.second_t * first - at.first_t * second) / det
    d_active = active_p - (1.0 - rho) * h0 * dt - rho * h1 * (u_t * dt + u_w * dw)
    # Sigma = 1/(alpha - rho_hat)
    d_scale = found.scale**2 * (d_active - (1.0 if parameter == "alpha" else 0.0))
    dv = -2.0 * v * dw / w
    # E = alpha (v - Sigma^2 sigma_eta^2)
    d_noise = 1.0 if parameter == "sigma_eta" and setting.mechanism == "objective" else 0.0
    spread = found.scale * noise
    d_error = alpha * (dv - 2.0 * spread * (noise * d_scale + found.scale * d_noise))
    if parameter == "alpha":
        d_error = d_error + found.error / alpha
    return FixedPointDerivative(parameter, d_error, d_scale, d_active, dv)
