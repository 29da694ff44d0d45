"""Every record's prediction from the fit without it, refined until it equals a refit.

The cavity at f = 1 gives a first answer from one factorisation.  Each record's own coefficients are
then improved by Newton-like steps that share one Hessian, many records to a block, so that the work
is matrix products: N^2 d for each sweep.

`known_others` makes laws of it: the fit with the record and the fit without it are two points.
Noise on the answers or on the coefficients, or a posterior draw, makes laws of them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.cavity import PredictionLaws, Shares, solve_cavity, start_and_response
from leakscope.fitted.losses import LOSSES, Codes, one_hot, own_log_odds, softmax
from leakscope.fitted.optimum import inverse_hessian, quadratic_forms
from leakscope.fitted.people_cavity import in_features, of_one_size, yielded
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.responses import DenseSoftmax, FeatureResponse, StructuredSoftmax
from leakscope.fitted.softmax_cavity import DENSE, SEED, released

# Records that are refined together: of one output, and of several classes.
COLUMNS, SOFTMAX_COLUMNS = 256, 32
# Newton steps of a fit on a part of the records.
MOST_STEPS = 200


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
    """

    prediction: FloatArray
    without: FloatArray
    last_step: float
    leverage: FloatArray | None = None
    moved: FloatArray | None = None


