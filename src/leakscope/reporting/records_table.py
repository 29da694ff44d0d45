"""Every record of a run as compact columns, for the page's own table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakscope.reporting.embedding import in_order
from leakscope.reporting.templating import fraction, number
from leakscope.results import AuditDocument, AuditedDocument

# A sixth digit is beyond what anybody compares; short numbers keep 10,000 records small.
DIGITS = 6

# Ids are shown whole up to here; records.csv has all of every one.
LONGEST_ID = 120


@dataclass(frozen=True)
class Column:
    """A column of the page's table: where its values are, and in which form they stand."""

    key: str
    heading: str
    form: str
    classes: str = "n"


RANK, ID = Column("rank", "rank", "rank"), Column("id", "record_id", "text", "")
TPRS = (
    Column("tpr_01", "TPR at 1%", "fraction"),
    Column("tpr_001", "TPR at 0.1%", "fraction", "n wide"),
)
SIZE = Column("size", "records", "text", "n wide")
ADVANTAGE = Column("advantage", "advantage", "fraction")
INTERVAL = (Column("low", "from", "fraction"), Column("high", "to (95%)", "fraction"))
TRUSTED = Column("trusted", "trusted", "yes", "wide")
CLAIMED = (Column("low", "from", "number"), Column("high", "to", "number"))
AUC = Column("auc", "AUC", "fraction", "n wide")

FORMS = {"number": number, "fraction": fraction}

OF_PROCESS = (
    Column("kl", "KL", "number"),
    ADVANTAGE,
    *TPRS,
    AUC,
    Column("kl_label", "from label", "number", "n wide"),
    Column("kl_label_free", "from features", "number", "n wide"),
    Column("best", "rank range", "range"),
    TRUSTED,
    Column("kernel_best", "kernels", "range", "n wide"),
    Column("disagreement", "label off", "number", "n wide"),
)
OF_MODEL = (
    ADVANTAGE,
    *TPRS,
    AUC,
    Column("kl", "KL", "number", "n wide"),
    Column("shift", "shift", "number", "n wide"),
    Column("trusted", "trusted", "yes", ""),
)


def table_columns(document: AuditedDocument) -> tuple[Column, ...]:
    """The columns of the page's table, in order."""
    own: tuple[Column, ...] = OF_PROCESS if isinstance(document, AuditDocument) else OF_MODEL
    if getattr(document, "models", None) is not None:
        own = (ADVANTAGE, *INTERVAL, *OF_MODEL[1:])
    elif _has_intervals(document):
        others = (column for column in OF_PROCESS[1:] if column is not TRUSTED)
        own = (OF_PROCESS[0], *CLAIMED, TRUSTED, *others)
    if document.unit == "record":
        return (RANK, ID, *own)
    return (RANK, replace(ID, heading="group"), SIZE, *own)


def table_rows(
    columns: Sequence[Column], values: dict[str, list[Any]], count: int
) -> list[list[str]]:
    """The first rows of the table as text, for a page without JavaScript."""
    return [
        [_cell(column, values, row) for column in columns]
        for row in range(min(count, len(values["id"])))
    ]


def _cell(column: Column, values: dict[str, list[Any]], row: int) -> str:
    if column.form == "rank":
        return str(row + 1)
    value = values[column.key][row]
    if column.form == "range":
        worst = values[column.key.replace("best", "worst")][row]
        return "–" if value is None else f"{value}–{worst}"
    if column.form == "yes":
        return "yes" if value else "NO"
    return str(value) if column.form == "text" else FORMS[column.form](value)


def record_columns(document: AuditedDocument) -> dict[str, list[Any]]:
    """Columns by name, most exposed record first; ``size`` only where groups are the unit.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope.reporting import record_columns
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, record_ids=["ann", "bob", "eve"], kernel="rbf")
    >>> columns = record_columns(result.to_document())
    >>> columns["id"][0], columns["trusted"], "size" in columns
    ('eve', [1, 1, 1], False)
    """
    numbers = {
        "kl": "kl",
        "advantage": "advantage",
        "auc": "auc",
        "tpr_01": "tpr_at_fpr_0_01",
        "tpr_001": "tpr_at_fpr_0_001",
        **(OWN_NUMBERS if isinstance(document, AuditDocument) else {"shift": "shift_in_sd"}),
    }
    if getattr(document, "models", None) is not None:
        numbers |= {"low": "advantage_low", "high": "advantage_high"}
    elif _has_intervals(document):
        numbers |= {"low": "kl_low", "high": "kl_high"}
    whole = OWN_RANKS if isinstance(document, AuditDocument) else {}
    records = document.records
    return {
        **({"size": [record.size for record in records]} if document.unit == "group" else {}),
        "id": [shown_id(record.record_id) for record in records],
        "trusted": [int(record.trusted) for record in records],
        **{key: [_short(getattr(r, name)) for r in records] for key, name in numbers.items()},
        **{key: [getattr(r, name) for r in records] for key, name in whole.items()},
    }


def _has_intervals(document: AuditedDocument) -> bool:
    """Whether the numbers are those of an approximate route, which says between what they lie."""
    return getattr(document.records[0], "kl_low", None) is not None


# What the table has of a Gaussian process alone, and the record's fields it comes from.
OWN_NUMBERS = {
    "kl_label": "kl_label",
    "kl_label_free": "kl_label_free",
    "disagreement": "disagreement",
}
OWN_RANKS = {
    "best": "rank_low",
    "worst": "rank_high",
    "kernel_best": "kernel_rank_low",
    "kernel_worst": "kernel_rank_high",
}


def shown_id(record_id: int | str) -> str:
    """An id as text that reads as it is written, cut where it is very long.

    Examples
    --------
    >>> from leakscope.reporting import shown_id
    >>> shown_id(7), len(shown_id("x" * 1000))
    ('7', 120)
    """
    text = in_order(str(record_id))
    return text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
