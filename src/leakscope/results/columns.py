"""The columns of an audit, each declared once: its name, its words, its form.

A kind of subject brings the columns that it knows; files, frames, the screen and the report find
here what each of them is called and how it is written.  A new column is one line of ``COLUMNS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from pydantic_core import PydanticCustomError, ValidationError, core_schema

from leakscope.results.document import Fraction, Number
from leakscope.results.shown import certain, digits, ends_text
from leakscope.results.trust import MOST_CHECKS, UNCERTAIN, UNCHECKED, Trust

Form = Literal["id", "count", "number", "part", "fraction", "signed", "flag", "means", "check"]

TYPES: dict[str, Any] = {
    "id": int | str,
    "count": Annotated[int, Field(ge=0, le=2**53)] | None,
    "number": Number,
    "part": Number,
    "fraction": Fraction,
    "signed": Number,
    "flag": bool | None,
    "means": Number | list[Number],
    "check": Annotated[int, Field(ge=UNCERTAIN, lt=MOST_CHECKS)] | None,
}


# An answer that hardly varies moves by thousands of standard deviations; beyond this, no digits.
MOST_SHIFTED = 100


@dataclass(frozen=True)
class Column:
    """A number that an audit has of every unit.

    ``heading`` stands over it in tables, ``upper`` names the column of the other end where the two
    are shown as a range, and ``needed`` columns are in every audit.
    """

    name: str
    heading: str
    form: Form
    needed: bool = False
    upper: str | None = None

    def text(self, row: Mapping[str, Any]) -> str:
        """Its value in a row, as a person reads it."""
        value = row.get(self.name)
        if self.upper is not None:
            other = row.get(self.upper)
            return "-" if value is None or other is None else f"{value:g}-{other:g}"
        if self.form == "flag":
            return "-" if value is None else "yes" if value else "NO"
        if value is None:
            return "infinite" if self.form == "number" else "-"
        if self.form == "fraction":
            return certain(value)
        if self.form == "part":
            return f"{value / row['kl']:.0%}" if row.get("kl") else "-"
        if self.form == "signed":
            if value != value:
                return "-"
            if abs(value) >= MOST_SHIFTED:
                return f">+{MOST_SHIFTED}" if value > 0 else f"<-{MOST_SHIFTED}"
            return f"{value:+.2f}"
        return digits(value) if self.form == "number" else str(value)


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("record_id", "record_id", "id", needed=True),
        Column("size", "size", "count"),
        Column("kl", "kl", "number", needed=True),
        Column("kl_reverse", "reverse kl", "number"),
        Column("advantage", "advantage", "fraction", needed=True),
        Column("tpr_at_fpr_0_01", "TPR at 1%", "fraction"),
        Column("tpr_at_fpr_0_001", "TPR at 0.1%", "fraction"),
        Column("auc", "AUC", "fraction", needed=True),
        Column("shift_in_sd", "shift", "signed"),
        Column("mean_distance", "mean distance", "number"),
        Column("kl_label_free", "from features", "part"),
        Column("kl_label", "from label", "part"),
        Column("disagreement", "label off", "number"),
        Column("mean_without", "mean without", "means"),
        Column("sd_without", "sd without", "number"),
        Column("mean_with", "mean with", "means"),
        Column("sd_with", "sd with", "number"),
        Column("largest_share", "largest share", "number"),
        Column("joint_advantage", "all answers", "fraction"),
        Column("leverage", "leverage", "fraction"),
        Column("secret_prior", "no model", "fraction"),
        Column("secret_without", "model without it", "fraction"),
        Column("secret_with", "this model", "fraction"),
        Column("secret_leak", "secret leak", "fraction"),
        Column("secret_advantage", "secret advantage", "fraction"),
        Column("secret_confirmed", "leak confirmed", "flag"),
        Column("confirmed", "confirmed", "flag", needed=True),
        Column("check", "check", "check", needed=True),
        Column("kl_low", "from", "number"),
        Column("kl_high", "to", "number"),
        Column("advantage_low", "from", "fraction"),
        Column("advantage_high", "to", "fraction"),
        Column("tpr_at_fpr_0_01_low", "from", "fraction"),
        Column("tpr_at_fpr_0_01_high", "to", "fraction"),
        Column("tpr_at_fpr_0_001_low", "from", "fraction"),
        Column("tpr_at_fpr_0_001_high", "to", "fraction"),
        Column("surely_exposed", "surely exposed", "flag"),
        Column("rank_low", "range", "count", upper="rank_high"),
        Column("rank_high", "worst rank", "count"),
    )
}


class Record(Mapping[str, Any]):
    """One row of a table: ``record.advantage``, or ``record["advantage"]``; None where unknown."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name in COLUMNS:
            return self._values.get(name)
        raise AttributeError(name)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, one entry per unit, in the order of the data; ``order`` ranks them.

    ``order`` holds row numbers, the most exposed first.  A table that was read from a file is in
    the order of its ranks: the data's own order is not in the file.
    """

    columns: Mapping[str, NDArray[Any]]
    order: NDArray[np.intp]

    def __post_init__(self) -> None:
        unknown = [name for name in self.columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not declared among the columns of an audit")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.rows() == other.rows() or _plain(self.rows()) == _plain(other.rows())

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.order)

    def __contains__(self, name: object) -> bool:
        """Whether anything is known in a column: files may hold it, and nothing in it."""
        values = self.columns.get(str(name))
        if values is None:
            return False
        if values.dtype == object:
            return any(value is not None for value in values)
        return values.dtype.kind != "f" or not bool(np.isnan(values).all())

    def of(self, name: str) -> NDArray[np.float64]:
        """A column of numbers in the order of the data; what is not known is NaN."""
        values = self.columns.get(name)
        if values is None:
            return np.full(len(self), np.nan)
        return np.asarray(values, dtype=np.float64)

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Plain values, the most exposed first."""
        order = self.order if most is None else self.order[:most]
        columns = {name: values[order].tolist() for name, values in self.columns.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def records(self, most: int | None = None) -> list[Record]:
        """The same as objects."""
        return [Record(row) for row in self.rows(most)]

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """From plain values, the most exposed first; null is infinite or not known.

        The columns are in the order of the first row.
        """
        names = dict.fromkeys(rows[0] if rows else ())
        for row in rows:
            if len(row) != len(names) or row.keys() != names.keys():
                names |= dict.fromkeys(row)
        return cls(
            {name: _array([row.get(name) for row in rows], name) for name in names},
            np.arange(len(rows)),
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _parsed,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: _plain(table.rows()), when_used="always"
            ),
        )


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what is not finite, as JSON has it."""
    return [{name: _finite(value) for name, value in row.items()} for row in rows]


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return value


def _parsed(value: Any) -> Table:
    """A table from the rows of a file, each column checked against its form."""
    if isinstance(value, Table):
        return value
    rows = TypeAdapter(list[dict[str, Any]]).validate_python(value, strict=True)
    if not rows:
        raise PydanticCustomError("records", "an audit has at least one record")
    names = dict.fromkeys(name for row in (rows[0], *rows) for name in row)
    for name in (*names, *(column.name for column in COLUMNS.values() if column.needed)):
        if name not in COLUMNS:
            raise _wrong(name, "no column of an audit")
        column = COLUMNS[name]
        if column.needed and not all(name in row for row in rows):
            raise _wrong(name, "a record lacks it")
        kind = bool if name == "confirmed" else TYPES[column.form]
        try:
            values = TypeAdapter(list[kind]).validate_python(  # type: ignore[valid-type]
                [row.get(name) for row in rows], strict=True
            )
        except ValidationError as error:
            problem = error.errors()[0]
            raise _wrong(name, f"record {problem['loc'][0]}: {problem['msg']}") from None
        if column.form == "means" and len({np.size(one) for one in values}) > 1:
            raise _wrong(name, "records differ in how many numbers they have")
    for place, row in enumerate(rows):
        check = row["check"]
        if bool(row["confirmed"]) != (check is not None and check >= 0):
            raise _wrong(
                "check", f"record {place} must name a check if and only if it is confirmed"
            )
    return Table.of_rows(rows)


def _wrong(name: str, words: str) -> PydanticCustomError:
    return PydanticCustomError("records", "{name}: {words}", {"name": name, "words": words})


def _array(values: list[Any], name: str) -> NDArray[Any]:
    form = COLUMNS[name].form
    if form in ("number", "part", "fraction", "signed") or (
        form == "means" and not any(isinstance(value, list) for value in values)
    ):
        # What is null in a file was infinite, where the number is a divergence.
        unknown = np.inf if name in ("kl", "kl_reverse") else np.nan
        return np.array([unknown if v is None else v for v in values], dtype=np.float64)
    if form == "means":
        return np.array([[np.nan if v is None else v for v in value] for value in values])
    if form == "flag" and None not in values:
        return np.array(values, dtype=np.bool_)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    if form == "id" and all(type(value) is int and abs(value) < 2**63 for value in values):
        return found.astype(np.int64)
    return found


def between(row: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """The ends of a number's interval in a row; None where it has none."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return None if low is None or high is None else (low, high)


