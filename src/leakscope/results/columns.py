"""The columns of an audit, each declared once: its name, its words, its form.

A kind of subject brings the columns that it knows; files, frames, the screen and the report find
here what each of them is called and how it is written.  A new column is one line of ``COLUMNS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any, Literal, NotRequired, Required

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter
from pydantic_core import (
    InitErrorDetails,
    PydanticCustomError,
    ValidationError,
    core_schema,
)
from typing_extensions import TypedDict

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
        Column("variance_without", "variance without", "number"),
        Column("sd_without", "sd without", "number"),
        Column("mean_with", "mean with", "means"),
        Column("variance_with", "variance with", "number"),
        Column("sd_with", "sd with", "number"),
        Column("largest_share", "largest share", "number"),
        Column("joint_advantage", "all answers", "fraction"),
        Column("leverage", "leverage", "fraction"),
        Column("secret_prior", "no model", "fraction"),
        Column("secret_without", "model without it", "fraction"),
        Column("secret_with", "this model", "fraction"),
        Column("secret_leak", "secret leak", "fraction"),
        Column("secret_advantage", "secret advantage", "fraction"),
        Column("secret_trusted", "leak trusted", "flag"),
        Column("trusted", "trusted", "flag", needed=True),
        Column("check", "check", "check"),
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
        Column("kernel_rank_low", "kernels", "count", upper="kernel_rank_high"),
        Column("kernel_rank_high", "worst rank over kernels", "count"),
    )
}


# A measure of the user's own is a column of this name with the measure's behind it.
OWN = "own_"
OWN_NAME = re.compile(r"own_[a-z][a-z0-9_]{0,59}")


def column_named(name: str) -> Column | None:
    """What is declared of a column, or known by its name where it is a measure of the user's own.

    Examples
    --------
    >>> from leakscope.results.columns import column_named
    >>> column_named("advantage").form, column_named("own_lift_at_ten").heading
    ('fraction', 'lift at ten')
    """
    if name in COLUMNS or not OWN_NAME.fullmatch(name):
        return COLUMNS.get(name)
    words = name.removeprefix(OWN)
    rate = re.fullmatch(r"tpr_at_fpr_(\d+)_(\d+)", words)
    if rate is not None:
        return Column(name, f"TPR at {100.0 * float(f'{rate[1]}.{rate[2]}'):g}%", "fraction")
    return Column(name, words.replace("_", " "), "number")


def own_columns(table: Table) -> list[str]:
    """The measures of the user's own that a table has, without the ends of their intervals."""
    names = [name for name in table.columns if name.startswith(OWN)]
    ends = {f"{name}_{end}" for name in names for end in ("low", "high")}
    return [name for name in names if name not in ends]


class Record(Mapping[str, Any]):
    """One row of a table: ``record.advantage``, or ``record["advantage"]``; None where unknown."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if column_named(name) is not None:
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
        unknown = [name for name in self.columns if column_named(name) is None]
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
    """A table from the rows of a file; what is wrong is told with the record's place."""
    if isinstance(value, Table):
        return value
    own = [name for name in _first_row(value) if OWN_NAME.fullmatch(str(name))]
    rows = _rows_adapter((*COLUMNS, *own)).validate_python(value, strict=True)
    if not rows:
        raise PydanticCustomError("records", "an audit has at least one record")
    _require_evidence(rows)
    _require_one_shape(rows)
    # Checked rows are in the order of the declaration; the file's own is kept.
    first = {name: rows[0][name] for name in value[0]}
    return Table.of_rows([first, *rows[1:]])


def _first_row(value: Any) -> Mapping[str, Any]:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def _require_evidence(rows: list[dict[str, Any]]) -> None:
    """Whoever is trusted passed a check, where checks are named, and nobody else did."""
    if not any("check" in row for row in rows):
        return
    for place, row in enumerate(rows):
        check = row.get("check")
        if bool(row["trusted"]) != (check is not None and check >= 0):
            raise _wrong(place, "check", "input should name a check if and only if it is trusted")


def _require_one_shape(rows: list[dict[str, Any]]) -> None:
    """A column of means has as many numbers in every record."""
    for name in (name for name, column in COLUMNS.items() if column.form == "means"):
        first = rows[0].get(name)
        outputs = len(first) if isinstance(first, list) else 0
        for place, row in enumerate(rows):
            told = row.get(name)
            if (len(told) if isinstance(told, list) else 0) != outputs:
                raise _wrong(place, name, "input should be of as many numbers as the first record")


def _wrong(place: int, name: str, words: str) -> ValidationError:
    problem = PydanticCustomError("records", words)
    # The whole row stands for the input, which is then not repeated.
    details = InitErrorDetails(type=problem, loc=(place, name), input={})
    return ValidationError.from_exception_data("records", [details])


@lru_cache(maxsize=16)
def _rows_adapter(names: tuple[str, ...]) -> TypeAdapter[list[dict[str, Any]]]:
    fields: dict[str, Any] = {}
    for name in names:
        column = column_named(name)
        assert column is not None
        kind = bool if name == "trusted" else TYPES[column.form]
        fields[name] = Required[kind] if column.needed else NotRequired[kind]
    # The columns are known only here, so that a type checker has nothing to read.
    make: Any = TypedDict
    row = make("Record", fields)
    row.__pydantic_config__ = ConfigDict(extra="forbid")
    rows: Any = GenericAlias(list, (row,))
    return TypeAdapter(rows)


def _array(values: list[Any], name: str) -> NDArray[Any]:
    column = column_named(name)
    assert column is not None
    form = column.form
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
    """Whether a number that has an interval is told by its ends alone.

    The mean of a TPR at a low FPR says little where it may be anything between.

    Examples
    --------
    >>> from leakscope.results.columns import by_ends
    >>> by_ends("tpr_at_fpr_0_01"), by_ends("advantage")
    (True, False)
    """
    return name.removeprefix(OWN).startswith("tpr_at_fpr_")


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
    """What a table has of trust: whether a unit is trusted, and the number of the check.

    A check that failed is -1, or -3 where the unit's interval holds, and none at all is empty.
    """
    check = np.empty(len(trust.passed), dtype=object)
    check[:] = [None if number == UNCHECKED else number for number in trust.passed.tolist()]
    return {"trusted": trust.trusted, "check": check}


def trust_of(table: Table, checks: Sequence[str], otherwise: str) -> Trust:
    """The trust that a table states; ``otherwise`` names the check of files that name none."""
    trusted = np.asarray(table.columns["trusted"], dtype=np.bool_)
    if "check" not in table.columns:
        return Trust.checked(otherwise, trusted)
    numbers = [UNCHECKED if number is None else number for number in table.columns["check"]]
    return Trust(checks, np.array(numbers))


# What a pair of laws says.  Where the advantage is known by an interval, these are shown by theirs.
MEASURED = ("tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "kl_reverse")


def shown_columns(names: Iterable[str], table: Table) -> list[Column]:
    """Those of the named columns that a table has, in order; own measures before the trust.

    A number without an interval would look exact beside an advantage with one, and is left out.
    """
    bare = {name for name in MEASURED if "advantage_low" in table and f"{name}_low" not in table}
    kept = [name for name in names if name in table and name not in bare]
    last = ["trusted"] if kept[-1:] == ["trusted"] else []
    every = [*kept[: len(kept) - len(last)], *own_columns(table), *last]
    return [column for column in map(column_named, every) if column is not None]
