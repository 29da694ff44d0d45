"""The LASSO with a linear term, solved to its optimality conditions (lasso Eq. 2).

At a support A with signs s the minimiser is beta_A = (X_A'X_A)^{-1}(X_A'y - eta_A - lam s).  A step
corrects A and s all at once: coefficients whose sign came out wrong leave, columns whose optimality
condition is violated enter (a primal-dual active set, that is a semismooth Newton step).  Near the
solution this ends after a handful of factorisations, at the exact minimiser but for rounding.  Far
from it lambda comes down in stages.  Where columns depend on each other that stalls, and coordinate
descent goes on: scikit-learn's, which takes the linear term as X'y - eta.  The result is certified
by the optimality conditions, or proven to have no minimiser.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lasso.amp import checked_data, message_passing, violation_of
from leakscope.lasso.stability import falls_for_ever, stability_programme

Status = Literal["optimal", "unbounded", "not_converged"]

# The linear programme is asked only up to this many entries of X: half a minute or so.
PROGRAMME_ENTRIES = 1_000_000
# Message passing pays from this many problems on, and is cut into batches of this many.
FEWEST_TOGETHER = 4
MOST_TOGETHER = 256
# Sweeps of coordinate descent in a round, and rounds before giving up.
SWEEPS = 10_000
ROUNDS = 20
# Corrections of support and signs; a handful is usual.
CORRECTIONS = 12
# Stages of the path; one above this ratio no longer moves; intermediate ones end when at most this
# share of the support still changes.
STAGES = 400
STALLED = 0.9995
UNSETTLED = 0.04
# Of the squared length of the longest column: slight enough to see the edge within two per cent.
SLIGHT_L2 = 2e-4
# A pivot this small, relative to its column, means that the column depends on earlier ones.
DEPENDENT = 1e-11
# Columns that may enter the working set at once, beside as many as there are active ones.
ENTERING = 100


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
    iterations
        Rounds of coordinate descent and corrections of the support.
    direction
        (p,) v with Xv = 0 and lam ||v||_1 + eta'v < 0 where unbounded, else None.
    """

    coef: FloatArray
    kkt_violation: float
    status: Status
    iterations: int
    direction: FloatArray | None = None

    @property
    def support(self) -> NDArray[np.int64]:
        """Indices of the coefficients that are not zero."""
        return np.flatnonzero(np.nan_to_num(self.coef))

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
) -> LassoSolution:
    """Minimise 1/2 ||y - X beta||^2 + lam ||beta||_1 + eta'beta + l2/2 ||beta||^2.

    The objective is the unnormalised one of lasso Eq. (2), where ``lam`` is lambda and
    ``linear_term`` is eta; scikit-learn's ``Lasso`` and celer divide the first term by n, so their
    ``alpha`` is lam / n.  With p > n and a linear term there may be no minimiser; that is found
    out, not iterated on.

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
    return solve_lasso_many(X, y, lam, terms, l2=l2, start=start, tol=tol)[0]


def solve_lasso_many(
    X: ArrayLike,
    y: ArrayLike,
    lam: float | ArrayLike,
    linear_terms: ArrayLike | None = None,
    *,
    l2: float = 0.0,
    start: ArrayLike | None = None,
    tol: float = 1e-10,
) -> tuple[LassoSolution, ...]:
    """`solve_lasso` for many noise draws or many lambdas and one (X, y).

    A batch of noise draws is first brought close by message passing, which moves all of them with
    the same matrix products; support and signs found there, or else those of the problem before,
    are where each solve starts.

    Parameters
    ----------
    lam
        lambda, or (m,) one for each problem.
    linear_terms
        (m, p) eta of each problem, or (1, p) for all; none is zero.
    """
    design, labels = checked_data(X, y)
    p = design.shape[1]
    lams = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    terms = np.zeros((1, p)) if linear_terms is None else np.asarray(linear_terms, dtype=np.float64)
    if lams.ndim != 1 or not np.all(np.isfinite(lams)) or np.any(lams <= 0.0):
        raise InputError(f"lam must be positive and finite, but it is {lam!r}.")
    if terms.ndim != 2 or terms.shape[1] != p or not np.all(np.isfinite(terms)):
        raise InputError(
            f"The linear term must be finite, with {p} entries for each problem, one for each "
            f"column of X, but its shape is {terms.shape}."
        )
    count = max(lams.size, terms.shape[0])
    if {lams.size, terms.shape[0]} - {1, count}:
        raise InputError(
            f"There are {lams.size} values of lam and {terms.shape[0]} linear terms; give as "
            "many of one as of the other, or a single one."
        )
    lams, terms = np.broadcast_to(lams, (count,)), np.broadcast_to(terms, (count, p))
    if not math.isfinite(l2) or l2 < 0.0:
        raise InputError(f"l2 must be zero or above, but it is {l2!r}.")
    guess = np.zeros(p) if start is None else np.asarray(start, dtype=np.float64)
    if guess.shape != (p,) or not np.all(np.isfinite(guess)):
        raise InputError(f"start must be {p} finite numbers, one for each column of X.")
    near = _near(design, labels, lams, terms, l2)
    products = _Products(design)
    solutions: list[LassoSolution] = []
    for place, (value, eta) in enumerate(zip(lams, terms, strict=True)):
        problem = _Problem(products, labels, eta, l2)
        solution = _solve(problem, float(value), near.get(place, guess), tol)
        if solution.status == "optimal":
            guess = solution.coef
        solutions.append(solution)
    return tuple(solutions)


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


class _Products:
    """X_W'X_W of the columns W that were active at some moment, so that none is taken twice."""

    def __init__(self, design: FloatArray) -> None:
        self.design = design
        self.longest = math.sqrt(float(np.einsum("ij,ij->j", design, design).max()))
        self.place = np.full(design.shape[1], -1, dtype=np.int64)
        self.columns = np.zeros(0, dtype=np.int64)
        self.gram: FloatArray = np.zeros((0, 0))

    def of(self, index: NDArray[np.int64]) -> FloatArray:
        """(k, k) inner products of the columns ``index``."""
        new = index[self.place[index] < 0]
        if new.size:
            size = self.columns.size + new.size
            require_memory(
                16 * size * (size + len(self.design)),
                f"The inner products of {size} columns",
                "use a larger lam, which leaves fewer coefficients active",
            )
            fresh = self.design[:, new]
            cross = self.design[:, self.columns].T @ fresh
            self.gram = np.block([[self.gram, cross], [cross.T, fresh.T @ fresh]])
            self.place[new] = np.arange(self.columns.size, size)
            self.columns = np.concatenate([self.columns, new])
        where = self.place[index]
        return np.asarray(self.gram[np.ix_(where, where)])


