"""The charts of a report: numbers of a run in, Vega-Lite descriptions out.

altair describes them; the page draws them with Vega, which the package carries.  Drag to move,
Shift and wheel to zoom, double click to go back: the bare wheel is left to the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import require_address_space
from leakscope.errors import InputError, required
from leakscope.reporting.pages import shown_id
from leakscope.results.audit import Audit, Picture
from leakscope.results.audit_run import report_arrays
from leakscope.results.sections import Chart, LineChart, RangeChart, Section, SpanChart
from leakscope.results.shown import ranks_drawn

if TYPE_CHECKING:
    import altair as alt

    from leakscope.results.attacks import MembershipAttack, ReconstructAttack

Arrays = dict[str, NDArray[Any]]

# What the JavaScript engine inside vl_convert reserves as it starts, and dies where it cannot;
# it takes a few hundredths of it.
ADDRESS_SPACE = 68 * 10**9

ROC_ARRAYS = ("roc_ranks", "roc_fpr", "roc_tpr")
HISTOGRAM_ARRAYS = (
    "histogram_advantage_edges",
    "histogram_advantage_counts",
    "histogram_log10_kl_edges",
    "histogram_log10_kl_counts",
    "histogram_log10_kl_left_out",
)

HEIGHT = 240
WIDTH = 480  # of a picture on its own

# Of a log-log ROC: rates below this are of no use to an attacker.
LEAST_RATE = 1e-6

BLUE, ORANGE, GREEN, GREY = "#1f5a96", "#d98243", "#2c6e2a", "#767676"
PURPLE, SKY = "#8d3b72", "#56b4e9"


def histogram(edges: NDArray[Any], counts: NDArray[Any], title: str) -> dict[str, Any]:
    """Bars between the edges, one for each count.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.reporting.charts import histogram
    >>> chart = histogram(np.array([0.0, 0.5, 1.0]), np.array([3, 4]), "advantage")
    >>> chart["data"]["values"][1]
    {'from': 0.5, 'to': 1.0, 'records': 4}
    """
    import altair as alt

    left, right = edges[:-1].tolist(), edges[1:].tolist()
    values = [
        {"from": low, "to": high, "records": count}
        for low, high, count in zip(left, right, counts.tolist(), strict=True)
    ]
    scale = alt.Scale(domain=[left[0], right[-1]], nice=False)
    chart = (
        plot(values)
        .mark_bar(color=BLUE, stroke="white", strokeWidth=0.5, clip=True)
        .encode(
            x=alt.X("from:Q", title=title, scale=scale, bin="binned", axis=alt.Axis(grid=False)),
            x2="to:Q",
            y=alt.Y("records:Q", title="records"),
            tooltip=[
                alt.Tooltip("from:Q", format=".3g"),
                alt.Tooltip("to:Q", format=".3g"),
                alt.Tooltip("records:Q"),
            ],
        )
    )
    return described(chart.add_params(zoom(["x"])))


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
        name, title = {"advantage": ("advantage", "advantage"), "kl": ("log10_kl", "log10 of KL")}[
            what
        ]
        arrays = report_arrays(audit)
        edges, counts = (arrays[f"histogram_{name}_{part}"] for part in ("edges", "counts"))
        chart = histogram(edges, counts, title)
    # A page gives a chart its width; on its own it needs one.
    chart["width"] = WIDTH
    made: Any = (alt.LayerChart if "layer" in chart else alt.Chart).from_dict(chart)
    return made


def ranks(audit: Audit) -> dict[str, Any]:
    """The advantage of every unit of the table by its rank, with its interval where it has one."""
    import altair as alt

    order = np.argsort(-audit.advantage, kind="stable")
    kept = ranks_drawn(len(order), 400)
    table, rows = audit.table, order[kept]
    low, high = (table.of(f"advantage_{end}")[rows] for end in ("low", "high"))
    values: list[dict[str, Any]] = [
        {audit.unit: shown_id(audit.record_ids[row]), "rank": int(place) + 1, "advantage": value}
        for place, row, value in zip(kept, rows, audit.advantage[rows].tolist(), strict=True)
    ]
    for one, below, above in zip(values, low.tolist(), high.tolist(), strict=True):
        if below == below and above == above:
            one |= {"low": below, "high": above}
    scale = alt.Scale(type="log", domain=[0.9, 1.1 * max(len(order), 2)], nice=False)
    x = alt.X("rank:Q", title=f"rank of the {audit.unit}", scale=scale,
              axis=alt.Axis(tickCount=5, format="~s"))  # fmt: skip
    y = alt.Y("advantage:Q", title="advantage", scale=alt.Scale(domain=[0, 1]))
    line = plot([{"advantage": audit.exposed_above}]).mark_rule(color=GREY, strokeDash=[5, 4])
    spans = plot([row for row in values if "low" in row]).mark_rule(
        color=BLUE, strokeWidth=2, opacity=0.35
    )
    dots = plot(values).mark_point(filled=True, size=28, color=BLUE, opacity=1.0)
    tooltip = [
        alt.Tooltip(f"{audit.unit}:N"),
        alt.Tooltip("rank:Q"),
        alt.Tooltip("advantage:Q", format=".4f"),
    ]
    return described(
        alt.layer(
            line.encode(y=y),
            spans.encode(x=x, y=alt.Y("low:Q", title="advantage"), y2="high:Q"),
            dots.encode(x=x, y=y, tooltip=tooltip),
        )
    )


def roc(arrays: Arrays, records: int, *, logarithmic: bool) -> dict[str, Any]:
    """The best test's ROC for a few ranks, with the diagonal of guessing."""
    import altair as alt

    low = LEAST_RATE if logarithmic else 0.0
    # A little more than 0 to 1, so that a curve along the edge is seen whole.
    scale = (
        alt.Scale(type="log", domain=[low, 1.5], nice=False)
        if logarithmic
        else alt.Scale(domain=[-0.02, 1.02], nice=False)
    )
    names = [rank_name(int(rank), records) for rank in arrays["roc_ranks"]]
    axis = (
        alt.Axis(format=".0e", values=[10.0**power for power in range(-6, 1)], labelOverlap=True)
        if logarithmic
        else alt.Axis(tickCount=6, labelOverlap=True)
    )
    x = alt.X("fpr:Q", title="false-positive rate", scale=scale, axis=axis)
    y = alt.Y("tpr:Q", title="true-positive rate", scale=scale, axis=axis)
    colours = alt.Scale(domain=names, range=[ORANGE, BLUE, GREEN][: len(names)])
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=400, symbolSize=150)
    ends = [{"fpr": low, "tpr": low}, {"fpr": 1.0, "tpr": 1.0}]
    guess = plot(ends).mark_line(color=GREY, strokeDash=[5, 4], clip=True)
    layers = [guess.encode(x=x, y=y)]
    # The first is the widest, so that curves on top of one another are all seen.
    for name, tprs, width in zip(names, arrays["roc_tpr"].tolist(), (6.0, 3.5, 2.0), strict=False):
        values = [
            {"fpr": fpr, "tpr": tpr, "record": name}
            for fpr, tpr in zip(arrays["roc_fpr"].tolist(), tprs, strict=True)
            if not logarithmic or (fpr >= low and tpr > 0.0)
        ]
        # Points unseen but wide: a line alone is hard to meet with a pointer.
        unseen = alt.OverlayMarkDef(size=120, opacity=0.0)
        line = plot(values).mark_line(clip=True, strokeWidth=width, point=unseen)
        layers.append(
            line.encode(
                x=x,
                y=y,
                color=alt.Color("record:N", title=None, scale=colours, sort=names, legend=legend),
                tooltip=[
                    alt.Tooltip("record:N"),
                    alt.Tooltip("fpr:Q", format=".3g"),
                    alt.Tooltip("tpr:Q", format=".3g"),
                ],
            )
        )
    layers[-1] = layers[-1].add_params(zoom(["x", "y"]))
    chart = alt.layer(*layers)
    return described(chart, height=HEIGHT + 120)


