"""The kernel matrix of a network, block by block.

Without pixels the recursion needs only the matrix of inner products and its diagonal.  On a CPU
BLAS makes that matrix, in the memory of the result (twice as quick there as JAX's own product), and
each block is then replaced by the network's covariance in one compiled pass; on an accelerator the
product is part of that pass.  Images go in pairs of blocks, sized so that what a block needs stays
in the cache.  A matrix of one dataset is computed on and above its diagonal and mirrored; the
diagonal itself comes from the recursion of variances, without the rounding of an angle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope._numerics.x64 import double_precision
from leakscope.kernels.duals import DualTable, dual_table, function_of
from leakscope.kernels.layers import (
    Layer,
    integrated_activations,
    needs_pairs_of_pixels,
    takes_images,
)
from leakscope.kernels.propagation import Context, State, propagate

# float64 or, where it was asked for, float32.
Array = NDArray[np.float64]
Layers = tuple[Layer, ...]
AllTables = tuple[DualTable | None, ...]

# Records on each side of a block without pixels, and with BLAS out of reach.
DENSE_BLOCK = 512
DEVICE_BLOCK = 4096
# Where there is no table, every entry is a quadrature of thousands of points.
QUADRATURE_BLOCK = 16
# Bytes of one covariance array of a block of images, for equal pixels and for pairs of them.
IMAGE_BLOCK_BYTES = 2 * 2**20
PAIRS_BLOCK_BYTES = 64 * 2**20
# Arrays of a block's size that the compiled pass may hold at once.
ALIVE = 6


def matrix(layers: Layers, X: Array, Z: Array | None = None) -> Array:
    """The matrix over the records of X and Z (X itself where Z is None), in their precision."""
    symmetric = Z is None
    columns = X if Z is None else Z
    _require_room(layers, X, columns)
    with double_precision():
        tables = _tables(layers, [X] if symmetric else [X, columns])
        out, shape, block = _blocks(layers, X, columns, tables)
        for some, others in _places(len(X), len(columns), shape, symmetric):
            _put(out, some, others, block(some, others), symmetric)
        if symmetric:
            np.fill_diagonal(out, _diagonal(layers, X, tables))
    return out


def diagonal(layers: Layers, X: Array) -> Array:
    """k(x, x) for every record."""
    with double_precision():
        return _diagonal(layers, X, _tables(layers, [X]))


def evaluate(
    layers: Layers,
    x: jax.Array,
    z: jax.Array,
    tables: AllTables | None = None,
) -> jax.Array:
    """The same as JAX code, to be differentiated, in whatever precision the caller works."""
    if takes_images(layers):
        state = _image_state(x, z, needs_pairs_of_pixels(layers))
    else:
        scale = 1.0 / x.shape[1]
        state = _dense_state(scale * (x @ z.T), scale * (x * x).sum(1), scale * (z * z).sum(1))
    context = Context(None if tables is None else iter(tables))
    return _known(propagate(layers, state, context).pair)


_block = jax.jit(evaluate, static_argnums=0)


def _blocks(
    layers: Layers, X: Array, Z: Array, tables: AllTables
) -> tuple[Array, tuple[int, int], Callable[[slice, slice], Array]]:
    """The result's memory, the shape of a block, and what computes one; Z may be X itself."""
    if takes_images(layers):
        size = _image_size(layers, X, tables)
        shape = (min(size, len(X)), min(size, len(Z)))

        def of_images(rows: slice, columns: slice) -> Array:
            x, z = _padded(X[rows], shape[0]), _padded(Z[columns], shape[1])
            block = np.asarray(_block(layers, x, z, tables))
            return block[: rows.stop - rows.start, : columns.stop - columns.start]

        return np.empty((len(X), len(Z)), X.dtype), shape, of_images
    cpu = jax.default_backend() == "cpu"
    size = DENSE_BLOCK if cpu else DEVICE_BLOCK
    if _needs_quadrature(tables):
        size = QUADRATURE_BLOCK
    if cpu:
        out = row_products(X, Z)
        q1 = _mean_squares(X)
        q2 = q1 if Z is X else _mean_squares(Z)
        scale = 1.0 / X.shape[1]

        def of_products(rows: slice, columns: slice) -> Array:
            products = out[rows, columns]
            found = _dense_block(layers, products, q1[rows], q2[columns], scale, tables)
            return np.asarray(found)

        return out, (size, size), of_products
    x = jnp.asarray(X)
    z = x if Z is X else jnp.asarray(Z)

    def on_device(rows: slice, columns: slice) -> Array:
        return np.asarray(_block(layers, x[rows], z[columns], tables))

    return np.empty((len(X), len(Z)), X.dtype), (size, size), on_device


def _places(
    n: int, m: int, shape: tuple[int, int], symmetric: bool
) -> Iterator[tuple[slice, slice]]:
    for top in range(0, n, shape[0]):
        for left in range(top if symmetric else 0, m, shape[1]):
            yield slice(top, min(top + shape[0], n)), slice(left, min(left + shape[1], m))


def _put(out: Array, rows: slice, columns: slice, block: Array, symmetric: bool) -> None:
    out[rows, columns] = block
    if symmetric and rows == columns:
        # Above the diagonal and mirrored: the two halves of a block round differently.
        upper = np.triu(block)
        out[rows, columns] = upper + np.triu(block, 1).T
    elif symmetric:
        out[columns, rows] = block.T


def _padded(images: Array, count: int) -> Array:
    """As many images as every block has, so that the pass is compiled for one size only."""
    missing = count - len(images)
    return images if missing == 0 else np.concatenate([images, np.repeat(images[:1], missing, 0)])


