"""From a comparison of two audits to one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.reporting.charts import before_and_after, histogram, most_exposed
from leakscope.reporting.pages import rendered, write_page
from leakscope.results.comparison import Comparison


def comparison_html(document: Comparison) -> str:
    """The comparison as one page that needs nothing else.

    For a page of aggregates only give it ``document.aggregates_only()``.
    """
    sides = {"first": document.first, "second": document.second}
    charts: dict[str, Any] = {
        "two_advantages": histogram(
            document.advantage_edges,
            {name: side.advantage_counts for name, side in sides.items()},
            "advantage",
        ),
        "two_log10_kls": histogram(
            document.log10_kl_edges,
            {name: side.log10_kl_counts for name, side in sides.items()},
            "log10 of KL",
        ),
    }
    if document.records:
        charts["before_after_advantage"] = before_and_after(document.records, "advantage")
        charts["before_after_kl"] = before_and_after(document.records, "kl")
    return rendered(
        "compare.html",
        charts=charts,
        document=document,
        redact=document.redacted,
        shown=len(most_exposed(document.records)),
    )


def write_comparison(document: Comparison, path: str | Path) -> Path:
    """Write the page of a comparison, mode 0600, whole or not at all; where it was written."""
    return write_page(path, comparison_html(document))
