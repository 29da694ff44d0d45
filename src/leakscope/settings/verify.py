"""The settings of ``leakscope verify``: how many laws, how many draws, and how many refits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Natural, setting


class VerifySettings(BaseModel):
    """How a result is checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    records: int = setting(10, "How many records of an audit to check.")
    record_ids: tuple[str, ...] = setting(
        (),
        "Check this record (or group), by its id, instead of some from the whole range; "
        "repeatable.",
        metavar="ID",
        option="--record",
    )
    draws: int | None = setting(
        None,
        "Random draws for each check.",
        unset="4000 for an audit, 200 matrices for a plan",
    )
    models: int = setting(64, "How many refits, where the audit was of a model.")
    seed: Natural = setting(0, "Seed of the draws and of refits.", metavar="NUMBER")


VERIFY_DEFAULTS = VerifySettings()
