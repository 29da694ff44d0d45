"""What a table's columns are: which one is the target, the id, the group, and what each holds.

A column is numbers, booleans or categories; what is none of them, or cannot be told, is refused in
a sentence that names the column, the row (counted from 0 in the file) and what to do.

``60 kg``, ``5%``, ``$5``, ``1,5`` and ``2024-03-01`` are quantities.  Taken for categories, each
value would be a feature of its own and every record would look exposed; so many of them are
refused, in a sentence that says how to write them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import InputError, Where

Kind = Literal["number", "boolean", "category"]

# More values than this, or more than this share of as many values as records, are no categories:
# they are ids, names or free text.
MOST_CATEGORIES = 50
MOST_DISTINCT = 0.75

# So many texts that begin with a number may be categories (40-49, 10th); more are quantities.
MOST_NUMBERED = 10
_BEGINS = re.compile(r"\W*\d")

# A column of text in which at least this share are numbers is a column of numbers with mistakes.
NUMBERS_FROM = 0.5

# Of a column of names: of people who have several rows each, or of records.
PERSON_REMEDY = (
    "name it with --group if rows of one value are one person's, or leave it out with --ignore"
)
ID_REMEDY = "name it with --id if it is each record's own id, or leave it out with --ignore"

_AS_DAYS = "turn them into numbers, such as days since a date"


def column_name(columns: Sequence[str], wanted: str, role: str, where: str) -> str:
    """A column by its name, or by its position (0 is the first, -1 the last)."""
    if wanted in columns:
        return wanted
    try:
        return columns[int(wanted)]
    except (ValueError, IndexError):
        raise InputError(
            f"{where} has no column {shown(wanted)} for the {role}; the columns are "
            f"{listed(columns, 40)}."
        ) from None


def listed(columns: Sequence[str], most: int = 12) -> str:
    """Names with commas between, long ones cut; the first few of many."""
    names = ", ".join(n if len(n) <= 60 else f"{n[:60]}…" for n in columns[:most])
    return names if len(columns) <= most else f"{names} and {len(columns) - most} more"


def kind_of(column: pd.Series[Any], name: str, where: str) -> Kind:
    """What a feature column holds, or a sentence where it holds nothing that can be used."""
    if bool(column.isna().all()):
        raise InputError(
            f"{where}: column {name!r} is empty in every row",
            where=Where(where, name),
            remedy="leave it out with --ignore",
            option="ignore",
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _category(column, name, where)
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if holds_dates(column):
        raise InputError(
            f"{where}: column {name!r} holds dates or times",
            where=Where(where, name),
            remedy=f"{_AS_DAYS}, or leave the column out with --ignore",
            option="ignore",
        )
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    present = column.dropna()
    if any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in present):
        raise InputError(
            f"{where}: column {name!r} holds lists or tables",
            where=Where(where, name),
            remedy="give each of their values a column of its own, or leave the column out with "
            "--ignore",
            option="ignore",
        )
    if all(isinstance(value, (bool, np.bool_)) for value in present):
        return "boolean"
    share = float(np.mean(~np.isnan(_parsed(present))))
    if share >= NUMBERS_FROM:
        return "number"
    refuse_written_numbers(column, name, where)
    return _category(column, name, where)


def refuse_written_numbers(column: pd.Series[Any], name: str, where: str) -> None:
    """Refuse a column of text that holds quantities or dates, and say how to write them."""
    # Each text once, at its first row: a column may hold one text a million times.
    first = column.dropna().drop_duplicates()
    if written_numbers([str(value) for value in first]):
        row = first.index[0]
        raise InputError(
            f"{where}: column {name!r} holds numbers or dates that are written as text, such as "
            f"{shown(first.iloc[0])} in row {row} (rows count from 0)",
            where=Where(where, name, row),
            remedy="write plain numbers (give --read decimal=, where a comma is the decimal sign, "
            f"{_AS_DAYS}, put a letter before each if they are names), or leave the column out "
            "with --ignore",
            option="ignore",
        )


def written_numbers(texts: Sequence[str]) -> bool:
    """Whether many texts, most of which begin with a number, are quantities or dates."""
    begin = sum(_BEGINS.match(text) is not None for text in texts)
    return len(texts) > MOST_NUMBERED and 2 * begin >= len(texts)


def holds_dates(column: pd.Series[Any]) -> bool:
    """Dates, times or durations, by their type or, in a column of objects, one by one."""
    types = pd.api.types
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return True
    if not types.is_object_dtype(column):
        return False
    present = column.dropna()
    kinds = (datetime.date, datetime.time, datetime.timedelta)
    return len(present) > 0 and all(isinstance(value, kinds) for value in present)


def _category(column: pd.Series[Any], name: str, where: str) -> Kind:
    present = column.dropna()
    values = int(present.astype(str).nunique())
    if values > MOST_CATEGORIES or (values > 2 and values > MOST_DISTINCT * len(present)):
        row, repeats = present.index[0], values < len(present)
        raise InputError(
            f"{where}: column {name!r} holds {values} different values in {len(present)} records "
            f"({shown(present.iloc[0])} in row {row}), too many to be categories",
            where=Where(where, name, row),
            remedy=PERSON_REMEDY if repeats else ID_REMEDY,
            option="group_column" if repeats else "ignore",
        )
    return "category"


def require_present(
    column: pd.Series[Any], name: str, where: str, remedy: str, option: str | None = None
) -> None:
    """Refuse a column with an empty row, and say what to do."""
    missing = column.isna().to_numpy()
    if missing.any():
        row = column.index[int(np.argmax(missing))]
        raise InputError(
            f"{where}: column {name!r} is empty in row {row} (rows count from 0)",
            where=Where(where, name, row),
            remedy=remedy,
            option=option,
        )


def numbers(column: pd.Series[Any], name: str, where: str) -> NDArray[np.float64]:
    """A column as float64, NaN where it is empty; a sentence for the first that is no number."""
    if np.iscomplexobj(column.to_numpy()):
        raise InputError(f"{where}: column {name!r} holds complex numbers.")
    if holds_dates(column):
        raise InputError(
            f"{where}: column {name!r} holds dates or times",
            where=Where(where, name),
            remedy=_AS_DAYS,
        )
    found = _parsed(column)
    bad = ~np.isfinite(found) & ~column.isna().to_numpy()
    if bad.any():
        place = int(np.argmax(bad))
        row = column.index[place]
        raise InputError(
            f"{where}: column {name!r} holds {shown(column.iloc[place])} in row {row} (rows count "
            "from 0), which is not a finite number",
            where=Where(where, name, row),
            remedy="correct it, or leave the column out with --ignore",
            option="ignore",
        )
    return found


def _parsed(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers, NaN where a value is none; an integer too large for float64 is infinite."""
    try:
        parsed = pd.to_numeric(column, errors="coerce")
        return np.asarray(parsed.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(value) for value in column])


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def shown(value: object, most: int = 40) -> str:
    """A value as it is told in a sentence, cut where it is long."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= most else f"{text[:most]}…"


# Signs that stand where a value is not known; "-" does, unless "+" is there too.
MARKS = re.compile(r"\?+|-+|\.+|\*+|#+|#N/A!?|n\.\s?a\.?|-\.-|\(\s*\)", re.IGNORECASE)


def marks_in(column: pd.Series[Any]) -> dict[str, int]:
    """Signs such as ``?`` that usually mean "not known", and how often a text column has them."""
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
            "from 0), which usually means that the value is not known",
            where=Where(where, name, row),
            remedy=f"give --read na_values={mark!r} to read it as empty, or --read na_values=NA "
            "if it is a "
            "category of its own",
            option="na_values",
        )
