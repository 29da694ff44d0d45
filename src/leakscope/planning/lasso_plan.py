"""What a planned private LASSO would give away about a typical record, and its errors."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from leakscope import __version__, lasso, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.lasso.data_fit import DataFit
from leakscope.lasso.setting import (
    MECHANISM,
    NOISE,
    NOT_A_GUARANTEE,
    LassoSetting,
    provenance_of,
)
from leakscope.lasso.stability import stability_ratio
from leakscope.lasso.state_evolution import unstable_sentence
from leakscope.laws.pair import LawPair
from leakscope.planning.lasso_targets import (
    best_lasso,
    lasso_trade_off,
    noise_levels,
    optimal_noise,
    zero_vector_error,
)
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LassoCurve, LassoPlan
from leakscope.settings.plan import (
    LASSO_PLAN_DEFAULTS,
    LassoKnob,
    LassoMechanism,
    LassoNoise,
)

# From this share of the noise that it can bear on, a mean over datasets of some hundred
# coefficients is above the limit by 5% or more (benchmarks/lasso_near_edge.py).
_NEAR_EDGE = 0.7


def plan_lasso(
    setting: LassoSetting,
    *,
    delta: Sequence[float] = LASSO_PLAN_DEFAULTS.delta,
    fpr: Sequence[float] = LASSO_PLAN_DEFAULTS.fpr,
    optimize: bool = False,
    target_error: float | None = None,
    target_advantage: float | None = None,
    target_epsilon: float | None = None,
    curve: LassoKnob | Mapping[LassoKnob, Sequence[float]] | None = None,
    data: DataFit | None = None,
) -> LassoPlan:
    """How much a private LASSO of this setting gives away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.

    Parameters
    ----------
    setting
        One setting.  Beyond the stability edge the answer is ``stable`` false, with advice.
    delta
        At which the average epsilon is given.
    fpr
        False-positive rates at which the true-positive rate is given.
    optimize
        Find the noise nearest to the origin of (error, divergence), and the whole curve.
    target_error
        Find lambda, noise and mechanism with the least joint KL at this error or less.  Each answer
        says whether it does better than the zero vector, which gives nothing away.
    target_advantage, target_epsilon
        The same with the least error at this advantage, or at this average epsilon at the smallest
        ``delta``, or less.  One target can be asked for.
    curve
        Error and leakage along ``sigma_eta`` or ``lam``, or both for ``all``, over a range; or a
        mapping of the knob to the settings wanted.
    data
        What the setting was read off (`leakscope.lasso.fit_data_model`): its assumptions are told
        beside the plan's own, and those that fail are warned of.

    Returns
    -------
    LassoPlan
        What is infinite, or has no value where the setting is unstable, is ``None``.

    Raises
    ------
    InputError
        Where a number is impossible, or too large or too small to compute with.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.lasso import LassoSetting
    >>> plan = leakscope.plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2))
    >>> plan.stable, round(plan.generalization_error, 4), round(plan.cw_onavg_kl, 4)
    (True, 0.0971, 0.0453)
    >>> leakscope.plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=0.3, sigma_eta=0.3)).advice
    'Objective perturbation is unstable at alpha = 0.5, lam = 0.3, sigma_eta = 0.3: lam must be \
above 0.319, or sigma_eta below 0.2822.'
    """
    start = time.perf_counter()
    if setting.shape != ():
        raise InputError("plan_lasso takes one setting; lasso_trade_off takes many noises.")
    targets = {
        "error": target_error,
        "advantage": target_advantage,
        "epsilon": target_epsilon,
    }
    if sum(value is not None for value in targets.values()) > 1:
        names = " or ".join(f"target_{k}" for k, value in targets.items() if value is not None)
        raise InputError(f"{names}: one target can be met, not several.")
    told = setting.to_dict()
    require_reachable({k: v for k, v in told.items() if k not in ("mechanism", "noise")})
    require_reachable({f"target_{name}": value for name, value in targets.items()})
    if not delta:
        raise InputError("delta must have one number or more.")
    if not setting.sigma_xi**2 + setting.rho * setting.signal_variance > 0.0:
        raise InputError(
            "rho and sigma_xi are both 0, so every label is zero and there is nothing to learn; "
            "set one of them above 0."
        )
    found = _measured(setting, delta, fpr)
    if optimize:
        best = optimal_noise(setting)
        found["sigma_eta_opt"], found["optimum"] = best.sigma_eta, best
        found["curve"] = lasso_trade_off(setting).to_dict()
    if any(value is not None for value in targets.values()):
        found["targets"] = best_lasso(
            setting,
            error_at_most=target_error,
            advantage_at_most=target_advantage,
            epsilon_at_most=target_epsilon,
            delta=min(delta),
        )
    if curve is not None:
        found["curves"] = _curves(setting, curve)
    provenance = provenance_of(setting).to_dict()
    return LassoPlan(
        leakscope_version=__version__,
        settings={
            **told,
            **({} if data is None else {"data_scale": data.scale, "data_lam": data.lam}),
        },
        timing={"plan": time.perf_counter() - start},
        warnings=[*_warnings(setting, found), *_doubts(data)],
        mechanism=setting.mechanism,
        method=provenance["method"],
        assumptions=provenance.pop("assumptions")
        + [asdict(one) for one in (() if data is None else data.assumptions)],
        provenance=provenance,
        guarantee=NOT_A_GUARANTEE,
        zero_vector_error=zero_vector_error(setting),
        **found,
    )


def plan_lasso_of(
    dataset: Dataset,
    sigma_eta: float,
    *,
    lam: float | None = None,
    mechanism: LassoMechanism = MECHANISM,
    noise: LassoNoise = NOISE,
    **asked: Any,
) -> LassoPlan:
    """A plan whose alpha, rho, sigma_xi and signal are estimated from a table.

    Its columns and target are standardised; ``sigma_eta`` and ``lam`` are in those units, and
    without ``lam`` it is that of least estimated error.  The rest is as in `plan_lasso`.
    """
    if dataset.task != "regression" or dataset.target.ndim != 1:
        raise InputError(
            f"column {dataset.target_name!r} holds classes, and the theory is of a LASSO of "
            "numbers; name another target."
        )
    scaled = prepare(dataset)
    features = scaled.features - scaled.features.mean(axis=0)
    found = lasso.fit_data_model(features, scaled.target, random_state=0)
    setting = found.setting(sigma_eta, lam=lam, mechanism=mechanism, noise=noise)
    return plan_lasso(setting, data=found, **asked)


def _warnings(setting: LassoSetting, found: dict[str, Any]) -> list[str]:
    """Near the edge a typical dataset is as the limit says, and the mean over datasets is not."""
    share = found["stability_ratio"]
    if not found["stable"] or share < _NEAR_EDGE:
        return []
    return [
        f"The noise is {share:.0%} of the most that this setting can take. A typical fit follows "
        "the limit, but some are far off, so means over datasets have more error and leakage: at "
        "alpha = 0.5 by 3% at p = 800 with 70% of it, 18% with 83%, tenfold with 90%, falling as "
        "1/p."
    ]


def _doubts(data: DataFit | None) -> list[str]:
    """What the theory assumes and the data do not have."""
    failed = [] if data is None else [one for one in data.assumptions if one.holds is False]
    return [
        f"The data do not fit the theory: it assumes that {one.statement} ({one.evidence}). The "
        "numbers are those of data that do."
        for one in failed
    ]


def _curves(
    setting: LassoSetting, curve: LassoKnob | Mapping[LassoKnob, Sequence[float]]
) -> tuple[LassoCurve, ...]:
    """Error, joint divergence and advantage over each knob, where the setting is stable."""
    wanted: dict[LassoKnob, Sequence[float] | None]
    if curve == "all":
        # Without noise everything is given away, whatever lambda is.
        wanted = (
            {"sigma_eta": None, "lam": None} if setting.sigma_eta > 0.0 else {"sigma_eta": None}
        )
    else:
        wanted = {curve: None} if isinstance(curve, str) else {k: v for k, v in curve.items()}
    return tuple(_curve_over(setting, knob, given) for knob, given in wanted.items())


def _curve_over(
    setting: LassoSetting, knob: LassoKnob, given: Sequence[float] | None
) -> LassoCurve:
    if knob != "sigma_eta" and knob != "lam":
        raise InputError(f"a curve's knob must be sigma_eta or lam, but it is {knob!r}.")
    if knob == "lam" and not setting.sigma_eta > 0.0:
        raise InputError("A curve over lam needs sigma_eta above zero.")
    levels = _range(setting, knob) if given is None else np.asarray(given, dtype=np.float64)
    require_reachable({f"a setting of {knob}": float(x) for x in levels.ravel()})
    if not np.all(levels > 0.0):
        raise InputError(f"the settings of {knob} must be above zero.")
    rows: list[tuple[float | None, ...]] = []
    for level in levels:
        point = lasso.state_evolution(setting.change(**{knob: float(level)}), unstable="mark")
        if not bool(point.stable):
            rows.append((None, None, None))
            continue
        error = float(lasso.prediction_errors(point).generalization_error)
        pair = lasso.joint_law_pair(point)
        rows.append((error, float(lasso.onavg_kl(point)), _number(measures.advantage(pair))))
    error_, kl, advantage = (list(column) for column in zip(*rows, strict=True))
    return LassoCurve(
        knob=knob,
        settings=levels.tolist(),
        generalization_error=error_,
        joint_onavg_kl=kl,
        advantage=advantage,
    )


def _range(setting: LassoSetting, knob: str) -> FloatArray:
    """Where a curve goes when nobody says: the noise up to its edge, lambda over two decades."""
    if knob == "sigma_eta":
        levels = noise_levels(setting, 64)
        # At both ends the divergence, and next to the edge the error too, leave every chart.
        edge = (
            lasso.stability_edge(setting.alpha, setting.noise) > 0.0
            and setting.mechanism == "objective"
        )
        most = 0.97 * float(levels[-1]) if edge else 10.0 * math.sqrt(zero_vector_error(setting))
        return np.asarray(levels[(levels <= most) & (levels >= 0.01 * most)])
    scale = math.sqrt(zero_vector_error(setting))
    return np.geomspace(min(0.03 * scale, 0.5 * float(setting.lam)), 10.0 * scale, 40)


def _measured(
    setting: LassoSetting, delta: Sequence[float], fpr: Sequence[float]
) -> dict[str, Any]:
    """The numbers of the plan itself; None for all of them where the setting is unstable."""
    point = lasso.state_evolution(setting, unstable="mark")
    stable, noisy = bool(point.stable), bool(setting.sigma_eta > 0.0)
    found: dict[str, Any] = {
        "stable": stable,
        "stability_ratio": float(stability_ratio(setting)),
    }
    if not stable:
        names = (
            "generalization_error",
            "training_error",
            "error_ratio",
            "active_fraction",
            "overlap_error",
            "cw_onavg_kl",
            "cw_onavg_kl_paper",
            "joint_onavg_kl_limit",
            "auc",
            "advantage",
        )
        return {
            **found,
            **dict.fromkeys(names),
            "epsilon_at_delta": {f"{level:g}": np.inf for level in delta},
            "tpr_at_fpr": {f"{level:g}": None for level in fpr},
            "advice": unstable_sentence(setting, point.stable),
        }
    errors = lasso.prediction_errors(point)
    both = lasso.noise_overlap(point)
    pair = lasso.joint_law_pair(point) if noisy else None
    return {
        **found,
        "generalization_error": float(errors.generalization_error),
        "training_error": float(errors.training_error),
        "error_ratio": float(errors.ratio),
        "active_fraction": float(errors.active_fraction),
        "overlap_error": float(both.overlap_error),
        "cw_onavg_kl": None
        if setting.noise == "laplace" and setting.mechanism == "objective"
        else float(lasso.onavg_kl(both, "component_wise")),
        "cw_onavg_kl_paper": float(lasso.onavg_kl(both, "printed")),
        "joint_onavg_kl_limit": np.inf if pair is None else _number(measures.kl(pair)),
        "auc": 1.0 if pair is None else _number(measures.auc(pair)),
        "advantage": 1.0 if pair is None else _number(measures.advantage(pair)),
        "epsilon_at_delta": {f"{level:g}": _epsilon(pair, level) for level in delta},
        "tpr_at_fpr": {f"{level:g}": _tpr(pair, level) for level in fpr},
        "advice": None
        if noisy
        else "Without privacy noise the divergences are infinite; set sigma_eta above 0.",
    }


def _epsilon(pair: LawPair | None, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
    if pair is None:
        return np.inf
    # both records play the same part, so one direction is both
    return _number(measures.epsilon_at_delta(pair, delta, "member_to_nonmember"))


def _tpr(pair: LawPair | None, fpr: float) -> float:
    if not 0.0 <= fpr <= 1.0:
        raise InputError(f"fpr takes fractions from 0 to 1, but one is {fpr:g}.")
    return 1.0 if pair is None else _number(measures.tpr_at_fpr(pair, fpr))


def _number(value: FloatArray | measures.Estimate) -> float:
    return float(np.asarray(value))
