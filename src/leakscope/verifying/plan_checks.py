"""Checks of a plan's laws: whole matrices for linear, refits for lasso."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.simulated import simulate_lasso
from leakscope.linear.design import GaussianDesign, OutputNoise
from leakscope.planning.linear_plan import plan_linear
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LassoPlan, LinearPlan
from leakscope.running.cells import Cell
from leakscope.subjects.recipe import taken_from_result
from leakscope.verifying.checks import Check, mean_score

LASSO_COEFFICIENTS = 1000


@dataclass(frozen=True)
class Outcome:
    """The checks that were made, how, in words and as settings, and what to beware of."""

    checks: list[Check]
    how: str
    settings: dict[str, Any]
    agreement: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    borne_out: tuple[RecordId, ...] = ()


def by_matrices(document: LinearPlan, draws: int, seed: int) -> Outcome:
    """Advantages and error of ``plan linear`` against whole matrices, drawn and solved."""
    told = document.settings
    if "model" in told:
        raise InputError(
            "a plan of another world than Gaussian records is made of whole designs already; make "
            "it again with another seed."
        )
    with taken_from_result():
        given = {k: told[k] for k in ("n", "p", "dim", "sigma", "ridge")}
        require_reachable(given)
        design = GaussianDesign(**given)
        require_reachable({k: told["noise"][k] for k in ("sigma", "answers")})
        noise = OutputNoise(**told["noise"]) if told["noise"]["sigma"] > 0.0 else None
    # Another key than the plan's own simulation, which would agree with itself.
    found = plan_linear(
        design,
        method="simulated",
        noise=noise,
        draws=draws,
        random_state=Cell("verify", {}).key(seed),
    )
    checks = []
    for name in ("advantage", "advantage_label_known", "generalization_error"):
        predicted = getattr(document, name)
        own = getattr(document, f"{name}_stderr") or 0.0
        measured, stderr = getattr(found, name), getattr(found, f"{name}_stderr")
        value = float("nan") if predicted is None else float(predicted)
        error = float(np.hypot(own, stderr))
        checks.append(
            Check(
                law="typical record",
                quantity=name.replace("_", " "),
                predicted=value,
                measured=measured,
                stderr=error,
                resolution=max(0.02, 0.1 * abs(value)),
                score=mean_score(measured - value, error, draws - 1.0),
            )
        )
    how = f"{draws} whole matrices drawn and solved, one by one"
    return Outcome(checks, how, {"draws": draws})


def by_refits(document: LassoPlan, datasets: int, seed: int) -> Outcome:
    """Errors, overlap and divergence of ``plan lasso`` against refits on drawn datasets."""
    if not document.stable:
        raise InputError("the plan is of an unstable setting, for which no number can be verified.")
    beside = ("data_scale", "data_lam")
    told = {name: value for name, value in document.settings.items() if name not in beside}
    with taken_from_result():
        require_reachable({k: v for k, v in told.items() if not isinstance(v, str)})
        setting = LassoSetting(**told)
    found = simulate_lasso(
        setting,
        coefficients=LASSO_COEFFICIENTS,
        datasets=datasets,
        random_state=Cell("verify", {}).key(seed),
    )
    pairs = {
        "generalization error": (document.generalization_error, found.generalization_error),
        "training error": (document.training_error, found.training_error),
        "active fraction": (document.active_fraction, found.active_fraction),
        "overlap error": (document.overlap_error, found.overlap_error),
        "joint on-average KL": (document.joint_onavg_kl_limit, found.joint_kl),
    }
    checks = [
        Check(
            law="typical record",
            quantity=name,
            predicted=float("nan") if predicted is None else float(predicted),
            measured=measured.value,
            stderr=measured.stderr,
            resolution=0.1 * abs(predicted or 0.0),
            score=mean_score(measured.value - (predicted or 0.0), measured.stderr, datasets - 1.0),
        )
        for name, (predicted, measured) in pairs.items()
    ]
    how = (
        f"{datasets} datasets of {LASSO_COEFFICIENTS} coefficients, refitted under noise and with "
        "records replaced; the plan is the limit of many coefficients, from which finite ones "
        "differ a little"
    )
    return Outcome(checks, how, {"datasets": datasets, "coefficients": LASSO_COEFFICIENTS})
