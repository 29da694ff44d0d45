"""Legends of reproduced figures: a line is shown as a line, and every mark has an entry."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from papers import Figure, Made, Panel, reproduce
from papers.panels import SHAPES, figure_chart
from papers.relu_algorithm_1 import _example


def layers(panel: Panel) -> list[dict[str, Any]]:
    figure = Figure("linear-0", "linear", "Fig. 0", "error", lambda order: Made((panel,), ()))
    found: list[dict[str, Any]] = figure_chart(reproduce(figure))["concat"][0]["layer"]
    return [layer["encoding"] for layer in found]


def panel_of(rows: list[tuple[str, str]], **options: Any) -> Panel:
    """Two points for each pair of a series and a source."""
    table = pd.DataFrame(
        [(x, x * 0.5, name, source) for name, source in rows for x in (1.0, 2.0)],
        columns=["x", "y", "series", "source"],
    )
    return Panel("p", table, x="x", y="y", **options)


def test_curves_have_lines_in_their_legend() -> None:
    line, points = layers(
        panel_of([("a", "theory"), ("a", "simulation"), ("b", "theory")], series="series")
    )
    assert line["color"]["legend"]["symbolType"] == "stroke"
    assert line["strokeDash"]["legend"]["symbolType"] == "stroke"
    assert line["strokeDash"]["scale"]["domain"] == ["theory"]
    assert points["shape"]["scale"] == {"domain": ["simulation"], "range": ["circle"]}


def test_a_line_without_a_series_has_an_entry_beside_points() -> None:
    line, points = layers(panel_of([("a", "theory"), ("a", "simulation")]))
    assert line["strokeDash"]["legend"] is not None
    assert points["shape"]["legend"] is not None
    (alone,) = layers(panel_of([("a", "theory")]))
    assert alone["strokeDash"]["legend"] is None


def test_lines_and_points_of_different_series_share_one_legend() -> None:
    rows = [("curve", "theory"), ("trained", "retraining"), ("read", "published")]
    line, points = layers(panel_of(rows, series="series"))
    assert line["strokeDash"]["legend"] is None
    assert points["shape"]["scale"] == {
        "domain": ["curve", "trained", "read"],
        "range": ["stroke", "square", "diamond"],
    }
    assert points["shape"]["title"] == points["color"]["title"]


def test_printed_formulas_are_told_from_theory() -> None:
    (line,) = layers(panel_of([("a", "theory"), ("a", "printed")], series="series"))
    assert line["strokeDash"]["scale"] == {
        "domain": ["theory", "printed"], "range": [[1, 0], [5, 4]],
    }  # fmt: skip
    assert line["strokeDash"]["legend"] is not None


@pytest.mark.parametrize("kind", ["scatter", "bars"])
def test_points_and_bars_have_no_line(kind: str) -> None:
    for layer in layers(panel_of([("a", "theory")], series="series", kind=kind)):
        assert "symbolType" not in layer["color"]["legend"]


def test_records_and_candidates_are_called_so() -> None:
    """The legend of relu-algorithm-1 has no word of simulation or retraining."""
    panel = _example()
    assert set(panel.table["source"]) == {"theory", "record", "found"}
    assert {"record", "found"} <= set(SHAPES)
    line, points = layers(panel)
    assert points["shape"]["scale"] == {
        "domain": ["network", "records", "candidates"], "range": ["stroke", "square", "circle"],
    }  # fmt: skip
    assert line["strokeDash"]["legend"] is None


def test_points_of_different_series_are_shown_as_they_are_drawn() -> None:
    """linear-5: what was read off the figure is a diamond in the legend too; relu-1: squares."""
    rows = [("ours", "simulation"), ("read", "published")]
    (points,) = layers(panel_of(rows, series="series"))
    assert points["shape"]["scale"] == {"domain": ["ours", "read"], "range": ["circle", "diamond"]}
    assert points["shape"]["title"] == points["color"]["title"]
    (same,) = layers(panel_of([("a", "retraining"), ("b", "retraining")], series="series"))
    assert same["color"]["legend"]["symbolType"] == "square"
