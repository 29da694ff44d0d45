"""Files to tables: one reader for each suffix, and nothing is ever unpickled."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.arrays import read_array, read_arrays
from leakscope.data.arrow_tables import REMEDY, read_arrow, read_parquet, require_distinct
from leakscope.data.columns import listed
from leakscope.data.pictures import array_picture
from leakscope.data.reasons import reason
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

# Before pandas 3 only this parser gives the number that is nearest to what is written.
_PRECISION: Literal["round_trip"] | None = "round_trip" if pd.__version__ < "3" else None

# A colour picture of 256 by 256 has 196,608.
MOST_COLUMNS = 200_000


def read_table(path: Path) -> pd.DataFrame:
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
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: files that end in {path.suffix or 'nothing'} cannot be read; these can: "
            f"{', '.join(READERS)}."
        )
    table = reader(path)
    if table.shape[1] > MOST_COLUMNS:
        raise too_wide(path, table.shape[1])
    if table.shape[0] == 0:
        raise InputError(f"{path} holds no records.")
    return table


def too_wide(path: Path, columns: int) -> InputError:
    """What is said of a table whose columns would take minutes to look at one by one."""
    return InputError(
        f"{path} has {columns} columns, more than the {MOST_COLUMNS} that are read; leave some out."
    )


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


def _read_delimited(path: Path, separator: str) -> pd.DataFrame:
    _require_text(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = (row for row in csv.reader(stream, delimiter=separator) if row)
            header = next(lines, [])
        if len(header) > MOST_COLUMNS:
            raise too_wide(path, len(header))
        _require_names(header, path)
        require_distinct(header, path)
        with warnings.catch_warnings():
            # Left to itself pandas takes the first column of rows that are longer than the heading
            # for row names, and every column moves.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=separator,
                low_memory=False,
                encoding="utf-8-sig",
                index_col=False,
                float_precision=_PRECISION,
            )
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read)."
        ) from error
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path}: the rows have more fields than the heading, which has {len(header)}; give "
            "every column a name."
        ) from None
    except InputError:
        raise
    except Exception as error:  # the parsers' own, and what pandas raises for odd values
        raise InputError(f"{path} is not a table ({reason(error)}).") from error


def written_labels(
    table: pd.DataFrame, path: Path, names: Iterable[str]
) -> dict[str, pd.Series[Any]]:
    """Labels as a text file has them, where they are not plain whole numbers.

    As numbers 01 and 1 would be one label, and so would 1.1 and 1.10, and two ids of nineteen
    digits.  ``names`` are the columns of ids, groups and classes; a file that is no text has them
    as they were written.
    """
    separator = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    asked = [name for name in names if pd.api.types.is_numeric_dtype(table[name])]
    if separator is None or not asked:
        return {}
    held = pd.read_csv(
        path, sep=separator, encoding="utf-8-sig", index_col=False, usecols=asked, dtype=str
    )
    texts = {name: held[name].str.strip() for name in asked}
    return {name: text for name, text in texts.items() if not _is_plain(table[name], text)}


def _is_plain(column: pd.Series[Any], text: pd.Series[Any]) -> bool:
    """Whether every label is a whole number in the one way that a number is written."""
    if not pd.api.types.is_integer_dtype(column):
        return False
    return bool((text.to_numpy() == column.astype(str).to_numpy()).all())


def _require_names(header: Sequence[str], path: Path) -> None:
    """Refuse a first line of numbers, which is a record, unless it merely counts the columns."""
    if not header or not all(_is_number(cell) for cell in header):
        return
    cells = [cell.strip() for cell in header]
    counts = [str(number) for number in range(len(header) + 1)]
    if cells not in (counts[:-1], counts[1:]):
        raise InputError(
            f"{path}: the first line holds numbers only ({listed(cells, 4)}), "
            "and would be taken for the names of the columns; put a line with names before it."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_text(path: Path) -> None:
    """Refuse what holds a zero byte, which no text does and parsers pass over."""
    require_memory(2 * require_file(path), f"the table {path}", REMEDY)
    try:
        _require_no_zero(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error


def _require_no_zero(path: Path) -> None:
    for place, block in _blocks(path):
        if b"\0" in block:
            raise InputError(
                f"{path} is not UTF-8 text: byte {place + block.index(0)} is zero; it may be "
                "UTF-16, or no text at all."
            )


def _blocks(path: Path, size: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as stream:
        place = 0
        while block := stream.read(size):
            yield place, block
            place += len(block)


def _read_csv(path: Path) -> pd.DataFrame:
    return _read_delimited(path, ",")


def _read_tsv(path: Path) -> pd.DataFrame:
    return _read_delimited(path, "\t")


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
    ".csv": _read_csv,
    ".tsv": _read_tsv,
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
