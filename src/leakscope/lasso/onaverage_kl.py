"""On-average KL of a private LASSO: component by component, corrected and as printed, and joint.

Three numbers that are never to be confused:

- *component-wise, corrected*: cwOnAveKL of Eq. (56), the sum over coordinates of KL between the
  marginal laws, E12 E[I_s(mbar)]/(alpha (alpha - chi)).  An attacker who looks at coordinates one
  by one.
- *component-wise, printed*: Eqs. (63)-(64), which have E for E12, the coordinate's own noise alone
  in I, and alpha for alpha - chi: right only for weak noise and few active coordinates.
- *joint*: the divergence of Eq. (9), of the whole estimate.  See `joint_law_pair`.

Under output perturbation chi = rho_hat0, and the first and the last are
(1 + V) E0 rho_hat0/(alpha sigma_eta)^2.  The printed Eq. (60) lacks 1 + V, the effect of a record
on the estimate through the other records' residuals (and Eq. 59 the 1/2 of a Gaussian KL).

I is the Fisher information about its location of an estimate's law over the privacy noise,
soft(N(m, s^2), T), an atom and two branches (Eq. 53).  In units of s, with x = m/s and
theta = T/s, a = theta - x and b = theta + x,

    J(x, theta) = Q(a) + a phi(a) + Q(b) + b phi(b) + (phi(a) - phi(b))^2 / P(zero)

and the information about m is J/s^2.  It is the integrand of Eq. (64):
(dr/dm)^2/(1 - r) + d2r/dm2 + r/s^2.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope._numerics.special_functions import log_interval
from leakscope.errors import InputError
from leakscope.lasso import laplace_noise
from leakscope.lasso.noise_overlap import Overlap, noise_overlap, overlap_derivative
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.state_evolution import (
    FixedPoint,
    Parameter,
    fixed_point_derivative,
    on_settings,
    state_evolution,
)
from leakscope.settings.plan import LassoDivergence

_ORDER = 12
_STEP = 1e-4
_REACH = 10.0
_SIGNAL = np.array([0.0, 0.7, 1.5, 2.5, 4.0, 6.0, _REACH])
_NEAR = np.array([-10.0, -7.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 7.0, 10.0])


class KLSlope(NamedTuple):
    """A divergence and its derivative with respect to one parameter."""

    value: FloatArray
    slope: FloatArray


def onavg_kl(point: FixedPoint | Overlap, divergence: LassoDivergence = "joint") -> FloatArray:
    """The on-average KL at each setting, in nats; infinite without privacy noise.

    Parameters
    ----------
    point
        From `state_evolution`, or from `noise_overlap` where that is at hand.
    divergence
        ``"joint"``: Eq. (9), in the limit.  ``"component_wise"``: Eq. (56) with the
        corrected laws.  ``"printed"``: Eqs. (63)-(64) as they stand, for the paper's figures.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, onavg_kl, state_evolution
    >>> point = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=[1.0, 1.0, 1.5],
    ...                                      sigma_eta=[0.2, 0.7, 1.0]))
    >>> onavg_kl(point, "printed").round(4).tolist()
    [0.0457, 0.2629, 0.1767]
    >>> onavg_kl(point, "component_wise").round(4).tolist()
    [0.0453, 0.0328, 0.0197]
    >>> onavg_kl(point).round(4).tolist()
    [0.0468, 0.755, 0.4495]
    """
    return onavg_kl_with_slope(point, divergence, None).value


def onavg_kl_with_slope(
    point: FixedPoint | Overlap,
    divergence: LassoDivergence = "joint",
    parameter: Parameter | None = "sigma_eta",
) -> KLSlope:
    """The divergence and its derivative with respect to lambda or sigma_eta.

    Through the fixed point and the overlap by implicit differentiation, so that a root finder can
    use it.  With ``parameter`` ``None`` the slope is zero and costs nothing.
    """
    if divergence not in get_args(LassoDivergence):
        raise InputError(
            f"divergence must be one of {', '.join(get_args(LassoDivergence))}, not {divergence!r}."
        )
    both = point if isinstance(point, Overlap) else None
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    setting = fixed.setting
    if setting.mechanism == "output":
        return _output(fixed, divergence, parameter)
    if setting.noise == "laplace":
        return _laplace(fixed, both, divergence, parameter)
    alpha, noise = setting.alpha, setting.sigma_eta
    zero = np.zeros(setting.shape)
    cut, d_cut, d_lam, d_noise = fixed.threshold, zero, 0.0, 0.0
    d_error = d_scale = zero
    if parameter is not None:
        moved = fixed_point_derivative(fixed, parameter)
        d_lam, d_noise = float(parameter == "lam"), float(parameter == "sigma_eta")
        d_error, d_scale = moved.error, moved.scale
        d_cut = setting.lam * d_scale + fixed.scale * d_lam
    if divergence == "component_wise":
        both = noise_overlap(fixed) if both is None else both
        error, q, alone = both.overlap_error, both.sigma**2, alpha - both.both_active
        d_q = d_shared = zero
        if parameter is not None:
            d_error, d_q, d_shared = overlap_derivative(both, parameter)
    else:
        alone, d_shared = alpha, zero
        error, q = fixed.error, (fixed.scale * noise) ** 2
        d_q = 2.0 * fixed.scale * noise * (noise * d_scale + fixed.scale * d_noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, d_mean = _information(fixed, error, q, cut, d_error, d_q, d_cut)
        if divergence != "joint":
            value = error * mean / (alpha * alone * q)
            slope = value * (d_error / error + d_mean / mean - d_q / q + d_shared / alone)
        else:
            gain = 1.0 + fixed.response
            d_gain = alpha * d_scale
            half = 0.5 * error * mean / noise**2
            d_half = half * (d_error / error + d_mean / mean - 2.0 * d_noise / noise)
            # V^2/(1 + V) = gain - 2 + 1/gain
            value = gain - 2.0 + 1.0 / gain + half * (1.0 + gain**-2)
            slope = d_gain * (1.0 - gain**-2 - 2.0 * half / gain**3) + d_half * (1.0 + gain**-2)
    silent = noise == 0.0
    value = np.where(silent, np.inf, value)
    return KLSlope(np.asarray(value), np.asarray(np.where(silent, -np.inf, slope)))


def joint_parameters(fixed: FixedPoint) -> tuple[FloatArray, FloatArray]:
    """1 + V and a^2 = E E[J]/sigma_eta^2, which the laws of `joint_law_pair` are made of."""
    setting = fixed.setting
    if setting.mechanism == "output":
        return np.ones(setting.shape), onavg_kl(fixed)
    if setting.noise == "laplace":
        gain = np.asarray(1.0 + fixed.response)
        return gain, np.maximum(
            _laplace_square(setting, fixed.error, fixed.scale), (gain - 1.0) ** 2
        )
    zero = np.zeros(setting.shape)
    q = (fixed.scale * setting.sigma_eta) ** 2
    mean, _ = _information(fixed, fixed.error, q, fixed.threshold, zero, zero, zero)
    gain = np.asarray(1.0 + fixed.response)
    # V^2 <= a^2, a covariance; rounding may break it where there is nothing to learn
    square = np.maximum(fixed.error * mean / setting.sigma_eta**2, (gain - 1.0) ** 2)
    return gain, np.asarray(square)


def _output(fixed: FixedPoint, divergence: LassoDivergence, parameter: Parameter | None) -> KLSlope:
    """Eq. (60), times 1 + V = alpha Sigma unless it is asked for as printed."""
    setting = fixed.setting
    gain = np.ones(setting.shape) if divergence == "printed" else setting.alpha * fixed.scale
    spread = (setting.alpha * setting.sigma_eta) ** 2
    if setting.noise == "laplace":
        # a location's Fisher information is twice that of a normal law with the same variance
        spread = 0.5 * spread
    with np.errstate(divide="ignore"):
        value = np.asarray(fixed.error * fixed.active_fraction * gain / spread)
    slope = np.zeros(setting.shape)
    if parameter == "sigma_eta":
        with np.errstate(divide="ignore"):
            slope = -2.0 * value / setting.sigma_eta
    elif parameter is not None:
        moved = fixed_point_derivative(fixed, parameter)
        d_gain = 0.0 if divergence == "printed" else setting.alpha * moved.scale
        slope = (
            moved.error * fixed.active_fraction * gain
            + fixed.error * moved.active_fraction * gain
            + fixed.error * fixed.active_fraction * d_gain
        ) / spread
    return KLSlope(value, np.asarray(slope))


def _laplace(
    fixed: FixedPoint,
    both: Overlap | None,
    divergence: LassoDivergence,
    parameter: Parameter | None,
) -> KLSlope:
    """With Laplace noise in the objective; the slope is a difference along the fixed point."""
    setting = fixed.setting
    if divergence == "component_wise":
        value = _laplace_components(noise_overlap(fixed) if both is None else both)
    else:
        value = _laplace_at(setting, divergence, fixed.error, fixed.scale)
    slope = np.zeros(setting.shape)
    if parameter is not None:
        size = getattr(setting, parameter)
        with np.errstate(invalid="ignore", divide="ignore"):
            if divergence == "component_wise":
                slope = _laplace_components_slope(setting, value, parameter)
            else:
                moved = fixed_point_derivative(fixed, parameter)
                step = _STEP * size
                ends = [
                    _laplace_at(
                        setting.change(**{parameter: size + sign * step}),
                        divergence,
                        fixed.error + sign * step * moved.error,
                        fixed.scale + sign * step * moved.scale,
                    )
                    for sign in (1.0, -1.0)
                ]
                slope = (ends[0] - ends[1]) / (2.0 * step)
    silent = setting.sigma_eta == 0.0
    return KLSlope(
        np.asarray(np.where(silent, np.inf, value)), np.asarray(np.where(silent, -np.inf, slope))
    )


def _laplace_at(
    setting: LassoSetting, divergence: LassoDivergence, error: FloatArray, scale: FloatArray
) -> FloatArray:
    """The joint or printed divergence where E and Sigma are these."""
    square, gain = _laplace_square(setting, error, scale), setting.alpha * scale
    if divergence == "printed":
        # E E[J]/(alpha^2 B^2), B = Sigma sigma_eta/sqrt(2)
        return np.asarray(square / gain**2)
    return np.asarray(gain - 2.0 + 1.0 / gain + 0.5 * square * (1.0 + gain**-2))


def _laplace_square(setting: LassoSetting, error: FloatArray, scale: FloatArray) -> FloatArray:
    """a^2 = E E[J] 2/sigma_eta^2, of each coordinate's own noise."""
    own, cut = scale * setting.sigma_eta * np.sqrt(0.5), setting.lam * scale
    arrays = (setting.alpha, setting.rho, setting.signal_variance, error, own, cut)
    chosen = np.isfinite(error) & (setting.sigma_eta > 0.0)
    mean = on_settings(_laplace_mean, chosen, arrays, 1, block=256)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2.0 * error * mean / setting.sigma_eta**2)


