"""Products of rows with rows, X Z^T, in tiles, and checked.

NumPy turns ``X @ X.T`` into BLAS's syrk, which OpenBLAS computes wrongly for many rows on some
machines (docs/linear_algebra.md); a product of two different tiles is a gemm, which is right.
Tiles also halve the work of the symmetric product, as syrk does, and leave it exactly symmetric.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics import probes
from leakscope._numerics.cores import side_by_side

# Rows of a tile: its square, 8 MB, is still quick to mirror, and far below what goes wrong.
TILE = 1024

# Up to this many rows syrk is right everywhere it was tried (it fails from 20,000 on).
ONE_PIECE = 8192


def row_products(left: NDArray[Any], right: NDArray[Any] | None = None) -> NDArray[Any]:
    """The matrix of x . z over the rows of two arrays, or of one, then exactly symmetric.

    Parameters
    ----------
    left, right
        (n, d) and (m, d), in one precision; without ``right`` the rows of ``left`` twice.

    Raises
    ------
    WrongProductError
        Where the library's product is not the product.
    """
    symmetric = right is None or right is left
    other = left if right is None else right
    if not symmetric or len(left) <= ONE_PIECE:
        found: NDArray[Any] = left @ other.T
    else:
        found = np.empty((len(left), len(left)), left.dtype)
        with side_by_side() as for_each:
            # The longest first, so that no thread is left with one at the end.
            for_each(partial(_rows_of_gram, left, found), range(0, len(left), TILE)[::-1])
    _probe(found, left, other)
    return found


def _rows_of_gram(left: NDArray[Any], found: NDArray[Any], start: int) -> None:
    """One tile of rows, up to the diagonal, and the same as columns."""
    stop = min(start + TILE, len(left))
    found[start:stop, :stop] = left[start:stop] @ left[:stop].T
    # The upper half is the lower one, whatever the order of summation was.
    corner = np.tril(found[start:stop, start:stop])
    found[start:stop, start:stop] = corner + np.tril(corner, -1).T
    found[:start, start:stop] = found[start:stop, :start].T


def _probe(found: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> None:
    if min(found.shape) < probes.PROBED_FROM or found.dtype != np.float64:
        return
    vectors = probes.signs(len(right))
    sizes = np.sqrt(np.einsum("ij,ij->i", left, left))
    total = float(np.sqrt(np.einsum("ij,ij->", right, right)))
    probes.require_close(
        found @ vectors, left @ (right.T @ vectors), sizes * total, "matrix of products"
    )
