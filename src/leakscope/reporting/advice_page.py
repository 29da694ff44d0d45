"""From an advice to one HTML page, in the style of the report; it names no record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.reporting.charts import BLUE, GREEN, GREY, HEIGHT, ORANGE, described, plot, zoom
from leakscope.reporting.pages import rendered
from leakscope.reporting.writing import require_report_path
from leakscope.results.advice import Advice, AdviceOption, setting_text
from leakscope.results.document import write_private

COLOURS = [BLUE, ORANGE, GREEN, "#8c4aa8", "#b0263d", "#17868c", "#8a6d1c", "#4a4f57"]

# An error of many times the audit's own would press all other lines flat.
TALLEST = 8.0


def advice_html(document: Advice) -> str:
    """The advice as one page that needs nothing else.

    Examples
    --------
    >>> from leakscope.results import Advice
    >>> from leakscope.reporting.advice_page import advice_html
    >>> numbers = dict.fromkeys(("worst", "median", "error", "stderr", "cost", "cost_stderr"), 0.1)
    >>> own = {"name": "as audited", "setting": {}, "meets": True, "questions": "any", "notes": [],
    ...        "sentence": "", "curve": [], "split_stderr": None, "r_squared": 0.9,
    ...        "accuracy": None, **numbers}
    >>> dataset = {"name": "<b>", "records": 9, "features": 1, "outputs": 1, "target_name": "y",
    ...            "steps": []}
    >>> target = {"measure": "advantage", "value": 0.2}
    >>> document = Advice(
    ...     leakscope_version="1", settings={}, provenance={}, assumptions=[], timing={},
    ...     warnings=[], dataset=dataset, target=target, target_label="advantage", unit="record",
    ...     sentence="Met already.", own=own, options=[], notes=[])
    >>> page = advice_html(document)
    >>> "Met already." in page, "Defences for <b>" in page
    (True, False)
    """
    drawn = {"error_against_leakage": error_against_leakage(document)} if document.options else {}
    return rendered(
        "advice.html",
        charts=drawn,
        document=document,
        rows=[document.own, *document.options],
        settings={option.name: option.setting_words for option in document.options},
        classes=document.own.accuracy is not None,
        squared=document.own.r_squared is not None,
        tallest=TALLEST,
    )


def write_advice(document: Advice, path: str | Path) -> Path:
    """Write the page of an advice, mode 0600, whole or not at all; where it was written.

    Examples
    --------
    >>> from leakscope.reporting.advice_page import write_advice
    >>> write_advice(None, "advice.png")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: advice.png does not end in .html; a report is an HTML file.
    """
    path = Path(path)
    require_report_path(path)
    write_private(path, advice_html(document))
    return path


def error_against_leakage(document: Advice) -> dict[str, Any]:
    """What the worst is left with across, what the released answers err by up."""
    import altair as alt

    options = [option for option in document.options if option.curve]
    names = [option.name for option in options]
    own = document.own.error or 1e-300
    # Every point of a pair with output noise lies on the target: its diamond says enough.
    values = [point for option in options if "+" not in option.name for point in _points(option)]
    shown = [value["error"] for value in values if value["error"] <= TALLEST * own]
    logarithmic = document.target.measure != "advantage"
    x_scale = (
        alt.Scale(type="log", nice=False, padding=12, clamp=True)
        if logarithmic
        else alt.Scale(domain=[-0.02, 1.02], nice=False)
    )
    axis = alt.Axis(format="~g", labelOverlap=True, tickCount=6)
    x = alt.X(
        "worst:Q",
        title=f"{document.target_label} of the worst {document.unit}",
        scale=x_scale,
        axis=axis,
    )
    y = alt.Y(
        "error:Q",
        title=(
            f"{document.loss} on held-out records"
            if document.model
            else "squared error of a released answer"
        ),
        scale=alt.Scale(
            type="log", domain=[0.95 * min([*shown, own]), 1.05 * max([*shown, own])], nice=False
        ),
        axis=axis,
    )
    colour = alt.Color(
        "option:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=400, symbolSize=150),
    )
    tooltip = [
        alt.Tooltip("option:N"),
        alt.Tooltip("setting:N"),
        alt.Tooltip("worst:Q", format=".4g"),
        alt.Tooltip("median:Q", format=".4g"),
        alt.Tooltip("error:Q", format=".4g"),
    ]
    lines = (
        plot(values)
        .mark_line(clip=True, point=alt.OverlayMarkDef(size=40), strokeWidth=2.0)
        .encode(x=x, y=y, color=colour, order="place:Q", tooltip=tooltip)
    )
    target = (
        plot([{"worst": document.target.value}])
        .mark_rule(color=GREY, strokeDash=[5, 4])
        .encode(x=x)
    )
    chosen = (
        plot([_chosen(option) for option in options if option.meets and option.error is not None])
        .mark_point(shape="diamond", size=170, filled=True, clip=True)
        .encode(x=x, y=y, color=colour, tooltip=tooltip)
    )
    audited = (
        plot([{**_chosen(document.own), "option": "as audited"}])
        .mark_point(shape="cross", size=140, filled=True, color="black", clip=True)
        .encode(x=x, y=y, tooltip=tooltip)
    )
    layers = alt.layer(target, lines.add_params(zoom(["x", "y"])), chosen, audited)
    return described(layers, height=HEIGHT + 180)


def _points(option: AdviceOption) -> list[dict[str, Any]]:
    return [
        {
            "option": option.name,
            "setting": setting_text(point.setting),
            "worst": point.worst,
            "median": point.median,
            "error": point.error,
            "place": place,
        }
        for place, point in enumerate(option.curve)
        if point.worst is not None and point.error is not None
    ]


def _chosen(option: AdviceOption) -> dict[str, Any]:
    return {
        "option": option.name,
        "setting": option.setting_words,
        "worst": option.worst,
        "median": option.median,
        "error": option.error,
    }
