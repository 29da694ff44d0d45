"""On-average KL of a private LASSO: component by component, corrected and as printed, and joint.

Three numbers that are never to be confused:

- *component-wise, corrected*: cwOnAveKL of Eq. (56), the sum over coordinates of KL between the
  marginal laws, E12 E[I_s(mbar)]/(alpha (alpha - chi)).  An attacker who looks at coordinates one
  by one.  Of Gaussian noise.
- *component-wise, printed*: Eqs. (63)-(64), which have E for E12, the coordinate's own noise alone
  in I, and alpha for alpha - chi: right only for weak noise and few active coordinates.
- *joint*: the divergence of Eq. (9), of the whole estimate.  See `joint_law_pair`.

I_s(m) is the Fisher information about its location of an estimate's law over the privacy noise,
soft(N(m, s^2), T) (`noise_laws`).  Under output perturbation chi = rho_hat0, and the first and the
last are (1 + V) E0 rho_hat0/(alpha sigma_eta)^2.  The printed Eq. (60) lacks 1 + V, the effect of a
record on the estimate through the other records' residuals (and Eq. 59 the 1/2 of a Gaussian KL).

**Two noises on the same data**, which Claim 5.1 lacks.  At fixed data a coordinate's field moves
with its own noise and with that of all others.  Two replicas (same data, independent noises)
separate the two: their fields have the variance v = E/alpha + Sigma^2 sigma_eta^2 and the
covariance E12/alpha (plus the signal's), where

    E12 = sigma_xi^2 + E[(beta0 - F(mbar))^2],  mbar = beta0 + sqrt(E12/alpha) z,
    F(m) = E soft(m + Y, lambda Sigma),         Var Y = s^2 = Sigma^2 sigma_eta^2 + (E - E12)/alpha.

So alpha d, d = (E - E12)/alpha, is the variance over the noise of an estimate, on average over
locations, and by Price's theorem its slope in d is chi, the share of coordinates active under both
noises: Newton's method.

Replacing one record moves a location by its own share, of variance E12/(alpha n), and again
through the residuals of all other records, which follow the estimates.  Together that is
E12/(n (alpha - chi)); Claim 6.1 has alpha alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.noise_laws import ROOT_HALF, information, over_locations, spread_at
from leakscope.lasso.state_evolution import FixedPoint, on_settings
from leakscope.settings.plan import LassoDivergence, LassoNoise

# Settings that are integrated together: some 230 nodes each fit a core's cache.
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Overlap:
    """What the two-replica overlap says at each setting.

    ``overlap_error`` is E12; ``sigma_location`` = sqrt(E12/alpha) is the sd over data of an
    estimate's location, ``sigma`` = s the sd over the privacy noise at fixed data;
    ``both_active`` is chi, the share of coordinates that are not zero under both of two noises.
    """

    fixed_point: FixedPoint
    sigma: FloatArray
    overlap_error: FloatArray
    both_active: FloatArray

    @property
    def sigma_location(self) -> FloatArray:
        """sqrt(E12/alpha)."""
        return np.asarray(np.sqrt(self.overlap_error / self.fixed_point.setting.alpha))


def noise_overlap(point: FixedPoint) -> Overlap:
    """Solve for E12 at every stable setting.

    Under output perturbation the noise is added after the fit, and E12 is the error without it.
    """
    setting = point.setting
    own = point.scale * setting.objective_noise
    noisy = point.stable & (setting.objective_noise > 0.0)
    arrays = (
        *(setting.alpha, setting.rho, setting.signal_variance, point.threshold),
        *(point.field_variance, point.active_fraction, own),
    )
    excess, shared = on_settings(partial(_excess, setting.noise), noisy, arrays, 2, _BLOCK)
    silent = point.stable & ~noisy
    excess = np.where(silent, 0.0, excess)
    return Overlap(
        fixed_point=point,
        sigma=np.asarray(np.sqrt(own**2 + excess)),
        # A mean square plus that of the labels' noise; beside a huge E the difference may be less.
        overlap_error=np.maximum(point.error - setting.alpha * excess, setting.sigma_xi**2),
        both_active=np.where(silent, point.active_fraction, shared),
    )


def _excess(
    noise: LassoNoise,
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    cut: FloatArray,
    v: FloatArray,
    active: FloatArray,
    own: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """d = (E - E12)/alpha and chi."""
    rest = v - own**2
    d = np.minimum(own**2 * active / (alpha - active), 0.999 * rest)
    shared = active
    for _ in range(80):
        sd = np.sqrt(d)

        def at(m: FloatArray, sd: FloatArray = sd) -> tuple[FloatArray, FloatArray]:
            found, on = spread_at(m, cut[:, None], sd[:, None], own[:, None], noise)
            return found, on * on

        places = (rest - d, rest - d + signal)
        lost, shared = over_locations(at, (1.0 - rho, rho), places, cut, np.hypot(sd, own))
        step = (lost - alpha * d) / (shared - alpha)
        moved = np.clip(d - step, 0.1 * d, 0.5 * (d + rest))
        done = np.all(np.abs(moved - d) <= 1e-12 * (own**2 + d))
        d = moved
        if done:
            break
    return d, shared


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
    if divergence not in get_args(LassoDivergence):
        raise InputError(
            f"divergence must be one of {', '.join(get_args(LassoDivergence))}, not {divergence!r}."
        )
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    setting = fixed.setting
    alpha = setting.alpha
    if setting.mechanism == "output":
        gain = np.ones(setting.shape) if divergence == "printed" else alpha * fixed.scale
        spread = (alpha * setting.sigma_eta) ** 2
        if setting.noise == "laplace":
            # a location's Fisher information is twice that of a normal law of the same variance
            spread = 0.5 * spread
        with np.errstate(divide="ignore"):
            return np.asarray(fixed.error * fixed.active_fraction * gain / spread)
    if divergence == "component_wise":
        if setting.noise == "laplace":
            raise InputError(
                "The component-wise divergence is of Gaussian noise; with Laplace noise in the "
                "objective ask for the joint one."
            )
        both = point if isinstance(point, Overlap) else noise_overlap(point)
        error, alone = both.overlap_error, alpha - both.both_active
        mean = _mean_information(fixed, error, both.sigma)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = error * mean / (alpha * alone * both.sigma**2)
    else:
        gain, square = joint_parameters(fixed)
        value = gain - 2.0 + 1.0 / gain + 0.5 * square * (1.0 + gain**-2)
        if divergence == "printed":
            value = square / gain**2
    return np.asarray(np.where(setting.sigma_eta == 0.0, np.inf, value))


def joint_parameters(point: FixedPoint) -> tuple[FloatArray, FloatArray]:
    """1 + V and a^2 = E E[I_own]/Sigma^2, which the laws of `joint_law_pair` are made of."""
    setting = point.setting
    if setting.mechanism == "output":
        return np.ones(setting.shape), onavg_kl(point)
    gain = np.asarray(1.0 + point.response)
    unit = setting.sigma_eta * (ROOT_HALF if setting.noise == "laplace" else 1.0)
    mean = _mean_information(point, point.error, point.scale * unit)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = point.error * mean / unit**2
    # V^2 <= a^2, a covariance; rounding may break it where there is nothing to learn
    return gain, np.asarray(np.maximum(square, (gain - 1.0) ** 2))


def _mean_information(point: FixedPoint, error: FloatArray, sd: FloatArray) -> FloatArray:
    """E J over data, at location variance error/alpha and a noise of this sd (Laplace: scale)."""
    setting = point.setting
    arrays = (setting.alpha, setting.rho, setting.signal_variance, error, sd, point.threshold)
    work = partial(_information_block, setting.noise)
    return on_settings(work, point.stable & (sd > 0.0), arrays, 1, _BLOCK)[0]


def _information_block(
    noise: LassoNoise,
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    error: FloatArray,
    sd: FloatArray,
    cut: FloatArray,
) -> tuple[FloatArray, ...]:
    places = (error / alpha / sd**2, (signal + error / alpha) / sd**2)
    theta = cut / sd

    def at(x: FloatArray) -> tuple[FloatArray]:
        return (information(x, theta[:, None], noise),)

    return tuple(over_locations(at, (1.0 - rho, rho), places, theta, np.ones_like(theta)))
