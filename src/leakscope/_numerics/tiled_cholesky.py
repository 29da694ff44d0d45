"""Cholesky factor, its inverse and the inverse of the matrix, in place, in tiles of gemm.

The same results as LAPACK's potrf, trtri and lauum, for sizes at which a threaded OpenBLAS crashes
in them or returns wrong entries (docs/linear_algebra.md).  LAPACK is called on diagonal tiles only;
all other work is gemm, which is right, and three quarters and more of the arithmetic anyway.

All functions work on the lower triangle of a Fortran-ordered array and leave the strict upper
triangle alone, which holds the matrix itself (:mod:`leakscope._numerics.cholesky`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from leakscope._numerics.arrays import FloatArray

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = blas
_lapack: Any = lapack

# Columns of a tile: wide enough that gemm runs at full speed, small enough that what LAPACK does
# on one thread in the diagonal tiles does not count.
TILE = 384


def cholesky_in_place(packed: FloatArray) -> int:
    """Turn M into L; 0, or the order of the leading minor that is not positive definite.

    Left-looking: a block column less what the finished columns account for, one gemm; its top tile
    by potrf; the rest by trsm.
    """
    for start, stop in tiles(len(packed)):
        panel = packed[start:, start:stop]
        if start:
            # The product's transpose has the panel's own order: the difference is one pass.
            panel = panel - (packed[start:stop, :start] @ packed[start:, :start].T).T
        width = stop - start
        corner, info = _lapack.dpotrf(
            np.array(panel[:width], order="F"), lower=1, clean=1, overwrite_a=1
        )
        if info > 0:
            return start + int(info)
        _put_lower(packed, start, stop, corner)
        for first, last in tiles(len(packed) - stop):
            rows = np.array(panel[width + first : width + last], order="F")
            packed[stop + first : stop + last, start:stop] = _blas.dtrsm(
                1.0, corner, rows, side=1, lower=1, trans_a=1, overwrite_b=1
            )
    return 0


def triangular_inverse_in_place(packed: FloatArray) -> int:
    """Turn L into W = L^{-1}; 0, or the place of a zero on the diagonal.

    From the last block column to the first: W_bk = -W_bb L_bk W_kk, with b all rows below.
    """
    for start, stop in reversed(tiles(len(packed))):
        corner, info = _lapack.dtrtri(
            np.array(np.tril(packed[start:stop, start:stop]), order="F"), lower=1, overwrite_c=1
        )
        if info > 0:
            return start + int(info)
        _put_lower(packed, start, stop, corner)
        if stop == len(packed):
            continue
        # Transposed throughout, so that results are written in the order of the columns.
        below = -(corner.T @ packed[stop:, start:stop].T)
        for first, last in reversed(tiles(len(packed) - stop)):
            rows = slice(stop + first, stop + last)
            found = below[:, first:last] @ np.tril(packed[rows, rows]).T
            if first:
                found += below[:, :first] @ packed[rows, stop : stop + first].T
            packed[rows, start:stop] = found.T
    return 0


def gram_in_place(packed: FloatArray) -> None:
    """Turn W into W^T W, one block row after another: a row needs those from itself on only."""
    for start, stop in tiles(len(packed)):
        panel = np.array(packed[start:, start:stop], order="F")
        panel[: stop - start] = np.tril(panel[: stop - start])
        corner = panel.T @ np.array(panel, order="C")
        if start:
            packed[start:stop, :start] = (packed[start:, :start].T @ panel).T
        _put_lower(packed, start, stop, corner)


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


def tiles(size: int) -> list[tuple[int, int]]:
    """Where tiles begin and end."""
    return [(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def _put_lower(packed: FloatArray, start: int, stop: int, corner: FloatArray) -> None:
    """Write the lower triangle of a diagonal tile, and leave the matrix above it."""
    below = np.tri(stop - start, dtype=bool)
    np.copyto(packed[start:stop, start:stop], corner, where=below)
