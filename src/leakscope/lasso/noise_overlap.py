"""Two noises on the same data: the overlap of their errors, which Claim 5.1 of **lasso** lacks.

At fixed data a coordinate's field moves with its own noise and with that of all others.  Two
replicas (same data, independent noises) separate the two: their fields are jointly normal with
variance v = E/alpha + Sigma^2 sigma_eta^2 and covariance E12/alpha (plus the signal's), where

    E12 = sigma_xi^2 + E[(beta0 - F(mbar))^2],  mbar = beta0 + sqrt(E12/alpha) z,
    F(m) = E soft(N(m, s^2), lambda Sigma),     s^2 = Sigma^2 sigma_eta^2 + (E - E12)/alpha.

E F(mbar)^2 is E[soft(Y) soft(Y')] of correlated normals, whose derivative with respect to the
correlation is P(|Y| > T, |Y'| > T) (Price's theorem), twice over a smooth integrand: no step to
integrate across.  In s^2 the equation is convex, and Newton's method from above cannot fail.

Replacing one record moves a location by its own share, of variance E12/(alpha n), and again
through the residuals of all other records, which follow the estimates.  Together that is
E12/(n (alpha - chi)), where chi is the share of coordinates that are active under both noises;
Claim 6.1 has alpha alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope.lasso.laplace_noise import two_noises
from leakscope.lasso.state_evolution import (
    FixedPoint,
    Parameter,
    fixed_point_derivative,
    on_settings,
)

_STEPS = np.array([0.0, 0.15, 0.3, 0.5, 0.8, 1.3, 2.0, 4.0, 8.0, 30.0, 200.0])
_ORDER = 12


class LostMoment(NamedTuple):
    """L(t, e), its derivatives, and those of dL/de."""

    value: FloatArray
    by_e: FloatArray
    by_t: FloatArray
    by_ee: FloatArray
    by_et: FloatArray


class OverlapSlope(NamedTuple):
    """Derivatives of E12, s^2 and chi."""

    overlap_error: FloatArray
    variance: FloatArray
    both_active: FloatArray


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
    def amplification(self) -> FloatArray:
        """1/(1 - chi/alpha): how much the other records multiply a replacement's own effect."""
        alpha = self.fixed_point.setting.alpha
        return np.asarray(alpha / (alpha - self.both_active))

    @property
    def sigma_location(self) -> FloatArray:
        """sqrt(E12/alpha)."""
        return np.asarray(np.sqrt(self.overlap_error / self.fixed_point.setting.alpha))


def noise_overlap(found: FixedPoint) -> Overlap:
    """Solve for E12 at every stable setting.

    Under output perturbation the noise is added after the fit, and E12 is the error without it.
    """
    setting = found.setting
    noise = setting.objective_noise
    own = (found.scale * noise) ** 2
    noisy = found.stable & (noise > 0.0)
    arrays = (
        setting.alpha,
        setting.rho,
        setting.signal_variance,
        found.threshold,
        found.field_variance,
        found.active_fraction,
        own,
    )
    work = _laplace_excess if setting.objective_laplace else _excess
    excess, shared = on_settings(work, noisy, arrays, 2, block=256)
    silent = found.stable & ~noisy
    excess = np.where(silent, 0.0, excess)
    return Overlap(
        fixed_point=found,
        sigma=np.asarray(np.sqrt(own + excess)),
        # A mean square plus that of the labels' noise; beside a huge E the difference may be less.
        overlap_error=np.maximum(found.error - setting.alpha * excess, setting.sigma_xi**2),
        both_active=np.where(silent, found.active_fraction, shared),
    )


def lost_moment(t: FloatArray, e: FloatArray) -> LostMoment:
    """L(t, e) = E soft(Z)^2 - E soft(Z) soft(Z') at correlation 1 - e, with derivatives.

    Z and Z' are standard normals, and soft has threshold t; e lies in (0, 1].  dL/de is the
    probability that both exceed the threshold.
    """
    last = 2.0 * np.arcsin(np.sqrt(0.5 * e))
    breaks = np.minimum(np.maximum(t, 1e-8)[..., None] * _STEPS, last[..., None])
    breaks = np.concatenate([breaks, last[..., None]], axis=-1)
    psi, weight = panels(breaks, _ORDER)
    fall = 2.0 * np.sin(0.5 * psi) ** 2  # 1 - cos(psi)
    square = (t * t)[..., None]
    with np.errstate(divide="ignore", over="ignore"):
        near = np.exp(-square / (2.0 - fall))
        far = np.exp(-square / fall)
    density = (near - far) * weight / np.pi
    slope = 2.0 * t[..., None] * (far / np.maximum(fall, 1e-300) - near / (2.0 - fall))
    slope = slope * weight / np.pi
    room = e[..., None] - fall
    both = special.erfc(t * np.sqrt(0.5))
    both_t = -np.sqrt(2.0 / np.pi) * np.exp(-0.5 * t * t)
    last_density = np.exp(-t * t / (2.0 - e)) - np.exp(-t * t / np.maximum(e, 1e-300))
    return LostMoment(
        value=e * both - (room * density).sum(axis=-1),
        by_e=both - density.sum(axis=-1),
        by_t=e * both_t - (room * slope).sum(axis=-1),
        by_ee=-last_density / (np.pi * np.sqrt(np.maximum(e * (2.0 - e), 1e-300))),
        by_et=both_t - slope.sum(axis=-1),
    )


