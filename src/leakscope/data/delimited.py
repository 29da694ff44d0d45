"""Tables as text, comma, semicolon or tab between the fields, with or without a line of names."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from leakscope._numerics.memory import require_memory
from leakscope.data.arrow_tables import REMEDY, require_distinct
from leakscope.data.columns import listed, shown
from leakscope.data.reasons import reason
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS, Decimal

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
    """How a table is written: a line of names or none, what means empty, the decimal sign.

    Examples
    --------
    >>> from leakscope.data import Layout
    >>> Layout(na_values=("?",)).header
    True
    """

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
            separator = _separator(path, layout, next((row for row in stream if row.strip()), ""))
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
            f"{path} is not UTF-8 text (byte {error.start} cannot be read)."
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
    if layout.decimal == ",":
        _require_no_points(table, path)
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


def _separator(path: Path, layout: Layout, line: str) -> str:
    """By the suffix, but semicolons where the first line has more of them than commas."""
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
    if path.suffix.lower() not in SEPARATORS or not asked:
        return {}
    with path.open(encoding="utf-8-sig", newline="") as stream:
        separator = _separator(path, layout, next((row for row in stream if row.strip()), ""))
    options = _options(separator, layout, table.shape[1])
    held = pd.read_csv(path, usecols=asked, dtype=str, **options)
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
            "and would be taken for the names of the columns; put a line with names before it, or "
            "give --no-header."
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
        "in other rows too, and would be taken for the names of the columns; give --no-header, or "
        "put a line with names before it."
    )


def _require_no_points(table: pd.DataFrame, path: Path) -> None:
    """Refuse numbers with points where commas are the decimal sign: 1.234 may be a thousand."""
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column):
            continue
        present = column.dropna().astype(str)
        pointed = present.str.fullmatch(r"\s*[+-]?\d+\.\d+\s*").to_numpy(dtype=bool)
        if len(pointed) and pointed.mean() >= 0.5:
            row = present.index[int(np.argmax(pointed))]
            raise InputError(
                f"{path}: column {str(name)!r} holds {shown(column[row])} in row {row} (rows count "
                "from 0), with a point, though --decimal is a comma; write all numbers in one way."
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


# Signs that stand where a value is not known; "-" does, unless "+" is there too.
MARKS = re.compile(r"\?+|-+|\.+|\*+|#+|#N/A!?|n\.\s?a\.?|-\.-|\(\s*\)", re.IGNORECASE)


def marks_in(column: pd.Series[Any]) -> dict[str, int]:
    """Signs such as ``?`` that usually mean "not known", and how often a text column has them.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.data import marks_in
    >>> marks_in(pd.Series(["Private", "?", "?", "State-gov"]))
    {'?': 2}
    >>> marks_in(pd.Series(["+", "-", "+"]))
    {}
    """
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return {}
    counts = column.dropna().map(lambda value: value.strip() if isinstance(value, str) else "")
    found = {str(k): int(v) for k, v in counts.value_counts().items() if MARKS.fullmatch(str(k))}
    if (counts == "+").any():
        found.pop("-", None)
    return found


def refuse_marks(table: pd.DataFrame, names: Sequence[str], where: str) -> None:
    """Refuse signs that stand for values not known: they are no category, and no number."""
    for name in names:
        found = marks_in(table[name])
        if not found:
            continue
        mark = max(found, key=lambda text: found[text])
        texts = table[name].map(lambda value: value.strip() if isinstance(value, str) else "")
        row = table.index[int(np.argmax((texts == mark).to_numpy()))]
        times = "once" if found[mark] == 1 else f"{found[mark]} times"
        raise InputError(
            f"{where}: column {name!r} holds {mark!r} {times}, first in row {row} (rows count "
            f"from 0), which usually means that the value is not known; give --na-values {mark!r} "
            "to read it as empty, or --na-values NA if it is a category of its own."
        )
