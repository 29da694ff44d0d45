"""The charts of every page: numbers of a run in, Vega-Lite descriptions out.

altair describes them; the page draws them with Vega, which the package carries.  Drag to move,
Shift and wheel to zoom, double click to go back: the bare wheel is left to the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.reporting.pages import shown_id
from leakscope.results.audit import Audit, Picture
from leakscope.results.audit_run import report_arrays
from leakscope.results.comparison import ComparedRecord
from leakscope.results.sections import LineChart, Section

if TYPE_CHECKING:
    import altair as alt

Arrays = Mapping[str, NDArray[Any]]
Rows = list[dict[str, Any]]

ROC_ARRAYS = ("roc_ranks", "roc_fpr", "roc_tpr")
HISTOGRAM_ARRAYS = (
    "histogram_advantage_edges",
    "histogram_advantage_counts",
    "histogram_log10_kl_edges",
    "histogram_log10_kl_counts",
    "histogram_log10_kl_left_out",
)

HEIGHT = 240
WIDTH = 480  # of a chart on its own

# Of a log-log ROC: rates below this are of no use to an attacker.
LEAST_RATE = 1e-6

# Units that a chart of ranks or of pairs draws: more would only be slow.
MOST_RANKS, MOST_PAIRS = 400, 2000

# The colours of every chart; several series take them in this order.
BLUE, ORANGE, GREEN, GREY = "#1f5a96", "#d98243", "#2c6e2a", "#767676"
SERIES = (BLUE, ORANGE, GREEN, "#8c4aa8", "#b0263d", "#17868c", "#8a6d1c", "#4a4f57")

DASHED = [5, 4]


# What charts are made of.


def plot(rows: Rows) -> alt.Chart:
    """A chart of these rows, without marks yet."""
    import altair as alt

    data: Any = alt.Data
    return alt.Chart(data(values=rows))


def scale(kind: Literal["log", "unit"], *domain: float) -> alt.Scale:
    """A logarithmic scale, or one a little wider than 0 to 1, so that what is there is seen."""
    import altair as alt

    if kind == "unit":
        return alt.Scale(domain=[-0.02, 1.02], nice=False)
    return alt.Scale(type="log", domain=list(domain) or alt.Undefined, nice=False, padding=12)


def coloured(field: str, names: Sequence[str], *, columns: int = 2) -> alt.Color:
    """A colour for each name; one name alone needs no legend."""
    import altair as alt

    legend = alt.Legend(orient="bottom", columns=columns, labelLimit=400, symbolSize=150)
    return alt.Color(
        f"{field}:N",
        title=None,
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=list(SERIES[: len(names)])),
        legend=legend if len(names) > 1 else None,
    )


def tooltips(*fields: str) -> list[alt.Tooltip]:
    """What a pointer shows: ``name:N`` as it is, ``name:Q`` in four digits."""
    import altair as alt

    return [
        alt.Tooltip(field, format=".4g") if field.endswith(":Q") else alt.Tooltip(field)
        for field in fields
    ]


def zoom(*encodings: Any) -> alt.Parameter:
    """Drag to move, Shift and wheel to zoom."""
    import altair as alt

    return alt.selection_interval(
        bind="scales", encodings=list(encodings), zoom="wheel![event.shiftKey]"
    )


def described(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """A chart as the page takes it: as wide as its place, and the same everywhere."""
    import altair as alt

    # Not the user's own theme, format or row limit: a report looks the same everywhere.
    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        description: dict[str, Any] = (
            chart.properties(width="container", height=height)
            .configure(
                font="system-ui, sans-serif",
                autosize=alt.AutoSizeParams(type="fit", contains="padding"),
            )
            .configure_view(stroke=None)
            .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal")
            .configure_legend(labelFontSize=12)
            .to_dict()
        )
    # Altair names its own Vega-Lite; that in the page is another, and would complain.
    del description["$schema"]
    return description


# The charts of an audit, and of two.


def histogram(edges: Sequence[float], counts: Mapping[str, Sequence[int]], title: str) -> Any:
    """Bars between the edges for each name; of several names the shares, one over the other.

    Examples
    --------
    >>> from leakscope.reporting.charts import histogram
    >>> chart = histogram([0.0, 0.5, 1.0], {"records": [3, 1]}, "advantage")
    >>> chart["data"]["values"][1]
    {'from': 0.5, 'to': 1.0, 'of': 'records', 'records': 1, 'share': 0.25}
    """
    import altair as alt

    several = len(counts) > 1
    rows = [
        {"from": low, "to": high, "of": name, "records": count, "share": count / max(sum(bars), 1)}
        for name, bars in counts.items()
        for low, high, count in zip(edges[:-1], edges[1:], bars, strict=True)
    ]
    across = alt.Scale(domain=[edges[0], edges[-1]], nice=False)
    percent = alt.Axis(format="%") if several else alt.Axis()
    up = alt.Y("share:Q" if several else "records:Q", stack=None, axis=percent)
    chart = (
        plot(rows)
        .mark_bar(opacity=0.55 if several else 1.0, clip=True)
        .encode(
            x=alt.X("from:Q", title=title, scale=across, bin="binned", axis=alt.Axis(grid=False)),
            x2="to:Q",
            y=up,
            color=coloured("of", list(counts)),
            tooltip=tooltips("of:N", "from:Q", "to:Q", "records:Q"),
        )
    )
    return described(chart.add_params(zoom("x")))


def audit_histogram(arrays: Arrays, name: Literal["advantage", "kl"]) -> dict[str, Any] | None:
    """How many units have how much of it; None where the arrays do not say."""
    stem = "histogram_advantage" if name == "advantage" else "histogram_log10_kl"
    edges, counts = arrays.get(f"{stem}_edges"), arrays.get(f"{stem}_counts")
    if edges is None or counts is None:
        return None
    title = "advantage" if name == "advantage" else "log10 of KL"
    if edges.ndim != 1 or edges.shape != (counts.size + 1,):
        raise InputError(f"the run's {stem} does not fit its edges; make the run again.")
    return described_histogram(edges, counts, title)


def described_histogram(edges: NDArray[Any], counts: NDArray[Any], title: str) -> dict[str, Any]:
    """The same of arrays."""
    chart: dict[str, Any] = histogram(edges.tolist(), {"records": counts.tolist()}, title)
    return chart


def audit_chart(audit: Audit, what: Picture) -> Any:
    """A chart of an audit, on its own: what :meth:`leakscope.Audit.plot` shows."""
    import altair as alt

    if what not in get_args(Picture):
        raise InputError(f"plot draws {', '.join(get_args(Picture))}, but it is {what!r}.")
    if what == "ranks":
        chart = ranks(audit)
    elif what == "roc":
        chart = roc(report_arrays(audit), audit.units, logarithmic=True)
    else:
        chart = audit_histogram(report_arrays(audit), what) or {}
    # A page gives a chart its width; on its own it needs one.
    chart["width"] = WIDTH
    made: Any = (alt.LayerChart if "layer" in chart else alt.Chart).from_dict(chart)
    return made


def ranks(audit: Audit) -> dict[str, Any]:
    """The advantage of every unit of the table by its rank, with its interval where it has one."""
    import altair as alt

    order = np.argsort(-audit.advantage, kind="stable")
    count = len(order)
    # All of them, or the first and ever fewer after.
    kept = np.unique(np.geomspace(1, count, min(count, MOST_RANKS)).round().astype(int)) - 1
    if count <= MOST_RANKS:
        kept = np.arange(count)
    columns = [audit.table.of(f"advantage{end}")[order[kept]].tolist() for end in _ENDS]
    rows: Rows = [
        {audit.unit: shown_id(audit.record_ids[row]), "rank": int(place) + 1, "advantage": value}
        | ({} if low != low or high != high else {"low": low, "high": high})
        for place, row, value, low, high in zip(kept, order[kept], *columns, strict=True)
    ]
    x = alt.X(
        "rank:Q",
        title=f"rank of the {audit.unit}",
        scale=scale("log", 0.9, 1.1 * max(count, 2)),
        axis=alt.Axis(tickCount=5, format="~s"),
    )
    y = alt.Y("advantage:Q", title="advantage", scale=scale("unit"))
    level = plot([{"advantage": audit.exposed_above}]).mark_rule(color=GREY, strokeDash=DASHED)
    spans = plot([row for row in rows if "low" in row])
    bars = spans.mark_rule(color=BLUE, strokeWidth=2, opacity=0.35)
    dots = plot(rows).mark_point(filled=True, size=28, color=BLUE, opacity=1.0)
    shown = tooltips(f"{audit.unit}:N", "rank:Q", "advantage:Q")
    return described(
        alt.layer(
            level.encode(y=y),
            bars.encode(x=x, y=alt.Y("low:Q", title="advantage"), y2="high:Q"),
            dots.encode(x=x, y=y, tooltip=shown),
        )
    )


_ENDS = ("", "_low", "_high")


def roc(arrays: Arrays, records: int, *, logarithmic: bool) -> dict[str, Any]:
    """The best test's ROC for a few ranks, with the diagonal of guessing."""
    import altair as alt

    if arrays["roc_tpr"].shape != (arrays["roc_ranks"].size, arrays["roc_fpr"].size):
        raise InputError("the run's ROCs do not fit together; make the run again.")
    low = LEAST_RATE if logarithmic else 0.0
    both = scale("log", low, 1.5) if logarithmic else scale("unit")
    axis = alt.Axis(tickCount=6, labelOverlap=True)
    if logarithmic:
        powers = [10.0**power for power in range(-6, 1)]
        axis = alt.Axis(format=".0e", values=powers, labelOverlap=True)
    x = alt.X("fpr:Q", title="false-positive rate", scale=both, axis=axis)
    y = alt.Y("tpr:Q", title="true-positive rate", scale=both, axis=axis)
    names = [f"rank {int(rank)} of {records}" for rank in arrays["roc_ranks"]]
    rows = [
        {"fpr": fpr, "tpr": tpr, "record": name}
        for name, tprs in zip(names, arrays["roc_tpr"].tolist(), strict=True)
        for fpr, tpr in zip(arrays["roc_fpr"].tolist(), tprs, strict=True)
        if not logarithmic or (fpr >= low and tpr > 0.0)
    ]
    guess = plot([{"fpr": low, "tpr": low}, {"fpr": 1.0, "tpr": 1.0}])
    # Points unseen but wide: a line alone is hard to meet with a pointer.
    unseen = alt.OverlayMarkDef(size=120, opacity=0.0)
    lines = (
        plot(rows)
        .mark_line(clip=True, strokeWidth=2.5, point=unseen)
        .encode(
            x=x,
            y=y,
            color=coloured("record", names, columns=1),
            tooltip=tooltips("record:N", "fpr:Q", "tpr:Q"),
        )
        .add_params(zoom("x", "y"))
    )
    diagonal = guess.mark_line(color=GREY, strokeDash=DASHED, clip=True).encode(x=x, y=y)
    return described(alt.layer(diagonal, lines), height=HEIGHT + 120)