def rank_name(rank: int, records: int) -> str:
    """A record of the ROC chart in words, without its id.

    Examples
    --------
    >>> from leakscope.reporting.charts import rank_name
    >>> rank_name(1, 442), rank_name(221, 442)
    ('most exposed (rank 1 of 442)', 'rank 221 of 442')
    """
    words = f"rank {rank} of {records}"
    return f"most exposed ({words})" if rank == 1 else words


def line_chart(chart: LineChart) -> dict[str, Any]:
    """Lines over a setting; a rule marks the one in use, another the target, a diamond the answer.

    Axes are logarithmic, but for fractions and for settings that are asked for on a plain one.
    """
    import altair as alt

    names = [name for name, _, _ in chart.series]
    values: list[dict[str, Any]] = [
        {"setting": setting, "level": level, "of": name, "place": place}
        for name, settings, levels in chart.series
        for place, (setting, level) in enumerate(zip(settings, levels, strict=True))
        if level is not None and (chart.fraction or level > 0.0)
    ]
    log = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=5)
    scale = alt.Scale(domain=[0, 1]) if chart.fraction else log
    least = min([row["setting"] for row in values if row["setting"] > 0.0], default=1.0)
    most = max([row["setting"] for row in values], default=1.0)
    symmetric = alt.Scale(type="symlog", constant=least, domain=[0.0, 1.1 * most], nice=False)
    across = symmetric if chart.plain else log
    if not chart.plain:
        values = [row for row in values if row["setting"] > 0.0]
    x = alt.X("setting:Q", title=chart.x, scale=across, axis=axis)
    y = alt.Y("level:Q", title=chart.y, scale=scale, axis=axis)
    several = [ORANGE, BLUE, GREEN, GREY, PURPLE, SKY]
    colours = [BLUE] if len(names) == 1 else several[: len(names)]
    line = (
        plot(values)
        .mark_line(point={"size": 60})
        .encode(
            x=x,
            y=y,
            # along the settings, which need not rise with x
            order=alt.Order("place:Q"),
            color=alt.Color(
                "of:N",
                title=None,
                scale=alt.Scale(domain=names, range=colours),
                legend=alt.Legend(orient="bottom") if len(names) > 1 else None,
            ),
            tooltip=[
                alt.Tooltip("of:N"),
                alt.Tooltip("setting:Q", title=chart.x, format=".3g"),
                alt.Tooltip("level:Q", title=chart.y, format=".4g"),
            ],
        )
    )
    used = (
        plot([] if chart.used is None else [{"setting": chart.used}])
        .mark_rule(color=ORANGE, strokeDash=[5, 4])
        .encode(x=x)
    )
    layers = [used, line.add_params(zoom(["x", "y"]))]
    if chart.target is not None:
        asked = plot([{"level": chart.target}]).mark_rule(color=GREY, strokeDash=[2, 3])
        layers.append(asked.encode(y=y))
    if chart.best is not None:
        answer = plot([dict(zip(("setting", "level"), chart.best, strict=True))])
        diamond = answer.mark_point(shape="diamond", size=170, filled=True, color="black")
        layers.append(diamond.encode(x=x, y=y))
    return described(alt.layer(*layers))


