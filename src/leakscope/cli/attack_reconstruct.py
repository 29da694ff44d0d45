"""``leakscope attack reconstruct``: from a network's file to candidates for training records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.network_attacks import NETWORK, PictureFile, TrainingData, attack_and_show
from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import table, wrapped
from leakscope.errors import InputError
from leakscope.settings.attack import FitReconstructSettings, ReconstructSettings

if TYPE_CHECKING:
    from leakscope.results import FitReconstructAttack, ReconstructAttack

SUMMARY = "Reconstruct training records from a trained model."

SHOWN = 6  # coordinates of a point on the page
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
    picture: PictureFile = None,
    json_path: JsonPath = None,
) -> None:
    """Reconstruct training records from a trained model.

    A fitted linear model (.skops): with --known the missing record, by the optimum's own equation;
    with --data alone every record in turn, each by somebody who knows all others.

    A two-layer network: it must be near a KKT point of the maximum-margin problem, where training
    with the logistic or exponential loss ends.  With one input, certified candidates are training
    records if it is one; with several inputs there is no theorem.
    """
    if settings.black_box and settings.margin is None:
        raise InputError("--black-box needs --margin: the weights are what tells the margin.")
    from leakscope.attacking import attack_reconstruct

    attack_and_show(
        reconstruct,
        lambda: attack_reconstruct(model, known=known, settings=fit, data=data, **dict(settings)),
        _shown,
        json_path,
        picture,
        data,
    )


def _shown(found: ReconstructAttack | FitReconstructAttack) -> str:
    if found.kind == "attack_reconstruct_model":
        short = found.in_short()
        return "\n\n".join([wrapped(found.verdict), table(short.headings, short.rows)])
    return _points_page(found) if found.form == "kkt" else _page(found)


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


def _points_page(document: ReconstructAttack) -> str:
    """The candidates as a table, with the verdict."""
    network = document.network
    known = "" if document.margin_known else " (estimated)"
    opening = (
        f"{network.name}: {network.width} neurons, {document.distinct} of them distinct, "
        f"{network.features} inputs, margin {document.margin:.6g}{known}, "
        f"{len(document.candidates)} candidates"
    )
    rows = []
    for one in document.candidates:
        assert isinstance(one.x, list)
        text = ", ".join(f"{value:.4g}" for value in one.x[:SHOWN])
        rows.append(
            [
                text + (", ..." if len(one.x) > SHOWN else ""),
                f"{one.label:+d}",
                f"{one.multiplier:.3g}",
                f"{one.margin_gap:+.1%}",
                "-" if one.agreement is None else f"{one.agreement:.2f}",
            ]
        )
    parts = [opening]
    if rows:
        parts.append(table(["x", "label", "multiplier", "off the margin", "agreement"], rows))
    if document.recall is not None:
        near = "within a tenth of the distance to the nearest other record"
        parts.append(wrapped(f"{_recovered(document)}, {near}"))
    parts.append(wrapped(document.verdict))
    return "\n\n".join(parts)
