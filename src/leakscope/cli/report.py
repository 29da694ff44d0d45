"""``leakscope report``: a finished run as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

SUMMARY = "A finished run as one HTML file."
EPILOG = "Example: leakscope report diabetes-run --output diabetes.html"


def report(
    run: Annotated[Path, typer.Argument(help="A run directory of leakscope audit.", metavar="RUN")],
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it.  [default: report.html in the run directory]",
            metavar="FILE.html",
            show_default=False,
        ),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Aggregates only: no ids, no rows of single records, no pictures.  [default "
            "file: report-redacted.html]",
        ),
    ] = False,
) -> None:
    """One HTML file that works offline: verdict, charts, every record, assumptions, settings.

    It is as sensitive as the data, and only its owner may read it (mode 0600).
    """
    from leakscope.reporting.writing import require_report_path, write_report
    from leakscope.results import read_run

    if output is not None:
        require_report_path(output)
    path = write_report(read_run(run), output, redact=redact)
    size = path.stat().st_size / 1e6
    kind = "aggregates only" if redact else "as sensitive as the data"
    sys.stdout.write(f"Report: {path} ({size:.1f} MB, {kind})\n")