def _diagonal(layers: Layers, X: Array, tables: AllTables) -> Array:
    if not takes_images(layers):
        return np.array(_dense_diagonal(layers, jnp.asarray(_mean_squares(X)), tables))
    size = max(1, min(len(X), _image_size(layers, X, tables) ** 2))
    function = _pooled_diagonal if needs_pairs_of_pixels(layers) else _image_diagonal
    parts = [
        np.asarray(function(layers, jnp.asarray(_padded(X[a : a + size], size)), tables))
        for a in range(0, len(X), size)
    ]
    return np.concatenate(parts)[: len(X)]


def _tables(layers: Layers, datasets: list[Array]) -> AllTables:
    """A table for each activation without a formula, over the deviations these data have.

    Beyond pooling the variances depend on pairs of pixels; from there on there are no tables.
    """
    phis = integrated_activations(layers)
    if not phis:
        return ()
    before = next(
        (i for i, layer in enumerate(layers) if needs_pairs_of_pixels((layer,))), len(layers)
    )
    found = [_ranges(layers[:before], data) for data in datasets]
    tables: list[DualTable | None] = []
    for place, phi in enumerate(phis):
        if place >= len(found[0]):
            tables.append(None)
            continue
        low = math.sqrt(min(ranges[place][0] for ranges in found))
        high = math.sqrt(max(ranges[place][1] for ranges in found))
        tables.append(dual_table(function_of(phi), low, high))
    return tuple(tables)


def _ranges(layers: Layers, X: Array) -> list[tuple[float, float]]:
    images = X.ndim == 4
    step = max(1, IMAGE_BLOCK_BYTES // X[0].nbytes) if images else max(len(X), 1)
    found: list[list[tuple[float, float]]] = []
    for start in range(0, len(X), step):
        part = X[start : start + step]
        q = (part * part).mean(axis=3).transpose(1, 2, 0) if images else _mean_squares(part)
        found.append(
            [(float(a), float(b)) for a, b in _variance_ranges(layers, jnp.asarray(q), images)]
        )
    return [
        (min(r[i][0] for r in found), max(r[i][1] for r in found)) for i in range(len(found[0]))
    ]


def _mean_squares(X: Array) -> Array:
    result: Array = np.einsum("ij,ij->i", X, X) / X.dtype.type(X.shape[1])
    return result


def _needs_quadrature(tables: AllTables) -> bool:
    return any(table is None for table in tables)


def _image_size(layers: Layers, X: Array, tables: AllTables) -> int:
    limit = PAIRS_BLOCK_BYTES if needs_pairs_of_pixels(layers) else IMAGE_BLOCK_BYTES
    size = math.isqrt(max(1, limit // _bytes_of_a_pair(layers, X)))
    return min(size, QUADRATURE_BLOCK) if _needs_quadrature(tables) else size


def _bytes_of_a_pair(layers: Layers, X: Array) -> int:
    pixels = X.shape[1] * X.shape[2]
    return int(pixels**2 if needs_pairs_of_pixels(layers) else pixels) * X.itemsize


def _require_room(layers: Layers, X: Array, Z: Array) -> None:
    needed = len(X) * len(Z) * X.itemsize
    remedy = "audit fewer records, or ask for float32"
    if takes_images(layers):
        pair = _bytes_of_a_pair(layers, X)
        limit = PAIRS_BLOCK_BYTES if needs_pairs_of_pixels(layers) else IMAGE_BLOCK_BYTES
        needed += ALIVE * max(pair, limit)
        remedy += ", or use smaller images or flatten() instead of pooling"
    require_memory(needed, f"the kernel matrix of {len(X)} by {len(Z)} records", remedy)


def _known(covariance: jax.Array | None) -> jax.Array:
    assert covariance is not None
    return covariance


def _dense_state(
    pair: jax.Array | None, q1: jax.Array, q2: jax.Array | None, pixels: bool = False
) -> State:
    return State(first=q1, second=q2, pair=pair, pixels=pixels, all_pairs=False)


def _image_state(x: jax.Array, z: jax.Array | None, all_pairs: bool) -> State:
    """Inner products over channels, of equal pixels or of all pairs of them."""
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


@partial(jax.jit, static_argnums=0)
def _dense_block(
    layers: Layers,
    products: jax.Array,
    q1: jax.Array,
    q2: jax.Array,
    scale: float,
    tables: AllTables,
) -> jax.Array:
    state = _dense_state(scale * products, q1, q2)
    return _known(propagate(layers, state, Context(iter(tables))).pair)


# Variances are not compiled: compiling takes longer than the few vectors do.  Pairs of pixels are.
def _dense_diagonal(layers: Layers, q: jax.Array, tables: AllTables) -> jax.Array:
    state = _dense_state(None, q, None)
    return propagate(layers, state, Context(iter(tables))).first


def _image_diagonal(layers: Layers, x: jax.Array, tables: AllTables) -> jax.Array:
    state = _image_state(x, None, needs_pairs_of_pixels(layers))
    return propagate(layers, state, Context(iter(tables))).first


_pooled_diagonal = jax.jit(_image_diagonal, static_argnums=0)


def _variance_ranges(
    layers: Layers, q: jax.Array, images: bool
) -> list[tuple[jax.Array, jax.Array]]:
    ranges: list[tuple[jax.Array, jax.Array]] = []
    propagate(layers, _dense_state(None, q, None, images), Context(None, ranges))
    return ranges
