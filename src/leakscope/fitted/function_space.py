"""The same in function space: kernel models, and designs with more columns than records.

With K the kernel over its penalty and B = I + c^{1/2} K c^{1/2}, the matrix G of docs/fitted.md
is c^{-1/2} (I - B^{-1}) c^{-1/2}; so 1 - c_i g_i is [B^{-1}]_ii, without a cancellation, and for
i != j G_ij is -[B^{-1}]_ij / sqrt(c_i c_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.problem import ConvexProblem

# A record with no curvature left would divide by zero; this share of the largest changes nothing.
_FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class FunctionResponse:
    """The response at one set of curvatures c; attributes as in `FeatureResponse`."""

    root: FloatArray
    inverse: FloatArray
    prediction: FloatArray
    leverage: FloatArray
    slack: FloatArray

    def carried(self, t: FloatArray) -> FloatArray:
        """sum_j G_ij^2 t_j for every record i, its own term included."""
        share = t / self.root**2
        total = np.empty(len(t))
        for start in range(0, len(t), 512):
            part = slice(start, start + 512)
            total[part] = (self.inverse[part] ** 2) @ share
        others = (total - self.slack**2 * share) / self.root**2
        return np.asarray(others + self.leverage**2 * t)

    def rows(self, part: slice) -> FloatArray:
        """The rows G_i. of a block of records."""
        block = -self.inverse[part] / self.root / self.root[part, None]
        index = np.arange(len(self.root))[part]
        block[np.arange(len(index)), index] = self.leverage[index]
        return np.asarray(block)


@dataclass(frozen=True, eq=False)
class FunctionSpace:
    """A kernel matrix over its penalty."""

    kernel: FloatArray
    name: str

    @classmethod
    def of(cls, problem: ConvexProblem, fraction: float) -> FunctionSpace:
        """The space of a problem with a kernel, or with more columns than records."""
        size = problem.records
        require_memory(
            3 * 8 * size * size, f"The laws of {size} records under a kernel", "use fewer records"
        )
        return cls(problem.kernel_at(fraction), problem.name)

    def start(self, theta: FloatArray | None) -> FloatArray:
        """Start from nothing: the first steps cost little beside the rest."""
        return np.zeros(len(self.kernel))

    def respond(self, c: FloatArray, s: FloatArray, z: FloatArray) -> FunctionResponse:
        """Newton step and leverages, where the total force s has slope c at the predictions z."""
        c = np.maximum(c, _FLOOR * float(np.max(c)))
        root = np.sqrt(c)
        matrix = self.kernel * root * root[:, None]
        matrix[np.diag_indices_from(matrix)] += 1.0
        try:
            factor = cholesky.factorise(matrix, overwrite=True)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{self.name}: the kernel matrix is not positive semidefinite, so there is no "
                "convex problem to solve; use a valid kernel."
            ) from None
        inverse = np.ascontiguousarray(cholesky.inverse(factor, overwrite=True).full())
        dual = root * (inverse @ (root * z - s / root))
        slack = np.diagonal(inverse).copy()
        return FunctionResponse(root, inverse, self.kernel @ dual, (1.0 - slack) / c, slack)
