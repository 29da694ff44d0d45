"""From an advice to one HTML page; it names no record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.reporting.charts import (
    DASHED,
    GREY,
    HEIGHT,
    coloured,
    described,
    plot,
    scale,
    tooltips,
    zoom,
)
from leakscope.reporting.pages import rendered, write_page
from leakscope.results.advice import Advice, AdviceOption, setting_text

# An error of many times the audit's own would press all other lines flat.
TALLEST = 8.0


def advice_html(document: Advice) -> str:
    """The advice as one page that needs nothing else."""
    return rendered(
        "advice.html",
        charts={"error_against_leakage": error_against_leakage(document)}
        if document.options
        else {},
        document=document,
        rows=[document.own, *document.options],
        settings={option.name: option.setting_words for option in document.options},
        classes=document.own.accuracy is not None,
        squared=document.own.r_squared is not None,
        tallest=TALLEST,
    )


def write_advice(document: Advice, path: str | Path) -> Path:
    """Write the page of an advice, mode 0600, whole or not at all; where it was written."""
    return write_page(path, advice_html(document))


def error_against_leakage(document: Advice) -> dict[str, Any]:
    """What the worst is left with across, what the released answers err by up."""
    import altair as alt

    options = [option for option in document.options if option.curve]
    own = document.own.error or 1e-300
    rows = [
        {**_shown(option), "setting": setting_text(point.setting), "worst": point.worst,
         "median": point.median, "error": point.error, "place": place}
        for option in options
        # Every point of a pair with output noise lies on the target: its diamond says enough.
        if "+" not in option.name
        for place, point in enumerate(option.curve)
        if point.worst is not None and point.error is not None
    ]  # fmt: skip
    errors = [row["error"] for row in rows if row["error"] <= TALLEST * own]
    leakage = scale("unit") if document.target.measure == "advantage" else scale("log")
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=6)
    title = f"{document.target_label} of the worst {document.unit}"
    x = alt.X("worst:Q", title=title, scale=leakage, axis=axis)
    title = f"{document.loss} on held-out records" if document.model else "error of an answer"
    heights = scale("log", 0.95 * min([*errors, own]), 1.05 * max([*errors, own]))
    y = alt.Y("error:Q", title=title, scale=heights, axis=axis)
    colour = coloured("option", [option.name for option in options])
    shown = tooltips("option:N", "setting:N", "worst:Q", "median:Q", "error:Q")
    lines = (
        plot(rows)
        .mark_line(clip=True, point=alt.OverlayMarkDef(size=40), strokeWidth=2.0)
        .encode(x=x, y=y, color=colour, order="place:Q", tooltip=shown)
    )
    target = plot([{"worst": document.target.value}]).mark_rule(color=GREY, strokeDash=DASHED)
    met = [_shown(option) for option in options if option.meets and option.error is not None]
    chosen = plot(met).mark_point(shape="diamond", size=170, filled=True, clip=True)
    audited = plot([{**_shown(document.own), "option": "as audited"}]).mark_point(
        shape="cross", size=140, filled=True, color="black", clip=True
    )
    layers = (
        target.encode(x=x),
        lines.add_params(zoom("x", "y")),
        chosen.encode(x=x, y=y, color=colour, tooltip=shown),
        audited.encode(x=x, y=y, tooltip=shown),
    )
    return described(alt.layer(*layers), height=HEIGHT + 180)


def _shown(option: AdviceOption) -> dict[str, Any]:
    return {
        "option": option.name,
        "setting": option.setting_words,
        "worst": option.worst,
        "median": option.median,
        "error": option.error,
    }
