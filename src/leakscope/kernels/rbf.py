"""The squared-exponential (radial basis function) kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.spatial.distance import pdist

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.inputs import precision

# Pairwise distances for the median heuristic are taken over at most this many rows: two million
# distances settle the median to a per cent, and cost a few hundredths of a second.
MEDIAN_ROWS = 2000

BLOCK_ROWS = 256


@dataclass(frozen=True)
class RBF:
    """k(x, z) = variance * exp(-||x - z||^2 / (2 length_scale^2)).

    Parameters
    ----------
    length_scale
        The distance over which the function varies, in units of the inputs.  None leaves it
        open; ``resolved(X)`` then fills in the median distance between rows.
    variance
        k(x, x), the prior variance of the function, in squared units of the target.

    Examples
    --------
    >>> from leakscope.kernels import RBF
    >>> RBF(length_scale=1.0)([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    length_scale: float | None = None
    variance: float = 1.0

    def __post_init__(self) -> None:
        if self.length_scale is not None:
            _require_positive("length_scale", self.length_scale)
        _require_positive("variance", self.variance)

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric, its diagonal exact."""
        scale = self._number()
        rows = _rows(X, "X")
        # The kernel sees only differences: centring first keeps ||x||^2 + ||z||^2 - 2 x.z from
        # cancelling when the data lie far from the origin.
        centre = rows.mean(axis=0)
        rows = (rows - centre).astype(precision(dtype), copy=False)
        if Z is None:
            columns = rows
        else:
            columns = _rows(Z, "Z")
            if columns.shape[1] != rows.shape[1]:
                raise InputError(
                    f"RBF: X has {rows.shape[1]} columns and Z has {columns.shape[1]}; "
                    "they must have the same."
                )
            columns = (columns - centre).astype(rows.dtype, copy=False)
        products: FloatArray = row_products(rows, columns)
        row_norms = np.einsum("ij,ij->i", rows, rows)
        column_norms = row_norms if Z is None else np.einsum("ij,ij->i", columns, columns)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = products[start : start + BLOCK_ROWS]
            block *= -2.0
            block += row_norms[start : start + BLOCK_ROWS, None] + column_norms[None, :]
            np.maximum(block, 0.0, out=block)
            block *= -0.5 / scale / scale  # the square may be beyond float64
            np.exp(block, out=block)
            block *= self.variance
        if Z is None:
            np.fill_diagonal(products, self.variance)
        return products

    def diagonal(self, X: ArrayLike, *, dtype: DTypeLike = np.float64) -> FloatArray:
        """k(x, x) = variance for every row."""
        return np.full(len(_rows(X, "X")), self.variance, precision(dtype))

    def resolved(self, X: ArrayLike) -> RBF:
        """This kernel with its length scale a number: its own, or the median distance in X."""
        if self.length_scale is not None:
            return self
        return replace(self, length_scale=median_length_scale(X))

    def describe(self) -> dict[str, Any]:
        """Name and parameters, ready for JSON."""
        return {"name": "rbf", "length_scale": self.length_scale, "variance": self.variance}

    def _number(self) -> float:
        if self.length_scale is None:
            raise InputError(
                "RBF: length_scale is not set; give a number, or call resolved(X) to take the "
                "median distance between the rows of X."
            )
        return self.length_scale


def rbf(length_scale: float | None = None, variance: float = 1.0) -> RBF:
    """The squared-exponential kernel; see :class:`RBF`.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.rbf(length_scale=2.0)
    RBF(length_scale=2.0, variance=1.0)
    >>> kernels.rbf().resolved([[0.0], [1.0], [3.0]]).length_scale
    2.0
    """
    return RBF(length_scale=length_scale, variance=variance)


def median_length_scale(X: ArrayLike, *, max_rows: int = MEDIAN_ROWS) -> float:
    """The median Euclidean distance between two rows of X (the median heuristic).

    Deterministic: beyond ``max_rows`` rows, evenly spaced ones are taken.  Pairs of equal rows
    are left out, so that many duplicates do not make it zero.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.median_length_scale([[0.0], [1.0], [3.0]])
    2.0
    """
    rows = _rows(X, "X")
    if len(rows) > max_rows:
        rows = rows[np.linspace(0, len(rows) - 1, max_rows).astype(np.intp)]
    distances = pdist(rows)
    distances = distances[distances > 0.0]
    if distances.size == 0:
        raise InputError(
            f"the median heuristic needs two different rows, but the {len(rows)} rows looked at "
            "are all equal: give length_scale a number, or check the features."
        )
    return float(np.median(distances))


def _rows(values: ArrayLike, name: str) -> FloatArray:
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(
            f"RBF: {name} must have two dimensions, records by features, but its shape is "
            f"{rows.shape}."
        )
    return rows


def _require_positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"RBF: {name} must be positive and finite, but it is {value}.")
