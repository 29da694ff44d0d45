"""NNGP against values stored from neural-tangents (reference/make_neural_tangents.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope import kernels

STORED = dict(np.load(Path(__file__).parent / "reference" / "neural_tangents.npz"))
# Layers that are not ours: leaky relu, other paddings, normalisation over all units.
GONE = ("leaky_relu", "circular", "norm_conv_all")
CASES = sorted(
    {name.rsplit(":", 1)[0] for name in STORED if not name.startswith("input:")}
    - {name.rsplit(":", 1)[0] for name in STORED if any(word in name for word in GONE)}
)
WEIGHT, BIAS = 1.7, 0.1

# The stored tanh values are themselves a quadrature, coarser than ours.
TOLERANCE = 1e-6


def dense():
    return kernels.dense(WEIGHT, BIAS)


def conv(size, padding="same", strides=1):
    return kernels.conv(size, strides, padding, WEIGHT, BIAS)


def act(name):
    return kernels.activation(name)


def conv_network(name, depth, *, size, padding="same", strides=1, end=None):
    hidden = []
    for place in range(depth):
        hidden += [conv(size, padding, strides if place == 0 else 1), act(name)]
    return kernels.sequential(*hidden, end or kernels.flatten(), dense())


def special(name):
    relu = act("relu")
    match name:
        case "residual_dense":
            block = kernels.residual(relu, dense(), relu, dense())
            return kernels.sequential(dense(), block, block, relu, dense())
        case "residual_conv":
            block = kernels.residual(
                relu, conv(3, strides=2), relu, conv(3), skip=conv(1, strides=2)
            )
            return kernels.sequential(conv(3), block, relu, kernels.flatten(), dense())
        case "norm_dense":
            norm = kernels.layer_norm(1e-5)
            return kernels.sequential(dense(), norm, act("gelu"), dense(), norm, relu, dense())
        case "norm_conv_channels":
            norm = kernels.layer_norm(1e-5)
            return kernels.sequential(conv(3), norm, relu, kernels.flatten(), dense())
        case "pool_mixed":
            return kernels.sequential(
                conv(3),
                relu,
                kernels.average_pool(2),
                conv(2),
                act("gelu"),
                kernels.global_average_pool(),
                dense(),
                act("erf"),
                dense(),
            )
        case _:
            raise AssertionError(name)


def network(case):
    if "-" not in case:
        return special(case)
    kind, name, depth = case.split("-")
    if kind == "dense":
        return kernels.nngp(int(depth), name, WEIGHT, BIAS)
    if kind == "paper":
        return kernels.nngp(int(depth), name)
    if kind == "conv":
        return conv_network(name, int(depth), size=2)
    if kind == "pool":
        return conv_network(name, int(depth), size=3, end=kernels.global_average_pool())
    _, padding, strides = kind.split("_")
    return conv_network(name, int(depth), size=3, padding=padding, strides=int(strides))


@pytest.mark.parametrize("case", CASES)
def test_equals_neural_tangents(case):
    name, given = case.split(":")
    expected = STORED[f"{case}:nngp"]
    scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    got = network(name)(STORED[f"input:{given}"])
    np.testing.assert_array_equal(got, got.T)
    # Relative where the entry is not small beside its diagonal, else beside that.
    error = np.abs(got - expected) / np.maximum(np.abs(expected), 1e-3 * scale + 1e-300)
    assert error.max() < TOLERANCE


def test_every_activation_and_depth_is_there():
    for kind in ("dense", "conv"):
        for name in ("relu", "gelu", "erf", "sin", "identity", "tanh"):
            for depth in (1, 2, 5, 10):
                assert any(case.startswith(f"{kind}-{name}-{depth}:") for case in CASES)
