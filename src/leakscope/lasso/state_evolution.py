"""The fixed point of state evolution, how it moves, and the errors, for a whole batch of settings.

With a Bernoulli-Gaussian signal and Gaussian privacy noise the field beta0 + sigma_z z - Sigma eta
is a mixture of two centred normals, of variance v for a zero coefficient and v + sigma_beta^2 for
another, v = E/alpha + Sigma^2 sigma_eta^2.  So the maps of Eqs. (37)-(38) of **lasso** need no
quadrature.  In the unknowns t = lambda Sigma/sqrt(v) and w = 1/sqrt(v) the fixed point is

    t (alpha - rho_hat) = lambda w                     (Sigma = 1/(alpha - rho_hat), Eq. 43)
    alpha (1 - t^2 sigma_eta^2/lambda^2) = w^2 (sigma_xi^2 + E||beta0 - beta_hat||^2/p)

and both sides stay analytic at w = 0, which is the stability edge: Newton's method does not notice
that the error diverges there.  With Laplace noise the field's law is that of `laplace_noise`, and
the two equations are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import in_threads
from leakscope.errors import InputError
from leakscope.lasso.laplace_noise import tails
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.stability import stability_edge, stability_ratio

_ROOT_HALF = np.sqrt(0.5)
_TWO_PHI = np.sqrt(2.0 / np.pi)
_BLOCK = 8192
_STEPS = 120


class Equations(NamedTuple):
    """The two equations at (t, w) and the active fraction, with their derivatives."""

    first: FloatArray
    second: FloatArray
    first_t: FloatArray
    first_w: FloatArray
    second_t: FloatArray
    second_w: FloatArray
    active: FloatArray
    active_t: FloatArray
    active_w: FloatArray


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """The fixed point of state evolution at each setting of a batch.

    ``error`` is E of the paper, the generalisation error of the estimate before any output noise;
    ``scale`` is Sigma = (1 + V)/alpha; ``response`` is V; ``active_fraction`` is rho_hat;
    ``field_variance`` is v = E/alpha + Sigma^2 sigma_eta^2.  ``residual`` is the larger relative
    residual of Eqs. (37)-(38).  Where ``stable`` is false there is no fixed point, and the numbers
    are NaN.
    """

    setting: LassoSetting
    stable: NDArray[np.bool_]
    error: FloatArray
    scale: FloatArray
    active_fraction: FloatArray
    field_variance: FloatArray
    residual: FloatArray

    @property
    def response(self) -> FloatArray:
        """V = rho_hat/(alpha - rho_hat), Eq. (43)."""
        return np.asarray(self.scale * self.active_fraction)

    @property
    def threshold(self) -> FloatArray:
        """lambda Sigma, below which the field is cut to zero."""
        return np.asarray(self.setting.lam * self.scale)

    @property
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """Q = ||beta||^2/p and m = beta0'beta/p of the estimate, Eqs. (114), (116)-(117), (119)."""
        return _overlaps(self.setting, self.threshold, self.field_variance, self.scale)

    @property
    def free_energy(self) -> FloatArray:
        """The least value of the objective of Eq. (2), divided by p: Eq. (102) at its extremum.

        Two signs of the paper are put right (errata): + alpha E/(2 (1 + V)), and the least of the
        one-body problem is -(|h| - lambda)^2/(2 Theta), which makes its mean -Q/(2 Sigma).  With
        Theta = mu = 1/Sigma and chi_hat = alpha E/(1 + V)^2,

            f = alpha E/(2 (1 + V)) + (m - Q)/Sigma + chi_hat V/2.
        """
        big_q, m = self.overlaps
        gain = 1.0 + self.response
        energy = self.setting.alpha * self.error
        return np.asarray(
            0.5 * energy / gain + (m - big_q) / self.scale + 0.5 * energy * self.response / gain**2
        )


