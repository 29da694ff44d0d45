"""The settings of ``leakscope compare``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import setting


class CompareSettings(BaseModel):
    """When the second of two audits is called worse."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tolerance: float = setting(
        0.001,
        "How much an advantage, or the share of exposed records, may rise before the second run is "
        "called worse.",
    )


COMPARE_DEFAULTS = CompareSettings()
