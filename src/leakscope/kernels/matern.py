"""The Matérn kernels: functions as rough as one chooses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import gammaln, kve

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.inputs import precision, require_same_columns, rows
from leakscope.kernels.rbf import median_length_scale

BLOCK_ROWS = 256

LARGEST_NU = 20.0


@dataclass(frozen=True)
class Matern:
    """k(x, z) = variance 2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) ||x - z||/length_scale.

    K_nu is the modified Bessel function.  At nu = 1/2 this is exp(-t), the Laplace or exponential
    kernel; at 3/2 (1 + t) exp(-t); at 5/2 (1 + t + t^2/3) exp(-t); as nu grows it becomes the
    squared-exponential kernel (Rasmussen & Williams 2006, Section 4.2).

    Parameters
    ----------
    nu
        Smoothness: the function has ceil(nu) - 1 derivatives.  1/2, 3/2 and 5/2 are quick;
        20 is the most.
    length_scale
        As for :class:`RBF`: None leaves it to ``resolved(X)``.
    variance
        k(x, x).

    Examples
    --------
    >>> from leakscope.kernels import Matern
    >>> Matern(nu=0.5, length_scale=1.0)([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    nu: float = 1.5
    length_scale: float | None = None
    variance: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (
            ("nu", self.nu),
            ("length_scale", self.length_scale),
            ("variance", self.variance),
        ):
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise InputError(f"Matérn: {name} must be positive and finite, but it is {value}.")
        if self.nu > LARGEST_NU:
            raise InputError(
                f"Matérn: nu is {self.nu:g}, but beyond {LARGEST_NU:g} the kernel is hardly "
                "different from the squared-exponential one; use rbf."
            )

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """The matrix of k(x, z); with Z left out it is exactly symmetric, its diagonal exact."""
        factor = np.sqrt(2.0 * self.nu) / self._number()
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

    def _number(self) -> float:
        if self.length_scale is None:
            raise InputError(
                "Matérn: length_scale is not set; give a number, or call resolved(X) to take the "
                "median distance between the rows of X."
            )
        return self.length_scale


def matern(nu: float = 1.5, length_scale: float | None = None, variance: float = 1.0) -> Matern:
    """The Matérn kernel; see :class:`Matern`.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.matern(2.5, length_scale=2.0)
    Matern(nu=2.5, length_scale=2.0, variance=1.0)
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
