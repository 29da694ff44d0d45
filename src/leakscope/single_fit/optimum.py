"""The optimum of a convex problem by Newton steps, and how far a released fit is from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.single_fit.cavity import route_of
from leakscope.single_fit.losses import LOSSES, Codes, contrasts, one_hot, softmax
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import (
    DENSE,
    Features,
    Stacked,
    gram,
    spd_inverse,
    stacks_of,
    within,
)

# Newton steps, and the change of a prediction, relative to the largest, at which they end.
MOST_STEPS, SETTLED = 200, 1e-11
# Coefficients of one output whose Hessian is kept; of several classes it is `DENSE`.
MOST_COEFFICIENTS = 20_000


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit with the response there.

    Attributes
    ----------
    where
        The coefficients, d x O, or the predictions in function space.
    predictions, forces, curvatures
        Of every stack: (B, q), (B, q) and (B, q, q).
    last_step
        The largest change of a prediction by the last Newton step.
    """

    problem: ConvexProblem
    response: Any
    where: FloatArray
    predictions: Stacked
    forces: Stacked
    curvatures: Stacked
    last_step: float

    @property
    def settled(self) -> bool:
        """Whether the last step changed nothing that matters."""
        return self.last_step <= SETTLED * max(1.0, *(_longest([z]) for z in self.predictions))

    @property
    def coefficients(self) -> FloatArray:
        """As the problem has them: d, or d x classes."""
        return as_coefficients(self.problem, self.where)

    def records(self, parts: Stacked) -> FloatArray:
        """N x O, or N x classes, of vectors (B, q) of every stack."""
        problem = self.problem
        found = np.empty((problem.records, problem.outputs))
        for stack, part in zip(self.response.route.stacks, parts, strict=True):
            found[stack.rows] = part.reshape(*stack.rows.shape, problem.outputs)
        if problem.loss == "softmax":
            return np.asarray(found @ contrasts(problem.classes).T)
        return found[:, 0] if problem.outputs == 1 else found


def as_coefficients(problem: ConvexProblem, theta: FloatArray) -> FloatArray:
    """d x O as d, or d x classes."""
    if problem.loss == "softmax":
        return np.asarray(theta @ contrasts(problem.classes).T)
    return theta[:, 0] if problem.outputs == 1 else theta


def fit_at(problem: ConvexProblem, theta: FloatArray) -> Fit:
    """The response at coefficients d, or d x classes."""
    require_small(problem)
    return newton(replace(problem, coefficients=theta), most_steps=0, columns=True)


def require_small(problem: ConvexProblem) -> None:
    """Refuse coefficients whose Hessian is not kept."""
    assert problem.X is not None
    wide = problem.X.shape[1] * problem.classes
    several = f" in {problem.classes} classes" if problem.loss == "softmax" else ""
    most = DENSE if several else MOST_COEFFICIENTS
    if wide > most:
        raise InputError(
            f"A fit of {wide} coefficients{several} is not taken apart (up to {most} are); fit it "
            "again without the records."
        )


def newton(
    problem: ConvexProblem,
    groups: Codes | None = None,
    *,
    most_steps: int = MOST_STEPS,
    settled: float = SETTLED,
    columns: bool = False,
) -> Fit:
    """The optimum on all records, by Newton steps from the problem's coefficients.

    ``columns`` asks for the coefficients themselves, however many there are.
    """
    route: Any
    if columns:
        route = Features.of(problem, 1.0, stacks_of(problem, groups), columns=True)
    else:
        route = route_of(problem, 1.0, groups)
    where, last = route.start, np.inf
    for number in range(most_steps + 1):
        predictions = route.predict(where)
        points = [z[:, None] for z in predictions]
        forces = [s.force(z)[:, 0] for s, z in zip(route.stacks, points, strict=True)]
        bends = [s.curvature(z)[:, 0] for s, z in zip(route.stacks, points, strict=True)]
        response = route.respond(bends)
        if number == most_steps or last <= settled * max(1.0, _longest(predictions)):
            break
        step = response.step(forces, where)
        last = _longest(route.predict(step))
        where = where + min(1.0, problem.longest_step / max(last, 1e-300)) * step
    return Fit(problem, response, where, predictions, forces, bends, last)


def optimum(problem: ConvexProblem) -> FloatArray:
    """The coefficients at the optimum, to rounding; a sentence where there is none."""
    require_small(problem)
    fit = newton(problem, columns=True)
    if not fit.settled:
        raise InputError(
            f"The fit of {problem.records} records has no optimum that Newton steps reach (the "
            "classes may be separable without a penalty); use a larger penalty."
        )
    return fit.coefficients


def predictions_on(problem: ConvexProblem, rows: Codes) -> FloatArray:
    """All records' predictions by the optimum on some of them: N, or N x classes.

    Records that are not among ``rows`` weigh nothing; a penalty of the mean loss is that of so
    many records.
    """
    weight = np.zeros(problem.records)
    weight[rows] = problem.sample_weights[rows]
    fit = newton(replace(problem, weights=weight), settled=1e-9)
    return fit.records(fit.predictions)


def _longest(parts: Stacked) -> float:
    return max(float(np.max(np.abs(part))) for part in parts)


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
    theta, X = problem.coefficients, problem.X
    if theta is None or X is None:
        return None
    weight, penalty = problem.sample_weights, problem.penalty_at(1.0)
    z = X @ theta
    if problem.loss == "softmax":
        share = softmax(z)
        force = weight[:, None] * (share - one_hot(problem.y.astype(np.intp), problem.classes))
        gradient = X.T @ force + penalty[:, None] * theta
        # diagonal curvature: enough to tell a tenth of the sampling noise from all of it
        square = X**2
        curvature = square.T @ (weight[:, None] * share * (1.0 - share)) + penalty[:, None] + 1e-12
        noise = float(np.sum((square.T @ force**2) / curvature))
        decrement = float(np.sum(gradient**2 / curvature))
        largest = float(np.max(np.abs(gradient)))
        return Distance(largest, _relative(decrement, noise, z, weight))
    loss = LOSSES[problem.loss]
    force = weight * loss.force(z, problem.y)
    gradient = X.T @ force + penalty * theta
    largest = float(np.max(np.abs(gradient)))
    if X.shape[1] > problem.records:
        # too many columns for a Hessian: compare with the gradient's own noise, column by column
        noises = np.sqrt(X.T**2 @ force**2) + 1e-9 * (np.abs(X.T) @ np.abs(problem.y))
        ratio = gradient / np.maximum(noises, 1e-300)
        return Distance(largest, float(np.sqrt(np.mean(ratio**2))))
    curvature = weight * loss.curvature(z, problem.y)
    hessian = gram(X[:, None], curvature[:, None, None])
    inverse = spd_inverse(hessian + np.diag(penalty), problem.name)
    total = float(force**2 @ within(X[:, None], inverse, 1)[:, 0, 0])
    return Distance(largest, _relative(float(gradient @ inverse @ gradient), total, z, weight))


def _relative(decrement: float, noise: float, z: FloatArray, weight: FloatArray) -> float:
    # rounding alone leaves this much where a model interpolates and has no noise of its own
    floor = 1e-14 * float(np.sum(weight * z.T**2))
    return float(np.sqrt(max(decrement, 0.0) / max(noise + floor, 1e-300)))
