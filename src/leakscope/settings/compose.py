"""The settings of ``leakscope compose``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Probability, setting


class ComposeSettings(BaseModel):
    """How much all releases together may give away about one person.

    Examples
    --------
    >>> from leakscope.settings.compose import ComposeSettings
    >>> ComposeSettings(budget=0.3).budget
    0.3
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    budget: Probability | None = setting(
        None,
        "The largest advantage that all releases together may give; status 3 where somebody is "
        "above it, 4 where only numbers that are not trusted are.",
        metavar="ADVANTAGE",
    )
