"""Wide random networks in plain NumPy: the kernel as an average over units, without the theory."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, ndtr

FUNCTIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: x * ndtr(x),
    "erf": erf,
    "sin": np.sin,
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
}


def dense_units(rng, X, phi, *, depth, width, weight, bias):
    """The last hidden layer (records, width) of one random network."""
    h = X
    for _ in range(depth):
        W = rng.normal(size=(h.shape[1], width)) * np.sqrt(weight / h.shape[1])
        h = phi(h @ W + rng.normal(size=width) * np.sqrt(bias))
    return h


def convolved(rng, images, *, size, width, weight, bias):
    """One random convolution, SAME padding, stride 1, on (records, height, width, channels)."""
    n, rows, columns, channels = images.shape
    before = (size - 1) // 2
    padded = np.pad(
        images, ((0, 0), (before, size - 1 - before), (before, size - 1 - before), (0, 0))
    )
    scale = np.sqrt(weight / (size * size * channels))
    out = np.broadcast_to(rng.normal(size=width) * np.sqrt(bias), (n, rows, columns, width)).copy()
    for i in range(size):
        for j in range(size):
            W = rng.normal(size=(channels, width)) * scale
            out += padded[:, i : i + rows, j : j + columns] @ W
    return out


def conv_units(rng, images, phi, *, depth, size, width, weight, bias):
    h = images
    for _ in range(depth):
        h = phi(convolved(rng, h, size=size, width=width, weight=weight, bias=bias))
    return h


def second_moments(units):
    """The average of products over units (and pixels, where they are flattened)."""
    flat = units.reshape(len(units), -1)
    return flat @ flat.T / flat.shape[1]
