"""``leakscope attack membership``: which queries was this network trained on?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.options import JsonPath
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    require_writable,
    show,
    table,
    wrapped,
)
from leakscope.settings import MembershipSettings

if TYPE_CHECKING:
    from leakscope.results import MembershipAttack

SUMMARY = "Which of these queries was a network trained on?  From its answers alone."
EPILOG = "Example: leakscope attack membership network.npz --queries queries.csv"

SHOWN = 20


@with_options(settings=Options(MembershipSettings))
def membership(
    *,
    model: Annotated[
        Path,
        typer.Argument(
            help="The network: .safetensors, .onnx, .npz or .json (arrays w, b, v), .pt or .pth.",
            show_default=False,
        ),
    ],
    queries: Annotated[
        Path,
        typer.Option(
            help="The records in question, one row each, a column for each input.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    settings: MembershipSettings,
    leaked: Annotated[
        Path | None,
        typer.Option(
            help="Of leaked: those points.  [default: the queries]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The training set, its last column a label of -1 or 1, to check the theorem on.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Which of these queries was a network trained on?  From its answers alone.

    Training with the logistic or exponential loss ends near a KKT point of the maximum-margin
    problem.  In high dimension its answers have the size of the margin at every training record
    and are far smaller elsewhere.
    """
    require_writable(json_path, model, queries, leaked, data)
    from leakscope.attacking import attack_membership

    with in_options(membership):
        found = attack_membership(
            model,
            queries,
            leaked=leaked,
            data=data,
            **dict(settings),
        )
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(_page(found) + "\n")


def _page(document: MembershipAttack) -> str:
    network = document.network
    what = (
        f"margin {document.margin:.6g}"
        if document.margin is not None
        else f"margin above {document.threshold:.6g}"
    )
    opening = (
        f"{network.name}: {network.width} neurons, {network.features} inputs, {what} "
        f"({document.margin_from})"
    )
    order = sorted(range(len(document.scores)), key=lambda i: -(document.scores[i] or 0.0))
    rows = [
        [
            str(i),
            f"{document.answers[i]:.6g}",
            f"{(document.scores[i] or 0.0) + 0.0:.6g}",
            "yes" if document.member[i] else "no",
        ]
        for i in order[:SHOWN]
    ]
    parts = [opening, table(["query", "answer", "score", "member"], rows)]
    if len(order) > SHOWN:
        parts.append(f"{len(order) - SHOWN} more queries are in the --json answer.")
    parts.append(wrapped(document.verdict))
    return "\n\n".join(parts)