def range_chart(chart: RangeChart) -> dict[str, Any]:
    """Best to worst rank of the first units; a tick marks the rank in use."""
    import altair as alt

    values = [
        {"record": shown_id(name), "rank": rank, "best": best, "worst": worst}
        for rank, (name, best, worst) in enumerate(chart.rows, start=1)
    ]
    y = alt.Y(
        "rank:O",
        title="rank in this audit",
        axis=alt.Axis(labelOverlap=False, ticks=False, domain=False),
    )
    x = alt.X("best:Q", title=chart.x, scale=alt.Scale(type="log", nice=False, padding=6))
    tooltip = [
        alt.Tooltip(f"{name}:{kind}")
        for name, kind in zip(("record", "rank", "best", "worst"), "NQQQ", strict=True)
    ]
    base = plot(values)
    bars = base.mark_rule(strokeWidth=7, color="#9dbbd8").encode(
        x=x, x2="worst:Q", y=y, tooltip=tooltip
    )
    ticks = base.mark_tick(color=ORANGE, thickness=3, height=12).encode(
        x=alt.X("rank:Q"), y=y, tooltip=tooltip
    )
    return described(alt.layer(bars, ticks), height=18 * max(4, len(values)))


def span_chart(chart: SpanChart) -> dict[str, Any]:
    """The median and the largest advantage under each choice; the first is the one in use."""
    import altair as alt

    parts = ("median", "largest")
    values = [
        {"choice": name, "advantage": value, "of": part}
        for name, *ends in chart.rows
        for part, value in zip(parts, ends, strict=True)
    ]
    names = [name for name, _, _ in chart.rows]
    axis = alt.Axis(labelLimit=170, ticks=False)
    y = alt.Y("choice:N", title=None, sort=names, axis=axis)
    x = alt.X("advantage:Q", title="advantage", scale=alt.Scale(domain=[-0.02, 1.02], nice=False))
    base = plot(values)
    line = base.mark_line(color="#9dbbd8", strokeWidth=3).encode(x=x, y=y, detail="choice:N")
    colours = alt.Scale(domain=list(parts), range=[BLUE, ORANGE])
    points = base.mark_point(filled=True, size=90, opacity=1.0).encode(
        x=x,
        y=y,
        color=alt.Color(
            "of:N", title=None, scale=colours, legend=alt.Legend(orient="bottom", symbolSize=90)
        ),
        tooltip=[
            alt.Tooltip("choice:N"),
            alt.Tooltip("of:N"),
            alt.Tooltip("advantage:Q", format=".4f"),
        ],
    )
    return described(alt.layer(line, points), height=34 * len(names) + 30)