def before_and_after(records: Sequence[ComparedRecord], name: Literal["advantage", "kl"]) -> Any:
    """Each record of both runs: the first across, the second up; above the line it rose."""
    import altair as alt

    rows = []
    for record in most_exposed(records):
        first, second = (getattr(record, f"{side}_{name}") for side in ("first", "second"))
        if first is None or second is None or (name == "kl" and min(first, second) <= 0.0):
            continue
        both = f"{record.first_rank} and then {record.second_rank}"
        rows.append(
            {"record": shown_id(record.record_id), "first": first, "second": second, "ranks": both}
        )
    values = [row[side] for row in rows for side in ("first", "second")]
    low, high = (min(values), max(values)) if values and name == "kl" else (0.1, 1.0)
    ends = (low, high) if name == "kl" else (0.0, 1.0)
    both_scales = scale("log", 0.8 * low, 1.25 * high) if name == "kl" else scale("unit")
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=6)
    words = "KL (nats)" if name == "kl" else "advantage"
    x = alt.X("first:Q", title=f"{words}, first run", scale=both_scales, axis=axis)
    y = alt.Y("second:Q", title=f"{words}, second run", scale=both_scales, axis=axis)
    line = plot([{"first": end, "second": end} for end in ends])
    points = (
        plot(rows)
        .mark_circle(color=BLUE, size=36, opacity=0.55, clip=True)
        .encode(x=x, y=y, tooltip=tooltips("record:N", "first:Q", "second:Q", "ranks:N"))
    )
    diagonal = line.mark_line(color=GREY, strokeDash=DASHED, clip=True).encode(x=x, y=y)
    return described(alt.layer(diagonal, points.add_params(zoom("x", "y"))), height=HEIGHT + 90)


