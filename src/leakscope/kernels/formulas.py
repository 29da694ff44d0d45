"""Kernels that are formulas of the records: squared-exponential, Matérn, linear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.spatial.distance import pdist
from scipy.special import gammaln, kve

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.kernel import precision, require_same_columns, rows

# Pairwise distances for the median heuristic are taken over at most this many rows: two million
# distances settle the median to a per cent, and cost a few hundredths of a second.
MEDIAN_ROWS = 2000

# Rows of a matrix that are worked on at once.
BLOCK_ROWS = 256

LARGEST_NU = 20.0


@dataclass(frozen=True)
class RBF:
    """The kernel of :func:`rbf`."""

    length_scale: float | None = None
    variance: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("RBF", length_scale=self.length_scale, variance=self.variance)

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric, its diagonal exact."""
        scale = _number("RBF", self.length_scale)
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


def rbf(length_scale: float | None = None, variance: float = 1.0) -> RBF:
    """The squared-exponential kernel, k(x, z) = variance * exp(-||x - z||^2 / (2 length_scale^2)).

    Parameters
    ----------
    length_scale
        The distance over which the function varies, in units of the inputs.  None leaves it
        open; ``resolved(X)`` then fills in the median distance between rows.
    variance
        k(x, x), the prior variance of the function, in squared units of the target.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.rbf(length_scale=1.0)([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    >>> kernels.rbf().resolved([[0.0], [1.0], [3.0]]).length_scale
    2.0
    """
    return RBF(length_scale=length_scale, variance=variance)


