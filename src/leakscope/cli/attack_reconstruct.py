"""``leakscope attack reconstruct``: from a network's file to candidates for training records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.attack_pages import NETWORK, TrainingData
from leakscope.cli.options import JsonPath, Options, in_options, with_options
from leakscope.cli.output import emit, table, wrapped
from leakscope.errors import InputError
from leakscope.settings.attack import FitReconstructSettings, ReconstructSettings

if TYPE_CHECKING:
    from leakscope.results import FitReconstructAttack, ReconstructAttack

SUMMARY = "Reconstruct training records from a trained model."

EPILOG = "Example: leakscope attack reconstruct network.json --margin 1.0"


@with_options(settings=Options(ReconstructSettings), fit=Options(FitReconstructSettings))
def reconstruct(
    *,
    model: Annotated[
        Path,
        typer.Argument(help=f"{NETWORK}  Or a fitted linear model, .skops.", show_default=False),
    ],
    settings: ReconstructSettings,
    known: Annotated[
        Path | None,
        typer.Option(
            help="Of a fitted model: the records that the attacker knows, all but the missing one.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    fit: FitReconstructSettings,
    data: TrainingData = None,
    json_path: JsonPath = None,
) -> None:
    """Reconstruct training records from a trained model.

    A fitted linear model (.skops): with --known the missing record, by the optimum's own equation;
    with --data alone every record in turn, each by somebody who knows all others.

    A two-layer network of one input: it must be near a KKT point of the maximum-margin problem,
    where training with the logistic or exponential loss ends; certified candidates are then
    training records.
    """
    if settings.black_box and settings.margin is None:
        raise InputError("--black-box needs --margin: the weights are what tells the margin.")
    from leakscope.attacking import attack_reconstruct

    with in_options(reconstruct):
        found = attack_reconstruct(model, known=known, settings=fit, data=data, **dict(settings))
    emit(found, json_path, _shown(found))


def _shown(found: ReconstructAttack | FitReconstructAttack) -> str:
    if found.kind == "attack_reconstruct_model":
        short = found.in_short()
        return "\n\n".join([wrapped(found.verdict), table(short.headings, short.rows)])
    return _page(found)


def _page(document: ReconstructAttack) -> str:
    network = document.network
    opening = (
        f"{network.name}: {network.width} neurons, margin {document.margin:.6g}, "
        f"{len(document.candidates)} candidates"
    )
    rows = [
        [f"{one.x:.10g}", f"{one.label:+d}", one.theorem, "yes" if one.certified else "no"]
        for one in document.candidates
    ]
    parts = [opening]
    if rows:
        parts.append(table(["x", "label", "theorem", "certified"], rows))
    if document.recall is not None:
        parts.append(_recovered(document))
    parts.append(wrapped(document.verdict))
    return "\n\n".join(parts)


def _recovered(document: ReconstructAttack) -> str:
    """Precision, and recall over all records; over those on the margin where it differs."""
    precision = "-" if document.precision is None else f"{document.precision:.3f}"
    held = document.margin_recall
    beside = "" if held in (None, document.recall) else f" ({held:.3f} of those on the margin)"
    return f"precision {precision}, recall {document.recall:.3f}{beside} on the training set given"