def leave_one_out(
    problem: ConvexProblem,
    *,
    tolerance: float = 1e-9,
    max_sweeps: int = 60,
    codes: Codes | None = None,
) -> LeaveOneOutValues:
    """The predictions at every record of the fits with and without it.

    Exact for the square loss; else refined until no prediction moves by more than ``tolerance``.
    With ``codes``, the number of each record's group, whole groups are left out: ``without`` has
    the predictions at every record of the fit without its group, and ``moved`` is of each group.

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
        if codes is not None:
            raise InputError(
                "With several classes, fits without a whole group are not computed; ask the pool "
                "question instead."
            )
        return _softmax_leave_one_out(problem, tolerance, max_sweeps)
    if codes is not None and (problem.X is None or problem.X.shape[1] > problem.records):
        X, penalty = in_features(problem, 1.0)
        if problem.penalty_per_record:
            raise InputError("Whole groups leave a kernel whose penalty stays; give the design.")
        problem = replace(problem, X=X, penalty=penalty, kernel=None, coefficients=None)
    cavity = solve_cavity(problem, 1.0, tolerance=1e-10)
    loss = LOSSES[problem.loss]
    weight = problem.sample_weights
    prediction = cavity.mean - cavity.kappa * cavity.moments.force
    if codes is None and loss.quadratic and not problem.penalty_per_record:
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
    curvature = weight * loss.curvature(prediction, y)
    inverse = inverse_hessian(X, curvature, problem.penalty_at(1.0), problem.name)
    leverage = quadratic_forms(X, inverse)
    own = np.arange(problem.records) if codes is None else codes
    without, distance = np.empty(problem.records), np.empty(int(own.max()) + 1)
    worst = 0.0
    for units, rows in of_one_size(own):
        for start in range(0, len(units), COLUMNS):
            part = slice(start, start + COLUMNS)
            without[rows[part]], distance[units[part]], step = _refined(
                problem, theta, inverse, curvature, rows[part], tolerance, max_sweeps
            )
            worst = max(worst, step)
    return LeaveOneOutValues(prediction, without, worst, leverage, distance)


def one_step_out(problem: ConvexProblem) -> FloatArray:
    """Every record's prediction without it, one Newton step from the fit: N, or N x classes.

    z_out = z + kappa F with kappa = (I - g c)^{-1} g, g the leverage, c the curvature and F the
    slope of the record's loss at z.  It costs one factorisation, is exact for the square loss, and
    near enough to price a penalty; `leave_one_out` refines it until it equals a refit.  A penalty
    that belongs to the mean loss stays that of all records.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ConvexProblem
    >>> from leakscope.fitted.leave_one_out import leave_one_out, one_step_out
    >>> problem = ConvexProblem(y=np.array([1.0, 2.0, 4.0]), loss="square", kernel=np.eye(3))
    >>> bool(np.allclose(one_step_out(problem), leave_one_out(problem).without, atol=1e-12))
    True
    """
    if problem.loss == "softmax":
        return _softmax_one_step(problem)
    z, respond = start_and_response(problem, 1.0)
    if problem.X is not None and problem.coefficients is not None:
        z = problem.X @ problem.coefficients
    loss, y, weight = LOSSES[problem.loss], problem.y, problem.sample_weights
    response = respond(weight * loss.curvature(z, y), weight * loss.force(z, y), z)
    z = response.prediction
    return np.asarray(z + response.leverage / response.slack * weight * loss.force(z, y))


def predictions_on(problem: ConvexProblem, rows: npt.NDArray[np.intp]) -> FloatArray:
    """All records' predictions by the optimum on some of them: N, or N x classes.

    Records that are not among ``rows`` weigh nothing; a penalty of the mean loss is that of so
    many records.
    """
    weight = np.zeros(problem.records)
    weight[rows] = problem.sample_weights[rows]
    part = replace(problem, weights=weight)
    if problem.loss == "softmax":
        assert problem.X is not None
        target = one_hot(problem.y.astype(np.intp), problem.classes)
        return np.asarray(problem.X @ softmax_optimum(part, target)[0])
    loss, y = LOSSES[problem.loss], problem.y
    z, respond = start_and_response(part, 1.0)
    for _ in range(MOST_STEPS):
        step = respond(weight * loss.curvature(z, y), weight * loss.force(z, y), z).prediction - z
        longest = float(np.max(np.abs(step)))
        z = z + step * min(1.0, loss.longest_step / max(longest, 1e-300))
        if longest <= 1e-9 * (1.0 + float(np.max(np.abs(z)))):
            break
    return np.asarray(z)


def _softmax_one_step(problem: ConvexProblem) -> FloatArray:
    assert problem.X is not None
    X, classes, theta = problem.X, problem.classes, released(problem)
    require_memory(
        6 * 8 * problem.records * classes**2,
        f"The held-out scores of {problem.records} records in {classes} classes",
        "use fewer records",
    )
    z, penalty = X @ theta, problem.penalty_at(1.0)
    weight = problem.sample_weights
    c = weight[:, None, None] * _curvature(z)
    if classes * X.shape[1] <= DENSE:
        leverage = DenseSoftmax.at(X, penalty, c, problem.name).leverage
    else:
        leverage = StructuredSoftmax.at(
            X.astype(np.float32), penalty, c.astype(np.float32), seed=SEED
        ).leverage.astype(np.float64)
    force = weight[:, None] * (softmax(z) - one_hot(problem.y.astype(np.intp), classes))
    pushed = np.linalg.solve(np.eye(classes) - leverage @ c, leverage @ force[:, :, None])
    return np.asarray(z + pushed[:, :, 0])


def _refined(
    problem: ConvexProblem,
    theta: FloatArray,
    inverse: FloatArray,
    curvature: FloatArray,
    rows: Codes,
    tolerance: float,
    max_sweeps: int,
) -> tuple[FloatArray, FloatArray, float]:
    """Sweeps over some left-out units of one size; column k of the arrays is that without rows[k].

    The predictions at the rows (units x size), how far the coefficients moved, and the last step.
    """
    assert problem.X is not None
    X, y, weight = problem.X, problem.y, problem.sample_weights
    loss = LOSSES[problem.loss]
    count, size = rows.shape
    columns = np.arange(count)
    penalty = problem.penalty_at(1.0)[:, None]
    if problem.penalty_per_record:
        penalty = penalty * (1.0 - weight[rows].sum(axis=1) / weight.sum())
    own = X[rows]
    solved = own @ inverse
    # Woodbury: the Hessian without the unit's rows, for each column
    g = solved @ np.swapaxes(own, 1, 2)
    c = curvature[rows]
    diagonal = c[:, :, None] * np.eye(size)
    gain = diagonal @ yielded(g, diagonal, np.broadcast_to(np.eye(size), g.shape))
    estimate = np.repeat(theta[:, None], count, axis=1)
    before, damp = np.full(count, np.inf), np.ones(count)
    last = X @ estimate
    step_size = np.inf
    for _ in range(max_sweeps):
        force = weight[:, None] * loss.force(last, y[:, None])
        force[rows, columns[:, None]] = 0.0
        gradient = X.T @ force + penalty * estimate
        step = inverse @ gradient
        met = (own @ step.T[:, :, None])[:, :, 0]
        step = step + np.einsum("krd,krs,ks->dk", solved, gain, met, optimize=True)
        length = np.abs(X @ step).max(axis=0)
        damp, before = _damped(damp, length, before), length
        estimate = estimate - damp * step
        last = X @ estimate
        step_size = float(length.max())
        if step_size <= tolerance:
            break
    moved = np.linalg.norm(estimate - theta[:, None], axis=0)
    return np.asarray(last[rows, columns[:, None]]), np.asarray(moved), step_size


def _damped(damp: FloatArray, size: FloatArray, before: FloatArray) -> FloatArray:
    """The next steps' lengths: shorter where the last step did not shrink."""
    shorter, longer = np.maximum(0.5 * damp, 1e-3), np.minimum(1.5 * damp, 1.0)
    return np.where(size > 0.9 * before, shorter, longer)


