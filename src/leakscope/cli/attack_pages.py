"""What the attacks on a network share on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NETWORK = "The network: .safetensors, .npz or .json (arrays w, b, v)."

TrainingData = Annotated[
    Path | None,
    typer.Option(
        help="The training set, its last column a label of -1 or 1, to check the answer on.",
        metavar="FILE",
        show_default=False,
    ),
]
