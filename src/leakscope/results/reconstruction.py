"""The result file of ``leakscope attack reconstruct``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


class CandidateEntry(BaseModel):
    """A place where a training record may be, and which theorem says so.

    ``x`` is a number for one input and a list for several.  For several there is no theorem, no
    piece and no certificate, but a fitted multiplier, how far f is off the margin, and the share
    of the solutions found that have a point there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: Number | list[float]
    label: int
    theorem: str
    piece: int | None
    certified: bool
    multiplier_low: Number
    multiplier_high: Number
    multiplier: Number = None
    margin_gap: Number = None
    agreement: Number = None
    pairs: int | None = None


class FlatEntry(BaseModel):
    """A constant piece on the margin; an end at infinity is null."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Number
    high: Number
    label: int
    certified: bool
    mean: Number


class NetworkEntry(BaseModel):
    """Which network was attacked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    width: int
    features: int
    notes: list[str]


class ReconstructDocument(ResultDocument):
    """The result of ``leakscope attack reconstruct``.

    Examples
    --------
    >>> from leakscope.results.reconstruction import ReconstructDocument
    >>> ReconstructDocument.model_fields["kind"].default
    'attack_reconstruct'
    """

    kind: Literal["attack_reconstruct"] = "attack_reconstruct"
    network: NetworkEntry
    margin: Number
    margin_known: bool
    form: str
    candidates: list[CandidateEntry]
    flats: list[FlatEntry]
    residual: Number
    guarantee: Number
    precision: Number
    recall: Number
    queries: int | None
    baseline_recall: Number = None
    distinct: int | None = None
    solutions: int | None = None
    determined: bool | None = None
    verdict: str
