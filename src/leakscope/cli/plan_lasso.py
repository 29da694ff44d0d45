"""``leakscope plan lasso``: a private LASSO before fitting, and the noise nearest to the origin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    in_options,
    show,
    told_page,
    with_json,
    write_page,
)
from leakscope.errors import InputError
from leakscope.settings.plan import LassoDesignSettings, LassoPlanSettings

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
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a page with the curves over every knob.",
            metavar="FILE.html",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """How much a private LASSO would give away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.
    """
    targets = {
        f"--target-{name}": getattr(settings, f"target_{name}")
        for name in ("kl", "error", "advantage", "epsilon")
    }
    for option, value in targets.items():
        if value is not None and not value > 0.0:
            raise InputError(f"{option} must be above zero, but it is {value:g}.")
    given = [option for option, value in targets.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"Give one target: {' or '.join(given)}, not several.")
    if settings.curve is None and settings.settings is not None:
        raise InputError("--settings belongs to --curve: name the knob, such as --curve lam.")
    along: Any = settings.curve
    if settings.curve is not None and settings.settings is not None:
        along = {settings.curve: settings.settings}
    if along is None and html is not None:
        along = "all"
    if html is not None:
        from leakscope.reporting.writing import require_report_path

        require_report_path(html)
    from leakscope.lasso import LassoSetting
    from leakscope.planning import plan_lasso
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in DESIGN.described()}
    require_reachable({option: value for option, value in told.items() if option != "--mechanism"})
    with in_options(lasso):
        found = plan_lasso(
            LassoSetting(**dict(design)),
            pairs=settings.pairs,
            coefficients=settings.coefficients,
            delta=settings.delta,
            fpr=settings.fpr,
            optimize=settings.optimize or html is not None,
            divergence=settings.divergence,
            target_kl=settings.target_kl,
            target_error=settings.target_error,
            target_advantage=settings.target_advantage,
            target_epsilon=settings.target_epsilon,
            curve=along,
            random_state=settings.seed,
        )
    with with_json(found, json_path):
        if html is not None:
            write_page(found, html)
    if json_path != STDOUT:
        show(told_page(found) + "\n")
        if html is not None:
            show(f"\nPage: {html} ({html.stat().st_size / 1e6:.1f} MB)\n")
