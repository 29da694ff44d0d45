"""The panels of a reproduced figure as charts: theory as lines, what was measured as points."""

from __future__ import annotations

import json
from typing import Any

from leakscope import InputError
from leakscope.errors import required
from papers.result import PanelEntry, ReproductionDocument

# After Wong's palette, whose colours the colour-blind can tell apart; then three for many curves.
COLOURS = (
    "#1f5a96", "#d98243", "#2c6e2a", "#8d3b72", "#56b4e9", "#e69f00", "#000000", "#767676",
    "#c0392b", "#6ab04c", "#b19cd9",
)  # fmt: skip

WIDTH, HEIGHT = 330, 240
COLUMNS = 2

# Lines for what a formula gives, points for what was drawn or trained, diamonds for what was read.
LINES = ("theory", "printed", "no noise")
DASHES = {"theory": [1, 0], "printed": [5, 4], "no noise": [2, 3]}
SHAPES = {
    "simulation": "circle",
    "retraining": "square",
    "published": "diamond",
    "marked": "cross",
    "record": "square",
    "found": "circle",
}

# Vega's name for a legend's symbol that is a line, and how long one is.
LINE = "stroke"
LINE_SIZE = 240


def figure_chart(document: ReproductionDocument) -> dict[str, Any]:
    """All panels of a figure side by side, as a Vega-Lite description.

    Examples
    --------
    >>> import pandas as pd
    >>> from papers.panels import figure_chart
    >>> from papers import Figure, Made, Panel, reproduce
    >>> panel = Panel("error", pd.DataFrame({"n": [1, 2], "error": [1.0, 0.5]}), x="n", y="error")
    >>> figure = Figure("linear-0", "linear", "Fig. 0", "error", lambda order: Made((panel,), ()))
    >>> len(figure_chart(reproduce(figure))["concat"])
    1
    """
    import altair as alt

    if not document.panels:
        raise InputError(f"{document.name} has no panel to draw.")
    charts = [_panel(panel) for panel in document.panels]
    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        described: dict[str, Any] = (
            alt.concat(*charts, columns=COLUMNS, spacing=30)
            .resolve_scale(color="independent", shape="independent", strokeDash="independent")
            .configure(font="system-ui, sans-serif", background="white")
            .configure_view(stroke=None)
            .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal")
            .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=260, columns=2)
            .configure_title(fontSize=13, fontWeight="normal", anchor="start")
            .to_dict()
        )
    return described


def figure_png(document: ReproductionDocument, *, scale: float = 1.5) -> bytes:
    """The figure as a PNG file; drawn here, without a browser or a network."""
    vl_convert = required("vl_convert", "A picture")
    return bytes(vl_convert.vegalite_to_png(json.dumps(figure_chart(document)), scale=scale))


def figure_svg(document: ReproductionDocument) -> str:
    """The figure as SVG."""
    vl_convert = required("vl_convert", "A picture")
    return str(vl_convert.vegalite_to_svg(json.dumps(figure_chart(document))))


def _panel(panel: PanelEntry) -> Any:
    import altair as alt

    titles = panel.columns
    panel = _plainly_named(panel)
    values = [dict(zip(panel.columns, row, strict=True)) for row in panel.rows]
    for value in values:
        value.setdefault("source", "theory")
    shown = dict(zip(panel.columns, titles, strict=True))
    layers = (_heat if panel.kind == "heat" else _marks)(panel, values, shown)
    return alt.layer(*layers).properties(
        title=alt.TitleParams(panel.title, limit=WIDTH + 60), width=WIDTH, height=HEIGHT
    )


def _heat(panel: PanelEntry, values: list[dict[str, Any]], shown: dict[str, str]) -> list[Any]:
    import altair as alt

    x = alt.X(
        f"{panel.x}:O",
        title=panel.x_title,
        axis=alt.Axis(format=".4~g", labelAngle=0, labelOverlap=True),
    )
    y = alt.Y(
        f"{panel.y}:O",
        title=panel.y_title,
        sort="descending",
        axis=alt.Axis(format=".4~g"),
    )
    colour = alt.Color(
        f"{panel.value}:Q",
        title=shown[panel.value or ""],
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(orient="bottom", gradientLength=WIDTH - 40),
    )
    return [
        _data(values).mark_rect().encode(x=x, y=y, color=colour, tooltip=_tooltip(values, shown))
    ]


