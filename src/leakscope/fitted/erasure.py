"""The fit without some records, and whether other coefficients are that fit.

A convex fit says which records it was made from: at the optimum over the records R left out, the
gradient over the others is zero and the gradient over all is sum over R of F_j x_j, F_j the slope
of record j's loss.  So a file that claims to have forgotten is checked, not believed: the exact
fit without the records is a few Newton steps away, and where the file is not it, the records whose
leaving explains it are searched for.

Sizes are lengths in the Hessian's metric, sqrt(delta' H delta): an attacker's own unit, in which
one record's leaving has a length like its influence on answers.  Noise of standard deviation s on
every coefficient makes what is left indistinguishable to mu = distance / s (Gaussian
certifiability, arXiv 2510.13094), with the plain distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.single_fit.losses import LOSSES, Codes, contrasts, one_hot, softmax
from leakscope.single_fit.optimum import Fit, fit_at, optimum
from leakscope.single_fit.problem import ConvexProblem

# What explains coefficients leaves at most this share of what was to be erased.
EXPLAINED = 0.01
# Moves beyond one for each record asked for, in a search for those that a fit lacks.
FURTHER = 10
# Records with several classes whose sizes are found at once.
TOGETHER = 64


def part_of(problem: ConvexProblem, rows: Codes) -> ConvexProblem:
    """The same problem on some of its records, starting from the same coefficients."""
    if problem.X is None:
        raise InputError(
            f"{problem.name} keeps its training records in the file, so that coefficients alone "
            "say nothing; fit it again without the records."
        )
    assert problem.weights is not None
    return replace(problem, X=problem.X[rows], y=problem.y[rows], weights=problem.weights[rows])


def forces(problem: ConvexProblem, theta: FloatArray) -> FloatArray:
    """The slope of every record's weighted loss, N or N x classes."""
    assert problem.X is not None
    z = problem.X @ theta
    if problem.loss == "softmax":
        gap = softmax(z) - one_hot(problem.y.astype(np.intp), problem.classes)
        return np.asarray(problem.sample_weights[:, None] * gap)
    return np.asarray(problem.sample_weights * LOSSES[problem.loss].force(z, problem.y))


def gradient(problem: ConvexProblem, theta: FloatArray) -> FloatArray:
    """Of the objective: d, or d x classes."""
    assert problem.X is not None
    penalty = problem.penalty_at(1.0)
    return np.asarray(problem.X.T @ forces(problem, theta) + (penalty * theta.T).T)


@dataclass(frozen=True, eq=False)
class Metric:
    """The Hessian of a problem at some coefficients, and its inverse."""

    problem: ConvexProblem
    theta: FloatArray

    @cached_property
    def fit(self) -> Fit:
        """The response of the fit there."""
        return fit_at(self.problem, self.theta)

    def solve(self, right: FloatArray) -> FloatArray:
        """H^{-1} of a gradient, or of several of them."""
        if self.problem.loss == "softmax":
            basis = contrasts(self.problem.classes)
            return np.asarray(self.fit.response.solve(right @ basis) @ basis.T)
        return np.asarray(self.fit.response.inverse @ right)

    def times(self, delta: FloatArray) -> FloatArray:
        """H of a step."""
        problem = self.problem
        assert problem.X is not None
        moved = problem.X @ delta
        if problem.loss == "softmax":
            p = softmax(problem.X @ self.theta)
            pushed = p * (moved - (p * moved).sum(axis=1, keepdims=True))
            pushed *= problem.sample_weights[:, None]
        else:
            z = problem.X @ self.theta
            pushed = problem.sample_weights * LOSSES[problem.loss].curvature(z, problem.y) * moved
        return np.asarray(problem.X.T @ pushed + (problem.penalty_at(1.0) * delta.T).T)

    def size(self, delta: FloatArray) -> float:
        """The length of a step."""
        return float(np.sqrt(max(np.sum(delta * self.times(delta)), 0.0)))

    def gradient_size(self, slope: FloatArray) -> float:
        """The length of the step that a gradient asks for."""
        return float(np.sqrt(max(np.sum(slope * self.solve(slope)), 0.0)))


def without(problem: ConvexProblem, rows: Codes) -> FloatArray:
    """The coefficients of the fit on all records but these: exact, by Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope.fitted import from_sklearn
    >>> from leakscope.fitted.erasure import without
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = without(from_sklearn(Ridge().fit(X, y), X, y).problems[0], np.array([3, 7]))
    >>> rest = np.delete(np.arange(len(y)), [3, 7])
    >>> bool(np.allclose(found[:-1], Ridge().fit(X[rest], y[rest]).coef_, rtol=1e-9))
    True
    """
    return optimum(part_of(problem, _others(problem, rows)))


def _others(problem: ConvexProblem, rows: Codes) -> Codes:
    left = np.ones(problem.records, dtype=np.bool_)
    left[rows] = False
    return np.flatnonzero(left)


@dataclass(frozen=True, eq=False)
class Erased:
    """What coefficients are, beside the fit with all records and the one without some.

    Attributes
    ----------
    effect
        How far the fit without the records lies from the fit with all: what was to be erased.
    left, kept
        How far the coefficients lie from either.
    trace
        What is left in the direction from the fit without the records to the one with them, as a
        share of the effect: 0 erased, 1 kept.
    distance
        The plain distance to the exact fit without the records; noise of this standard deviation
        on every coefficient makes it mu = 1.
    gradient_rest, gradient_all
        The largest entry of the gradient over the others, and over all.
    lacking
        The records whose leaving explains the coefficients, to 1% of what the least of them would
        move; None where none do.
    """

    effect: float
    left: float
    kept: float
    trace: float
    distance: float
    gradient_rest: float
    gradient_all: float
    lacking: Codes | None


