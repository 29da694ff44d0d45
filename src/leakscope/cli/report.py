"""``leakscope report``: a finished run as one HTML file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from leakscope.cli.options import Redact
from leakscope.cli.output import WITHOUT_DIGEST, say, show

SUMMARY = "A finished run as one HTML file."
EPILOG = "Example: leakscope report diabetes-run --output diabetes.html"


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run directory, or the JSON file of another verb such as measure or verify.",
            metavar="RUN",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it.  [default: report.html in the run directory]",
            metavar="FILE.html",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            help="A result of verify or measure of the same data, to set beside the audit; "
            "repeatable.  verify.json and measure.json in the run are always shown.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    redact: Redact = False,
    sacro: Annotated[
        Path | None,
        typer.Option(
            help="Write each record's exposure in the form of a SACRO-ML report too; with --redact "
            "its totals only.",
            metavar="FILE.json",
            show_default=False,
        ),
    ] = None,
) -> None:
    """One HTML file that works offline: verdict, charts, every record, assumptions, settings.

    It is as sensitive as the data, and only its owner may read it (mode 0600).
    """
    from leakscope.data.files import written_with
    from leakscope.reporting import report as write_report
    from leakscope.reporting.exports import sacro_text
    from leakscope.results.reader import has_digest, result_of

    text = "" if sacro is None else sacro_text(run, redact=redact)
    with nullcontext() if sacro is None else written_with(sacro, text.encode()):
        path = write_report(run, output, redact=redact, beside=beside or ())
    if run.is_dir() and not has_digest(run):
        say(WITHOUT_DIGEST)
    kind = "aggregates only" if redact else "as sensitive as the data"
    if run.is_file() and not result_of(run).from_data:
        kind = "of a design, no data"
    if sacro is not None:
        show(f"SACRO-ML report: {sacro}\n")
    show(f"Report: {path} ({path.stat().st_size / 1e6:.1f} MB, {kind})\n")
