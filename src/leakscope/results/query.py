"""The result file of ``leakscope attack query``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import DatasetEntry, Number, ResultDocument


class FoundQuery(BaseModel):
    """One of the best queries: how near it is to which record.

    ``features`` is the query itself, in the file's units; null in an older result.

    Examples
    --------
    >>> from leakscope.results import FoundQuery
    >>> FoundQuery(features=[0.5], nearest_record="a", distance=0.1, relative_distance=0.02,
    ...            cosine=0.999, prediction_kl=1.2).nearest_record
    'a'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    nearest_record: int | str
    distance: Number
    relative_distance: Number
    cosine: Number
    prediction_kl: Number
    features: list[Number] | None = None


class QueryStart(BaseModel):
    """Where one start ended: its KL, as a share of that at the record, and what it recovered.

    Examples
    --------
    >>> from leakscope.results import QueryStart
    >>> QueryStart(kl=1.0, ratio=0.5, recovered=[]).ratio
    0.5
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kl: Number
    ratio: Number
    recovered: list[int | str]


class QueryAttack(ResultDocument):
    """The result of ``leakscope attack query``.

    Examples
    --------
    >>> from leakscope.results import QueryAttack
    >>> QueryAttack.model_fields["kind"].default
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
    starts: list[QueryStart]
    pictures: list[str]
    verdict: str
