"""``leakscope plan lasso``: a private LASSO before fitting, and the noise nearest to the origin."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import JsonPath, one_of, require_reachable
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    number,
    require_writable,
    standard_error,
    table,
)
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.lasso import LassoSetting
    from leakscope.planning import LassoAnswer, LassoChoice, LassoTradeOff
    from leakscope.results.plan import LassoPlanDocument

SUMMARY = "LASSO with objective or output perturbation."
EPILOG = (
    "Example: leakscope plan lasso --alpha 0.5 --rho 0.1 --sigma-xi 0.1 --lam 1 --sigma-eta 0.2"
)

MECHANISMS = ("objective", "output")
DIVERGENCES = ("joint", "component_wise", "printed")

_Optimum = tuple["LassoChoice", "LassoTradeOff"]


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
    require_reachable(
        alpha=alpha,
        rho=rho,
        sigma_xi=sigma_xi,
        lam=lam,
        sigma_eta=sigma_eta,
        signal_variance=signal_variance,
        target_kl=target_kl,
        target_error=target_error,
    )
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    if target_kl is not None and target_error is not None:
        raise InputError("Give one target: --target-kl or --target-error, not both.")
    for option, value in (("--target-kl", target_kl), ("--target-error", target_error)):
        if value is not None and not value > 0.0:
            raise InputError(f"{option} must be above zero, but it is {value:g}.")
    require_writable(json_path)
    start = time.perf_counter()
    from leakscope.lasso import LassoSetting

    setting = LassoSetting(
        alpha,
        rho,
        sigma_xi,
        lam,
        sigma_eta,
        mechanism,  # type: ignore[arg-type]
        signal_variance,
    )
    from leakscope.planning import plan_lasso

    answer = plan_lasso(setting, pairs=pairs, coefficients=coefficients, random_state=seed)
    optimum = _optimum(setting, divergence) if optimize else None
    targets: Sequence[LassoChoice] = ()
    if target_kl is not None or target_error is not None:
        from leakscope.planning import best_lasso

        targets = best_lasso(
            setting,
            kl_at_most=target_kl,
            error_at_most=target_error,
            divergence=divergence,  # type: ignore[arg-type]
        )
    if json_path is not None:
        spent = time.perf_counter() - start
        emit_json(_document(answer, optimum, targets, seed, spent), json_path)
    if json_path != STDOUT:
        sys.stdout.write(_page(answer, optimum, targets) + "\n")


def _optimum(setting: LassoSetting, divergence: Any) -> _Optimum:
    from leakscope.planning import lasso_trade_off, optimal_noise

    return optimal_noise(setting, divergence=divergence), lasso_trade_off(setting)


def _document(
    answer: LassoAnswer,
    optimum: _Optimum | None,
    targets: Sequence[LassoChoice],
    seed: int,
    seconds: float,
) -> LassoPlanDocument:
    from leakscope import __version__
    from leakscope.results.plan import LassoPlanDocument

    found = {}
    if optimum is not None:
        best, curve = optimum
        found = {
            "sigma_eta_opt": best.sigma_eta,
            "optimum": best.to_dict(),
            "curve": curve.to_dict(),
        }
    return LassoPlanDocument.model_validate(
        {
            "leakscope_version": __version__,
            "settings": {**answer.setting.to_dict(), "seed": seed},
            **answer.to_dict(),
            **found,
            "targets": [choice.to_dict() for choice in targets],
            "timing": {"plan": seconds},
            "warnings": [],
        }
    )


def _page(
    answer: LassoAnswer, optimum: _Optimum | None, targets: Sequence[LassoChoice] = ()
) -> str:
    setting = answer.setting
    lines = [
        f"LASSO with {setting.mechanism} perturbation, alpha = {float(setting.alpha):g}, rho = "
        f"{float(setting.rho):g}, sigma_xi = {float(setting.sigma_xi):g}, lambda = "
        f"{float(setting.lam):g}, sigma_eta = {float(setting.sigma_eta):g}",
        "",
    ]
    if answer.stable:
        lines.append(_measures(answer))
    if answer.advice is not None:
        lines += textwrap.wrap(answer.advice, width=92)
    if optimum is not None:
        best = optimum[0]
        rows = [
            ["sigma_eta", _text(best.sigma_eta)],
            ["generalisation error", _text(best.generalization_error)],
            [f"on-average KL, {best.divergence.replace('_', '-')}", _text(best.onavg_kl)],
        ]
        lines += ["", table(["nearest to the origin", "value"], rows)]
    if targets:
        lines += ["", _targets_table(targets)]
    words = (
        "For Gaussian features and this data model, in the limit of many records; no fitted model "
        f"was examined. {answer.to_dict()['guarantee']}"
    )
    lines += ["", *textwrap.wrap(words, width=92)]
    return "\n".join(lines)


def _targets_table(targets: Sequence[LassoChoice]) -> str:
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


def _measures(answer: LassoAnswer) -> str:
    rows = [
        ["generalisation error", _text(answer.generalization_error), ""],
        ["training error", _text(answer.training_error), ""],
        ["share of non-zero estimates", _text(answer.active_fraction), ""],
        ["noise, of what it can bear", _text(answer.stability_ratio), ""],
        ["overlap error, E12", _text(answer.overlap_error), ""],
        ["on-average KL, joint", _text(answer.joint_onavg_kl_limit), ""],
    ]
    if answer.joint_onavg_kl is not None and answer.joint_onavg_kl_stderr is not None:
        rows.append(
            [
                "on-average KL, joint, simulated",
                number(answer.joint_onavg_kl),
                standard_error(answer.joint_onavg_kl_stderr),
            ]
        )
    rows += [
        ["on-average KL, component-wise", _text(answer.cw_onavg_kl), ""],
        ["on-average KL, as printed", _text(answer.cw_onavg_kl_paper), ""],
        ["advantage", _text(answer.advantage), ""],
        ["AUC", _text(answer.auc), ""],
    ]
    rows += [
        [f"average epsilon at delta {level:g}", _text(value), ""]
        for level, value in answer.epsilon_at_delta.items()
    ]
    rows.append(["worst-case epsilon", "none", ""])
    return table(["measure", "value", "std. error"], rows)


def _text(value: float | None) -> str:
    return "none" if value is None else number(value)
