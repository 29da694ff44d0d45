"""``leakscope plan lasso``: a private LASSO before fitting, and the noise nearest to the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import JsonPath, one_of
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

if TYPE_CHECKING:
    from leakscope.results import LassoChoice, LassoPlan

SUMMARY = "LASSO with objective or output perturbation."
EPILOG = (
    "Example: leakscope plan lasso --alpha 0.5 --rho 0.1 --sigma-xi 0.1 --lam 1 --sigma-eta 0.2"
)

MECHANISMS = ("objective", "output")
DIVERGENCES = ("joint", "component_wise", "printed")


def lasso(
    alpha: Annotated[float, typer.Option(help="n/p, records a coefficient.", metavar="NUMBER")],
    rho: Annotated[
        float, typer.Option(help="Share of non-zero true coefficients.", metavar="FRACTION")
    ],
    sigma_xi: Annotated[
        float, typer.Option(help="Standard deviation of the label noise.", metavar="NUMBER")
    ],
    lam: Annotated[
        float,
        typer.Option(help="lambda in ||y - Xb||^2/2 + lambda ||b||_1.", metavar="NUMBER"),
    ],
    sigma_eta: Annotated[
        float, typer.Option(help="Standard deviation of the privacy noise.", metavar="NUMBER")
    ],
    mechanism: Annotated[
        str,
        typer.Option(
            help="objective (noise times b in the objective) or output (noise on b).",
            metavar="NAME",
        ),
    ] = "objective",
    signal_variance: Annotated[
        float, typer.Option(help="Variance of a non-zero coefficient.", metavar="NUMBER")
    ] = 1.0,
    pairs: Annotated[
        int,
        typer.Option(
            help="Neighbouring datasets to simulate for the joint divergence; 400 give about 5%.",
            metavar="COUNT",
        ),
    ] = 0,
    coefficients: Annotated[
        int, typer.Option(help="p of the simulated datasets.", metavar="COUNT")
    ] = 1000,
    optimize: Annotated[
        bool,
        typer.Option(
            "--optimize",
            help="Find the noise nearest to the origin of (error, divergence), and the curve.",
        ),
    ] = False,
    divergence: Annotated[
        str,
        typer.Option(
            help="For --optimize and targets: joint, component_wise or printed (Eqs. 63-64 as they "
            "stand).",
            metavar="NAME",
        ),
    ] = "joint",
    target_kl: Annotated[
        float | None,
        typer.Option(
            help="Find lambda, noise and mechanism with the least error at this KL or less.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(
            help="Find lambda, noise and mechanism with the least KL at this error or less.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    seed: Annotated[int, typer.Option(help="For the simulated pairs.", metavar="NUMBER")] = 0,
) -> None:
    """How much a private LASSO would give away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.
    """
    one_of(mechanism, MECHANISMS, "--mechanism")
    one_of(divergence, DIVERGENCES, "--divergence")
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    for option, value in (("--target-kl", target_kl), ("--target-error", target_error)):
        if value is not None and not value > 0.0:
            raise InputError(f"{option} must be above zero, but it is {value:g}.")
    if target_kl is not None and target_error is not None:
        raise InputError("Give one target: --target-kl or --target-error, not both.")
    require_writable(json_path)
    from leakscope.lasso import LassoSetting
    from leakscope.planning import plan_lasso, require_reachable

    require_reachable(
        {
            "--alpha": alpha,
            "--rho": rho,
            "--sigma-xi": sigma_xi,
            "--lam": lam,
            "--sigma-eta": sigma_eta,
            "--signal-variance": signal_variance,
        }
    )
    found = plan_lasso(
        LassoSetting(
            alpha,
            rho,
            sigma_xi,
            lam,
            sigma_eta,
            mechanism,  # type: ignore[arg-type]
            signal_variance,
        ),
        pairs=pairs,
        coefficients=coefficients,
        optimize=optimize,
        divergence=divergence,  # type: ignore[arg-type]
        target_kl=target_kl,
        target_error=target_error,
        random_state=seed,
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
