"""The settings of an audit of one's own model: which model, which penalty, which question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from leakscope.settings.setting import Reachable, setting

ModelName = Literal["ridge", "linear", "logistic", "poisson", "kernel_ridge"]
ModelQuestion = Literal["pool", "population"]
ModelObserves = Literal["log_odds", "prediction", "residual", "label", "probabilities"]
# What a model's file ends in.
MODEL_FILES = (".skops", ".onnx")
# Models of kinds that were registered (leakscope.results.kinds), which can be named too.
REGISTERED: set[str] = set()


def _model_choice(text: str) -> str:
    suffix = Path(text).suffix.lower()
    if text in get_args(ModelName) or text in REGISTERED or suffix in MODEL_FILES:
        return text
    if suffix in (".pkl", ".pickle", ".joblib", ".sav"):
        raise PydanticCustomError(
            "pickle",
            "a pickle can run any program when it is read, so none is; save the model with "
            "skops.io.dump and name the .skops file",
        )
    raise PydanticCustomError(
        "model",
        f"input should be one of {', '.join(get_args(ModelName))}, or a .skops or .onnx file",
    )


ModelChoice = Annotated[str, AfterValidator(_model_choice)]
Fraction = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]

# Cross-validation chooses a penalty that is left out: so many folds, drawn by the seed.
FOLDS = 5


def _decades(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(10.0 ** (low + (high - low) * place / (count - 1)) for place in range(count))


# Its candidates, in thirds of a decade where one fit is one factorisation: C of logistic
# regression, alpha of the others.
PENALTIES: dict[str, tuple[float, ...]] = {
    "ridge": _decades(-3.0, 5.0, 25),
    "kernel_ridge": _decades(-4.0, 3.0, 22),
    "logistic": _decades(-4.0, 4.0, 9),
    "poisson": _decades(-5.0, 2.0, 8),
}

# Where no model is given one is fitted from so many records on, and up to so many coefficients of
# several classes.
STAND_IN_RECORDS = 20
STAND_IN_COEFFICIENTS = 5000


class ModelSettings(BaseModel):
    """Which model is examined, and what is asked of it.

    Examples
    --------
    >>> from leakscope.settings import ModelSettings
    >>> ModelSettings(model="logistic").question
    'pool'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: ModelChoice | None = setting(
        None,
        "Examine this model: ridge, linear, logistic, poisson or kernel_ridge, as scikit-learn "
        "fits it; or your own from a .skops or .onnx file.",
        metavar="MODEL",
        unset="a stand-in is fitted: ridge for numbers, logistic for classes",
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
        "gamma in the kernel exp(-gamma distance²) (kernel_ridge only).",
        unset="by the median distance between records",
    )
    question: ModelQuestion = setting(
        "pool",
        "For fitted models: pool (the other records are drawn from those at hand, as in LiRA) or "
        "population (they are fresh).",
    )
    fraction: Fraction | None = setting(
        None,
        "For fitted models: the training set's share of the records.",
        unset="0.5 for pool, 1 for population",
    )
    observes: ModelObserves | None = setting(
        None,
        "What the attacker sees of a fitted model: log_odds, label or probabilities; prediction or "
        "residual.",
        unset="log_odds of classes, prediction of numbers",
    )

    @property
    def named(self) -> ModelName | None:
        """The name of a model that leakscope fits; None where there is none, or a file."""
        return cast(ModelName, self.model) if self.model in get_args(ModelName) else None

    @property
    def file(self) -> Path | None:
        """The model's file, where it comes from one."""
        found = None if self.model is None else Path(self.model)
        return found if found is not None and found.suffix.lower() in MODEL_FILES else None


MODEL_DEFAULTS = ModelSettings()
