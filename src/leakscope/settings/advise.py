"""The settings of ``leakscope advise``: how options are searched and priced."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Natural, setting

Questions = Literal["own", "any"]


# Of a target TPR and a target epsilon, where they are not given.
TARGET_FPR, TARGET_DELTA = 1e-3, 1e-5


class AdviseSettings(BaseModel):
    """How the options are searched and priced."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folds: int | None = setting(
        None,
        "Folds of the cross-validation that prices an option.",
        unset="5, or one for each record or group where those are fewer",
    )
    repeats: int | None = setting(
        None,
        "How often the cross-validation is repeated.",
        unset="4 up to 1,000 records, 2 up to 2,500, 1",
    )
    most_dropped: float = setting(0.5, "The largest share of records to drop.")
    questions: Questions = setting(
        "own",
        "Where the attacker asks, for noise on the answers: own (at the record's own point, as in "
        "the audit) or any (anywhere; rbf and matern only).",
        metavar="WHERE",
    )
    tries: tuple[str, ...] = setting(
        (),
        "Of an audit of a training: an option of it, and the values to try; again for another.",
        metavar="NAME=VALUES",
        option="--try",
        unset="none",
    )
    seed: Natural = setting(0, "Seed of the folds.", metavar="NUMBER")


ADVISE_DEFAULTS = AdviseSettings()
