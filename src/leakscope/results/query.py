"""The settings and the result file of ``leakscope attack query``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import DatasetEntry, Number, ResultDocument


class QuerySettings(BaseModel):
    """The settings of a query search; the kernel's own are an audit's.

    Attributes
    ----------
    queries, starts, steps
        How many queries together, from how many starts, with how many steps each.
    begin, climb, method
        As :func:`leakscope.lood.search_query` takes them.
    box
        Least and largest value of every feature, in the file's units; each feature's range over
        all records where left out.
    seed
        For the starts.

    Examples
    --------
    >>> from leakscope.results.query import QuerySettings
    >>> QuerySettings().starts
    8
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: Annotated[int, Field(ge=1)] = 1
    starts: Annotated[int, Field(ge=1)] = 8
    steps: Annotated[int, Field(ge=1)] = 300
    begin: Literal["box", "records"] = "box"
    climb: Literal["auto", "lood", "correlation"] = "auto"
    method: Literal["adam", "l-bfgs"] = "adam"
    box: tuple[float, float] | None = None
    seed: Annotated[int, Field(ge=0)] = 0


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
