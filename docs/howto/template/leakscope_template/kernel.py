"""A kernel that can be named: ``leakscope audit FILE --target y --kernel periodic``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.settings import NamedKernel


@dataclass(frozen=True)
class Periodic:
    """k(x, z) = variance exp(-2 sum_j sin(pi (x_j - z_j) / period)^2)."""

    period: float = 24.0
    variance: float = 1.0

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """The matrix over the rows of both."""
        left = np.asarray(X, dtype=np.float64)
        right = left if Z is None else np.asarray(Z, dtype=np.float64)
        waves = np.sin(np.pi * (left[:, None] - right[None]) / self.period)
        return np.asarray(self.variance * np.exp(-2.0 * (waves**2).sum(axis=2)))

    def diagonal(self, X: ArrayLike) -> NDArray[np.float64]:
        """k(x, x) of every row."""
        return np.full(len(np.asarray(X)), self.variance)

    def resolved(self, X: ArrayLike) -> Periodic:
        """This kernel: nothing is left open."""
        return self

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as they are stored; the name is that of the entry point."""
        return {"name": "periodic", "period": self.period, "variance": self.variance}


PERIODIC = NamedKernel(
    Periodic, "repeating functions", {"length_scale": "period", "kernel_variance": "variance"}
)