def _softmax_leave_one_out(
    problem: ConvexProblem, tolerance: float, max_sweeps: int
) -> LeaveOneOutValues:
    """The same with several classes: the coefficients are d x C, and a record's Hessian a block."""
    assert problem.X is not None
    X, classes = problem.X, problem.classes
    if classes * X.shape[1] > DENSE:
        raise InputError(
            f"Leave-one-out values of {classes * X.shape[1]} coefficients in {classes} classes are "
            f"not refined (up to {DENSE} are); ask the pool question instead."
        )
    weight, penalty = problem.sample_weights, problem.penalty_at(1.0)
    target = one_hot(problem.y.astype(np.intp), classes)
    theta, response = softmax_optimum(problem, target)
    prediction = X @ theta
    without, distance = np.empty_like(prediction), np.empty(problem.records)
    worst = 0.0
    for start in range(0, problem.records, SOFTMAX_COLUMNS):
        part = np.arange(start, min(start + SOFTMAX_COLUMNS, problem.records))
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
            step = response.step(gradient)
            # Woodbury: the Hessian without the record
            back = np.einsum("mcd,md->mc", gain, np.einsum("ma,mac->mc", X[part], step))
            step = step + response.step(X[part][:, :, None] * back[:, None, :])
            moved = X @ step
            moved -= moved.mean(axis=2, keepdims=True)
            new = np.abs(moved).max(axis=(1, 2))
            damp, size = _damped(damp, new, size), new
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


def softmax_response(problem: ConvexProblem, theta: FloatArray) -> DenseSoftmax:
    """The response of all coefficients at ``theta``, d x C."""
    assert problem.X is not None
    c = problem.sample_weights[:, None, None] * _curvature(problem.X @ theta)
    return DenseSoftmax.at(problem.X, problem.penalty_at(1.0), c, problem.name)


def softmax_optimum(problem: ConvexProblem, target: FloatArray) -> tuple[FloatArray, DenseSoftmax]:
    """The fit on all records, to rounding, and the response there."""
    assert problem.X is not None
    X, weight, penalty = problem.X, problem.sample_weights, problem.penalty_at(1.0)
    theta = released(problem)
    for _ in range(100):
        force = weight[:, None] * (softmax(X @ theta) - target)
        step = softmax_response(problem, theta).step(X.T @ force + penalty[:, None] * theta)
        longest = float(np.max(np.abs(X @ step)))
        theta = theta - step * min(1.0, 4.0 / max(longest, 1e-300))
        if longest < 1e-11:
            break
    return theta, softmax_response(problem, theta)


def known_others(problem: ConvexProblem) -> PredictionLaws:
    """Both scores of every record; nothing is random, so the standard deviations are zero."""
    found = leave_one_out(problem)
    inside, outside = found.prediction, found.without
    yields = None
    if found.leverage is not None:
        h = problem.sample_weights * LOSSES[problem.loss].curvature(inside, problem.y)
        yields = found.leverage, found.leverage / np.maximum(1.0 - h * found.leverage, 1e-12)
    if problem.loss == "softmax":
        inside, outside = (own_log_odds(z, problem.y) for z in (inside, outside))
    zero = np.zeros(problem.records)
    return PredictionLaws(
        mean_in=inside,
        sd_in=zero,
        mean_out=outside,
        sd_out=zero,
        rounds=1,
        change=found.last_step,
        converged=found.last_step <= 1e-6,
        smoothing_gap=0.0,
        shares=Shares.unknown(problem.records),
        by_size=np.ones(problem.records),
        yields=yields,
        moved=found.moved,
    )
