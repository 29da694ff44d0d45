"""Files to tables: one reader for each suffix, and nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.arrays import read_array, read_arrays
from leakscope.data.arrow_tables import read_arrow, read_parquet, require_distinct
from leakscope.data.delimited import (
    SEPARATORS,
    Layout,
    emptied,
    read_delimited,
    require_width,
)
from leakscope.data.pictures import array_picture
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError

# Names under which an .npz archive may hold its parts.
FEATURE_KEYS = ("X", "x", "features", "data")
TARGET_KEYS = ("y", "Y", "target", "targets", "labels")
ID_KEYS = ("record_id", "record_ids", "ids", "id")

# The name a target gets where the file gives it none.
UNNAMED_TARGET = "y"
UNNAMED_ID = "record_id"

# Where a table says that its rows are pictures: height, width and, in colour, 3.
PICTURE = "picture"


def read_table(path: Path, layout: Layout | None = None) -> pd.DataFrame:
    """Read a file by its suffix into a table with text column names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("x,y\\n1,2\\n")
    ...     data.read_table(file).columns.tolist()
    ['x', 'y']
    """
    require_file(path)
    layout, suffix = layout or Layout(), path.suffix.lower()
    if suffix in SEPARATORS:
        table = read_delimited(path, layout)
    elif suffix not in READERS:
        raise InputError(
            f"{path}: files that end in {path.suffix or 'nothing'} cannot be read; these can: "
            f"{', '.join((*SEPARATORS, *READERS))}."
        )
    elif layout != Layout(na_values=layout.na_values):
        raise InputError(
            f"{path}: --no-header and --decimal belong to text files ({', '.join(SEPARATORS)})."
        )
    else:
        table = READERS[suffix](path)
    require_width(path, table.shape[1])
    table = emptied(table, layout.na_values)
    if table.shape[0] == 0:
        raise InputError(f"{path} holds no records.")
    return table


def table_from_frame(frame: Any) -> tuple[pd.DataFrame, pd.Index[Any] | None]:
    """A pandas, polars or Arrow table as a pandas one, and its index where that is not a count."""
    if isinstance(frame, pd.DataFrame):
        table = frame
    elif hasattr(frame, "__arrow_c_stream__"):
        import pyarrow

        table = pyarrow.table(frame).to_pandas(date_as_object=False)
    elif hasattr(frame, "to_pandas"):
        table = frame.to_pandas()
    else:
        raise InputError(
            f"a pandas, polars or Arrow table is needed, but this is a {type(frame).__name__}."
        )
    if table.shape[0] == 0:
        raise InputError("the frame holds no records.")
    if table.columns.nlevels > 1 or table.index.nlevels > 1:
        raise InputError("the frame's columns and index must have one level each.")
    counts = table.index.equals(pd.RangeIndex(len(table)))
    index = None if counts else table.index
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    require_distinct(list(table.columns), "the frame")
    return table.reset_index(drop=True), index


def _read_npy(path: Path) -> pd.DataFrame:
    return _frame(read_array(path), path)


def _read_npz(path: Path) -> pd.DataFrame:
    arrays = read_arrays(path)
    features = _first_present(arrays, FEATURE_KEYS)
    if features is None:
        if len(arrays) != 1:
            raise InputError(
                f"{path} holds {', '.join(arrays) or 'nothing'}; call the features X and the "
                "target y."
            )
        features = next(iter(arrays.values()))
    table = _frame(features.reshape(len(features), -1) if features.ndim > 2 else features, path)
    shape = array_picture(features.shape[1:])
    if shape is not None:
        table.attrs[PICTURE] = shape
    for name, keys in ((UNNAMED_TARGET, TARGET_KEYS), (UNNAMED_ID, ID_KEYS)):
        column = _first_present(arrays, keys)
        if column is None:
            continue
        if column.ndim != 1 or len(column) != len(table):
            raise InputError(
                f"{path}: {name} has shape {column.shape}, but there are {len(table)} records; "
                f"it must be ({len(table)},)."
            )
        table[name] = column
    return table


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


def _frame(array: NDArray[np.generic], path: Path) -> pd.DataFrame:
    if array.ndim != 2:
        raise InputError(
            f"{path}: the array must have two dimensions, records by columns, but its shape is "
            f"{array.shape}."
        )
    return pd.DataFrame(array, columns=[f"x{position}" for position in range(array.shape[1])])


def _first_present(
    arrays: dict[str, NDArray[np.generic]], names: tuple[str, ...]
) -> NDArray[np.generic] | None:
    return next((arrays[name] for name in names if name in arrays), None)
