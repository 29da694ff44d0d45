"""Covariances through the layers of an infinitely wide network.

The recursion of the NNGP (lood, Section 2.2; Lee et al. 2018; for convolutions Novak et al. 2019,
Garriga-Alonso et al. 2019): weights multiply a covariance by ``weight_variance`` and add
``bias_variance``; an activation replaces it by the expectation of :mod:`duals`.  The NTK beside it
(Jacot et al. 2018) is multiplied by the expectation of the derivatives at an activation; at weights
it is multiplied as the covariance is, and the new covariance is added to it.

Layout of arrays: pixel axes first, then images, so that a shift along pixels moves whole contiguous
blocks.  ``pair`` is (*S, A, B) for A and B images, a ``side`` (*S, A), where S is () without
pixels, (H, W) where only equal pixels are kept, and (H, W, H, W) where all pairs of pixels are
(pooling needs them).  ``axes`` names, for rows and for columns, the axes that move together: one
where only equal pixels are kept, two where all pairs of pixels are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from leakscope.errors import InputError
from leakscope.kernels import duals
from leakscope.kernels.duals import DualTable
from leakscope.kernels.layers import (
    Activation,
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


@dataclass(frozen=True)
class State:
    """Where the recursion stands: each image with itself on both sides, and the pairs across."""

    first: jax.Array
    second: jax.Array | None
    pair: jax.Array | None
    pixels: bool
    all_pairs: bool

    def map(self, function: Callable[[jax.Array], jax.Array]) -> State:
        """The same operation on all three."""
        return replace(
            self,
            first=function(self.first),
            second=None if self.second is None else function(self.second),
            pair=None if self.pair is None else function(self.pair),
        )


@dataclass(frozen=True)
class Context:
    """What goes along: tables to use, in order, and where to note ranges of deviations."""

    tables: Iterator[DualTable | None] | None = None
    ranges: list[tuple[jax.Array, jax.Array]] | None = None


def propagate(layers: tuple[Layer, ...], state: State, context: Context) -> State:
    """The state after these layers."""
    for layer in layers:
        state = _step(layer, state, context)
    return state


def _step(layer: Layer, state: State, context: Context) -> State:
    axes = PAIRS_OF_PIXELS if state.all_pairs else EQUAL_PIXELS
    match layer:
        case Dense(weight, bias):
            return state.map(lambda a: weight * a + bias)
        case Conv(weight_variance=weight, bias_variance=bias):
            return state.map(lambda a: weight * convolve(a, layer, axes) + bias)
        case AveragePool():
            return state.map(lambda a: pool(a, layer, axes))
        case Flatten():
            flat = state.map(lambda a: _over_equal_pixels(a, state.all_pairs))
            return replace(flat, pixels=False, all_pairs=False)
        case GlobalAveragePool():
            pooled = state.map(lambda a: a.mean(axis=(0, 1, 2, 3)))
            return replace(pooled, pixels=False, all_pairs=False)
        case LayerNorm():
            return _normalise(layer, state)
        case Residual(branch, skip):
            added = propagate(branch, state, context)
            kept = propagate(skip, state, context)
            return replace(
                added,
                first=_plus(added.first, kept.first),
                second=_sum(added.second, kept.second),
                pair=_sum(added.pair, kept.pair),
            )
        case Apply(phi):
            return _apply(phi, state, context)


def _plus(one: jax.Array, other: jax.Array) -> jax.Array:
    """The sum, for uncorrelated parts."""
    if one.shape != other.shape:
        raise InputError(
            "residual: the branch and the skip connection give images of different sizes; give the "
            "skip connection the same strides."
        )
    return one + other


def _sum(one: jax.Array | None, other: jax.Array | None) -> jax.Array | None:
    return None if one is None or other is None else _plus(one, other)


def _over_equal_pixels(array: jax.Array, all_pairs: bool) -> jax.Array:
    if all_pairs:
        array = _diagonal(array)
    return array.mean(axis=(0, 1))


def _diagonal(array: jax.Array) -> jax.Array:
    """(H, W, H, W, ...) to (H, W, ...): each pixel with itself."""
    return jnp.einsum("hwhw...->hw...", array)


def _variances(side: jax.Array, state: State) -> jax.Array:
    return _diagonal(side) if state.all_pairs else side


def _across(q1: jax.Array, q2: jax.Array, state: State) -> tuple[jax.Array, jax.Array]:
    """The variances of two sides, shaped to broadcast against the pairs between them."""
    if state.all_pairs:
        return q1[:, :, None, None, :, None], q2[None, None, :, :, None, :]
    return q1[..., :, None], q2[..., None, :]


def _apply(phi: Activation, state: State, context: Context) -> State:
    table: DualTable | None = None
    if not phi.has_closed_form and context.tables is not None:
        table = next(context.tables)
    q1 = _variances(state.first, state)
    if not phi.has_closed_form and context.ranges is not None:
        context.ranges.append((q1.min(), q1.max()))
    first = _apply_to_side(phi, state.first, q1, state, table)
    if state.second is None or state.pair is None:
        return replace(state, first=first)
    q2 = _variances(state.second, state)
    second = _apply_to_side(phi, state.second, q2, state, table)
    pair = _apply_to_pairs(phi, state.pair, *_across(q1, q2, state), table)
    return replace(state, first=first, second=second, pair=pair)


def _apply_to_side(
    phi: Activation, side: jax.Array, q: jax.Array, state: State, table: DualTable | None
) -> jax.Array:
    variance = duals.variance(phi, q)
    if not state.all_pairs:
        return variance
    full = _apply_to_pairs(phi, side, q[:, :, None, None], q[None, None], table)
    rows, columns = (i.ravel() for i in jnp.indices(q.shape[:2]))
    place = (rows, columns, rows, columns)
    return full.at[place].set(variance.reshape(-1, q.shape[-1]))


def _apply_to_pairs(
    phi: Activation, pair: jax.Array, q1: jax.Array, q2: jax.Array, table: DualTable | None
) -> jax.Array:
    return duals.covariance(phi, pair, q1, q2) if table is None else table(pair, q1, q2)


def _normalise(layer: LayerNorm, state: State) -> State:
    """Each unit divided by the root of the mean square over the layer, which does not fluctuate."""

    def scale(side: jax.Array) -> jax.Array:
        q = _variances(side, state)
        if state.pixels and layer.over == "all":
            q = jnp.broadcast_to(q.mean(axis=(0, 1)), q.shape)
        return jax.lax.rsqrt(q + layer.epsilon)

    def on_side(side: jax.Array) -> jax.Array:
        s = scale(side)
        squared = s[:, :, None, None] * s[None, None] if state.all_pairs else s * s
        return side * squared

    first = on_side(state.first)
    if state.second is None or state.pair is None:
        return replace(state, first=first)
    s1, s2 = _across(scale(state.first), scale(state.second), state)
    pair = state.pair * s1 * s2
    return replace(state, first=first, second=on_side(state.second), pair=pair)
