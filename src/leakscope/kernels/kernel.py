"""What every covariance function offers, and how the arrays that come in are read."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from leakscope.errors import InputError


@runtime_checkable
class Kernel(Protocol):
    """A covariance function k(x, z), called on the rows of two arrays."""

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """The matrix of k(x, z) over the rows x of X and z of Z (Z = X where it is left out)."""
        ...

    def diagonal(self, X: ArrayLike) -> NDArray[np.float64]:
        """The numbers k(x, x), without the matrix."""
        ...

    def resolved(self, X: ArrayLike) -> Kernel:
        """The same kernel with every parameter a number, chosen from X where it was left open."""
        ...

    def describe(self) -> dict[str, Any]:
        """Name and parameters, ready for JSON."""
        ...


def precision(dtype: DTypeLike) -> np.dtype[Any]:
    """float64 or float32."""
    found = np.dtype(dtype)
    if found not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError(f"kernels are computed in float64 or float32, not in {found}.")
    return found


def numbers(values: ArrayLike, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of finite numbers with records along its first axis."""
    try:
        array = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{name} must be an array of numbers.") from problem
    if array.ndim < 2:
        raise InputError(
            f"{name} must have two dimensions, records by features, but its shape is {array.shape}."
        )
    if array.size == 0:
        raise InputError(f"{name} is empty: its shape is {array.shape}.")
    # One pass without a temporary: a sum is finite only if (almost always) all terms are.
    if not np.isfinite(array.sum()):
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise InputError(f"{name} has a number that is not finite in row {np.argmax(bad)}.")
    return array


def rows(values: ArrayLike, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A matrix of records by features."""
    array = numbers(values, name, dtype)
    if array.ndim != 2:
        raise InputError(
            f"{name} must have two dimensions, records by features, but its shape is {array.shape}."
        )
    return array


def require_same_columns(kernel: str, X: NDArray[Any], Z: NDArray[Any]) -> None:
    """Refuse records of different sizes."""
    if X.shape[1:] != Z.shape[1:]:
        raise InputError(
            f"{kernel}: the records of X have shape {X.shape[1:]} and those of Z {Z.shape[1:]}; "
            "they must have the same."
        )