@dataclass(frozen=True, eq=False)
class _Problem:
    """One right-hand side: its objective's descent, and inner products of its columns."""

    products: _Products
    labels: FloatArray
    eta: FloatArray
    l2: float

    @property
    def design(self) -> FloatArray:
        return self.products.design

    @cached_property
    def correlation(self) -> FloatArray:
        """X'y - eta."""
        return np.asarray(self.design.T @ self.labels - self.eta)

    @property
    def perhaps_unbounded(self) -> bool:
        """Whether there may be no minimiser."""
        return self.l2 == 0.0 and bool(np.any(self.eta))

    def descent(self, coef: FloatArray) -> FloatArray:
        """(p,) g = X'(y - X beta) - eta - l2 beta, from the residual."""
        on = np.flatnonzero(coef)
        residual = self.labels - self.design[:, on] @ coef[on]
        return np.asarray(self.design.T @ residual - self.eta - self.l2 * coef)

    def gram(self, columns: NDArray[np.int64]) -> FloatArray:
        """Inner products of some columns, l2 on the diagonal."""
        found = self.products.of(columns)
        found[np.diag_indices_from(found)] += self.l2
        return found


def _violation(problem: _Problem, lam: float, coef: FloatArray) -> float:
    return float(violation_of(problem.descent(coef), coef, lam))


def _solve(problem: _Problem, lam: float, guess: FloatArray, tol: float) -> LassoSolution:
    rounding = problem.products.longest * float(np.linalg.norm(problem.labels))
    accepted = tol * lam + 2e-15 * (rounding + float(np.abs(problem.eta).max()))
    slack = 0.5 * accepted
    reached, fit = lam, _corrected(problem, lam, guess, slack) if np.any(guess) else None
    if fit is None:
        reached, fit = _followed(problem, lam, slack)
    best, least, descended = fit, math.inf, fit
    for rounds in range(1, ROUNDS + 1):
        for point in (descended, fit):
            worst = math.inf if point is None else _violation(problem, lam, point)
            if point is not None and worst < least:
                best, least = point, worst
        if least <= accepted:
            return LassoSolution(best, least, "optimal", rounds)
        direction = None
        if rounds == 1 and reached > lam and problem.perhaps_unbounded:
            direction = _falling(problem, lam, best, slack)
        if rounds == 3 and problem.perhaps_unbounded and problem.design.size <= PROGRAMME_ENTRIES:
            edge = stability_programme(problem.design, problem.eta)
            direction = edge.direction if edge.lower > lam else None
        if direction is not None:
            nothing = np.full(direction.size, np.nan)
            return LassoSolution(nothing, math.inf, "unbounded", rounds, direction)
        descended = _descended(problem, lam, descended)
        fit = _corrected(problem, lam, descended, slack, dependent=True)
    return LassoSolution(best, least, "not_converged", ROUNDS)


