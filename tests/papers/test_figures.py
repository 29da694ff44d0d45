"""Every figure of the papers at its quick size: made, drawn, and judged by its own numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from leakscope import InputError
from papers import Figure, Order, figures, reproduce
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


class Read(Exception):
    """Every parameter was asked for."""


class Watched(Mapping[str, float]):
    """Parameters that know which of them a figure still has to ask for."""

    def __init__(self, knobs: dict[str, float]) -> None:
        self.knobs, self.left = knobs, set(knobs)

    def __getitem__(self, name: str) -> float:
        self.left.discard(name)
        if not self.left:
            raise Read
        return self.knobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.knobs)

    def __len__(self) -> int:
        return len(self.knobs)


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_every_parameter_is_declared_refused_and_read(figure: Figure) -> None:
    assert figure.knobs, "a figure with nothing to set says so by an empty list; none does today"
    assert set(figure.quick) <= set(figure.knobs)
    for size in ("quick", "full"):
        own = figure.own(size)
        assert figure.turned({}, size) == own
        for name, value in own.items():
            assert type(value) is type(figure.knobs[name])
            changed = figure.turned({name: 2.0 * value}, size)
            assert changed[name] == 2 * value
            assert type(changed[name]) is type(value)
            for bad in (0.0, -1.0, math.nan, math.inf):
                with pytest.raises(InputError, match=f"{name} must be a number above 0"):
                    figure.turned({name: bad}, size)
            if isinstance(value, int):
                with pytest.raises(InputError, match=f"{name} must be a whole number"):
                    figure.turned({name: value + 0.5}, size)
    with pytest.raises(InputError, match=f"{figure.name} has no parameter nothing to set; it has"):
        figure.turned({"nothing": 1.0})
    with pytest.raises(Read):
        figure.make(Order(knobs=Watched(figure.own("quick"))))


def parameters_table() -> str:
    rows: dict[str, list[str]] = {}
    for figure in figures():
        told = ", ".join(
            f"{name} {value:,g}" + (f" ({figure.quick[name]:,g})" if name in figure.quick else "")
            for name, value in figure.knobs.items()
        )
        rows.setdefault(told, []).append(figure.name)
    lines = [f"| {', '.join(names)} | {told} |" for told, names in rows.items()]
    return "\n".join(["| figure | parameters |", "|---|---|", *lines, ""])


def test_the_page_names_every_parameter() -> None:
    page = (ERRATA.parent / "reproduce.md").read_text(encoding="utf-8")
    assert parameters_table() in page, f"the table is now\n{parameters_table()}"


# Figures that take a second or two with these values, and what an unusual value is told.
CHANGED = {
    "linear-4": {"n": 40, "D": 400},
    "linear-6": {"n": 300, "D": 2_000, "sigma": 2.0},
    "lasso-8": {"alpha": 0.3},
    "lood-4a": {"records": 12, "length_scale": 0.5},
    "lood-7": {"records": 6, "noise_variance": 0.1},
    "lood-11": {"length_scale": 0.8},
    "lood-12": {"noise_variance": 0.05},
    "relu-algorithm-1": {"fewest": 3, "most": 4},
}
UNUSUAL = [
    ("linear-1", {"D": 500}, "D must be 2 times n or more"),
    ("linear-3a", {"D": 1_500}, "D must be 4 times n or more"),
    ("linear-4", {"D": 150}, "D must be 4 times n or more"),
    ("linear-5a", {"n": 20_000}, "n must be below"),
    ("linear-7", {"n": 1_000}, "D must be 4 times n or more"),
    ("lasso-1", {"rho": 2.0}, "rho must be a fraction from 0 to 1"),
    ("lasso-1", {"alpha": 1.5}, "alpha must be below 1"),
    ("lasso-7", {"alpha": 1.0}, "alpha must be below 1"),
    ("lasso-3a", {"sigma_eta": 50.0}, "take a smaller one"),
    ("lasso-5", {"sigma_eta": 100.0}, "lasso-5 cannot be made with sigma_eta = 100"),
    ("lood-3", {"records": 1}, "lood-3 cannot be made with records = 1"),
    ("lood-11", {"records": 10**15}, "lood-11 cannot be made with records = 1e"),
    ("relu-algorithm-1", {"fewest": 30}, "fewest must be at most 15"),
]


@pytest.mark.parametrize("name", CHANGED)
def test_numbers_prose_and_verdicts_follow_a_parameter(name: str) -> None:
    given = CHANGED[name]
    document = reproduce(name, knobs=given)
    assert document.settings["set"] == given
    assert document.notes[-1].startswith("Made with ")
    assert {claim.verdict for claim in document.claims} <= VERDICTS
    for knob, value in given.items():
        assert f"{knob} = {value:,g}" in document.notes[-1]
        if knob in document.settings:
            assert document.settings[knob] == value
    # What stands in words has the values that were asked for, and not the paper's.
    words = " ".join([*document.notes[:-1], *(panel.title for panel in document.panels)])
    for symbol, value in re.findall(r"\b(n|D) = ([\d,]+)", words):
        assert float(value.replace(",", "")) == given.get(symbol, math.nan)


@pytest.mark.parametrize(("name", "given", "sentence"), UNUSUAL)
def test_an_unusual_value_gets_a_sentence(
    name: str, given: dict[str, float], sentence: str
) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)) as told:
        reproduce(name, knobs=given)
    assert str(told.value).count(". ") <= 1
    assert str(told.value).startswith(f"{name} cannot be made with ")


def test_the_papers_are_whole() -> None:
    """The numbered figures that the issue asks for, each with at least one entry."""
    names = {figure.name for figure in figures()}
    wanted = {"linear": 7, "relu": 1, "lasso": 10, "lood": 14}
    for paper, last in wanted.items():
        for number in range(1, last + 1):
            pattern = re.compile(rf"{paper}-{number}[a-z]?$")
            assert any(pattern.match(name) for name in names), f"{paper}-{number} is missing"
    assert {"relu-algorithm-1", "lood-e1", "lood-e2", "lood-section-6"} <= names
