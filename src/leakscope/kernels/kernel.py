"""What every covariance function offers, and how the arrays that come in are read."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


# Records of a block of a kernel that is checked, and what float32 rounds off in some operations.
BLOCK, ROUNDING = 64, 1e-5


def checked_kernel(kernel: Any, X: NDArray[np.float64]) -> Kernel:
    """The kernel with every parameter a number; one of the user's own is tried on the records.

    All records are tried in blocks of 64, drawn at random: the matrix of a block must be finite and
    symmetric, have the kernel's own diagonal, and be the same where both sides are given.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.kernels.kernel import checked_kernel
    >>> checked_kernel(kernels.rbf(), np.array([[0.0], [1.0], [3.0]])).length_scale
    2.0
    """
    if not isinstance(kernel, Kernel):
        raise InputError(
            "kernel must be one from leakscope.kernels, or have its methods, but it is a "
            f"{type(kernel).__name__}."
        )
    found = kernel.resolved(X)
    if not type(found).__module__.startswith("leakscope.kernels."):
        _require_covariance(found, X)
    return found


def _require_covariance(kernel: Kernel, X: NDArray[np.float64]) -> None:
    """Refuse a kernel whose values on the records are no covariances."""
    diagonal = _values(kernel, kernel.diagonal(X), (len(X),))
    order = np.random.default_rng(0).permutation(len(X))
    for start in range(0, len(X), BLOCK):
        some = order[start : start + BLOCK]
        points, first = X[some], X[some[: len(some) // 2 + 1]]
        matrix = _values(kernel, kernel(points), (len(points), len(points)))
        beside = _values(kernel, kernel(points, first), (len(points), len(first)))
        size = np.sqrt(np.abs(np.diagonal(matrix)))
        most = ROUNDING * np.outer(size, size)
        symmetric = np.abs(matrix - matrix.T) <= most
        own = np.abs(np.diagonal(matrix) - diagonal[some]) <= np.diagonal(most)
        same = np.abs(matrix[:, : len(first)] - beside) <= most[:, : len(first)]
        if not (symmetric.all() and own.all() and same.all()):
            raise InputError(
                f"the kernel {type(kernel).__name__} is no covariance function: k(X) must be "
                "symmetric, diagonal(X) its diagonal, and k(X, Z) the same numbers."
            )


def _values(kernel: Kernel, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(
            f"the kernel {type(kernel).__name__} must give finite real numbers of the shape "
            f"{shape}, but gave {array.dtype} of the shape {array.shape}."
        )
    return array.astype(np.float64)


def numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """An array of finite numbers with records along its first axis."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{name} must be an array of numbers.") from problem
    if array.ndim < 2 or array.size == 0:
        raise InputError(
            f"{name} must have two dimensions, records by features, and not be empty, but its "
            f"shape is {array.shape}."
        )
    # One pass without a temporary: a sum is finite only if (almost always) all terms are.
    if not np.isfinite(array.sum()):
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise InputError(f"{name} has a number that is not finite in row {np.argmax(bad)}.")
    return array


def rows(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A matrix of records by features."""
    array = numbers(values, name)
    if array.ndim != 2:
        raise InputError(
            f"{name} must have two dimensions, records by features, but its shape is {array.shape}."
        )
    return array


def both_rows(
    kernel: str, X: ArrayLike, Z: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows of X and of Z, which is X where it is left out; of one number of features."""
    left = rows(X, "X")
    right = left if Z is None else rows(Z, "Z")
    require_same_columns(kernel, left, right)
    return left, right


def require_same_columns(kernel: str, X: NDArray[Any], Z: NDArray[Any]) -> None:
    """Refuse records of different sizes."""
    if X.shape[1:] != Z.shape[1:]:
        raise InputError(
            f"{kernel}: the records of X have shape {X.shape[1:]} and those of Z {Z.shape[1:]}; "
            "they must have the same."
        )


def require_variances(what: str, weight: float, bias: float) -> None:
    """Refuse variances of weights and biases that are none."""
    if not (np.isfinite(weight) and weight > 0.0):
        raise InputError(
            f"{what}: weight_variance must be positive and finite, but it is {weight}."
        )
    if not (np.isfinite(bias) and bias >= 0.0):
        raise InputError(f"{what}: bias_variance must be zero or more, but it is {bias}.")
