"""``leakscope verify``: a result against simulation or retraining, law by law, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath, Options, with_options
from leakscope.cli.output import EXCEEDED, WITHOUT_DIGEST, emit, say, steps, table, wrapped
from leakscope.errors import InputError
from leakscope.settings.verify import RetrainingSettings, VerifySettings

SUMMARY = "A result against simulation or retraining, number by number."
EPILOG = "Example: leakscope verify audit.json --records 3"


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
    from leakscope.results.reader import has_digest
    from leakscope.verifying import Retraining
    from leakscope.verifying import verify as verify_result

    again = None
    if retraining.train is not None or retraining.widths is not None:
        again = Retraining(**dict(retraining))
    with steps() as progress:
        found = verify_result(
            result,
            data=data,
            **dict(settings),
            retraining=again,
            models=retraining.models,
            on_progress=progress.counted,
        )
    if result.is_dir() and not has_digest(result):
        say(WITHOUT_DIGEST)
    short = found.in_short()
    emit(found, json_path, f"{table(short.headings, short.rows)}\n\n{wrapped(found.verdict)}")
    if found.contradicts:
        raise typer.Exit(EXCEEDED)