def _laplace_components(both: Overlap) -> FloatArray:
    fixed = both.fixed_point
    setting = fixed.setting
    arrays = (
        *(setting.alpha, setting.rho, setting.signal_variance, fixed.threshold),
        *(both.overlap_error, both.both_active, both.sigma**2, fixed.scale * setting.sigma_eta),
    )
    chosen = fixed.stable & (setting.sigma_eta > 0.0)
    return on_settings(_laplace_component_wise, chosen, arrays, 1, block=16)[0]


def _laplace_components_slope(
    setting: LassoSetting, value: FloatArray, parameter: Parameter
) -> FloatArray:
    """One-sided, exact for a parabola: towards less noise and more penalty there is no edge."""
    away = -1.0 if parameter == "sigma_eta" else 1.0
    size, ends = getattr(setting, parameter), []
    for step in (_STEP, 2.0 * _STEP):
        moved = setting.change(**{parameter: size * (1.0 + away * step)})
        ends.append(_laplace_components(noise_overlap(state_evolution(moved, unstable="mark"))))
    return np.asarray((4.0 * ends[0] - ends[1] - 3.0 * value) / (2.0 * away * _STEP * size))


def _laplace_mean(
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    error: FloatArray,
    scale: FloatArray,
    cut: FloatArray,
) -> tuple[FloatArray]:
    square = scale * scale
    y = error / alpha / square, (signal + error / alpha) / square
    return (laplace_noise.mean_own_information((1.0 - rho, rho), y, cut / scale),)


