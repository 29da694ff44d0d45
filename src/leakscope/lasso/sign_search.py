"""The LASSO one column at a time: slow, always descending, at home with dependent columns.

Feature-sign search (Lee, Battle, Raina, Ng 2006) with one addition.  Where the columns of the
support depend on each other there is a v with X_A v = 0; along it the objective is piecewise
linear, and either a coefficient reaches zero and leaves, or the objective falls for ever.  In the
second case v proves that no minimiser exists.  Every settled support with signs has a lower
objective than the one before, and a coefficient leaves with every move in between, so the search
ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.lasso.gram_pool import DEPENDENT, solve_factored
from leakscope.lasso.sign_path import Problem

IndexArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """Where the search ended: coefficients, or a direction along which the objective falls."""

    coef: FloatArray
    direction: FloatArray | None
    finished: bool


def search(problem: Problem, lam: float, coef: FloatArray, moves: int) -> SearchEnd:
    """Descend from ``coef`` until the optimality conditions hold, at most ``moves`` moves."""
    beta = coef.copy()
    support = np.flatnonzero(beta)
    signs = np.sign(beta[support])
    for _ in range(moves):
        outcome = _settle(problem, lam, beta, support, signs)
        if isinstance(outcome, np.ndarray):
            return SearchEnd(beta, outcome, finished=True)
        support, settled = outcome
        signs = np.sign(beta[support])
        if not settled:
            continue
        g = problem.descent(support, beta[support])
        outside = np.abs(g)
        outside[support] = 0.0
        worst = int(outside.argmax())
        if outside[worst] <= lam + problem.slack:
            return SearchEnd(beta, None, finished=True)
        support = np.append(support, worst)
        signs = np.append(signs, np.sign(g[worst]))
    return SearchEnd(beta, None, finished=False)


def _settle(
    problem: Problem, lam: float, beta: FloatArray, support: IndexArray, signs: FloatArray
) -> FloatArray | tuple[IndexArray, bool]:
    """One move on the support with the given signs.

    Changes ``beta`` in place.  Returns the new support and whether the move was a whole one, or a
    direction along which there is no end.
    """
    problem.factorizations += 1
    gram = problem.pool.block(support)
    lower, kept = problem.pool.factor(support)
    target = problem.correlation[support] - lam * signs
    if kept.size < support.size:
        null = _null_vector(gram, kept)
        # the smooth part is constant along v, so only the linear part decides the side to take
        slope = float(null @ target)
        null = null if slope > 0.0 else -null
        blocked = signs * null < 0.0
        if not blocked.any():
            direction = np.zeros_like(beta)
            direction[support] = null
            return direction
        limit = np.where(blocked, -beta[support] / np.where(blocked, null, 1.0), np.inf)
        stop = int(limit.argmin())
        beta[support] += limit[stop] * null
        beta[support[stop]] = 0.0
        return np.delete(support, stop), False
    aim = solve_factored(lower, target)
    now = beta[support]
    step = aim - now
    crossing = (now != 0.0) & (aim * signs <= 0.0)
    wrong = (now == 0.0) & (step * signs <= 0.0)
    if wrong.any():
        # by rounding only: a single entering column moves in the direction of its sign
        beta[support[wrong]] = 0.0
        return support[~wrong], True
    if not crossing.any():
        beta[support] = aim
        return support, True
    times = np.where(crossing, now / np.where(crossing, now - aim, 1.0), np.inf)
    order = np.append(np.sort(times[crossing]), 1.0)
    points = now + order[:, None] * step
    heights = (
        0.5 * np.einsum("ij,ij->i", points @ gram, points)
        - points @ problem.correlation[support]
        + lam * np.abs(points).sum(axis=1)
    )
    best = float(order[int(heights.argmin())])
    values = now + best * step
    values[np.isclose(times, best, rtol=1e-14, atol=0.0)] = 0.0
    beta[support] = values
    return support[values != 0.0], False


def _null_vector(gram: FloatArray, kept: IndexArray) -> FloatArray:
    """(k,) v with gram v = 0: the first column left out, in terms of those kept."""
    first = int(np.setdiff1d(np.arange(gram.shape[0]), kept)[0])
    before = kept[kept < first]
    null = np.zeros(gram.shape[0])
    null[first] = 1.0
    if before.size:
        null[before] = -np.linalg.solve(gram[np.ix_(before, before)], gram[before, first])
    null[np.abs(null) <= DEPENDENT * np.abs(null).max()] = 0.0
    return null
