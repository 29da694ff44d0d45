"""The report of an audit, of whichever kind of model: one page that needs nothing else.

What only one kind has to show comes from the kind as sections (:mod:`leakscope.results.sections`);
nothing is computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.data.files import reason
from leakscope.data.preparation import about_empty
from leakscope.errors import InputError
from leakscope.reporting import charts
from leakscope.reporting.pages import (
    HOLDS,
    fraction,
    number,
    png_address,
    rendered,
    shown_id,
    without_folders,
    words_used,
)
from leakscope.results.audit import Audit
from leakscope.results.columns import COLUMNS, by_ends, shown_columns
from leakscope.results.document import ResultDocument
from leakscope.results.reader import Run
from leakscope.results.reconciliation import doubt_left, reconciled, was_retrained
from leakscope.results.run_directory import ExposedPicture
from leakscope.results.sections import Section
from leakscope.results.shown import ends_text
from leakscope.results.trust import FAILED, UNCERTAIN, UNCHECKED
from leakscope.results.verification import Verification

NOT_EXAMINED = "your model was not examined"
RETRAINED = "your model was trained again to check it (see Verification)"

# What a page without JavaScript shows of the table.
STATIC_RECORDS = 10

# A sixth digit is beyond what anybody compares; short numbers keep 10,000 records small.
DIGITS = 6

# So many columns are shown on a narrow screen too.
NARROW = 3

# How a form of column stands on the page; other forms are not shown there.
FORMS = {
    "number": "number",
    "part": "number",
    "signed": "number",
    "fraction": "fraction",
    "count": "text",
    "flag": "yes",
}

LEFT_OUT = "histogram_log10_kl_left_out"

# In words, what stands in the place of a check's number.
NOT_PASSED = {FAILED: "failed", UNCHECKED: "not checked", UNCERTAIN: "interval only"}


@dataclass(frozen=True)
class PageColumn:
    """A column of the page's table: where its values are, and in which form they stand."""

    key: str
    heading: str
    form: str
    classes: str = "n"
    upper: str = ""

    def cell(self, values: dict[str, list[Any]], row: int) -> str:
        """The text in a row, as the page's script has it."""
        if self.form == "rank":
            return str(row + 1)
        value = values[self.key][row]
        if self.form == "range":
            return "–" if value is None else f"{value}–{values[self.upper][row]}"
        if self.form == "between":
            return "–" if value is None else ends_text(value, values[self.upper][row])
        if self.form == "yes":
            return "yes" if value else "NO"
        if self.form == "text":
            return "–" if value is None else str(value)
        return fraction(value) if self.form == "fraction" else number(value)


def audit_html(run: Run, audit: Audit, *, redact: bool, beside: Sequence[ResultDocument]) -> str:
    """Answer, charts, every record, what each number rests on."""
    from jinja2 import UndefinedError

    others = [one for one in (run.verification, run.measurement, *beside) if one is not None]
    drawn = _charts(run, audit)
    shown = charts.placed(audit.about.sections(audit), drawn, redact=redact)
    columns, records = table_columns(audit), record_columns(audit)
    answer = _answer(audit, redact, others)
    checks, left_out = _checks(audit), run.arrays((LEFT_OUT,)).get(LEFT_OUT, 0)
    gallery = {} if redact else {
        "The most exposed, and those most like them": _pictures(run, run.gallery.pictures),
        "Those whose labels the others contradict most": _pictures(run, run.gallery.disagreeing),
    }  # fmt: skip
    gallery = {title: pictures for title, pictures in gallery.items() if pictures}
    facts = {k: v for k, v in audit.about.facts(audit).items() if v is not None}
    settings = {k: v for k, v in audit.settings.items() if v is not None}
    try:
        return rendered(
            "audit.html",
            charts=drawn,
            records=None if redact else records,
            audit=audit,
            # The parts that pages share speak of a document.
            document=audit,
            unit=audit.unit,
            redact=redact,
            answer=answer,
            doubt=doubt_left(audit, others),
            question=_question(audit),
            empty=about_empty(audit.dataset.steps),
            facts=_facts(audit),
            columns=columns,
            top=[
                [column.cell(records, row) for column in columns]
                for row in range(0 if redact else min(STATIC_RECORDS, len(records["id"])))
            ],
            checks=checks,
            sections=shown,
            left_out=int(left_out),
            gallery=gallery,
            assumptions=[(entry, HOLDS[entry.holds]) for entry in audit.assumptions],
            verification=run.verification,
            rows=reconciled(audit, others),
            # One subgroup of few is nearly a record.
            subgroups=[s for s in audit.subgroups if not (redact and s.small)],
            glossary=words_used(_texts(answer, columns, shown, drawn, bool(gallery))),
            versions=run.versions,
            settings=without_folders(settings) if redact else settings,
            model={
                "type": audit.model.type,
                "origin": audit.model.origin,
                **audit.model.parameters,
                **facts,
            },
        )
    except UndefinedError as error:
        # The settings and the provenance are open parts of a result's schema.
        raise InputError(
            f"{run.directory}: the result is not whole, because {reason(error)}."
        ) from error


