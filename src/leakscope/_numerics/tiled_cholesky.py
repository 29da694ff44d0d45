"""Cholesky factor, its inverse and the inverse of the matrix, in place, in tiles of gemm.

The same results as LAPACK's potrf, trtri and lauum, for sizes at which a threaded OpenBLAS crashes
in them or returns wrong entries (docs/linear_algebra.md).  LAPACK is called on diagonal tiles only;
all other work is gemm.  The threads are our own, a tile each, and the library's are one: two
libraries' threads that wait for work at full speed cost more than they do on a busy machine.

All functions work on the lower triangle of a Fortran-ordered array and leave the strict upper
triangle alone, which holds the matrix itself (:mod:`leakscope._numerics.cholesky`).
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import ForEach, side_by_side

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = blas
_lapack: Any = lapack

# Columns of a tile, small enough that what LAPACK does on one thread in the diagonal tiles does not
# count, and rows of what one thread does of a block column, enough that gemm runs at full speed:
# 1.2 times LAPACK's time on one core, where squares of 384 took 1.4 (benchmarks/tiled_cholesky.py).
TILE = 256
ROWS = 4


def cholesky_in_place(packed: FloatArray) -> int:
    """Turn M into L; 0, or the order of the leading minor that is not positive definite.

    Left-looking: a block column less what the finished columns account for, by gemm; its top tile
    by potrf; the rest by trsm, tile by tile.
    """
    with side_by_side() as for_each:
        for start, stop in tiles(len(packed)):
            done = packed[start:stop, :start]
            left = packed[start:stop, start:stop] - _own_products(done.T, for_each)
            corner, info = _lapack.dpotrf(np.asfortranarray(left), lower=1, clean=1, overwrite_a=1)
            if info > 0:
                return start + int(info)
            _put_lower(packed, start, stop, corner)
            rest = even_parts(stop, len(packed))
            for_each(partial(_rows_of_factor, packed, done, corner), rest)
    return 0


def _rows_of_factor(
    packed: FloatArray, done: FloatArray, corner: FloatArray, tile: tuple[int, int]
) -> None:
    """One tile of a block column, below the diagonal."""
    first, columns = done.shape[1], slice(done.shape[1], done.shape[1] + len(done))
    own = packed[slice(*tile)]
    # The product's transpose has the tile's own order, so that the difference is one pass.
    rest = own[:, columns] - (done @ own[:, :first].T).T
    own[:, columns] = _blas.dtrsm(1.0, corner, rest, side=1, lower=1, trans_a=1, overwrite_b=1)


def triangular_inverse_in_place(packed: FloatArray) -> int:
    """Turn L into W = L^{-1}; 0, or the place of a zero on the diagonal.

    From the last block column to the first: W_bk = -W_bb L_bk W_kk, with b all rows below.
    """
    with side_by_side() as for_each:
        for start, stop in reversed(tiles(len(packed))):
            corner, info = _lapack.dtrtri(
                np.array(np.tril(packed[start:stop, start:stop]), order="F"), lower=1, overwrite_c=1
            )
            if info > 0:
                return start + int(info)
            _put_lower(packed, start, stop, corner)
            # Transposed throughout, so that results are written in the order of the columns.
            below = np.empty((stop - start, len(packed) - stop))
            # Half as many rows: what stands above the diagonal in a square of them is done in vain.
            rest = tiles(len(packed), stop, ROWS // 2)
            for_each(partial(_rows_times, packed, corner, below), rest)
            # The longest first, so that no thread is left with one at the end.
            for_each(partial(_rows_of_inverse, packed, start, below), rest[::-1])
    return 0


def _rows_times(
    packed: FloatArray, corner: FloatArray, below: FloatArray, tile: tuple[int, int]
) -> None:
    """-(L_bk W_kk)^T for one tile of the rows below."""
    stop = len(packed) - below.shape[1]
    columns = packed[slice(*tile), stop - len(corner) : stop]
    below[:, tile[0] - stop : tile[1] - stop] = -(corner.T @ columns.T)


def _rows_of_inverse(
    packed: FloatArray, start: int, below: FloatArray, tile: tuple[int, int]
) -> None:
    """One tile of a block column of W."""
    stop, own = start + len(below), packed[slice(*tile)]
    first, last = tile[0] - stop, tile[1] - stop
    corner = np.asfortranarray(own[:, slice(*tile)])
    found = _blas.dtrmm(1.0, corner, below[:, first:last].T, lower=1)
    if first:
        found += (below[:, :first] @ own[:, stop : tile[0]].T).T
    own[:, start:stop] = found


def gram_in_place(packed: FloatArray) -> None:
    """Turn W into W^T W, one block row after another: a row needs those from itself on only."""
    with side_by_side() as for_each:
        for start, stop in tiles(len(packed)):
            panel = np.array(packed[start:, start:stop], order="F")
            panel[: stop - start] = np.tril(panel[: stop - start])
            for_each(partial(_columns_of_gram, packed, panel), even_parts(0, start))
            _put_lower(packed, start, stop, _own_products(panel, for_each))


def _columns_of_gram(packed: FloatArray, panel: FloatArray, tile: tuple[int, int]) -> None:
    """One tile of a block row of W^T W, left of the diagonal."""
    below = packed[len(packed) - len(panel) :, slice(*tile)]
    below[: panel.shape[1]] = (below.T @ panel).T


def _own_products(panel: FloatArray, for_each: ForEach) -> FloatArray:
    """P^T P for a (k, TILE) panel P, a part of its rows on each thread."""
    parts = even_parts(0, len(panel))
    found = np.zeros((len(parts), panel.shape[1], panel.shape[1]))

    def one(place: int) -> None:
        rows = panel[slice(*parts[place])]
        np.matmul(rows.T, rows, out=found[place])

    for_each(one, range(len(parts)))
    return np.asarray(found.sum(axis=0))


def lower_times(packed: FloatArray, vectors: FloatArray, *, absolute: bool = False) -> FloatArray:
    """L Z, or |L| Z, for the lower triangle L and (n, k) vectors Z, in O(n^2 k)."""
    found = np.zeros_like(vectors)
    for start, stop in tiles(len(packed)):
        corner, below = np.tril(packed[start:stop, start:stop]), packed[stop:, start:stop]
        if absolute:
            corner, below = np.abs(corner), np.abs(below)
        found[start:stop] += corner @ vectors[start:stop]
        found[stop:] += below @ vectors[start:stop]
    return found


def lower_transposed_times(packed: FloatArray, vectors: FloatArray) -> FloatArray:
    """L^T Z for the lower triangle L and (n, k) vectors Z, in O(n^2 k)."""
    found = np.empty_like(vectors)
    for start, stop in tiles(len(packed)):
        corner = np.tril(packed[start:stop, start:stop])
        found[start:stop] = corner.T @ vectors[start:stop]
        found[start:stop] += packed[stop:, start:stop].T @ vectors[stop:]
    return found


def tiles(size: int, begin: int = 0, count: int = 1) -> list[tuple[int, int]]:
    """Where tiles, or so many tiles together, begin and end."""
    width = count * TILE
    return [(start, min(start + width, size)) for start in range(begin, size, width)]


def even_parts(begin: int, end: int) -> list[tuple[int, int]]:
    """An even number of equal parts of at most `ROWS` tiles, so that two threads end together."""
    count = 2 * -(-(end - begin) // (2 * ROWS * TILE))
    edges = [begin + (end - begin) * place // count for place in range(count + 1)] if count else []
    return [(first, last) for first, last in itertools.pairwise(edges) if last > first]


def _put_lower(packed: FloatArray, start: int, stop: int, corner: FloatArray) -> None:
    """Write the lower triangle of a diagonal tile, and leave the matrix above it."""
    below = np.tri(stop - start, dtype=bool)
    np.copyto(packed[start:stop, start:stop], corner, where=below)
