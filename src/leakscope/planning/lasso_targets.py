"""Error against divergence of a private LASSO, and the noise, mechanism and lambda for a target.

Each answer is a root: of the curve's own slope (optimal noise), of the divergence or the error
against the target, or of the slope along the target (which lambda).  Slopes come through the fixed
point by implicit differentiation.  A coarse pass over the curve, all levels in one batch, only
brackets the roots, because under objective perturbation neither error nor divergence is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy.optimize import elementwise

from leakscope import lasso, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope.errors import InputError
from leakscope.lasso.onaverage_kl import onavg_kl_with_slope
from leakscope.lasso.setting import NOT_A_GUARANTEE, LassoSetting
from leakscope.lasso.state_evolution import Parameter, fixed_point_derivative
from leakscope.results.plan import LassoChoice
from leakscope.settings.advise import TARGET_DELTA
from leakscope.settings.plan import LassoDivergence, LassoMechanism

Goal = Literal["nearest_to_origin", "least_error", "least_kl"]
Measure = Literal["kl", "advantage", "epsilon"]
IntArray = NDArray[np.intp]
Function = Callable[[FloatArray, IntArray], FloatArray]

_LEVELS = 80
# Of measures that have no slope and cost milliseconds each.
_FEWER_LEVELS = 24
# Of each closer grid.
_CLOSER = 11

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
        """How far each setting of a batch is above it."""
        if self.of == "error" or self.of == "kl":
            return np.asarray(getattr(_curve_at(setting, divergence), self.of) - self.target)
        pairs = lasso.joint_law_pair(lasso.state_evolution(setting))
        if self.of == "advantage":
            return np.asarray(measures.advantage(pairs)) - self.target
        # delta at this epsilon against delta: one integral, where epsilon at delta takes a root
        delta = measures.delta_at_epsilon(pairs, self.target, "member_to_nonmember")
        return np.asarray(np.log(np.maximum(np.asarray(delta), 1e-300) / self.delta))


def measured(setting: LassoSetting, measure: Measure, delta: float = TARGET_DELTA) -> float:
    """The advantage, or epsilon at ``delta``, of an attacker who sees the whole estimate."""
    pair = lasso.joint_law_pair(lasso.state_evolution(setting))
    if measure == "advantage":
        return float(np.asarray(measures.advantage(pair)))
    return float(np.asarray(measures.epsilon_at_delta(pair, delta, "member_to_nonmember")))


@dataclass(frozen=True, eq=False)
class LassoTradeOff:
    """The trade-off curve of Fig. 8: generalisation error and on-average KL at each noise."""

    setting: LassoSetting
    sigma_eta: FloatArray
    generalization_error: FloatArray
    cw_onavg_kl: FloatArray
    cw_onavg_kl_paper: FloatArray
    joint_onavg_kl: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON."""
        return {name: plain(value) for name, value in vars(self).items() if name != "setting"}

    def to_frame(self) -> Any:
        """One row a noise level, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())


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
    _one(setting)
    levels = noise_levels(setting, points) if sigma_eta is None else np.atleast_1d(sigma_eta)
    trial = setting.change(sigma_eta=np.asarray(levels, dtype=np.float64))
    point = lasso.state_evolution(trial)
    both = lasso.noise_overlap(point)
    return LassoTradeOff(
        setting=setting,
        sigma_eta=trial.sigma_eta,
        generalization_error=lasso.prediction_errors(point).generalization_error,
        cw_onavg_kl=lasso.onavg_kl(both, "component_wise"),
        cw_onavg_kl_paper=lasso.onavg_kl(both, "printed"),
        joint_onavg_kl=lasso.onavg_kl(both, "joint"),
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
    _one(setting)

    def slope(noise: FloatArray, _: IntArray) -> FloatArray:
        at = _curve_at(setting.change(sigma_eta=noise), divergence)
        return np.asarray(at.error * at.error_slope + at.kl * at.kl_slope)

    def distance(noise: float) -> float:
        at = _curve_at(setting.change(sigma_eta=noise), divergence)
        return float(np.hypot(at.error, at.kl))

    levels = noise_levels(setting, _LEVELS)
    values = slope(levels, np.zeros(1, dtype=np.intp))
    _, roots = _roots(slope, levels[None], values[None])
    found = roots.tolist() or [float(levels[0 if values[0] > 0.0 else -1])]
    return _choice("nearest_to_origin", setting, divergence, None, min(found, key=distance))


def least_error(
    setting: LassoSetting,
    kl_at_most: float,
    *,
    divergence: LassoDivergence = "joint",
) -> LassoChoice:
    """The noise with the least error among those whose divergence is at most ``kl_at_most``."""
    _positive(kl_at_most, "kl_at_most")
    return _constrained("least_error", setting, divergence, Limit("kl", kl_at_most))


def least_kl(
    setting: LassoSetting,
    error_at_most: float,
    *,
    divergence: LassoDivergence = "joint",
) -> LassoChoice:
    """The noise with the least divergence among those whose error is at most ``error_at_most``."""
    _positive(error_at_most, "error_at_most")
    return _constrained("least_kl", setting, divergence, Limit("error", error_at_most))


def best_lasso(
    setting: LassoSetting,
    *,
    kl_at_most: float | None = None,
    error_at_most: float | None = None,
    advantage_at_most: float | None = None,
    epsilon_at_most: float | None = None,
    delta: float = TARGET_DELTA,
    divergence: LassoDivergence = "joint",
    mechanisms: tuple[LassoMechanism, ...] = ("objective", "output"),
) -> tuple[LassoChoice, ...]:
    """Which mechanism and which lambda: the best of each mechanism, the better one first.

    Give one target; ``delta`` is that of ``epsilon_at_most``.  The setting's data model is used,
    its ``lam`` and ``sigma_eta`` are not.  Over lambda the optimum is where the slope along the
    target vanishes (envelope theorem); an advantage and an epsilon have no slope here, and ever
    closer grids find it.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting
    >>> from leakscope.planning import best_lasso
    >>> data = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0)
    >>> best = best_lasso(data, kl_at_most=0.1)[0]
    >>> best.mechanism, round(best.generalization_error, 4), round(best.zero_vector_error, 4)
    ('objective', 0.0881, 0.11)
    """
    _one(setting)
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
    name, target = asked[0]
    _positive(target, f"{name}_at_most")
    if name == "advantage" and target >= 1.0:
        raise InputError(f"advantage_at_most must be below 1, but it is {target!r}.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
    limit = Limit(name, target, delta)  # type: ignore[arg-type]
    goal: Goal = "least_kl" if name == "error" else "least_error"
    found = [
        _best_lam(goal, setting.change(mechanism=mechanism), divergence, limit)
        for mechanism in mechanisms
    ]
    return tuple(sorted(found, key=_order))


def _best_lam(
    goal: Goal, base: LassoSetting, divergence: LassoDivergence, limit: Limit
) -> LassoChoice:
    scale = np.sqrt(float(base.sigma_xi) ** 2 + float(base.rho * base.signal_variance))
    grid = np.log(scale) + np.log(np.geomspace(0.01, 30.0, 16))

    def at(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _least_within(goal, base, np.exp(logs), divergence, limit)

    noise, value = at(grid)
    best = int(np.argmin(value))
    if not np.isfinite(value[best]):
        return _choice(goal, base, divergence, limit, None)
    tried = [(value[best], grid[best], noise[best])]
    low, high = max(best - 1, 0), min(best + 1, len(grid) - 1)

    def slope(x: float) -> float:
        trial = base.change(lam=np.exp(x), sigma_eta=at(np.array([x]))[0][0])
        return _slope_along_target(goal, trial, divergence, limit)

    sloped = limit.of in ("kl", "error") and bool(np.isfinite(value[[low, high]]).all())
    if sloped and slope(grid[low]) < 0.0 < slope(grid[high]):
        root = float(optimize.brentq(slope, grid[low], grid[high], xtol=1e-10))
        noise, value = at(np.array([root]))
        tried.append((value[0], root, noise[0]))
    else:
        # a kink (another piece of the curve takes over) or the end of what is feasible
        left, right = grid[low], grid[high]
        # At a least error half of this is 1e-8 of it.
        while right - left > 2e-4:
            logs = np.linspace(left, right, _CLOSER)
            noise, value = at(logs)
            best = int(np.argmin(value))
            tried.append((value[best], logs[best], noise[best]))
            left, right = logs[max(best - 1, 0)], logs[min(best + 1, _CLOSER - 1)]
    _, x, chosen = min(tried)
    return _choice(goal, base.change(lam=float(np.exp(x))), divergence, limit, float(chosen))


def _slope_along_target(
    goal: Goal, trial: LassoSetting, divergence: LassoDivergence, limit: Limit
) -> float:
    """d(objective)/d(log lambda) with the noise following the target: the envelope theorem."""
    by_noise = _curve_at(trial, divergence, "sigma_eta")
    by_lam = _curve_at(trial, divergence, "lam")
    wanted, bound = ("kl", "error") if goal == "least_kl" else ("error", "kl")
    direct = float(getattr(by_lam, f"{wanted}_slope"))
    if abs(float(getattr(by_noise, bound)) - limit.target) <= 1e-7 * limit.target:
        along = float(getattr(by_noise, f"{wanted}_slope"))
        rate = float(getattr(by_noise, f"{bound}_slope"))
        direct -= along * float(getattr(by_lam, f"{bound}_slope")) / rate
    return direct * float(trial.lam)


def _constrained(
    goal: Goal, setting: LassoSetting, divergence: LassoDivergence, limit: Limit
) -> LassoChoice:
    """The least error, or KL, within the limit."""
    _one(setting)
    noise, value = _least_within(goal, setting, np.array([setting.lam]), divergence, limit)
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
    wanted = "kl" if goal == "least_kl" else "error"

    def trials(noise: FloatArray, rows: IntArray) -> LassoSetting:
        return base.change(lam=lams[rows], sigma_eta=noise)

    def excess(noise: FloatArray, rows: IntArray) -> FloatArray:
        return limit.excess(trials(noise, rows), divergence)

    def slope(noise: FloatArray, rows: IntArray) -> FloatArray:
        return np.asarray(getattr(_curve_at(trials(noise, rows), divergence), f"{wanted}_slope"))

    points = _LEVELS if limit.of in ("kl", "error") else _FEWER_LEVELS
    levels = np.stack([noise_levels(base.change(lam=float(lam)), points) for lam in lams])
    every = np.arange(lams.size)[:, None]
    above = excess(levels, every)
    found = [
        _roots(excess, levels, above),
        _roots(slope, levels, slope(levels, every)),
    ]
    within = np.nonzero(above <= 0.0)
    told = np.concatenate([found[0][0], found[1][0], within[0]])
    silent = np.setdiff1d(every, told)
    # the least of the bounded curve may lie between two levels
    found.append((silent, _lowest(excess, levels[silent], above[silent], silent)))
    rows, noise = (np.concatenate(part) for part in zip(*found, strict=True))
    if rows.size:
        # rounding of a root: of log delta for an epsilon, of the bounded number itself otherwise
        allowed = 1e-9 * (1.0 if limit.of == "epsilon" else limit.target)
        feasible = excess(noise, rows) <= allowed
        rows, noise = rows[feasible], noise[feasible]
    rows, noise = np.concatenate([rows, within[0]]), np.concatenate([noise, levels[within]])
    chosen, least = np.full(lams.size, np.nan), np.full(lams.size, np.inf)
    if rows.size:
        values = np.asarray(getattr(_curve_at(trials(noise, rows), divergence), wanted))
        order = np.lexsort((values, rows))
        met, first = np.unique(rows[order], return_index=True)
        chosen[met], least[met] = noise[order][first], values[order][first]
    return chosen, least


def _lowest(
    function: Function, levels: FloatArray, values: FloatArray, rows: IntArray
) -> FloatArray:
    """Near the lowest level of each row, the noise where ``function`` is least."""
    if not rows.size:
        return np.empty(0)
    every = np.arange(rows.size)
    noise = levels
    for _ in range(9):
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
    ends = values[rows, at], values[rows, at + 1]
    # it falls, and is one or less at both ends
    sign = np.sign(ends[0]) / np.maximum(*np.abs(ends))
    logs = np.log(levels)
    if not rows.size:
        return rows, logs[rows, at]

    def scaled(x: FloatArray, row: IntArray, times: FloatArray) -> FloatArray:
        return np.asarray(times * function(np.exp(x), row))

    found = elementwise.find_root(
        scaled,
        (logs[rows, at], logs[rows, at + 1]),
        args=(rows, sign),
        tolerances={"fatol": 1e-13, "xatol": 1e-13, "xrtol": 1e-13},
    )
    # a root next to a level, where it is zero but for rounding, may have no sign change left
    nearer = np.abs(ends[0]) < np.abs(ends[1])
    level = np.where(nearer, logs[rows, at], logs[rows, at + 1])
    return rows, np.exp(np.where(found.success, found.x, level))


class CurvePoint(NamedTuple):
    """Error and divergence, and their derivatives, along sigma_eta (or lambda)."""

    error: FloatArray
    kl: FloatArray
    error_slope: FloatArray
    kl_slope: FloatArray


def _curve_at(
    setting: LassoSetting, divergence: LassoDivergence, parameter: Parameter = "sigma_eta"
) -> CurvePoint:
    """Error, divergence and slopes at each setting of a batch."""
    point = lasso.state_evolution(setting)
    moved = fixed_point_derivative(point, parameter).error
    if setting.mechanism == "output" and parameter == "sigma_eta":
        moved = 2.0 * setting.sigma_eta
    kl = onavg_kl_with_slope(point, divergence, parameter)
    error = lasso.prediction_errors(point).generalization_error
    return CurvePoint(error, kl.value, np.asarray(moved), kl.slope)


def noise_levels(setting: LassoSetting, points: int) -> FloatArray:
    """Noise levels that cover the curve: geometric at weak noise, closing in on the edge."""
    scale = np.sqrt(float(setting.sigma_xi) ** 2 + float(setting.rho * setting.signal_variance))
    least = 1e-3 * min(float(setting.lam), scale if scale > 0.0 else float(setting.lam))
    edge = (
        float(lasso.stability_edge(setting.alpha, setting.noise))
        if setting.mechanism == "objective"
        else 0.0
    )
    if edge > 0.0:
        most = float(setting.lam) / edge
        weak = np.geomspace(least, 0.5 * most, points // 2)
        strong = most * (1.0 - np.geomspace(0.5, 1e-4, points - points // 2 + 1)[1:])
        return np.concatenate([weak, strong])
    return np.geomspace(least, 1e3 * max(float(setting.lam), scale), points)


def _choice(
    goal: Goal,
    setting: LassoSetting,
    divergence: LassoDivergence,
    limit: Limit | None,
    noise: float | None,
) -> LassoChoice:
    """What this noise gives, beside predicting zero; none meets the target where there is none."""
    trial = None if noise is None else setting.change(sigma_eta=noise)
    at = None if trial is None else _curve_at(trial, divergence)
    nothing = zero_vector_error(setting)
    better = at is not None and float(at.error) < (1.0 - _WORTH) * nothing
    if limit is not None and limit.of == "error" and limit.target >= nothing:
        better = False
    measure: Measure = "kl"
    if limit is not None and limit.of in ("advantage", "epsilon"):
        measure = limit.of
    return LassoChoice(
        goal=goal,
        divergence=divergence,
        mechanism=setting.mechanism,
        target=None if limit is None else limit.target,
        met=at is not None,
        lam=None if at is None else float(setting.lam),
        sigma_eta=noise,
        generalization_error=None if at is None else float(at.error),
        onavg_kl=None if at is None else float(at.kl),
        guarantee=NOT_A_GUARANTEE,
        active_fraction=None
        if trial is None
        else float(lasso.state_evolution(trial).active_fraction),
        zero_vector_error=nothing,
        better_than_nothing=better,
        measure=measure,
        measured=None
        if measure == "kl" or trial is None or limit is None
        else measured(trial, measure, limit.delta),
    )


def zero_vector_error(setting: LassoSetting) -> float:
    """E y^2 = rho sigma_beta^2 + sigma_xi^2, the error of predicting zero."""
    return float(setting.rho * setting.signal_variance + setting.sigma_xi**2)


def _order(choice: LassoChoice) -> tuple[int, float]:
    if not choice.met:
        return (1, np.inf)
    value = choice.generalization_error if choice.goal == "least_error" else choice.onavg_kl
    assert value is not None
    return (0, value)


def _positive(value: float, name: str) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} must be above zero, but it is {value!r}.")


def _one(setting: LassoSetting) -> None:
    if setting.shape != ():
        raise InputError("A trade-off curve is of one setting; its noises are the curve.")