def _answer(audit: Audit, redact: bool, others: Sequence[ResultDocument]) -> list[str]:
    """What was examined and found; what the attacker knows stands under the question."""
    attacker = audit.attacker
    told = [sentence for sentence in audit.answer(ids=not redact) if sentence != attacker]
    if any(isinstance(one, Verification) and was_retrained(one) for one in others):
        # The audit is of a stand-in, but by now the model itself was trained again.
        told = [sentence.replace(NOT_EXAMINED, RETRAINED) for sentence in told]
    return told


def _question(audit: Audit) -> str:
    unit = audit.unit
    own = "at its records" if unit == "group" else "about it"
    return (
        f"For each of {audit.units:,} {unit}s: how well could an attacker tell, from what the "
        f"model says {own}, whether the {unit} was in the training set?"
    )


def _facts(audit: Audit) -> list[tuple[str, str]]:
    """A few numbers for the eye; none counts who is exposed where the level is assumed."""
    totals, about = audit.totals, audit.dataset
    largest: dict[str, str] = {}
    if "advantage_low" in audit.table:
        ends = [np.nanmax(audit.table.of(f"advantage_{end}")) for end in ("low", "high")]
        largest["largest advantage, at least and at most"] = " to ".join(map(fraction, ends))
    else:
        largest["largest advantage"] = fraction(totals.largest.get("advantage"))
        for name, words in (("tpr_at_fpr_0_01", "1%"), ("tpr_at_fpr_0_001", "0.1%")):
            if name in totals.largest:
                largest[f"largest TPR at {words} FPR"] = fraction(totals.largest[name])
    facts = {
        f"{audit.unit}s": f"{totals.units:,}",
        "features": f"{about.features:,}",
        **largest,
        "median advantage": number(totals.median_advantage),
    }
    if audit.about.ranked_by == "kl":
        facts["largest KL, nats"] = number(totals.largest.get("kl"))
    if audit.basis != "assumed" and totals.exposed is not None:
        facts[f"{audit.exposed_above:g} or more"] = f"{totals.exposed:,}"
    facts["not confirmed"] = f"{totals.unconfirmed:,}"
    return list(facts.items())


# The table of records.


def table_columns(audit: Audit) -> list[PageColumn]:
    """The columns of the page's table, in order: those of the kind that this audit has."""
    found = [PageColumn("rank", "rank", "rank"), PageColumn("id", audit.unit, "text", "")]
    shown = shown_columns(audit.about.page, audit.table)
    if audit.unit == "group":
        shown = [COLUMNS["size"], *shown]
    for place, column in enumerate(shown):
        name, flag = column.name, column.form == "flag"
        wide = place >= NARROW and not flag
        classes = " ".join(filter(None, ("" if flag else "n", "wide" if wide else "")))
        if by_ends(name) and f"{name}_low" in audit.table:
            words = f"{column.heading}, {audit.about.interval_words}"
            found.append(PageColumn(f"{name}_low", words, "between", classes, f"{name}_high"))
            continue
        interval = name.endswith("_low") and not column.upper
        heading = audit.about.interval_words if interval else column.heading
        form = "range" if column.upper else FORMS[column.form]
        found.append(PageColumn(name, heading, form, classes, column.upper or ""))
        if name == "confirmed":
            found.append(PageColumn("check", "check", "text", "wide"))
    return found


