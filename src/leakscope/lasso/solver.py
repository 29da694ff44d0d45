"""The LASSO with a linear term, solved to its optimality conditions (lasso Eq. 2).

At a support A with signs s the minimiser is beta_A = (X_A'X_A)^{-1}(X_A'y - eta_A - lam s).  A step
corrects A and s all at once: coefficients whose sign came out wrong leave, columns whose optimality
condition is violated enter (a primal-dual active set, that is a semismooth Newton step).  Near the
solution this ends after a handful of factorisations, at the exact minimiser but for rounding.  Far
from it the step may cycle, so lambda comes down in stages: the factor at one lambda predicts the
support at the next, and a stage that does not settle is tried again at half its length.  As stages
shrink, one column changes at a time and the prediction is exact, unless columns depend on each
other; what stalls there is left to the search one column at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lasso.amp import message_passing
from leakscope.lasso.objective import checked_data, violation_of
from leakscope.lasso.stability import falls_for_ever, stability_programme

IndexArray = NDArray[np.int64]
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
# A pivot this small, relative to its column, means that the column depends on earlier ones.
DEPENDENT = 1e-11
# A stage above this ratio no longer moves: the path has met dependent columns or the edge.
STALLED = 0.9995
# Intermediate stages end when at most this share of the support still changes.
UNSETTLED = 0.04


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
    and, where columns depend on each other, by a search one column at a time.  With p > n and a
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
    >>> from leakscope.lasso import solve_lasso
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


# Support and signs, followed down to the wanted lambda.


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


# One column at a time.


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """Where the search ended: coefficients, or a direction along which the objective falls."""

    coef: FloatArray
    direction: FloatArray | None
    finished: bool


def search(problem: Problem, lam: float, coef: FloatArray, moves: int) -> SearchEnd:
    """Descend from ``coef``, one column at a time, until the optimality conditions hold.

    Feature-sign search (Lee, Battle, Raina, Ng 2006): slow, and at home with dependent columns by
    one addition.  Where the columns of the support depend on each other there is a v with
    X_A v = 0; along it the objective is piecewise linear, and either a coefficient reaches zero and
    leaves, or the objective falls for ever.  In the second case v proves that no minimiser exists.
    Every settled support with signs has a lower objective than the one before, and a coefficient
    leaves with every move in between, so the search ends, here after ``moves`` moves at most.
    """
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


# Inner products of the columns met so far, kept while supports come and go.


class GramPool:
    """X_W'X_W for a growing set W of columns, so that no inner product is taken twice.

    The whole p x p matrix is never formed: it costs more than most solves.  W is what has been
    active at some moment; a pool may serve many problems with the same X.
    """

    def __init__(self, design: FloatArray, l2: float = 0.0) -> None:
        self.design = design
        self.l2 = l2
        self.records, self.features = design.shape
        self.longest = float(np.sqrt(np.einsum("ij,ij->j", design, design).max()))
        # beyond this the pool starts afresh with the columns in use
        self.limit = min(self.features, max(2 * self.records, 1000))
        self.place = np.full(self.features, -1, dtype=np.int64)
        self._clear(64)

    def _clear(self, room: int) -> None:
        self.place[:] = -1
        self.size = 0
        self.columns: FloatArray = np.empty((self.records, room), order="F")
        self.gram: FloatArray = np.empty((room, room))

    def places(self, index: IndexArray) -> IndexArray:
        """(k,) where the columns ``index`` are in the pool, taking in those that are missing."""
        new = index[self.place[index] < 0]
        if new.size and self.size + new.size > max(self.limit, index.size):
            self._clear(max(64, 2 * index.size))
            new = index
        if new.size:
            self._append(new)
        return np.asarray(self.place[index])

    def _append(self, new: IndexArray) -> None:
        start, stop = self.size, self.size + new.size
        if stop > self.gram.shape[0]:
            room = max(stop, min(2 * self.gram.shape[0], self.limit))
            require_memory(
                8 * room * (room + self.records),
                f"The inner products of {room} columns",
                "use a larger lam, which leaves fewer coefficients active",
            )
            gram, columns = np.empty((room, room)), np.empty((self.records, room), order="F")
            gram[:start, :start] = self.gram[:start, :start]
            columns[:, :start] = self.columns[:, :start]
            self.gram, self.columns = gram, columns
        self.columns[:, start:stop] = self.design[:, new]
        block = self.columns[:, :stop].T @ self.columns[:, start:stop]
        block[start:][np.diag_indices(new.size)] += self.l2
        self.gram[:stop, start:stop] = block
        self.gram[start:stop, :start] = block[:start].T
        self.place[new] = np.arange(start, stop)
        self.size = stop

    def block(self, index: IndexArray) -> FloatArray:
        """(k, k) inner products of the columns ``index``, l2 on the diagonal."""
        where = self.places(index)
        return np.asarray(self.gram[np.ix_(where, where)])

    def factor(self, index: IndexArray) -> tuple[FloatArray, IndexArray]:
        """Cholesky factor of an independent subset of ``index``, and which positions those are.

        Where columns depend on each other the later ones are left out.
        """
        kept = np.arange(index.size)
        while True:
            gram = self.block(index[kept])
            scale = gram.diagonal().copy()
            lower, info = lapack.dpotrf(gram.T, lower=1, overwrite_a=1, clean=0)
            # LAPACK stops at the first pivot that is not positive; rounding may let a tiny one pass
            last = info - 1 if info > 0 else kept.size
            weak = np.flatnonzero(lower.diagonal()[:last] ** 2 <= DEPENDENT * scale[:last])
            first = int(weak[0]) if weak.size else last
            if first == kept.size:
                return lower, kept
            kept = np.delete(kept, first)

    def fitted(self, index: IndexArray, values: FloatArray) -> FloatArray:
        """(n,) X beta for the coefficients ``values`` at ``index``."""
        if index.size == 0:
            return np.zeros(self.records)
        where = self.places(index)
        if self.size < 3 * index.size:
            # a matrix-vector product with a few zeros is faster than a copy of the columns
            full = np.zeros(self.size)
            full[where] = values
            return np.asarray(self.columns[:, : self.size] @ full)
        return np.asarray(self.columns[:, where] @ values)


def solve_factored(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a factor of `GramPool.factor`."""
    if right.size == 0:
        return np.zeros_like(right)
    solution, _ = lapack.dpotrs(lower, right, lower=1)
    return np.asarray(solution)
