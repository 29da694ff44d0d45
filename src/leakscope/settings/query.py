"""The settings of a search for the most revealing query."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from leakscope.settings.setting import Count, Natural, setting

SearchBegin = Literal["box", "records"]
SearchClimb = Literal["auto", "lood", "correlation"]
SearchMethod = Literal["adam", "l-bfgs"]


def _rising(box: tuple[float, float]) -> tuple[float, float]:
    if not box[0] < box[1]:
        raise PydanticCustomError("box", "input should rise from LOW to HIGH")
    return box


class QuerySettings(BaseModel):
    """The settings of a query search; the kernel's own are an audit's.

    Examples
    --------
    >>> from leakscope.settings import QuerySettings
    >>> QuerySettings().starts
    8
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: Count = setting(1, "How many queries are asked together.")
    starts: Count = setting(8, "How many starting points.")
    begin: SearchBegin = setting(
        "box", "Where starts are drawn from: box, or records (those the attacker knows)."
    )
    steps: Count = setting(300, "Steps from each start.")
    climb: SearchClimb = setting(
        "auto", "What to follow uphill: lood (the paper's way), correlation, or auto."
    )
    method: SearchMethod = setting("adam", "adam or l-bfgs.")
    box: Annotated[tuple[float, float], AfterValidator(_rising)] | None = setting(
        None,
        "Least and largest value of a query's features in the file's units, such as 0,255.",
        metavar="LOW,HIGH",
        unset="each feature's range",
    )
    seed: Natural = setting(0, "Seed of the starts.", metavar="NUMBER")


QUERY_DEFAULTS = QuerySettings()