def by_ends(name: str) -> bool:
    """Whether a number that has an interval is shown by its ends alone, as a TPR is."""
    return name.startswith("tpr_at_fpr_")


def text_with_ends(column: Column, row: Mapping[str, Any]) -> str:
    """A value as a person reads it, with the ends of its interval where it has one.

    Examples
    --------
    >>> from leakscope.results.columns import COLUMNS, text_with_ends
    >>> row = {"tpr_at_fpr_0_01": 0.9, "tpr_at_fpr_0_01_low": 0.01, "tpr_at_fpr_0_01_high": 1.0}
    >>> text_with_ends(COLUMNS["tpr_at_fpr_0_01"], row)
    '0.01 to 1'
    """
    ends = between(row, column.name)
    if ends is None or column.name.startswith("kl"):
        return column.text(row)
    if by_ends(column.name):
        return ends_text(*ends)
    return f"{column.text(row)} ({ends_text(*ends, '.2f')})"


def trust_columns(trust: Trust) -> dict[str, NDArray[Any]]:
    """What a table has of trust: whether a unit is confirmed, and the number of the check.

    A check that failed is -1, or -3 where the unit's interval holds, and none at all is empty.
    """
    check = np.empty(len(trust.passed), dtype=object)
    check[:] = [None if number == UNCHECKED else number for number in trust.passed.tolist()]
    return {"confirmed": trust.confirmed, "check": check}


def trust_of(table: Table, checks: Sequence[str]) -> Trust:
    """The trust that a table states."""
    numbers = [UNCHECKED if number is None else number for number in table.columns["check"]]
    return Trust(checks, np.array(numbers))


# What a pair of laws says.  Where the advantage is known by an interval, these are shown by theirs.
MEASURED = ("tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "kl_reverse")


def shown_columns(names: Iterable[str], table: Table) -> list[Column]:
    """Those of the named columns that a table has, in order.

    A number without an interval would look exact beside an advantage with one, and is left out.
    """
    bare = {name for name in MEASURED if "advantage_low" in table and f"{name}_low" not in table}
    return [COLUMNS[name] for name in names if name in table and name not in bare]