# Each form of chart that a section may show: how it is drawn.
DRAWN: dict[type, Any] = {LineChart: line_chart, RangeChart: range_chart, SpanChart: span_chart}


def section_chart(chart: Chart) -> tuple[dict[str, Any], str]:
    """A chart of a section as the page takes it, and its caption."""
    return DRAWN[type(chart)](chart), chart.caption


def placed(
    sections: Iterable[Section], drawn: dict[str, Any], *, redact: bool
) -> list[tuple[Section, list[tuple[str, str]]]]:
    """Sections with the names and captions of their charts, which join ``drawn``.

    Redacted, no section that names units is there, and no chart of single ones.
    """
    found = []
    for section in sections:
        if redact and section.names:
            continue
        captions = []
        for chart in section.charts:
            if redact and isinstance(chart, RangeChart):
                continue
            drawn[chart.name], caption = section_chart(chart)
            captions.append((chart.name, caption))
        found.append((section, captions))
    return found


def plot(values: list[dict[str, Any]]) -> alt.Chart:
    """A chart of these rows, without marks yet."""
    import altair as alt

    data: Any = alt.Data
    return alt.Chart(data(values=values))


def zoom(encodings: list[Any]) -> alt.Parameter:
    """Drag to move, Shift and wheel to zoom."""
    import altair as alt

    return alt.selection_interval(bind="scales", encodings=encodings, zoom="wheel![event.shiftKey]")


