"""The layers of a network, as descriptions: what they are, not what is done with them.

Widths are infinite, so a layer has none.  A weight of a layer with fan-in N is drawn from
N(0, weight_variance / N), a bias from N(0, bias_variance): the paper's NNGP parametrisation.
``require_network`` says which sequences of layers have an output that is a Gaussian process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from leakscope.errors import InputError

# Names whose expectation over two jointly normal inputs is a formula, and alpha's default, if any.
CLOSED_FORMS: dict[str, float | None] = {
    "identity": None,
    "relu": None,
    "leaky_relu": 0.01,
    "gelu": None,
    "erf": None,
    "sin": None,
}

# Names that are integrated numerically, as any other function is.
INTEGRATED: dict[str, float | None] = {"tanh": None, "elu": 1.0}

NAMES = (*CLOSED_FORMS, *INTEGRATED)


@dataclass(frozen=True)
class Activation:
    """An activation function: a name that is known, or a function of one's own.

    Parameters
    ----------
    name
        ``identity``, ``relu``, ``leaky_relu``, ``gelu``, ``erf``, ``sin`` (closed forms),
        ``tanh``, ``elu`` (integrated), or the name to show for ``function``.
    alpha
        The slope of ``leaky_relu`` below zero, the depth of ``elu``; None for the others.
    function
        Applied to each unit, written with ``jax.numpy``; it is integrated over the normal law, to
        about 1e-10 where it is smooth but perhaps at zero, less where it breaks elsewhere.
    """

    name: str
    alpha: float | None = None
    function: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.function is not None:
            return
        if self.name not in NAMES:
            raise InputError(
                f"there is no activation called {self.name!r}: use one of {', '.join(NAMES)}, or "
                "a function written with jax.numpy."
            )
        default = {**CLOSED_FORMS, **INTEGRATED}[self.name]
        if default is None:
            if self.alpha is not None:
                raise InputError(f"the activation {self.name} has no alpha.")
        elif self.alpha is None:
            object.__setattr__(self, "alpha", default)
        elif not np.isfinite(self.alpha):
            raise InputError(f"{self.name}: alpha must be finite, but it is {self.alpha}.")

    @property
    def has_closed_form(self) -> bool:
        """Whether the expectation over two normal inputs is a formula."""
        return self.function is None and self.name in CLOSED_FORMS

    def describe(self) -> str:
        """The name with its parameter, for results."""
        return self.name if self.alpha is None else f"{self.name}({self.alpha:g})"


def as_activation(
    value: str | Activation | Callable[[Any], Any], alpha: float | None = None
) -> Activation:
    """An :class:`Activation` from a name, a function, or one that is already made."""
    if isinstance(value, Activation):
        return value
    if isinstance(value, str):
        return Activation(value, alpha)
    if callable(value):
        return Activation(getattr(value, "__name__", "function"), alpha, value)
    raise InputError(
        f"an activation is a name or a function, but this is a {type(value).__name__}."
    )


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
    """A fully connected layer."""
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
    """
    if isinstance(padding, int):
        padding = (padding, padding)
    weight, bias = float(weight_variance), float(bias_variance)
    return Conv(_pair(filter_size), _pair(strides), padding, weight, bias)


def activation(name: str | Activation | Callable[[Any], Any], alpha: float | None = None) -> Apply:
    """An activation function on every unit, by name or as a function."""
    return Apply(as_activation(name, alpha))


def flatten() -> Flatten:
    """All pixels side by side; the kernel is then the average over pixels."""
    return Flatten()


def global_average_pool() -> GlobalAveragePool:
    """The average over all pixels; the kernel is then the average over pairs of pixels."""
    return GlobalAveragePool()


def average_pool(
    window: int | tuple[int, int], strides: int | tuple[int, int] | None = None
) -> AveragePool:
    """The average over windows of pixels, without padding; ``strides`` is the window by default."""
    return AveragePool(_pair(window), _pair(window if strides is None else strides))


def layer_norm(epsilon: float = 1e-5, over: Literal["channels", "all"] = "channels") -> LayerNorm:
    """Layer normalisation, over the channels of each pixel or over all units of the layer."""
    return LayerNorm(epsilon, over)