def median_length_scale(X: ArrayLike, *, max_rows: int = MEDIAN_ROWS) -> float:
    """The median Euclidean distance between two rows of X (the median heuristic).

    Deterministic: beyond ``max_rows`` rows, evenly spaced ones are taken.  Pairs of equal rows
    are left out, so that many duplicates do not make it zero.
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


@dataclass(frozen=True)
class Matern:
    """The kernel of :func:`matern`."""

    nu: float = 1.5
    length_scale: float | None = None
    variance: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(
            "Matérn", nu=self.nu, length_scale=self.length_scale, variance=self.variance
        )
        if self.nu > LARGEST_NU:
            raise InputError(
                f"Matérn: nu is {self.nu:g}, but beyond {LARGEST_NU:g} the kernel is hardly "
                "different from the squared-exponential one; use rbf."
            )

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric, its diagonal exact."""
        factor = np.sqrt(2.0 * self.nu) / _number("Matérn", self.length_scale)
        left = rows(X, "X", np.dtype(np.float64))
        # The kernel sees only differences; see RBF.
        centre = left.mean(axis=0)
        left = left - centre
        right = left
        if Z is not None:
            right = rows(Z, "Z", np.dtype(np.float64))
            require_same_columns("Matérn", left, right)
            right = right - centre
        products: FloatArray = row_products(left, right)
        out = products if precision(dtype) == np.float64 else np.empty(products.shape, dtype)
        left_norms = np.einsum("ij,ij->i", left, left)
        right_norms = left_norms if Z is None else np.einsum("ij,ij->i", right, right)
        for start in range(0, len(left), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            squared = left_norms[part, None] + right_norms[None, :] - 2.0 * products[part]
            # Near zero the root magnifies what cancels above: distances that small are taken
            # again, from the differences themselves.
            scale = left_norms[part, None] + right_norms[None, :]
            close = np.nonzero(squared < 1e-6 * scale)
            squared[close] = ((left[part][close[0]] - right[close[1]]) ** 2).sum(axis=1)
            np.sqrt(squared, out=squared)
            squared *= factor
            out[part] = self.variance * _shape(self.nu, squared)
        if Z is None:
            np.fill_diagonal(out, self.variance)
        return out

    def diagonal(self, X: ArrayLike, *, dtype: DTypeLike = np.float64) -> FloatArray:
        """k(x, x) = variance for every row."""
        result: FloatArray = np.full(len(rows(X, "X", precision(dtype))), self.variance, dtype)
        return result

    def resolved(self, X: ArrayLike) -> Matern:
        """This kernel with its length scale a number: its own, or the median distance in X."""
        if self.length_scale is not None:
            return self
        return replace(self, length_scale=median_length_scale(X))

    def describe(self) -> dict[str, Any]:
        """Name and parameters, ready for JSON."""
        return {
            "name": "matern",
            "nu": self.nu,
            "length_scale": self.length_scale,
            "variance": self.variance,
        }


def matern(nu: float = 1.5, length_scale: float | None = None, variance: float = 1.0) -> Matern:
    """The Matérn kernels: functions as rough as one chooses.

    k(x, z) = variance 2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) ||x - z||/length_scale, with
    K_nu the modified Bessel function.  At nu = 1/2 this is exp(-t), the Laplace or exponential
    kernel; at 3/2 (1 + t) exp(-t); at 5/2 (1 + t + t^2/3) exp(-t); as nu grows it becomes the
    squared-exponential kernel (Rasmussen & Williams 2006, Section 4.2).

    Parameters
    ----------
    nu
        Smoothness: the function has ceil(nu) - 1 derivatives.  1/2, 3/2 and 5/2 are quick;
        20 is the most.
    length_scale, variance
        As for :func:`rbf`.
    """
    return Matern(nu, length_scale, variance)


def _shape(nu: float, t: FloatArray) -> FloatArray:
    """The kernel as a function of the scaled distance, 1 at zero."""
    if nu == 0.5:
        result: FloatArray = np.exp(-t)
    elif nu == 1.5:
        result = (1.0 + t) * np.exp(-t)
    elif nu == 2.5:
        result = (1.0 + t * (1.0 + t / 3.0)) * np.exp(-t)
    else:
        # Up to nu = 20, K_nu overflows only where the kernel is 1 to the last digit.
        safe = np.maximum(t, 1e-200)
        logarithm = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(safe) - safe
        with np.errstate(over="ignore", invalid="ignore"):
            result = np.exp(logarithm) * kve(nu, safe)
        result = np.where((t == 0.0) | ~np.isfinite(result), 1.0, result)
    return result


@dataclass(frozen=True)
class Linear:
    """The kernel of :func:`linear`."""

    weight_variance: float = 1.0
    bias_variance: float = 0.0
    divide_by_features: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weight_variance) and self.weight_variance > 0.0):
            raise InputError(
                f"linear: weight_variance must be positive and finite, but it is "
                f"{self.weight_variance}."
            )
        if not (np.isfinite(self.bias_variance) and self.bias_variance >= 0.0):
            raise InputError(
                f"linear: bias_variance must be zero or more, but it is {self.bias_variance}."
            )

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric."""
        left = rows(X, "X", precision(dtype))
        right = left if Z is None else rows(Z, "Z", precision(dtype))
        require_same_columns("linear", left, right)
        result: FloatArray = row_products(left, right)
        result *= result.dtype.type(self._scale(left))
        if self.bias_variance:
            result += result.dtype.type(self.bias_variance)
        if Z is None:
            np.fill_diagonal(result, self._own(left))
        return result

    def diagonal(self, X: ArrayLike, *, dtype: DTypeLike = np.float64) -> FloatArray:
        """k(x, x) for every row."""
        return self._own(rows(X, "X", precision(dtype)))

    def resolved(self, X: ArrayLike) -> Linear:
        """This kernel: it has no parameter to choose from the data."""
        return self

    def describe(self) -> dict[str, Any]:
        """Name and parameters, ready for JSON."""
        return {
            "name": "linear",
            "weight_variance": self.weight_variance,
            "bias_variance": self.bias_variance,
            "divide_by_features": self.divide_by_features,
        }

    def _scale(self, X: NDArray[Any]) -> float:
        return self.weight_variance / (X.shape[1] if self.divide_by_features else 1)

    def _own(self, X: NDArray[Any]) -> FloatArray:
        squares = np.einsum("ij,ij->i", X, X)
        kind = X.dtype.type
        result: FloatArray = squares * kind(self._scale(X)) + kind(self.bias_variance)
        return result


def linear(
    weight_variance: float = 1.0, bias_variance: float = 0.0, divide_by_features: bool = False
) -> Linear:
    """The linear kernel, k(x, z) = weight_variance x.z / scale + bias_variance.

    Bayesian linear regression with weights of variance weight_variance / scale, and so the kernel
    for embeddings: give it the last-layer features of a model of your own, and the audit is of a
    linear read-out trained on them.

    Parameters
    ----------
    weight_variance, bias_variance
        Of the prior.
    divide_by_features
        The scale is the number of features, as in the first layer of :func:`nngp`; otherwise 1.
    """
    return Linear(weight_variance, bias_variance, divide_by_features)


def _rows(values: ArrayLike, name: str) -> FloatArray:
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(
            f"RBF: {name} must have two dimensions, records by features, but its shape is "
            f"{rows.shape}."
        )
    return rows


def _require_positive(kernel: str, **values: float | None) -> None:
    for name, value in values.items():
        if value is None and name == "length_scale":
            continue
        if value is None or not (np.isfinite(value) and value > 0.0):
            raise InputError(f"{kernel}: {name} must be positive and finite, but it is {value}.")


def _number(kernel: str, length_scale: float | None) -> float:
    if length_scale is None:
        raise InputError(
            f"{kernel}: length_scale is not set; give a number, or call resolved(X) to take the "
            "median distance between the rows of X."
        )
    return length_scale
