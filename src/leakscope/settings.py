"""What a verb may be told, checked in one place, and the sentence when it is not right."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from leakscope.errors import InputError

__all__ = ["AuditSettings", "MeasureSettings", "validated"]

Probability = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]

# Beyond these squares and ratios of a kernel's parameters leave float64.
LEAST, LARGEST = 1e-30, 1e30


def _reachable(value: float) -> float:
    if not LEAST <= value <= LARGEST:
        raise PydanticCustomError("reach", f"input should be from {LEAST:g} to {LARGEST:g}")
    return value


Reachable = Annotated[Positive, AfterValidator(_reachable)]
NotNegative = Annotated[
    float,
    Field(ge=0.0, allow_inf_nan=False),
    AfterValidator(lambda value: _reachable(value) if value else value),
]

CRITERIA = ("marginal_likelihood", "leave_one_out")


def _noise_variance(value: Any) -> Any:
    """A positive number, or the name of the criterion that is to choose it."""
    if value in CRITERIA:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise PydanticCustomError(
            "noise", f"input should be a number or one of {', '.join(CRITERIA)}"
        ) from None
    if not math.isfinite(number):
        raise PydanticCustomError("noise", "input should be a finite number")
    if number <= 0.0:
        raise PydanticCustomError("noise", "input should be greater than 0")
    return _reachable(number)


NoiseVariance = Annotated[float | str, BeforeValidator(_noise_variance)]


class AuditSettings(BaseModel):
    """The settings of an audit.

    Attributes
    ----------
    kernel
        The covariance function's name.
    length_scale, kernel_variance, smoothness
        Of rbf and matern: in units of the features as used (the median distance between records
        where left out); k(x, x), in squared units of the target as used (1); matern's nu (1.5).
    depth, activation, weight_variance, bias_variance
        Of nngp, the kernel of a wide network (3, relu, 2, 0); the last two of linear too (1, 1).
    noise_variance
        In squared units of the target as used, or the criterion that chooses it; it sets the
        level of every number.
    fit_kernel_scale
        Whether the same criterion chooses a factor of the kernel.
    sensitivity
        Whether to sweep the noise variance over two decades.
    route, inducing
        How to compute, and with how many inducing records in the approximate route.
    scaling
        Whether features and target are standardised first.
    seed
        Recorded with the run; an analytic audit draws no random numbers.
    explain
        How many of the most exposed records to explain.

    Examples
    --------
    >>> from leakscope.settings import AuditSettings
    >>> AuditSettings().noise_variance
    0.01
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kernel: Literal["rbf", "matern", "linear", "nngp"] = "rbf"
    length_scale: Reachable | None = None
    kernel_variance: Reachable | None = None
    smoothness: Reachable | None = None
    depth: Annotated[int, Field(ge=1)] | None = None
    activation: str | None = None
    weight_variance: Reachable | None = None
    bias_variance: NotNegative | None = None
    noise_variance: NoiseVariance = 0.01
    fit_kernel_scale: bool = False
    sensitivity: bool = True
    route: Literal["auto", "dense", "features", "fitc", "device"] = "auto"
    inducing: Annotated[int, Field(ge=2)] = 1000
    scaling: Literal["standard", "none"] = "standard"
    seed: Annotated[int, Field(ge=0)] = 0
    explain: Annotated[int, Field(ge=0)] = 10


class MeasureSettings(BaseModel):
    """The settings of ``leakscope measure``.

    Attributes
    ----------
    fpr
        False-positive rates, fractions, at which the true-positive rate is given.
    delta
        Deltas at which this pair's epsilon is given.
    confidence
        Of the intervals, where the laws are samples of scores.
    seed
        For the bootstrap, where one is used.

    Examples
    --------
    >>> from leakscope.settings import MeasureSettings
    >>> MeasureSettings(fpr=(0.01,)).delta
    (1e-05,)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fpr: Annotated[tuple[Probability, ...], Field(min_length=1)] = (0.1, 0.01, 0.001, 1e-5)
    delta: Annotated[tuple[Probability, ...], Field(min_length=1)] = (1e-5,)
    confidence: Probability = 0.95
    seed: Annotated[int, Field(ge=0)] = 0


Settings = TypeVar("Settings", bound=BaseModel)


def validated(model: type[Settings], **values: Any) -> Settings:
    """Build settings, turning the first problem into one sentence; None means the default.

    Examples
    --------
    >>> from leakscope.settings import AuditSettings, validated
    >>> validated(AuditSettings, noise_variance=None).noise_variance
    0.01
    >>> validated(AuditSettings, noise_variance=-1.0)
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: noise_variance: input should be greater than 0, but it is -1.0.
    """
    given = {name: value for name, value in values.items() if value is not None}
    try:
        return model(**given)
    except ValidationError as error:
        raise InputError(f"{first_problem(error)}.") from None


def first_problem(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as a clause without a full stop."""
    problem = error.errors()[0]
    path = list(problem["loc"])
    last = path.pop() if path and isinstance(path[-1], int) else None
    where = ".".join(str(part) for part in path) or "the whole"
    if last is not None:
        where += f", entry {last} (from 0)"
    message = problem["msg"][:1].lower() + problem["msg"][1:]
    value = problem.get("input")
    if problem["type"] == "missing" or isinstance(value, (dict, list, bytes)):
        return f"{where}: {message}"
    text = repr(value)
    return f"{where}: {message}, but it is {text if len(text) <= 80 else text[:80] + '…'}"
