"""``leakscope compose``: several releases about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    end_judged,
    in_options,
    say,
    show,
    table,
    wrapped,
)
from leakscope.errors import InputError
from leakscope.settings.compose import ComposeSettings

if TYPE_CHECKING:
    from leakscope.results import Composition

SUMMARY = "What several models about the same people give away together."
EPILOG = "Example: leakscope compose january june --budget 0.3"


@with_options(settings=Options(ComposeSettings))
def compose(
    *,
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories of leakscope audit, or their result.json, two or more.",
            metavar="RUN",
        ),
    ],
    top: Annotated[
        int, typer.Option(help="How many of the most exposed records to print.", metavar="COUNT")
    ] = 10,
    settings: ComposeSettings,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Where the data of each run are now, if not where its result says; repeatable, "
            "in the order of the runs.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """What whoever sees all the releases learns about each record.

    Models about the same people share most of their records, so that what varies by chance in one
    varies in the others too, and can be taken off.  Records are matched by their ids.
    """
    if top < 0:
        raise InputError(f"--top must be zero or more, but it is {top}.")
    from leakscope.composing import compose as compose_runs

    with in_options(compose):
        found = compose_runs(*runs, data=data or None, **dict(settings))
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found, top) + "\n")
    end_judged(*found.judged())


def _page(found: Composition, top: int) -> str:
    """The releases, the most exposed, the verdict."""
    releases = [
        [str(place), one.run, one.model, str(one.units), str(one.exposed)]
        for place, one in enumerate(found.releases, start=1)
    ]
    short = found.in_short(top)
    parts = [table(["release", "run", "model", "records", "0.1 or more"], releases)]
    if short.rows:
        parts.append(table(short.headings, short.rows))
    return "\n\n".join([*parts, wrapped(found.verdict)])
