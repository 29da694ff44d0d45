"""Error against divergence of a private LASSO, and the noise, mechanism and lambda for a target.

Neither error nor divergence is monotone in the noise under objective perturbation.  So every answer
comes from a grid over the whole range, and from ever closer grids around its best point; where a
limit binds, the noise at which it is met is a root between two levels of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import elementwise

from leakscope import lasso, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope.errors import InputError
from leakscope.lasso.setting import NOT_A_GUARANTEE, LassoSetting
from leakscope.results.plan import LassoChoice
from leakscope.settings.advise import TARGET_DELTA
from leakscope.settings.plan import LassoDivergence, LassoMechanism

Goal = Literal["nearest_to_origin", "least_error", "least_kl"]
Measure = Literal["kl", "advantage", "epsilon"]
IntArray = NDArray[np.intp]
Function = Callable[[FloatArray, IntArray], FloatArray]

# Levels of a curve, and fewer of measures that cost milliseconds each.
_LEVELS = 80
_FEWER_LEVELS = 24
# Of each closer grid, which is a fifth as wide as the one before, and how many there are.
_CLOSER = 11
_NOISE_ROUNDS = 9
# Lambda: at a least error half of 2e-4, where the sixth grid ends, is 1e-8 of it.
_LAM_ROUNDS = 6
# A release whose error is not this share below that of the zero vector is worth nothing.
_WORTH = 1e-3


@dataclass(frozen=True)
class Limit:
    """What a private LASSO is held to: at most ``target`` of its error or of what it gives away.

    ``kl`` is the divergence of the search; advantage and epsilon (at ``delta``) are those of an
    attacker who knows both records and sees the whole estimate, over typical pairs.
    """

    of: Measure | Literal["error"]
    target: float
    delta: float = TARGET_DELTA

    def excess(self, setting: LassoSetting, divergence: LassoDivergence) -> FloatArray:
        """How far each setting of a batch is above it, as a share of the target."""
        if self.of == "error" or self.of == "kl":
            level = _error_and_kl(setting, divergence)[self.of == "kl"]
            return np.asarray(level / self.target - 1.0)
        pairs = lasso.joint_law_pair(lasso.state_evolution(setting))
        if self.of == "advantage":
            return np.asarray(measures.advantage(pairs)) / self.target - 1.0
        # delta at this epsilon against delta: one integral, where epsilon at delta takes a root
        delta = measures.delta_at_epsilon(pairs, self.target, "member_to_nonmember")
        return np.asarray(np.log(np.maximum(np.asarray(delta), 1e-300) / self.delta))


def _error_and_kl(
    setting: LassoSetting, divergence: LassoDivergence
) -> tuple[FloatArray, FloatArray]:
    point = lasso.state_evolution(setting)
    error = lasso.prediction_errors(point).generalization_error
    return error, lasso.onavg_kl(point, divergence)


@dataclass(frozen=True, eq=False)
class LassoTradeOff:
    """The trade-off curve of Fig. 8: generalisation error and on-average KL at each noise.

    The component-wise divergences are of Gaussian noise, and NaN with Laplace noise.
    """

    setting: LassoSetting
    sigma_eta: FloatArray
    generalization_error: FloatArray
    cw_onavg_kl: FloatArray
    cw_onavg_kl_paper: FloatArray
    joint_onavg_kl: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON."""
        return {name: plain(value) for name, value in vars(self).items() if name != "setting"}


def lasso_trade_off(
    setting: LassoSetting, sigma_eta: ArrayLike | None = None, *, points: int = 60
) -> LassoTradeOff:
    """Error and the three divergences over the noise; the setting's own ``sigma_eta`` is not used.

    Without ``sigma_eta``, ``points`` levels from weak noise to near the stability edge (or, where
    there is none, to noise that swamps the signal).

    Examples
    --------
    >>> from leakscope.planning import lasso_trade_off
    >>> from leakscope.lasso import LassoSetting
    >>> curve = lasso_trade_off(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0), [0.1, 0.3, 0.6])
    >>> curve.joint_onavg_kl.round(4).tolist()  # not monotone
    [0.0962, 0.0643, 0.3033]
    """
    levels = noise_levels(setting, points) if sigma_eta is None else np.atleast_1d(sigma_eta)
    trial = _require_one(setting).change(sigma_eta=np.asarray(levels, dtype=np.float64))
    point = lasso.state_evolution(trial)
    component_wise = np.full(trial.shape, np.nan)
    if setting.noise == "gaussian" or setting.mechanism == "output":
        component_wise = lasso.onavg_kl(point, "component_wise")
    return LassoTradeOff(
        setting=setting,
        sigma_eta=trial.sigma_eta,
        generalization_error=lasso.prediction_errors(point).generalization_error,
        cw_onavg_kl=component_wise,
        cw_onavg_kl_paper=lasso.onavg_kl(point, "printed"),
        joint_onavg_kl=lasso.onavg_kl(point, "joint"),
    )


