"""The layers of a network, as descriptions: what they are, not what is done with them.

Widths are infinite, so a layer has none.  A weight of a layer with fan-in N is drawn from
N(0, weight_variance / N), a bias from N(0, bias_variance): the paper's NNGP parametrisation.
``require_network`` says which sequences of layers have an output that is a Gaussian process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from leakscope.errors import InputError
from leakscope.kernels.kernel import require_variances

# Activations that have a name: formulas but for the last two, which are expanded (`duals`).
NAMES = ("identity", "relu", "gelu", "erf", "sin", "tanh", "elu")


@dataclass(frozen=True)
class Activation:
    """An activation function: a name that is known, or a function of one's own.

    Parameters
    ----------
    name
        ``identity``, ``relu``, ``gelu``, ``erf``, ``sin``, ``tanh``, ``elu``, or the name to show
        for ``function``.
    function
        Applied to each unit, written with ``jax.numpy``; its expectations are expanded in
        polynomials, right to ten digits where it is smooth.
    """

    name: str
    function: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.name not in NAMES:
            raise InputError(
                f"there is no activation called {self.name!r}: use one of {', '.join(NAMES)}, or "
                "a function written with jax.numpy."
            )

    def describe(self) -> str:
        """The name, for results."""
        return self.name


def as_activation(value: str | Activation | Callable[[Any], Any]) -> Activation:
    """An :class:`Activation` from a name, a function, or one that is already made."""
    if isinstance(value, Activation):
        return value
    if isinstance(value, str):
        return Activation(value)
    if callable(value):
        return Activation(getattr(value, "__name__", "function"), value)
    raise InputError(
        f"an activation is a name or a function, but this is a {type(value).__name__}."
    )


@dataclass(frozen=True)
class Dense:
    """Every unit sees every unit of the layer before."""

    weight_variance: float = 2.0
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        require_variances("dense", self.weight_variance, self.bias_variance)


@dataclass(frozen=True)
class Conv:
    """A two-dimensional convolution over the pixels of an image."""

    filter_size: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: Literal["same", "valid"] = "same"
    weight_variance: float = 2.0
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        require_variances("conv", self.weight_variance, self.bias_variance)
        if self.padding not in ("same", "valid"):
            raise InputError(f"conv: padding must be same or valid, but it is {self.padding!r}.")


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
    """The average over windows of pixels that lie side by side."""

    window: tuple[int, int]


@dataclass(frozen=True)
class LayerNorm:
    """Units divided by their standard deviation over the layer (mean zero at infinite width)."""

    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        if not self.epsilon > 0.0:
            raise InputError(f"layer_norm: epsilon must be positive, but it is {self.epsilon}.")


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
    padding: Literal["same", "valid"] = "same",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
) -> Conv:
    """A two-dimensional convolution.

    ``padding`` is ``"same"`` (zeros, so that the output has ceil(size / stride) pixels a side) or
    ``"valid"`` (none).
    """
    return Conv(
        _pair(filter_size), _pair(strides), padding, float(weight_variance), float(bias_variance)
    )


def activation(name: str | Activation | Callable[[Any], Any]) -> Apply:
    """An activation function on every unit, by name or as a function."""
    return Apply(as_activation(name))


def flatten() -> Flatten:
    """All pixels side by side; the kernel is then the average over pixels."""
    return Flatten()


def global_average_pool() -> GlobalAveragePool:
    """The average over all pixels; the kernel is then the average over pairs of pixels."""
    return GlobalAveragePool()


def average_pool(window: int | tuple[int, int]) -> AveragePool:
    """The average over windows of pixels that lie side by side, without padding."""
    return AveragePool(_pair(window))


def layer_norm(epsilon: float = 1e-5) -> LayerNorm:
    """Layer normalisation, over the channels of each pixel."""
    return LayerNorm(epsilon)


def residual(*branch: Layer, skip: tuple[Layer, ...] | Layer = ()) -> Residual:
    """A skip connection around ``branch``, with layers of its own where ``skip`` is given.

    The branch must end with weights (``dense`` or ``conv``): its output then has no correlation
    with what goes around it, and covariances add.
    """
    return Residual(branch, skip if isinstance(skip, tuple) else (skip,))


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else (value[0], value[1])
    if any(not isinstance(size, int) or size < 1 for size in pair):
        raise InputError(f"sizes of pixels must be whole numbers of at least 1, not {pair}.")
    return pair


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
    if end.pixels or not end.normal:
        raise InputError(
            "the network must end with weights and without pixels, so that its output is a "
            "Gaussian process: put dense() at its end, after flatten() or global_average_pool()."
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
    pixels = (Conv, Flatten, GlobalAveragePool, AveragePool)
    return any(isinstance(layer, pixels) for layer in every_layer(layers))


def needs_pairs_of_pixels(layers: tuple[Layer, ...]) -> bool:
    """Whether covariances between different pixels matter: pooling mixes them."""
    return any(isinstance(layer, (GlobalAveragePool, AveragePool)) for layer in every_layer(layers))


def _walk(layers: tuple[Layer, ...], stand: Stand) -> Stand:
    for layer in layers:
        stand = _after(layer, stand)
    return stand


def _after(layer: Layer, stand: Stand) -> Stand:
    match layer:
        case Dense():
            if stand.pixels:
                raise InputError(
                    "dense: its input has pixels; put flatten() or global_average_pool() before."
                )
            return Stand(pixels=False, normal=True)
        case Conv() | AveragePool() | Flatten() | GlobalAveragePool():
            if not stand.pixels:
                raise InputError(
                    f"{type(layer).__name__}: there are no pixels left; it must come before "
                    "flatten() or global_average_pool()."
                )
            keeps = isinstance(layer, (Conv, AveragePool))
            return Stand(pixels=keeps, normal=stand.normal or isinstance(layer, Conv))
        case Apply(Activation("identity", None)):
            return stand
        case Apply() | LayerNorm():
            if not stand.normal:
                raise InputError(
                    "an activation or layer_norm needs weights (dense or conv) directly before it."
                )
            return Stand(stand.pixels, normal=isinstance(layer, LayerNorm))
        case Residual(branch, skip):
            end, around = _walk(branch, stand), _walk(skip, stand)
            weights = any(isinstance(inner, (Dense, Conv)) for inner in every_layer(branch))
            if not (weights and end.normal and end.pixels == around.pixels):
                raise InputError(
                    "residual: the branch must end with weights (dense or conv), and keep pixels "
                    "where the skip connection does."
                )
            return Stand(end.pixels, normal=around.normal)
        case _:
            raise InputError(f"a {type(layer).__name__} is not a layer: use those of kernels.")
