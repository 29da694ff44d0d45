"""Every figure of the papers at its quick size: made, drawn, and judged by its own numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from papers import Figure, figures, reproduce
from papers.panels import figure_png

ERRATA = Path(__file__).parents[2] / "docs" / "errata.md"

VERDICTS = {"holds", "holds with the erratum", "does not hold", "cannot tell"}


def errata_entries() -> set[str]:
    """``linear 1``, ``linear 2``, ...: the paper's heading and the number under it."""
    found: set[str] = set()
    paper = ""
    for line in ERRATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            paper = line[3:].strip()
        elif numbered := re.match(r"(\d+)\. ", line):
            found.add(f"{paper} {numbered.group(1)}")
    return found


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_figure_is_made_at_its_quick_size(figure: Figure) -> None:
    document = reproduce(figure)
    assert document.panels or document.pictures
    assert document.claims, "a figure stands for something"
    for panel in document.panels:
        assert panel.rows
        y = [row[panel.columns.index(panel.value or panel.y)] for row in panel.rows]
        finite = [value for value in y if isinstance(value, (int, float)) and math.isfinite(value)]
        assert len(finite) >= 0.5 * len(y), f"{panel.title}: most of it is empty"
    for claim in document.claims:
        assert claim.verdict in VERDICTS
        assert re.search(r"\d", claim.measured), f"{claim.text}: no number"
        if claim.erratum is not None:
            assert claim.erratum in errata_entries()
    # Not every claim of a figure may be beyond the quick size.
    assert any(claim.verdict != "cannot tell" for claim in document.claims)
    assert figure_png(document, scale=0.5).startswith(b"\x89PNG")


def test_the_papers_are_whole() -> None:
    """The numbered figures that the issue asks for, each with at least one entry."""
    names = {figure.name for figure in figures()}
    wanted = {"linear": 7, "relu": 1, "lasso": 10, "lood": 13}
    for paper, last in wanted.items():
        for number in range(1, last + 1):
            pattern = re.compile(rf"{paper}-{number}[a-z]?$")
            assert any(pattern.match(name) for name in names), f"{paper}-{number} is missing"
    assert {"relu-algorithm-1", "lood-e1", "lood-e2", "lood-section-6"} <= names
