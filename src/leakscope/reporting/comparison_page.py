"""From a comparison of two audits to one HTML page, in the style of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.reporting import comparison_charts
from leakscope.reporting.embedding import chart_library, script_digest, script_json
from leakscope.reporting.templating import part, template
from leakscope.reporting.writing import require_report_path
from leakscope.results import Comparison, write_private


def comparison_html(document: Comparison) -> str:
    """The comparison as one page that needs nothing else.

    For a page of aggregates only give it ``document.aggregates_only()``.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import comparing, reporting
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> names = ["ann-1", "bob-2", "eve-3"]
    >>> found = comparing.compare(
    ...     leakscope.audit(X, y, record_ids=names, kernel="rbf"),
    ...     leakscope.audit(X, y, record_ids=names, noise_variance=0.5),
    ... )
    >>> page = reporting.comparison_html(found)
    >>> "eve-3" in page, "eve-3" in reporting.comparison_html(found.aggregates_only())
    (True, False)
    """
    drawn = _charts(document)
    library, own = chart_library(), part("report.js")
    page: str = template("compare.html").render(
        document=document,
        redact=document.redacted,
        drawn=drawn,
        shown=len(comparison_charts.most_exposed(document.records)),
        data=script_json({"charts": drawn, "records": None}),
        style=part("report.css"),
        scripts=(library, own),
        digests=" ".join(script_digest(source) for source in (library, own)),
    )
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def write_comparison(document: Comparison, path: str | Path) -> Path:
    """Write the page of a comparison, mode 0600, whole or not at all; where it was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import comparing, reporting
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> found = comparing.compare(result, result)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = reporting.write_comparison(found, pathlib.Path(folder, "same.html"))
    ...     oct(written.stat().st_mode & 0o777)
    '0o600'
    """
    path = Path(path)
    require_report_path(path)
    write_private(path, comparison_html(document))
    return path


def _charts(document: Comparison) -> dict[str, Any]:
    first, second = document.first, document.second
    units = (first.units, second.units)
    drawn = {
        "two_advantages": comparison_charts.two_histograms(
            document.advantage_edges,
            (first.advantage_counts, second.advantage_counts),
            units,
            "advantage",
        ),
        "two_log10_kls": comparison_charts.two_histograms(
            document.log10_kl_edges,
            (first.log10_kl_counts, second.log10_kl_counts),
            units,
            "log10 of KL",
        ),
    }
    if document.records:
        for measure in ("advantage", "kl"):
            chart = comparison_charts.before_and_after(
                document.records, "kl" if measure == "kl" else "advantage"
            )
            drawn[f"before_after_{measure}"] = chart
    return drawn
