"""The report of a result that is no audit, such as a measurement or a verification: one page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leakscope.errors import InputError
from leakscope.reporting.glossary import GLOSSARY
from leakscope.reporting.model_page import HOLDS
from leakscope.reporting.templating import part, template
from leakscope.results import AuditDocument, ModelAuditDocument, ResultDocument, result_of

# The words of the glossary that such a page uses.
WORDS = ("record", "member, nonmember", "law", "advantage", "KL", "AUC")

# Kinds whose table names records, and is left out of a redacted page.
NAMES_RECORDS = ("verify", "measure_models", "compare", "attack_query", "attack_membership")


def short_html(
    document: ResultDocument, *, versions: Mapping[str, str] | None = None, redact: bool = False
) -> str:
    """A result in short as one page: what it says, its table, what it rests on; no script.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.reporting import short_html
    >>> page = short_html(leakscope.measure("normal:1,1", "normal:0,1"))
    >>> "advantage (best TPR - FPR)" in page, "<script" in page
    (True, False)
    """
    short = document.in_short()
    page: str = template("short_report.html").render(
        document=document,
        short=short,
        title=short.title,
        rows=[] if redact and document.kind in NAMES_RECORDS else short.rows,
        warnings=[] if redact else short.warnings,
        redact=redact,
        assumptions=[(entry, HOLDS[entry.holds]) for entry in document.assumptions],
        glossary=[entry for entry in GLOSSARY if entry[0] in WORDS],
        settings={k: v for k, v in document.settings.items() if v is not None},
        versions=dict(versions or {}),
        style=part("report.css"),
        digests="'none'",
    )
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def result_in_file(path: Path) -> ResultDocument:
    """The result of a file; an audit's charts are in its run directory, which is asked for."""
    document = result_of(path)
    if isinstance(document, (AuditDocument, ModelAuditDocument)):
        raise InputError(
            f"{path} is the result of an audit, whose charts lie beside it; name the run directory."
        )
    return document
