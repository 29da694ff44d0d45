"""``leakscope verify``: a result against simulation or retraining, law by law, in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    WITHOUT_DIGEST,
    emit_json,
    say,
    show,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.verify import RetrainingSettings, VerifySettings

if TYPE_CHECKING:
    from leakscope.results import Verification

SUMMARY = "A result against simulation or retraining, number by number."
EPILOG = "Example: leakscope verify audit.json --records 3"

# What the status says to a pipeline: a number differs from what was measured.
DIFFERS = 3


@with_options(settings=Options(VerifySettings), retraining=Options(RetrainingSettings))
def verify(
    *,
    result: Annotated[
        Path,
        typer.Argument(help="A result.json, or the run directory that holds one.", metavar="PATH"),
    ],
    data: DataNow = None,
    settings: VerifySettings,
    retraining: RetrainingSettings,
    json_path: JsonPath = None,
) -> None:
    """Check the numbers of a result by simulation, or by training models again.

    Every check gets a z-score and a verdict: agrees, differs or inconclusive.  The exit status is 3
    where one differs.  An audit of your model is compared with --models shadow models of it; an
    audit of a Gaussian process by random draws or, with --train or --network, with models that are
    trained with and without a record.
    """
    if retraining.train is not None and retraining.widths is not None:
        raise InputError("Give --train or --network, not both.")
    from rich.console import Console
    from rich.progress import Progress

    from leakscope.results.reader import has_digest
    from leakscope.verifying import Retraining
    from leakscope.verifying import verify as verify_result

    again = None
    if retraining.train is not None or retraining.widths is not None:
        again = Retraining(**dict(retraining))
    with Progress(
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task("models", total=None)
        found = verify_result(
            result,
            data=data,
            **dict(settings),
            retraining=again,
            models=retraining.models,
            on_progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    if result.is_dir() and not has_digest(result):
        say(WITHOUT_DIGEST)
    emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")
    if found.contradicts:
        raise typer.Exit(DIFFERS)


def _page(found: Verification) -> str:
    """What a person sees."""
    short = found.in_short()
    return "\n".join([table(short.headings, short.rows), "", wrapped(found.verdict)])
