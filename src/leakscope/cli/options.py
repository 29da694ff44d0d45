"""Options and arguments that several verbs share, declared once, and how their texts are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.data import Dataset

# The dataset.
DatasetFile = Annotated[
    Path | None,
    typer.Argument(
        help="The dataset: .csv, .tsv, .parquet, .arrow, .feather, .npy or .npz; a folder of "
        "pictures, one subfolder a class; or a Hugging Face dataset saved to disk.",
        show_default=False,
    ),
]
Example = Annotated[
    str | None,
    typer.Option(
        help="A dataset that scikit-learn ships, instead of FILE: diabetes, breast_cancer, "
        "digits, iris or wine.",
        metavar="NAME",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="The target column, by name or position (0 is the first, -1 the last).",
        metavar="COLUMN",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="The column with each record's own id.  [default: row numbers from 0]",
        metavar="COLUMN",
        show_default=False,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="regression or classification.  [default: the example's own; regression for FILE, "
        "but classification for a Hugging Face class label]",
        metavar="TASK",
        show_default=False,
    ),
]
Scaling = Annotated[
    str,
    typer.Option(
        help="standard: features and a regression target to mean 0 and variance 1; none: as "
        "they are.",
        metavar="HOW",
    ),
]

Missing = Annotated[
    str,
    typer.Option(
        help="Empty values: error; drop such records; impute the median or most frequent value.",
        metavar="HOW",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        help="A column that is no feature; give it again for more.",
        metavar="COLUMN",
        show_default=False,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        help="The unit is the group, such as the person: all rows with the same value of this "
        "column leave together.  It is no feature.",
        metavar="COLUMN",
        show_default=False,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Exposure by the values of this column.  It stays a feature, unless it is the "
        "target or in --ignore.",
        metavar="COLUMN",
        show_default=False,
    ),
]

Split = Annotated[
    str | None,
    typer.Option(
        help="The split of a Hugging Face dataset that has several.",
        metavar="NAME",
        show_default=False,
    ),
]

# The kernel.
KernelName = Annotated[
    str,
    typer.Option(
        help="The covariance function: rbf, matern, linear or nngp (a wide network).",
        metavar="NAME",
    ),
]
LengthScale = Annotated[
    float | None,
    typer.Option(
        help="Of rbf and matern.  [default: the median distance between records]",
        metavar="NUMBER",
        show_default=False,
    ),
]
KernelVariance = Annotated[
    float | None,
    typer.Option(
        help="Of rbf and matern: the kernel's value at distance zero.  [default: 1]",
        metavar="NUMBER",
        show_default=False,
    ),
]
Smoothness = Annotated[
    float | None,
    typer.Option(help="Of matern: its nu.  [default: 1.5]", metavar="NUMBER", show_default=False),
]
Depth = Annotated[
    int | None,
    typer.Option(help="Of nngp: hidden layers.  [default: 3]", metavar="COUNT", show_default=False),
]
Activation = Annotated[
    str | None,
    typer.Option(
        help="Of nngp: relu, gelu, erf, tanh, ...  [default: relu]",
        metavar="NAME",
        show_default=False,
    ),
]
WeightVariance = Annotated[
    float | None,
    typer.Option(help="Of nngp (default 2) and linear (1).", metavar="NUMBER", show_default=False),
]
BiasVariance = Annotated[
    float | None,
    typer.Option(
        help="Of nngp and linear.  [default: 0 for nngp, 1 for linear]",
        metavar="NUMBER",
        show_default=False,
    ),
]

# What is measured, and where the answer goes.
FprList = Annotated[
    str | None,
    typer.Option(
        help="False-positive rates, fractions, with commas between.  "
        "[default: 0.1,0.01,0.001,1e-05]",
        metavar="LIST",
        show_default=False,
    ),
]
DeltaList = Annotated[
    str | None,
    typer.Option(
        help="Deltas for this pair's epsilon, with commas between.  [default: 1e-05]",
        metavar="LIST",
        show_default=False,
    ),
]
JsonPath = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="Write the whole result as JSON; - for stdout, which then holds nothing else.",
        metavar="PATH",
        show_default=False,
    ),
]
DataNow = Annotated[
    Path | None,
    typer.Option(
        help="Where the data are now, if not where the result says.",
        metavar="FILE",
        show_default=False,
    ),
]
RunDirectory = Annotated[
    Path | None,
    typer.Option(
        help="Where to put the run.  [default: leakscope-runs/TIME-VERB-NAME]",
        metavar="DIR",
        show_default=False,
    ),
]


def dataset_from(
    file: Path | None,
    example: str | None,
    target: str | None,
    id_column: str | None,
    task: str | None,
    *,
    missing: str = "error",
    ignore: list[str] | None = None,
    group: str | None = None,
    by: str | None = None,
    split: str | None = None,
) -> Dataset:
    """The dataset that the options name: a file, or one that scikit-learn ships."""
    from leakscope.data import read_dataset, read_example

    one_of(missing, ("error", "drop", "impute"), "--missing")

    if task is not None:
        one_of(task, ("regression", "classification"), "--task")
    if file is not None and example is not None:
        raise InputError("Give a file or --example, not both.")
    if example is not None:
        if target is not None or id_column is not None or task is not None:
            raise InputError("--target, --id and --task belong to a file, not to --example.")
        if ignore or group is not None or missing != "error" or split is not None:
            raise InputError(
                "--ignore, --group, --missing and --split belong to a file, not to --example."
            )
        return read_example(example, by=by)
    if file is None:
        raise InputError(
            "Which dataset?  Name a file, or try one that is here already: --example diabetes."
        )
    found = read_dataset(
        file,
        target=target,
        id_column=id_column,
        task=None if task is None else _task(task),
        missing="drop" if missing == "drop" else "impute" if missing == "impute" else "error",
        ignore=tuple(ignore or ()),
        group_column=group,
        by=by,
        split=split,
    )
    if len(found.record_ids) < 2:
        raise InputError(
            f"{file} gives one record; each is compared with the others, so at least two are "
            "needed."
        )
    return found


def _task(name: str) -> Literal["regression", "classification"]:
    return "classification" if name == "classification" else "regression"


def one_of(value: str, choices: tuple[str, ...], option: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, but it is {value!r}.")


# Beyond these no design is meant, and squares and quadratures leave float64.
LEAST, LARGEST = 1e-12, 1e12


def require_reachable(*, most: float = LARGEST, **values: float | None) -> None:
    """Refuse a number that is neither 0 nor from 1e-12 to ``most`` in size, by its option."""
    for name, value in values.items():
        # What is no number at all is told by the design itself.
        if value is None or value == 0.0 or value != value or abs(value) == math.inf:
            continue
        if LEAST <= abs(value) <= most:
            continue
        option = f"--{name.replace('_', '-')}"
        told = f"{value:g}" if isinstance(value, float) else f"a number of {len(str(value))} digits"
        raise InputError(
            f"{option} must be 0, or from {LEAST:g} to {most:g} in size, but it is {told}."
        )


def numbers(text: str | None, option: str) -> tuple[float, ...] | None:
    """Numbers with commas between; ``None`` where the option was left out."""
    if text is None:
        return None
    try:
        return tuple(float(entry) for entry in text.split(","))
    except ValueError:
        raise InputError(
            f"{option}: {text!r} is not a list of numbers with commas between, such as 0.1,0.001."
        ) from None


def fractions(text: str | None, option: str) -> tuple[float, ...] | None:
    """Numbers from 0 to 1 with commas between; ``None`` where the option was left out."""
    found = numbers(text, option)
    outside = [entry for entry in found or () if not 0.0 <= entry <= 1.0]
    if outside:
        raise InputError(f"{option} takes fractions from 0 to 1, but one is {outside[0]:g}.")
    return found