def described(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """A chart as the page takes it: as wide as its place, and the same everywhere."""
    import altair as alt

    font = "system-ui, sans-serif"
    # Not the user's own theme, format or row limit: a report looks the same everywhere.
    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        description: dict[str, Any] = (
            chart.properties(width="container", height=height)
            .configure(font=font, autosize=alt.AutoSizeParams(type="fit", contains="padding"))
            .configure_view(stroke=None)
            .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal")
            .configure_legend(labelFontSize=12)
            .to_dict()
        )
    # Altair names its own Vega-Lite; that in the page is another, and would complain.
    del description["$schema"]
    return description


def attack_picture(
    found: ReconstructAttack | MembershipAttack,
    *,
    records: tuple[NDArray[Any], NDArray[Any]] | None = None,
    form: Literal["png", "svg"] = "png",
) -> bytes:
    """What an attack on a network found, as a picture.

    Parameters
    ----------
    found
        A result of ``attack reconstruct`` or of ``attack membership`` on a network.
    records
        The training records and their labels, to draw beside reconstructed ones.
    form
        ``"png"`` or ``"svg"``.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.relu import TwoLayerNetwork
    >>> from leakscope.reporting.charts import attack_picture
    >>> network = TwoLayerNetwork(w=[[1.0], [-1.0]], b=[0.0, 0.0], v=[1.0, -1.0])
    >>> found = leakscope.attack_membership(network, [[1.0], [0.1], [-0.9]], margin=1.0)
    >>> attack_picture(found)[1:4]
    b'PNG'
    """
    import json

    vl_convert = required("vl_convert", "A picture")
    require_address_space(
        ADDRESS_SPACE, "the engine that draws pictures", "raise ulimit -v for this command"
    )
    if found.kind == "attack_membership":
        chart = _members(found)
    else:
        chart = _reconstructed(found, records)
    # A picture has no container to be as wide as.
    text = json.dumps({**described(chart), "width": WIDTH, "background": "white"})
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(text)).encode("utf-8")
    return bytes(vl_convert.vegalite_to_png(text, scale=1.5))


def _members(found: MembershipAttack) -> Any:
    """Each query's score, those called members apart, and the threshold."""
    import altair as alt

    values = [
        {"query": place, "score": score, "called": "member" if member else "no member"}
        for place, (score, member) in enumerate(zip(found.scores, found.member, strict=True))
    ]
    points = (
        plot(values)
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X(
                "query:Q",
                title="query",
                axis=alt.Axis(grid=False, tickMinStep=1),
                scale=alt.Scale(padding=12, nice=False, zero=False),
            ),
            y=alt.Y("score:Q", title="score: higher is more likely a member"),
            color=alt.Color(
                "called:N",
                title="called",
                scale=alt.Scale(domain=["member", "no member"], range=[ORANGE, BLUE]),
            ),
        )
    )
    line = plot([{"score": found.threshold}]).mark_rule(color=GREY, strokeDash=[5, 4])
    return alt.layer(points, line.encode(y="score:Q"))


def _reconstructed(
    found: ReconstructAttack, records: tuple[NDArray[Any], NDArray[Any]] | None
) -> Any:
    """The function, the margin, candidates and records."""
    import altair as alt

    values = [
        {
            "x": c.x,
            "y": c.label * (found.margin or 0.0),
            "what": "certified" if c.certified else "candidate",
        }
        for c in found.candidates
    ]
    if records is not None:
        for row, label in zip(*map(np.asarray, records), strict=True):
            height = label * (found.margin or 0.0)
            if found.function is not None:
                height = _on_line(found.function, float(row[0]))
            values.append({"x": float(row[0]), "y": float(height), "what": "record"})
    names = ["certified", "candidate", "record"]
    points = (
        plot(values)
        .mark_point(size=90, strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title="x", scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title="f(x)", scale=alt.Scale(zero=False)),
            color=alt.Color(
                "what:N", title=None, scale=alt.Scale(domain=names, range=[GREEN, ORANGE, BLUE])
            ),
            shape=alt.Shape(
                "what:N",
                title=None,
                scale=alt.Scale(domain=names, range=["circle", "circle", "square"]),
            ),
        )
    )
    layers: list[Any] = []
    if found.function is not None:
        line = plot([{"x": x, "y": y} for x, y in found.function])
        layers.append(line.mark_line(color=GREY).encode(x="x:Q", y="y:Q"))
        layers.append(line.mark_point(color=GREY, size=20).encode(x="x:Q", y="y:Q"))
    levels = plot([{"y": found.margin}, {"y": -(found.margin or 0.0)}])
    layers.append(levels.mark_rule(color=GREY, strokeDash=[5, 4]).encode(y="y:Q"))
    return alt.layer(*layers, points)


def _on_line(points: list[tuple[float, float]], x: float) -> float:
    """The height at x of the lines that join the points; the first and the last go on."""
    places = [place for place, _ in points]
    right = min(max(int(np.searchsorted(places, x)), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
