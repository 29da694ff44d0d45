"""What a planned private LASSO would give away about a typical record, and its errors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from leakscope import __version__, lasso, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lasso import (
    NOT_A_GUARANTEE,
    Divergence,
    LassoSetting,
    SimulatedLasso,
    provenance_of,
    unstable_sentence,
)
from leakscope.laws import LawPair, Provenance
from leakscope.planning.lasso_curves import lasso_trade_off
from leakscope.planning.lasso_targets import best_lasso, optimal_noise
from leakscope.planning.reachable import require_reachable
from leakscope.results import LassoPlan
from leakscope.settings import LASSO_PLAN_DEFAULTS

_NOISES = 8


def require_labels(setting: LassoSetting) -> None:
    """Refuse a data model whose labels are all zero, about which there is nothing to say."""
    if not np.all(setting.sigma_xi**2 + setting.rho * setting.signal_variance > 0.0):
        raise InputError(
            "every label is zero, for there is neither signal nor noise (rho, sigma_xi)."
        )


def plan_lasso(
    setting: LassoSetting,
    *,
    pairs: int = 0,
    coefficients: int = LASSO_PLAN_DEFAULTS.coefficients,
    delta: Sequence[float] = (1e-3, 1e-5),
    optimize: bool = False,
    divergence: Divergence = LASSO_PLAN_DEFAULTS.divergence,
    target_kl: float | None = None,
    target_error: float | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> LassoPlan:
    """How much a private LASSO of this setting gives away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.

    Parameters
    ----------
    setting
        One setting.  Beyond the stability edge the answer is ``stable`` false, with advice.
    pairs
        Neighbouring pairs of datasets to simulate for the joint divergence; 0 for none.  About 20
        pairs share a dataset; 400 bring the standard error to about 5%.
    coefficients
        p of the simulated datasets.
    delta
        At which the average epsilon is given.
    optimize
        Find the noise nearest to the origin of (error, divergence), and the whole curve.
    divergence
        Of the optimum and the targets: ``joint``, ``component_wise`` or ``printed`` (Eqs. 63-64 as
        they stand).
    target_kl, target_error
        Find lambda, noise and mechanism with the least error at this KL or less, or with the least
        KL at this error or less; not both.
    random_state
        Of the simulated pairs.

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
    if pairs < 0:
        raise InputError(f"pairs must be zero or above, but it is {pairs}.")
    if target_kl is not None and target_error is not None:
        raise InputError("target_kl or target_error: one target can be met, not both.")
    told = setting.to_dict()
    require_reachable({k: v for k, v in told.items() if k != "mechanism"})
    require_reachable({"target_kl": target_kl, "target_error": target_error})
    found = _answer(setting, pairs, coefficients, delta, random_state)
    if optimize:
        best = optimal_noise(setting, divergence=divergence)
        found["sigma_eta_opt"], found["optimum"] = best.sigma_eta, best
        found["curve"] = lasso_trade_off(setting).to_dict()
    if target_kl is not None or target_error is not None:
        found["targets"] = best_lasso(
            setting, kl_at_most=target_kl, error_at_most=target_error, divergence=divergence
        )
    return LassoPlan(
        leakscope_version=__version__,
        settings={**told, "seed": random_state if isinstance(random_state, int) else None},
        timing={"plan": time.perf_counter() - start},
        warnings=[],
        **found,
    )


def _answer(
    setting: LassoSetting,
    pairs: int,
    coefficients: int,
    delta: Sequence[float],
    random_state: int | np.random.Generator | Key | None,
) -> dict[str, Any]:
    """The numbers of the plan itself, with where they come from."""
    require_labels(setting)
    point = lasso.state_evolution(setting, unstable="mark")
    ratio = float(lasso.stability_ratio(setting))
    provenance = provenance_of(setting)
    if not bool(point.stable):
        return _stored(
            setting=setting,
            stable=False,
            stability_ratio=ratio,
            generalization_error=None,
            training_error=None,
            error_ratio=None,
            active_fraction=None,
            overlap_error=None,
            cw_onavg_kl=None,
            cw_onavg_kl_paper=None,
            joint_onavg_kl_limit=None,
            simulated=None,
            auc=None,
            advantage=None,
            epsilon_at_delta=dict.fromkeys(delta, np.inf),
            worst_case_epsilon=None,
            advice=unstable_sentence(setting, point.stable),
            provenance=provenance,
        )
    errors = lasso.prediction_errors(point)
    both = lasso.noise_overlap(point)
    noisy = bool(setting.sigma_eta > 0.0)
    pair = lasso.joint_law_pair(point) if noisy else None
    advice = None if noisy else "Without privacy noise the divergences are infinite; add noise."
    return _stored(
        setting=setting,
        stable=True,
        stability_ratio=ratio,
        generalization_error=float(errors.generalization_error),
        training_error=float(errors.training_error),
        error_ratio=float(errors.ratio),
        active_fraction=float(errors.active_fraction),
        overlap_error=float(both.overlap_error),
        cw_onavg_kl=float(lasso.onavg_kl(both, "component_wise")),
        cw_onavg_kl_paper=float(lasso.onavg_kl(both, "printed")),
        joint_onavg_kl_limit=np.inf if pair is None else _number(measures.kl(pair)),
        simulated=_simulated(setting, pairs, coefficients, random_state),
        auc=1.0 if pair is None else _number(measures.auc(pair)),
        advantage=1.0 if pair is None else _number(measures.advantage(pair)),
        epsilon_at_delta={level: _epsilon(pair, level) for level in delta},
        worst_case_epsilon=None,
        advice=advice,
        provenance=provenance,
    )


def _epsilon(pair: LawPair | None, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
    if pair is None:
        return np.inf
    # both records play the same part, so one direction is both
    return _number(measures.epsilon_at_delta(pair, delta, "member_to_nonmember"))


def _number(value: FloatArray | measures.Estimate) -> float:
    return float(np.asarray(value))


def _stored(
    *,
    setting: LassoSetting,
    simulated: SimulatedLasso | None,
    epsilon_at_delta: dict[float, float],
    provenance: Provenance,
    **numbers: Any,
) -> dict[str, Any]:
    """As the plan holds it."""
    told = provenance.to_dict()
    joint = None if simulated is None else simulated.joint_kl
    return {
        **numbers,
        "mechanism": setting.mechanism,
        "method": told["method"],
        "assumptions": told.pop("assumptions"),
        "provenance": told,
        "joint_onavg_kl": None if joint is None else joint.value,
        "joint_onavg_kl_stderr": None if joint is None else joint.stderr,
        "simulated": None if simulated is None else simulated.to_dict(),
        "epsilon_at_delta": {f"{level:g}": value for level, value in epsilon_at_delta.items()},
        "guarantee": NOT_A_GUARANTEE,
    }


def _simulated(
    setting: LassoSetting,
    pairs: int,
    coefficients: int,
    random_state: int | np.random.Generator | Key | None,
) -> SimulatedLasso | None:
    if pairs == 0:
        return None
    # 20 pairs a dataset, but never fewer than 4 datasets for a standard error
    each = max(1, min(20, pairs // 4))
    return lasso.simulate_lasso(
        setting,
        coefficients=coefficients,
        datasets=max(2, -(-pairs // each)),
        noises=_NOISES,
        neighbours=each,
        random_state=random_state,
    )
