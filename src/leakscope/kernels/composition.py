"""Which sequences of layers are networks whose output is a Gaussian process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leakscope.errors import InputError
from leakscope.kernels.activations import Activation
from leakscope.kernels.layers import (
    Apply,
    AveragePool,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Residual,
)


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
            "the network ends with pixels: put flatten() or global_average_pool(), and dense(), "
            "at its end."
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
                    "dense: there are still pixels; put flatten() or global_average_pool() before."
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
