"""One Cholesky factorisation on an accelerator, and the diagonal of the inverse from it.

One n x n array is filled block by block, factorised in its own memory and read off in blocks of
columns.  The GPU's solvers want their matrices by columns and JAX stores them by rows: so the
*upper* triangle is filled and M = R^T R is factorised, whose R^T is R's own memory read by columns
and needs no copy.  Importing this module imports JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax

# Rows and columns of a block that is filled at once, and columns of the inverse solved at once.
FILL_BLOCK = 5000
COLUMNS = 2048
# Columns of that inverse are zero above their own row: parts of decreasing height skip that.
PARTS = 4

Kernel = Callable[[jax.Array, jax.Array], jax.Array]


def upper_triangle(x: jax.Array, kernel: Kernel) -> jax.Array:
    """k(x_i, x_j) for j >= i; below the diagonal, zeros or what a block on it holds."""
    n = x.shape[0]
    size = min(FILL_BLOCK, n)
    matrix = jnp.zeros((n, n), x.dtype)
    # the last block overlaps the one before it, so that all blocks have one shape
    starts = [min(start, n - size) for start in range(0, n, size)]
    for row in starts:
        for column in starts:
            if row <= column:
                matrix = _fill(kernel, size, matrix, x, row, column)
    return matrix


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def _fill(
    kernel: Kernel, size: int, matrix: jax.Array, x: jax.Array, row: jax.Array, column: jax.Array
) -> jax.Array:
    rows = lax.dynamic_slice_in_dim(x, row, size)
    columns = lax.dynamic_slice_in_dim(x, column, size)
    return lax.dynamic_update_slice(matrix, kernel(rows, columns), (row, column))


def one_norm(matrix: jax.Array) -> float:
    """The 1-norm of the symmetric matrix whose upper triangle is given."""
    n = matrix.shape[0]
    size = min(FILL_BLOCK, n)
    total = jnp.zeros(n, matrix.dtype)
    done = 0
    for start in range(0, n, size):
        row = min(start, n - size)
        total = total + _absolute_sums(matrix, row, done, size)
        done = row + size
    return float(jnp.max(total))


@partial(jax.jit, static_argnums=(3,))
def _absolute_sums(matrix: jax.Array, row: jax.Array, done: jax.Array, size: int) -> jax.Array:
    """What rows ``row`` to ``row + size``, but for those already done, add to the column sums."""
    block = lax.dynamic_slice_in_dim(matrix, row, size)
    rows = row + jnp.arange(size)[:, None]
    columns = jnp.arange(matrix.shape[0])[None, :]
    block = jnp.where((columns >= rows) & (rows >= done), jnp.abs(block), 0.0)
    mirrored = jnp.where(columns > rows, block, 0.0).sum(axis=1)
    own = lax.dynamic_update_slice(jnp.zeros(matrix.shape[0], matrix.dtype), mirrored, (row,))
    return block.sum(axis=0) + own


@partial(jax.jit, donate_argnums=(0,))
def factorise(matrix: jax.Array, shift: jax.Array) -> jax.Array:
    """R of matrix + shift I = R^T R, from the upper triangle; NaN if not positive definite."""
    rows = jnp.arange(matrix.shape[0])
    matrix = matrix.at[rows, rows].add(shift)
    return lax.linalg.cholesky(matrix.T, symmetrize_input=False).T


@jax.jit
def solve(factor: jax.Array, right: jax.Array) -> jax.Array:
    """M^{-1} times the columns of ``right``."""
    half = lax.linalg.triangular_solve(factor.T, right, left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor.T, half, left_side=True, lower=True, transpose_a=True)


def inverse_diagonal(factor: jax.Array) -> jax.Array:
    """[M^{-1}]_ii, the sums of squares of the columns of the inverse of R^T."""
    n = factor.shape[0]
    edges = [n * part // PARTS for part in range(PARTS + 1)]
    found = []
    for start, stop in pairwise(edges):
        if stop > start:
            corner = factor if start == 0 else _corner(factor, start)
            size = min(COLUMNS, stop - start)
            for column in range(start, stop, size):
                first = min(column, stop - size) - start
                squares = _column_squares(corner, jnp.asarray(first), size)
                found.append(squares[column - start - first :])
            del corner
    return jnp.concatenate(found)


@partial(jax.jit, static_argnums=(1,))
def _corner(factor: jax.Array, start: int) -> jax.Array:
    return factor[start:, start:]


@partial(jax.jit, static_argnums=(2,))
def _column_squares(corner: jax.Array, first: jax.Array, size: int) -> jax.Array:
    rows = jnp.arange(corner.shape[0])[:, None]
    unit = (rows == first + jnp.arange(size)[None, :]).astype(corner.dtype)
    columns = lax.linalg.triangular_solve(corner.T, unit, left_side=True, lower=True)
    return jnp.einsum("ij,ij->j", columns, columns)
