"""The one error a user is meant to see: a sentence, and exit status 2.

A library that this installation was made without is such an error too (:func:`required`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["InputError", "Where", "required"]


@dataclass(frozen=True)
class Where:
    """The place that an error is about, as far as it is known; rows count from 0."""

    file: str | None = None
    column: str | None = None
    row: int | None = None


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence that says what to do.

    Raised for every kind of bad input: a file that is not what it claims to be, a row with a NaN,
    a negative standard deviation, a size that does not fit in memory.  The command line prints
    the message on stderr and exits with status 2.

    Only ``what`` is always there.  Whoever tells the user in other words, such as the page, takes
    the fields; nobody need take a sentence apart.

    Parameters
    ----------
    what
        The whole sentence; where ``remedy`` is given, its first part, without a full stop.
    where
        The file, the column and the row that it is about.
    remedy
        What to do, as a clause: the sentence is then ``what; remedy.``
    option
        The setting that it is about, by its name in the settings (``na_values``, not
        ``--na-values``).  A sentence may name an option as it is typed; Python's parameter has the
        same name, without the dashes.

    Examples
    --------
    >>> from leakscope.errors import InputError
    >>> error = InputError("column 'age' is empty in row 3", remedy="fill it in", option="missing")
    >>> print(error)
    column 'age' is empty in row 3; fill it in.
    >>> error.what, error.option
    ("column 'age' is empty in row 3", 'missing')
    """

    def __init__(
        self,
        what: str = "",
        *,
        where: Where | None = None,
        remedy: str | None = None,
        option: str | None = None,
    ) -> None:
        super().__init__(what if remedy is None else f"{what}; {remedy}.")
        self.what = what
        self.where = where
        self.remedy = remedy
        self.option = option


# Libraries that an installation may lack: what each is called, and the extra that brings it.
EXTRAS: Mapping[str, tuple[str, str]] = {
    "PIL": ("Pillow", "images"),
    "clarabel": ("Clarabel", "conic"),
    "distributed": ("Dask", "dask"),
    "h11": ("h11", "web"),
    "jax": ("JAX", "jax"),
    "optax": ("optax", "jax"),
    "pyarrow": ("pyarrow", "parquet"),
    "safetensors": ("safetensors", "models"),
    "skops": ("skops", "skops"),
    "starlette": ("Starlette", "web"),
    "torch": ("PyTorch", "torch"),
    "uvicorn": ("uvicorn", "web"),
    "vl_convert": ("vl-convert", "images"),
}


def required(library: str, what: str) -> Any:
    """Import a library that not every installation has.

    Parameters
    ----------
    library
        One of ``EXTRAS``.
    what
        What cannot be had without it: the subject of the sentence.

    Raises
    ------
    InputError
        Where the library is not installed; it names the extra.  One that is installed and broken
        keeps its own error.

    Examples
    --------
    >>> from leakscope.errors import required
    >>> required("skops", "A .skops file").__name__
    'skops'
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
    name, extra = EXTRAS[library]
    raise InputError(
        f"{what} needs {name}, which is not installed: pip install 'leakscope[{extra}]'."
    )
