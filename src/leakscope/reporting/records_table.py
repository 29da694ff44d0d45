"""Every record of a run as compact columns, for the page's own table."""

from __future__ import annotations

from typing import Any

from leakscope.reporting.embedding import in_order
from leakscope.results import AuditDocument, ModelAuditDocument

# A sixth digit is beyond what anybody compares; short numbers keep 10,000 records small.
DIGITS = 6

# Ids are shown whole up to here; records.csv has all of every one.
LONGEST_ID = 120


def record_columns(document: AuditDocument) -> dict[str, list[Any]]:
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
    records = document.records
    sizes = {"size": [record.size for record in records]} if document.unit == "group" else {}
    return {
        **sizes,
        "id": [shown_id(record.record_id) for record in records],
        "kl": [_short(record.kl) for record in records],
        "advantage": [_short(record.advantage) for record in records],
        "auc": [_short(record.auc) for record in records],
        "kl_label": [_short(record.kl_label) for record in records],
        "kl_label_free": [_short(record.kl_label_free) for record in records],
        "best": [record.rank_low for record in records],
        "worst": [record.rank_high for record in records],
        "trusted": [int(record.trusted) for record in records],
        "kernel_best": [record.kernel_rank_low for record in records],
        "kernel_worst": [record.kernel_rank_high for record in records],
        "disagreement": [_short(record.disagreement) for record in records],
    }


def model_record_columns(document: ModelAuditDocument) -> dict[str, list[Any]]:
    """The columns of an audit of a fitted model, most exposed record first."""
    records = document.records
    intervals: dict[str, list[Any]] = {}
    if document.models is not None:
        intervals["low"] = [_short(record.advantage_low) for record in records]
        intervals["high"] = [_short(record.advantage_high) for record in records]
    return {
        "id": [shown_id(record.record_id) for record in records],
        "advantage": [_short(record.advantage) for record in records],
        **intervals,
        "tpr_01": [_short(record.tpr_at_fpr_0_01) for record in records],
        "tpr_001": [_short(record.tpr_at_fpr_0_001) for record in records],
        "auc": [_short(record.auc) for record in records],
        "kl": [_short(record.kl) for record in records],
        "shift": [_short(record.shift_in_sd) for record in records],
        "trusted": [int(record.trusted) for record in records],
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
