"""One Cholesky factorisation, and what can be read off it without a second n x n array.

LAPACK works on one triangle and leaves the other alone.  That is used here on purpose: while the
lower triangle of the buffer turns from the matrix into its factor L, into L^{-1} and, where it is
wanted, into the inverse, the strict upper triangle still holds the matrix.  Products of the two
cost no extra memory, and ``refill`` brings the matrix back for another diagonal.

The diagonal of the inverse needs L^{-1} only, one third of n^3 operations (as many as the
factorisation) instead of the two thirds of the whole inverse.

Beyond `ONE_PIECE` rows the work is done in tiles, since a threaded OpenBLAS crashes or errs in
LAPACK's own routines there (:mod:`leakscope._numerics.tiled_cholesky`); and every large result is
checked against its definition before it is handed on (:mod:`leakscope._numerics.probes`).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from leakscope._numerics import probes, tiled_cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import side_by_side

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_lapack: Any = lapack

# Columns handled at once where two triangles are combined: large enough for vector speed, small
# enough that the temporaries stay near the cache.
BLOCK_COLUMNS = 128

# Up to this many rows LAPACK's own routines are used: quicker, and right wherever they were tried
# (OpenBLAS's potrf fails from 16,000 on).
ONE_PIECE = 8192


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
        info = tiled_cholesky.cholesky_in_place(packed)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive definite")
    if probed:
        got = tiled_cholesky.lower_times(
            packed, tiled_cholesky.lower_transposed_times(packed, vectors)
        )
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
        got = tiled_cholesky.lower_times(lower, tiled_cholesky.lower_transposed_times(lower, found))
        sizes = _row_sizes(lower)
        scale = sizes * float(np.max(sizes @ np.abs(found)))
        wanted = right_hand_side.reshape(found.shape)
        probes.require_close(got, wanted, scale, "solution of the kernel's equations")
    return found.reshape(right_hand_side.shape)


def condition_number(factor: Factor) -> float:
    """Estimate of the 1-norm condition number of M (LAPACK's pocon, O(n^2))."""
    reciprocal, info = _lapack.dpocon(factor.packed, factor.norm, uplo="L")
    if info != 0 or reciprocal <= 0.0:
        return float("inf")
    return 1.0 / float(reciprocal)


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
        for start, stop in _column_blocks(self.packed):
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
        image = tiled_cholesky.lower_times(lower, vectors)
    if len(lower) <= ONE_PIECE:
        packed, info = _lapack.dtrtri(lower, lower=1, overwrite_c=int(overwrite))
    else:
        packed = lower if overwrite else np.array(lower, order="F")
        info = tiled_cholesky.triangular_inverse_in_place(packed)
    if info != 0:
        raise np.linalg.LinAlgError(f"the factor's diagonal entry {info} is zero")
    if probed:
        got = tiled_cholesky.lower_times(packed, image)
        # What a rounded row of L can move: the sizes of the rows of L through |W|.
        scale = tiled_cholesky.lower_times(packed, sizes[:, None], absolute=True)[:, 0]
        probes.require_close(got, vectors, scale, "inverse of the Cholesky factor")
    return InverseFactor(packed=packed)


def refill(packed: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Bring back the symmetric matrix from the strict upper triangle, with this diagonal.

    In place: what the lower triangle holds is lost.
    """
    for start, stop in _column_blocks(packed):
        packed[stop:, start:stop] = packed[start:stop, stop:].T
        corner = np.triu(packed[start:stop, start:stop], 1)
        packed[start:stop, start:stop] = corner + corner.T
    np.fill_diagonal(packed, diagonal)
    return packed


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
        for start, stop in _column_blocks(self.packed):
            self.packed[start:stop, stop:] = self.packed[stop:, start:stop].T
            corner = np.tril(self.packed[start:stop, start:stop], -1)
            corner += corner.T
            np.fill_diagonal(corner, self.packed[start:stop, start:stop].diagonal())
            self.packed[start:stop, start:stop] = corner
        return self.packed

    def off_diagonal_products(self) -> tuple[FloatArray, FloatArray]:
        """For each i, sum over j != i of M_ij [M^{-1}]_ij, and the same sum of absolute values."""
        sums = np.zeros(len(self.packed))
        magnitudes = np.zeros(len(self.packed))
        for start, stop in _column_blocks(self.packed):
            square = self.packed[start:stop, start:stop]
            corner = np.tril(square, -1) * np.triu(square, 1).T
            below = self.packed[stop:, start:stop] * self.packed[start:stop, stop:].T
            sums[start:stop] += corner.sum(axis=0) + corner.sum(axis=1) + below.sum(axis=0)
            sums[stop:] += below.sum(axis=1)
            np.abs(corner, out=corner)
            np.abs(below, out=below)
            magnitudes[start:stop] += corner.sum(axis=0) + corner.sum(axis=1) + below.sum(axis=0)
            magnitudes[stop:] += below.sum(axis=1)
        return sums, magnitudes


def inverse(factor: Factor | InverseFactor, *, overwrite: bool = False) -> PackedInverse:
    """Invert M, by LAPACK's trtri (unless it has been done) and lauum.

    With ``overwrite`` the factor's memory is used and the factor is lost.
    """
    if isinstance(factor, Factor):
        factor, overwrite = inverse_factor(factor, overwrite=overwrite), True
    lower, probed = factor.packed, len(factor.packed) >= probes.PROBED_FROM
    if probed:
        vectors = probes.signs(len(lower))
        image = tiled_cholesky.lower_times(lower, vectors)
        wanted = tiled_cholesky.lower_transposed_times(lower, image)
    if len(lower) <= ONE_PIECE:
        packed, _ = _lapack.dlauum(lower, lower=1, overwrite_c=int(overwrite))
    else:
        packed = lower if overwrite else np.array(lower, order="F")
        tiled_cholesky.gram_in_place(packed)
    if probed:
        diagonal = np.diagonal(packed).copy()
        got = tiled_cholesky.lower_times(packed, vectors) - diagonal[:, None] * vectors
        got += tiled_cholesky.lower_transposed_times(packed, vectors)
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
    for start, stop in _column_blocks(lower):
        corner = np.tril(lower[start:stop, start:stop])
        squares[start:stop] += np.einsum("ij,ij->i", corner, corner)
        below = lower[stop:, start:stop]
        squares[stop:] += np.einsum("ij,ij->i", below, below)
    return np.sqrt(squares)


def _column_blocks(packed: FloatArray) -> list[tuple[int, int]]:
    size = len(packed)
    return [(start, min(start + BLOCK_COLUMNS, size)) for start in range(0, size, BLOCK_COLUMNS)]
