"""The result file of ``leakscope advise``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import DatasetEntry, Number, ResultDocument


class AdviceTargetEntry(BaseModel):
    """What no record, or group, may exceed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    measure: Literal["advantage", "tpr", "epsilon"]
    value: float
    fpr: float | None = None
    delta: float | None = None


class AdvicePoint(BaseModel):
    """One setting on the way: the worst and the median unit, and the error there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    setting: dict[str, Number]
    worst: Number
    median: Number
    error: Number


class AdviceOption(BaseModel):
    """One defence; see docs/advise.md for what each number means.

    ``dropped`` and ``merged`` name records (or groups): the file is as sensitive as the data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    setting: dict[str, Number]
    meets: bool
    worst: Number
    median: Number
    error: Number
    stderr: Number
    cost: Number
    cost_stderr: Number
    split_stderr: Number
    r_squared: Number
    accuracy: Number
    questions: Literal["own", "any"]
    sentence: str
    notes: list[str]
    curve: list[AdvicePoint]
    dropped: list[int | str] = Field(default_factory=list)
    merged: list[list[int | str]] = Field(default_factory=list)


class AdviceDocument(ResultDocument):
    """The result of ``leakscope advise``: options, the cheapest that meets the target first.

    Examples
    --------
    >>> from leakscope.results.advice import AdviceDocument
    >>> AdviceDocument.model_fields["kind"].default
    'advice'
    """

    kind: Literal["advice"] = "advice"
    dataset: DatasetEntry
    target: AdviceTargetEntry
    target_label: str
    unit: Literal["record", "group"]
    sentence: str
    own: AdviceOption
    options: list[AdviceOption]
    notes: list[str]
