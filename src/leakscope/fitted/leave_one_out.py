"""Every record's prediction from the fit without it, refined until it equals a refit.

The cavity at f = 1 gives a first answer from one factorisation.  Each record's own coefficients are
then improved by Newton-like steps that share one Hessian, many records to a block, so that the work
is matrix products: N^2 d for each sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.cavity import solve_cavity
from leakscope.fitted.feature_space import FeatureResponse, spd_inverse, weighted_gram
from leakscope.fitted.losses import LOSSES
from leakscope.fitted.problem import ConvexProblem

# Records that are refined together.
_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class LeaveOneOutValues:
    """Predictions with and without each record.

    Attributes
    ----------
    prediction
        x_i'theta of the fit on all records (N, or N x classes).
    without
        x_i'theta of the fit on all records but i.
    last_step
        The last refinement's largest change of a prediction; 0 where the values are exact.
    leverage
        x' H^{-1} x of the fit on all records; None for several classes.
    moved
        How far leaving the record out moves the coefficients, a norm; None for kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ConvexProblem, leave_one_out
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> found = leave_one_out(ConvexProblem(y=np.array([1.0, 2.0, 2.0]), loss="square", X=X,
    ...                                     penalty=np.array([1.0])))
    >>> [round(float(z), 4) for z in found.without]  # the first: 10 / 14
    [0.7143, 1.2727, 2.5]
    """

    prediction: FloatArray
    without: FloatArray
    last_step: float
    leverage: FloatArray | None = None
    moved: FloatArray | None = None


def leave_one_out(
    problem: ConvexProblem, *, tolerance: float = 1e-9, max_sweeps: int = 60
) -> LeaveOneOutValues:
    """The predictions at every record of the fits with and without it.

    Exact for the square loss; else refined until no prediction moves by more than ``tolerance``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ConvexProblem, leave_one_out
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(40, 3))
    >>> y = (X[:, 0] + generator.normal(size=40) > 0).astype(float)
    >>> found = leave_one_out(ConvexProblem(y=y, loss="logistic", X=X, penalty=np.ones(3)))
    >>> found.last_step < 1e-9
    True
    """
    if problem.loss == "softmax":
        from leakscope.fitted.softmax_leave_one_out import softmax_leave_one_out

        return softmax_leave_one_out(problem, tolerance=tolerance, max_sweeps=max_sweeps)
    cavity = solve_cavity(problem, 1.0, tolerance=1e-10)
    loss = LOSSES[problem.loss]
    weight = problem.sample_weights
    prediction = cavity.mean - cavity.kappa * cavity.moments.force
    if loss.quadratic and not problem.penalty_per_record:
        moved = None
        if isinstance(cavity.response, FeatureResponse):
            # leaving the record out moves the coefficients along H^{-1} x
            reach = np.linalg.norm(cavity.response.X @ cavity.response.inverse, axis=1)
            moved = np.abs(prediction - cavity.mean) * reach / cavity.response.leverage
        return LeaveOneOutValues(prediction, cavity.mean, 0.0, cavity.response.leverage, moved)
    if problem.X is None or problem.X.shape[1] > problem.records:
        raise InputError(
            "Leave-one-out values of a loss that is not quadratic are refined in feature space: "
            "pass a model with fewer features than records."
        )
    X, y = problem.X, problem.y
    theta = np.asarray(np.linalg.lstsq(X, prediction, rcond=None)[0], dtype=np.float64)
    hessian = weighted_gram(X, weight * loss.curvature(prediction, y))
    hessian[np.diag_indices_from(hessian)] += problem.penalty_at(1.0)
    inverse = spd_inverse(hessian, problem.name)
    leverage = np.einsum("ij,ij->i", X @ inverse, X)
    without, moved = np.empty(problem.records), np.empty(problem.records)
    worst = 0.0
    for start in range(0, problem.records, _COLUMNS):
        part = np.arange(start, min(start + _COLUMNS, problem.records))
        without[part], moved[part], step = _refined(
            problem, theta, inverse, leverage, prediction, part, tolerance, max_sweeps
        )
        worst = max(worst, step)
    return LeaveOneOutValues(prediction, without, worst, leverage, moved)


def _refined(
    problem: ConvexProblem,
    theta: FloatArray,
    inverse: FloatArray,
    leverage: FloatArray,
    prediction: FloatArray,
    part: np.ndarray[tuple[int], np.dtype[np.intp]],
    tolerance: float,
    max_sweeps: int,
) -> tuple[FloatArray, FloatArray, float]:
    """Sweeps over one block of left-out records; column k of the arrays is record part[k]."""
    assert problem.X is not None
    X, y, weight = problem.X, problem.y, problem.sample_weights
    loss = LOSSES[problem.loss]
    columns = np.arange(len(part))
    penalty = problem.penalty_at(1.0)[:, None]
    if problem.penalty_per_record:
        penalty = penalty * (1.0 - weight[part] / weight.sum())
    own = X[part].T
    solved = inverse @ own
    curvature = weight[part] * loss.curvature(prediction[part], y[part])
    # Sherman-Morrison: the Hessian without the record, for each column
    gain = curvature / np.maximum(1.0 - curvature * leverage[part], 1e-10)
    estimate = np.repeat(theta[:, None], len(part), axis=1)
    before = np.full(len(part), np.inf)
    damp = np.ones(len(part))
    last = X @ estimate
    step_size = np.inf
    for _ in range(max_sweeps):
        force = weight[:, None] * loss.force(last, y[:, None])
        force[part, columns] = 0.0
        gradient = X.T @ force + penalty * estimate
        step = inverse @ gradient
        step += solved * (gain * np.einsum("ij,ij->j", own, step))
        size = np.abs(X @ step).max(axis=0)
        damp = np.where(
            size > 0.9 * before, np.maximum(0.5 * damp, 1e-3), np.minimum(1.5 * damp, 1.0)
        )
        before = size
        estimate = estimate - damp * step
        last = X @ estimate
        step_size = float(size.max())
        if step_size <= tolerance:
            break
    moved = np.linalg.norm(estimate - theta[:, None], axis=0)
    return np.asarray(last[part, columns]), np.asarray(moved), step_size
