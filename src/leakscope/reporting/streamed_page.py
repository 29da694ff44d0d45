"""The report of a streamed audit: the most exposed, and how leakage is distributed over all."""

from __future__ import annotations

from leakscope.data import reason
from leakscope.errors import InputError
from leakscope.reporting import charts
from leakscope.reporting.embedding import chart_library, script_digest, script_json
from leakscope.reporting.glossary import GLOSSARY
from leakscope.reporting.model_page import HOLDS
from leakscope.reporting.templating import part, template
from leakscope.results import Run, StreamedAuditDocument

WORDS = ("record", "member, nonmember", "law", "advantage", "KL", "AUC", "noise variance")


def streamed_report_html(run: Run, document: StreamedAuditDocument, *, redact: bool = False) -> str:
    """Verdict, distribution, the most exposed records, and what was assumed; computes nothing."""
    from jinja2 import UndefinedError

    arrays = run.arrays(charts.HISTOGRAM_ARRAYS)
    drawn = {}
    if all(name in arrays for name in charts.HISTOGRAM_ARRAYS):
        for name, title in (("advantage", "advantage"), ("log10_kl", "log10 of KL")):
            edges, counts = (arrays[f"histogram_{name}_{which}"] for which in ("edges", "counts"))
            drawn[f"histogram_{name}"] = charts.histogram(edges, counts, title)
    library, own = chart_library(), part("report.js")
    try:
        page: str = template("streamed_report.html").render(
            document=document,
            redact=redact,
            drawn=drawn,
            subgroups=[s for s in document.subgroups if not (redact and s.small)],
            unit="record",
            assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
            glossary=[entry for entry in GLOSSARY if entry[0] in WORDS],
            versions=run.versions,
            data=script_json({"charts": drawn, "records": None}),
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
