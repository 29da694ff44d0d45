"""The inverse's diagonal of a matrix that memory does not hold: its Cholesky factor is in a file.

M itself is never stored.  First pass, j = 0, 1, ...: the block column M_{j:, j} is made, less
L_{j:, k} L_{jk}^T of all k < j; its top tile by potrf, the rest by trsm; then it is written.
Second pass, from the last j: X = L^{-1} E_j, forward substitution down the block columns, whose
squares sum to [M^{-1}]_ii.  With blocks of w columns each pass reads n^3/(6 w) numbers and holds
one block column and a few pieces of another.

What is read off is checked as in :mod:`leakscope._numerics.cholesky`.  After every block column the
state is written too, so that a run that was stopped goes on from there.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from leakscope._numerics import probes
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cholesky import spans
from leakscope._numerics.cores import ForEach, side_by_side

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = blas
_lapack: Any = lapack

# Rows that one thread reads and multiplies at once.
PIECE = 2048

FACTOR, STATE = "factor.bin", "state.npz"

Columns = Callable[[int, int], FloatArray]


@dataclass(frozen=True)
class DiskInverse:
    """What is read off M^{-1}.

    Attributes
    ----------
    diagonal
        (n,) [M^{-1}]_ii.
    solution
        (n, C) M^{-1} times the right-hand sides.
    norm
        The 1-norm of M.
    """

    diagonal: FloatArray
    solution: FloatArray
    norm: float


def file_bytes(size: int, width: int) -> int:
    """What the factor's file takes: its lower triangle, with whole tiles on the diagonal."""
    return sum(8 * (size - start) * (stop - start) for start, stop in spans(0, size, width))


def inverse_on_disk(
    columns: Columns,
    right: FloatArray,
    *,
    width: int,
    folder: Path,
    advanced: Callable[[float], None] = lambda share: None,
) -> DiskInverse:
    """Factorise M block column by block column, and read off its inverse.

    Parameters
    ----------
    columns
        Called with start and stop: rows from ``start`` on, columns start to stop, of M.
    right
        (n, C) right-hand sides.
    width
        w, the columns of a block; that of the state where there is one.
    folder
        Where factor and state are, from a run of the same M that was stopped, or will be.
    advanced
        Called with the share of the work that is done.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where M is not positive definite to working precision.
    WrongProductError
        Where the library's arithmetic is not what it should be.
    """
    state = _State.begun(right, width, folder)
    blocks = spans(0, len(right), state.width)
    work = _work(blocks)
    with _FactorFile(folder / FACTOR, blocks) as file, side_by_side() as for_each:
        for place in range(state.factorised, len(blocks)):
            _factor_column(file, place, columns, state, for_each)
            state.factorised = place + 1
            state.write(folder)
            advanced(work[place] / work[-1])
        scale = state.sizes * float(np.linalg.norm(state.sizes))
        probes.require_close(state.got, state.wanted, scale, "Cholesky factor on disk")
        for place in reversed(range(state.inverted)):
            _inverse_column(file, place, state, for_each)
            state.inverted = place
            state.write(folder)
            advanced(work[-1 - place] / work[-1])
    return DiskInverse(state.diagonal, state.solution, float(state.sums.max()))


@dataclass
class _State:
    """Everything but the factor, all of it of n rows; see `_factor_column` for the meaning."""

    width: int
    factorised: int
    inverted: int
    half: FloatArray
    solution: FloatArray
    diagonal: FloatArray
    sums: FloatArray
    sizes: FloatArray
    lengths: FloatArray
    wanted: FloatArray
    got: FloatArray
    image: FloatArray

    @classmethod
    def begun(cls, right: FloatArray, width: int, folder: Path) -> _State:
        """The state that was written, or the one to start from."""
        path, size = folder / STATE, len(right)
        if path.exists():
            with np.load(path, allow_pickle=False) as stored:
                found: dict[str, Any] = {name: stored[name] for name in stored.files}
            counts = ("width", "factorised", "inverted")
            return cls(**found | {name: int(found[name]) for name in counts})
        pairs = [np.zeros((size, probes.VECTORS)) for _ in range(3)]
        lines = [np.zeros(size) for _ in range(4)]
        count = len(spans(0, size, width))
        return cls(width, 0, count, right.copy(), np.zeros_like(right), *lines, *pairs)

    def write(self, folder: Path) -> None:
        """All of it, or what was there before."""
        new = folder / f"new-{STATE}"
        np.savez(new, **vars(self))
        os.replace(new, folder / STATE)