def state_evolution(
    setting: LassoSetting, *, unstable: Literal["raise", "mark"] = "raise"
) -> FixedPoint:
    """Solve state evolution for every setting, near the edge as well as far from it.

    Parameters
    ----------
    setting
        One setting or a batch.  Under output perturbation the noise does not enter here.
    unstable
        ``"raise"``: a setting beyond the stability edge is an `InputError` that says what to
        change.  ``"mark"``: it is marked in ``stable``, and its numbers are NaN.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, state_evolution
    >>> found = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=[0.2, 0.7]))
    >>> found.error.round(4).tolist(), found.active_fraction.round(4).tolist()
    ([0.0971, 0.5857], [0.0087, 0.1986])
    """
    if unstable not in ("raise", "mark"):
        raise InputError(f"unstable must be raise or mark, but it is {unstable!r}.")
    stable = np.asarray(stability_ratio(setting) < 1.0)
    if unstable == "raise" and not stable.all():
        raise InputError(unstable_sentence(setting, stable))
    parameters = [
        setting.alpha,
        setting.rho,
        setting.sigma_xi,
        setting.signal_variance,
        setting.lam,
        setting.objective_noise,
    ]
    law = setting.objective_laplace
    t, w = on_settings(partial(_solve_block, law), stable, parameters, 2)
    describe = partial(_describe_block, law)
    error, active, residual = on_settings(describe, stable, [*parameters, t, w], 3)
    return FixedPoint(
        setting=setting,
        stable=stable,
        error=error,
        scale=np.asarray(t / (setting.lam * w)),
        active_fraction=active,
        field_variance=np.asarray(1.0 / (w * w)),
        residual=residual,
    )


