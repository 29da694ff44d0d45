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
    """The record as one page that needs nothing else, with a hash of itself."""
    # No approval that the numbers do not allow.
    refused = bool(document.obstacles)
    doubted = not document.within_thresholds or document.stated("access").value == "weights"
    choices = CHOICES[2 if refused else 1 if doubted else 0 :]
    return _sealed("decision.html", document, choices=choices)


def decision_markdown(document: Decision) -> str:
    """The record for a model card; it names no record, since model cards are public."""
    return _sealed("decision.md", document)


def decision_pages(document: Decision) -> dict[str, str]:
    """What is written beside decision.json, by name."""
    pages = (decision_html(document), decision_markdown(document))
    return dict(zip(DECISION_FILES[1:], pages, strict=True))


def write_decision(document: Decision, folder: str | Path) -> Path:
    """Write decision.json, decision.html and decision.md into a new folder, all or none.

    Only its owner may read it (mode 0700, files 0600).
    """
    texts = {DECISION_FILES[0]: to_json(document) + "\n", **decision_pages(document)}
    if document.above and not document.redacted:
        texts[ABOVE_FILE] = _above(document)

    def fill(inside: Path) -> None:
        for name, text in texts.items():
            (inside / name).write_bytes(text.encode("utf-8"))

    return write_folder(Path(folder), fill)


def _above(document: Decision) -> str:
    """Everybody above a threshold as CSV, by the measure that is judged."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(type(document.above[0]).model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.model_dump() for entry in document.above)
    return text.getvalue()


def _sealed(name: str, document: Decision, **more: Any) -> str:
    return sealed_text(
        rendered(name, document=document, not_stated=NOT_STATED, no_hash=NO_HASH, **more)
    )
