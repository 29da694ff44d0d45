"""The result file of ``leakscope attack reconstruct``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


class ReconstructedRecord(BaseModel):
    """A place where a training record may be, and which theorem says so.

    ``x`` is a number for one input and a list for several.  For several there is no theorem, no
    piece and no certificate, but a fitted multiplier, how far f is off the margin, and the share
    of the solutions found that have a point there.

    Examples
    --------
    >>> from leakscope.results import ReconstructedRecord
    >>> ReconstructedRecord(x=1.5, label=1, theorem="3.1", piece=0, certified=True,
    ...                     multiplier_low=0.1, multiplier_high=float("inf")).multiplier_high
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


class ReconstructedFlat(BaseModel):
    """A constant piece on the margin; an end at infinity is null.

    Examples
    --------
    >>> from leakscope.results import ReconstructedFlat
    >>> flat = ReconstructedFlat(low=float("-inf"), high=2.0, label=1, certified=True, mean=None)
    >>> flat.low is None
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Number
    high: Number
    label: int
    certified: bool
    mean: Number


class AttackedNetwork(BaseModel):
    """Which network was attacked.

    Examples
    --------
    >>> from leakscope.results import AttackedNetwork
    >>> AttackedNetwork(name="net.npz", width=20, features=1, notes=[]).width
    20
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    width: int
    features: int
    notes: list[str]


class ReconstructAttack(ResultDocument):
    """The result of ``leakscope attack reconstruct``.

    Examples
    --------
    >>> from leakscope.results import ReconstructAttack
    >>> ReconstructAttack.model_fields["kind"].default
    'attack_reconstruct'
    """

    kind: Literal["attack_reconstruct"] = "attack_reconstruct"
    network: AttackedNetwork
    margin: Number
    margin_known: bool
    form: str
    candidates: list[ReconstructedRecord]
    flats: list[ReconstructedFlat]
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
