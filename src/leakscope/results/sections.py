"""Parts of a page that a kind of model has to show of its audits: words, tables, charts.

A kind describes them; the report draws them without knowing whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LineChart:
    """Lines over a setting; ``used`` marks the setting in use, and None leaves a point out."""

    name: str
    x: str
    y: str
    series: Sequence[tuple[str, Sequence[float], Sequence[float | None]]]
    used: float | None = None
    fraction: bool = False


@dataclass(frozen=True)
class RangeChart:
    """A bar from the best to the worst rank of each of the first units: (name, best, worst)."""

    name: str
    x: str
    rows: Sequence[tuple[str, int, int]]


@dataclass(frozen=True)
class SpanChart:
    """The median and the largest advantage under each of several choices; the first is in use."""

    name: str
    rows: Sequence[tuple[str, float, float]]


Chart = LineChart | RangeChart | SpanChart


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, tables of (headings, rows) and charts under it.

    A section that ``names`` single units is left out of a redacted page, and so are its range
    charts.
    """

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]] = ()
    charts: Sequence[Chart] = ()
    names: bool = False
