"""Makes neural_tangents.npz: NNGP and NTK matrices by neural-tangents, in float64.

neural-tangents 0.6.5 imports only on JAX 0.4.23 to 0.5.3, so it has an environment of its own:

    python3.11 -m venv ENV
    ENV/bin/pip install jax==0.4.30 jaxlib==0.4.30 neural-tangents==0.6.5
    ENV/bin/python tests/kernels/reference/make_neural_tangents.py

The networks are named in ``cases()``; test_neural_tangents.py builds the same ones from the names.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
warnings.filterwarnings("ignore")

from neural_tangents import stax  # noqa: E402

DEPTHS = (1, 2, 5, 10)
WEIGHT, BIAS = 1.7, 0.1

ACTIVATIONS: dict[str, Any] = {
    "relu": stax.Relu,
    "leaky_relu": lambda: stax.LeakyRelu(0.2),
    "gelu": stax.Gelu,
    "erf": stax.Erf,
    "sin": stax.Sin,
    "identity": stax.Identity,
    # 160 Gauss-Hermite nodes: exact to 1e-9 for tanh at these variances; ELU has a break at zero,
    # where Gauss-Hermite converges too slowly to be a reference.
    "tanh": lambda: stax.ElementwiseNumerical(jax.numpy.tanh, deg=160),
}


def dense(weight: float = WEIGHT, bias: float = BIAS) -> Any:
    return stax.Dense(1, W_std=weight**0.5, b_std=bias**0.5)


def conv(size: int, padding: str, strides: int = 1) -> Any:
    return stax.Conv(
        1, (size, size), (strides, strides), padding, W_std=WEIGHT**0.5, b_std=BIAS**0.5
    )


def dense_network(name: str, depth: int, weight: float = WEIGHT, bias: float = BIAS) -> Any:
    hidden = [part for _ in range(depth) for part in (ACTIVATIONS[name](), dense(weight, bias))]
    return stax.serial(dense(weight, bias), *hidden)


def conv_network(
    name: str, depth: int, padding: str, size: int, strides: int = 1, end: Any = None
) -> Any:
    hidden: list[Any] = []
    for place in range(depth):
        hidden += [conv(size, padding, strides if place == 0 else 1), ACTIVATIONS[name]()]
    return stax.serial(*hidden, end if end is not None else stax.Flatten(), dense())


def residual_dense() -> Any:
    block = stax.serial(
        stax.FanOut(2),
        stax.parallel(stax.serial(stax.Relu(), dense(), stax.Relu(), dense()), stax.Identity()),
        stax.FanInSum(),
    )
    return stax.serial(dense(), block, block, stax.Relu(), dense())


def residual_conv() -> Any:
    block = stax.serial(
        stax.FanOut(2),
        stax.parallel(
            stax.serial(stax.Relu(), conv(3, "SAME", 2), stax.Relu(), conv(3, "SAME")),
            conv(1, "SAME", 2),
        ),
        stax.FanInSum(),
    )
    return stax.serial(conv(3, "SAME"), block, stax.Relu(), stax.Flatten(), dense())


def normalised_dense() -> Any:
    norm = stax.LayerNorm(axis=-1, eps=1e-5)
    return stax.serial(dense(), norm, stax.Gelu(), dense(), norm, stax.Relu(), dense())


def normalised_conv(axis: tuple[int, ...]) -> Any:
    norm = stax.LayerNorm(axis=axis, eps=1e-5)
    return stax.serial(conv(3, "SAME"), norm, stax.Relu(), stax.Flatten(), dense())


def pooled_conv() -> Any:
    return stax.serial(
        conv(3, "SAME"),
        stax.Relu(),
        stax.AvgPool((2, 2), (2, 2), "VALID"),
        conv(2, "SAME"),
        stax.Gelu(),
        stax.GlobalAvgPool(),
        dense(),
        stax.Erf(),
        dense(),
    )


def cases() -> Iterator[tuple[str, str, Any]]:
    """A name, the inputs it takes, and the network."""
    for name in ACTIVATIONS:
        inputs = "small_rows" if name == "tanh" else "rows"
        for depth in DEPTHS:
            yield f"dense-{name}-{depth}", inputs, dense_network(name, depth)
            yield f"conv-{name}-{depth}", "images", conv_network(name, depth, "SAME", 2)
    for depth in DEPTHS:
        yield f"paper-relu-{depth}", "rows", dense_network("relu", depth, 2.0, 0.0)
        yield (
            f"pool-relu-{depth}",
            "images",
            conv_network("relu", depth, "SAME", 3, end=stax.GlobalAvgPool()),
        )
    for padding in ("SAME", "VALID", "CIRCULAR"):
        for strides in (1, 2):
            if padding == "CIRCULAR" and strides == 2:
                continue  # refused by neural-tangents
            network = conv_network("relu", 2, padding, 3, strides)
            yield f"conv_{padding.lower()}_{strides}-relu-2", "images", network
    yield "residual_dense", "rows", residual_dense()
    yield "residual_conv", "images", residual_conv()
    yield "norm_dense", "rows_without_zero", normalised_dense()
    yield "norm_conv_channels", "images", normalised_conv((3,))
    yield "norm_conv_all", "images", normalised_conv((1, 2, 3))
    yield "pool_mixed", "images", pooled_conv()


def main() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(8, 5))
    rows[1] = rows[0]
    rows[2] = -rows[0]
    rows[3] = rows[0] * (1 + 1e-5) + 1e-6
    rows[4] = 3.0 * rows[5]
    without_zero = rows.copy()
    rows[7] = 0.0
    images = rng.normal(size=(3, 9, 8, 2))
    inputs = {
        "rows": rows,
        "rows_without_zero": without_zero,
        "small_rows": 0.3 * without_zero,
        "images": images,
    }
    stored: dict[str, np.ndarray] = {f"input:{name}": array for name, array in inputs.items()}
    for name, given, (_, _, kernel) in cases():
        values = kernel(inputs[given], None, ("nngp",))
        stored[f"{name}:{given}:nngp"] = np.asarray(values.nngp)
        print(name, stored[f"{name}:{given}:nngp"].ravel()[:2])
    np.savez_compressed(Path(__file__).with_name("neural_tangents.npz"), **stored)


if __name__ == "__main__":
    main()
