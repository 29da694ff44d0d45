"""What every covariance function offers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Kernel(Protocol):
    """A covariance function k(x, z), called on the rows of two arrays.

    Examples
    --------
    >>> from leakscope import kernels
    >>> isinstance(kernels.rbf(length_scale=1.0), kernels.Kernel)
    True
    """

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
