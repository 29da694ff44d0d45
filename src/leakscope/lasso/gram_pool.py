"""Inner products of the columns met so far, kept while supports come and go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory

IndexArray = NDArray[np.int64]

# A pivot this small, relative to its column, means that the column depends on earlier ones.
DEPENDENT = 1e-11


class GramPool:
    """X_W'X_W for a growing set W of columns, so that no inner product is taken twice.

    The whole p x p matrix is never formed: it costs more than most solves.  W is what has been
    active at some moment; a pool may serve many problems with the same X.
    """

    def __init__(self, design: FloatArray, l2: float = 0.0) -> None:
        self.design = design
        self.l2 = l2
        self.records, self.features = design.shape
        self.longest = float(np.sqrt(np.einsum("ij,ij->j", design, design).max()))
        # beyond this the pool starts afresh with the columns in use
        self.limit = min(self.features, max(2 * self.records, 1000))
        self.place = np.full(self.features, -1, dtype=np.int64)
        self._clear(64)

    def _clear(self, room: int) -> None:
        self.place[:] = -1
        self.size = 0
        self.columns: FloatArray = np.empty((self.records, room), order="F")
        self.gram: FloatArray = np.empty((room, room))

    def places(self, index: IndexArray) -> IndexArray:
        """(k,) where the columns ``index`` are in the pool, taking in those that are missing."""
        new = index[self.place[index] < 0]
        if new.size and self.size + new.size > max(self.limit, index.size):
            self._clear(max(64, 2 * index.size))
            new = index
        if new.size:
            self._append(new)
        return np.asarray(self.place[index])

    def _append(self, new: IndexArray) -> None:
        start, stop = self.size, self.size + new.size
        if stop > self.gram.shape[0]:
            room = max(stop, min(2 * self.gram.shape[0], self.limit))
            require_memory(
                8 * room * (room + self.records),
                f"The inner products of {room} columns",
                "use a larger lam, which leaves fewer coefficients active",
            )
            gram, columns = np.empty((room, room)), np.empty((self.records, room), order="F")
            gram[:start, :start] = self.gram[:start, :start]
            columns[:, :start] = self.columns[:, :start]
            self.gram, self.columns = gram, columns
        self.columns[:, start:stop] = self.design[:, new]
        block = self.columns[:, :stop].T @ self.columns[:, start:stop]
        block[start:][np.diag_indices(new.size)] += self.l2
        self.gram[:stop, start:stop] = block
        self.gram[start:stop, :start] = block[:start].T
        self.place[new] = np.arange(start, stop)
        self.size = stop

    def block(self, index: IndexArray) -> FloatArray:
        """(k, k) inner products of the columns ``index``, l2 on the diagonal."""
        where = self.places(index)
        return np.asarray(self.gram[np.ix_(where, where)])

    def factor(self, index: IndexArray) -> tuple[FloatArray, IndexArray]:
        """Cholesky factor of an independent subset of ``index``, and which positions those are.

        Where columns depend on each other the later ones are left out.
        """
        kept = np.arange(index.size)
        while True:
            gram = self.block(index[kept])
            scale = gram.diagonal().copy()
            lower, info = lapack.dpotrf(gram.T, lower=1, overwrite_a=1, clean=0)
            # LAPACK stops at the first pivot that is not positive; rounding may let a tiny one pass
            last = info - 1 if info > 0 else kept.size
            weak = np.flatnonzero(lower.diagonal()[:last] ** 2 <= DEPENDENT * scale[:last])
            first = int(weak[0]) if weak.size else last
            if first == kept.size:
                return lower, kept
            kept = np.delete(kept, first)

    def fitted(self, index: IndexArray, values: FloatArray) -> FloatArray:
        """(n,) X beta for the coefficients ``values`` at ``index``."""
        if index.size == 0:
            return np.zeros(self.records)
        where = self.places(index)
        if self.size < 3 * index.size:
            # a matrix-vector product with a few zeros is faster than a copy of the columns
            full = np.zeros(self.size)
            full[where] = values
            return np.asarray(self.columns[:, : self.size] @ full)
        return np.asarray(self.columns[:, where] @ values)


def solve_factored(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a factor of `GramPool.factor`."""
    if right.size == 0:
        return np.zeros_like(right)
    solution, _ = lapack.dpotrs(lower, right, lower=1)
    return np.asarray(solution)
