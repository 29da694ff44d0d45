"""Files to tables: one reader for each suffix, and nothing is ever unpickled.

Tables as text have a comma, a semicolon or a tab between the fields, with or without a line of
names.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.arrays import read_array, read_arrays
from leakscope.data.columns import listed
from leakscope.data.files import REMEDY, is_folder, reason, require_file
from leakscope.data.parquet import read_parquet, require_distinct
from leakscope.data.pictures import array_picture
from leakscope.errors import InputError, required
from leakscope.settings.data import DATA_DEFAULTS, Decimal

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
    """Read a file by its suffix into a table with text column names."""
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
            f"{path}: --read header and decimal are for text files ({', '.join(SEPARATORS)})."
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
        pyarrow = required("pyarrow", f"A table of {type(frame).__module__.split('.')[0]}")
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
    ".npy": lambda path: _frame(read_array(path), path),
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


# What stands between the fields; a .csv or .data file may have semicolons instead.
SEPARATORS = {".csv": ",", ".data": ",", ".tsv": "\t"}

# Before pandas 3 only this parser gives the number that is nearest to what is written.
_PRECISION: Literal["round_trip"] | None = "round_trip" if pd.__version__ < "3" else None

# A colour picture of 256 by 256 has 196,608.
MOST_COLUMNS = 200_000

# So many rows at most are looked at to tell whether the first line is one of them.
ROWS_LOOKED_AT = 10_000


@dataclass(frozen=True)
class Layout:
    """How a table is written: a line of names or none, what means empty, the decimal sign."""

    header: bool = DATA_DEFAULTS.header
    na_values: tuple[str, ...] = DATA_DEFAULTS.na_values
    decimal: Decimal = DATA_DEFAULTS.decimal


def require_width(path: Path, columns: int) -> None:
    """Refuse a table whose columns would take minutes to look at one by one."""
    if columns > MOST_COLUMNS:
        raise InputError(
            f"{path} has {columns} columns, more than the {MOST_COLUMNS} that are read; leave some "
            "out."
        )


def read_delimited(path: Path, layout: Layout) -> pd.DataFrame:
    """A text file as a table with text column names, ``x0`` and so on where it has none."""
    _require_text(path)
    first: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            separator = _separator(path, layout, stream)
            stream.seek(0)
            # Of a file without names the first line is one of the records.
            reader = csv.reader(stream, delimiter=separator, skipinitialspace=True)
            first = next((row for row in reader if row), [])
        require_width(path, len(first))
        if layout.header:
            _require_names(first, path)
            require_distinct(first, path)
        with warnings.catch_warnings():
            # Left to itself pandas takes the first column of rows that are longer than the heading
            # for row names, and every column moves.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table: pd.DataFrame = pd.read_csv(
                path,
                low_memory=False,
                float_precision=_PRECISION,
                **_options(separator, layout, len(first)),
            )
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read); save it as UTF-8 (CSV "
            "UTF-8 in a spreadsheet, or iconv -f latin1 -t utf-8 if it is Latin-1)."
        ) from error
    except pd.errors.ParserWarning:
        what = "the heading" if layout.header else "the first"
        raise InputError(
            f"{path}: the rows have more fields than {what}, which has {len(first)}; give "
            "every column a name."
        ) from None
    except InputError:
        raise
    except Exception as error:  # the parsers' own, and what pandas raises for odd values
        raise InputError(f"{path} is not a table ({reason(error)}).") from error
    if layout.header:
        _require_no_record(table, path)
    return table


def _options(separator: str, layout: Layout, columns: int) -> dict[str, Any]:
    """What pandas is told, whether numbers are read or what is written."""
    names = {} if layout.header else {"names": [f"x{place}" for place in range(columns)]}
    return {
        "sep": separator,
        "header": 0 if layout.header else None,
        "encoding": "utf-8-sig",
        "index_col": False,
        "skipinitialspace": True,
        "na_values": list(layout.na_values),
        "decimal": layout.decimal,
        **names,
    }


def _separator(path: Path, layout: Layout, lines: Iterable[str]) -> str:
    """By the suffix, but semicolons where the first line has more of them than commas."""
    line = next((row for row in lines if row.strip()), "")
    usual = SEPARATORS[path.suffix.lower()]
    if usual != ",":
        return usual
    semicolons, commas = line.count(";"), line.count(",")
    return ";" if semicolons > (0 if layout.decimal == "," else commas) else ","


def written_labels(
    table: pd.DataFrame, path: Path, names: Iterable[str], layout: Layout
) -> dict[str, pd.Series[Any]]:
    """Labels as a text file has them, where they are not plain whole numbers.

    As numbers 01 and 1 would be one label, and so would 1.1 and 1.10, and two ids of nineteen
    digits.  ``names`` are the columns of ids, groups and classes; a file that is no text has them
    as they were written.
    """
    asked = [name for name in names if pd.api.types.is_numeric_dtype(table[name])]
    if path.suffix.lower() not in SEPARATORS or is_folder(path) or not asked:
        return {}
    with path.open(encoding="utf-8-sig", newline="") as stream:
        separator = _separator(path, layout, stream)
    options = _options(separator, layout, table.shape[1])
    held = pd.read_csv(path, usecols=asked, dtype=str, **options)
    texts = {name: _stripped(held[name]) for name in asked}
    return {name: text for name, text in texts.items() if not _is_plain(table[name], text)}


def _stripped(column: pd.Series[Any]) -> pd.Series[Any]:
    """Without blanks around, unless blanks are all that tells two labels apart."""
    found = column.str.strip()
    return found if found.nunique() == column.nunique() else column


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
            "and would be taken for the names of the columns; put a line with names before it, or "
            "give --read header=no.",
            option="header",
        )


def _require_no_record(table: pd.DataFrame, path: Path) -> None:
    """Refuse names that are all found among the values of their own columns: a record."""
    rows = table.head(ROWS_LOOKED_AT)
    names = [str(name) for name in table.columns]
    words = [name for name in names if not _is_number(name)]
    if len(rows) < 2 or not words:
        return
    for place, name in enumerate(names):
        column = rows.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column):
            if not _is_number(name):
                return
        elif not (column.astype(str).str.strip() == name.strip()).any():
            return
    raise InputError(
        f"{path}: the first line ({listed(names, 4)}) looks like a record, because its words stand "
        "in other rows too, and would be taken for the names of columns; give --read header=no, or "
        "put a line with names before it.",
        option="header",
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
    place = 0
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                if b"\0" in block:
                    raise InputError(
                        f"{path} is not UTF-8 text: byte {place + block.index(0)} is zero; it may "
                        "be UTF-16, or no text at all."
                    )
                place += len(block)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error


def emptied(table: pd.DataFrame, na_values: Sequence[str]) -> pd.DataFrame:
    """A table of any kind with the values that mean empty taken out."""
    if not na_values:
        return table
    texts = {text.strip() for text in na_values}
    amounts = [float(text) for text in texts if _is_number(text)]
    found = table.copy(deep=False)
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_bool_dtype(column):
            continue
        if pd.api.types.is_numeric_dtype(column):
            gone = column.isin(amounts)
        else:
            gone = column.map(lambda value: isinstance(value, str) and value.strip() in texts)
        if gone.to_numpy(dtype=bool).any():
            found[name] = column.mask(gone.astype(bool))
    return found