def residual(*branch: Layer, skip: tuple[Layer, ...] | Layer = ()) -> Residual:
    """A skip connection around ``branch``, with layers of its own where ``skip`` is given.

    The branch must end with weights (``dense`` or ``conv``): its output then has no correlation
    with what goes around it, and covariances add.
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


@dataclass(frozen=True)
class Stand:
    """What is known half-way: are there pixels, and are the units normal with mean zero?"""

    pixels: bool
    normal: bool


def require_network(layers: tuple[Layer, ...]) -> None:
    """Refuse, with the reason, layers that do not follow one another."""
    if not layers:
        raise InputError("a network needs at least one layer.")
    end = _walk(layers, Stand(pixels=takes_images(layers), normal=False))
    if end.pixels:
        raise InputError(
            "the network must not end with pixels: put flatten() or global_average_pool(), then "
            "dense(), at its end."
        )
    if not end.normal:
        raise InputError(
            "the network must end with weights, so that its output is a Gaussian process: put "
            "dense() at its end."
        )


def every_layer(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    """All layers, those inside residual connections too, in the order of computation."""
    for layer in layers:
        yield layer
        if isinstance(layer, Residual):
            yield from every_layer(layer.branch)
            yield from every_layer(layer.skip)


def takes_images(layers: tuple[Layer, ...]) -> bool:
    """Whether the records are images: some layer looks at pixels."""
    return any(
        isinstance(layer, (Conv, Flatten, GlobalAveragePool, AveragePool))
        for layer in every_layer(layers)
    )


def needs_pairs_of_pixels(layers: tuple[Layer, ...]) -> bool:
    """Whether covariances between different pixels matter: pooling mixes them."""
    return any(isinstance(layer, (GlobalAveragePool, AveragePool)) for layer in every_layer(layers))


def integrated_activations(layers: tuple[Layer, ...]) -> list[Activation]:
    """The activations without a formula, in the order of computation."""
    return [
        layer.activation
        for layer in every_layer(layers)
        if isinstance(layer, Apply) and not layer.activation.has_closed_form
    ]


def _walk(layers: tuple[Layer, ...], stand: Stand) -> Stand:
    for layer in layers:
        stand = _after(layer, stand)
    return stand


def _after(layer: Layer, stand: Stand) -> Stand:
    match layer:
        case Dense():
            if stand.pixels:
                raise InputError(
                    "dense: its input still has pixels; put flatten() or global_average_pool() "
                    "before."
                )
            return Stand(pixels=False, normal=True)
        case Conv() | AveragePool() | Flatten() | GlobalAveragePool():
            if not stand.pixels:
                raise InputError(
                    f"{_name(layer)}: there are no pixels left; it must come before flatten() or "
                    "global_average_pool()."
                )
            keeps = isinstance(layer, (Conv, AveragePool))
            return Stand(pixels=keeps, normal=stand.normal or isinstance(layer, Conv))
        case Apply(phi):
            if phi.name == "identity" and phi.has_closed_form:
                return stand
            if not stand.normal:
                raise InputError(
                    f"activation {phi.describe()}: there must be weights (dense or conv) before "
                    "it, after the input or the last activation."
                )
            return Stand(stand.pixels, normal=False)
        case LayerNorm():
            if not stand.normal:
                raise InputError(
                    "layer_norm: there must be weights (dense or conv) directly before it; after "
                    "an activation the mean of the layer is not zero."
                )
            return stand
        case Residual(branch, skip):
            return _after_residual(branch, skip, stand)
        case _:
            raise InputError(f"a {type(layer).__name__} is not a layer: use those of kernels.")


def _after_residual(branch: tuple[Layer, ...], skip: tuple[Layer, ...], stand: Stand) -> Stand:
    end, around = _walk(branch, stand), _walk(skip, stand)
    weights = any(isinstance(layer, (Dense, Conv)) for layer in every_layer(branch))
    if not (weights and end.normal):
        raise InputError(
            "residual: the branch must end with weights (dense or conv), so that it has no "
            "correlation with what goes around it."
        )
    if end.pixels != around.pixels:
        raise InputError(
            "residual: the branch and the skip connection must both keep the pixels, or neither."
        )
    return Stand(end.pixels, normal=around.normal)


def _name(layer: Layer) -> str:
    return {Conv: "conv", AveragePool: "average_pool", Flatten: "flatten"}.get(
        type(layer), "global_average_pool"
    )