def _overlaps(
    setting: LassoSetting, cut: FloatArray, variance: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Q and m of soft of beta0 plus a field of this variance; ``scale`` is Sigma."""
    q_zero, _ = _soft_moments(setting, cut, variance, scale)
    q_one, active = _soft_moments(setting, cut, variance + setting.signal_variance, scale)
    rho = setting.rho
    return (
        np.asarray((1.0 - rho) * q_zero + rho * q_one),
        np.asarray(rho * setting.signal_variance * active),
    )


def _soft_moments(
    setting: LassoSetting, cut: FloatArray, variance: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """E soft(Y, cut)^2 of a field Y of this variance, and how often it is not zero."""
    own = (scale * setting.objective_noise) ** 2
    if setting.objective_laplace and np.all(own > 0.0):
        at = tails(cut, np.sqrt(variance - own), np.sqrt(0.5 * own))
        return 2.0 * at.square, 2.0 * at.beyond
    t = cut / np.sqrt(variance)
    active = special.erfc(t * _ROOT_HALF)
    return variance * ((1.0 + t * t) * active - t * _TWO_PHI * np.exp(-0.5 * t * t)), active


@dataclass(frozen=True, eq=False)
class Trajectory:
    """State evolution step by step; the first entry is that of beta = 0.

    ``error`` is E^(t), ``response`` V^(t), ``overlaps`` Q and m of the iterate, each (steps,).
    """

    error: FloatArray
    response: FloatArray
    overlaps: tuple[FloatArray, FloatArray]


def trajectory(setting: LassoSetting, steps: int = 30) -> Trajectory:
    """How message passing from zero moves in the limit: Eqs. (37)-(38), step by step.

    One setting; beyond the stability edge the error grows without bound.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, state_evolution, trajectory
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=0.5, sigma_eta=0.2)
    >>> trajectory(setting, 4).error.round(4).tolist()
    [0.11, 0.0711, 0.0753, 0.0721, 0.0724]
    >>> bool(abs(trajectory(setting, 60).error[-1] / state_evolution(setting).error - 1) < 1e-9)
    True
    """
    if setting.shape != ():
        raise InputError("trajectory takes one setting.")
    if steps < 1:
        raise InputError(f"steps must be 1 or more, but it is {steps}.")
    alpha, whole = float(setting.alpha), float(setting.rho * setting.signal_variance)
    noise = float(setting.objective_noise)
    error, response = whole + float(setting.sigma_xi) ** 2, 0.0
    rows = [(error, response, 0.0, 0.0)]
    for _ in range(steps):
        scale = (1.0 + response) / alpha
        variance = np.asarray(error / alpha + (scale * noise) ** 2)
        spread = np.asarray(scale)
        big_q, m = _overlaps(setting, setting.lam * spread, variance, spread)
        active = [
            float(_soft_moments(setting, setting.lam * spread, part, spread)[1])
            for part in (variance, variance + setting.signal_variance)
        ]
        share = (1.0 - float(setting.rho)) * active[0] + float(setting.rho) * active[1]
        error = float(big_q - 2.0 * m) + whole + float(setting.sigma_xi) ** 2
        response = scale * share
        rows.append((error, response, float(big_q), float(m)))
    found = np.array(rows).T
    return Trajectory(found[0], found[1], (found[2], found[3]))


def unstable_sentence(setting: LassoSetting, stable: NDArray[np.bool_]) -> str:
    """What is wrong with the first unstable setting, and what to change."""
    place = np.flatnonzero(~np.asarray(stable).ravel())[0]
    alpha, lam, noise = (
        float(getattr(setting, name).ravel()[place]) for name in ("alpha", "lam", "sigma_eta")
    )
    where = f" (setting number {place})" if setting.shape else ""
    edge = float(stability_edge(alpha, setting.noise))
    return (
        f"Objective perturbation is unstable at alpha = {alpha:g}, lam = {lam:g}, sigma_eta = "
        f"{noise:g}{where}: lam must be above {edge * noise:.4g}, or sigma_eta below "
        f"{lam / edge:.4g}."
    )


def equations(
    t: FloatArray,
    w: FloatArray,
    alpha: FloatArray,
    rho: FloatArray,
    sigma_xi: FloatArray,
    signal: FloatArray,
    lam: FloatArray,
    noise: FloatArray,
    *,
    laplace: bool = False,
) -> Equations:
    """Both equations (left minus right) and their derivatives with respect to t and w.

    With p = 2Q(t) and 2g(t) = (1 + t^2) 2Q(t) - 2t phi(t): the second moment of soft(N(0, 1), t).
    """
    if laplace and np.any(noise > 0.0):
        return _laplace_equations(t, w, (alpha, rho, sigma_xi, signal, lam, noise))
    c = (noise / lam) ** 2
    sw = signal * w
    shrink = 1.0 / (1.0 + sw * w)
    root = np.sqrt(shrink)
    u = t * root
    p0, p1 = special.erfc(t * _ROOT_HALF), special.erfc(u * _ROOT_HALF)
    h0, h1 = _TWO_PHI * np.exp(-0.5 * t * t), _TWO_PHI * np.exp(-0.5 * u * u)
    g0, g1 = (1.0 + t * t) * p0 - t * h0, (1.0 + u * u) * p1 - u * h1
    d0, d1 = 2.0 * (t * p0 - h0), 2.0 * (u * p1 - h1)
    # 1 - 4Q(u) + 2g(u), which is of order u^2: written so that a strong signal keeps its digits
    bias = special.erf(u * _ROOT_HALF) + u * (u * p1 - h1)
    u_w = -u * sw * shrink
    rest = 1.0 - rho
    active = rest * p0 + rho * p1
    active_t, active_w = -(rest * h0 + rho * h1 * root), -rho * h1 * u_w
    moment_u = rho * (sw * w * (2.0 * h1 + d1) + d1)
    noise_w = sigma_xi * sigma_xi * w
    return Equations(
        first=t * (alpha - active) - lam * w,
        second=alpha * (1.0 - c * t * t) - rest * g0 - rho * (sw * w * bias + g1) - noise_w * w,
        first_t=alpha - active - t * active_t,
        first_w=-t * active_w - lam,
        second_t=-2.0 * alpha * c * t - rest * d0 - moment_u * root,
        second_w=-moment_u * u_w - 2.0 * (rho * sw * bias + noise_w),
        active=active,
        active_t=active_t,
        active_w=active_w,
    )


# The step of a difference, of the number itself: its own square is lost to the second derivative,
# and the rounding of the equations over it.
_DIFFERENCE = 1e-5


def _laplace_equations(
    t: FloatArray, w: FloatArray, parameters: tuple[FloatArray, ...]
) -> Equations:
    """The same with Laplace noise, and derivatives by central differences."""
    first, second, active = _laplace_values(t, w, *parameters)
    slopes = []
    for dt, dw in (
        (_DIFFERENCE * np.minimum(t, _room(t, parameters)), 0.0),
        (0.0, _DIFFERENCE * w),
    ):
        up = _laplace_values(t + dt, w + dw, *parameters)
        down = _laplace_values(t - dt, w - dw, *parameters)
        slopes.append([(a - b) / (2.0 * (dt + dw)) for a, b in zip(up, down, strict=True)])
    by_t, by_w = slopes
    return Equations(first, second, by_t[0], by_w[0], by_t[1], by_w[1], active, by_t[2], by_w[2])


def _room(t: FloatArray, parameters: tuple[FloatArray, ...]) -> FloatArray:
    """How far t is from lambda/sigma_eta, where nothing but the own noise is left of the field."""
    lam, noise = parameters[4], parameters[5]
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(noise > 0.0, lam / noise, np.inf) - t)


def _laplace_values(
    t: FloatArray,
    w: FloatArray,
    alpha: FloatArray,
    rho: FloatArray,
    sigma_xi: FloatArray,
    signal: FloatArray,
    lam: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both equations and the active fraction; in units of the field's sd the own noise is q."""
    q = (t * noise / lam) ** 2
    sw = signal * w * w
    scale = np.sqrt(np.maximum(0.5 * q, 1e-24))
    zero, one = (tails(t, np.sqrt(1.0 - q + part), scale) for part in (0.0, sw))
    active = 2.0 * ((1.0 - rho) * zero.beyond + rho * one.beyond)
    wrong = (1.0 - rho) * 2.0 * zero.square
    wrong = wrong + rho * (sw * (1.0 - 4.0 * one.beyond) + 2.0 * one.square)
    first = t * (alpha - active) - lam * w
    return first, alpha * (1.0 - q) - wrong - (sigma_xi * w) ** 2, active


