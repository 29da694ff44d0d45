"""The charts of a comparison: two distributions, and each record before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from leakscope.reporting.charts import BLUE, GREY, HEIGHT, ORANGE, described, plot, zoom
from leakscope.reporting.records_table import shown_id
from leakscope.results import ComparedRecord

# The most exposed in either run are drawn, up to this many: more would only be slow.
POINTS = 2000

SIDES = ("first", "second")


def two_histograms(
    edges: Sequence[float],
    counts: tuple[Sequence[int], Sequence[int]],
    units: tuple[int, int],
    title: str,
) -> dict[str, Any]:
    """The shares of both runs' records between the same edges, one over the other.

    Examples
    --------
    >>> from leakscope.reporting.comparison_charts import two_histograms
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


def before_and_after(
    records: Sequence[ComparedRecord], measure: Literal["advantage", "kl"]
) -> dict[str, Any]:
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
