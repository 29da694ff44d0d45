"""The settings of an audit of one's own model: which model, which penalty, which question."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.settings.setting import Reachable, setting

ModelName = Literal["ridge", "linear", "logistic", "poisson", "kernel_ridge"]
ModelQuestion = Literal["pool", "population"]
ModelObserves = Literal["log_odds", "prediction", "residual", "label", "probabilities"]
Fraction = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]


class ModelSettings(BaseModel):
    """Which model is examined, and what is asked of it.

    Examples
    --------
    >>> from leakscope.settings import ModelSettings
    >>> ModelSettings(model="logistic").question
    'pool'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: ModelName | None = setting(
        None,
        "Examine this model instead of a Gaussian process: ridge, linear, logistic, poisson or "
        "kernel_ridge, as scikit-learn fits it.",
    )
    C: Reachable | None = setting(
        None,
        "Inverse penalty (logistic only).",
        option="--C",
        unset="chosen by cross-validation",
    )
    alpha: Reachable | None = setting(
        None,
        "Penalty (ridge, poisson and kernel_ridge only).",
        unset="chosen by cross-validation",
    )
    gamma: Reachable | None = setting(
        None,
        "Of the kernel exp(-gamma distance²) (kernel_ridge only).",
        unset="by the median distance between records",
    )
    question: ModelQuestion = setting(
        "pool",
        "With --model: pool (the other records are drawn from those at hand, as in LiRA) or "
        "population (they are fresh).",
    )
    fraction: Fraction | None = setting(
        None,
        "With --model: the training set's share of the records.",
        unset="0.5 for pool, 1 for population",
    )
    observes: ModelObserves | None = setting(
        None,
        "With --model, what the attacker sees: log_odds, label or probabilities; prediction or "
        "residual.",
        unset="log_odds of classes, prediction of numbers",
    )


MODEL_DEFAULTS = ModelSettings()