def _excess(
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    threshold: FloatArray,
    v: FloatArray,
    active: FloatArray,
    own: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(E - E12)/alpha and chi: alpha d = sum_j w_j tau_j^2 L(T/tau_j, (own + d)/tau_j^2)."""
    d = own * active / (alpha - active)
    shared = active
    for _ in range(60):
        value, shared = -alpha * d, np.zeros_like(d)
        for weight, tau2 in ((1.0 - rho, v), (rho, v + signal)):
            e = np.minimum((own + d) / tau2, 1.0)
            lost = lost_moment(threshold / np.sqrt(tau2), e)
            value = value + weight * tau2 * lost.value
            shared = shared + weight * lost.by_e
        step = value / (shared - alpha)
        d = np.maximum(d - step, 0.0)
        if np.all(np.abs(step) <= 1e-14 * (own + d)):
            break
    return d, shared


def _laplace_excess(
    alpha: FloatArray,
    rho: FloatArray,
    signal: FloatArray,
    threshold: FloatArray,
    v: FloatArray,
    active: FloatArray,
    own: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The same with Laplace noise: alpha d is what the estimate's mean over the noise leaves.

    At a location N(0, v - own - d) an estimate is soft(m + sqrt(d) n + sqrt(own/2) l): its variance
    over both, on average, is alpha d, and by Price's theorem chi is the slope.
    """
    scale, rest = np.sqrt(0.5 * own), v - own
    d = np.minimum(own * active / (alpha - active), 0.999 * rest)
    shared = active
    for _ in range(80):
        places = (rest - d, rest - d + signal)
        found = two_noises((1.0 - rho, rho), places, threshold, np.sqrt(d), scale)
        shared = found.both_active
        step = (found.lost - alpha * d) / (shared - alpha)
        moved = np.minimum(np.maximum(d - step, 0.1 * d), 0.5 * (d + rest))
        done = np.all(np.abs(moved - d) <= 1e-12 * (own + d))
        d = moved
        if done:
            break
    return d, shared


def overlap_derivative(found: Overlap, parameter: Parameter) -> OverlapSlope:
    """Derivatives with respect to ``lam`` or ``sigma_eta``."""
    point = found.fixed_point
    setting = point.setting
    moved = fixed_point_derivative(point, parameter)
    noise, alpha, rho = setting.objective_noise, setting.alpha, setting.rho
    d_noise = float(parameter == "sigma_eta" and setting.mechanism == "objective")
    d_lam = float(parameter == "lam")
    own = 2.0 * point.scale * noise * (noise * moved.scale + point.scale * d_noise)
    cut = setting.lam * moved.scale + point.scale * d_lam
    q, dv = found.sigma**2, moved.field_variance
    parts = []
    right = np.zeros_like(q)
    for weight, tau2 in (
        (1.0 - rho, point.field_variance),
        (rho, point.field_variance + setting.signal_variance),
    ):
        t, e = point.threshold / np.sqrt(tau2), np.minimum(q / tau2, 1.0)
        lost = lost_moment(t, e)
        moved_tau = lost.value - 0.5 * t * lost.by_t - e * lost.by_e
        right = right + weight * (dv * moved_tau + np.sqrt(tau2) * lost.by_t * cut)
        parts.append((weight, tau2, t, e, lost))
    d_q = (alpha * own + right) / (alpha - found.both_active)
    d_shared = np.zeros_like(q)
    for weight, tau2, t, e, lost in parts:
        d_e = (d_q - e * dv) / tau2
        d_t = cut / np.sqrt(tau2) - 0.5 * t * dv / tau2
        d_shared = d_shared + weight * (lost.by_ee * d_e + lost.by_et * d_t)
    d_error = moved.error - alpha * (d_q - own)
    return OverlapSlope(np.asarray(d_error), np.asarray(d_q), d_shared)
