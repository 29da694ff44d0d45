"""The result file of ``leakscope audit``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.io.results import DatasetEntry, Number, ResultDocument


class AuditRecord(BaseModel):
    """One record of an audit; see docs/commands.md for what each number means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    size: int = 1
    kl: Number
    kl_reverse: Number
    advantage: Number
    auc: Number
    mean_distance: Number
    kl_label_free: Number
    kl_label: Number
    disagreement: Number = None
    mean_without: Number | list[Number]
    variance_without: Number
    mean_with: Number | list[Number]
    variance_with: Number
    trusted: bool
    rank_low: int | None = None
    rank_high: int | None = None


class SensitivityEntry(BaseModel):
    """The noise variances over which every record's ranks were taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    noise_variances: list[float]
    median_kl: list[Number]
    refused: list[float]


class SubgroupEntry(BaseModel):
    """The exposure of the records with one value of the column ``by``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: str
    count: int
    median_advantage: Number
    largest_advantage: Number
    share_exposed: Number
    small: bool


class ExplanationEntry(BaseModel):
    """Why one of the most exposed records is; see docs/commands.md for each number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    rank: int
    neighbours: list[int | str]
    distances: list[Number]
    isolation: Number
    disagreement: Number
    leverage: Number
    share_from_label: Number
    moved: list[int | str]
    shifts: list[Number]
    sentence: str


class AuditDocument(ResultDocument):
    """The result of ``leakscope audit``: every record, most exposed first.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> result = leakscope.audit(np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0]))
    >>> document = result.to_document()
    >>> document.kind, document.records[0].record_id
    ('audit', 2)
    """

    kind: Literal["audit"] = "audit"
    dataset: DatasetEntry
    kernel: dict[str, Any]
    noise_variance: float
    noise_chosen_by: str = "user"
    route: str = "dense"
    route_reason: str = ""
    sensitivity: SensitivityEntry | None = None
    condition_number: Number
    verdict: str
    verdict_without_ids: str | None = None
    median_advantage: Number
    records: list[AuditRecord]
    unit: Literal["record", "group"] = "record"
    by: str | None = None
    subgroups: list[SubgroupEntry] = Field(default_factory=list)
    explanations: list[ExplanationEntry] = Field(default_factory=list)
