"""What a table's columns are: which one is the target, the id, the group, and what each holds.

A column is numbers, booleans or categories; what is none of them, or cannot be told, is refused in
a sentence that names the column, the row (counted from 0 in the file) and what to do.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.written_numbers import written_numbers
from leakscope.errors import InputError

Kind = Literal["number", "boolean", "category"]

# More values than this, or more than this share of as many values as records, are no categories:
# they are ids, names or free text.
MOST_CATEGORIES = 50
MOST_DISTINCT = 0.75

# A column of text in which at least this share are numbers is a column of numbers with mistakes.
NUMBERS_FROM = 0.5


@dataclass(frozen=True)
class Roles:
    """Which column is what, by name; every other column is a feature.

    Attributes
    ----------
    target
        The target.
    id
        Each record's own id; None for row numbers.
    group
        The person, or whatever unit leaves as a whole; never a feature.
    by
        Subgroups that exposure is summed up by; features too, unless they are ignored.
    ignored
        Neither features nor anything else.
    """

    target: str
    id: str | None = None
    group: str | None = None
    by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def features(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that are features, in their order."""
        used = {self.target, self.id, self.group, *self.ignored}
        return tuple(name for name in columns if name not in used)


def column_name(columns: Sequence[str], wanted: str, role: str, where: str) -> str:
    """A column by its name, or by its position (0 is the first, -1 the last).

    Examples
    --------
    >>> from leakscope import data
    >>> data.column_name(["age", "height"], "-1", "target", "people.csv")
    'height'
    """
    if wanted in columns:
        return wanted
    try:
        return columns[int(wanted)]
    except (ValueError, IndexError):
        raise InputError(
            f"{where} has no column {shown(wanted)} for the {role}; the columns are "
            f"{listed(columns)}."
        ) from None


def listed(columns: Sequence[str], most: int = 12) -> str:
    """Names with commas between, long ones cut; the first few of many."""
    names = ", ".join(n if len(n) <= 60 else f"{n[:60]}…" for n in columns[:most])
    return names if len(columns) <= most else f"{names} and {len(columns) - most} more"


def kind_of(column: pd.Series[Any], name: str, where: str) -> Kind:
    """What a feature column holds, or a sentence where it holds nothing that can be used.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope import data
    >>> data.kind_of(pd.Series([1.0, 2.5]), "height", "people.csv")
    'number'
    """
    if bool(column.isna().all()):
        raise InputError(
            f"{where}: column {name!r} is empty in every row; leave it out with --ignore."
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _category(column, name, where)
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if _is_dates(column):
        raise InputError(
            f"{where}: column {name!r} holds dates or times; turn them into numbers, such as days "
            "since a date, or leave the column out with --ignore."
        )
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    present = column.dropna()
    if any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in present):
        raise InputError(
            f"{where}: column {name!r} holds lists or tables; give each of their values a column "
            "of its own, or leave the column out with --ignore."
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
    texts = [str(value) for value in first]
    found = written_numbers(texts) if texts else None
    if found is None:
        return
    what, remedy, place = found
    raise InputError(
        f"{where}: column {name!r} holds {what} ({shown(texts[place])} in row "
        f"{first.index[place]}, rows count from 0); {remedy}, or leave the column out with "
        "--ignore."
    )


def _is_dates(column: pd.Series[Any]) -> bool:
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
        row = present.index[0]
        raise InputError(
            f"{where}: column {name!r} holds {values} different values in {len(present)} records "
            f"({shown(present.iloc[0])} in row {row}), too many to be categories; name it with "
            "--id if it is each record's own id, or leave it out with --ignore."
        )
    return "category"


def require_present(column: pd.Series[Any], name: str, where: str, what_to_do: str) -> None:
    """Refuse a column with an empty row, and say what to do."""
    missing = column.isna().to_numpy()
    if missing.any():
        row = column.index[int(np.argmax(missing))]
        raise InputError(
            f"{where}: column {name!r} is empty in row {row} (rows count from 0); {what_to_do}."
        )


def numbers(column: pd.Series[Any], name: str, where: str) -> NDArray[np.float64]:
    """A column as float64, NaN where it is empty; a sentence for the first that is no number."""
    if np.iscomplexobj(column.to_numpy()):
        raise InputError(f"{where}: column {name!r} holds complex numbers.")
    if _is_dates(column):
        raise InputError(
            f"{where}: column {name!r} holds dates or times; turn them into numbers, such as days "
            "since a date."
        )
    found = _parsed(column)
    bad = ~np.isfinite(found) & ~column.isna().to_numpy()
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"{where}: column {name!r} holds {shown(column.iloc[place])} in row "
            f"{column.index[place]} (rows count from 0), which is not a finite number; correct it, "
            "or leave the column out with --ignore."
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
