"""Options and arguments that several verbs share, declared once, and how their texts are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.errors import InputError
from leakscope.settings import DataSettings, described

if TYPE_CHECKING:
    from leakscope.data import Dataset

# The dataset.
DatasetFile = Annotated[
    Path | None,
    typer.Argument(
        help="The dataset: .csv, .data, .tsv, .parquet, .arrow, .feather, .npy or .npz; a folder "
        "of pictures, one subfolder per class; or a Hugging Face dataset saved to disk.",
        metavar="FILE",
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

# Where the answer goes.


def _json_path(given: str | None) -> str | None:
    """Stdout by any of its names is ``-``: what is for people must not be mixed into it."""
    from leakscope.data import descriptor_of

    return "-" if given is not None and descriptor_of(Path(given)) == 1 else given


JsonPath = Annotated[
    str | None,
    typer.Option(
        "--json",
        callback=_json_path,
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
    data: DataSettings,
    file: Path | None,
    example: str | None,
    *,
    two_values_are_classes: bool = False,
) -> Dataset:
    """The dataset that the options name: a file, or one that scikit-learn ships."""
    from leakscope.data import Source

    if file is not None and example is not None:
        raise InputError("Give a file or --example, not both.")
    if example is not None:
        _require_unset(data, "target", "id_column", "task")
        _require_unset(data, "ignore", "group_column", "missing", "split")
        _require_unset(data, "header", "na_values", "decimal")
        return Source.of(data, example=example).read()
    if file is None:
        raise InputError(
            "Which dataset?  Name a file, or try one that is here already: --example diabetes."
        )
    source = Source.of(data, file=file)
    found = source.read(two_values_are_classes=two_values_are_classes)
    if len(found.record_ids) < 2:
        raise InputError(
            f"{file} gives one record; each is compared with the others, so at least two are "
            "needed."
        )
    return found


def _require_unset(data: DataSettings, *names: str) -> None:
    """Refuse settings that only a file has."""
    if any(getattr(data, name) != DataSettings.model_fields[name].default for name in names):
        *first, last = (described(DataSettings, name).typed for name in names)
        raise InputError(f"{', '.join(first)} and {last} belong to a file, not to --example.")


def one_of(value: str, choices: tuple[str, ...], option: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, but it is {value!r}.")


def numbers(text: str, option: str, *, whole: bool = False) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(int(entry) if whole else float(entry) for entry in text.split(","))
    except ValueError:
        kind, such = ("whole numbers", "256,256") if whole else ("numbers", "0.1,0.001")
        raise InputError(
            f"{option}: {text!r} is not a list of {kind} separated by commas, such as {such}."
        ) from None
