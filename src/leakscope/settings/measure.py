"""The settings of ``leakscope measure``, and of every summary of a pair of laws."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Natural, Positive, Probability, setting


class MeasureSettings(BaseModel):
    """The settings of ``leakscope measure``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fpr: tuple[Probability, ...] = setting(
        (0.1, 0.01, 0.001, 1e-5),
        "False-positive rates, as fractions separated by commas.",
        min_length=1,
    )
    delta: tuple[Probability, ...] = setting(
        (1e-5,), "Deltas at which epsilon is given, separated by commas.", min_length=1
    )
    confidence: Probability = setting(0.95, "Confidence level of intervals and bounds, for scores.")
    seed: Natural = setting(0, "Seed of the resampling, for scores.", metavar="NUMBER")


class CanarySettings(BaseModel):
    """What ``leakscope measure --canaries`` takes beside deltas, confidence and seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    guesses: tuple[Natural, Natural] | None = setting(
        None,
        "With --canaries: how many to name as included and how many as left out, fixed before the "
        "scores were seen.",
        metavar="COUNT,COUNT",
        unset="several numbers, with the confidence shared among them",
    )
    claimed_epsilon: Positive | None = setting(
        None, "With --canaries: the epsilon that the training claims, at the first delta."
    )


MEASURE_DEFAULTS = MeasureSettings()
