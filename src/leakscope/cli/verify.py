"""``leakscope verify``: a result against simulation or retraining, law by law, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import DataNow, JsonPath, RunDirectory
from leakscope.cli.output import (
    STDOUT,
    cells_bar,
    emit_json,
    require_writable,
    show,
    table,
    wrapped,
)
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.results import Verification

SUMMARY = "A result against simulation or retraining, law by law."
EPILOG = "Example: leakscope verify audit.json --records 3"

# What the status says to a pipeline: a law differs from what was measured.
DIFFERS = 3

# No layer that is trained here is wider.
WIDEST = 100_000


def verify(
    result: Annotated[
        Path,
        typer.Argument(help="A result.json, or the run directory that holds one.", metavar="PATH"),
    ],
    data: DataNow = None,
    records: Annotated[
        int, typer.Option(help="Of an audit: how many records to check.", metavar="COUNT")
    ] = 10,
    draws: Annotated[
        int | None,
        typer.Option(
            help="Random draws of each law.  [default: 4000 for an audit, 200 matrices for a plan]",
            metavar="COUNT",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="Of an audit: retrain with your own function, train(X, y, seed) -> predictor.",
            metavar="MODULE:FUNCTION",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Of an audit: retrain a dense network with these widths, such as 256,256.",
            metavar="WIDTHS",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Of --network.", metavar="COUNT")] = 100,
    learning_rate: Annotated[float, typer.Option(help="Of --network.", metavar="NUMBER")] = 1e-3,
    models: Annotated[
        int, typer.Option(help="At most this many models with and without a record.")
    ] = 64,
    workers: Annotated[
        int | None,
        typer.Option(help="Retrain in this many processes.", metavar="COUNT", show_default=False),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Retrain on the Dask cluster at this address.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    run_dir: RunDirectory = None,
    json_path: JsonPath = None,
    seed: Annotated[int, typer.Option(help="Of draws and retraining.", metavar="NUMBER")] = 0,
) -> None:
    """Check the laws behind a result: by drawing from them anew, or by retraining models.

    For every law checked a z-score and a verdict: agrees, differs, could not be told.  Exit status
    3 where one differs.  With --train or --network the audit is compared with models that are
    really trained, with and without a record; the run resumes when started again with --run-dir.
    """
    if train is not None and network is not None:
        raise InputError("Give --train or --network, not both.")
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    require_writable(json_path, result, data)
    from leakscope.verifying import Retraining
    from leakscope.verifying import verify as verify_result

    retraining = None
    if train is not None or network is not None:
        retraining = Retraining(
            train=train,
            widths=None if network is None else _widths(network),
            epochs=epochs,
            learning_rate=learning_rate,
            models=models,
            workers=workers,
            scheduler=scheduler,
            run_dir=run_dir,
        )
    with cells_bar() as on_progress:
        found = verify_result(
            result,
            data=data,
            records=records,
            draws=draws,
            retraining=retraining,
            seed=seed,
            on_progress=on_progress,
        )
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")
    if found.differs:
        raise typer.Exit(DIFFERS)


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(width) for width in text.split(","))
    except ValueError:
        raise InputError(f"--network needs widths, such as 256,256, but it is {text!r}.") from None
    if max(widths) > WIDEST:
        raise InputError(f"--network takes widths up to {WIDEST}, and one is larger.")
    return widths


def _page(found: Verification) -> str:
    """What a person sees."""
    rows = [
        [
            check.law,
            check.quantity,
            _number(check.predicted),
            _number(check.measured),
            _number(check.stderr, 2),
            "-" if check.z is None else f"{check.z:+.2f}",
            check.verdict,
        ]
        for check in found.checks
    ]
    headings = ["law", "quantity", "predicted", "measured", "std. error", "z", "verdict"]
    return "\n".join([table(headings, rows), "", wrapped(found.verdict)])


def _number(value: float | None, digits: int = 5) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
