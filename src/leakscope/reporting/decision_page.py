"""The record of a decision as one HTML page that prints well, and as Markdown for a model card."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from leakscope.reporting.pages import rendered
from leakscope.results.decision import DECISION_FILES, NO_HASH, NOT_STATED, Decision, sealed_text
from leakscope.results.document import to_json
from leakscope.results.run_directory import write_folder

# Beside the record: all records above a threshold, for a spreadsheet.
ABOVE_FILE = "above.csv"

CHOICES = ("approved", "approved with conditions", "refused")


def decision_html(document: Decision) -> str:
    """The record as one page that needs nothing else, with a hash of itself.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope.reporting import decision_page
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=1.0).fit(X, y))
    >>> page = decision_page.decision_html(leakscope.decide(audit, threshold_advantage=0.5))
    >>> "Decision, to be signed" in page, "not stated" in page
    (True, True)
    """
    return _sealed("decision.html", document, choices=_choices(document))


def decision_markdown(document: Decision) -> str:
    """The record for a model card; it names no record, since model cards are public.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope.reporting import decision_page
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=1.0).fit(X, y))
    >>> text = decision_page.decision_markdown(leakscope.decide(audit, threshold_advantage=0.5))
    >>> text.splitlines()[0]
    '## Privacy: membership leakage of Ridge(alpha=1)'
    """
    return _sealed("decision.md", document)


def decision_pages(document: Decision) -> dict[str, str]:
    """What is written beside decision.json, by name."""
    pages = (decision_html(document), decision_markdown(document))
    return dict(zip(DECISION_FILES[1:], pages, strict=True))


def write_decision(document: Decision, folder: str | Path) -> Path:
    """Write decision.json, decision.html and decision.md into a new folder, all or none.

    Only its owner may read it (mode 0700, files 0600).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope.reporting import decision_page
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=1.0).fit(X, y))
    >>> found = leakscope.decide(audit, threshold_advantage=0.5)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = decision_page.write_decision(found, pathlib.Path(place, "filed"))
    ...     sorted(file.name for file in folder.iterdir())
    ['decision.html', 'decision.json', 'decision.md']
    """
    texts = {DECISION_FILES[0]: to_json(document) + "\n", **decision_pages(document)}

    def fill(inside: Path) -> None:
        for name, text in texts.items():
            (inside / name).write_bytes(text.encode("utf-8"))
        if document.above and not document.redacted:
            (inside / ABOVE_FILE).write_bytes(_above(document).encode("utf-8"))

    return write_folder(Path(folder), fill)


def _above(document: Decision) -> str:
    """Everybody above a threshold as CSV, by the measure that is judged."""
    text = io.StringIO()
    names = list(type(document.above[0]).model_fields)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(one.model_dump() for one in document.above)
    return text.getvalue()


def _choices(document: Decision) -> tuple[str, ...]:
    """What the form offers: no approval that the numbers do not allow."""
    if document.obstacles:
        return CHOICES[2:]
    whole = document.within_thresholds and document.stated("access").value != "weights"
    return CHOICES if whole else CHOICES[1:]


def _sealed(name: str, document: Decision, **more: Any) -> str:
    return sealed_text(
        rendered(name, document=document, not_stated=NOT_STATED, no_hash=NO_HASH, **more)
    )
