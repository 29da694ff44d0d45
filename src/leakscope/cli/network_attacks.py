"""``leakscope attack network``, and what the attacks on a network share on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    number,
    say,
    show,
    table,
    wrapped,
)
from leakscope.errors import InputError, required
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


PictureFile = Annotated[
    Path | None,
    typer.Option(
        help="A picture of what was found: a .png or .svg file.",
        metavar="FILE",
        show_default=False,
    ),
]


def attack_and_show(
    command: Callable[..., None],
    attack: Callable[[], Found],
    page: Callable[[Found], str],
    json_path: str | None,
    picture: Path | None = None,
    data: Path | None = None,
) -> None:
    """Carry an attack out; its page for people, its result for machines, a picture of it."""
    if picture is not None:
        _require_picture(picture)
    with in_options(command):
        found = attack()
    if picture is not None:
        _draw(found, picture, data)
    for sentence in found.warnings:
        say(f"warning: {sentence}")
    emit_json(found, json_path)
    if json_path != STDOUT:
        show(page(found) + "\n")


def _require_picture(path: Path) -> None:
    """Refuse, before any work is done, a file that no picture can go to."""
    from leakscope.data.files import require_new_file

    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--picture must be a .png or .svg file, but it is {path}.")
    require_new_file(path, "--picture needs a file name")
    required("vl_convert", "--picture")


def _draw(found: ResultDocument, path: Path, data: Path | None) -> None:
    from leakscope.attacking.network_inputs import training_rows
    from leakscope.data.files import write_file
    from leakscope.reporting.charts import attack_picture
    from leakscope.results import MembershipAttack, ReconstructAttack

    if not isinstance(found, (MembershipAttack, ReconstructAttack)):
        raise InputError("--picture is for attacks on networks; leave it out with --pool.")
    records = None if data is None else training_rows(data, found.network.features)
    form: Literal["png", "svg"] = "svg" if path.suffix.lower() == ".svg" else "png"
    write_file(path, attack_picture(found, records=records, form=form))


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
