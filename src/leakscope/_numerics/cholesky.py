"""One Cholesky factorisation, and what can be read off it without a second n x n array.

LAPACK works on one triangle and leaves the other alone.  That is used here on purpose: while the
lower triangle of the buffer turns from the matrix into its factor L, into L^{-1} and, where it is
wanted, into the inverse, the strict upper triangle still holds the matrix.

The diagonal of the inverse needs L^{-1} only, one third of n^3 operations (as many as the
factorisation) instead of the two thirds of the whole inverse.

Beyond `ONE_PIECE` rows the work is done in tiles of gemm, with the same results as LAPACK's potrf,
trtri and lauum, since a threaded OpenBLAS crashes in them there or returns wrong entries
(docs/linear_algebra.md).  LAPACK is called on diagonal tiles only.  The threads are our own, a tile
each, and the library's are one: two libraries' threads that wait for work at full speed cost more
than they do on a busy machine.  Every large result is checked against its definition before it is
handed on (:mod:`leakscope._numerics.probes`).
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from leakscope._numerics import probes
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import ForEach, side_by_side

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = blas
_lapack: Any = lapack

# Columns handled at once where two triangles are combined: large enough for vector speed, small
# enough that the temporaries stay near the cache.
BLOCK_COLUMNS = 128

# Up to this many rows LAPACK's own routines are used: quicker, and right wherever they were tried
# (OpenBLAS's potrf fails from 16,000 on).
ONE_PIECE = 8192

# Columns of a tile, small enough that what LAPACK does on one thread in the diagonal tiles does not
# count, and rows of what one thread does of a block column, enough that gemm runs at full speed:
# 1.2 times LAPACK's time on one core, where squares of 384 took 1.4 (benchmarks/tiled_cholesky.py).
TILE = 256
ROWS = 4


@dataclass(frozen=True)
class Factor:
    """``M = L L^T``, as LAPACK's potrf leaves it.

    Attributes
    ----------
    packed
        Fortran-ordered; L in the lower triangle, M's entries in the strict upper one.
    norm
        The 1-norm of M, an upper bound on its largest eigenvalue.
    """

    packed: FloatArray
    norm: float


def factorise(matrix: FloatArray, *, overwrite: bool = False) -> Factor:
    """Factorise a symmetric positive definite matrix.

    Parameters
    ----------
    matrix
        Symmetric, float64.
    overwrite
        Use the matrix's own memory; the matrix is lost.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the matrix is not positive definite to working precision.
    """
    # The transpose of a symmetric C-ordered array is the same matrix in Fortran order, free.
    fortran = matrix.T if matrix.flags.c_contiguous else matrix
    norm = float(_lapack.dlange("1", fortran))
    probed = len(fortran) >= probes.PROBED_FROM
    if probed:
        vectors, sizes = probes.signs(len(fortran)), np.sqrt(np.abs(np.diagonal(fortran)))
        wanted = fortran @ vectors
    if len(fortran) <= ONE_PIECE:
        packed, info = _lapack.dpotrf(fortran, lower=1, clean=0, overwrite_a=int(overwrite))
    else:
        packed = fortran if overwrite and _writable(fortran) else np.array(fortran, order="F")
        info = cholesky_in_place(packed)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive definite")
    if probed:
        got = lower_times(packed, lower_transposed_times(packed, vectors))
        scale = sizes * float(np.linalg.norm(sizes))
        probes.require_close(got, wanted, scale, "Cholesky factor of the kernel matrix")
    return Factor(packed=packed, norm=norm)


def solve(factor: Factor, right_hand_side: FloatArray) -> FloatArray:
    """``M^{-1} b`` for a vector or for the columns of a matrix."""
    lower = factor.packed
    with side_by_side() if len(lower) > ONE_PIECE else nullcontext():
        solution, info = _lapack.dpotrs(lower, right_hand_side, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError(f"dpotrs refused its argument number {-info}")
    found = np.asarray(solution, dtype=np.float64).reshape(len(lower), -1)
    if len(lower) >= probes.PROBED_FROM:
        got = lower_times(lower, lower_transposed_times(lower, found))
        sizes = _row_sizes(lower)
        scale = sizes * float(np.max(sizes @ np.abs(found)))
        wanted = right_hand_side.reshape(found.shape)
        probes.require_close(got, wanted, scale, "solution of the kernel's equations")
    return found.reshape(right_hand_side.shape)


@dataclass(frozen=True)
class InverseFactor:
    """``W = L^{-1}``, so that ``M^{-1} = W^T W``, with M beside it.

    Attributes
    ----------
    packed
        Fortran-ordered; W in the lower triangle, M's entries in the strict upper one.
    """

    packed: FloatArray

    def inverse_diagonal(self) -> FloatArray:
        """The n numbers [M^{-1}]_ii, column sums of W^2: sums of squares, so nothing cancels."""
        size = len(self.packed)
        total = np.empty(size)
        for start, stop in spans(0, len(self.packed), BLOCK_COLUMNS):
            corner = np.tril(self.packed[start:stop, start:stop])
            # Columns are contiguous: as rows of the transpose they are summed at memory speed.
            below = self.packed[stop:, start:stop].T
            total[start:stop] = np.einsum("ij,ij->j", corner, corner)
            total[start:stop] += np.einsum("ij,ij->i", below, below)
        return total


def inverse_factor(factor: Factor, *, overwrite: bool = False) -> InverseFactor:
    """Invert L by LAPACK's trtri, the quickest way on a CPU to the diagonal of M^{-1}.

    With ``overwrite`` the factor's memory is used and the factor is lost.
    """
    lower, probed = factor.packed, len(factor.packed) >= probes.PROBED_FROM
    if probed:
        vectors, sizes = probes.signs(len(lower)), _row_sizes(lower)
        image = lower_times(lower, vectors)
    if len(lower) <= ONE_PIECE:
        packed, info = _lapack.dtrtri(lower, lower=1, overwrite_c=int(overwrite))
    else:
        packed = lower if overwrite else np.array(lower, order="F")
        info = triangular_inverse_in_place(packed)
    if info != 0:
        raise np.linalg.LinAlgError(f"the factor's diagonal entry {info} is zero")
    if probed:
        got = lower_times(packed, image)
        # What a rounded row of L can move: the sizes of the rows of L through |W|.
        scale = lower_times(packed, sizes[:, None], absolute=True)[:, 0]
        probes.require_close(got, vectors, scale, "inverse of the Cholesky factor")
    return InverseFactor(packed=packed)


@dataclass(frozen=True)
class PackedInverse:
    """The inverse of a symmetric matrix and the matrix itself, in the two triangles of one array.

    Attributes
    ----------
    packed
        Lower triangle with the diagonal: M^{-1}.  Strict upper triangle: M.
    """

    packed: FloatArray

    def diagonal(self) -> FloatArray:
        """The n numbers [M^{-1}]_ii."""
        return np.ascontiguousarray(np.diagonal(self.packed))

    def full(self) -> FloatArray:
        """M^{-1} as a symmetric matrix, in place: M's entries are lost."""
        for start, stop in spans(0, len(self.packed), BLOCK_COLUMNS):
            self.packed[start:stop, stop:] = self.packed[stop:, start:stop].T
            corner = np.tril(self.packed[start:stop, start:stop], -1)
            corner += corner.T
            np.fill_diagonal(corner, self.packed[start:stop, start:stop].diagonal())
            self.packed[start:stop, start:stop] = corner
        return self.packed


