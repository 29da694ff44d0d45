"""The kernel matrix of a network, block by block.

Without pixels the recursion needs only the matrix of inner products and its diagonal.  BLAS makes
that matrix, in the memory of the result (twice as quick as JAX's own product), and each block is
then replaced by the network's covariance in one compiled pass.  Images go in pairs of blocks, sized
so that what a block needs stays in the cache.  A matrix of one dataset is computed on and above its
diagonal and mirrored; the diagonal itself comes from the recursion of variances, without the
rounding of an angle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope._numerics.x64 import double_precision
from leakscope.kernels.layers import Layer, needs_pairs_of_pixels, takes_images
from leakscope.kernels.propagation import State, propagate

Layers = tuple[Layer, ...]

# Records on each side of a block without pixels.
DENSE_BLOCK = 512
# Bytes of one covariance array of a block of images, for equal pixels and for pairs of them.
IMAGE_BLOCK_BYTES = 2 * 2**20
PAIRS_BLOCK_BYTES = 64 * 2**20
# Arrays of a block's size that the compiled pass may hold at once.
ALIVE = 6


def matrix(layers: Layers, X: FloatArray, Z: FloatArray | None = None) -> FloatArray:
    """The matrix over the records of X and Z (X itself where Z is None)."""
    columns = X if Z is None else Z
    _require_room(layers, X, columns)
    with double_precision():
        out, size, block = (_of_images if takes_images(layers) else _of_rows)(layers, X, columns)
        for top in range(0, len(X), size):
            for left in range(top if Z is None else 0, len(columns), size):
                rows = slice(top, min(top + size, len(X)))
                others = slice(left, min(left + size, len(columns)))
                out[rows, others] = found = block(rows, others)
                if Z is None and rows == others:
                    # Above the diagonal and mirrored: the two halves of a block round differently.
                    out[rows, others] = np.triu(found) + np.triu(found, 1).T
                elif Z is None:
                    out[others, rows] = found.T
    if Z is None:
        np.fill_diagonal(out, diagonal(layers, X))
    return out


def diagonal(layers: Layers, X: FloatArray) -> FloatArray:
    """k(x, x) for every record."""
    with double_precision():
        if not takes_images(layers):
            q = jnp.asarray(_mean_squares(X))
            return np.array(propagate(layers, State(q, None, None, False, False)).first)
        size = max(1, min(len(X), _image_size(layers, X) ** 2))
        parts = [
            np.asarray(_image_diagonal(layers, jnp.asarray(_padded(X[start : start + size], size))))
            for start in range(0, len(X), size)
        ]
        return np.concatenate(parts)[: len(X)]


def evaluate(layers: Layers, x: jax.Array, z: jax.Array) -> jax.Array:
    """The same as JAX code, to be differentiated, in whatever precision the caller works."""
    if takes_images(layers):
        return _pairs(layers, _image_state(layers, x, z))
    scale = 1.0 / x.shape[1]
    q1, q2 = scale * (x * x).sum(1), scale * (z * z).sum(1)
    return _pairs(layers, State(q1, q2, scale * (x @ z.T), False, False))


Block = Callable[[slice, slice], FloatArray]


def _of_rows(layers: Layers, X: FloatArray, Z: FloatArray) -> tuple[FloatArray, int, Block]:
    """The result's memory, the side of a block, and what computes one."""
    out = row_products(X, Z)
    q1 = _mean_squares(X)
    q2 = q1 if Z is X else _mean_squares(Z)

    def block(rows: slice, columns: slice) -> FloatArray:
        products = out[rows, columns] / X.shape[1]
        return np.asarray(_dense_block(layers, products, q1[rows], q2[columns]))

    return out, DENSE_BLOCK, block


def _of_images(layers: Layers, X: FloatArray, Z: FloatArray) -> tuple[FloatArray, int, Block]:
    size = min(_image_size(layers, X), max(len(X), len(Z)))

    def block(rows: slice, columns: slice) -> FloatArray:
        x, z = _padded(X[rows], size), _padded(Z[columns], size)
        found = np.asarray(_image_block(layers, x, z))
        return found[: rows.stop - rows.start, : columns.stop - columns.start]

    return np.empty((len(X), len(Z))), size, block


def _padded(images: FloatArray, count: int) -> FloatArray:
    """As many images as every block has, so that the pass is compiled for one size only."""
    missing = count - len(images)
    return images if missing == 0 else np.concatenate([images, np.repeat(images[:1], missing, 0)])


def _mean_squares(X: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", X, X) / X.shape[1])


def _image_size(layers: Layers, X: FloatArray) -> int:
    limit = PAIRS_BLOCK_BYTES if needs_pairs_of_pixels(layers) else IMAGE_BLOCK_BYTES
    return math.isqrt(max(1, limit // _bytes_of_a_pair(layers, X)))


def _bytes_of_a_pair(layers: Layers, X: FloatArray) -> int:
    pixels = X.shape[1] * X.shape[2]
    return int(pixels**2 if needs_pairs_of_pixels(layers) else pixels) * X.itemsize


def _require_room(layers: Layers, X: FloatArray, Z: FloatArray) -> None:
    needed = len(X) * len(Z) * X.itemsize
    remedy = "audit fewer records"
    if takes_images(layers):
        pair = _bytes_of_a_pair(layers, X)
        limit = PAIRS_BLOCK_BYTES if needs_pairs_of_pixels(layers) else IMAGE_BLOCK_BYTES
        needed += ALIVE * max(pair, limit)
        remedy += ", or use smaller images or flatten() instead of pooling"
    require_memory(needed, f"the kernel matrix of {len(X)} by {len(Z)} records", remedy)


def _image_state(layers: Layers, x: jax.Array, z: jax.Array | None) -> State:
    """Inner products over channels, of equal pixels or of all pairs of them."""
    all_pairs = needs_pairs_of_pixels(layers)
    scale = 1.0 / x.shape[3]
    side = "ahwc,axyc->hwxya" if all_pairs else "ahwc,ahwc->hwa"
    pair = "ahwc,bxyc->hwxyab" if all_pairs else "ahwc,bhwc->hwab"
    return State(
        first=scale * jnp.einsum(side, x, x),
        second=None if z is None else scale * jnp.einsum(side, z, z),
        pair=None if z is None else scale * jnp.einsum(pair, x, z),
        pixels=True,
        all_pairs=all_pairs,
    )


def _pairs(layers: Layers, state: State) -> jax.Array:
    covariance = propagate(layers, state).pair
    assert covariance is not None
    return covariance


@partial(jax.jit, static_argnums=0)
def _dense_block(layers: Layers, pair: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    return _pairs(layers, State(q1, q2, pair, False, False))


_image_block = jax.jit(evaluate, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _image_diagonal(layers: Layers, x: jax.Array) -> jax.Array:
    return propagate(layers, _image_state(layers, x, None)).first