def _marks(panel: PanelEntry, values: list[dict[str, Any]], shown: dict[str, str]) -> list[Any]:
    import altair as alt

    x, y = _axis(panel, "x"), _axis(panel, "y")
    encoding: dict[str, Any] = {"x": x, "y": y, "tooltip": _tooltip(values, shown)}
    drawn_as = _drawn_as(panel, values)
    if panel.series is not None:
        names = list(drawn_as)
        if len(names) > len(COLOURS):
            raise InputError(
                f"the panel {panel.title!r} has {len(names)} series, and there are {len(COLOURS)} "
                "colours."
            )
        for value in values:
            value[panel.series] = str(value[panel.series])
        palette = list(COLOURS[: len(names)])
        encoding["color"] = alt.Color(
            f"{panel.series}:N",
            title=shown[panel.series],
            sort=names,
            scale=alt.Scale(domain=names, range=palette),
            legend=_legend(_common_symbol(drawn_as)),
        )
    else:
        encoding["color"] = alt.value(COLOURS[0])
    sources = list(dict.fromkeys(str(value["source"]) for value in values))
    layers: list[Any] = []
    drawn = [value for value in values if _drawable(panel, value)]
    if panel.kind == "bars":
        bars = {key: value for key, value in encoding.items() if key != "x"}
        category = alt.X(
            f"{panel.x}:N", title=panel.x_title, sort=None,
            axis=alt.Axis(labelAngle=-30, labelLimit=120),
        )  # fmt: skip
        if panel.series is not None:
            bars["xOffset"] = alt.XOffset(f"{panel.series}:N", sort=None)
        layers.append(_data(drawn).mark_bar().encode(x=category, **bars))
        encoding["x"] = category
    if panel.low is not None and panel.high is not None:
        layers += _intervals(panel, drawn, encoding)
    if panel.kind == "bars":
        return layers
    lines = [value for value in drawn if value["source"] in LINES] if panel.kind == "curves" else []
    points = [value for value in drawn if panel.kind == "scatter" or value["source"] not in LINES]
    by_series = _one_symbol_each(drawn_as)
    if lines:
        # Printed formulas that differ are dashed.
        kinds = [name for name in LINES if name in sources]
        told = len(kinds) > 1 or "printed" in kinds or (len(sources) > 1 and not by_series)
        dash = alt.StrokeDash(
            "source:N",
            scale=alt.Scale(domain=kinds, range=[DASHES[name] for name in kinds]),
            title=None,
            legend=_legend(LINE) if told else None,
        )
        along = f"{_along(panel)}:Q"
        if panel.overlaid:
            # Curves that lie upon one another: the first is wide below the others.
            first = [value for value in lines if value[panel.series or ""] == next(iter(drawn_as))]
            wide = _data(first).mark_line(strokeWidth=7, opacity=0.45, clip=True)
            layers.append(wide.encode(**encoding, order=along))
        layers.append(
            _data(lines)
            .mark_line(strokeWidth=2, clip=True)
            .encode(strokeDash=dash, **encoding, order=along)
        )
    if panel.joined:
        between = _data(points).mark_line(strokeWidth=1, opacity=0.5, clip=True)
        layers.append(between.encode(**encoding, order=f"{_along(panel)}:Q"))
    if points:
        mark = _data(points).mark_point(
            size=26 if panel.kind == "scatter" else 44, strokeWidth=1.5, clip=True
        )
        present = [name for name in sources if name in SHAPES]
        if panel.kind == "curves" and by_series:
            # The legend of the series shows each as it is drawn; another would repeat it.
            encoding["shape"] = alt.Shape(
                f"{panel.series}:N",
                title=shown[panel.series or ""],
                sort=list(drawn_as),
                scale=alt.Scale(
                    domain=list(drawn_as), range=[next(iter(one)) for one in drawn_as.values()]
                ),
                legend=_legend(None),
            )
        elif panel.kind == "curves" and present:
            encoding["shape"] = alt.Shape(
                "source:N",
                title=None,
                scale=alt.Scale(domain=present, range=[SHAPES[name] for name in present]),
                legend=_legend(None),
            )
        layers.append(mark.encode(**encoding))
    return layers


def _legend(symbol: str | None) -> Any:
    """A legend below the panel; its symbols are those of the marks unless one is named."""
    import altair as alt

    named: dict[str, Any] = {"symbolSize": 90}
    if symbol == LINE:
        named = {"symbolSize": LINE_SIZE, "symbolStrokeWidth": 2, "symbolType": LINE}
    elif symbol is not None:
        named["symbolType"] = symbol
    return alt.Legend(orient="bottom", columns=2, **named)


