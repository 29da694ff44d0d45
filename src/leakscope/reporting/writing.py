"""The report of any result: an audit's page, or what another result says in short."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leakscope.data.files import is_folder, is_there, require_new_file
from leakscope.errors import InputError
from leakscope.reporting.audit_page import audit_html
from leakscope.reporting.charts import placed
from leakscope.reporting.pages import HOLDS, rendered, words_used
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument, write_private
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.reader import Run, read_run, result_of
from leakscope.results.verification import Verification

REPORT_FILE = "report.html"
REDACTED_FILE = "report-redacted.html"

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
    >>> audit = leakscope.audit(X, y, record_ids=["ann-1", "bob-2", "eve-3"], kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = results.reader.read_run(audit.write(pathlib.Path(folder, "run")))
    ...     page = reporting.writing.report_html(run)
    ...     redacted = reporting.writing.report_html(run, redact=True)
    >>> "eve-3" in page, "eve-3" in redacted
    (True, False)
    """
    if isinstance(run.document, Audit):
        return audit_html(run, run.document, redact=redact, beside=beside)
    return short_html(run.document, versions=run.versions, redact=redact)


def short_html(
    document: ResultDocument, *, versions: Mapping[str, str] | None = None, redact: bool = False
) -> str:
    """A result in short as one page: what it says, its tables and charts, what it rests on.

    Without charts it has no script.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting.writing import short_html
    >>> page = short_html(leakscope.measure("normal:1,1", "normal:0,1"))
    >>> "advantage (best TPR - FPR)" in page, "<script" in page
    (True, False)
    """
    short = document.in_short()
    told = [*short.sentences, *short.headings, *(row[0] for row in short.rows), "member"]
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
        glossary=words_used(told),
        settings={k: v for k, v in document.settings.items() if v is not None},
        versions=dict(versions or {}),
    )


def write_report(
    run: Run,
    path: str | Path | None = None,
    *,
    redact: bool = False,
    beside: Sequence[ResultDocument] = (),
) -> Path:
    """Write the report of a run, mode 0600, whole or not at all; where it was written.

    Parameters
    ----------
    run
        From :func:`leakscope.results.read_run`.
    path
        A name that ends in .html; in the run directory, ``report.html`` or, redacted,
        ``report-redacted.html``, where left out.  A report that is there is replaced.
    redact
        Aggregates only: no ids, no rows of single records, no pictures.
    beside
        Results of verify and measure of the same data, set beside the audit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import reporting, results
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = results.reader.read_run(result.write(pathlib.Path(folder, "run")))
    ...     written = reporting.writing.write_report(run)
    ...     written.name, oct(written.stat().st_mode & 0o777)
    ('report.html', '0o600')
    """
    if path is None:
        path = run.directory / (REDACTED_FILE if redact else REPORT_FILE)
    path = Path(path)
    require_report_path(path)
    write_private(path, report_html(run, redact=redact, beside=beside))
    return path


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
    >>> import numpy as np
    >>> import leakscope
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     leakscope.report(result, pathlib.Path(folder, "page.html")).name
    'page.html'
    """
    if path is not None:
        require_report_path(Path(path))
    if isinstance(run, (str, Path)) and is_there(Path(run)) and not is_folder(Path(run)):
        if beside:
            raise InputError(
                "other results are shown beside the run of an audit; name its directory."
            )
        return _report_of_file(Path(run), path, redact=redact)
    others = [result_of(one) for one in beside]
    for one in others:
        if not isinstance(one, (Measurement, ModelsMeasurement, Verification)):
            raise InputError(
                f"a result of kind {one.kind} cannot be shown beside an audit; give results of "
                "verify and measure."
            )
    if isinstance(run, Audit):
        if run.directory is None:
            return _report_in_memory(run, path, redact=redact, beside=others)
        run = run.directory
    whole = run if isinstance(run, Run) else read_run(run)
    return write_report(whole, path, redact=redact, beside=others)


def _report_in_memory(
    audit: Audit, path: str | Path | None, *, redact: bool, beside: Sequence[ResultDocument]
) -> Path:
    """The page of an audit that was not written: its run is made in passing."""
    with tempfile.TemporaryDirectory() as folder:
        run = read_run(audit.write(Path(folder, "run")))
        place = Path(path or ("report-redacted.html" if redact else "report.html"))
        return write_report(run, place, redact=redact, beside=beside)


def _report_of_file(file: Path, path: str | Path | None, *, redact: bool) -> Path:
    document = result_of(file)
    if isinstance(document, Audit):
        raise InputError(
            f"{file} is the result of an audit, whose charts are in other files of its folder; "
            "name the run directory."
        )
    ending = "-redacted.html" if redact else ".html"
    target = file.with_name(f"{file.stem}{ending}") if path is None else Path(path)
    require_report_path(target)
    write_private(target, short_html(document, redact=redact))
    return target


def require_report_path(path: Path) -> None:
    """Refuse, before any work is done, a name that is no page or cannot be written.

    Examples
    --------
    >>> import pathlib
    >>> from leakscope.reporting.writing import require_report_path
    >>> require_report_path(pathlib.Path("report.pdf"))
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: report.pdf does not end in .html; a report is an HTML file.
    """
    if path.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"{path} does not end in .html; a report is an HTML file.")
    require_new_file(path, "a report needs a file name")
