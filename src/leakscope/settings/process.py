"""Gaussian processes that can be named: each name with its parameters, their bounds and defaults.

``--model rbf --set noise_variance=0.1 --set length_scale=2`` on the command line;
``lood.ProcessOnRecords.named("rbf", noise_variance=0.1, length_scale=2.0)`` in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from leakscope.errors import InputError
from leakscope.settings.setting import Depth, NotNegative, Reachable, reachable, setting

CRITERIA = ("marginal_likelihood", "leave_one_out")
Route = Literal["auto", "dense", "features", "nystrom", "device"]


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
    return reachable(number)


NoiseVariance = Annotated[float | str, BeforeValidator(_noise_variance)]


class ProcessParameters(BaseModel):
    """What every Gaussian process has.

    Examples
    --------
    >>> from leakscope.settings.process import PROCESSES
    >>> PROCESSES["matern"](noise_variance=0.1).kernel_parameters()
    {'nu': 1.5}
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    factory: ClassVar[str]

    noise_variance: NoiseVariance = setting(
        0.01,
        "In squared units of the target as used; or marginal_likelihood or leave_one_out.",
        metavar="NUMBER",
    )
    route: Route = setting("auto", "dense, features, nystrom, device or auto.")
    inducing: int = setting(2000, "Records that stand for all (nystrom only).", ge=2)

    def kernel_parameters(self) -> dict[str, Any]:
        """The parameters of the kernel, without those that the data choose."""
        own = set(type(self).model_fields) - set(ProcessParameters.model_fields)
        return self.model_dump(include=own, exclude_none=True)


class RbfParameters(ProcessParameters):
    """Smooth functions."""

    factory: ClassVar[str] = "leakscope.kernels.formulas:rbf"

    length_scale: Reachable | None = setting(
        None, "In units of the features as used.", unset="the median distance"
    )


class MaternParameters(RbfParameters):
    """Rough functions."""

    factory: ClassVar[str] = "leakscope.kernels.formulas:matern"

    nu: Annotated[float, BeforeValidator(float)] = setting(1.5, "Smoothness.", gt=0.0, le=20.0)


class LinearParameters(ProcessParameters):
    """Linear functions; the bias is the intercept of features that are centred."""

    factory: ClassVar[str] = "leakscope.kernels.formulas:linear"

    weight_variance: Reachable = setting(1.0, "Prior variance.")
    bias_variance: NotNegative = setting(1.0, "Prior variance.")


class NetworkParameters(ProcessParameters):
    """Infinitely wide networks."""

    factory: ClassVar[str] = "leakscope.kernels.network:nngp"

    depth: Depth = setting(3, "Hidden layers.")
    activation: str = setting("relu", "Such as relu, gelu, erf or tanh.")
    weight_variance: Reachable = setting(2.0, "Prior variance.")
    bias_variance: NotNegative = setting(0.0, "Prior variance.")


# ``linear`` is least squares; the process with a linear kernel is ridge regression's posterior.
PROCESSES: dict[str, type[ProcessParameters]] = {
    "rbf": RbfParameters,
    "matern": MaternParameters,
    "linear_kernel": LinearParameters,
    "nngp": NetworkParameters,
}
PROCESS_DEFAULTS = ProcessParameters()


def parameters(pairs: Sequence[str]) -> dict[str, str]:
    """What ``--set KEY=VALUE`` says, by key.

    Examples
    --------
    >>> from leakscope.settings.process import parameters
    >>> parameters(["depth=3", "noise_variance=0.1"])
    {'depth': '3', 'noise_variance': '0.1'}
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise InputError(f"--set takes KEY=VALUE, but it is {pair!r}.")
        values[key.strip().replace("-", "_")] = value.strip()
    return values
