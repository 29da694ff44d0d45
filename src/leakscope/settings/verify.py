"""The settings of ``leakscope verify``: how many laws, how many draws, and what to retrain."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leakscope.settings.setting import Natural, setting

# No layer that is trained here is wider.
Width = Annotated[int, Field(ge=1, le=100_000)]


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
    seed: Natural = setting(0, "Seed of the draws and of retraining.", metavar="NUMBER")


class RetrainingSettings(BaseModel):
    """What is trained again, with and without a record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: str | None = setting(
        None,
        "Retrain an audit's models with your own function, train(X, y, seed) -> predictor.",
        metavar="MODULE:FUNCTION",
    )
    widths: tuple[Width, ...] | None = setting(
        None,
        "Retrain a dense network with these widths, such as 256,256.",
        metavar="WIDTHS",
        option="--network",
    )
    epochs: int = setting(100, "Epochs of --network.")
    learning_rate: float = setting(1e-3, "Learning rate of --network.")
    models: int = setting(
        64,
        "How many refits, where the audit was of a model; with --train or --network, this many "
        "models with each record and this many without it.",
    )


VERIFY_DEFAULTS = VerifySettings()
RETRAINING_DEFAULTS = RetrainingSettings()
