"""Settings from values that may be wrong, and the sentence when they are."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from leakscope.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], /, **values: Any) -> Model:
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
        path = error.errors()[0]["loc"]
        raise InputError(
            f"{first_problem(error)}.", option=str(path[0]) if path else None
        ) from None


def first_problem(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as a clause without a full stop.

    Examples
    --------
    >>> from pydantic import ValidationError
    >>> from leakscope.settings import AuditSettings, first_problem
    >>> try:
    ...     AuditSettings(inducing=1)
    ... except ValidationError as error:
    ...     first_problem(error)
    'inducing: input should be greater than or equal to 2, but it is 1'
    """
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
