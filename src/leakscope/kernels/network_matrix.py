"""The kernel matrix of a network, block by block.

Without pixels the recursion needs only the matrix of inner products and its diagonal.  On a CPU
BLAS makes that matrix, in the memory of the result (twice as quick there as JAX's own product), and
each block is then replaced by the network's covariance in one compiled pass; on an accelerator the
product is part of that pass.  Images go in pairs of blocks, sized so that what a block needs stays
in the cache.  A matrix of one dataset is computed on and above its diagonal and mirrored; the
diagonal itself comes from the recursion of variances, without rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision
from leakscope.kernels.composition import integrated_activations, needs_pairs_of_pixels
from leakscope.kernels.dual_tables import dual_table
from leakscope.kernels.layers import Layer
from leakscope.kernels.numerical_duals import function_of, slope_of
from leakscope.kernels.propagation import Context, Covariance, State, Tables, propagate

Array = NDArray[np.floating]

# Records on each side of a block without pixels.
DENSE_BLOCK = 512
# Where a table cannot be made, every entry is a quadrature of thousands of points.
QUADRATURE_BLOCK = 16
# Bytes of one covariance array of a block of images, for equal pixels and for pairs of them.
IMAGE_BLOCK_BYTES = 4 * 2**20
PAIRS_BLOCK_BYTES = 64 * 2**20
# Arrays of that size alive at once in the compiled pass.
ALIVE = 4


def matrix(
    layers: tuple[Layer, ...], X: Array, Z: Array | None, *, ntk: bool
) -> Array:
    """The matrix over X and Z (X itself where Z is None), in the arrays' own precision."""
    with double_precision():
        own, tables = _own(layers, X, ntk)
        if Z is not None:
            both = np.concatenate([own, _own(layers, Z, ntk)[0]])
            del both
        columns = X if Z is None else Z
        if Z is not None:
            tables = _tables(layers, _ranges(layers, [X, Z]), ntk)
        out = _start(layers, X, columns, tables)
        for rows, cols, block in _blocks(layers, X, columns, out, tables, ntk, Z is None):
            out[rows, cols] = block
            if Z is None and rows != cols:
                out[cols, rows] = block.T
        if Z is None:
            np.fill_diagonal(out, own)
    return out
