"""Convolutions and pooling of covariances: averages of arrays shifted along their pixel axes.

A covariance over pixels has the pixel axes in front and the pairs of images behind, so that a shift
moves whole contiguous blocks.  ``axes`` names, for rows and for columns, the axes that move
together: one where only equal pixels are kept, two where all pairs of pixels are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from leakscope.errors import InputError
from leakscope.kernels.layers import AveragePool, Conv

Axes = tuple[tuple[int, ...], tuple[int, ...]]

EQUAL_PIXELS: Axes = ((0,), (1,))
PAIRS_OF_PIXELS: Axes = ((0, 2), (1, 3))


def convolve(array: jax.Array, layer: Conv, axes: Axes) -> jax.Array:
    """The average over the filter: what the random weights of a convolution leave."""
    for direction, moving in enumerate(axes):
        size, stride = layer.filter_size[direction], layer.strides[direction]
        pixels = array.shape[moving[0]]
        before, after = margins(pixels, size, stride, layer, direction)
        count = (pixels + before + after - size) // stride + 1
        if count < 1:
            raise InputError(
                f"conv: a filter of {size} pixels does not fit an image of {pixels} pixels; make "
                "it smaller, or pad."
            )
        widths = [(0, 0)] * array.ndim
        for axis in moving:
            widths[axis] = (before, after)
        padded = jnp.pad(array, widths, mode="wrap" if layer.padding == "circular" else "constant")
        # Without the barrier the compiler would compute what is shifted anew for every shift.
        padded = jax.lax.optimization_barrier(padded)  # type: ignore[no-untyped-call, unused-ignore]
        array = _sum_of_shifts(padded, moving, size, stride, count) / size
    return array


def pool(array: jax.Array, layer: AveragePool, axes: Axes) -> jax.Array:
    """The average over windows; pairs of pixels are averaged over pairs of windows."""
    for direction, moving in enumerate(axes):
        size, stride = layer.window[direction], layer.strides[direction]
        count = (array.shape[moving[0]] - size) // stride + 1
        if count < 1:
            raise InputError(
                f"average_pool: a window of {size} pixels does not fit an image of "
                f"{array.shape[moving[0]]} pixels."
            )
        for axis in moving:
            array = jax.lax.optimization_barrier(array)  # type: ignore[no-untyped-call, unused-ignore]
            array = _sum_of_shifts(array, (axis,), size, stride, count) / size
    return array


def margins(pixels: int, size: int, stride: int, layer: Conv, direction: int) -> tuple[int, int]:
    """Pixels added before and after; ``same`` puts the odd one after, as TensorFlow does."""
    if isinstance(layer.padding, tuple):
        return layer.padding[direction], layer.padding[direction]
    if layer.padding == "valid":
        return 0, 0
    total = max((-(-pixels // stride) - 1) * stride + size - pixels, 0)
    return total // 2, total - total // 2


def _sum_of_shifts(
    array: jax.Array, moving: tuple[int, ...], size: int, stride: int, count: int
) -> jax.Array:
    total: jax.Array | None = None
    for offset in range(size):
        part = array
        for axis in moving:
            part = jax.lax.slice_in_dim(
                part, offset, offset + (count - 1) * stride + 1, stride, axis
            )
        total = part if total is None else total + part
    assert total is not None
    return total
