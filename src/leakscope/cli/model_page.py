"""What ``leakscope audit --model`` shows a person: the answer first, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakscope.cli.audit_page import subgroup_tables
from leakscope.cli.output import fraction, table, wrapped

if TYPE_CHECKING:
    from leakscope.auditing import ModelAuditResult


def model_page(result: ModelAuditResult, top: int, *, threshold: float | None = None) -> str:
    """The answer, the most exposed records, and what the attacker is assumed to know."""
    answer = result.answer() if threshold is None else result.answer(threshold=threshold)
    parts = ["\n".join(wrapped(sentence) for sentence in answer)]
    rows = [
        [
            str(row["record_id"]),
            fraction(row["advantage"]) + _interval(row),
            fraction(row["tpr_at_fpr_0_01"]),
            fraction(row["tpr_at_fpr_0_001"]),
            f"{row['shift_in_sd']:+.2f}",
            "yes" if row["trusted"] else "NO",
        ]
        for _, row in result.to_frame().head(top).iterrows()
    ]
    if rows:
        with_interval = "advantage" if result.few is None else "advantage (95%)"
        headings = ["record_id", with_interval, "TPR at 1%", "TPR at 0.1%", "shift", "trusted"]
        parts.append(table(headings, rows))
    parts += subgroup_tables(result.subgroups, result.unit)
    parts.append(wrapped(result.question))
    return "\n\n".join(parts)


def _interval(row: Any) -> str:
    """The interval beside a number, where there is one."""
    if "advantage_low" not in row:
        return ""
    return f" ({row['advantage_low']:.2f} to {row['advantage_high']:.2f})"
