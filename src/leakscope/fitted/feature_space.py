"""How a model with features answers to a force on one record: G = X Hbar^{-1} X', never formed.

Hbar = sum_j c_j x_j x_j' + Lambda.  All passes go over the records in blocks, so that the memory
beside the design is d x d and a few numbers per record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.problem import ConvexProblem

# Rows of the design handled at once.
ROWS = 8192


def row_blocks(records: int, rows: int = ROWS) -> Iterator[slice]:
    """Slices that cover the records."""
    for start in range(0, records, rows):
        yield slice(start, min(start + rows, records))


def weighted_gram(X: FloatArray, weight: FloatArray) -> FloatArray:
    """sum_j weight_j x_j x_j', symmetric to the last digit."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for part in row_blocks(len(X)):
        rows = X[part]
        total += (rows * weight[part, None]).T @ rows
    return np.asarray(0.5 * (total + total.T))


def quadratic_forms(X: FloatArray, matrix: FloatArray) -> FloatArray:
    """x_i' matrix x_i for every record."""
    result = np.empty(len(X))
    for part in row_blocks(len(X)):
        rows = X[part]
        result[part] = np.einsum("ij,ij->i", rows @ matrix, rows)
    return result


def spd_inverse(matrix: FloatArray, what: str) -> FloatArray:
    """The inverse of a positive definite matrix, scaled to a unit diagonal on the way."""
    diagonal = np.diagonal(matrix)
    if np.any(diagonal <= 0.0):
        column = int(np.argmin(diagonal))
        raise InputError(f"{what}: column {column} is zero and not penalised; drop it.")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = matrix * scale[:, None] * scale
    try:
        factor = linalg.cholesky(scaled, lower=True, check_finite=False)
        pivot = float(np.min(np.diagonal(factor)))
    except linalg.LinAlgError:
        pivot = 0.0
    if pivot < 1e-7:
        raise InputError(
            f"{what}: some columns that are not penalised are combinations of the others (a "
            "constant column beside an intercept, a repeated column), so the coefficients are not "
            "determined; drop them or add a penalty."
        )
    inverse = linalg.cho_solve((factor, True), np.eye(len(matrix)), check_finite=False)
    return np.asarray(0.5 * (inverse + inverse.T) * scale[:, None] * scale)


@dataclass(frozen=True, eq=False)
class FeatureResponse:
    """The response at one set of curvatures c.

    Attributes
    ----------
    prediction
        X theta after a Newton step.
    leverage
        g_i = x_i' Hbar^{-1} x_i.
    slack
        1 - c_i g_i.
    """

    X: FloatArray
    inverse: FloatArray
    theta: FloatArray
    prediction: FloatArray
    leverage: FloatArray
    slack: FloatArray

    def carried(self, t: FloatArray) -> FloatArray:
        """sum_j G_ij^2 t_j for every record i, its own term included."""
        spread = self.inverse @ weighted_gram(self.X, t) @ self.inverse
        return quadratic_forms(self.X, spread)

    def rows(self, part: slice) -> npt.NDArray[np.floating]:
        """The rows G_i. of a block of records, in single precision: only their sizes matter."""
        left = (self.X[part] @ self.inverse).astype(np.float32)
        return np.asarray(left @ self.single.T)

    @cached_property
    def single(self) -> npt.NDArray[np.float32]:
        """The design in single precision."""
        return self.X.astype(np.float32)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """A design and its penalty at one fraction."""

    X: FloatArray
    penalty: FloatArray
    name: str

    @classmethod
    def of(cls, problem: ConvexProblem, fraction: float) -> FeatureSpace:
        """The space of a problem that has features."""
        assert problem.X is not None
        return cls(problem.X, problem.penalty_at(fraction), problem.name)

    def start(self, theta: FloatArray | None) -> FloatArray:
        """The predictions of the released fit, or zero."""
        return np.zeros(len(self.X)) if theta is None else np.asarray(self.X @ theta)

    def respond(self, c: FloatArray, s: FloatArray, z: FloatArray) -> FeatureResponse:
        """Newton step and leverages, where the total force s has slope c at the predictions z."""
        hessian = weighted_gram(self.X, c)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        inverse = spd_inverse(hessian, self.name)
        theta = inverse @ (self.X.T @ (c * z - s))
        # one step of refinement: the inverse alone loses digits where the columns' scales differ
        residual = self.X.T @ (c * (z - self.X @ theta) - s) - self.penalty * theta
        theta = theta + inverse @ residual
        leverage = quadratic_forms(self.X, inverse)
        return FeatureResponse(
            self.X, inverse, theta, self.X @ theta, leverage, np.maximum(1.0 - c * leverage, 1e-12)
        )