def optimal_noise(setting: LassoSetting, *, divergence: LassoDivergence = "joint") -> LassoChoice:
    """The noise whose (error, divergence) is nearest to the origin: the paper's definition.

    The joint divergence is the default; the paper's own figures have ``"printed"``.

    Examples
    --------
    >>> from leakscope.planning import optimal_noise
    >>> from leakscope.lasso import LassoSetting
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0, mechanism="output")
    >>> round(optimal_noise(setting).sigma_eta, 4)
    0.1914
    """
    _require_one(setting)

    def distance(noise: FloatArray, _: IntArray) -> FloatArray:
        return np.hypot(*_error_and_kl(setting.change(sigma_eta=noise), divergence))

    levels = noise_levels(setting, _LEVELS)[None]
    rows = np.zeros(1, dtype=np.intp)
    best = _lowest(distance, levels, distance(levels, rows[:, None]), rows)
    return _choice("nearest_to_origin", setting, divergence, None, float(best[0]))


def least_error(
    setting: LassoSetting, kl_at_most: float, *, divergence: LassoDivergence = "joint"
) -> LassoChoice:
    """The noise with the least error among those whose divergence is at most ``kl_at_most``."""
    return _constrained("least_error", setting, divergence, _limit("kl", kl_at_most))


def least_kl(
    setting: LassoSetting, error_at_most: float, *, divergence: LassoDivergence = "joint"
) -> LassoChoice:
    """The noise with the least divergence among those whose error is at most ``error_at_most``."""
    return _constrained("least_kl", setting, divergence, _limit("error", error_at_most))


def best_lasso(
    setting: LassoSetting,
    *,
    kl_at_most: float | None = None,
    error_at_most: float | None = None,
    advantage_at_most: float | None = None,
    epsilon_at_most: float | None = None,
    delta: float = TARGET_DELTA,
    divergence: LassoDivergence = "joint",
) -> tuple[LassoChoice, ...]:
    """Which mechanism and which lambda: the best of each mechanism, the better one first.

    Give one target; ``delta`` is that of ``epsilon_at_most``.  The setting's data model is used,
    its ``lam`` and ``sigma_eta`` are not.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting
    >>> from leakscope.planning import best_lasso
    >>> data = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0)
    >>> best = best_lasso(data, kl_at_most=0.1)[0]
    >>> best.mechanism, round(best.generalization_error, 4), round(best.zero_vector_error, 4)
    ('objective', 0.0881, 0.11)
    """
    _require_one(setting)
    given = {
        "kl": kl_at_most,
        "error": error_at_most,
        "advantage": advantage_at_most,
        "epsilon": epsilon_at_most,
    }
    asked = [(name, value) for name, value in given.items() if value is not None]
    if len(asked) != 1:
        raise InputError(
            "best_lasso needs one target: kl_at_most, error_at_most, advantage_at_most or "
            "epsilon_at_most."
        )
    limit = _limit(*asked[0], delta)
    goal: Goal = "least_kl" if limit.of == "error" else "least_error"
    mechanisms: tuple[LassoMechanism, ...] = ("objective", "output")
    choices = [_best_lam(goal, setting.change(mechanism=m), divergence, limit) for m in mechanisms]
    return tuple(sorted(choices, key=_order))


