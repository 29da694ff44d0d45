"""Covariances through the layers of an infinitely wide network.

The recursion of the NNGP (lood, Section 2.2; Lee et al. 2018; for convolutions Novak et al. 2019,
Garriga-Alonso et al. 2019): weights multiply a covariance by ``weight_variance`` and add
``bias_variance``; an activation replaces it by the expectation of :mod:`duals`.

Layout of arrays: pixel axes first, then images, so that a shift along pixels moves whole contiguous
blocks.  ``pair`` is (*S, A, B) for A and B images, a ``side`` (*S, A), where S is () without
pixels, (H, W) where only equal pixels are kept, and (H, W, H, W) where all pairs of pixels are
(pooling needs them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from leakscope.errors import InputError
from leakscope.kernels import duals
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

# For rows and for columns of pixels the axes that move together.
EQUAL_PIXELS = ((0,), (1,))
PAIRS_OF_PIXELS = ((0, 2), (1, 3))


@dataclass(frozen=True)
class State:
    """Where the recursion stands: each image with itself on both sides, and the pairs across."""

    first: jax.Array
    second: jax.Array | None
    pair: jax.Array | None
    pixels: bool
    all_pairs: bool

    @property
    def axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The pixel axes, rows and columns."""
        return PAIRS_OF_PIXELS if self.all_pairs else EQUAL_PIXELS

    def map(self, function: Callable[[jax.Array], jax.Array]) -> State:
        """The same operation on all three."""
        return replace(
            self,
            first=function(self.first),
            second=None if self.second is None else function(self.second),
            pair=None if self.pair is None else function(self.pair),
        )


def propagate(layers: tuple[Layer, ...], state: State) -> State:
    """The state after these layers."""
    for layer in layers:
        state = _after(layer, state)
    return state


def _after(layer: Layer, state: State) -> State:
    match layer:
        case Dense(weight, bias):
            return state.map(lambda a: weight * a + bias)
        case Conv(weight_variance=weight, bias_variance=bias):
            return state.map(lambda a: weight * _convolved(a, layer, state) + bias)
        case AveragePool(window):
            return state.map(lambda a: _pooled(a, window, state))
        case Flatten():
            flat = state.map(lambda a: _variances(a, state).mean(axis=(0, 1)))
            return replace(flat, pixels=False, all_pairs=False)
        case GlobalAveragePool():
            pooled = state.map(lambda a: a.mean(axis=(0, 1, 2, 3)))
            return replace(pooled, pixels=False, all_pairs=False)
        case LayerNorm(epsilon):
            return _normalised(epsilon, state)
        case Residual(branch, skip):
            added, kept = propagate(branch, state), propagate(skip, state)
            second = None if added.second is None else _sum(added.second, kept.second)
            pair = None if added.pair is None else _sum(added.pair, kept.pair)
            return replace(added, first=_sum(added.first, kept.first), second=second, pair=pair)
        case Apply(phi):
            return _applied(phi, state)


def _convolved(array: jax.Array, layer: Conv, state: State) -> jax.Array:
    """The average over the filter: what the random weights of a convolution leave."""
    for size, stride, moving in zip(layer.filter_size, layer.strides, state.axes, strict=True):
        pixels = array.shape[moving[0]]
        total = max((-(-pixels // stride) - 1) * stride + size - pixels, 0)
        total = total if layer.padding == "same" else 0
        # ``same`` puts the odd pixel after, as TensorFlow does.
        before, after = total // 2, total - total // 2
        count = _count("conv: a filter", pixels + before + after, size, stride)
        widths = [(before, after) if axis in moving else (0, 0) for axis in range(array.ndim)]
        # Without the barrier the compiler would compute what is shifted anew for every shift.
        padded = jax.lax.optimization_barrier(jnp.pad(array, widths))  # type: ignore[no-untyped-call, unused-ignore]
        array = _sum_of_shifts(padded, moving, size, stride, count) / size
    return array


def _pooled(array: jax.Array, window: tuple[int, int], state: State) -> jax.Array:
    """The average over windows; pairs of pixels are averaged over pairs of windows."""
    for size, moving in zip(window, state.axes, strict=True):
        count = _count("average_pool: a window", array.shape[moving[0]], size, size)
        for axis in moving:
            array = jax.lax.optimization_barrier(array)  # type: ignore[no-untyped-call, unused-ignore]
            array = _sum_of_shifts(array, (axis,), size, size, count) / size
    return array


def _count(what: str, pixels: int, size: int, stride: int) -> int:
    """How many places of a window there are."""
    if pixels < size:
        raise InputError(f"{what} of {size} pixels does not fit an image of {pixels} pixels.")
    return (pixels - size) // stride + 1


def _sum_of_shifts(
    array: jax.Array, moving: tuple[int, ...], size: int, stride: int, count: int
) -> jax.Array:
    parts = []
    for offset in range(size):
        part = array
        for axis in moving:
            last = offset + (count - 1) * stride + 1
            part = jax.lax.slice_in_dim(part, offset, last, stride, axis)
        parts.append(part)
    return sum(parts[1:], start=parts[0])


def _sum(one: jax.Array, other: jax.Array | None) -> jax.Array:
    """The sum, for uncorrelated parts."""
    if other is None or one.shape != other.shape:
        raise InputError(
            "residual: the branch and the skip connection give images of different sizes; give the "
            "skip connection the same strides."
        )
    return one + other


def _variances(side: jax.Array, state: State) -> jax.Array:
    """(H, W, ...): each pixel with itself."""
    return jnp.einsum("hwhw...->hw...", side) if state.all_pairs else side


def _across(q1: jax.Array, q2: jax.Array, state: State) -> tuple[jax.Array, jax.Array]:
    """The variances of two sides, shaped to broadcast against the pairs between them."""
    if state.all_pairs:
        return q1[:, :, None, None, :, None], q2[None, None, :, :, None, :]
    return q1[..., :, None], q2[..., None, :]


def _applied(phi: Activation, state: State) -> State:
    def on_side(side: jax.Array) -> jax.Array:
        q = _variances(side, state)
        variance = duals.variance(phi, q)
        if not state.all_pairs:
            return variance
        full = duals.covariance(phi, side, q[:, :, None, None], q[None, None])
        rows, columns = (i.ravel() for i in jnp.indices(q.shape[:2]))
        place = (rows, columns, rows, columns)
        return full.at[place].set(variance.reshape(-1, q.shape[-1]))

    first = on_side(state.first)
    if state.second is None or state.pair is None:
        return replace(state, first=first)
    sides = _across(_variances(state.first, state), _variances(state.second, state), state)
    pair = duals.covariance(phi, state.pair, *sides)
    return replace(state, first=first, second=on_side(state.second), pair=pair)


def _normalised(epsilon: float, state: State) -> State:
    """Each unit divided by the root of the mean square over the layer, which does not fluctuate."""

    def scale(side: jax.Array) -> jax.Array:
        return jax.lax.rsqrt(_variances(side, state) + epsilon)

    def on_side(side: jax.Array) -> jax.Array:
        s = scale(side)
        return side * (s[:, :, None, None] * s[None, None] if state.all_pairs else s * s)

    first = on_side(state.first)
    if state.second is None or state.pair is None:
        return replace(state, first=first)
    s1, s2 = _across(scale(state.first), scale(state.second), state)
    return replace(state, first=first, second=on_side(state.second), pair=state.pair * s1 * s2)