def _laplace_least(alpha: FloatArray, lam: FloatArray, noise: FloatArray) -> FloatArray:
    """A t below which more than alpha are active, without signal; zero for alpha >= 1."""
    with np.errstate(divide="ignore"):
        top = np.where(noise > 0.0, lam / noise, 40.0)
    low, high = np.zeros_like(alpha), np.minimum(top, 40.0) * (1.0 - 1e-12)
    for _ in range(20):
        t = 0.5 * (low + high)
        q = (t * noise / lam) ** 2
        share = tails(t, np.sqrt(1.0 - q), np.sqrt(np.maximum(0.5 * q, 1e-24))).beyond
        more = 2.0 * share > alpha
        low, high = np.where(more, t, low), np.where(more, high, t)
    return np.where(alpha < 1.0, low, 0.0)


def on_settings(
    work: Callable[..., tuple[FloatArray, ...]],
    chosen: NDArray[np.bool_],
    arrays: Sequence[FloatArray],
    outputs: int,
    block: int = _BLOCK,
) -> list[FloatArray]:
    """Apply ``work`` to the chosen settings of a batch, in its shape; NaN for the others.

    ``work`` gets flat arrays, in blocks that fit the cache, on all cores.
    """
    flat = chosen.ravel()
    inputs = [np.broadcast_to(array, chosen.shape).ravel()[flat] for array in arrays]
    size = int(np.count_nonzero(flat))
    found = [np.empty(size) for _ in range(outputs)]

    def one(start: int) -> None:
        part = slice(start, min(start + block, size))
        for target, values in zip(found, work(*(a[part] for a in inputs)), strict=True):
            target[part] = values

    in_threads(one, range(0, size, block))
    result = np.full((outputs, flat.size), np.nan)
    result[:, flat] = found
    return [row.reshape(chosen.shape) for row in result]


