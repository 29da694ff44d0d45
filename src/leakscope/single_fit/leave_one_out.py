"""Every record's prediction from the fit without it, or without its group, as a refit gives it.

One factorisation gives a first answer, which is exact for the square loss.  Each unit's own
coefficients are then improved by Newton-like steps that share one Hessian, many units to a block,
so that the work is matrix products: N^2 d for each sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.single_fit.laws import ScoreMoments
from leakscope.single_fit.losses import LOSSES, Codes, label_log_odds
from leakscope.single_fit.optimum import Fit, newton
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import DENSE, Features, Stacked
from leakscope.single_fit.shares import Shares
from leakscope.single_fit.units import LEAST_SLACK, Stack, along, solved, transposed

# Predictions of all units of a block together.
AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class LeaveOneOutValues:
    """Predictions with and without each record, or its group.

    Attributes
    ----------
    prediction
        x_i'theta of the fit on all records: N, or N x classes.
    without
        x_i'theta of the fit on all records but i, or but its group.
    last_step
        The last refinement's largest change of a prediction; 0 where the values are exact.
    leverage
        x' H^{-1} x of the fit on all records; None for several outputs and for groups.
    moved
        (U,) how far leaving the unit out moves the coefficients, a norm; None for kernels.
    """

    prediction: FloatArray
    without: FloatArray
    last_step: float
    leverage: FloatArray | None = None
    moved: FloatArray | None = None


def one_step_out(problem: ConvexProblem, groups: Codes | None = None) -> FloatArray:
    """Every record's prediction without its unit, one Newton step from the fit: N, or N x classes.

    z_out = z + (I - g c)^{-1} g F.  It costs one factorisation, is exact for the square loss, and
    near enough to price a penalty; `leave_one_out` refines it until it equals a refit.  A penalty
    that belongs to the mean loss stays that of all records.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.single_fit import ConvexProblem
    >>> from leakscope.single_fit.leave_one_out import leave_one_out, one_step_out
    >>> problem = ConvexProblem(y=np.array([1.0, 2.0, 4.0]), loss="square", kernel=np.eye(3))
    >>> bool(np.allclose(one_step_out(problem), leave_one_out(problem).without, atol=1e-12))
    True
    """
    fit = newton(problem, groups, most_steps=1)
    return fit.records(_stepped_out(fit))


def _stepped_out(fit: Fit) -> Stacked:
    g = fit.response.leverage()
    slack = fit.response.slack(g, fit.curvatures)
    return [
        z + solved(s, along(block, force)[..., None])[..., 0]
        for z, s, block, force in zip(fit.predictions, slack, g, fit.forces, strict=True)
    ]


def leave_one_out(
    problem: ConvexProblem,
    *,
    tolerance: float = 1e-9,
    max_sweeps: int = 60,
    groups: Codes | None = None,
) -> LeaveOneOutValues:
    """The predictions at every record of the fits with and without its unit.

    Exact for the square loss; else refined until no prediction moves by more than ``tolerance``.
    With ``groups``, the number of each record's group, whole groups are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.single_fit import ConvexProblem
    >>> from leakscope.single_fit.leave_one_out import leave_one_out
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(40, 3))
    >>> y = (X[:, 0] + generator.normal(size=40) > 0).astype(float)
    >>> found = leave_one_out(ConvexProblem(y=y, loss="logistic", X=X, penalty=np.ones(3)))
    >>> found.last_step < 1e-9
    True
    """
    wide = problem.X is None or problem.X.shape[1] > problem.records
    if problem.X is not None and problem.outputs * problem.X.shape[1] > DENSE > problem.outputs > 1:
        raise InputError(
            f"Leave-one-out values of {problem.outputs * problem.X.shape[1]} coefficients in "
            f"{problem.classes} classes are not refined (up to {DENSE} are); ask the pool question "
            "instead."
        )
    if groups is not None and wide and problem.penalty_per_record:
        raise InputError("Whole groups leave a kernel whose penalty stays; give the design.")
    if wide and not (problem.quadratic and not problem.penalty_per_record):
        raise InputError(
            "Leave-one-out values of a loss that is not quadratic are refined in feature space: "
            "pass a model with fewer features than records."
        )
    fit = newton(problem, groups)
    leverage = None
    if groups is None and problem.outputs == 1:
        leverage = fit.response.leverage()[0][:, 0, 0]
    prediction = fit.records(fit.predictions)
    if problem.quadratic and not problem.penalty_per_record:
        without = fit.records(_stepped_out(fit))
        return LeaveOneOutValues(prediction, without, 0.0, leverage, _moved(fit))
    units = sum(len(stack.units) for stack in fit.response.route.stacks)
    moved, worst, refined = np.empty(units), 0.0, []
    for number, stack in enumerate(fit.response.route.stacks):
        step = max(1, AT_ONCE // (problem.records * problem.outputs))
        parts = []
        for start in range(0, len(stack.units), step):
            some = slice(start, start + step)
            z, moved[stack.units[some]], last = _refined(fit, number, some, tolerance, max_sweeps)
            parts.append(z)
            worst = max(worst, last)
        refined.append(np.concatenate(parts))
    return LeaveOneOutValues(prediction, fit.records(refined), worst, leverage, moved)


def _moved(fit: Fit) -> FloatArray | None:
    """Leaving a unit out moves the coefficients by Hbar^{-1} X_R' (I - c g)^{-1} F."""
    if not isinstance(fit.response.route, Features):
        return None
    slack = fit.response.slack(fit.response.leverage(), fit.curvatures)
    found = np.empty(sum(len(stack.units) for stack in fit.response.route.stacks))
    for number, stack in enumerate(fit.response.route.stacks):
        pull = solved(transposed(slack[number]), fit.forces[number][..., None])[..., 0]
        every = np.arange(len(stack.units))
        found[stack.units] = np.linalg.norm(fit.response.lifted(number, every, pull), axis=1)
    return found


