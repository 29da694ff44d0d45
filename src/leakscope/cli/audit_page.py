"""What ``leakscope audit`` shows a person: the answer first, on one screen; more with --explain."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from leakscope.cli.output import fraction, table, wrapped

if TYPE_CHECKING:
    from leakscope.auditing import AuditedRecords, AuditResult, Subgroup
    from leakscope.results import SubgroupEntry

# How many records whose labels the others contradict are named; the report names a few more.
LABELS = 3

# A column of the screen's table: its heading, and its text of a row of the result's frame.
Column = tuple[str, Callable[[Any], str]]


def page(
    result: AuditedRecords, top: int, *, explain: bool = False, threshold: float | None = None
) -> str:
    """The answer, the most exposed records, and what the attacker is assumed to know."""
    from leakscope.auditing import AuditResult

    answer = result.answer() if threshold is None else result.answer(threshold=threshold)
    process = result if isinstance(result, AuditResult) else None
    if process is not None and top and process.disagreements():
        answer = (*answer, _disagreeing(process))
    parts = ["\n".join(wrapped(sentence) for sentence in answer)]
    frame = result.to_frame()
    rows = [row for _, row in frame.head(top).iterrows()]
    if rows:
        columns = _columns(result, list(frame.columns))
        cells = [[text(row) for _, text in columns] for row in rows]
        parts.append(table([heading for heading, _ in columns], cells))
    parts += subgroup_tables(result.subgroups, result.unit)
    if explain:
        parts += _why(result, top)
    if explain and process is not None:
        parts += _choices(process)
    words = "" if process is None else _words(process, explain)
    parts.append(wrapped(f"{result.question} {words}"))
    return "\n\n".join(parts)


def _columns(result: AuditedRecords, names: Sequence[str]) -> list[Column]:
    grouped = result.unit == "group"
    columns: list[Column] = [
        ("group" if grouped else "record_id", lambda row: str(row["record_id"]))
    ]
    if grouped:
        columns.append(("size", lambda row: str(row["size"])))
    if "advantage_low" in names:
        share = "95%" if "shift_in_sd" in names else "between"
        columns.append((f"advantage ({share})", _with_interval))
    else:
        columns.append(("advantage", lambda row: fraction(row["advantage"])))
    columns += [
        ("TPR at 1%", lambda row: fraction(row["tpr_at_fpr_0_01"])),
        ("TPR at 0.1%", lambda row: fraction(row["tpr_at_fpr_0_001"])),
    ]
    if "shift_in_sd" in names:
        columns.append(("shift", lambda row: f"{row['shift_in_sd']:+.2f}"))
    else:
        columns += [
            ("kl", lambda row: f"{row['kl']:.4g}"),
            ("range", lambda row: _range(row)),
            ("from label", lambda row: f"{row['kl_label'] / row['kl']:.0%}" if row["kl"] else "-"),
        ]
    return [*columns, ("trusted", lambda row: "yes" if row["trusted"] else "NO")]


def _with_interval(row: Any) -> str:
    low, high = row["advantage_low"], row["advantage_high"]
    return f"{fraction(row['advantage'])} ({low:.2f} to {high:.2f})"


def _range(row: Any) -> str:
    return "-" if row["rank_low"] is None else f"{row['rank_low']}-{row['rank_high']}"


def _words(result: AuditResult, explain: bool) -> str:
    """What the last columns mean."""
    over = "" if result.sweep is None else "; range: of ranks over the noise"
    more = "" if explain else "; --explain says more"
    return f"Ranked by kl, KL(without || with){over}{more}."


def _disagreeing(result: AuditResult) -> str:
    """Labels to look at, whatever their rank."""
    few = result.disagreements()[:LABELS]
    told = [f"{one.record_id} by {one.disagreement:.1f} sd" for one in few]
    return f"Labels that the other records contradict: {', '.join(told)}."


def _why(result: AuditedRecords, top: int) -> list[str]:
    """Why the most exposed are."""
    why = [
        textwrap.fill(
            f"{entry.rank}. {entry.sentence} {_others(entry)}",
            width=92,
            subsequent_indent="   ",
            break_on_hyphens=False,
        )
        for entry in result.explanations[:top]
    ]
    return ["Why they are exposed:\n\n" + "\n".join(why)] if why else []


def _choices(result: AuditResult) -> list[str]:
    """Why this kernel and this noise, and the same data under other kernels."""
    told = result.choices
    if told is None:
        return []
    sentences = [f"Why this kernel: {told.kernel_reason}", f"Why this noise: {told.noise_reason}"]
    if told.not_compared is not None:
        sentences.append(told.not_compared)
    parts = ["\n".join(wrapped(sentence) for sentence in sentences)]
    compared = told.kernels
    if compared is not None and compared.others:
        rows = [
            [
                entry.name,
                "-" if math.isnan(entry.rank_correlation) else f"{entry.rank_correlation:.2f}",
                f"{entry.top_ten_kept} of {compared.top_ten}",
                str(entry.rank_of_first),
                fraction(entry.largest_advantage),
                fraction(entry.median_advantage),
                f"{entry.prediction_error:.4g}",
            ]
            for entry in (compared.in_use, *compared.others)
        ]
        headings = ["kernel", "ranks", "top kept", "first is", "largest", "median", "label error"]
        parts.append(
            "The same data under other kernels (rank correlation with the first, which is in use; "
            "the\nmost exposed kept; the rank of the first; advantages; leave-one-out error of the "
            "labels):\n\n" + table(headings, rows)
        )
    return parts


def _others(entry: Any) -> str:
    """The other records that matter to this one: nearest and moved, or what spreads its score."""
    if not entry.neighbours:
        return ""
    if hasattr(entry, "shares"):
        near = zip(entry.neighbours, entry.shares, strict=True)
        return f"Varies most with: {', '.join(f'{one} ({share:.0%})' for one, share in near)}."
    told = f"Nearest: {', '.join(map(str, entry.neighbours))}."
    return f"{told} Moves most: {', '.join(map(str, entry.moved))}." if entry.moved else told


def subgroup_tables(subgroups: Sequence[Subgroup | SubgroupEntry], unit: str) -> list[str]:
    """A table for each column of subgroups."""
    found = []
    for column in dict.fromkeys(entry.column for entry in subgroups):
        rows = [
            [
                entry.value,
                str(entry.count),
                fraction(entry.median_advantage),
                fraction(entry.largest_advantage),
                f"{entry.share_exposed:.0%}",
                "few" if entry.small else "",
            ]
            for entry in subgroups
            if entry.column == column
        ]
        headings = [column, f"{unit}s", "median advantage", "largest", "0.1 or more", ""]
        found.append(f"Exposure by {column}:\n\n{table(headings, rows)}")
    return found
