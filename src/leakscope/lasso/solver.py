"""The LASSO with a linear term, solved to its optimality conditions (lasso Eq. 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lasso.amp import message_passing
from leakscope.lasso.checked_data import checked_data
from leakscope.lasso.gram_pool import GramPool, solve_factored
from leakscope.lasso.kkt import violation_of
from leakscope.lasso.sign_path import Problem, SignState, correct, follow
from leakscope.lasso.sign_search import search
from leakscope.lasso.stability_programme import falls_for_ever, stability_programme

Status = Literal["optimal", "unbounded", "not_converged"]

# The linear programme is asked only up to this many entries of X: half a minute or so.
PROGRAMME_ENTRIES = 1_000_000
# Of the squared length of the longest column: slight enough to see the edge within two per cent.
SLIGHT_L2 = 2e-4
# What the search one column at a time may cost, in cubes of the support: some seconds.
SEARCH_OPERATIONS = 5e10
# Message passing pays from this many problems on, and is cut into batches of this many.
FEWEST_TOGETHER = 4
MOST_TOGETHER = 256
# Refinements of a solution at its final support; one is usual, near n active columns more help.
REFINEMENTS = 4


@dataclass(frozen=True, eq=False)
class LassoSolution:
    """A minimiser of lasso Eq. (2), or the proof that there is none.

    Attributes
    ----------
    coef
        (p,) beta; all NaN where ``status`` is ``"unbounded"``.
    kkt_violation
        The largest violation of the optimality conditions at ``coef``, in units of lambda itself.
    status
        ``"optimal"``; ``"unbounded"``: lambda is below the stability edge of this X and eta, and
        the objective falls for ever along ``direction``; ``"not_converged"``: ``coef`` is the best
        point found, and ``kkt_violation`` says how good.
    support
        Indices of the coefficients that are not zero.
    iterations
        Factorisations spent.
    direction
        (p,) v with Xv = 0 and lam ||v||_1 + eta'v < 0 where unbounded, else None.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.solver import solve_lasso
    >>> found = solve_lasso(np.eye(3), [3.0, -2.0, 0.5], lam=1.0)
    >>> found.coef.tolist(), found.status, found.support.tolist()
    ([2.0, -1.0, 0.0], 'optimal', [0, 1])
    """

    coef: FloatArray
    kkt_violation: float
    status: Status
    support: NDArray[np.int64]
    iterations: int
    direction: FloatArray | None = None

    @property
    def active_fraction(self) -> float:
        """rho_hat, the share of coefficients that are not zero."""
        return float(self.support.size / self.coef.size)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        bounded = self.status != "unbounded"
        return {
            "coef": self.coef.tolist() if bounded else None,
            "kkt_violation": self.kkt_violation if bounded else None,
            "status": self.status,
            "support": self.support.tolist(),
            "iterations": self.iterations,
            "direction": None if self.direction is None else self.direction.tolist(),
        }


def solve_lasso(
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    linear_term: ArrayLike | None = None,
    *,
    l2: float = 0.0,
    start: ArrayLike | None = None,
    tol: float = 1e-10,
    max_stages: int = 400,
) -> LassoSolution:
    """Minimise 1/2 ||y - X beta||^2 + lam ||beta||_1 + eta'beta + l2/2 ||beta||^2.

    The objective is the unnormalised one of lasso Eq. (2), where ``lam`` is lambda and
    ``linear_term`` is eta; scikit-learn's ``Lasso`` and celer divide the first term by n, so their
    ``alpha`` is lam / n.  Support and signs are followed by factorisations of X_A'X_A
    (``sign_path``), and where columns depend on each other by ``sign_search``.  With p > n and a
    linear term there may be no minimiser; that is found out, not iterated on.

    Parameters
    ----------
    X, y
        (n, p) design, fastest in Fortran order, and (n,) labels.
    lam
        lambda, positive.
    linear_term
        (p,) eta; none is zero.
    l2
        Weight of the squared norm, 0 in the paper; above 0 there always is one minimiser.
    start
        (p,) a point whose support and signs are a good guess.
    tol
        Accepted violation of the optimality conditions, in multiples of ``lam``; rounding in X'y
        is allowed for.
    max_stages
        Stages of the path before giving up.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.solver import solve_lasso
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((50, 100)), rng.standard_normal(50)
    >>> found = solve_lasso(X, y, lam=10.0, linear_term=rng.standard_normal(100))
    >>> found.status, found.kkt_violation < 1e-9
    ('optimal', True)
    >>> solve_lasso(X, y, lam=0.1, linear_term=rng.standard_normal(100)).status
    'unbounded'
    """
    terms = None if linear_term is None else np.asarray(linear_term, dtype=np.float64)[None]
    return solve_lasso_many(X, y, lam, terms, l2=l2, start=start, tol=tol, max_stages=max_stages)[0]


def solve_lasso_many(
    X: ArrayLike,
    y: ArrayLike,
    lam: float | ArrayLike,
    linear_terms: ArrayLike | None = None,
    *,
    l2: float = 0.0,
    start: ArrayLike | None = None,
    tol: float = 1e-10,
    max_stages: int = 400,
) -> tuple[LassoSolution, ...]:
    """`solve_lasso` for many noise draws or many lambdas and one (X, y).

    X'y and all inner products of columns are shared.  A batch of noise draws is first brought close
    by message passing, which moves all of them with the same matrix products; support and signs
    found there, or else those of the problem before, are where each solve starts.  On a design
    where message passing fails only time is lost.

    Parameters
    ----------
    lam
        lambda, or (m,) one for each problem.
    linear_terms
        (m, p) eta of each problem, or (1, p) for all; none is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.solver import solve_lasso_many
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((50, 100)), rng.standard_normal(50)
    >>> draws = solve_lasso_many(X, y, 10.0, rng.standard_normal((5, 100)))
    >>> [s.status for s in draws] == ["optimal"] * 5
    True
    """
    design, labels = checked_data(X, y)
    p = design.shape[1]
    lams, terms = _checked_problems(lam, linear_terms, p)
    if not math.isfinite(l2) or l2 < 0.0:
        raise InputError(f"l2 must be zero or above, but it is {l2!r}.")
    guess: FloatArray | None = None
    if start is not None:
        guess = np.asarray(start, dtype=np.float64)
        if guess.shape != (p,) or not np.all(np.isfinite(guess)):
            raise InputError(f"start must be {p} finite numbers, one for each column of X.")
    near = _near(design, labels, lams, terms, l2)
    pool = GramPool(design, l2)
    product = design.T @ labels
    found: list[LassoSolution] = []
    for place, (value, eta) in enumerate(zip(lams, terms, strict=True)):
        begin = near.get(place, guess)
        solution = _solve(pool, labels, product, float(value), eta, begin, tol, max_stages)
        if solution.status == "optimal":
            guess = solution.coef
        found.append(solution)
    return tuple(found)


def _near(
    design: FloatArray, labels: FloatArray, lams: FloatArray, terms: FloatArray, l2: float
) -> dict[int, FloatArray]:
    """Starting points by message passing, for those problems of a batch where it converges."""
    if l2 > 0.0 or lams.size < FEWEST_TOGETHER or np.any(lams != lams[0]) or not np.any(design):
        return {}
    near: dict[int, FloatArray] = {}
    for begin in range(0, lams.size, MOST_TOGETHER):
        part = terms[begin : begin + MOST_TOGETHER]
        passed = message_passing(design, labels, float(lams[0]), part, tol=1e-5, max_iterations=100)
        for place in np.flatnonzero(passed.status == "converged"):
            near[begin + int(place)] = passed.coef[place]
        if not np.any(passed.status == "converged"):
            break
    return near


def _solve(
    pool: GramPool,
    y: FloatArray,
    product: FloatArray,
    lam: float,
    eta: FloatArray,
    guess: FloatArray | None,
    tol: float,
    max_stages: int,
) -> LassoSolution:
    correlation = product - eta
    rounding = 2e-15 * (pool.longest * float(np.linalg.norm(y)) + float(np.abs(eta).max()))
    accepted = tol * lam + rounding
    problem = Problem(pool, y, eta, correlation, 0.5 * accepted)
    state: SignState | None = None
    if guess is not None:
        support = np.flatnonzero(guess)
        state = correct(problem, lam, support, np.sign(guess[support]), 10, exact=True)
    if state is None:
        state = follow(problem, lam, problem.empty(), max_stages)
    if state.lam <= lam and state.settled:
        return _finished(problem, lam, state, accepted)
    return _stalled(problem, lam, state, accepted, max_stages)


def _finished(problem: Problem, lam: float, state: SignState, accepted: float) -> LassoSolution:
    """Refine at the final support, and certify."""
    p = problem.pool.features
    support, values, g = state.support, state.values, state.descent
    coef = np.zeros(p)
    coef[support] = values
    worst = float(violation_of(g, coef, lam))
    for _ in range(REFINEMENTS):
        if worst <= 0.1 * accepted or support.size == 0:
            break
        better = values + solve_factored(state.lower, g[support] - lam * state.signs)
        trial_g = problem.descent(support, better)
        trial = np.zeros(p)
        trial[support] = better
        violation = float(violation_of(trial_g, trial, lam))
        if violation >= worst:
            break
        worst, values, g, coef = violation, better, trial_g, trial
    status: Status = "optimal" if worst <= accepted else "not_converged"
    return LassoSolution(coef, worst, status, np.flatnonzero(coef), problem.factorizations)


def _stalled(
    problem: Problem, lam: float, state: SignState, accepted: float, moves: int
) -> LassoSolution:
    """Below the stability edge, or dependent columns: tell which, and finish or give up."""
    pool, eta = problem.pool, problem.eta
    n, p = pool.design.shape
    if pool.l2 == 0.0 and np.any(eta) and state.support.size:
        found = _falling(problem, lam, state)
        if found is not None:
            return _unbounded(problem, found)
    coef = np.zeros(p)
    coef[state.support] = np.where(state.values * state.signs > 0.0, state.values, 0.0)
    affordable = int(SEARCH_OPERATIONS / max(state.support.size, 100) ** 3)
    end = search(problem, lam, coef, min(moves + 4 * min(n, p), affordable))
    if end.direction is not None:
        direction = falls_for_ever(pool.design, eta, lam, end.direction)
        if direction is not None:
            return _unbounded(problem, direction)
    support = np.flatnonzero(end.coef)
    g = problem.descent(support, end.coef[support])
    worst = float(violation_of(g, end.coef, lam))
    if worst <= accepted:
        return LassoSolution(end.coef, worst, "optimal", support, problem.factorizations)
    lower, kept = pool.factor(support)
    if kept.size == support.size:
        signs = np.sign(end.coef[support])
        again = SignState(lam, support, signs, end.coef[support], g, lower, settled=True)
        refined = _finished(problem, lam, again, accepted)
        if refined.status == "optimal":
            return refined
    if pool.l2 == 0.0 and np.any(eta) and n * p <= PROGRAMME_ENTRIES:
        edge = stability_programme(pool.design, eta)
        if edge.lower > lam:
            return _unbounded(problem, edge.direction)
    return LassoSolution(end.coef, worst, "not_converged", support, problem.factorizations)


def _falling(problem: Problem, lam: float, state: SignState) -> FloatArray | None:
    """A direction along which the objective falls for ever, guessed in three ways.

    Close above the edge the estimate itself and its slope in lambda point that way.  A slight l2
    term makes the problem without labels solvable everywhere, and below the edge its solution is
    long and nearly unseen by X.
    """
    design, eta = problem.pool.design, problem.eta
    slope = solve_factored(state.lower, state.signs)
    guess = np.zeros(design.shape[1])
    for values in (state.values, slope):
        guess[state.support] = values
        direction = falls_for_ever(design, eta, lam, guess)
        if direction is not None:
            return direction
    pool = GramPool(design, SLIGHT_L2 * problem.pool.longest**2)
    slight = Problem(pool, np.zeros_like(problem.y), eta, -eta, problem.slack)
    end = follow(slight, lam, slight.empty(), 60)
    problem.factorizations += slight.factorizations
    guess = np.zeros(design.shape[1])
    guess[end.support] = end.values
    return falls_for_ever(design, eta, lam, guess) if end.support.size else None


def _unbounded(problem: Problem, direction: FloatArray) -> LassoSolution:
    p = problem.pool.features
    return LassoSolution(
        np.full(p, np.nan),
        math.inf,
        "unbounded",
        np.zeros(0, dtype=np.int64),
        problem.factorizations,
        direction,
    )


def _checked_problems(
    lam: float | ArrayLike, linear_terms: ArrayLike | None, p: int
) -> tuple[FloatArray, FloatArray]:
    values = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values <= 0.0):
        raise InputError(f"lam must be positive and finite, but it is {lam!r}.")
    if linear_terms is None:
        terms = np.zeros((1, p))
    else:
        terms = np.asarray(linear_terms, dtype=np.float64)
        if terms.ndim != 2 or terms.shape[1] != p or not np.all(np.isfinite(terms)):
            raise InputError(
                f"The linear term must be finite, with {p} entries for each problem, one for each "
                f"column of X, but its shape is {terms.shape}."
            )
    count = max(values.size, terms.shape[0])
    if {values.size, terms.shape[0]} - {1, count}:
        raise InputError(
            f"There are {values.size} values of lam and {terms.shape[0]} linear terms; give as "
            "many of one as of the other, or a single one."
        )
    return np.broadcast_to(values, (count,)), np.broadcast_to(terms, (count, p))