def most_exposed(records: Sequence[ComparedRecord]) -> list[ComparedRecord]:
    """Those that are drawn: the best rank in either run first."""
    return sorted(records, key=lambda r: min(r.first_rank, r.second_rank))[:MOST_PAIRS]


# The charts of sections, which a kind of model or a plan describes.


def line_chart(chart: LineChart) -> dict[str, Any]:
    """Lines over a setting; a rule marks the one in use, another the target."""
    import altair as alt

    fraction = chart.fraction or chart.y == "advantage"
    rows = [
        {"setting": setting, "level": level, "of": name, "place": place}
        for name, settings, levels in chart.series
        for place, (setting, level) in enumerate(zip(settings, levels, strict=True))
        if level is not None and setting > 0.0 and (fraction or level > 0.0)
    ]
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=5)
    x = alt.X("setting:Q", title=chart.x, scale=scale("log"), axis=axis)
    up = scale("unit") if fraction else scale("log")
    y = alt.Y("level:Q", title=chart.y, scale=up, axis=axis)
    lines = (
        plot(rows)
        .mark_line(point={"size": 60})
        .encode(
            x=x,
            y=y,
            # Along the settings, which need not rise with x.
            order=alt.Order("place:Q"),
            color=coloured("of", [name for name, _, _ in chart.series]),
            tooltip=tooltips("of:N", "setting:Q", "level:Q"),
        )
    )
    layers = [lines.add_params(zoom("x", "y"))]
    if chart.used:
        used = plot([{"setting": chart.used}])
        layers.append(used.mark_rule(color=ORANGE, strokeDash=DASHED).encode(x=x))
    if chart.target is not None:
        target = plot([{"level": chart.target}])
        layers.append(target.mark_rule(color=GREY, strokeDash=DASHED).encode(y=y))
    return described(alt.layer(*layers))


def placed(
    sections: Iterable[Section], drawn: dict[str, Any], *, redact: bool
) -> list[tuple[Section, list[tuple[str, str]]]]:
    """Sections with the names and captions of their charts, which join ``drawn``.

    Redacted, no section that names units is there.
    """
    kept = []
    for section in sections:
        if redact and section.names:
            continue
        captions = []
        for chart in section.charts:
            drawn[chart.name] = line_chart(chart)
            captions.append((chart.name, chart.caption))
        kept.append((section, captions))
    return kept
