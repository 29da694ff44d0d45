"""The Hessian of a convex problem, and how far a released fit is from the optimum.

A Newton step from the released coefficients says whether they are the optimum on these records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.losses import LOSSES, softmax
from leakscope.fitted.problem import ConvexProblem

# Rows of the design handled at once.
ROWS = 8192


def _row_blocks(records: int) -> Iterator[slice]:
    for start in range(0, records, ROWS):
        yield slice(start, min(start + ROWS, records))


def weighted_gram(X: FloatArray, weight: FloatArray) -> FloatArray:
    """sum_j weight_j x_j x_j', symmetric to the last digit."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for part in _row_blocks(len(X)):
        rows = X[part]
        total += (rows * weight[part, None]).T @ rows
    return np.asarray(0.5 * (total + total.T))


def quadratic_forms(X: FloatArray, matrix: FloatArray) -> FloatArray:
    """x_i' matrix x_i for every record."""
    result = np.empty(len(X))
    for part in _row_blocks(len(X)):
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


def inverse_hessian(
    X: FloatArray, curvature: FloatArray, penalty: FloatArray, what: str
) -> FloatArray:
    """The inverse of sum_j curvature_j x_j x_j' + Lambda."""
    hessian = weighted_gram(X, curvature)
    hessian[np.diag_indices_from(hessian)] += penalty
    return spd_inverse(hessian, what)


class Distance(NamedTuple):
    """How far a fit is from the optimum on the records given.

    Attributes
    ----------
    gradient
        The largest entry of the objective's gradient, in absolute value.
    relative
        The distance to the optimum over the fit's own sampling noise: the square root of
        grad' H^{-1} grad / sum_j F_j^2 x_j' H^{-1} x_j.  A fit on another sample has about 1.
    """

    gradient: float
    relative: float


def distance_to_optimum(problem: ConvexProblem) -> Distance | None:
    """The distance of ``problem.coefficients``; None where they are not known."""
    theta = problem.coefficients
    if theta is None or problem.X is None:
        return None
    if problem.loss == "softmax":
        return _softmax_distance(problem, theta)
    loss, weight = LOSSES[problem.loss], problem.sample_weights
    penalty = problem.penalty_at(1.0)
    z = problem.X @ theta
    force = weight * loss.force(z, problem.y)
    gradient = problem.X.T @ force + penalty * theta
    largest = float(np.max(np.abs(gradient)))
    if problem.X.shape[1] > problem.records:
        # too many columns for a Hessian: compare with the gradient's own noise, column by column
        noise = np.sqrt(problem.X.T**2 @ force**2) + 1e-9 * (
            np.abs(problem.X.T) @ np.abs(problem.y)
        )
        return Distance(
            largest, float(np.sqrt(np.mean((gradient / np.maximum(noise, 1e-300)) ** 2)))
        )
    inverse = inverse_hessian(
        problem.X, weight * loss.curvature(z, problem.y), penalty, problem.name
    )
    total = float(force**2 @ quadratic_forms(problem.X, inverse))
    return Distance(largest, _relative(float(gradient @ inverse @ gradient), total, z, weight))


def _softmax_distance(problem: ConvexProblem, theta: FloatArray) -> Distance:
    """Class by class: the classes' couplings do not matter for a distance of this kind."""
    assert problem.X is not None
    penalty = problem.penalty_at(1.0)
    z = problem.X @ theta
    share = softmax(z)
    force = share.copy()
    force[np.arange(len(z)), problem.y.astype(int)] -= 1.0
    force *= problem.sample_weights[:, None]
    gradient = problem.X.T @ force + penalty[:, None] * theta
    square = problem.X**2
    # diagonal curvature: enough to tell a tenth of the sampling noise from all of it
    weights = problem.sample_weights[:, None] * share * (1.0 - share)
    curvature = square.T @ weights + penalty[:, None] + 1e-12
    noise = float(np.sum((square.T @ force**2) / curvature))
    decrement = float(np.sum(gradient**2 / curvature))
    return Distance(
        float(np.max(np.abs(gradient))), _relative(decrement, noise, z, problem.sample_weights)
    )


def _relative(decrement: float, noise: float, z: FloatArray, weight: FloatArray) -> float:
    # rounding alone leaves this much where a model interpolates and has no noise of its own
    floor = 1e-14 * float(np.sum(weight * z.T**2))
    return float(np.sqrt(max(decrement, 0.0) / max(noise + floor, 1e-300)))
