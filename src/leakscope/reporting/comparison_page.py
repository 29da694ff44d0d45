"""From a comparison of two audits to one HTML page, in the style of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from leakscope.reporting.charts import BLUE, GREY, HEIGHT, ORANGE, described, plot, zoom
from leakscope.reporting.pages import rendered, shown_id
from leakscope.reporting.writing import require_report_path
from leakscope.results.comparison import ComparedRecord, Comparison
from leakscope.results.document import write_private

# The most exposed in either run are drawn, up to this many: more would only be slow.
POINTS = 2000

SIDES = ("first", "second")

Measure = Literal["advantage", "kl"]
MEASURES: tuple[Measure, ...] = ("advantage", "kl")


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
    >>> page = reporting.comparison_page.comparison_html(found)
    >>> redacted = reporting.comparison_page.comparison_html(found.aggregates_only())
    >>> "eve-3" in page, "eve-3" in redacted
    (True, False)
    """
    return rendered(
        "compare.html",
        charts=_charts(document),
        document=document,
        redact=document.redacted,
        shown=len(most_exposed(document.records)),
    )


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
        "two_advantages": two_histograms(
            document.advantage_edges,
            (first.advantage_counts, second.advantage_counts),
            units,
            "advantage",
        ),
        "two_log10_kls": two_histograms(
            document.log10_kl_edges,
            (first.log10_kl_counts, second.log10_kl_counts),
            units,
            "log10 of KL",
        ),
    }
    if document.records:
        for measure in MEASURES:
            drawn[f"before_after_{measure}"] = before_and_after(document.records, measure)
    return drawn


def two_histograms(
    edges: Sequence[float],
    counts: tuple[Sequence[int], Sequence[int]],
    units: tuple[int, int],
    title: str,
) -> dict[str, Any]:
    """The shares of both runs' records between the same edges, one over the other.

    Examples
    --------
    >>> from leakscope.reporting.comparison_page import two_histograms
    >>> chart = two_histograms([0.0, 0.5, 1.0], ([3, 1], [0, 2]), (4, 2), "advantage")
    >>> chart["data"]["values"][-1]
    {'from': 0.5, 'to': 1.0, 'run': 'second', 'records': 2, 'share': 1.0}
    """
    import altair as alt

    values = [
        {"from": low, "to": high, "run": side, "records": count, "share": count / max(total, 1)}
        for side, side_counts, total in zip(SIDES, counts, units, strict=True)
        for low, high, count in zip(edges[:-1], edges[1:], side_counts, strict=True)
    ]
    scale = alt.Scale(domain=[edges[0], edges[-1]], nice=False)
    chart = (
        plot(values)
        .mark_bar(opacity=0.55, clip=True)
        .encode(
            x=alt.X("from:Q", title=title, scale=scale, bin="binned", axis=alt.Axis(grid=False)),
            x2="to:Q",
            y=alt.Y("share:Q", title="share", stack=None, axis=alt.Axis(format="%")),
            color=alt.Color(
                "run:N",
                title=None,
                scale=alt.Scale(domain=list(SIDES), range=[BLUE, ORANGE]),
                legend=alt.Legend(orient="bottom"),
            ),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("from:Q", format=".3g"),
                alt.Tooltip("to:Q", format=".3g"),
                alt.Tooltip("records:Q"),
            ],
        )
    )
    return described(chart.add_params(zoom(["x"])), height=HEIGHT + 30)


def before_and_after(records: Sequence[ComparedRecord], measure: Measure) -> dict[str, Any]:
    """Each record of both runs: the first across, the second up; above the line it rose."""
    import altair as alt

    logarithmic = measure == "kl"
    values = []
    for record in most_exposed(records):
        first, second = (getattr(record, f"{side}_{measure}") for side in SIDES)
        if first is None or second is None or (logarithmic and min(first, second) <= 0.0):
            continue
        values.append(
            {
                "record": shown_id(record.record_id),
                "first": first,
                "second": second,
                "ranks": f"{record.first_rank} and then {record.second_rank}",
            }
        )
    ends = [value[side] for value in values for side in SIDES]
    low, high = (min(ends), max(ends)) if ends else (0.1, 1.0)
    scale = (
        alt.Scale(type="log", domain=[0.8 * low, 1.25 * high], nice=False)
        if logarithmic
        else alt.Scale(domain=[-0.02, 1.02], nice=False)
    )
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=6)
    name = "KL (nats)" if logarithmic else "advantage"
    x = alt.X("first:Q", title=f"{name}, first run", scale=scale, axis=axis)
    y = alt.Y("second:Q", title=f"{name}, second run", scale=scale, axis=axis)
    line = [{"first": end, "second": end} for end in ((low, high) if logarithmic else (0.0, 1.0))]
    diagonal = plot(line).mark_line(color=GREY, strokeDash=[5, 4], clip=True).encode(x=x, y=y)
    points = (
        plot(values)
        .mark_circle(color=BLUE, size=36, opacity=0.55, clip=True)
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("record:N"),
                alt.Tooltip("first:Q", format=".4g"),
                alt.Tooltip("second:Q", format=".4g"),
                alt.Tooltip("ranks:N"),
            ],
        )
    )
    return described(alt.layer(diagonal, points.add_params(zoom(["x", "y"]))), height=HEIGHT + 90)


def most_exposed(records: Sequence[ComparedRecord]) -> list[ComparedRecord]:
    """Those that are drawn: the best rank in either run first, up to ``POINTS``."""
    return sorted(records, key=lambda r: min(r.first_rank, r.second_rank))[:POINTS]