def inverse(factor: Factor | InverseFactor, *, overwrite: bool = False) -> PackedInverse:
    """Invert M, by LAPACK's trtri (unless it has been done) and lauum.

    With ``overwrite`` the factor's memory is used and the factor is lost.
    """
    if isinstance(factor, Factor):
        factor, overwrite = inverse_factor(factor, overwrite=overwrite), True
    lower, probed = factor.packed, len(factor.packed) >= probes.PROBED_FROM
    if probed:
        vectors = probes.signs(len(lower))
        image = lower_times(lower, vectors)
        wanted = lower_transposed_times(lower, image)
    if len(lower) <= ONE_PIECE:
        packed, _ = _lapack.dlauum(lower, lower=1, overwrite_c=int(overwrite))
    else:
        packed = lower if overwrite else np.array(lower, order="F")
        gram_in_place(packed)
    if probed:
        diagonal = np.diagonal(packed).copy()
        got = lower_times(packed, vectors) - diagonal[:, None] * vectors
        got += lower_transposed_times(packed, vectors)
        sizes = np.sqrt(diagonal)
        scale = sizes * float(np.linalg.norm(sizes))
        probes.require_close(got, wanted, scale, "inverse of the kernel matrix")
    return PackedInverse(packed=packed)


def _writable(matrix: FloatArray) -> bool:
    """Whether work may be done in the array itself: as LAPACK's own wrappers decide it."""
    return bool(matrix.flags.f_contiguous and matrix.flags.writeable and matrix.dtype == np.float64)


def _row_sizes(lower: FloatArray) -> FloatArray:
    """The lengths of the rows of L: the roots of M's diagonal."""
    squares = np.zeros(len(lower))
    for start, stop in spans(0, len(lower), BLOCK_COLUMNS):
        corner = np.tril(lower[start:stop, start:stop])
        squares[start:stop] += np.einsum("ij,ij->i", corner, corner)
        below = lower[stop:, start:stop]
        squares[stop:] += np.einsum("ij,ij->i", below, below)
    return np.sqrt(squares)