def erased(problem: ConvexProblem, rows: Codes, theta: FloatArray) -> Erased:
    """What ``theta`` is: ``problem`` holds all records, ``rows`` are those that were to go.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope.fitted import from_sklearn
    >>> from leakscope.fitted.erasure import erased, without
    >>> X, y = load_diabetes(return_X_y=True)
    >>> problem = from_sklearn(Ridge().fit(X, y), X, y).problems[0]
    >>> gone = erased(problem, np.array([3]), without(problem, np.array([7])))
    >>> gone.lacking.tolist(), bool(gone.left < gone.kept)
    ([7], False)
    """
    rest = part_of(problem, _others(problem, rows))
    whole, apart, theta = (_settled(each) for each in (optimum(problem), optimum(rest), theta))
    metric = Metric(rest, apart)
    effect = metric.size(whole - apart)
    left, kept = metric.size(theta - apart), metric.size(theta - whole)
    along = float(np.sum((theta - apart) * metric.times(whole - apart)))
    slope_rest, slope_all = gradient(rest, theta), gradient(problem, theta)
    trace = along / max(effect**2, 1e-300)
    lacking = None
    enough = EXPLAINED * min(effect, *_alone(rest, apart, problem, rows))
    if left <= enough:
        lacking = np.sort(rows)
    elif kept <= enough:
        lacking = np.zeros(0, dtype=np.intp)
    else:
        lacking = _lacking(problem, theta, slope_all, rows, enough)
    return Erased(
        effect=effect,
        left=left,
        kept=kept,
        trace=trace,
        distance=float(np.linalg.norm(theta - apart)),
        gradient_rest=float(np.max(np.abs(slope_rest))),
        gradient_all=float(np.max(np.abs(slope_all))),
        lacking=lacking,
    )


def _alone(
    rest: ConvexProblem, theta: FloatArray, problem: ConvexProblem, rows: Codes
) -> list[float]:
    """How far each of the records alone would move the fit, to first order."""
    assert problem.X is not None
    metric, force = Metric(rest, theta), forces(problem, theta)
    return [
        metric.gradient_size(np.multiply.outer(problem.X[row], force[row])) for row in rows.tolist()
    ]


def _settled(theta: FloatArray) -> FloatArray:
    """With several classes a constant added to all of them changes nothing: none is."""
    return theta if theta.ndim == 1 else np.asarray(theta - theta.mean(axis=1, keepdims=True))


def _lacking(
    problem: ConvexProblem, theta: FloatArray, slope: FloatArray, rows: Codes, enough: float
) -> Codes | None:
    """Records whose forces add up to the gradient over all.

    From those asked for and from nobody: one more, one less or one exchanged, whichever leaves
    least, until the rest is explained or nothing helps.
    """
    assert problem.X is not None
    metric = Metric(problem, theta)
    force = forces(problem, theta)
    columns = force if force.ndim == 2 else force[:, None]
    X, weight = problem.X, problem.sample_weights
    pull = np.zeros(theta.shape)
    if problem.penalty_per_record:
        # the penalty of a training set grows with its weight
        pull = ((problem.penalty_at(1.0) * theta.T).T) / weight.sum()
    own = _own_sizes(metric, X, columns)

    def pushed(record: int) -> FloatArray:
        return np.asarray(np.outer(X[record], columns[record]).reshape(theta.shape))

    def pairing(right: FloatArray) -> FloatArray:
        solved = metric.solve(right).reshape(X.shape[1], -1)
        return np.asarray(np.einsum("nc,nc->n", X @ solved, columns))

    for start in (rows.tolist(), list[int]()):
        chosen = list(start)
        remaining = slope - sum(
            (pushed(j) + weight[j] * pull for j in chosen), np.zeros(theta.shape)
        )
        for _ in range(len(rows) + FURTHER + len(start)):
            if metric.gradient_size(remaining) <= enough:
                return np.sort(np.array(chosen, dtype=np.intp))
            best: tuple[float, int | None, int | None] = (0.0, None, None)
            for out in (None, *chosen):
                back = 0.0 if out is None else pushed(out) + weight[out] * pull
                towards = pairing(remaining + back)
                lost = 0.0 if out is None else 2.0 * towards[out] - own[out]
                gain = 2.0 * towards - own
                gain[[j for j in chosen if j != out]] = -np.inf
                into = int(np.argmax(gain))
                for more, joined in ((gain[into] - lost, into), (-lost, None)):
                    if more > best[0] * (1.0 + 1e-12) and joined != out:
                        best = (float(more), out, joined)
            _, out, joined = best
            if out is None and joined is None:
                break
            if out is not None:
                chosen.remove(out)
                remaining = remaining + pushed(out) + weight[out] * pull
            if joined is not None:
                chosen.append(joined)
                remaining = remaining - pushed(joined) - weight[joined] * pull
    return None


def _own_sizes(metric: Metric, X: FloatArray, columns: FloatArray) -> FloatArray:
    """f_j' H^{-1} f_j of every record's force f_j = x_j F_j."""
    if columns.shape[1] == 1:
        return np.asarray(np.einsum("nd,dn->n", X, metric.solve(X.T.copy())) * columns[:, 0] ** 2)
    own = np.empty(len(X))
    for start in range(0, len(X), TOGETHER):
        part = slice(start, start + TOGETHER)
        pushed = X[part][:, :, None] * columns[part][:, None, :]
        own[part] = np.sum(pushed * metric.solve(pushed), axis=(1, 2))
    return own
