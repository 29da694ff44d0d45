"""The linear kernel: records, or embeddings of them, as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.inputs import precision, require_same_columns, rows


@dataclass(frozen=True)
class Linear:
    """k(x, z) = weight_variance x.z / scale + bias_variance.

    Bayesian linear regression with weights of variance weight_variance / scale, and so the kernel
    for embeddings: give it the last-layer features of a model of your own, and the audit is of a
    linear read-out trained on them.

    Parameters
    ----------
    weight_variance, bias_variance
        Of the prior.
    divide_by_features
        The scale is the number of features, as in the first layer of :func:`nngp`; otherwise 1.

    Examples
    --------
    >>> from leakscope.kernels import Linear
    >>> Linear()([[1.0, 2.0], [0.0, 4.0]]).tolist()
    [[5.0, 8.0], [8.0, 16.0]]
    """

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
    """The linear kernel, for records or for embeddings of them; see :class:`Linear`.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.linear(bias_variance=1.0)([[1.0, 2.0]]).tolist()
    [[6.0]]
    """
    return Linear(weight_variance, bias_variance, divide_by_features)
