"""What a table's columns are: which one is the target, the id, the group, and what each holds.

A column is numbers, booleans or categories; what is none of them, or cannot be told, is refused in
a sentence that names the column, the row (counted from 0 in the file) and what to do.

``60 kg``, ``5%``, ``$5``, ``1,5`` and ``2024-03-01`` are quantities.  Taken for categories, each
value would be a feature of its own and every record would look exposed; so they are refused, in a
sentence that says how to write them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    texts = [str(value) for value in first]
    found = written_numbers(texts) if texts else None
    if found is None:
        return
    writing, place = found
    row = first.index[place]
    raise InputError(
        f"{where}: column {name!r} holds {writing.what} ({shown(texts[place])} in row {row}, rows "
        "count from 0)",
        where=Where(where, name, row),
        remedy=f"{writing.remedy}, or leave the column out with --ignore",
        option=writing.option,
    )


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
            remedy=f"give --na-values {mark!r} to read it as empty, or --na-values NA if it is a "
            "category of its own",
            option="na_values",
        )


_PLAIN = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_MONEY = r"[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|CNY|INR"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = (
    r"\d{4}-\d{1,2}(?:-\d{1,2})?|\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}([/.-])\d{1,2}\1\d{2}(?:\d{2})?"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}}|\d{{4}}-?W\d{{2}}(?:-\d)?"
)

# Of a column's texts that are written in one of these ways, at least this share makes the column
# one of quantities.
SHARE = 0.5

# Numbers before one unit are quantities from this many different ones on: 2WD and 4WD are not.
LEAST_AMOUNTS = 3


@dataclass(frozen=True)
class Writing:
    """A way to write quantities, and what to do about it."""

    pattern: re.Pattern[str]
    what: str
    remedy: str
    option: str = "ignore"


def _writing(pattern: str, what: str, remedy: str, option: str = "ignore") -> Writing:
    return Writing(re.compile(pattern, re.IGNORECASE), what, remedy, option)


WRITINGS: tuple[Writing, ...] = (
    _writing(
        rf"(?:{_DATE})(?:[T ]{_CLOCK}(?:Z|\s?[+-]\d{{2}}:?\d{{2}})?)?|{_CLOCK}",
        "dates or times",
        _AS_DAYS,
    ),
    _writing(
        r"[+-]?\d{1,3}(?:[ '’_\u00a0\u202f]\d{3})+(?:[.,]\d+)?|[+-]?\d+(?:_\d+)+",
        "numbers with signs between the thousands",
        "write 1000, not 1_000 or 1 000",
    ),
    _writing(
        r"[+-]?(?:\d+,\d+|,\d+|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?)",
        "numbers with commas",
        "give --decimal , if the comma is the decimal sign, or write a point and nothing between "
        "the thousands",
        "decimal",
    ),
    _writing(rf"{_PLAIN}\s*[%‰]", "percentages", "write the numbers without the sign"),
    _writing(
        rf"[+-]?(?:{_MONEY})\s*{_PLAIN}[kKmM]?|{_PLAIN}[kKmM]?\s*(?:{_MONEY})",
        "amounts of money",
        "write the numbers without the currency",
    ),
    _writing(r"[+-]?0[xX][0-9a-fA-F]+|[+-]?0[bB][01]+|[+-]?0[oO][0-7]+",
             "numbers in another base", "write them in decimal digits"),
    _writing(rf"[<>≤≥]=?\s*{_PLAIN}|{_PLAIN}\s*\+", "bounds such as <5",
             "write a number for each, such as the bound itself"),
    _writing(r"\(\d+(?:\.\d+)?\)", "numbers in brackets", "write -5, not (5)"),
)  # fmt: skip

# A letter alone is a unit where it is a common one, and never an ordinal's ending.
_WITH_UNIT = re.compile(
    rf"({_PLAIN})\s*(?!(?:st|nd|rd|th)$)([^\W\d_][\w/^²³·.-]{{1,11}}|[gmlhsdwy])", re.IGNORECASE
)


def written_numbers(texts: Sequence[str]) -> tuple[Writing, int] | None:
    """How the texts are written, and where the first stands; None where they are words."""
    stripped = [text.strip() for text in texts]
    plain = [re.fullmatch(_PLAIN, text) is not None for text in stripped]
    for writing in WRITINGS:
        found = [writing.pattern.fullmatch(text) is not None for text in stripped]
        # Plain numbers among them are counted too.
        count = sum(hit or bare for hit, bare in zip(found, plain, strict=True))
        if any(found) and count >= SHARE * len(texts):
            return writing, found.index(True)
    return _with_unit(stripped)


_POINT = re.compile(r"[+-]?\d*\.\d+")
_COMMA = re.compile(r"[+-]?(?:\d+(?:,\d+)?|,\d+)")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


def with_decimal_commas(table: pd.DataFrame) -> pd.DataFrame | None:
    """The table as ``--decimal ,`` reads it; None where numbers have points too.

    A column whose commas may all stand between thousands (1,234) stays as it is.
    """
    found = {}
    for name, column in table.items():
        if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 != 0).any():
            return None
        texts = [value.strip() for value in column.dropna() if isinstance(value, str)]
        if any(_POINT.fullmatch(text) for text in texts):
            return None
        if len(texts) < column.notna().sum() or not all(_COMMA.fullmatch(text) for text in texts):
            continue
        written = [text for text in texts if "," in text]
        if written and not all(_THOUSANDS.fullmatch(text) for text in written):
            found[name] = pd.to_numeric(column.str.strip().str.replace(",", "."))
    if not found:
        return None
    read = table.copy()
    for name, values in found.items():
        read[name] = values
    return read


def _with_unit(texts: list[str]) -> tuple[Writing, int] | None:
    """Numbers before one and the same unit."""
    matches = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = [match[2].lower() for match in matches if match is not None]
    if not units:
        return None
    unit = max(set(units), key=units.count)
    amounts = {m[1] for m in matches if m is not None and m[2].lower() == unit}
    if units.count(unit) < SHARE * len(texts) or len(amounts) < LEAST_AMOUNTS:
        return None
    first = next(i for i, m in enumerate(matches) if m is not None and m[2].lower() == unit)
    told = matches[first]
    assert told is not None
    remedy = "write the numbers alone (or, if they are names, a letter before each)"
    return Writing(_WITH_UNIT, f"numbers with the unit {told[2]}", remedy), first
