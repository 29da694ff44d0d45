"""The fixed point of state evolution, and the errors, for a whole batch of settings.

With a Bernoulli-Gaussian signal the field beta0 + sigma_z z - Sigma eta has a known law
(`noise_laws`), so the maps of Eqs. (37)-(38) of **lasso** need no quadrature.  Its variance at a
zero coefficient is v = E/alpha + Sigma^2 sigma_eta^2.  In the unknowns t = lambda Sigma/sqrt(v) and
w = 1/sqrt(v) the fixed point is

    t (alpha - rho_hat) = lambda w                     (Sigma = 1/(alpha - rho_hat), Eq. 43)
    alpha (1 - t^2 sigma_eta^2/lambda^2) = w^2 (sigma_xi^2 + E||beta0 - beta_hat||^2/p)

and both sides stay analytic at w = 0, which is the stability edge: Newton's method does not notice
that the error diverges there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import in_threads
from leakscope.errors import InputError
from leakscope.lasso.noise_laws import squared_error, tails
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.stability import stability_edge, stability_ratio
from leakscope.settings.plan import LassoNoise

# Settings that are solved together: their arrays fit a core's cache.
_BLOCK = 8192
_STEPS = 120
# The step of a central difference, of the number itself: its square, and the rounding of the
# equations over it, are both some 1e-10.
_DIFFERENCE = 1e-5
# A residual from which one more step is the last that can change anything.
_SOLVED = 1e-11


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
        return _overlaps(self.setting, self.scale, self.error)[:2]

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
    parameters = _parameters(setting)
    t, w = on_settings(partial(_solve_block, setting.noise), stable, parameters, 2)
    describe = partial(_describe_block, setting.noise)
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


def _parameters(setting: LassoSetting) -> list[FloatArray]:
    names = ("alpha", "rho", "sigma_xi", "signal_variance", "lam", "objective_noise")
    return [getattr(setting, name) for name in names]


def _overlaps(
    setting: LassoSetting, scale: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Q, m and the active share of soft of beta0 plus the field; ``scale`` is Sigma."""
    own, cut, rho = scale * setting.objective_noise, setting.lam * scale, setting.rho
    place = error / setting.alpha
    zero = tails(cut, np.sqrt(place), own, setting.noise)
    signal = tails(cut, np.sqrt(place + setting.signal_variance), own, setting.noise)
    return (
        np.asarray(2.0 * ((1.0 - rho) * zero.square + rho * signal.square)),
        np.asarray(2.0 * rho * setting.signal_variance * signal.beyond),
        np.asarray(2.0 * ((1.0 - rho) * zero.beyond + rho * signal.beyond)),
    )


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
    if setting.shape != () or steps < 1:
        raise InputError("trajectory takes one setting, and one step or more.")
    nothing = float(setting.rho * setting.signal_variance + setting.sigma_xi**2)
    rows = [(nothing, 0.0, 0.0, 0.0)]
    for _ in range(steps):
        error, response = rows[-1][:2]
        scale = np.asarray((1.0 + response) / setting.alpha)
        big_q, m, active = map(float, _overlaps(setting, scale, np.asarray(error)))
        rows.append((big_q - 2.0 * m + nothing, float(scale) * active, big_q, m))
    columns = np.array(rows).T
    return Trajectory(columns[0], columns[1], (columns[2], columns[3]))


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
    columns = [np.empty(size) for _ in range(outputs)]

    def one(start: int) -> None:
        part = slice(start, min(start + block, size))
        for column, values in zip(columns, work(*(a[part] for a in inputs)), strict=True):
            column[part] = values

    in_threads(one, range(0, size, block))
    result = np.full((outputs, flat.size), np.nan)
    result[:, flat] = columns
    return [row.reshape(chosen.shape) for row in result]


class _Equations(NamedTuple):
    """Both equations, left minus right, and the active fraction."""

    first: FloatArray
    second: FloatArray
    active: FloatArray


def _equations(
    noise: LassoNoise, t: FloatArray, w: FloatArray, parameters: Sequence[FloatArray]
) -> _Equations:
    """In units of the field's sd: its own noise is t sigma_eta/lambda, the signal's sd w times."""
    alpha, rho, sigma_xi, signal, lam, sd = parameters
    own = t * sd / lam
    rest = np.sqrt(np.maximum(1.0 - own * own, 0.0))
    zero, zero_active = squared_error(t, rest, own, np.zeros_like(t), noise)
    wide, wide_active = squared_error(t, rest, own, signal * w * w, noise)
    active = (1.0 - rho) * zero_active + rho * wide_active
    error = (1.0 - rho) * zero + rho * wide + (sigma_xi * w) ** 2
    return _Equations(t * (alpha - active) - lam * w, alpha * (1.0 - own * own) - error, active)


