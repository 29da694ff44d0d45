"""The result file of ``leakscope attack query``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import DatasetEntry, Number, ResultDocument


class FoundQuery(BaseModel):
    """One of the best queries: how near it is to which record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nearest_record: int | str
    distance: Number
    relative_distance: Number
    cosine: Number
    prediction_kl: Number


class StartEntry(BaseModel):
    """Where one start ended."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kl: Number
    ratio: Number
    recovered: list[int | str]


class QueryDocument(ResultDocument):
    """The result of ``leakscope attack query``.

    Examples
    --------
    >>> from leakscope.results.query import QueryDocument
    >>> QueryDocument.model_fields["kind"].default
    'attack_query'
    """

    kind: Literal["attack_query"] = "attack_query"
    dataset: DatasetEntry
    kernel: dict[str, Any]
    noise_variance: float
    records: list[int | str]
    climb: str
    kl: Number
    kl_at_record: Number
    ratio: Number
    advantage: Number
    advantage_at_record: Number
    starts_recovered: int
    queries: list[FoundQuery]
    starts: list[StartEntry]
    pictures: list[str]
    verdict: str
