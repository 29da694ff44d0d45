"""From a run to the text of one HTML page."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from leakscope.errors import InputError
from leakscope.io.audit_results import AuditDocument
from leakscope.io.run_reader import Run
from leakscope.report import charts
from leakscope.report.embedding import (
    in_order,
    inline_script,
    png_address,
    script_digest,
    script_json,
)
from leakscope.report.glossary import GLOSSARY
from leakscope.report.records_table import record_columns, shown_id

# What a page without JavaScript shows of the table.
STATIC_RECORDS = 10

HOLDS = {True: "yes", False: "no", None: "cannot tell"}


def report_html(run: Run, *, redact: bool = False) -> str:
    """The report of a run as one page that needs nothing else.

    Parameters
    ----------
    run
        From :func:`leakscope.io.read_run`; a run of ``leakscope audit``.
    redact
        Aggregates only: no ids, no rows of single records, no pictures.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import io, report
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, record_ids=["ann-1", "bob-2", "eve-3"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = io.read_run(io.write_run(pathlib.Path(folder, "run"), result.to_document()))
    ...     page, redacted = report.report_html(run), report.report_html(run, redact=True)
    >>> "eve-3" in page, "eve-3" in redacted
    (True, False)
    """
    document = run.document
    if not isinstance(document, AuditDocument):
        raise InputError(
            f"{run.directory} holds a result of kind {document.kind}; a report is made of a run of "
            "leakscope audit."
        )
    drawn, left_out = _charts(run, document, redact)
    data = {"charts": drawn, "records": None if redact else record_columns(document)}
    library, own = _library(), _part("report.js")
    page: str = _template().render(
        document=document,
        redact=redact,
        verdict=_verdict(document, redact),
        first=document.records[0],
        top=[] if redact else document.records[:STATIC_RECORDS],
        drawn=drawn,
        log10_kl_left_out=left_out,
        assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
        verification=run.verification,
        # One subgroup of few is nearly a record.
        subgroups=[s for s in document.subgroups if not (redact and s.small)],
        pictures=[] if redact else _pictures(run),
        glossary=GLOSSARY,
        versions=run.versions,
        settings={k: v for k, v in document.settings.items() if v is not None},
        data=script_json(data),
        style=_part("report.css"),
        scripts=(library, own),
        digests=" ".join(script_digest(source) for source in (library, own)),
    )
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def _verdict(document: AuditDocument, redact: bool) -> str:
    if not redact:
        return document.verdict
    return document.verdict_without_ids or (
        "This run was made by an earlier leakscope whose verdict names a record, and is left out "
        "of a redacted report."
    )


def _charts(run: Run, document: AuditDocument, redact: bool) -> tuple[dict[str, Any], int]:
    """Descriptions by name, and how many records have no place on the KL histogram."""
    arrays = run.arrays((*charts.ROC_ARRAYS, *charts.HISTOGRAM_ARRAYS))
    drawn: dict[str, Any] = {}
    left_out = 0
    if all(name in arrays for name in charts.HISTOGRAM_ARRAYS):
        for name, title in (("advantage", "advantage"), ("log10_kl", "log10 of KL")):
            edges, counts = (arrays[f"histogram_{name}_{part}"] for part in ("edges", "counts"))
            drawn[f"histogram_{name}"] = charts.histogram(edges, counts, title)
        left_out = int(arrays["histogram_log10_kl_left_out"])
    if all(name in arrays for name in charts.ROC_ARRAYS):
        for name, logarithmic in (("roc_linear", False), ("roc_log", True)):
            drawn[name] = charts.roc(arrays, len(document.records), logarithmic=logarithmic)
    swept = document.sensitivity
    if swept is not None:
        drawn["median_by_noise"] = charts.median_by_noise(swept, document.noise_variance)
        if not redact:
            first = document.records[: charts.RANGES_SHOWN]
            names = [shown_id(record.record_id) for record in first]
            drawn["rank_ranges"] = charts.rank_ranges(first, names)
    return drawn, left_out


def _pictures(run: Run) -> list[dict[str, Any]]:
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
        for record in run.gallery.pictures
    ]


@cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed in one, in a scope of their own."""
    import vl_convert

    # Its type stub asks for the code to bundle with; left out, the whole library is meant.
    convert: Any = vl_convert
    bundle: str = convert.javascript_bundle()
    return inline_script(f"(() => {{{bundle}\n}})();")


def _part(name: str) -> str:
    folder = resources.files("leakscope.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalised,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    environment.filters["fraction"] = _fraction
    environment.filters["share"] = lambda value: "–" if value is None else f"{value:.0%}"
    return environment.from_string(_part("report.html"))


def _finalised(value: Any) -> Any:
    """Every text that a page is given; what is already HTML is of another type."""
    return in_order(value) if type(value) is str else value


def _fraction(value: float | None) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them."""
    if value is None:
        return "–"
    return ">0.9999" if value >= 0.99995 else f"{value:.4f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