class _FactorFile:
    """Block columns of L, one after another, rows from each block's own on, as they are in C."""

    def __init__(self, path: Path, blocks: list[tuple[int, int]]) -> None:
        self.blocks, size = blocks, blocks[-1][1]
        sizes = [8 * (size - start) * (stop - start) for start, stop in blocks]
        self._offsets = [0, *itertools.accumulate(sizes)]
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(self._file).st_size != self._offsets[-1]:
            # A disk that is too small says so now, not after hours.
            getattr(os, "posix_fallocate", _lengthen)(self._file, 0, self._offsets[-1])

    def __enter__(self) -> _FactorFile:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)

    def read(self, place: int, first: int, last: int) -> FloatArray:
        """Rows first to last of a block column."""
        start, stop = self.blocks[place]
        found = np.empty((last - first, stop - start))
        offset = self._offsets[place] + 8 * (first - start) * (stop - start)
        self._whole(os.preadv, found, offset)
        return found

    def write(self, place: int, column: FloatArray) -> None:
        """A whole block column, safe on the disk before its state is."""
        for first, last in spans(0, len(column), PIECE):
            offset = self._offsets[place] + 8 * first * column.shape[1]
            self._whole(os.pwritev, column[first:last], offset)
        os.fsync(self._file)

    def _whole(self, transfer: Callable[..., int], rows: FloatArray, offset: int) -> None:
        view = rows.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(view):
            moved = transfer(self._file, [view[done:]], offset + done)
            if moved == 0:
                raise OSError(f"the factor's file is shorter than it was: {offset + done} bytes")
            done += moved


def _factor_column(
    file: _FactorFile, place: int, columns: Columns, state: _State, for_each: ForEach
) -> None:
    """One block column of L; the sums over M and L that the checks need; one step of L z = b."""
    start, stop = file.blocks[place]
    column = np.ascontiguousarray(columns(start, stop))
    own, rest = slice(start, stop), slice(stop, None)
    signs, below = probes.signs(len(state.diagonal)), column[stop - start :]
    state.wanted[start:] += column @ signs[own]
    state.wanted[own] += below.T @ signs[rest]
    state.sums[own] += np.abs(column).sum(axis=0)
    state.sums[rest] += np.abs(below).sum(axis=1)
    state.sizes[own] = np.sqrt(np.abs(np.diagonal(column)))
    for other in range(place):
        top = file.read(other, start, stop)
        work = partial(_less_products, file, other, column, start, top)
        for_each(work, spans(start, len(signs), PIECE))
    corner, info = _lapack.dpotrf(column[: stop - start].T, lower=1, clean=1)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"the leading minor of order {start + int(info)} is not positive definite"
        )
    column[: stop - start] = corner
    for_each(partial(_solve_rows, column, corner), spans(stop - start, len(column), PIECE))
    file.write(place, column)
    state.image[own] = column.T @ signs[start:]
    state.got[start:] += column @ state.image[own]
    state.lengths[own] = np.sqrt(np.einsum("ij,ij->j", column, column))
    state.half[own] = _blas.dtrsm(1.0, corner, state.half[own], lower=1)
    state.half[rest] -= below @ state.half[own]


def _less_products(
    file: _FactorFile,
    other: int,
    column: FloatArray,
    start: int,
    top: FloatArray,
    piece: tuple[int, int],
) -> None:
    column[piece[0] - start : piece[1] - start] -= file.read(other, *piece) @ top.T


def _solve_rows(column: FloatArray, corner: FloatArray, piece: tuple[int, int]) -> None:
    rows = column[slice(*piece)]
    rows[:] = _blas.dtrsm(1.0, corner, rows.T, lower=1).T


def _inverse_column(file: _FactorFile, place: int, state: _State, for_each: ForEach) -> None:
    """X = L^{-1} E_j for one block j: its part of the diagonal; one step of L^T a = z."""
    start, stop = file.blocks[place]
    size, width = len(state.diagonal), stop - start
    X = np.zeros((size - start, width))
    X[:width] = np.eye(width)
    for other in range(place, len(file.blocks)):
        first, last = file.blocks[other]
        corner = np.asfortranarray(file.read(other, first, last))
        solved = _blas.dtrsm(1.0, corner, X[first - start : last - start], lower=1)
        X[first - start : last - start] = solved
        for_each(partial(_less_image, file, other, X, start, solved), spans(last, size, PIECE))
    state.diagonal[start:stop] = np.einsum("ij,ij->j", X, X)
    signs, scale = probes.signs(size)[start:stop], np.abs(X).T @ state.lengths[start:]
    probes.require_close(X.T @ state.image[start:], signs, scale, "inverse of the factor on disk")
    left = state.half[start:stop].copy()
    for piece in spans(stop, size, PIECE):
        left -= file.read(place, *piece).T @ state.solution[slice(*piece)]
    corner = np.asfortranarray(file.read(place, start, stop))
    state.solution[start:stop] = _blas.dtrsm(1.0, corner, left, lower=1, trans_a=1)


def _less_image(
    file: _FactorFile,
    other: int,
    X: FloatArray,
    start: int,
    solved: FloatArray,
    piece: tuple[int, int],
) -> None:
    X[piece[0] - start : piece[1] - start] -= file.read(other, *piece) @ solved


def _lengthen(file: int, offset: int, length: int) -> None:
    """Where the system has no posix_fallocate."""
    os.ftruncate(file, offset + length)


def _work(blocks: list[tuple[int, int]]) -> list[float]:
    """Products that are done after each block of the first pass, and then of the second."""
    size = blocks[-1][1]
    first = [float(start * (size - start) * (stop - start)) for start, stop in blocks]
    second = [
        float(sum((size - low) * (high - low) for low, high in blocks[place:]) * (stop - start))
        for place, (start, stop) in reversed([*enumerate(blocks)])
    ]
    return [*itertools.accumulate([*first, *second])]
