"""The settings of ``leakscope measure``, and of every summary of a pair of laws."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Natural, Probability, setting


class MeasureSettings(BaseModel):
    """The settings of ``leakscope measure``.

    Examples
    --------
    >>> from leakscope.settings.measure import MeasureSettings
    >>> MeasureSettings(fpr=(0.01,)).delta
    (1e-05,)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fpr: tuple[Probability, ...] = setting(
        (0.1, 0.01, 0.001, 1e-5),
        "False-positive rates, as fractions separated by commas.",
        min_length=1,
    )
    delta: tuple[Probability, ...] = setting(
        (1e-5,), "Deltas for this pair's epsilon, separated by commas.", min_length=1
    )
    confidence: Probability = setting(0.95, "Confidence level of the intervals, for scores.")
    seed: Natural = setting(0, "Seed of the resampling, for scores.", metavar="NUMBER")


MEASURE_DEFAULTS = MeasureSettings()
