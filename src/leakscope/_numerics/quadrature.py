"""Gauss-Legendre rules on panels, batched over rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from leakscope._numerics.arrays import FloatArray


@lru_cache(maxsize=16)
def gauss_legendre(order: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def panels(breaks: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights between consecutive ``breaks`` (..., k+1); both (..., k * order)."""
    nodes, weights = gauss_legendre(order)
    width = np.diff(breaks, axis=-1)[..., None]
    x = breaks[..., :-1, None] + width * nodes
    w = width * weights
    shape = (*breaks.shape[:-1], -1)
    return x.reshape(shape), w.reshape(shape)


def growing_panels(
    first: FloatArray, last: FloatArray, count: int, order: int
) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [0, last] of panels that grow geometrically from ``first``.

    One rule then resolves both a narrow feature at zero and a long tail.
    """
    if count == 1:
        return panels(np.stack([np.zeros_like(last), last], axis=-1), order)
    first = np.minimum(first, last)[..., None]
    last = last[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(last > 0.0, last / first, 1.0)
    breaks = first * ratio ** np.linspace(0.0, 1.0, count)
    breaks[..., -1:] = last
    breaks = np.concatenate([np.zeros_like(first), breaks], axis=-1)
    return panels(breaks, order)
