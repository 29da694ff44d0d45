"""``leakscope plan linear``: least squares or ridge before training, and what meets a target."""

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
from leakscope.settings.plan import LinearDesignSettings, LinearPlanSettings

SUMMARY = "Least squares or ridge on Gaussian records."
EPILOG = "Example: leakscope plan linear --n 100 --p 400 --dim 3000 --sigma 1"

DESIGN = Options(LinearDesignSettings)


@with_options(design=DESIGN, settings=Options(LinearPlanSettings))
def linear(
    *,
    design: LinearDesignSettings,
    settings: LinearPlanSettings,
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
    """How much least squares or ridge would give away about a typical record, and its error.

    Records and coefficients are Gaussian.  Two attackers: one sees x0 and the prediction, one the
    record's label too.
    """
    if settings.curve is None and settings.settings is not None:
        raise InputError("--settings belongs to --curve: name the knob, such as --curve p.")
    outside = [level for level in settings.fpr if not 0.0 <= level <= 1.0]
    if outside:
        raise InputError(f"--fpr takes fractions from 0 to 1, but one is {outside[0]:g}.")
    along: Any = settings.curve
    if settings.curve is not None and settings.settings is not None:
        along = {settings.curve: settings.settings}
    if along is None and html is not None:
        along = "all"
    if html is not None:
        from leakscope.reporting.writing import require_report_path

        require_report_path(html)
    from leakscope.linear import GaussianDesign, OutputNoise
    from leakscope.planning import plan_linear
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in DESIGN.described()}
    # The ridge has a bound of its own.
    require_reachable({option: value for option, value in told.items() if option != "--ridge"})
    require_reachable({"--target-advantage": settings.target_advantage})
    noise = OutputNoise(design.output_noise, answers=design.answers, memoised=design.memoise)
    with in_options(linear):
        found = plan_linear(
            GaussianDesign(design.n, design.p, design.dim, design.sigma, ridge=design.ridge),
            method=settings.method,
            noise=noise if design.output_noise > 0.0 else None,
            fpr=settings.fpr,
            draws=settings.draws,
            target_advantage=settings.target_advantage,
            attacker=settings.attacker,
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
