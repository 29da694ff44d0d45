"""Checks of a plan's laws: whole matrices for linear, refits for lasso."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.simulated import simulate_lasso
from leakscope.linear.design import GaussianDesign, OutputNoise
from leakscope.planning.linear_plan import plan_linear
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LassoPlan, LinearPlan
from leakscope.subjects.recipe import taken_from_result
from leakscope.verifying.checks import NumberCheck, Outcome, mean_score

# Many enough for the limit that a plan is of, few enough to be fitted some dozens of times.
LASSO_COEFFICIENTS = 1000

# Another key than the plan's own simulation, which would agree with itself.
AFRESH = 4051


def by_matrices(document: LinearPlan, draws: int, seed: int) -> Outcome:
    """Advantages and error of ``plan linear`` against whole matrices, drawn and solved."""
    settings = document.settings
    if "model" in settings:
        raise InputError(
            "a plan of another world than Gaussian records is made of whole designs already; make "
            "it again with another seed."
        )
    with taken_from_result():
        given = {k: settings[k] for k in ("n", "p", "dim", "sigma", "ridge")}
        require_reachable(given)
        design = GaussianDesign(**given)
        require_reachable({k: settings["noise"][k] for k in ("sigma", "answers")})
        noise = OutputNoise(**settings["noise"]) if settings["noise"]["sigma"] > 0.0 else None
    key = Key(seed).child(AFRESH)
    drawn = plan_linear(design, method="simulated", noise=noise, draws=draws, random_state=key)
    checks = []
    for name in ("advantage", "advantage_label_known", "generalization_error"):
        own_error = getattr(document, f"{name}_stderr") or 0.0
        error = float(np.hypot(own_error, getattr(drawn, f"{name}_stderr")))
        values = getattr(document, name), getattr(drawn, name)
        checks.append(_check(name.replace("_", " "), *values, error, draws, 0.02))
    return Outcome(checks, f"{draws} whole matrices drawn and solved", {"draws": draws})


def by_refits(document: LassoPlan, datasets: int, seed: int) -> Outcome:
    """Errors, overlap and divergence of ``plan lasso`` against refits on drawn datasets."""
    if not document.stable:
        raise InputError("the plan is of an unstable setting, for which no number can be verified.")
    beside = ("data_scale", "data_lam")
    given = {name: value for name, value in document.settings.items() if name not in beside}
    with taken_from_result():
        require_reachable({k: v for k, v in given.items() if not isinstance(v, str)})
        setting = LassoSetting(**given)
    refits = simulate_lasso(
        setting,
        coefficients=LASSO_COEFFICIENTS,
        datasets=datasets,
        random_state=Key(seed).child(AFRESH),
    )
    pairs = {
        "generalization error": (document.generalization_error, refits.generalization_error),
        "training error": (document.training_error, refits.training_error),
        "active fraction": (document.active_fraction, refits.active_fraction),
        "overlap error": (document.overlap_error, refits.overlap_error),
        "joint on-average KL": (document.joint_onavg_kl_limit, refits.joint_kl),
    }
    checks = [
        _check(name, predicted, measured.value, measured.stderr, datasets, 0.0)
        for name, (predicted, measured) in pairs.items()
    ]
    how = (
        f"{datasets} datasets of {LASSO_COEFFICIENTS} coefficients, refitted under noise and with "
        "records replaced; the plan is the limit of many coefficients, from which finite ones "
        "differ a little"
    )
    return Outcome(checks, how, {"datasets": datasets, "coefficients": LASSO_COEFFICIENTS})


def _check(
    quantity: str, predicted: Any, measured: float, error: float, draws: int, finest: float
) -> NumberCheck:
    """A number known to within a tenth of itself, or ``finest``, says something."""
    value = float("nan") if predicted is None else float(predicted)
    resolution = max(finest, 0.1 * abs(value))
    score = mean_score(measured - value, error, draws - 1.0)
    return NumberCheck("typical record", quantity, value, measured, error, resolution, score)
