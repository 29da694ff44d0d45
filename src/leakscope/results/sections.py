"""Parts of a page that a kind of model, or a plan, has to show: words, tables, charts.

It describes them; the report draws them without knowing whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LineChart:
    """Lines (name, settings, levels) over a setting; None leaves a point out.

    ``used`` marks the setting in use, ``target`` a level that is asked for.  Axes are logarithmic,
    but that of an advantage, which goes from 0 to 1.
    """

    name: str
    x: str
    y: str
    series: Sequence[tuple[str, Sequence[float], Sequence[float | None]]]
    used: float | None = None
    fraction: bool = False
    target: float | None = None

    @property
    def caption(self) -> str:
        """What the marks mean."""
        words = ["" if self.used is None else f"The dashed line is the {self.x} in use."]
        words += ["" if self.target is None else "The horizontal one is the target."]
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, tables of (headings, rows) and charts under it.

    A section that ``names`` single units is left out of a redacted page.  What an
    option ``asked`` for is on the screen without --explain.
    """

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]] = ()
    charts: Sequence[LineChart] = ()
    names: bool = False
    asked: bool = False