def _laplace_component_wise(*arrays: FloatArray) -> tuple[FloatArray]:
    found = []
    for alpha, rho, signal, cut, error, shared, q, own in zip(*arrays, strict=True):
        place = float(error / alpha)
        mean = laplace_noise.mean_information(
            (1.0 - rho, rho),
            (place, place + signal),
            float(cut),
            float(np.sqrt(max(q - own * own, 1e-16 * q))),
            float(own * np.sqrt(0.5)),
        )
        found.append(error * mean / (alpha * (alpha - shared)))
    return (np.array(found),)


def _information(
    fixed: FixedPoint,
    error: FloatArray,
    q: FloatArray,
    cut: FloatArray,
    d_error: FloatArray,
    d_q: FloatArray,
    d_cut: FloatArray,
) -> list[FloatArray]:
    """E J over data at location variance error/alpha and noise variance q, and its derivative."""
    setting = fixed.setting
    data = (setting.alpha, setting.rho, setting.signal_variance)
    arrays = (*data, error, q, cut, d_error, d_q, d_cut)
    return on_settings(_information_block, fixed.stable & (q > 0.0), arrays, 2, block=256)


def _information_block(
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    *moving: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What moves along the curve are error, q and cut, and then their derivatives."""
    error, q, cut, d_error, d_q, d_cut = moving
    root = np.sqrt(q)
    theta = cut / root
    y = error / alpha / q, (signal + error / alpha) / q
    found = mean_information((1.0 - rho, rho), y, theta)
    d_theta = d_cut / root - 0.5 * theta * d_q / q
    d_y = [d_error / alpha / q - part * d_q / q for part in y]
    slope = found.by_theta * d_theta + found.by_y[0] * d_y[0] + found.by_y[1] * d_y[1]
    return found.value, slope


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
