"""The report of an audit of a fitted model: from a run to the text of one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakscope.data import reason
from leakscope.errors import InputError
from leakscope.reporting import charts
from leakscope.reporting.embedding import chart_library, script_digest, script_json
from leakscope.reporting.glossary import GLOSSARY
from leakscope.reporting.records_table import model_record_columns
from leakscope.reporting.templating import part, template
from leakscope.results import ModelAuditDocument, ResultDocument, Run, reconciled

# What a page without JavaScript shows of the table.
STATIC_RECORDS = 10

HOLDS = {True: "yes", False: "no", None: "cannot tell"}

# The words of the glossary that mean the same on such a page, and those that are its own.
WORDS = ("record", "member, nonmember", "advantage", "AUC", "ROC")
OWN_WORDS = (
    (
        "law",
        "The probability distribution of what an attacker sees, over the training sets that the "
        "question allows. Each record has two: with it in the training set and without it.",
    ),
    (
        "TPR at an FPR",
        "The share of members that the best test finds when it accuses this share of nonmembers. "
        "Records are ranked by advantage; an attacker who must be sure looks at these.",
    ),
    (
        "KL",
        "The Kullback–Leibler divergence of the law without the record from the law with it, in "
        "nats.",
    ),
    (
        "shift",
        "How far the record’s own presence moves its score on average, in standard deviations of "
        "the score over training sets without it.",
    ),
    (
        "trusted",
        "Not where one other record carries more than 40% of the variance of a record’s score, or "
        "where the computation did not settle.",
    ),
)

HISTOGRAM = ("histogram_advantage_edges", "histogram_advantage_counts")


def model_report_html(
    run: Run, document: ModelAuditDocument, beside: Sequence[ResultDocument], *, redact: bool
) -> str:
    """The answer, the distribution, every record, and what was assumed; computes nothing."""
    from jinja2 import UndefinedError

    drawn = _charts(run, document)
    data = {"charts": drawn, "records": None if redact else model_record_columns(document)}
    library, own = chart_library(), part("report.js")
    try:
        page: str = template("model_report.html").render(
            document=document,
            redact=redact,
            answer=document.answer_without_ids if redact else document.answer,
            first=document.records[0],
            top=[] if redact else document.records[:STATIC_RECORDS],
            drawn=drawn,
            assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
            verification=run.verification,
            rows=reconciled(document, beside),
            # One subgroup of few is nearly a record.
            subgroups=[s for s in document.subgroups if not (redact and s.small)],
            glossary=[*(entry for entry in GLOSSARY if entry[0] in WORDS), *OWN_WORDS],
            versions=run.versions,
            settings={k: v for k, v in document.settings.items() if v is not None},
            data=script_json(data),
            style=part("report.css"),
            scripts=(library, own),
            digests=" ".join(script_digest(source) for source in (library, own)),
        )
    except UndefinedError as error:
        raise InputError(
            f"{run.directory}: the result is not whole, because {reason(error)}."
        ) from error
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def _charts(run: Run, document: ModelAuditDocument) -> dict[str, Any]:
    arrays = run.arrays((*charts.ROC_ARRAYS, *HISTOGRAM))
    drawn: dict[str, Any] = {}
    if all(name in arrays for name in HISTOGRAM):
        edges, counts = (arrays[name] for name in HISTOGRAM)
        drawn["histogram_advantage"] = charts.histogram(edges, counts, "advantage")
    if all(name in arrays for name in charts.ROC_ARRAYS):
        for name, logarithmic in (("roc_linear", False), ("roc_log", True)):
            drawn[name] = charts.roc(arrays, len(document.records), logarithmic=logarithmic)
    return drawn
