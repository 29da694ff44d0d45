"""What ``leakscope audit`` shows a person: the most exposed records, and what to make of them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leakscope.cli.output import fraction, table

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult, Subgroup


def page(result: AuditResult, top: int, *, explain: bool = False) -> str:
    """What a person sees: the most exposed records, and what to make of them."""
    frame = result.to_frame().head(top)
    grouped = result.unit == "group"
    rows = [
        [
            str(row["record_id"]),
            *([str(row["size"])] if grouped else []),
            str(rank),
            "-" if row["rank_low"] is None else f"{row['rank_low']}-{row['rank_high']}",
            f"{row['kl']:.4g}",
            fraction(row["advantage"]),
            fraction(row["auc"]),
            f"{row['kl_label'] / row['kl']:.0%}" if row["kl"] > 0 else "-",
            f"{row['mean_distance']:.4g}",
            "yes" if row["trusted"] else "NO",
        ]
        for rank, (_, row) in enumerate(frame.iterrows(), start=1)
    ]
    headings = [
        "group" if grouped else "record_id",
        *(["size"] if grouped else []),
        "rank",
        "range",
        "kl",
        "advantage",
        "auc",
        "from label",
        "mean_distance",
        "trusted",
    ]
    about = result.dataset
    opening = (
        f"{about.name}: {about.records} records, {about.features} features, {about.outputs} "
        f"output{'s' if about.outputs != 1 else ''}"
    )
    if grouped:
        opening += f", {len(result.record_ids)} groups"
    elif isinstance(result.record_ids[0], int) and result.record_ids == tuple(
        range(len(result.record_ids))
    ):
        opening += " (record_id is the row number, starting at 0)"
    parts = [opening]
    if rows:
        parts.append(
            f"The {len(rows)} most exposed, by kl = KL(without || with the {result.unit}):\n\n"
            + table(headings, rows)
        )
    if top and result.disagreements():
        parts.append(_disagreeing(result))
    if explain and result.explanations:
        why = [
            textwrap.fill(
                f"{entry.rank}. {entry.sentence} {_others('Nearest', entry.neighbours)}"
                f"{_others('Moves most', entry.moved)}",
                width=92,
                subsequent_indent="   ",
                break_on_hyphens=False,
            )
            for entry in result.explanations[:top]
        ]
        parts.append("Why they are exposed:\n\n" + "\n".join(why))
    parts += subgroup_tables(result.subgroups, result.unit)
    parts.append(_wrapped(result.verdict))
    parts += _choices(result)
    return "\n\n".join(parts)


def _disagreeing(result: AuditResult) -> str:
    """Labels to look at, whatever their rank."""
    told = [
        f"{entry.record_id} by {entry.disagreement:.1f} (rank {entry.rank})"
        for entry in result.disagreements()
    ]
    return _wrapped(
        "Labels that disagree more with what the other records say than chance explains, in "
        f"standard deviations of these labels: {', '.join(told)}."
    )


def _choices(result: AuditResult) -> list[str]:
    """Why this kernel and this noise, and the same data under other kernels."""
    told = result.choices
    if told is None:
        return []
    sentences = [f"Why this kernel: {told.kernel_reason}", f"Why this noise: {told.noise_reason}"]
    if told.not_compared is not None:
        sentences.append(told.not_compared)
    parts = ["\n".join(_wrapped(sentence) for sentence in sentences)]
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


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, width=92, break_on_hyphens=False))


def _others(what: str, ids: Sequence[int | str]) -> str:
    return f"{what}: {', '.join(str(other) for other in ids)}. " if ids else ""


def subgroup_tables(subgroups: Sequence[Subgroup], unit: str) -> list[str]:
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