def _refined(
    fit: Fit, number: int, some: slice, tolerance: float, max_sweeps: int
) -> tuple[FloatArray, FloatArray, float]:
    """Sweeps over some left-out units of one stack: column k of the arrays is that without unit k.

    The predictions at the units' rows (k, q), how far the coefficients moved, and the last step.
    """
    problem, response, route = fit.problem, fit.response, fit.response.route
    X, outputs = problem.X, problem.outputs
    assert X is not None
    every = np.arange(problem.records)
    records = Stack.of(problem, every, every[:, None])
    rows, x = route.stacks[number].rows[some], route.X[number][some]
    count = len(rows)
    columns = np.arange(count)
    penalty = np.ones(count)
    if problem.penalty_per_record:
        weight = problem.sample_weights
        penalty = 1.0 - weight[rows].sum(axis=1) / weight.sum()
    # Woodbury: the Hessian without the unit's rows, for each column
    c = fit.curvatures[number][some]
    g = response.leverage()[number][some]
    gain = c @ np.linalg.inv(response.slack([g], [c])[0])
    estimate = np.repeat(fit.where[:, None], count, axis=1)  # d x k x O
    before, damp = np.full(count, np.inf), np.ones(count)
    length = before
    for _ in range(max_sweeps):
        z = np.tensordot(X, estimate, axes=(1, 0))  # N x k x O
        force = records.force(z)
        force[rows, columns[:, None]] = 0.0
        gradient = np.tensordot(X, force, axes=(0, 0))
        gradient += route.penalty[:, None, None] * penalty[:, None] * estimate
        step = _solve(response.inverse, gradient)
        met = np.einsum("krd,dko->kro", x, step, optimize=True).reshape(count, -1)
        back = along(gain, met).reshape(count, -1, outputs)
        step = step + _solve(response.inverse, np.einsum("krd,kro->dko", x, back, optimize=True))
        length = np.abs(np.tensordot(X, step, axes=(1, 0))).max(axis=(0, 2))
        # shorter where the last step did not shrink
        shorter, longer = np.maximum(0.5 * damp, 1e-3), np.minimum(1.5 * damp, 1.0)
        damp, before = np.where(length > 0.9 * before, shorter, longer), length
        estimate = estimate - damp[:, None] * step
        if float(length.max()) <= tolerance:
            break
    without = np.einsum("krd,dko->kro", x, estimate, optimize=True).reshape(count, -1)
    moved = np.linalg.norm(estimate - fit.where[:, None], axis=(0, 2))
    return without, np.asarray(moved), float(length.max())


def _solve(inverse: FloatArray, gradient: FloatArray) -> FloatArray:
    """Hbar^{-1} of gradients d x k x O; coefficient (a, output) at output d + a."""
    d, count, outputs = gradient.shape
    flat = gradient.transpose(2, 0, 1).reshape(outputs * d, count)
    return np.asarray((inverse @ flat).reshape(outputs, d, count).transpose(1, 2, 0))


def known_others(problem: ConvexProblem) -> ScoreMoments:
    """Both scores of every record; nothing is random, so the standard deviations are zero."""
    found = leave_one_out(problem)
    inside, outside = found.prediction, found.without
    yields = None
    if found.leverage is not None:
        h = problem.sample_weights * LOSSES[problem.loss].curvature(inside, problem.y)
        yields = found.leverage, found.leverage / np.maximum(1.0 - h * found.leverage, LEAST_SLACK)
    if problem.loss == "softmax":
        inside, outside = (label_log_odds(z, problem.y) for z in (inside, outside))
    return still_laws(inside, outside, found.last_step, yields=yields, moved=found.moved)


def still_laws(
    inside: FloatArray,
    outside: FloatArray,
    last_step: float,
    *,
    yields: tuple[FloatArray, FloatArray] | None = None,
    moved: FloatArray | None = None,
) -> ScoreMoments:
    """Of scores of which nothing is random."""
    still = np.zeros(len(inside))
    return ScoreMoments(
        mean_in=inside,
        sd_in=still,
        mean_out=outside,
        sd_out=still,
        rounds=1,
        change=last_step,
        converged=last_step <= 1e-6,
        shares=Shares.unknown(len(inside)),
        yields=yields,
        moved=moved,
    )