def _falling(problem: _Problem, lam: float, coef: FloatArray, slack: float) -> FloatArray | None:
    """A direction along which the objective falls for ever, guessed in three ways.

    Close above the edge the estimate itself and its slope in lambda point that way.  A slight l2
    term makes the problem without labels solvable everywhere, and below the edge its solution is
    long and nearly unseen by X.
    """
    design, eta = problem.design, problem.eta
    slope, on = np.zeros_like(coef), np.flatnonzero(coef)
    slope[on] = _solver_of(problem.gram(on))(np.sign(coef[on]))
    nothing = np.zeros_like(problem.labels)
    slight = _Problem(problem.products, nothing, eta, SLIGHT_L2 * problem.products.longest**2)
    for guess in (coef, slope):
        direction = falls_for_ever(design, eta, lam, guess)
        if direction is not None:
            return direction
    return falls_for_ever(design, eta, lam, _followed(slight, lam, slack)[1])


def _followed(problem: _Problem, lam: float, slack: float) -> tuple[float, FloatArray]:
    """Follow support and signs down to ``lam``: the lambda at which they stalled, and the fit.

    A stage that does not settle is tried again at half its length.  As stages shrink one column
    changes at a time, unless columns depend on each other.
    """
    n, p = problem.design.shape
    size = np.sort(np.abs(problem.correlation))[::-1]
    here, coef, ratio = float(size[0]), np.zeros(p), 0.0
    # from zero on, as many columns as is wise in one stage
    first = float(size[min(max(n // 5, ENTERING), p - 1)])
    for _ in range(STAGES):
        if here <= lam:
            break
        goal = max(lam, ratio * here, first if not np.any(coef) and first < here else 0.0)
        loose = 0.0 if goal <= lam else UNSETTLED
        found = _corrected(problem, goal, coef, slack, unsettled=loose)
        if found is not None:
            here, coef, ratio = goal, found, ratio**1.25
            continue
        ratio, first = math.sqrt(max(ratio, lam / here, 0.1)), 0.0
        if ratio > STALLED:
            break
    return here, coef


def _descended(problem: _Problem, lam: float, coef: FloatArray) -> FloatArray:
    """Coordinate descent on the columns that are active or violate their condition."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    active = np.flatnonzero(coef)
    off = np.abs(problem.descent(coef))
    off[active] = 0.0
    entering = np.argsort(off)[::-1][: max(active.size, ENTERING)]
    work = np.union1d(active, entering[off[entering] > 0.5 * lam])
    if not work.size:
        return np.zeros_like(coef)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = lasso_path(
            problem.design[:, work],
            problem.labels,
            alphas=[lam / problem.labels.size],
            precompute=np.ascontiguousarray(problem.gram(work)),
            Xy=problem.correlation[work],
            coef_init=coef[work],
            max_iter=SWEEPS,
            tol=1e-18,
        )
    result = np.zeros_like(coef)
    result[work] = path[1][:, 0]
    return result


def _corrected(
    problem: _Problem,
    lam: float,
    coef: FloatArray,
    slack: float,
    *,
    unsettled: float = 0.0,
    dependent: bool = False,
) -> FloatArray | None:
    """The exact minimiser at a support with signs that are right; None where they do not settle.

    ``unsettled`` is the share of the support that may still change; ``dependent`` allows more
    active columns than records.
    """
    support = np.flatnonzero(coef)
    signs = np.sign(coef[support])
    fewest, patience = math.inf, 3
    for _ in range(CORRECTIONS):
        if support.size > len(problem.design) and problem.l2 == 0.0 and not dependent:
            return None
        solve = _solver_of(problem.gram(support))
        result = np.zeros_like(coef)
        result[support] = solve(problem.correlation[support] - lam * signs)
        descent = problem.descent(result)
        right = result[support] * signs > 0.0
        violated = np.abs(descent) > lam + slack
        violated[support] = False
        entering = np.flatnonzero(violated)
        wrong = int((~right).sum()) + entering.size
        if wrong <= unsettled * support.size:
            # refined from the residual, not from the inner products
            result[support] += solve(descent[support] - lam * signs)
            result[support[~right]] = 0.0
            return result
        patience = patience if wrong < fewest else patience - 1
        fewest = min(fewest, wrong)
        if patience == 0 or entering.size > max(len(problem.design) // 5, ENTERING, support.size):
            return None
        signs = np.concatenate([signs[right], np.sign(descent[entering])])
        support = np.concatenate([support[right], entering])
    return None


def _solver_of(gram: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solves with inner products of columns; where those depend on each other, by least norm."""
    scale = gram.diagonal()
    try:
        factor = linalg.cho_factor(gram, lower=True, check_finite=False)
        if np.all(factor[0].diagonal() ** 2 > DEPENDENT * scale):
            return lambda right: np.asarray(linalg.cho_solve(factor, right, check_finite=False))
    except linalg.LinAlgError:
        pass
    return lambda right: np.asarray(linalg.lstsq(gram, right, cond=DEPENDENT)[0])


def kkt_violation(
    X: FloatArray, y: FloatArray, lam: float, coef: FloatArray, linear_term: ArrayLike | None = None
) -> float:
    """The largest violation of the optimality conditions of lasso Eq. (2), in units of ``lam``."""
    eta = np.zeros(X.shape[1]) if linear_term is None else np.asarray(linear_term)
    return float(violation_of((y - X @ coef) @ X - eta, coef, lam))