def spans(begin: int, end: int, width: int) -> list[tuple[int, int]]:
    """Where pieces of ``width`` begin and end; the last may be shorter."""
    return [(start, min(start + width, end)) for start in range(begin, end, width)]


# ---- in tiles: on the lower triangle, with the matrix left alone in the strict upper one ----


def cholesky_in_place(packed: FloatArray) -> int:
    """Turn M into L; 0, or the order of the leading minor that is not positive definite.

    Left-looking: a block column less what the finished columns account for, by gemm; its top tile
    by potrf; the rest by trsm, tile by tile.
    """
    with side_by_side() as for_each:
        for start, stop in spans(0, len(packed), TILE):
            done = packed[start:stop, :start]
            left = packed[start:stop, start:stop] - _own_products(done.T, for_each)
            corner, info = _lapack.dpotrf(np.asfortranarray(left), lower=1, clean=1, overwrite_a=1)
            if info > 0:
                return start + int(info)
            _put_lower(packed, start, stop, corner)
            rest = _even_parts(stop, len(packed))
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
        for start, stop in reversed(spans(0, len(packed), TILE)):
            corner, info = _lapack.dtrtri(
                np.array(np.tril(packed[start:stop, start:stop]), order="F"), lower=1, overwrite_c=1
            )
            if info > 0:
                return start + int(info)
            _put_lower(packed, start, stop, corner)
            # Transposed throughout, so that results are written in the order of the columns.
            below = np.empty((stop - start, len(packed) - stop))
            # Half as many rows: what stands above the diagonal in a square of them is done in vain.
            rest = spans(stop, len(packed), ROWS // 2 * TILE)
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
        for start, stop in spans(0, len(packed), TILE):
            panel = np.array(packed[start:, start:stop], order="F")
            panel[: stop - start] = np.tril(panel[: stop - start])
            for_each(partial(_columns_of_gram, packed, panel), _even_parts(0, start))
            _put_lower(packed, start, stop, _own_products(panel, for_each))


def _columns_of_gram(packed: FloatArray, panel: FloatArray, tile: tuple[int, int]) -> None:
    """One tile of a block row of W^T W, left of the diagonal."""
    below = packed[len(packed) - len(panel) :, slice(*tile)]
    below[: panel.shape[1]] = (below.T @ panel).T


def _own_products(panel: FloatArray, for_each: ForEach) -> FloatArray:
    """P^T P for a (k, TILE) panel P, a part of its rows on each thread."""
    parts = _even_parts(0, len(panel))
    found = np.zeros((len(parts), panel.shape[1], panel.shape[1]))

    def one(place: int) -> None:
        rows = panel[slice(*parts[place])]
        np.matmul(rows.T, rows, out=found[place])

    for_each(one, range(len(parts)))
    return np.asarray(found.sum(axis=0))


def lower_times(packed: FloatArray, vectors: FloatArray, *, absolute: bool = False) -> FloatArray:
    """L Z, or |L| Z, for the lower triangle L and (n, k) vectors Z, in O(n^2 k)."""
    found = np.zeros_like(vectors)
    for start, stop in spans(0, len(packed), TILE):
        corner, below = np.tril(packed[start:stop, start:stop]), packed[stop:, start:stop]
        if absolute:
            corner, below = np.abs(corner), np.abs(below)
        found[start:stop] += corner @ vectors[start:stop]
        found[stop:] += below @ vectors[start:stop]
    return found


def lower_transposed_times(packed: FloatArray, vectors: FloatArray) -> FloatArray:
    """L^T Z for the lower triangle L and (n, k) vectors Z, in O(n^2 k)."""
    found = np.empty_like(vectors)
    for start, stop in spans(0, len(packed), TILE):
        corner = np.tril(packed[start:stop, start:stop])
        found[start:stop] = corner.T @ vectors[start:stop]
        found[start:stop] += packed[stop:, start:stop].T @ vectors[stop:]
    return found


def _even_parts(begin: int, end: int) -> list[tuple[int, int]]:
    """An even number of equal parts of at most `ROWS` tiles, so that two threads end together."""
    count = 2 * -(-(end - begin) // (2 * ROWS * TILE))
    edges = [begin + (end - begin) * place // count for place in range(count + 1)] if count else []
    return [(first, last) for first, last in itertools.pairwise(edges) if last > first]


def _put_lower(packed: FloatArray, start: int, stop: int, corner: FloatArray) -> None:
    """Write the lower triangle of a diagonal tile, and leave the matrix above it."""
    below = np.tri(stop - start, dtype=bool)
    np.copyto(packed[start:stop, start:stop], corner, where=below)
