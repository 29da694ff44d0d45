"""What ``leakscope audit`` shows a person: the answer first, on one screen; more with --explain."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from leakscope.cli.output import table, wrapped

if TYPE_CHECKING:
    from leakscope.results import Audit


def page(audit: Audit, top: int, *, explain: bool = False, threshold: float | None = None) -> str:
    """The answer, the most exposed, and what the attacker is assumed to know."""
    from leakscope.data.preparation import about_empty

    level = audit.exposed_above if threshold is None else threshold
    told = [one for one in audit.answer(threshold=level) if one != audit.attacker]
    told += filter(None, [about_empty(audit.dataset.steps)])
    if top:
        told += audit.about.notes(audit)
    parts = ["\n".join(wrapped(sentence) for sentence in told)]
    if top:
        parts.append(_table(audit, top))
    parts += _subgroups(audit)
    if explain:
        parts += _why(audit, top)
    parts += _sections(audit, explain)
    parts.append(wrapped(f"{audit.attacker} {_words(audit, explain)}"))
    return "\n\n".join(parts)


def _table(audit: Audit, top: int) -> str:
    """The columns of the kind's screen; an interval stands beside its number, or instead of it."""
    from leakscope.results.columns import shown_columns, text_with_ends

    columns = shown_columns(audit.about.screen, audit.table)
    headings = ["record_id"] if audit.unit == "record" else ["group", "size"]
    names = ["record_id"] if audit.unit == "record" else ["record_id", "size"]
    words = f" ({audit.about.interval_words})"
    for column in columns:
        with_ends = f"{column.name}_low" in audit.table and not column.name.startswith("kl")
        headings.append(f"{column.heading}{words if with_ends else ''}")
    rows = [
        [*(str(row[name]) for name in names), *(text_with_ends(one, row) for one in columns)]
        for row in audit.table.rows(top)
    ]
    return table(headings, rows)


def _words(audit: Audit, explain: bool) -> str:
    """How the table is ranked, where the answer does not say it, and what the range is."""
    if audit.about.ranked_by != "kl":
        return ""
    swept = "rank_low" in audit.table and audit.table.rows(1)[0]["rank_low"] is not None
    over = "; range: of ranks over the noise" if swept else ""
    more = "" if explain else "; --explain says more"
    return f"Ranked by kl, KL(without || with){over}{more}."


def _why(audit: Audit, top: int) -> list[str]:
    """Why the most exposed are."""
    from leakscope.results.audit import explained

    why = [
        textwrap.fill(entry, width=92, subsequent_indent="   ", break_on_hyphens=False)
        for entry in explained(audit.explanations, top)
    ]
    return ["Why they are exposed:\n\n" + "\n".join(why)] if why else []


def _sections(audit: Audit, explain: bool) -> list[str]:
    """What only this kind of model has to show, or what was asked for, in words and tables."""
    found = []
    for section in audit.about.sections(audit):
        if not (explain or section.asked):
            continue
        parts = [f"{section.title}:"]
        if section.paragraphs:
            parts.append("\n".join(wrapped(paragraph) for paragraph in section.paragraphs))
        parts += [table(headings, rows) for headings, rows in section.tables]
        found.append("\n\n".join(parts))
    return found


def _subgroups(audit: Audit) -> list[str]:
    """A table for each column of subgroups."""
    from leakscope.results.shown import certain

    found = []
    for column in dict.fromkeys(entry.column for entry in audit.subgroups):
        rows = [
            [
                entry.value,
                str(entry.count),
                certain(entry.median_advantage),
                certain(entry.largest_advantage),
                f"{entry.share_exposed or 0.0:.0%}",
                "few" if entry.small else "",
            ]
            for entry in audit.subgroups
            if entry.column == column
        ]
        headings = [column, f"{audit.unit}s", "median advantage", "largest", "0.1 or more", ""]
        found.append(f"Exposure by {column}:\n\n{table(headings, rows)}")
    return found
