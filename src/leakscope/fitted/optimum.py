"""Is the released fit the optimum on these records?  A Newton step from it says how far it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.feature_space import quadratic_forms, spd_inverse, weighted_gram
from leakscope.fitted.losses import LOSSES
from leakscope.fitted.problem import ConvexProblem


@dataclass(frozen=True)
class Distance:
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
    hessian = weighted_gram(problem.X, weight * loss.curvature(z, problem.y))
    hessian[np.diag_indices_from(hessian)] += penalty
    inverse = spd_inverse(hessian, problem.name)
    total = float(force**2 @ quadratic_forms(problem.X, inverse))
    return Distance(largest, _relative(float(gradient @ inverse @ gradient), total, z, weight))


def _softmax_distance(problem: ConvexProblem, theta: FloatArray) -> Distance:
    """Class by class: the classes' couplings do not matter for a distance of this kind."""
    assert problem.X is not None
    penalty = problem.penalty_at(1.0)
    z = problem.X @ theta
    share = np.exp(z - z.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
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
