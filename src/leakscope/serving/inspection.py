"""What a file's columns are, and what each may be used as: offers, which the user settles."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from leakscope.data.tables import Layout
    from leakscope.serving.uploads import Upload

TARGET_NAMES = ("y", "target", "label", "labels", "class", "outcome")
ID_NAMES = ("id", "record_id", "uid", "uuid", "key", "index", "patient_id", "person_id", "user_id")

# Whole numbers of at most this many values are offered as classes.
MOST_CLASSES = 20

# So many numbers are looked at together.
BLOCK = 2**21


def inspect(upload: Upload) -> dict[str, Any]:
    """The columns of a file and the roles offered for them, as plain values."""
    try:
        table, layout = _read(upload.path)
    except InputError as error:
        raise upload.named(error) from None
    columns = _columns(table)
    if len(columns) < 2:
        raise InputError(
            f"{upload.name} has one column only; an audit needs features and a target."
        )
    return {
        "upload": upload.id,
        "name": upload.name,
        "records": len(table),
        "columns": columns,
        "offered": {**_offered(columns, len(table)), **asdict(layout)},
    }


def _read(path: Path) -> tuple[pd.DataFrame, Layout]:
    """The table, and how it seems to be written: without names, with ``?``, with 1,5 for 1.5."""
    from leakscope.data.columns import marks_in
    from leakscope.data.tables import Layout, read_table

    layout = Layout()
    try:
        table = read_table(path)
    except InputError as error:
        if "--no-header" not in str(error):
            raise
        layout = Layout(header=False)
        table = read_table(path, layout)
    marks: dict[str, int] = {}
    texts = table.select_dtypes(exclude="number")
    for name in texts.columns:
        for mark, count in marks_in(texts[name]).items():
            marks[mark] = marks.get(mark, 0) + count
    if path.suffix.lower() in (".csv", ".data", ".tsv") and _commas(texts):
        layout = replace(layout, decimal=",")
    layout = replace(layout, na_values=tuple(sorted(marks, key=lambda mark: -marks[mark])))
    return (table if layout == Layout() else read_table(path, layout)), layout


def _commas(table: pd.DataFrame) -> bool:
    """Whether a column is refused because of decimal commas."""
    from leakscope.data.columns import kind_of

    for name in table.columns:
        try:
            kind_of(table[name], str(name), "")
        except InputError as error:
            if "--decimal" in str(error):
                return True
    return False


def _columns(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Every column as it is; those of plain numbers in blocks, because a table may have 100,000."""
    import numpy as np

    found: dict[int, dict[str, Any]] = {}
    plain: dict[Any, list[int]] = {}
    for place, dtype in enumerate(table.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
            plain.setdefault(dtype, []).append(place)
        else:
            found[place] = _column(table.iloc[:, place], str(table.columns[place]))
    width = max(1, BLOCK // max(1, len(table)))
    for places in plain.values():
        for start in range(0, len(places), width):
            block = places[start : start + width]
            names = [str(table.columns[place]) for place in block]
            values = table.iloc[:, block].to_numpy().T
            found |= zip(block, _plain_numbers(values, names), strict=True)
    return [found[place] for place in range(table.shape[1])]


def _plain_numbers(rows: NDArray[Any], names: list[str]) -> list[dict[str, Any]]:
    """As `_column` of each row, all at once."""
    import numpy as np

    ordered = np.sort(rows, axis=1)  # what is no number comes last
    present = ~np.isnan(ordered)
    new = np.ones_like(present)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    whole = (np.isfinite(ordered) & (ordered == np.rint(ordered))) | ~present
    counted = zip(
        *(names, present.sum(axis=1), (new & present).sum(axis=1), whole.all(axis=1)), strict=True
    )
    return [
        {
            "name": name,
            "kind": "number" if held else "empty",
            "usable": bool(held),
            "empty": rows.shape[1] - int(held),
            "distinct": int(distinct),
            "classes": bool(only_whole and 2 <= distinct <= MOST_CLASSES),
        }
        for name, held, distinct, only_whole in counted
    ]


def _column(column: pd.Series[Any], name: str) -> dict[str, Any]:
    from leakscope.data.columns import kind_of

    present = column.dropna()
    try:
        kind, usable = kind_of(column, name, "the file"), True
    except InputError:
        kind, usable = "number", False
    distinct = int(present.nunique()) if _countable(present) else len(present)
    whole = kind == "number" and usable and _whole(present)
    return {
        "name": name,
        "kind": kind if usable else ("text or dates" if len(present) else "empty"),
        "usable": usable,
        "empty": len(column) - len(present),
        "distinct": distinct,
        "classes": usable and 2 <= distinct <= MOST_CLASSES and (kind != "number" or whole),
    }


def _countable(present: pd.Series[Any]) -> bool:
    """Whether values can be told apart: lists in an Arrow column cannot be hashed."""
    try:
        present.head(1).nunique()
    except TypeError:
        return False
    return True


def _whole(present: pd.Series[Any]) -> bool:
    import numpy as np

    try:
        numbers = present.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all())


def _offered(columns: list[dict[str, Any]], records: int) -> dict[str, Any]:
    named = {str(column["name"]).lower(): column for column in columns}
    usable = [column for column in columns if column["usable"]]
    target = next((named[name] for name in TARGET_NAMES if name in named), None)
    if target is None:
        target = (usable or columns)[-1]
    own = [c for c in columns if c["distinct"] == records and c["empty"] == 0 and c is not target]
    identity = next((c for c in own if str(c["name"]).lower() in ID_NAMES), None)
    identity = identity or next((c for c in own if not c["usable"]), None)
    left_out = [c["name"] for c in columns if not c["usable"] and c not in (target, identity)]
    return {
        "target": target["name"],
        "task": "classification" if target["classes"] or not target["usable"] else "regression",
        "id_column": None if identity is None else identity["name"],
        "missing": _missing(target, usable),
        "ignore": left_out,
    }


def _missing(target: dict[str, Any], usable: list[dict[str, Any]]) -> str:
    """A target is never filled in: records without one can only be dropped."""
    if target["empty"]:
        return "drop"
    return "impute" if any(column["empty"] for column in usable) else "error"
