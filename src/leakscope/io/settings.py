"""What a verb may be told, checked in one place, and the sentence when it is not right."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leakscope.errors import InputError

Probability = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class AuditSettings(BaseModel):
    """The settings of an audit.

    Attributes
    ----------
    kernel
        The covariance function's name.
    length_scale
        In units of the features as used; the median distance between records where left out.
    kernel_variance
        k(x, x), in squared units of the target as used.
    noise_variance
        In squared units of the target as used; it sets the level of every number.
    scaling
        Whether features and target are standardised first.
    seed
        Recorded with the run; an analytic audit draws no random numbers.

    Examples
    --------
    >>> from leakscope.io import AuditSettings
    >>> AuditSettings().noise_variance
    0.01
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kernel: Literal["rbf"] = "rbf"
    length_scale: Positive | None = None
    kernel_variance: Positive = 1.0
    noise_variance: Positive = 0.01
    scaling: Literal["standard", "none"] = "standard"
    seed: Annotated[int, Field(ge=0)] = 0


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
    >>> from leakscope.io import MeasureSettings
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
    >>> from leakscope.io import AuditSettings, validated
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
    where = ".".join(str(part) for part in problem["loc"]) or "the whole"
    message = problem["msg"][:1].lower() + problem["msg"][1:]
    value = problem.get("input")
    if problem["type"] == "missing" or isinstance(value, (dict, list)):
        return f"{where}: {message}"
    return f"{where}: {message}, but it is {value!r}"
