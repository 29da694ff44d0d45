"""``leakscope attack network``, and what the attacks on a network share on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    number,
    require_writable,
    say,
    show,
    table,
    wrapped,
)
from leakscope.settings.attack import NetworkSettings

if TYPE_CHECKING:
    from leakscope.results import NetworkAttack, ResultDocument

SUMMARY = "Train a network on records, and see what it gives away beside what it is good for."
EPILOG = "Example: leakscope attack network trained.csv --held-out others.csv"

Found = TypeVar("Found", bound="ResultDocument")

NETWORK = "The network: .safetensors, .onnx, .npz or .json (arrays w, b, v), .pt or .pth."

TrainingData = Annotated[
    Path | None,
    typer.Option(
        help="The training set, its last column a label of -1 or 1, to check the answer on.",
        metavar="FILE",
        show_default=False,
    ),
]


def attack_and_show(
    command: Callable[..., None],
    attack: Callable[[], Found],
    page: Callable[[Found], str],
    json_path: str | None,
) -> None:
    """Carry an attack out; its page for people, its result for machines."""
    with in_options(command):
        found = attack()
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    if json_path is not None:
        emit_json(found, json_path)
    if json_path != STDOUT:
        show(page(found) + "\n")


@with_options(settings=Options(NetworkSettings))
def network(
    *,
    data: Annotated[
        Path,
        typer.Argument(
            help="The records, their last column a label of -1 or 1.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    held_out: Annotated[
        Path | None,
        typer.Option(
            help="Records that are not trained on, with the same columns: for the accuracy, and as "
            "strangers for the attack.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    settings: NetworkSettings,
    save: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file for the network, which the other attacks read.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Train a two-layer ReLU network on records to its KKT point, and attack it.

    Says first whether theory covers these records (Theorem 4.2: all of them on the margin of every
    such network), then what training gives: accuracy on held-out records beside the attack on
    members.
    """
    require_writable(json_path, data, held_out)
    from leakscope.attacking import attack_network

    attack_and_show(
        network,
        lambda: attack_network(data, held_out=held_out, save=save, **dict(settings)),
        _network_page,
        json_path,
    )


def _network_page(found: NetworkAttack) -> str:
    bounds = found.applicability.bounds or {}
    conditions = found.conditions
    opening = f"{found.records} records, {found.features} features; {found.width} neurons"
    if found.margin is not None:
        opening += f", margin {found.margin:.6g}"
    rows = [
        ["records proven to lie on the margin", f"{bounds.get('points_on_margin')}"],
        ["records within 1% of it after training", _share(found.on_margin)],
        ["KKT residual", _number(found.applicability.kkt_residual)],
        ["Theorem C.1, 1 or more: means", _number(conditions.mean)],
        ["Theorem C.1, 1 or more: dimension", _number(conditions.dimension, "infinite")],
        ["Theorem C.1, 1 or more: width", _number(conditions.width)],
    ]
    if found.held_out is not None:
        rows += [
            [f"accuracy on {found.held_out} held-out records", _share(found.accuracy)],
            ["AUC of the attack on members", _number(found.auc)],
            ["TPR at 1% FPR", _number(found.tpr)],
        ]
    return "\n\n".join([opening, table(["", "value"], rows), wrapped(found.verdict)])


def _number(value: float | None, otherwise: str = "-") -> str:
    return otherwise if value is None else number(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
