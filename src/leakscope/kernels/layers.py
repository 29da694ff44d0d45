"""The layers of a network, as descriptions: what they are, not what is done with them.

Widths are infinite, so a layer has none.  A weight of a layer with fan-in N is drawn from
N(0, weight_variance / N), a bias from N(0, bias_variance): the paper's NNGP parametrisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from leakscope.errors import InputError
from leakscope.kernels.activations import Activation, as_activation

Padding = Literal["same", "valid", "circular"] | tuple[int, int]


@dataclass(frozen=True)
class Dense:
    """Every unit sees every unit of the layer before."""

    weight_variance: float = 2.0
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        _require_variances("dense", self.weight_variance, self.bias_variance)


@dataclass(frozen=True)
class Conv:
    """A two-dimensional convolution over the pixels of an image."""

    filter_size: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: Padding = "same"
    weight_variance: float = 2.0
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        _require_variances("conv", self.weight_variance, self.bias_variance)
        _require_sizes("conv: filter_size", self.filter_size)
        _require_sizes("conv: strides", self.strides)
        if isinstance(self.padding, str) and self.padding not in ("same", "valid", "circular"):
            raise InputError(
                f"conv: padding must be same, valid, circular or a pair of numbers of pixels, but "
                f"it is {self.padding!r}."
            )


@dataclass(frozen=True)
class Apply:
    """An activation function on every unit."""

    activation: Activation


@dataclass(frozen=True)
class Flatten:
    """All pixels of an image side by side, as one long row."""


@dataclass(frozen=True)
class GlobalAveragePool:
    """The average over all pixels, channel by channel."""


@dataclass(frozen=True)
class AveragePool:
    """The average over windows of pixels that lie inside the image."""

    window: tuple[int, int]
    strides: tuple[int, int]

    def __post_init__(self) -> None:
        _require_sizes("average_pool: window", self.window)
        _require_sizes("average_pool: strides", self.strides)


@dataclass(frozen=True)
class LayerNorm:
    """Units divided by their standard deviation over the layer (mean zero at infinite width)."""

    epsilon: float = 1e-5
    over: Literal["channels", "all"] = "channels"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.epsilon) and self.epsilon > 0.0):
            raise InputError(f"layer_norm: epsilon must be positive, but it is {self.epsilon}.")
        if self.over not in ("channels", "all"):
            raise InputError(f"layer_norm: over must be channels or all, but it is {self.over!r}.")


@dataclass(frozen=True)
class Residual:
    """The sum of a branch and a skip connection (the identity where ``skip`` is empty)."""

    branch: tuple[Layer, ...]
    skip: tuple[Layer, ...] = ()


Layer = Dense | Conv | Apply | Flatten | GlobalAveragePool | AveragePool | LayerNorm | Residual


def dense(weight_variance: float = 2.0, bias_variance: float = 0.0) -> Dense:
    """A fully connected layer.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.dense(weight_variance=2.0)
    Dense(weight_variance=2.0, bias_variance=0.0)
    """
    return Dense(float(weight_variance), float(bias_variance))


def conv(
    filter_size: int | tuple[int, int],
    strides: int | tuple[int, int] = 1,
    padding: Padding | int = "same",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
) -> Conv:
    """A two-dimensional convolution.

    ``padding`` is ``"same"`` (zeros, so that the output has ceil(size / stride) pixels a side),
    ``"valid"`` (none), ``"circular"`` (as many as ``same``, from the other side of the image), or
    the number of zero pixels on each side, for both axes or as a pair.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.conv(3, strides=2).filter_size
    (3, 3)
    """
    if isinstance(padding, int):
        padding = (padding, padding)
    weight, bias = float(weight_variance), float(bias_variance)
    return Conv(_pair(filter_size), _pair(strides), padding, weight, bias)


def activation(name: str | Activation | Callable[[Any], Any], alpha: float | None = None) -> Apply:
    """An activation function on every unit, by name or as a function.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.activation("leaky_relu", alpha=0.2).activation.describe()
    'leaky_relu(0.2)'
    """
    return Apply(as_activation(name, alpha))


def flatten() -> Flatten:
    """All pixels side by side; the kernel is then the average over pixels.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.flatten()
    Flatten()
    """
    return Flatten()


def global_average_pool() -> GlobalAveragePool:
    """The average over all pixels; the kernel is then the average over pairs of pixels.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.global_average_pool()
    GlobalAveragePool()
    """
    return GlobalAveragePool()


def average_pool(
    window: int | tuple[int, int], strides: int | tuple[int, int] | None = None
) -> AveragePool:
    """The average over windows of pixels, without padding; ``strides`` is the window by default.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.average_pool(2)
    AveragePool(window=(2, 2), strides=(2, 2))
    """
    return AveragePool(_pair(window), _pair(window if strides is None else strides))


def layer_norm(epsilon: float = 1e-5, over: Literal["channels", "all"] = "channels") -> LayerNorm:
    """Layer normalisation, over the channels of each pixel or over all units of the layer.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.layer_norm()
    LayerNorm(epsilon=1e-05, over='channels')
    """
    return LayerNorm(epsilon, over)


def residual(*branch: Layer, skip: tuple[Layer, ...] | Layer = ()) -> Residual:
    """A skip connection around ``branch``, with layers of its own where ``skip`` is given.

    The branch must end with weights (``dense`` or ``conv``): its output then has no correlation
    with what goes around it, and covariances add.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.residual(kernels.activation("relu"), kernels.dense(2.0)).skip
    ()
    """
    return Residual(branch, skip if isinstance(skip, tuple) else (skip,))


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _require_variances(layer: str, weight: float, bias: float) -> None:
    if not (np.isfinite(weight) and weight > 0.0):
        raise InputError(
            f"{layer}: weight_variance must be positive and finite, but it is {weight}."
        )
    if not (np.isfinite(bias) and bias >= 0.0):
        raise InputError(f"{layer}: bias_variance must be zero or more, but it is {bias}.")


def _require_sizes(what: str, sizes: tuple[int, int]) -> None:
    if any(not isinstance(size, int) or size < 1 for size in sizes):
        raise InputError(f"{what} must be whole numbers of at least 1, but it is {sizes}.")
