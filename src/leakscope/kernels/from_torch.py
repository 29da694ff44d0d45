"""The kernel of a PyTorch network, from its layers; its weights play no part."""

from __future__ import annotations

from typing import Any

from leakscope.errors import InputError, required
from leakscope.kernels.layers import (
    Flatten,
    GlobalAveragePool,
    Layer,
    activation,
    conv,
    dense,
    flatten,
    global_average_pool,
    layer_norm,
)
from leakscope.kernels.network import Network, sequential


def from_torch(
    module: Any,
    *,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    input_shape: tuple[int, int, int] | None = None,
) -> Network:
    """The infinitely wide version of a ``torch.nn.Sequential``.

    Linear, Conv2d, ReLU, LeakyReLU, ELU, GELU, Tanh, Identity, Flatten, AdaptiveAvgPool2d(1),
    LayerNorm and Sequential inside Sequential are understood; dropout and soft-max must be left
    out.  Widths are taken to be infinite, and the module's own weights are not looked at: this is
    the family the network was drawn from, not the network.

    Parameters
    ----------
    module
        The network.  Images have their channels first, (records, channels, height, width).
    weight_variance, bias_variance
        Weights have variance weight_variance / fan-in: 2 is He's initialisation, 1/3 PyTorch's own
        for Linear and Conv2d.  Layers without a bias have bias variance zero.
    input_shape
        Channels, height and width, where images come as rows.
    """
    required("torch", "from_torch")
    from torch import nn

    if not isinstance(module, nn.Sequential):
        raise InputError(
            f"from_torch: this needs a torch.nn.Sequential, but it is a {type(module).__name__}; "
            "describe other networks with leakscope.kernels.sequential."
        )
    layers = _layers(module, nn, weight_variance, bias_variance)
    # PyTorch keeps one pixel after pooling over all, and has it flattened; here none is left.
    pooled = GlobalAveragePool()
    layers = [
        layer
        for place, layer in enumerate(layers)
        if not (layer == Flatten() and place and layers[place - 1] == pooled)
    ]
    return sequential(*layers, input_shape=input_shape, channels="first")


def _layers(module: Any, nn: Any, weight: float, bias: float) -> list[Layer]:
    found: list[Layer] = []
    for place, part in enumerate(module):
        if isinstance(part, nn.Sequential):
            found += _layers(part, nn, weight, bias)
        else:
            found += _layer(part, f"layer {place}, {part}", nn, weight, bias)
    return found


def _layer(part: Any, where: str, nn: Any, weight: float, bias: float) -> list[Layer]:
    own_bias = bias if getattr(part, "bias", None) is not None else 0.0
    if isinstance(part, nn.Linear):
        return [dense(weight, own_bias)]
    if isinstance(part, nn.Conv2d):
        return [_convolution(part, where, weight, own_bias)]
    if isinstance(part, nn.ReLU):
        return [activation("relu")]
    if isinstance(part, nn.LeakyReLU):
        return [activation("leaky_relu", float(part.negative_slope))]
    if isinstance(part, nn.ELU):
        return [activation("elu", float(part.alpha))]
    if isinstance(part, nn.Tanh):
        return [activation("tanh")]
    if isinstance(part, nn.GELU):
        _require(part.approximate == "none", where, "only GELU(approximate='none') is understood")
        return [activation("gelu")]
    if isinstance(part, nn.Identity):
        return []
    if isinstance(part, nn.Flatten):
        _require(
            (part.start_dim, part.end_dim) == (1, -1), where, "it must flatten all but records"
        )
        return [flatten()]
    if isinstance(part, nn.AdaptiveAvgPool2d):
        _require(part.output_size in (1, (1, 1)), where, "only the average over all is understood")
        return [global_average_pool()]
    if isinstance(part, nn.LayerNorm):
        over_all = len(part.normalized_shape) > 1
        return [layer_norm(float(part.eps), "all" if over_all else "channels")]
    raise InputError(
        f"from_torch: {where}, has no counterpart at infinite width here; leave it out, or "
        "describe the network with leakscope.kernels.sequential."
    )


def _convolution(part: Any, where: str, weight: float, bias: float) -> Layer:
    _require(part.groups == 1, where, "groups must be 1")
    _require(tuple(part.dilation) == (1, 1), where, "dilation must be 1")
    _require(part.padding_mode in ("zeros", "circular"), where, "padding must be zeros or circular")
    size: tuple[int, int] = tuple(part.kernel_size)
    strides: tuple[int, int] = tuple(part.stride)
    if isinstance(part.padding, str):
        margin = tuple((s - 1) / 2 for s in size) if part.padding == "same" else (0, 0)
    else:
        margin = tuple(part.padding)
    _require(all(m == int(m) for m in margin), where, "with padding 'same' filters must be odd")
    pixels = (int(margin[0]), int(margin[1]))
    circular = part.padding_mode == "circular" and pixels != (0, 0)
    if circular:
        _require(
            strides == (1, 1) and all(s == 2 * m + 1 for s, m in zip(size, pixels, strict=True)),
            where,
            "circular padding must keep the size of the image, without strides",
        )
    return conv(size, strides, "circular" if circular else pixels, weight, bias)


def _require(holds: bool, where: str, reason: str) -> None:
    if not holds:
        raise InputError(f"from_torch: {where}: {reason}.")
