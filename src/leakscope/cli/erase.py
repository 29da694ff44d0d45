"""``leakscope erase``: is a model the one trained without some records?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath
from leakscope.cli.output import (
    CANNOT_TELL,
    EXCEEDED,
    STDOUT,
    WITHOUT_DIGEST,
    emit,
    say,
    show,
    table,
    wrapped,
)

if TYPE_CHECKING:
    from leakscope.results import Erasure

SUMMARY = "Is a model the one trained without some records?  Or make that one."
EPILOG = "Example: leakscope erase ridge-run --record 169 --after without.skops"


def erase(
    run: Annotated[
        Path,
        typer.Argument(help="The audit of the model: its run directory, or result.json."),
    ],
    record: Annotated[
        list[str],
        typer.Option(
            help="A record to erase, by its id; of an audit of groups, a group.  Repeatable.",
            metavar="ID",
            show_default=False,
        ),
    ],
    after: Annotated[
        Path | None,
        typer.Option(
            help="The model that claims to have forgotten them, a .skops file.  [default: the "
            "exact fit without them is made]",
            metavar="FILE.skops",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            help="Of an audited training: the model with all records.",
            metavar="FILE.skops",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the exact fit without them.", metavar="FILE.skops", show_default=False
        ),
    ] = None,
    data: DataNow = None,
    json_path: JsonPath = None,
) -> None:
    """Check that a model has forgotten some records, or make the one that has.

    A fitted model is checked exactly: one that kept the records, dropped others, used another
    penalty or a scaler that saw them is told apart.  The exit status is 3 where the records are
    not erased, and 4 where that cannot be told.  `leakscope report` makes a page of the JSON.
    """
    from leakscope.erasing import erase as check
    from leakscope.results.reader import has_digest

    found = check(run, records=record, after=after, before=before, save=save, data=data)
    if run.is_dir() and not has_digest(run):
        say(WITHOUT_DIGEST)
    emit(found, json_path, _page(found))
    if json_path != STDOUT and save is not None:
        show(f"\nThe model without them: {save}\n")
    if found.met is not True:
        raise typer.Exit(CANNOT_TELL if found.met is None else EXCEEDED)


def _page(found: Erasure) -> str:
    """What a person sees: the verdict first."""
    short = found.in_short()
    parts = [wrapped(found.verdict), table(short.headings, short.rows) if short.rows else ""]
    for section in found.sections():
        parts += [wrapped(" ".join(section.paragraphs))]
        parts += [table(headings, rows) for headings, rows in section.tables]
    return "\n\n".join(filter(None, parts))
