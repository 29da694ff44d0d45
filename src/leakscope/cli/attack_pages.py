"""What the attacks on a network share on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from leakscope.cli.output import (
    STDOUT,
    emit_json,
    in_options,
    say,
    show,
)

if TYPE_CHECKING:
    from leakscope.results import ResultDocument

Found = TypeVar("Found", bound="ResultDocument")

NETWORK = "The network: .safetensors, .npz or .json (arrays w, b, v)."

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
    emit_json(found, json_path)
    if json_path != STDOUT:
        show(page(found) + "\n")
