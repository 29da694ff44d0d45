"""From a run to the text of one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakscope.data import reason
from leakscope.errors import InputError
from leakscope.reporting import charts
from leakscope.reporting.embedding import (
    chart_library,
    png_address,
    script_digest,
    script_json,
)
from leakscope.reporting.glossary import GLOSSARY
from leakscope.reporting.model_page import HOLDS, model_parts
from leakscope.reporting.records_table import record_columns, shown_id, table_columns, table_rows
from leakscope.reporting.short_page import short_html
from leakscope.reporting.streamed_page import streamed_report_html
from leakscope.reporting.templating import part, template
from leakscope.results import (
    AuditDocument,
    AuditedDocument,
    ExposedPicture,
    ModelAuditDocument,
    ResultDocument,
    Run,
    StreamedAuditDocument,
    Verification,
    reconciled,
    was_retrained,
)

NOT_EXAMINED = "your model was not examined"
RETRAINED = "your model was trained again to check it (see Verification)"

# What a page without JavaScript shows of the table.
STATIC_RECORDS = 10

LEFT_OUT = "histogram_log10_kl_left_out"


def report_html(run: Run, *, redact: bool = False, beside: Sequence[ResultDocument] = ()) -> str:
    """The report of a run as one page that needs nothing else.

    Parameters
    ----------
    run
        From :func:`leakscope.results.read_run`.
    redact
        Aggregates only: no ids, no rows of single records, no pictures.
    beside
        Other results of verify and measure of the same data, set beside the audit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import reporting, results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, record_ids=["ann-1", "bob-2", "eve-3"], kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = results.write_run_directory(pathlib.Path(folder, "run"), result.to_document())
    ...     run = results.read_run(path)
    ...     page, redacted = reporting.report_html(run), reporting.report_html(run, redact=True)
    >>> "eve-3" in page, "eve-3" in redacted
    (True, False)
    """
    document = run.document
    others = [one for one in (run.verification, run.measurement, *beside) if one is not None]
    if isinstance(document, StreamedAuditDocument):
        return streamed_report_html(run, document, redact=redact)
    if not isinstance(document, (AuditDocument, ModelAuditDocument)):
        return short_html(document, versions=run.versions, redact=redact)
    from jinja2 import UndefinedError

    drawn = _charts(run, document)
    if isinstance(document, ModelAuditDocument):
        name, own = "model_report.html", model_parts(document, redact=redact)
        if len(document.penalties) > 1:
            drawn["exposure_by_penalty"] = charts.exposure_by_penalty(document.penalties)
    else:
        name, own = "report.html", _process_parts(run, document, redact, others)
        drawn |= _process_charts(document, redact)
    columns, records = table_columns(document), record_columns(document)
    data = {"charts": drawn, "records": None if redact else records}
    scripts = (chart_library(), part("report.js"))
    try:
        page: str = template(name).render(
            document=document,
            redact=redact,
            first=document.records[0],
            columns=columns,
            top=[] if redact else table_rows(columns, records, STATIC_RECORDS),
            drawn=drawn,
            assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
            verification=run.verification,
            rows=reconciled(document, others),
            # One subgroup of few is nearly a record.
            subgroups=[s for s in document.subgroups if not (redact and s.small)],
            versions=run.versions,
            settings={k: v for k, v in document.settings.items() if v is not None},
            data=script_json(data),
            style=part("report.css"),
            scripts=scripts,
            digests=" ".join(script_digest(source) for source in scripts),
            **own,
        )
    except UndefinedError as error:
        # The settings, the provenance and the kernel are open parts of a result's schema.
        raise InputError(
            f"{run.directory}: the result is not whole, because {reason(error)}."
        ) from error
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def _process_parts(
    run: Run, document: AuditDocument, redact: bool, others: Sequence[ResultDocument]
) -> dict[str, Any]:
    """What only the report of a Gaussian process has."""
    return {
        "verdict": _verdict(document, redact, others),
        "log10_kl_left_out": int(run.arrays((LEFT_OUT,)).get(LEFT_OUT, 0)),
        "pictures": [] if redact else _pictures(run, run.gallery.pictures),
        "disagreeing_pictures": [] if redact else _pictures(run, run.gallery.disagreeing),
        "glossary": GLOSSARY,
    }


def _verdict(document: AuditDocument, redact: bool, others: Sequence[ResultDocument]) -> str:
    told = document.verdict_without_ids if redact else document.verdict
    if told and any(isinstance(one, Verification) and was_retrained(one) for one in others):
        # The audit is of a stand-in, but by now the model itself was trained again.
        told = told.replace(NOT_EXAMINED, RETRAINED)
    return told or (
        "This run was made by an earlier leakscope whose verdict names a record, and is left out "
        "of a redacted report."
    )


def _charts(run: Run, document: AuditedDocument) -> dict[str, Any]:
    """Descriptions by name: the histograms and ROCs that the run holds."""
    arrays = run.arrays((*charts.ROC_ARRAYS, *charts.HISTOGRAM_ARRAYS))
    drawn: dict[str, Any] = {}
    for name, title in (("advantage", "advantage"), ("log10_kl", "log10 of KL")):
        edges, counts = (arrays.get(f"histogram_{name}_{part}") for part in ("edges", "counts"))
        if edges is not None and counts is not None:
            drawn[f"histogram_{name}"] = charts.histogram(edges, counts, title)
    if all(name in arrays for name in charts.ROC_ARRAYS):
        for name, logarithmic in (("roc_linear", False), ("roc_log", True)):
            drawn[name] = charts.roc(arrays, len(document.records), logarithmic=logarithmic)
    return drawn


def _process_charts(document: AuditDocument, redact: bool) -> dict[str, Any]:
    """How the ranks move with the noise and the kernel."""
    drawn: dict[str, Any] = {}
    swept = document.sensitivity
    if swept is not None:
        drawn["median_by_noise"] = charts.median_by_noise(swept, document.noise_variance)
        if not redact:
            first = document.records[: charts.RANGES_SHOWN]
            names = [shown_id(record.record_id) for record in first]
            drawn["rank_ranges"] = charts.rank_ranges(first, names)
    kernels = None if document.choices is None else document.choices.kernels
    if kernels is not None and kernels.others:
        drawn["kernel_advantages"] = charts.kernel_advantages(kernels)
        if not redact:
            first = document.records[: charts.RANGES_SHOWN]
            names = [shown_id(record.record_id) for record in first]
            drawn["kernel_ranges"] = charts.rank_ranges(first, names, over="kernels")
    return drawn


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
