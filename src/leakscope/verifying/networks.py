"""Networks that are really trained: descriptions, initial parameters, and what they compute.

Initial weights are N(0, weight_variance / fan-in), so that a network of growing width tends to the
Gaussian process of :func:`leakscope.kernels.nngp` with the same depth, activation and variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from leakscope.errors import InputError

ACTIVATIONS = ("relu", "gelu", "erf", "tanh", "elu", "sin")


@dataclass(frozen=True)
class DenseNetwork:
    """Dense hidden layers and a linear read-out.

    Parameters
    ----------
    widths
        Neurons of each hidden layer.
    activation
        relu, gelu, erf, tanh, elu or sin.
    weight_variance
        Of every layer's weights at the start, times its fan-in.
    bias
        Whether layers have biases; they start at zero.

    Examples
    --------
    >>> from leakscope.verifying import DenseNetwork
    >>> DenseNetwork(widths=(64, 64)).depth
    2
    """

    widths: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    weight_variance: float = 2.0
    bias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(int(width) for width in self.widths))
        _check(self.widths, "widths", self.activation, self.weight_variance)

    @property
    def depth(self) -> int:
        """Hidden layers."""
        return len(self.widths)

    def initial(self, key: Any, inputs: int, outputs: int) -> list[dict[str, Any]]:
        """Parameters to start from."""
        import jax

        sizes = (inputs, *self.widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            _dense_layer(k, into, out, self.weight_variance, bias=self.bias)
            for k, into, out in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]

    def apply(self, parameters: list[dict[str, Any]], x: Any) -> Any:
        """Answers, (m, outputs), to inputs (m, d)."""
        phi = _activation(self.activation)
        for layer in parameters[:-1]:
            x = phi(_affine(layer, x))
        return _affine(parameters[-1], x)


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """3 x 3 convolutions over pictures, then a linear read-out of all pixels or of their mean.

    Parameters
    ----------
    input_shape
        Height, width and channels of a picture, whose pixels are a row's features.
    channels
        Of each convolution.
    strides
        Of each convolution; 1 where left out.
    pool
        Average over pixels before the read-out, instead of flattening.
    activation, weight_variance, bias
        As for :class:`DenseNetwork`.

    Examples
    --------
    >>> from leakscope.verifying import ConvolutionalNetwork
    >>> ConvolutionalNetwork(input_shape=(8, 8, 1), channels=(16, 16)).depth
    2
    """

    input_shape: tuple[int, int, int]
    channels: tuple[int, ...] = (32, 32)
    strides: tuple[int, ...] | None = None
    pool: bool = False
    activation: str = "relu"
    weight_variance: float = 2.0
    bias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(int(c) for c in self.channels))
        _check(self.channels, "channels", self.activation, self.weight_variance)
        strides = self.strides or (1,) * len(self.channels)
        if len(strides) != len(self.channels) or min(strides) < 1:
            raise InputError(
                f"strides must be one positive number for each of the {len(self.channels)} "
                f"convolutions, but they are {strides}."
            )
        object.__setattr__(self, "strides", tuple(int(s) for s in strides))

    @property
    def depth(self) -> int:
        """Hidden layers."""
        return len(self.channels)

    def initial(self, key: Any, inputs: int, outputs: int) -> list[dict[str, Any]]:
        """Parameters to start from."""
        import jax

        if inputs != math.prod(self.input_shape):
            raise InputError(
                f"the network reads pictures of shape {self.input_shape}, "
                f"{math.prod(self.input_shape)} numbers, but records have {inputs}."
            )
        keys = jax.random.split(key, len(self.channels) + 1)
        into, (height, width, _) = self.input_shape[2], self.input_shape
        layers = []
        for k, out, stride in zip(keys[:-1], self.channels, self.strides or (), strict=True):
            scale = math.sqrt(self.weight_variance / (9 * into))
            layer = {"w": scale * jax.random.normal(k, (3, 3, into, out))}
            if self.bias:
                layer["b"] = jax.numpy.zeros(out)
            layers.append(layer)
            into, height, width = out, -(-height // stride), -(-width // stride)
        last = into if self.pool else into * height * width
        layers.append(_dense_layer(keys[-1], last, outputs, self.weight_variance, bias=self.bias))
        return layers

    def apply(self, parameters: list[dict[str, Any]], x: Any) -> Any:
        """Answers, (m, outputs), to inputs (m, d)."""
        import jax

        phi = _activation(self.activation)
        x = x.reshape(len(x), *self.input_shape)
        for layer, stride in zip(parameters[:-1], self.strides or (), strict=True):
            x = jax.lax.conv_general_dilated(
                x, layer["w"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = phi(x + layer["b"] if "b" in layer else x)
        x = x.mean(axis=(1, 2)) if self.pool else x.reshape(len(x), -1)
        return _affine(parameters[-1], x)


Network = DenseNetwork | ConvolutionalNetwork


def _check(sizes: tuple[int, ...], what: str, activation: str, weight_variance: float) -> None:
    if not sizes or min(sizes) < 1:
        raise InputError(f"{what} must be positive and at least one, but they are {sizes}.")
    if activation not in ACTIVATIONS:
        raise InputError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, but it is {activation!r}."
        )
    if not weight_variance > 0.0:
        raise InputError(f"weight_variance must be positive, but it is {weight_variance}.")


def _dense_layer(key: Any, into: int, out: int, variance: float, *, bias: bool) -> dict[str, Any]:
    import jax

    layer = {"w": math.sqrt(variance / into) * jax.random.normal(key, (into, out))}
    if bias:
        layer["b"] = jax.numpy.zeros(out)
    return layer


def _affine(layer: dict[str, Any], x: Any) -> Any:
    return x @ layer["w"] + layer["b"] if "b" in layer else x @ layer["w"]


def _activation(name: str) -> Any:
    import jax

    if name == "gelu":
        return lambda x: jax.nn.gelu(x, approximate=False)
    return {
        "relu": jax.nn.relu,
        "elu": jax.nn.elu,
        "tanh": jax.numpy.tanh,
        "sin": jax.numpy.sin,
        "erf": jax.scipy.special.erf,
    }[name]
