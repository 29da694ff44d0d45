"""Kernels that are formulas of the records: squared-exponential, Matérn, linear."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from scipy.special import gammaln, kve

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.kernel import both_rows, require_variances, rows

# Pairwise distances for the median heuristic are taken over at most this many rows: two million
# distances settle the median to a per cent, and cost a few hundredths of a second.
MEDIAN_ROWS = 2000

# Rows of a matrix that are worked on at once.
BLOCK_ROWS = 256

# Beyond this nu the Matérn kernel is hardly different from the squared-exponential one.
LARGEST_NU = 20.0

# Squared distances below this share of the squared lengths have lost digits in the expansion
# ||x||^2 + ||z||^2 - 2 x.z, and are taken again from the differences themselves.
CANCELLED = 1e-6


@dataclass(frozen=True)
class _OfDistance:
    """A kernel that is its variance times a function of the distance over the length scale."""

    length_scale: float | None = None
    variance: float = 1.0
    name: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("length_scale", "variance"):
            value = getattr(self, name)
            if value is None and name == "length_scale":
                continue
            if value is None or not (np.isfinite(value) and value > 0.0):
                raise InputError(
                    f"{self.name}: {name} must be positive and finite, but it is {value}."
                )

    @abstractmethod
    def _shape(self, squared: FloatArray) -> FloatArray:
        """The kernel at squared distances in units of the length scale, 1 at zero."""

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric, its diagonal exact."""
        scale = self.length_scale
        if scale is None:
            raise InputError(
                f"{self.name}: length_scale is not set; give a number, or call resolved(X) to take "
                "the median distance between the rows of X."
            )
        left, right = both_rows(self.name, X, Z)
        # The kernel sees only differences: centring first keeps the expansion of the square from
        # cancelling when the data lie far from the origin.
        centre = left.mean(axis=0)
        left, right = left - centre, right - centre
        if Z is None:
            right = left
        matrix: FloatArray = row_products(left, right)
        left_norms = np.einsum("ij,ij->i", left, left)
        right_norms = np.einsum("ij,ij->i", right, right)
        for start in range(0, len(left), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            block, norms = matrix[part], left_norms[part, None] + right_norms
            block *= -2.0
            block += norms
            norms *= CANCELLED
            close = np.nonzero(block < norms)
            block[close] = ((left[part][close[0]] - right[close[1]]) ** 2).sum(axis=1)
            block *= 1.0 / scale / scale  # the square may be beyond float64
            block[:] = self._shape(block)
            block *= self.variance
        if Z is None:
            np.fill_diagonal(matrix, self.variance)
        return matrix

    def diagonal(self, X: ArrayLike) -> FloatArray:
        """k(x, x) = variance for every row."""
        return np.full(len(rows(X, "X")), float(self.variance))

    def resolved(self, X: ArrayLike) -> Self:
        """This kernel with its length scale a number: its own, or the median distance in X."""
        if self.length_scale is not None:
            return self
        return replace(self, length_scale=median_length_scale(X))


@dataclass(frozen=True)
class RBF(_OfDistance):
    """The kernel of :func:`rbf`."""

    name = "RBF"

    def _shape(self, squared: FloatArray) -> FloatArray:
        squared *= -0.5
        return np.asarray(np.exp(squared, out=squared))

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
    points = rows(X, "X")
    if len(points) > max_rows:
        points = points[np.linspace(0, len(points) - 1, max_rows).astype(np.intp)]
    distances = pdist(points)
    distances = distances[distances > 0.0]
    if distances.size == 0:
        raise InputError(
            f"the median heuristic needs two different rows, but the {len(points)} rows looked at "
            "are all equal: give length_scale a number, or check the features."
        )
    return float(np.median(distances))


@dataclass(frozen=True)
class _Smoothness:
    nu: float = 1.5


@dataclass(frozen=True)
class Matern(_OfDistance, _Smoothness):
    """The kernel of :func:`matern`."""

    name = "Matérn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.nu and 0.0 < self.nu <= LARGEST_NU):
            raise InputError(
                f"Matérn: nu must be positive and at most {LARGEST_NU:g}, but it is {self.nu}; "
                "use rbf for smoother functions."
            )

    def _shape(self, squared: FloatArray) -> FloatArray:
        nu = self.nu
        t = np.sqrt(2.0 * nu * squared)
        if nu == 0.5:
            return np.asarray(np.exp(-t))
        if nu == 1.5:
            return np.asarray((1.0 + t) * np.exp(-t))
        if nu == 2.5:
            return np.asarray((1.0 + t * (1.0 + t / 3.0)) * np.exp(-t))
        # Up to nu = 20, K_nu overflows only where the kernel is 1 to the last digit.
        safe = np.maximum(t, 1e-200)
        logarithm = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(safe) - safe
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.exp(logarithm) * kve(nu, safe)
        return np.where((t == 0.0) | ~np.isfinite(value), 1.0, value)

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
    return Matern(nu=nu, length_scale=length_scale, variance=variance)


@dataclass(frozen=True)
class Linear:
    """The kernel of :func:`linear`."""

    weight_variance: float = 1.0
    bias_variance: float = 0.0
    divide_by_features: bool = False

    def __post_init__(self) -> None:
        require_variances("linear", self.weight_variance, self.bias_variance)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric."""
        left, right = both_rows("linear", X, Z)
        matrix: FloatArray = row_products(left, right)
        matrix *= self._scale(left)
        if self.bias_variance:
            matrix += self.bias_variance
        if Z is None:
            np.fill_diagonal(matrix, self.diagonal(left))
        return matrix

    def diagonal(self, X: ArrayLike) -> FloatArray:
        """k(x, x) for every row."""
        points = rows(X, "X")
        squares = np.einsum("ij,ij->i", points, points)
        return np.asarray(squares * self._scale(points) + self.bias_variance)

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

    def _scale(self, X: FloatArray) -> float:
        return self.weight_variance / (X.shape[1] if self.divide_by_features else 1)


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