def _room(t: FloatArray, parameters: Sequence[FloatArray]) -> FloatArray:
    """How far t is from lambda/sigma_eta, where nothing but the own noise is left of the field."""
    lam, sd = parameters[4:]
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.where(sd > 0.0, lam / sd, np.inf) - t)


def _least(noise: LassoNoise, parameters: Sequence[FloatArray]) -> FloatArray:
    """A t below which more than alpha are active without signal: there is no solution there."""
    alpha, _, _, _, lam, sd = parameters
    with np.errstate(divide="ignore", over="ignore"):
        high = np.minimum(np.where(sd > 0.0, lam / sd, 40.0), 40.0) * (1.0 - 1e-12)
    low = np.zeros_like(alpha)
    for _ in range(20):
        t = 0.5 * (low + high)
        own = t * sd / lam
        more = 2.0 * tails(t, np.sqrt(1.0 - own * own), own, noise).beyond > alpha
        low, high = np.where(more, t, low), np.where(more, high, t)
    return np.where(alpha < 1.0, low, 0.0)


def _solve_block(noise: LassoNoise, *parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """t and w of a block, by Newton's method in both with w eliminated last.

    t stays above where rho_hat would reach alpha.  On the curve where the first equation holds the
    second falls with w; where its slope has the other sign the step is a factor of 3 in the
    direction of its value.
    """
    alpha, rho, sigma_xi, signal, lam, sd = parameters
    least = _least(noise, parameters)
    start = sigma_xi**2 + rho * signal
    w = np.sqrt(alpha / np.where(start > 0.0, start, (sd / alpha) ** 2))
    t = np.maximum(lam * w / alpha, least + 0.5)
    with np.errstate(divide="ignore", over="ignore"):
        # beyond lambda/sigma_eta the second equation has no solution at any w
        t = np.minimum(t, np.maximum(0.5 * (least + lam / sd), 1.01 * least))
    result_t, result_w = t.copy(), w.copy()
    live = np.arange(alpha.size)
    state: list[FloatArray] = [*parameters, least, t, w]
    for _ in range(_STEPS):
        *parts, least, t, w = state
        at = _equations(noise, t, w, parts)
        dt = _DIFFERENCE * np.minimum(t, _room(t, parts))
        dw = _DIFFERENCE * w
        by_t, by_w = (
            [
                (a - b) / (2.0 * (move_t + move_w))
                for a, b in zip(
                    _equations(noise, t + move_t, w + move_w, parts)[:2],
                    _equations(noise, t - move_t, w - move_w, parts)[:2],
                    strict=True,
                )
            ]
            for move_t, move_w in ((dt, 0.0), (0.0, dw))
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = by_t[1] / by_t[0]
            value, slope = at.second - ratio * at.first, by_w[1] - ratio * by_w[0]
            turned = np.where(value > 0.0, 3.0 * w, w / 3.0)
            w_new = np.clip(np.where(slope < 0.0, w - value / slope, turned), 0.25 * w, 4.0 * w)
            t_new = t - (at.first + by_w[0] * (w_new - w)) / by_t[0]
        t_new = np.clip(t_new, least + 0.3 * (t - least), least + 4.0 * (t - least))
        t_new = np.minimum(t_new, t + 0.7 * _room(t, parts))
        solved = _residual(at, t, parts) < _SOLVED
        result_t[live], result_w[live] = t_new, w_new
        if solved.all():
            break
        state = [array[~solved] for array in (*parts, least, t_new, w_new)]
        live = live[~solved]
    return result_t, result_w


def _residual(at: _Equations, t: FloatArray, parameters: Sequence[FloatArray]) -> FloatArray:
    """The larger of |E' - E|/E and |V' - V|/(1 + V), one step of the maps (37)-(38) away."""
    alpha, _, _, _, lam, sd = parameters
    share = np.abs(1.0 - (t * sd / lam) ** 2)
    return np.maximum(np.abs(at.first) / (t * alpha), np.abs(at.second) / (alpha * share))


def _describe_block(noise: LassoNoise, *inputs: FloatArray) -> tuple[FloatArray, ...]:
    """E and rho_hat at the solution, and how far one step of the maps moves (E, Sigma) from it."""
    *parameters, t, w = inputs
    alpha, _, _, _, lam, sd = parameters
    at = _equations(noise, t, w, parameters)
    # E from its own positive terms, not as a difference
    error = (alpha * (1.0 - (t * sd / lam) ** 2) - at.second) / (w * w)
    return error, at.active, _residual(at, t, parameters)


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
    added = setting.sigma_eta**2 if setting.mechanism == "output" else np.zeros(setting.shape)
    return PredictionErrors(
        generalization_error=np.asarray(point.error + added),
        training_error=np.asarray(point.error / (1.0 + point.response) ** 2 + added),
        active_fraction=point.active_fraction,
    )