def _drawn_as(panel: PanelEntry, values: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The symbols that each series is drawn with, in the order of the table."""
    found: dict[str, set[str]] = {}
    if panel.series is not None:
        for value in values:
            symbol = SHAPES.get(str(value["source"]), LINE) if panel.kind == "curves" else "circle"
            found.setdefault(str(value[panel.series]), set()).add(symbol)
    return found


def _common_symbol(drawn_as: dict[str, set[str]]) -> str | None:
    """A line where every series has one, or the one point that all are drawn with; None else."""
    if drawn_as and all(LINE in one for one in drawn_as.values()):
        return LINE
    symbols = {symbol for one in drawn_as.values() for symbol in one}
    # bars are squares, and circles what points are where nothing is said
    return symbols.pop() if len(symbols) == 1 and symbols != {"circle"} else None


def _one_symbol_each(drawn_as: dict[str, set[str]]) -> bool:
    """Whether series are drawn with symbols that differ, and each of them with one."""
    symbols = {symbol for one in drawn_as.values() for symbol in one}
    return all(len(one) == 1 for one in drawn_as.values()) and len(symbols) > 1


def _along(panel: PanelEntry) -> str:
    """The column that a line follows: x, unless the table says otherwise."""
    return "order" if "order" in panel.columns else panel.x


def _intervals(
    panel: PanelEntry, drawn: list[dict[str, Any]], encoding: dict[str, Any]
) -> list[Any]:
    import altair as alt

    whole = [
        value
        for value in drawn
        if value.get(panel.low or "") is not None and value.get(panel.high or "") is not None
    ]
    if not whole:
        return []
    if not panel.y_log and _begins_at_zero(panel):
        # Two standard errors below a share that cannot be negative.
        whole = [{**value, (panel.low or ""): max(value[panel.low or ""], 0.0)} for value in whole]
    if panel.y_log:
        # An end at or below zero has no place on the axis: the bar goes on to its foot.
        foot = min(value[panel.y] for value in drawn) / 3.0
        whole = [{**value, (panel.low or ""): max(value[panel.low or ""], foot)} for value in whole]
    used: dict[str, Any] = {key: encoding[key] for key in ("x", "color") if key in encoding}
    if panel.kind == "bars":
        used["color"] = alt.value("black")
        if panel.series is not None:
            used["xOffset"] = alt.XOffset(f"{panel.series}:N", sort=None)
    low = _axis(panel, "y").copy()
    low.shorthand = f"{panel.low}:Q"
    rule = _data(whole).mark_rule(strokeWidth=1.2, clip=True)
    return [rule.encode(y=low, y2=f"{panel.high}:Q", **used)]


def _axis(panel: PanelEntry, which: str) -> Any:
    import altair as alt

    name, log, title = (
        (panel.x, panel.x_log, panel.x_title)
        if which == "x"
        else (panel.y, panel.y_log, panel.y_title)
    )
    make = alt.X if which == "x" else alt.Y
    nice = which == "y" and not log
    if log:
        scale = alt.Scale(type="log", nice=False, padding=8)
    elif which == "y" and _begins_at_zero(panel):
        scale = alt.Scale(zero=True, nice=True)
    else:
        scale = alt.Scale(zero=False, nice=nice, padding=8)
    axis = alt.Axis(format=".4~g", labelOverlap=True, grid=which == "y", tickCount=6)
    return make(f"{name}:Q", title=title, scale=scale, axis=axis)


def _begins_at_zero(panel: PanelEntry) -> bool:
    """Whether what is drawn is nowhere negative and comes near zero: a density, an advantage."""
    place = panel.columns.index(panel.y)
    seen = [row[place] for row in panel.rows if isinstance(row[place], (int, float))]
    if not seen or panel.kind == "scatter":
        return False
    return bool(0.0 <= min(seen) < 0.1 * max(seen))


def _drawable(panel: PanelEntry, value: dict[str, Any]) -> bool:
    """Neither null nor, on a logarithmic axis, zero or below."""
    pairs = [(value.get(panel.y), panel.y_log)]
    if panel.kind != "bars":
        pairs.append((value.get(panel.x), panel.x_log))
    return all(
        entry is not None and (not log or (isinstance(entry, (int, float)) and entry > 0))
        for entry, log in pairs
    )


def _tooltip(values: list[dict[str, Any]], shown: dict[str, str]) -> list[Any]:
    import altair as alt

    def kind(name: str) -> str:
        numbers = all(isinstance(value.get(name), (int, float, type(None))) for value in values)
        return "Q" if numbers else "N"

    return [
        alt.Tooltip(f"{name}:{kind(name)}", title=title, format=".4g" if kind(name) == "Q" else "")
        for name, title in shown.items()
    ]


def _data(values: list[dict[str, Any]]) -> Any:
    import altair as alt

    data: Any = alt.Data
    return alt.Chart(data(values=values))


def _plainly_named(panel: PanelEntry) -> PanelEntry:
    """The panel with columns c0, c1, ...: Vega-Lite reads dots, colons and brackets as its own."""
    names = {
        name: name if name in ("source", "order") else f"c{place}"
        for place, name in enumerate(panel.columns)
    }
    drawn = {
        role: None if (name := getattr(panel, role)) is None else names[name]
        for role in ("x", "y", "series", "low", "high", "value")
    }
    titles = {"x_title": panel.x_title or panel.x, "y_title": panel.y_title or panel.y}
    return panel.model_copy(update={**drawn, **titles, "columns": list(names.values())})
