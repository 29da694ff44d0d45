"""The result file of ``leakscope reproduce``: a figure's numbers, and a verdict on each claim."""

from __future__ import annotations

import base64
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results import ResultDocument


class ClaimEntry(BaseModel):
    """A claim of the paper, the verdict, and the numbers that it rests on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    where: str
    verdict: Literal["holds", "holds with the erratum", "does not hold", "cannot tell"]
    measured: str
    erratum: str | None = None


class PanelEntry(BaseModel):
    """One set of axes: a table, and which column is drawn where."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    columns: list[str]
    rows: list[list[Any]]
    x: str
    y: str
    series: str | None = None
    low: str | None = None
    high: str | None = None
    value: str | None = None
    x_log: bool = False
    y_log: bool = False
    x_title: str | None = None
    y_title: str | None = None
    kind: Literal["curves", "scatter", "bars", "heat"] = "curves"
    joined: bool = False
    overlaid: bool = False


class PictureEntry(BaseModel):
    """A picture, as base64 of a PNG file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    caption: str
    png: str

    @classmethod
    def of(cls, caption: str, png: bytes) -> PictureEntry:
        """From the bytes of a PNG file."""
        return cls(caption=caption, png=base64.b64encode(png).decode("ascii"))

    def content(self) -> bytes:
        """The bytes of the PNG file."""
        return base64.b64decode(self.png)


class ReproductionDocument(ResultDocument):
    """The result of ``leakscope reproduce``.

    Examples
    --------
    >>> from papers.result import ReproductionDocument
    >>> ReproductionDocument.model_fields["kind"].default
    'reproduction'
    """

    kind: Literal["reproduction"] = "reproduction"
    name: str
    title: str
    notes: list[str]
    claims: list[ClaimEntry]
    panels: list[PanelEntry]
    pictures: list[PictureEntry] = Field(default_factory=list)
