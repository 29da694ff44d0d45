"""The report of any result: an audit's page, or what another result says in short."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leakscope.data.files import is_folder, is_there
from leakscope.errors import InputError
from leakscope.reporting.audit_page import audit_html
from leakscope.reporting.charts import placed
from leakscope.reporting.pages import (
    HOLDS,
    rendered,
    require_report_path,
    words_used,
    write_page,
)
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.reader import Run, read_run, result_of
from leakscope.results.verification import Verification

# Kinds of result whose table names records, and is left out of a redacted page.
NAMES_RECORDS = (
    "verify",
    "measure_models",
    "compare",
    "attack_query",
    "plan_network",
    "attack_membership",
    "erase",
)


def report_html(run: Run, *, redact: bool = False, beside: Sequence[ResultDocument] = ()) -> str:
    """The report of a run as one page that needs nothing else.

    Redacted it has aggregates only: no ids, no rows of single records, no pictures.
    """
    if isinstance(run.document, Audit):
        return audit_html(run, run.document, redact=redact, beside=beside)
    return short_html(run.document, versions=run.versions, redact=redact)


def short_html(
    document: ResultDocument, *, versions: Mapping[str, str] | None = None, redact: bool = False
) -> str:
    """A result in short as one page: what it says, its tables and charts, what it rests on."""
    short = document.in_short()
    drawn: dict[str, Any] = {}
    sections = placed(document.sections(), drawn, redact=redact)
    return rendered(
        "short_report.html",
        charts=drawn or None,
        sections=sections,
        document=document,
        short=short,
        title=short.title,
        rows=[] if redact and document.kind in NAMES_RECORDS else short.rows,
        warnings=[] if redact else short.warnings,
        redact=redact,
        assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
        glossary=words_used([*short.sentences, *short.headings, *(r[0] for r in short.rows)]),
        settings={k: v for k, v in document.settings.items() if v is not None},
        versions=dict(versions or {}),
    )


def report(
    run: Run | Audit | str | Path,
    path: str | Path | None = None,
    *,
    redact: bool = False,
    beside: Sequence[ResultDocument | str | Path] = (),
) -> Path:
    """A finished run, or a result file, as one HTML file that works offline; where it was written.

    Verdict, charts, every record, assumptions and settings; of a result that is no audit, such as
    that of ``measure`` or ``verify``, what it says in short.  It is as sensitive as the data, and
    only its owner may read it (mode 0600).

    Parameters
    ----------
    run
        A run directory, or the run as it was read; an audit in memory; or a result file that is
        no audit's.
    path
        A name that ends in .html.  Where left out, ``report.html`` or, redacted,
        ``report-redacted.html``: in the run directory, or in this folder for an audit in memory;
        or beside the result file under its name.  A report that is there is replaced.
    redact
        Aggregates only: no ids, no rows of single records, no pictures.
    beside
        Results of verify and measure of the same data, or their files, set beside the audit;
        verify.json and measure.json in the run directory are taken without being named.

    Raises
    ------
    InputError
        Where there is no run or result, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import leakscope
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = leakscope.audit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     leakscope.report(result, pathlib.Path(folder, "page.html")).name
    'page.html'
    """
    if path is not None:
        require_report_path(Path(path))
    ending = "-redacted.html" if redact else ".html"
    if isinstance(run, (str, Path)) and is_there(Path(run)) and not is_folder(Path(run)):
        file, document = Path(run), result_of(run)
        if isinstance(document, Audit) or beside:
            raise InputError(f"{file}: the report of an audit needs its run; name the directory.")
        page = short_html(document, redact=redact)
        return write_page(path or file.with_name(f"{file.stem}{ending}"), page)
    others = [result_of(result) for result in beside]
    for other in others:
        if not isinstance(other, (Measurement, ModelsMeasurement, Verification)):
            raise InputError(f"a result of kind {other.kind} cannot be shown beside an audit.")
    if isinstance(run, Audit) and run.directory is None:
        # The run of an audit that was not written is made in passing.
        with tempfile.TemporaryDirectory() as folder:
            whole = read_run(run.write(Path(folder, "run")))
            page = report_html(whole, redact=redact, beside=others)
        return write_page(path or f"report{ending}", page)
    place = run.directory if isinstance(run, Audit) else run
    whole = place if isinstance(place, Run) else read_run(place or "")
    page = report_html(whole, redact=redact, beside=others)
    return write_page(path or whole.directory / f"report{ending}", page)
