"""The settings of an audit: the kernel, the noise, how to compute and what to add."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from leakscope.settings.kernel_catalogue import KERNELS, kernel_options
from leakscope.settings.setting import (
    Depth,
    Names,
    Natural,
    NotNegative,
    Reachable,
    reachable,
    setting,
)

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
    return reachable(number)


def _kernel_name(value: str) -> str:
    if value not in KERNELS:
        *first, last = map(repr, KERNELS)
        raise PydanticCustomError("kernel", f"input should be {', '.join(first)} or {last}")
    return value


def _kernels() -> dict[str, str]:
    return {name: entry.words for name, entry in KERNELS.items()}


Scaling = Literal["standard", "none"]
RouteChoice = Literal["auto", "dense", "features", "nystrom", "device", "disk"]
NoiseVariance = Annotated[float | str, BeforeValidator(_noise_variance)]
KernelName = Annotated[str, AfterValidator(_kernel_name), Names(_kernels)]


class AuditSettings(BaseModel):
    """The settings of an audit.

    Examples
    --------
    >>> from leakscope.settings import AuditSettings
    >>> AuditSettings().noise_variance
    0.01
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scaling: Scaling = setting(
        "standard",
        "standard: features and a regression target to mean 0 and variance 1; none: as they are.",
        metavar="HOW",
    )
    kernel: KernelName = setting("rbf", "The covariance function.")
    length_scale: Reachable | None = setting(
        None,
        "Length scale, in units of the features as used.",
        unset="the median distance between records",
    )
    kernel_variance: Reachable | None = setting(
        None, "The kernel's value at distance zero, in squared units of the target as used."
    )
    smoothness: Reachable | None = setting(None, "Smoothness nu.")
    depth: Depth | None = setting(None, "Hidden layers.")
    activation: str | None = setting(None, "Activation function, such as relu, gelu, erf or tanh.")
    weight_variance: Reachable | None = setting(None, "Prior variance of the weights.")
    bias_variance: NotNegative | None = setting(None, "Prior variance of the biases.")
    noise_variance: NoiseVariance = setting(
        0.01,
        "The noise on the target, in squared units of the target as used, or marginal_likelihood "
        "or leave_one_out to have the data choose it; it sets the level of every number.",
        metavar="NUMBER",
    )
    fit_kernel_scale: bool = setting(
        False, "Have the criterion in --noise-variance choose a factor of the kernel too."
    )
    sensitivity: bool = setting(
        True,
        "Sweep the noise variance over two decades, and try other kernels, for each record's "
        "range of ranks.",
    )
    route: RouteChoice = setting(
        "auto",
        "How to compute: dense, features (linear kernels), nystrom (approximate, with an interval "
        "for each record), disk (exact, for what memory does not hold), device (networks on a "
        "GPU), or auto, by kernel, size and machine.",
    )
    inducing: int = setting(
        2000, "The most records that may stand for all (route nystrom only).", ge=2
    )
    error: float = setting(
        0.1,
        "The relative error of a record's KL up to which it is trusted (route nystrom only).",
        gt=0.0,
        lt=1.0,
    )
    seed: Natural = setting(
        0,
        "Seed of the folds that choose a penalty and of --train; nothing else is random.",
        metavar="NUMBER",
    )
    explain: Natural = setting(10, "How many of the most exposed records to explain.")

    def kernel_options(self) -> dict[str, Any]:
        """The kernel's options that were given."""
        values = {name: getattr(self, name) for name in kernel_options()}
        return {name: value for name, value in values.items() if value is not None}

    def of_process(self) -> tuple[str, ...]:
        """Those given that only a Gaussian process has; any of them asks for its audit.

        Examples
        --------
        >>> from leakscope.settings import AuditSettings
        >>> AuditSettings(seed=1).of_process(), AuditSettings(kernel="rbf").of_process()
        ((), ('kernel',))
        """
        given = self.model_fields_set - {"scaling", "seed", "explain"}
        return tuple(name for name in type(self).model_fields if name in given)


AUDIT_DEFAULTS = AuditSettings()
