"""Leave-one-out logits of a softmax model, refined until they equal refits."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.leave_one_out import LeaveOneOutValues
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.softmax_cavity import DENSE
from leakscope.fitted.softmax_dense import DenseSoftmax
from leakscope.fitted.softmax_loss import softmax

_COLUMNS = 32


def softmax_leave_one_out(
    problem: ConvexProblem, *, tolerance: float, max_sweeps: int
) -> LeaveOneOutValues:
    """Refine every record's own coefficients with one shared Hessian."""
    assert problem.X is not None
    X, classes = problem.X, problem.classes
    if classes * X.shape[1] > DENSE:
        raise InputError(
            f"Leave-one-out values of {classes * X.shape[1]} coefficients in {classes} classes are "
            f"not refined (up to {DENSE} are); ask the pool question instead."
        )
    weight, penalty = problem.sample_weights, problem.penalty_at(1.0)
    codes = problem.y.astype(np.intp)
    theta = _optimum(problem)
    response = _response(problem, theta)
    prediction = X @ theta
    without, distance = np.empty_like(prediction), np.empty(problem.records)
    worst = 0.0
    target = np.zeros((problem.records, classes))
    target[np.arange(problem.records), codes] = 1.0
    for start in range(0, problem.records, _COLUMNS):
        part = np.arange(start, min(start + _COLUMNS, problem.records))
        columns = np.arange(len(part))
        # d x C for every left-out record of the block; M first
        estimate = np.repeat(theta[None], len(part), axis=0)
        own_c = weight[part, None, None] * _curvature(prediction[part])
        own_g = response.leverage[part]
        gain = own_c @ np.linalg.inv(np.eye(classes) - own_g @ own_c)
        size = np.full(len(part), np.inf)
        damp = np.ones(len(part))
        for _ in range(max_sweeps):
            logits = X @ estimate
            force = weight[:, None] * (softmax(logits) - target)
            force[columns, part] = 0.0
            gradient = X.T @ force + penalty[:, None] * estimate
            step = _steps(response, gradient)
            # Woodbury: the Hessian without the record
            back = np.einsum("mcd,md->mc", gain, np.einsum("ma,mac->mc", X[part], step))
            step = step + _steps(response, X[part][:, :, None] * back[:, None, :])
            moved = X @ step
            moved -= moved.mean(axis=2, keepdims=True)
            new = np.abs(moved).max(axis=(1, 2))
            damp = np.where(
                new > 0.9 * size, np.maximum(0.5 * damp, 1e-3), np.minimum(1.5 * damp, 1)
            )
            size = new
            estimate = estimate - damp[:, None, None] * step
            if float(size.max()) <= tolerance:
                break
        worst = max(worst, float(size.max()))
        distance[part] = np.sqrt(((estimate - theta) ** 2).sum(axis=(1, 2)))
        without[part] = np.einsum("ma,mac->mc", X[part], estimate)
    return LeaveOneOutValues(prediction, without, worst, None, distance)


def _curvature(z: FloatArray) -> FloatArray:
    p = softmax(z)
    return np.asarray(p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :])


def _response(problem: ConvexProblem, theta: FloatArray) -> DenseSoftmax:
    assert problem.X is not None
    c = problem.sample_weights[:, None, None] * _curvature(problem.X @ theta)
    return DenseSoftmax.at(problem.X, problem.penalty_at(1.0), c, problem.name)


def _steps(response: DenseSoftmax, gradient: FloatArray) -> FloatArray:
    """Hbar^{-1} applied to M x d x C."""
    flat = np.swapaxes(gradient, 1, 2).reshape(len(gradient), -1)
    solved = flat @ response.inverse
    shape = (len(gradient), gradient.shape[2], gradient.shape[1])
    return np.asarray(np.swapaxes(solved.reshape(shape), 1, 2))


def _optimum(problem: ConvexProblem) -> FloatArray:
    """The fit on all records, to rounding, from the released coefficients or from zero."""
    assert problem.X is not None
    X, weight, penalty = problem.X, problem.sample_weights, problem.penalty_at(1.0)
    target = np.zeros((problem.records, problem.classes))
    target[np.arange(problem.records), problem.y.astype(int)] = 1.0
    theta = (
        np.zeros((X.shape[1], problem.classes))
        if problem.coefficients is None
        else np.array(problem.coefficients, dtype=np.float64)
    )
    for _ in range(100):
        response = _response(problem, theta)
        gradient = (
            X.T @ (weight[:, None] * (softmax(X @ theta) - target)) + penalty[:, None] * theta
        )
        step = response.step(gradient)
        longest = float(np.max(np.abs(X @ step)))
        theta = theta - step * min(1.0, 4.0 / max(longest, 1e-300))
        if longest < 1e-11:
            break
    return theta
