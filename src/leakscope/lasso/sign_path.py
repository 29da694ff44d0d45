"""The LASSO by following its support and signs down to the wanted lambda.

At a support A with signs s the minimiser is beta_A = (X_A'X_A)^{-1}(X_A'y - eta_A - lam s).  A step
corrects A and s all at once: coefficients whose sign came out wrong leave, columns whose optimality
condition is violated enter (a primal-dual active set, that is a semismooth Newton step).  Near the
solution this ends after a handful of factorisations, at the exact minimiser but for rounding.  Far
from it the step may cycle, so lambda comes down in stages: the factor at one lambda predicts the
support at the next, and a stage that does not settle is tried again at half its length.  As stages
shrink, one column changes at a time and the prediction is exact, unless columns depend on each
other; what stalls there is left to ``sign_search``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.lasso.gram_pool import GramPool, solve_factored

IndexArray = NDArray[np.int64]

# A stage above this ratio no longer moves: the path has met dependent columns or the edge.
STALLED = 0.9995
# Intermediate stages end when at most this share of the support still changes.
UNSETTLED = 0.04


@dataclass(frozen=True, eq=False)
class SignState:
    """A support, its signs and coefficients, and g = X'(y - X beta) - eta - l2 beta there."""

    lam: float
    support: IndexArray
    signs: FloatArray
    values: FloatArray
    descent: FloatArray
    lower: FloatArray
    settled: bool


@dataclass
class Problem:
    """One right-hand side for a shared pool; counts the factorisations spent on it."""

    pool: GramPool
    y: FloatArray
    eta: FloatArray
    correlation: FloatArray
    slack: float
    factorizations: int = 0

    def descent(self, support: IndexArray, values: FloatArray) -> FloatArray:
        """(p,) g at the coefficients ``values``, from the residual and not from the Gram matrix."""
        residual = self.y - self.pool.fitted(support, values)
        g = self.pool.design.T @ residual - self.eta
        if self.pool.l2:
            g[support] -= self.pool.l2 * values
        return np.asarray(g)

    def empty(self) -> SignState:
        """The state of beta = 0."""
        none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        top = float(np.abs(self.correlation).max(initial=0.0))
        return SignState(
            top, none, nothing, nothing, self.correlation, np.zeros((0, 0)), settled=True
        )


def correct(
    problem: Problem, lam: float, support: IndexArray, signs: FloatArray, steps: int, exact: bool
) -> SignState | None:
    """Correct support and signs at one lambda; None where they do not settle in ``steps``."""
    fewest, patience = np.inf, 3
    limit = 0.995 * problem.pool.records if problem.pool.l2 == 0.0 else np.inf
    for _ in range(steps):
        if support.size > max(limit, 1):
            return None
        lower, kept = problem.pool.factor(support)
        support, signs = support[kept], signs[kept]
        problem.factorizations += 1
        values = solve_factored(lower, problem.correlation[support] - lam * signs)
        g = problem.descent(support, values)
        right, enter = changes(lam, support, signs, values, g, problem.slack)
        wrong = int((~right).sum()) + enter.size
        settled = wrong == 0
        if settled or (not exact and wrong <= UNSETTLED * support.size):
            return SignState(lam, support, signs, values, g, lower, settled)
        patience = patience if wrong < fewest else patience - 1
        fewest = min(fewest, wrong)
        if patience == 0:
            return None
        support = np.concatenate([support[right], enter])
        signs = np.concatenate([signs[right], np.sign(g[enter])])
    return None


def changes(
    lam: float,
    support: IndexArray,
    signs: FloatArray,
    values: FloatArray,
    descent: FloatArray,
    slack: float,
) -> tuple[NDArray[np.bool_], IndexArray]:
    """Which members of the support kept their sign, and which columns outside want to enter."""
    violated = np.abs(descent) > lam + slack
    violated[support] = False
    return values * signs > 0.0, np.flatnonzero(violated)


def follow(problem: Problem, lam: float, start: SignState, stages: int) -> SignState:
    """Bring ``start`` down to ``lam``; the state returned is at a larger lambda where it stalls."""
    state = start
    roomy = max(problem.pool.records // 5, 100)
    ratio = 0.0
    for _ in range(stages):
        if state.lam <= lam and state.settled:
            return state
        goal = max(lam, ratio * state.lam)
        if state.support.size == 0 and goal < state.lam:
            # beta = 0: as many columns as is wise, in one stage
            size = np.sort(np.abs(state.descent))[::-1]
            goal = max(goal, float(size[min(roomy, size.size - 1)]))
            goal = goal if goal < state.lam else max(lam, 0.5 * state.lam)
        values = solve_factored(
            state.lower, problem.correlation[state.support] - goal * state.signs
        )
        g = problem.descent(state.support, values)
        right, enter = changes(goal, state.support, state.signs, values, g, problem.slack)
        found = None
        if enter.size <= max(roomy, 0.6 * state.support.size):
            support = np.concatenate([state.support[right], enter])
            signs = np.concatenate([state.signs[right], np.sign(g[enter])])
            found = correct(problem, goal, support, signs, 12, exact=goal <= lam)
        if found is None:
            ratio = float(np.sqrt(max(ratio, lam / state.lam, 0.1)))
            if ratio > STALLED:
                return state
            continue
        state = found
        ratio = ratio**1.25
    return state