def _limit(of: str, target: float, delta: float = TARGET_DELTA) -> Limit:
    if not (np.isfinite(target) and target > 0.0):
        raise InputError(f"{of}_at_most must be above zero, but it is {target!r}.")
    if of == "advantage" and target >= 1.0:
        raise InputError(f"advantage_at_most must be below 1, but it is {target!r}.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
    return Limit(of, target, delta)  # type: ignore[arg-type]


def _best_lam(
    goal: Goal, base: LassoSetting, divergence: LassoDivergence, limit: Limit
) -> LassoChoice:
    """Ever closer grids over log lambda, each at the noise that is best for it."""
    middle = np.log(np.sqrt(zero_vector_error(base)))
    logs = middle + np.log(np.geomspace(0.01, 30.0, 16))
    best = (np.inf, 0.0, 0.0)
    for _ in range(1 + _LAM_ROUNDS):
        noise, value = _least_within(goal, base, np.exp(logs), divergence, limit)
        at = int(np.argmin(value))
        best = min(best, (float(value[at]), float(logs[at]), float(noise[at])))
        if not np.isfinite(best[0]):
            return _choice(goal, base, divergence, limit, None)
        logs = np.linspace(logs[max(at - 1, 0)], logs[min(at + 1, logs.size - 1)], _CLOSER)
    return _choice(goal, base.change(lam=float(np.exp(best[1]))), divergence, limit, best[2])


def _constrained(
    goal: Goal, setting: LassoSetting, divergence: LassoDivergence, limit: Limit
) -> LassoChoice:
    """The least error, or KL, within the limit."""
    lams = np.array([_require_one(setting).lam])
    noise, value = _least_within(goal, setting, lams, divergence, limit)
    found = float(noise[0]) if np.isfinite(value[0]) else None
    return _choice(goal, setting, divergence, limit, found)


def _least_within(
    goal: Goal,
    base: LassoSetting,
    lams: FloatArray,
    divergence: LassoDivergence,
    limit: Limit,
) -> tuple[FloatArray, FloatArray]:
    """At each lambda the noise of the least error, or KL, within the limit, and that least.

    NaN and infinite where no noise is within it.  All lambdas go through each step together.
    """

    def trials(noise: FloatArray, rows: IntArray) -> LassoSetting:
        return base.change(lam=lams[rows], sigma_eta=noise)

    def excess(noise: FloatArray, rows: IntArray) -> FloatArray:
        return limit.excess(trials(noise, rows), divergence)

    def wanted(noise: FloatArray, rows: IntArray) -> FloatArray:
        return _error_and_kl(trials(noise, rows), divergence)[goal == "least_kl"]

    points = _LEVELS if limit.of in ("kl", "error") else _FEWER_LEVELS
    levels = np.stack([noise_levels(base.change(lam=float(lam)), points) for lam in lams])
    every = np.arange(lams.size)
    above, values = excess(levels, every[:, None]), wanted(levels, every[:, None])
    # a least that no limit binds, the noises that meet the limit, and where nothing does so far
    # the noise nearest to it, which may lie between two levels
    lowest = np.argmin(np.where(above <= 0.0, values, np.inf), axis=1)
    around = np.clip(lowest[:, None] + [-1, 0, 1], 0, points - 1)
    near, beside = (np.take_along_axis(part, around, axis=1) for part in (values, levels))
    free = np.flatnonzero(near[:, 1] <= near.min(axis=1))
    silent = np.flatnonzero((above > 0.0).all(axis=1))
    tried = [
        (free, _lowest(wanted, beside[free], near[free], free)),
        _roots(excess, levels, above),
        (silent, _lowest(excess, levels[silent], above[silent], silent)),
    ]
    rows, noise = (np.concatenate(part) for part in zip(*tried, strict=True))
    # rounding of a root, as a share of the target or of delta
    met = excess(noise, rows) <= 1e-9
    within = np.nonzero(above <= 0.0)
    rows, noise = np.append(rows[met], within[0]), np.append(noise[met], levels[within])
    chosen, least = np.full(lams.size, np.nan), np.full(lams.size, np.inf)
    if rows.size:
        found = wanted(noise, rows)
        order = np.lexsort((found, rows))
        reached, first = np.unique(rows[order], return_index=True)
        chosen[reached], least[reached] = noise[order][first], found[order][first]
    return chosen, least


def _lowest(
    function: Function, levels: FloatArray, values: FloatArray, rows: IntArray
) -> FloatArray:
    """Near the lowest level of each row, the noise where ``function`` is least."""
    every = np.arange(rows.size)
    noise = levels
    for _ in range(_NOISE_ROUNDS if rows.size else 0):
        lowest = np.argmin(values, axis=1)
        low = noise[every, np.maximum(lowest - 1, 0)]
        high = noise[every, np.minimum(lowest + 1, noise.shape[1] - 1)]
        noise = np.linspace(low, high, _CLOSER, axis=1)
        values = function(noise, rows[:, None])
    return np.asarray(noise[every, np.argmin(values, axis=1)])


def _roots(
    function: Function, levels: FloatArray, values: FloatArray
) -> tuple[IntArray, FloatArray]:
    """All sign changes between a row's neighbouring levels: the rows, and the noises there."""
    rows, at = np.nonzero(values[:, 1:] * values[:, :-1] < 0.0)
    logs = np.log(levels)
    low, high = logs[rows, at], logs[rows, at + 1]
    if not rows.size:
        return rows, low

    def of_log(x: FloatArray, row: IntArray) -> FloatArray:
        return function(np.exp(x), row)

    tolerances = {"fatol": 1e-12, "xatol": 1e-13, "xrtol": 1e-13}
    ends = (low, high)
    found: Any = elementwise.find_root(  # type: ignore[call-overload]
        of_log, ends, args=(rows,), tolerances=tolerances
    )
    # a root next to a level, where it is zero but for rounding, may have no sign change left
    nearer = np.abs(values[rows, at]) < np.abs(values[rows, at + 1])
    return rows, np.exp(np.where(found.success, found.x, np.where(nearer, low, high)))


def noise_levels(setting: LassoSetting, points: int) -> FloatArray:
    """Noise levels that cover the curve: geometric at weak noise, closing in on the edge."""
    lam, scale = float(setting.lam), np.sqrt(zero_vector_error(setting))
    least = 1e-3 * min(lam, scale if scale > 0.0 else lam)
    edge = (
        float(lasso.stability_edge(setting.alpha, setting.noise))
        if setting.mechanism == "objective"
        else 0.0
    )
    if edge > 0.0:
        most = lam / edge
        weak = np.geomspace(least, 0.5 * most, points // 2)
        strong = most * (1.0 - np.geomspace(0.5, 1e-4, points - points // 2 + 1)[1:])
        return np.concatenate([weak, strong])
    return np.geomspace(least, 1e3 * max(lam, scale), points)


def _choice(
    goal: Goal,
    setting: LassoSetting,
    divergence: LassoDivergence,
    limit: Limit | None,
    noise: float | None,
) -> LassoChoice:
    """What this noise gives, beside predicting zero; none meets the target where there is none."""
    nothing = zero_vector_error(setting)
    measure: Measure = "kl"
    if limit is not None and limit.of in ("advantage", "epsilon"):
        measure = limit.of
    numbers: dict[str, Any] = {}
    better = False
    if noise is not None:
        point = lasso.state_evolution(setting.change(sigma_eta=noise))
        error = float(lasso.prediction_errors(point).generalization_error)
        better = error < (1.0 - _WORTH) * nothing
        if limit is not None and limit.of == "error" and limit.target >= nothing:
            better = False
        numbers = {
            "lam": float(setting.lam),
            "generalization_error": error,
            "onavg_kl": float(lasso.onavg_kl(point, divergence)),
            "active_fraction": float(point.active_fraction),
        }
        if limit is not None and measure != "kl":
            pair = lasso.joint_law_pair(point)
            level = (
                measures.advantage(pair)
                if measure == "advantage"
                else measures.epsilon_at_delta(pair, limit.delta, "member_to_nonmember")
            )
            numbers["measured"] = float(np.asarray(level))
    return LassoChoice(
        goal=goal,
        divergence=divergence,
        mechanism=setting.mechanism,
        target=None if limit is None else limit.target,
        met=noise is not None,
        sigma_eta=noise,
        guarantee=NOT_A_GUARANTEE,
        zero_vector_error=nothing,
        better_than_nothing=better,
        measure=measure,
        **{"lam": None, "generalization_error": None, "onavg_kl": None, **numbers},
    )


def zero_vector_error(setting: LassoSetting) -> float:
    """E y^2 = rho sigma_beta^2 + sigma_xi^2, the error of predicting zero."""
    return float(setting.rho * setting.signal_variance + setting.sigma_xi**2)


def _order(choice: LassoChoice) -> float:
    value = choice.generalization_error if choice.goal == "least_error" else choice.onavg_kl
    return np.inf if value is None else value


def _require_one(setting: LassoSetting) -> LassoSetting:
    if setting.shape != ():
        raise InputError("A trade-off curve is of one setting; its noises are the curve.")
    return setting