def _solve_block(laplace: bool, *parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """t and w of a block, by Newton's method in both with w eliminated last.

    t stays above t* = Q^{-1}(alpha/2), where rho_hat would reach alpha.  On the curve where the
    first equation holds the second falls with w; where its slope has the other sign the step is a
    factor of 3 in the direction of its value.
    """
    alpha, rho, sigma_xi, signal, lam, noise = parameters
    least = np.maximum(-special.ndtri(0.5 * np.minimum(alpha, 1.0)), 0.0)
    if laplace:
        least = _laplace_least(alpha, lam, noise)
    start = sigma_xi**2 + rho * signal
    start = np.where(start > 0.0, start, (noise / alpha) ** 2)
    w = np.sqrt(alpha / start)
    t = np.maximum(lam * w / alpha, least + 0.5)
    with np.errstate(divide="ignore", over="ignore"):
        # beyond lambda/sigma_eta the second equation has no solution at any w
        t = np.minimum(t, np.maximum(0.5 * (least + lam / noise), 1.01 * least))
    result_t, result_w = t.copy(), w.copy()
    where = np.arange(alpha.size)
    state: list[FloatArray] = [*parameters, least, t, w]
    for step in range(_STEPS):
        alpha, _, _, _, lam, noise, least, t, w = state
        found = equations(t, w, *state[:6], laplace=laplace)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = residual_of(found, t, alpha, lam, noise)
            ratio = found.second_t / found.first_t
            value = found.second - ratio * found.first
            slope = found.second_w - ratio * found.first_w
            turned = np.where(value > 0.0, 3.0 * w, w / 3.0)
            w_new = np.where(slope < 0.0, w - value / slope, turned)
            w_new = np.minimum(np.maximum(w_new, 0.25 * w), 4.0 * w)
            t_new = t - (found.first + found.first_w * (w_new - w)) / found.first_t
        room = t - least
        t_new = np.minimum(np.maximum(t_new, least + 0.3 * room), least + 4.0 * room)
        if laplace:
            t_new = np.minimum(t_new, t + 0.7 * _room(t, tuple(state[:6])))
        # one more step from here is the last that can change anything
        finished = size < 1e-11
        state[7], state[8] = t_new, w_new
        if step < 2 and not finished.all():
            continue
        count = int(np.count_nonzero(finished))
        if count == finished.size or step == _STEPS - 1:
            result_t[where], result_w[where] = t_new, w_new
            break
        if 2 * count >= finished.size or (count and step > 12):
            result_t[where[finished]] = t_new[finished]
            result_w[where[finished]] = w_new[finished]
            kept = ~finished
            where = where[kept]
            state = [a[kept] for a in state]
    return result_t, result_w


def residual_of(
    found: Equations, t: FloatArray, alpha: FloatArray, lam: FloatArray, noise: FloatArray
) -> FloatArray:
    """The larger of |E' - E|/E and |V' - V|/(1 + V), one step of the maps (37)-(38) away."""
    share = 1.0 - (t * noise / lam) ** 2
    return np.maximum(
        np.abs(found.first) / (t * alpha), np.abs(found.second) / (alpha * np.abs(share))
    )


def _describe_block(laplace: bool, *inputs: FloatArray) -> tuple[FloatArray, ...]:
    """E and rho_hat at the solution, and how far one step of the maps moves (E, Sigma) from it."""
    *parameters, t, w = inputs
    alpha, _, _, _, lam, noise = parameters
    found = equations(t, w, *parameters, laplace=laplace)
    scale = t / (lam * w)
    # E from its own positive terms, not as a difference
    error = (alpha * (1.0 - (t * noise / lam) ** 2) - found.second) / (w * w)
    w = 1.0 / np.sqrt(error / alpha + (scale * noise) ** 2)
    t = lam * scale * w
    again = equations(t, w, *parameters, laplace=laplace)
    moved = (alpha * (1.0 - (t * noise / lam) ** 2) - again.second) / (w * w)
    residual = np.maximum(np.abs(moved / error - 1.0), np.abs(again.first) / (t * alpha))
    return error, found.active, residual


Parameter = Literal["lam", "sigma_eta"]


class FixedPointDerivative(NamedTuple):
    """Derivatives of E, Sigma, rho_hat and v with respect to one parameter of the setting."""

    error: FloatArray
    scale: FloatArray
    active_fraction: FloatArray
    field_variance: FloatArray


def fixed_point_derivative(found: FixedPoint, parameter: Parameter) -> FixedPointDerivative:
    """How the fixed point moves with lambda or sigma_eta: its two equations, differentiated.

    Under output perturbation the derivative with respect to ``sigma_eta`` is zero: that noise is
    added after the fit.
    """
    if parameter not in get_args(Parameter):
        raise InputError(
            f"parameter must be one of {', '.join(get_args(Parameter))}, not {parameter!r}."
        )
    setting = found.setting
    alpha, lam, noise = setting.alpha, setting.lam, setting.objective_noise
    v = found.field_variance
    w = 1.0 / np.sqrt(v)
    t = lam * found.scale * w
    given = (alpha, setting.rho, setting.sigma_xi, setting.signal_variance, lam, noise)
    at = equations(t, w, *given, laplace=setting.objective_laplace)
    d_noise = float(parameter == "sigma_eta" and setting.mechanism == "objective")
    if setting.objective_laplace:
        first, second, _ = _laplace_by(parameter, t, w, given)
    elif parameter == "lam":
        first, second = -w, 2.0 * alpha * t * t * noise * noise / lam**3
    else:
        first, second = np.zeros_like(w), -2.0 * alpha * t * t * noise / (lam * lam) * d_noise
    det = at.first_t * at.second_w - at.first_w * at.second_t
    dt = (at.first_w * second - at.second_w * first) / det
    dw = (at.second_t * first - at.first_t * second) / det
    d_active = at.active_t * dt + at.active_w * dw
    if setting.objective_laplace:
        d_active = d_active + _laplace_by(parameter, t, w, given)[2]
    # Sigma = 1/(alpha - rho_hat)
    d_scale = found.scale**2 * d_active
    dv = -2.0 * v * dw / w
    # E = alpha (v - Sigma^2 sigma_eta^2)
    spread = found.scale * noise
    d_error = alpha * (dv - 2.0 * spread * (noise * d_scale + found.scale * d_noise))
    return FixedPointDerivative(d_error, d_scale, d_active, dv)


def _laplace_by(
    parameter: Parameter, t: FloatArray, w: FloatArray, given: tuple[FloatArray, ...]
) -> list[FloatArray]:
    """Derivatives of both equations and the active fraction at fixed t and w."""
    place = 4 if parameter == "lam" else 5
    width = _DIFFERENCE * given[place]
    ends = []
    for sign in (1.0, -1.0):
        moved = list(given)
        moved[place] = given[place] + sign * width
        ends.append(_laplace_values(t, w, *moved))
    return [(a - b) / (2.0 * width) for a, b in zip(*ends, strict=True)]


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """Errors and sparsity of what is released, at each setting.

    ``ratio`` is generalisation over training error: (1 + V)^2 for objective perturbation
    (Claim 4.2); output noise adds sigma_eta^2 to both errors (Eqs. 6-7) and pulls it to 1.
    ``active_fraction`` is that of the fit; output noise then makes every coefficient non-zero.
    """

    generalization_error: FloatArray
    training_error: FloatArray
    active_fraction: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """Generalisation error over training error."""
        return np.asarray(self.generalization_error / self.training_error)


def prediction_errors(point: FixedPoint) -> PredictionErrors:
    """The errors of Eqs. (4)-(7) at each setting; NaN where the point is marked unstable."""
    setting = point.setting
    added = np.zeros(setting.shape)
    if setting.mechanism == "output":
        added = setting.sigma_eta**2
    return PredictionErrors(
        generalization_error=np.asarray(point.error + added),
        training_error=np.asarray(point.error / (1.0 + point.response) ** 2 + added),
        active_fraction=point.active_fraction,
    )
