"""``leakscope verify``: a result against simulation or refits, law by law, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath, Options, with_options
from leakscope.cli.output import EXCEEDED, WITHOUT_DIGEST, emit, say, table, wrapped
from leakscope.settings.verify import VerifySettings

SUMMARY = "A result against simulation or refits, number by number."
EPILOG = "Example: leakscope verify audit.json --records 3"


@with_options(settings=Options(VerifySettings))
def verify(
    *,
    result: Annotated[
        Path,
        typer.Argument(help="A result.json, or the run directory that holds one.", metavar="PATH"),
    ],
    data: DataNow = None,
    settings: VerifySettings,
    json_path: JsonPath = None,
) -> None:
    """Check the numbers of a result by simulation, or by fitting models again.

    Every check gets a z-score and a verdict: agrees, differs or inconclusive.  The exit status is 3
    where one differs.  An audit of your model is compared with --models refits of it, an audit of a
    Gaussian process with random draws.
    """
    from leakscope.results.reader import has_digest
    from leakscope.verifying import verify as verify_result

    found = verify_result(result, data=data, **dict(settings))
    if result.is_dir() and not has_digest(result):
        say(WITHOUT_DIGEST)
    short = found.in_short()
    emit(found, json_path, f"{table(short.headings, short.rows)}\n\n{wrapped(found.verdict)}")
    if found.contradicts:
        raise typer.Exit(EXCEEDED)