def record_columns(audit: Audit) -> dict[str, list[Any]]:
    """What the page's script shows of every unit: columns by name, the most exposed first."""
    table, passed = audit.table, audit.trust.passed[audit.order]
    found: dict[str, list[Any]] = {
        "id": [shown_id(one) for one in table.columns["record_id"][audit.order].tolist()],
        "check": [NOT_PASSED.get(one, str(one + 1)) for one in passed.tolist()],
    }
    for column in table_columns(audit):
        for name in (column.key, column.upper):
            if name in table and name not in found:
                values = table.columns[name][audit.order].tolist()
                found[name] = [_short(value) for value in values]
    return found


def _short(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < float("inf") else None
    return value


def _checks(audit: Audit) -> list[tuple[str, str, int]]:
    """Each check by its number in the table, in words, and how many units of the table passed it.

    Those that passed none come last.
    """
    trust = audit.trust
    counts = Counter(trust.passed.tolist())
    found = [(str(n + 1), words, counts[n]) for n, words in enumerate(trust.checks)]
    reasons = {
        FAILED: "a check was made, and did not pass",
        UNCHECKED: "nobody looked",
        UNCERTAIN: "the number is not confirmed, its interval holds",
    }
    return found + [(NOT_PASSED[n], reasons[n], counts[n]) for n in reasons if counts[n]]


# Charts and sections.


def _charts(run: Run, audit: Audit) -> dict[str, Any]:
    """Descriptions by name: the histograms and ROCs that the run holds."""
    arrays = run.arrays((*charts.ROC_ARRAYS, *charts.HISTOGRAM_ARRAYS))
    drawn: dict[str, Any] = {}
    for column in shown_columns(("advantage", "kl"), audit.table):
        kl = column.name == "kl"
        chart = charts.audit_histogram(arrays, "kl" if kl else "advantage")
        if chart is not None:
            drawn["histogram_log10_kl" if kl else "histogram_advantage"] = chart
    if all(name in arrays for name in charts.ROC_ARRAYS):
        for name, logarithmic in (("roc_linear", False), ("roc_log", True)):
            drawn[name] = charts.roc(arrays, audit.units, logarithmic=logarithmic)
    return drawn


def _texts(
    answer: Sequence[str],
    columns: Sequence[PageColumn],
    sections: Sequence[tuple[Section, Any]],
    drawn: dict[str, Any],
    pictures: bool,
) -> list[str]:
    """What a reader meets on the page, for the glossary: every page speaks of members and laws."""
    own = [text for one, _ in sections for text in (one.title, *one.paragraphs)]
    own += [heading for one, _ in sections for headings, _ in one.tables for heading in headings]
    always = ["record", "member", "law", "advantage", "confirmed"]
    curves = ["ROC"] if "roc_linear" in drawn else []
    seen = ["similarity", "kernel"] if pictures else []
    return [*always, *answer, *(one.heading for one in columns), *own, *curves, *seen]


def _pictures(run: Run, pictures: list[ExposedPicture]) -> list[dict[str, Any]]:
    def shown(picture: Any) -> dict[str, Any]:
        return {
            "id": shown_id(picture.record_id),
            "target": shown_id(picture.target),
            "address": png_address(run.pictures[picture.file]),
        }

    return [
        {
            **shown(record),
            "rank": record.rank,
            "neighbours": [
                {**shown(other), "similarity": other.similarity} for other in record.neighbours
            ],
        }
        for record in pictures
    ]
