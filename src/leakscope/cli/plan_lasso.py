"""``leakscope plan lasso``: a private LASSO before fitting, and the noise nearest to the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    number,
    require_writable,
    show,
    standard_error,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.plan import LassoDesignSettings, LassoPlanSettings

if TYPE_CHECKING:
    from leakscope.results import LassoPlan
    from leakscope.results.plan import LassoChoice

SUMMARY = "LASSO with objective or output perturbation."
EPILOG = (
    "Example: leakscope plan lasso --alpha 0.5 --rho 0.1 --sigma-xi 0.1 --lam 1 --sigma-eta 0.2"
)

DESIGN = Options(LassoDesignSettings)


@with_options(design=DESIGN, settings=Options(LassoPlanSettings))
def lasso(
    *,
    design: LassoDesignSettings,
    settings: LassoPlanSettings,
    json_path: JsonPath = None,
) -> None:
    """How much a private LASSO would give away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.
    """
    targets = {"--target-kl": settings.target_kl, "--target-error": settings.target_error}
    for option, value in targets.items():
        if value is not None and not value > 0.0:
            raise InputError(f"{option} must be above zero, but it is {value:g}.")
    if None not in targets.values():
        raise InputError("Give one target: --target-kl or --target-error, not both.")
    require_writable(json_path)
    from leakscope.lasso import LassoSetting
    from leakscope.planning import plan_lasso
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in DESIGN.described()}
    require_reachable({option: value for option, value in told.items() if option != "--mechanism"})
    found = plan_lasso(
        LassoSetting(**dict(design)),
        pairs=settings.pairs,
        coefficients=settings.coefficients,
        optimize=settings.optimize,
        divergence=settings.divergence,
        target_kl=settings.target_kl,
        target_error=settings.target_error,
        random_state=settings.seed,
    )
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")


def _page(found: LassoPlan) -> str:
    told = found.settings
    parts = [
        f"LASSO with {found.mechanism} perturbation, alpha = {told['alpha']:g}, rho = "
        f"{told['rho']:g}, sigma_xi = {told['sigma_xi']:g}, lambda = {told['lam']:g}, sigma_eta = "
        f"{told['sigma_eta']:g}"
    ]
    if found.stable:
        parts.append(_measures(found))
    if found.advice is not None:
        parts.append(wrapped(found.advice))
    if found.optimum is not None:
        best = found.optimum
        rows = [
            ["sigma_eta", _text(best.sigma_eta)],
            ["generalisation error", _text(best.generalization_error)],
            [f"on-average KL, {best.divergence.replace('_', '-')}", _text(best.onavg_kl)],
        ]
        parts.append(table(["nearest to the origin", "value"], rows))
    if found.targets:
        parts.append(_targets_table(found.targets))
    parts.append(
        wrapped(
            "For Gaussian features and this data model, in the limit of many records; no fitted "
            f"model was examined. {found.guarantee}"
        )
    )
    return "\n\n".join(parts)


def _targets_table(targets: tuple[LassoChoice, ...]) -> str:
    rows = [
        [
            found.mechanism,
            *(
                [_text(v) for v in (found.lam, found.sigma_eta)]
                if found.met
                else ["none meets it", ""]
            ),
            _text(found.generalization_error),
            _text(found.onavg_kl),
        ]
        for found in targets
    ]
    title = targets[0].goal.replace("_", " ")
    return table([title, "lambda", "sigma_eta", "error", "KL"], rows)


def _measures(found: LassoPlan) -> str:
    rows = [
        ["generalisation error", _infinite(found.generalization_error), ""],
        ["training error", _infinite(found.training_error), ""],
        ["share of non-zero estimates", _infinite(found.active_fraction), ""],
        ["noise, of what it can bear", _infinite(found.stability_ratio), ""],
        ["overlap error, E12", _infinite(found.overlap_error), ""],
        ["on-average KL, joint", _infinite(found.joint_onavg_kl_limit), ""],
    ]
    if found.joint_onavg_kl is not None and found.joint_onavg_kl_stderr is not None:
        rows.append(
            [
                "on-average KL, joint, simulated",
                number(found.joint_onavg_kl),
                standard_error(found.joint_onavg_kl_stderr),
            ]
        )
    rows += [
        ["on-average KL, component-wise", _infinite(found.cw_onavg_kl), ""],
        ["on-average KL, as printed", _infinite(found.cw_onavg_kl_paper), ""],
        ["advantage", _infinite(found.advantage), ""],
        ["AUC", _infinite(found.auc), ""],
    ]
    rows += [
        [f"average epsilon at delta {level}", _infinite(value), ""]
        for level, value in found.epsilon_at_delta.items()
    ]
    rows.append(["worst-case epsilon", "none", ""])
    return table(["measure", "value", "std. error"], rows)


def _text(value: float | None) -> str:
    return "none" if value is None else number(value)


def _infinite(value: float | None) -> str:
    """A number of a stable setting, where none is missing: what is null is infinite."""
    return "infinite" if value is None else number(value)
