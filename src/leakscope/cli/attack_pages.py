"""What the attacks on a network share on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    say,
    show,
)
from leakscope.errors import InputError, required

if TYPE_CHECKING:
    from leakscope.results import ResultDocument

Found = TypeVar("Found", bound="ResultDocument")

NETWORK = "The network: .safetensors, .npz or .json (arrays w, b, v), .pt or .pth."

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
