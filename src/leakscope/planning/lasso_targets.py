"""The noise, the mechanism and the lambda of a private LASSO that meet a target.

Each answer is a root: of the curve's own slope (optimal noise), of the divergence or the error
against the target, or of the slope along the target (which lambda).  Slopes come through the fixed
point by implicit differentiation.  A coarse pass over the curve, all levels in one batch, only
brackets the roots, because under objective perturbation neither error nor divergence is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso import NOT_A_GUARANTEE, Divergence, LassoSetting, Mechanism
from leakscope.planning.lasso_curves import CurvePoint, _one, curve_at, noise_levels
from leakscope.results import LassoChoice
from leakscope.settings import LASSO_PLAN_DEFAULTS

Goal = Literal["nearest_to_origin", "least_error", "least_kl"]

_LEVELS = 80


def optimal_noise(
    setting: LassoSetting, *, divergence: Divergence = LASSO_PLAN_DEFAULTS.divergence
) -> LassoChoice:
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

    def slope(at: CurvePoint) -> FloatArray:
        return np.asarray(at.error * at.error_slope + at.kl * at.kl_slope)

    found = _stationary(setting, divergence, slope)
    best = min(found, key=lambda s: _distance(setting, divergence, s))
    return _choice("nearest_to_origin", setting, divergence, None, best)


def least_error(
    setting: LassoSetting,
    kl_at_most: float,
    *,
    divergence: Divergence = LASSO_PLAN_DEFAULTS.divergence,
) -> LassoChoice:
    """The noise with the least error among those whose divergence is at most ``kl_at_most``.

    Examples
    --------
    >>> from leakscope.planning import least_error
    >>> from leakscope.lasso import LassoSetting
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.0)
    >>> found = least_error(setting, 0.05)
    >>> found.met, round(found.sigma_eta, 4), round(found.onavg_kl, 4)
    (True, 0.2424, 0.05)
    >>> least_error(setting, 0.001).met
    False
    """
    _positive(kl_at_most, "kl_at_most")
    return _constrained(
        "least_error",
        setting,
        divergence,
        kl_at_most,
        wanted=lambda at: at.error,
        wanted_slope=lambda at: at.error_slope,
        bound=lambda at: at.kl,
    )


def least_kl(
    setting: LassoSetting,
    error_at_most: float,
    *,
    divergence: Divergence = LASSO_PLAN_DEFAULTS.divergence,
) -> LassoChoice:
    """The noise with the least divergence among those whose error is at most ``error_at_most``.

    Examples
    --------
    >>> from leakscope.planning import least_kl
    >>> from leakscope.lasso import LassoSetting
    >>> setting = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0, mechanism="output")
    >>> found = least_kl(setting, 0.15)
    >>> round(found.generalization_error, 4), round(found.onavg_kl, 4)
    (0.15, 0.051)
    """
    _positive(error_at_most, "error_at_most")
    return _constrained(
        "least_kl",
        setting,
        divergence,
        error_at_most,
        wanted=lambda at: at.kl,
        wanted_slope=lambda at: at.kl_slope,
        bound=lambda at: at.error,
    )


def best_lasso(
    setting: LassoSetting,
    *,
    kl_at_most: float | None = None,
    error_at_most: float | None = None,
    divergence: Divergence = LASSO_PLAN_DEFAULTS.divergence,
    mechanisms: tuple[Mechanism, ...] = ("objective", "output"),
) -> tuple[LassoChoice, ...]:
    """Which mechanism and which lambda: the best of each mechanism, the better one first.

    Give one target.  The setting's data model is used, its ``lam`` and ``sigma_eta`` are not.
    Over lambda the optimum is where the slope along the target vanishes (envelope theorem).

    Examples
    --------
    >>> from leakscope.planning import best_lasso
    >>> from leakscope.lasso import LassoSetting
    >>> data = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0)
    >>> [choice.mechanism for choice in best_lasso(data, kl_at_most=0.1)]
    ['objective', 'output']
    """
    _one(setting)
    if (kl_at_most is None) == (error_at_most is None):
        raise InputError("best_lasso needs one target: kl_at_most or error_at_most.")
    found = []
    for mechanism in mechanisms:
        base = setting.change(mechanism=mechanism)

        def at(log_lam: float, base: LassoSetting = base) -> LassoChoice:
            trial = base.change(lam=float(np.exp(log_lam)))
            if kl_at_most is not None:
                return least_error(trial, kl_at_most, divergence=divergence)
            assert error_at_most is not None
            return least_kl(trial, error_at_most, divergence=divergence)

        found.append(_best_lam(base, at, divergence))
    return tuple(sorted(found, key=_order))


def _best_lam(
    base: LassoSetting, at: Callable[[float], LassoChoice], divergence: Divergence
) -> LassoChoice:
    scale = np.sqrt(float(base.sigma_xi) ** 2 + float(base.rho * base.signal_variance))
    grid = np.log(scale) + np.log(np.geomspace(0.01, 30.0, 16))
    choices = [at(x) for x in grid]
    met = [i for i, choice in enumerate(choices) if choice.met]
    if not met:
        return choices[len(choices) // 2]
    best = min(met, key=lambda i: _order(choices[i]))
    low, high = max(best - 1, 0), min(best + 1, len(grid) - 1)

    def slope(x: float) -> float:
        return _slope_along_target(base, at(x), divergence)

    ends = [i for i in (low, high) if choices[i].met]
    if len(ends) == 2 and slope(grid[low]) < 0.0 < slope(grid[high]):
        root = optimize.brentq(slope, grid[low], grid[high], xtol=1e-10)
        return min((at(float(root)), choices[best]), key=_order)
    # a kink (another piece of the curve takes over) or the end of what is feasible
    bounds = (float(grid[low]), float(grid[high]))
    # What is not feasible is infinite; its parabola is no number, and a golden section is taken.
    with np.errstate(invalid="ignore"):
        close = optimize.minimize_scalar(
            lambda x: _order(at(float(x)))[1],
            bounds=bounds,
            method="bounded",
            options={"xatol": 1e-6},
        )
    return min((at(float(close.x)), choices[best]), key=_order)


def _slope_along_target(base: LassoSetting, choice: LassoChoice, divergence: Divergence) -> float:
    """d(objective)/d(log lambda) with the noise following the target: the envelope theorem."""
    if not choice.met or choice.lam is None:
        return np.nan
    trial = base.change(lam=choice.lam, sigma_eta=choice.sigma_eta)
    by_noise = curve_at(trial, divergence, "sigma_eta")
    by_lam = curve_at(trial, divergence, "lam")
    wanted, bound = ("error_slope", "kl_slope")
    if choice.goal == "least_kl":
        wanted, bound = bound, wanted
    direct = float(getattr(by_lam, wanted))
    value = float(by_noise.kl if choice.goal == "least_error" else by_noise.error)
    assert choice.target is not None
    if abs(value - choice.target) <= 1e-7 * choice.target:
        rate = float(getattr(by_noise, bound))
        direct -= float(getattr(by_noise, wanted)) * float(getattr(by_lam, bound)) / rate
    return direct * choice.lam


def _constrained(
    goal: Goal,
    setting: LassoSetting,
    divergence: Divergence,
    target: float,
    *,
    wanted: Callable[[CurvePoint], FloatArray],
    wanted_slope: Callable[[CurvePoint], FloatArray],
    bound: Callable[[CurvePoint], FloatArray],
) -> LassoChoice:
    _one(setting)
    levels = noise_levels(setting, _LEVELS)
    at = curve_at(setting.change(sigma_eta=levels), divergence)
    candidates = _roots(
        setting, divergence, levels, bound(at) - target, lambda p: bound(p) - target
    )
    candidates += _roots(setting, divergence, levels, wanted_slope(at), wanted_slope)
    candidates += levels[bound(at) <= target].tolist()
    if not candidates:
        # the least of the bounded curve may lie between two levels
        lowest = int(np.argmin(bound(at)))
        near = levels[[max(lowest - 1, 0), min(lowest + 1, levels.size - 1)]]
        close = optimize.minimize_scalar(
            lambda s: float(bound(curve_at(setting.change(sigma_eta=float(s)), divergence))),
            bounds=(float(near[0]), float(near[1])),
            method="bounded",
        )
        candidates = [float(close.x)]
    trial = curve_at(setting.change(sigma_eta=np.array(candidates)), divergence)
    feasible = bound(trial) <= target * (1.0 + 1e-9)
    if not feasible.any():
        return LassoChoice(
            goal=goal,
            divergence=divergence,
            mechanism=setting.mechanism,
            target=target,
            met=False,
            lam=None,
            sigma_eta=None,
            generalization_error=None,
            onavg_kl=None,
            guarantee=NOT_A_GUARANTEE,
        )
    best = int(np.argmin(np.where(feasible, wanted(trial), np.inf)))
    return _choice(goal, setting, divergence, target, candidates[best])


def _stationary(
    setting: LassoSetting, divergence: Divergence, slope: Callable[[CurvePoint], FloatArray]
) -> list[float]:
    levels = noise_levels(setting, _LEVELS)
    values = slope(curve_at(setting.change(sigma_eta=levels), divergence))
    found = _roots(setting, divergence, levels, values, slope)
    return found or [float(levels[0 if values[0] > 0.0 else -1])]


def _roots(
    setting: LassoSetting,
    divergence: Divergence,
    levels: FloatArray,
    values: FloatArray,
    function: Callable[[CurvePoint], FloatArray],
) -> list[float]:
    """All sign changes of ``function`` between neighbouring levels, each by Brent's method."""

    def at(log_noise: float) -> float:
        trial = setting.change(sigma_eta=float(np.exp(log_noise)))
        return float(function(curve_at(trial, divergence)))

    logs = np.log(levels)
    found = []
    for i in np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1])):
        # a slope that is all rounding may have another sign when it is asked again
        if at(logs[i]) * at(logs[i + 1]) < 0.0:
            root = optimize.brentq(at, logs[i], logs[i + 1], xtol=1e-13, rtol=1e-13)
            found.append(float(np.exp(root)))
    return found


def _distance(setting: LassoSetting, divergence: Divergence, noise: float) -> float:
    at = curve_at(setting.change(sigma_eta=noise), divergence)
    return float(np.hypot(at.error, at.kl))


def _choice(
    goal: Goal, setting: LassoSetting, divergence: Divergence, target: float | None, noise: float
) -> LassoChoice:
    at = curve_at(setting.change(sigma_eta=noise), divergence)
    return LassoChoice(
        goal=goal,
        divergence=divergence,
        mechanism=setting.mechanism,
        target=target,
        met=True,
        lam=float(setting.lam),
        sigma_eta=noise,
        generalization_error=float(at.error),
        onavg_kl=float(at.kl),
        guarantee=NOT_A_GUARANTEE,
    )


def _order(choice: LassoChoice) -> tuple[int, float]:
    if not choice.met:
        return (1, np.inf)
    value = choice.generalization_error if choice.goal == "least_error" else choice.onavg_kl
    assert value is not None
    return (0, value)


def _positive(value: float, name: str) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} must be above zero, but it is {value!r}.")
