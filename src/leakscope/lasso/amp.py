"""Approximate message passing for the perturbed LASSO (lasso Section 3.3), many problems at once.

One iteration, with V the paper's s_theta, Sigma = (1 + V)/alpha and z_mu = y_mu - yhat_mu^{\\mu}:

    z    <- y - X beta + V z_before/(1 + V_before)                        (24)
    m    <- beta + X'z/alpha                                              (22), corrected
    beta <- soft(m - eta Sigma, lam Sigma),   V <- Sigma rho_hat          (28)-(31), (25)

Eq. (22) as printed multiplies beta_i by sum_mu X_mu,i^2/alpha instead of 1.  That factor is 1 only
on average, and the printed iteration does not end at the LASSO: at p = 1000 it misses by some
tenths.  With 1 its fixed points are exactly the minimisers of Eq. (2), for any X.

At the fixed point z = (1 + V)(y - X beta) are the leave-one-out residuals.  The leave-one-out
estimates of Eqs. (32)-(34) are not those of refits (`MessagePassing.leave_one_out`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lasso.objective import checked_data, violation_of

# From V = 0 the first iterate may be zero and stay for a step: look again before believing it.
FEWEST_ITERATIONS = 5
# Growth of the residual over that of beta = 0 after which an iteration does not come back.
BLOWN_UP = 1e6


@dataclass(frozen=True, eq=False)
class Replacements:
    """Neighbouring datasets: in each, one record of (X, y) is replaced by another.

    Attributes
    ----------
    records
        (m,) which row is replaced in each dataset.
    rows
        (m, p) what replaces it.
    labels
        (m,) and its label.
    """

    records: NDArray[np.int64]
    rows: FloatArray
    labels: FloatArray

    @property
    def count(self) -> int:
        """How many neighbouring datasets."""
        return int(self.records.size)


@dataclass(frozen=True, eq=False)
class MessagePassing:
    """Where message passing ended, for m problems.

    Attributes
    ----------
    coef
        (m, p) beta; the last iterate where it did not converge, NaN where it diverged.
    status
        (m,) converged, diverged or not_converged.
    iterations
        (m,)
    field
        (m, p) m_i, the paper's upright m: what a coefficient's soft threshold acts on, before the
        noise.
    spread
        (m,) Sigma = (1 + V)/alpha, in the units of X.
    susceptibility
        (m,) V, the paper's s_theta.
    loo_residuals
        (m, n) z_mu = y_mu - yhat_mu^{\\mu}, the residual of each record in a fit without it.
    active_fraction
        (m,) rho_hat; message passing is stable while rho_hat < n/p (Eq. 42).
    kkt_violation
        (m,) of the optimality conditions of Eq. (2).
    history
        Where it was asked for, V, ||beta||^2/p and, with the true coefficients, beta0'beta/p after
        each iteration: (3, iterations, m), NaN once a problem has ended or where nothing is known.
    """

    coef: FloatArray
    status: NDArray[np.str_]
    iterations: NDArray[np.int64]
    field: FloatArray
    spread: FloatArray
    susceptibility: FloatArray
    loo_residuals: FloatArray
    active_fraction: FloatArray
    kkt_violation: FloatArray
    lam: float
    linear_terms: FloatArray
    design: FloatArray
    replacements: Replacements | None
    history: FloatArray | None = None

    def leave_one_out(
        self,
        records: ArrayLike,
        problem: int = 0,
        *,
        form: Literal["corrected", "printed"] = "corrected",
    ) -> FloatArray:
        """(k, p) the estimate without each of the given records.

        ``"corrected"``: beta_A - (X_A'X_A)^{-1} x_A r/(1 - h) on the support A of the fit, with r
        the record's residual and h = x_A'(X_A'X_A)^{-1}x_A: the refit itself as long as support and
        signs stay; a coefficient whose sign would turn is zero.  ``"printed"``: Eqs. (32) and (34),

            m_{i->mu} = m_i - X_mu,i z_mu / alpha,  beta_{i->mu} = soft(m_{i->mu} - eta Sigma,
            lam Sigma),

        which Assumption 3.4 takes for the refit.  It has the record's own share and not the other
        records' response to it (as Eq. (60) and Claim 6.1, errata 1 and 4): of the record's effect
        it misses the share sqrt(V/(1 + V)), however large p is.

        For a problem with a replaced record the new row is meant where it is asked for.
        """
        rows = np.atleast_1d(np.asarray(records, dtype=np.int64))
        design, asked = self._data_of(problem, rows)
        if form == "printed":
            # Sigma/(1 + V) is 1/alpha in units where rows have length one
            weight = self.spread[problem] / (1.0 + self.susceptibility[problem])
            shift = weight * asked * self.loo_residuals[problem, rows, None]
            return soft(
                self.field[problem] - shift - self.linear_terms[problem] * self.spread[problem],
                self.lam * self.spread[problem],
            )
        if form != "corrected":
            raise InputError(f"form must be corrected or printed, but it is {form!r}.")
        beta = self.coef[problem]
        active = np.flatnonzero(beta)
        inside = design[:, active]
        moves = linalg.solve(inside.T @ inside, asked[:, active].T, assume_a="pos").T
        leverage = np.einsum("ij,ij->i", moves, asked[:, active])
        # at the fixed point z = (1 + V) r
        residual = self.loo_residuals[problem, rows] / (1.0 + self.susceptibility[problem])
        moved = beta[active] - moves * (residual / (1.0 - leverage))[:, None]
        found = np.zeros((rows.size, beta.size))
        found[:, active] = np.where(moved * beta[active] > 0.0, moved, 0.0)
        return found

    def leave_one_out_spread(self, records: ArrayLike, problem: int = 0) -> FloatArray:
        """(k, p) s_{i->mu} of Eq. (33): Sigma where beta_{i->mu}, as printed, is not zero."""
        active = self.leave_one_out(records, problem, form="printed") != 0.0
        return np.asarray(np.where(active, self.spread[problem], 0.0))

    def _data_of(self, problem: int, rows: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """(n, p) X of one problem, and its given rows."""
        if self.replacements is None:
            return self.design, self.design[rows]
        design = self.design.copy()
        design[self.replacements.records[problem]] = self.replacements.rows[problem]
        return design, design[rows]


def soft(value: FloatArray, threshold: float | FloatArray) -> FloatArray:
    """Soft threshold, Eq. (30)."""
    return np.asarray(value - np.clip(value, -threshold, threshold))


def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    linear_terms: ArrayLike | None = None,
    replacements: Replacements | None = None,
    *,
    tol: float = 1e-10,
    max_iterations: int = 1000,
    history: bool = False,
    signal: ArrayLike | None = None,
) -> MessagePassing:
    """AMP for lasso Eq. (2), for many noise draws or many neighbouring datasets together.

    All problems share X, so an iteration is two matrix-matrix products; problems that have ended
    leave the batch.  X need not be scaled as in Setting D: rows are taken to have the mean squared
    length that they have, which is 1 there.  Where X is far from i.i.d. the iteration may diverge
    though the LASSO has a solution; ``solve_lasso`` always finds it.

    Parameters
    ----------
    X, y
        (n, p) design and (n,) labels.
    lam
        lambda.
    linear_terms
        (m, p) eta of each problem, (1, p) or (p,) for all; none is zero.
    replacements
        m neighbouring datasets; none means (X, y) itself.
    tol
        A problem has converged when the optimality conditions are violated by at most
        tol times lam, rounding allowed for.
    max_iterations
        After which a problem is not_converged.
    history, signal
        Keep the state after each iteration, to be set beside `trajectory`; ``signal`` is beta0,
        (p,), where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import message_passing
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 200)) / 200**0.5
    >>> y = X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(100)
    >>> found = message_passing(X, y, lam=1.0, linear_terms=0.3 * rng.standard_normal((8, 200)))
    >>> found.coef.shape, set(found.status.tolist())
    ((8, 200), {'converged'})
    >>> message_passing(X, y, lam=0.1, linear_terms=rng.standard_normal(200)).status.tolist()
    ['diverged']
    """
    design, labels = checked_data(X, y)
    n, p = design.shape
    if not (math.isfinite(lam) and lam > 0.0):
        raise InputError(f"lam must be positive and finite, but it is {lam!r}.")
    eta = _checked_terms(linear_terms, p, replacements)
    count = eta.shape[0]
    swap = None if replacements is None else _checked_swap(replacements, count, n, p)
    require_memory(
        8 * count * (6 * p + 4 * n),
        f"Message passing for {count} problems",
        "ask for fewer at a time",
    )
    # mean squared row length; 1/weight plays the part of alpha in the units of X
    scale = float(np.einsum("ij,ij->", design, design)) / n
    if scale == 0.0:
        raise InputError("X is all zero: there is nothing to fit.")
    weight = p / (n * scale)
    targets = np.repeat(labels[None], count, axis=0)
    if swap is not None:
        targets[np.arange(count), swap.records] = swap.labels
    accepted = tol * lam + 2e-15 * (
        math.sqrt(n * scale / p) * float(np.linalg.norm(labels)) + float(np.abs(eta).max())
    )
    kept: list[FloatArray] | None = [] if history or signal is not None else None
    truth = np.full(p, np.nan) if signal is None else np.asarray(signal, dtype=np.float64)
    if truth.shape != (p,):
        raise InputError(f"signal must have {p} entries, but its shape is {truth.shape}.")
    found = _iterate(
        design, targets, eta, swap, lam, weight, scale / p, accepted, max_iterations, kept, truth
    )
    return found if kept is None else replace(found, history=np.stack(kept, axis=1))


def _iterate(
    design: FloatArray,
    all_targets: FloatArray,
    all_eta: FloatArray,
    swap: Replacements | None,
    lam: float,
    weight: float,
    entry: float,
    accepted: float,
    max_iterations: int,
    kept: list[FloatArray] | None,
    truth: FloatArray,
) -> MessagePassing:
    """The iteration itself; arrays are (m, .), and problems that have ended are taken out.

    ``weight`` is 1/alpha and ``entry`` the mean square of an entry, in the units of X.
    """
    count, p = all_eta.shape
    n, every = design.shape[0], swap
    out_coef, out_field = np.full((count, p), np.nan), np.full((count, p), np.nan)
    out_z, out_v = np.full((count, n), np.nan), np.full(count, np.nan)
    violation, active = np.full(count, np.inf), np.full(count, np.nan)
    status = np.full(count, "not_converged", dtype="<U13")
    steps = np.zeros(count, dtype=np.int64)

    live = np.arange(count)
    eta, targets = all_eta, all_targets
    beta = np.zeros((count, p))
    v = np.zeros(count)
    z = targets.copy()
    start = np.maximum(np.linalg.norm(targets, axis=1), lam / math.sqrt(n))
    pull = _pull(design, z, swap)
    for step in range(1, max_iterations + 1):
        sigma = weight * (1.0 + v)
        field = beta + weight * pull
        beta = soft(field - eta * sigma[:, None], lam * sigma[:, None])
        share = np.count_nonzero(beta, axis=1) / p
        v_new = sigma * share * p * entry
        residual = targets - _fitted(design, beta, swap)
        z = residual + (v_new / (1.0 + v))[:, None] * z
        v = v_new
        if kept is not None:
            state = np.full((3, count), np.nan)
            state[:, live] = v, np.mean(beta**2, axis=1), beta @ truth / p
            kept.append(state)
        pull = _pull(design, z, swap)
        # At a fixed point z = (1 + V) r, so X'z/(1 + V) is the descent X'r of the conditions;
        # the two differ by at most how far z is from it, which is checked with them.
        drift = np.abs(z / (1.0 + v)[:, None] - residual).max(axis=1)
        worst = violation_of(pull / (1.0 + v)[:, None] - eta, beta, lam)
        steps[live] = step
        size = np.linalg.norm(z, axis=1)
        blown = ~np.isfinite(size) | (size > BLOWN_UP * start[live])
        good = (np.maximum(worst, drift) <= accepted) & (step >= FEWEST_ITERATIONS)
        done = good | blown | (step == max_iterations)
        if not done.any():
            continue
        active[live[done]], out_v[live[done]] = share[done], v[done]
        status[live[blown]], status[live[good & ~blown]] = "diverged", "converged"
        ended = done & ~blown
        which = live[ended]
        out_coef[which], out_z[which] = beta[ended], z[ended]
        out_field[which] = beta[ended] + weight * pull[ended]
        # the certificate is from the residual itself
        descent = _pull(design, residual[ended], _some(swap, ended)) - eta[ended]
        violation[which] = violation_of(descent, beta[ended], lam)
        rest = ~done
        if not rest.any():
            break
        live, eta, targets = live[rest], eta[rest], targets[rest]
        beta, z, v, pull = beta[rest], z[rest], v[rest], pull[rest]
        swap = _some(swap, rest)
    return MessagePassing(
        coef=out_coef,
        status=status,
        iterations=steps,
        field=out_field,
        spread=weight * (1.0 + out_v),
        susceptibility=out_v,
        loo_residuals=out_z,
        active_fraction=active,
        kkt_violation=violation,
        lam=lam,
        linear_terms=all_eta,
        design=design,
        replacements=every,
    )


def _fitted(design: FloatArray, beta: FloatArray, swap: Replacements | None) -> FloatArray:
    """(m, n) X beta in each dataset."""
    value = beta @ design.T
    if swap is not None:
        value[np.arange(swap.count), swap.records] = np.einsum("ij,ij->i", swap.rows, beta)
    return np.asarray(value)


def _pull(design: FloatArray, z: FloatArray, swap: Replacements | None) -> FloatArray:
    """(m, p) X'z in each dataset."""
    value = z @ design
    if swap is not None:
        own = z[np.arange(swap.count), swap.records]
        value += own[:, None] * (swap.rows - design[swap.records])
    return np.asarray(value)


def _some(swap: Replacements | None, chosen: NDArray[np.bool_]) -> Replacements | None:
    if swap is None:
        return None
    return Replacements(swap.records[chosen], swap.rows[chosen], swap.labels[chosen])


def _checked_terms(
    linear_terms: ArrayLike | None, p: int, replacements: Replacements | None
) -> FloatArray:
    count = 1 if replacements is None else replacements.count
    if linear_terms is None:
        return np.zeros((count, p))
    terms = np.atleast_2d(np.asarray(linear_terms, dtype=np.float64))
    if terms.ndim != 2 or terms.shape[1] != p or not np.all(np.isfinite(terms)):
        raise InputError(
            f"linear_terms must be finite, with {p} entries for each problem, one for each column "
            f"of X, but its shape is {terms.shape}."
        )
    if replacements is not None and terms.shape[0] not in (1, count):
        raise InputError(
            f"There are {terms.shape[0]} linear terms and {count} neighbouring datasets; give one "
            "linear term, or one for each dataset."
        )
    return np.array(np.broadcast_to(terms, (max(count, terms.shape[0]), p)))


def _checked_swap(swap: Replacements, count: int, n: int, p: int) -> Replacements:
    records = np.asarray(swap.records, dtype=np.int64)
    rows = np.asarray(swap.rows, dtype=np.float64)
    labels = np.asarray(swap.labels, dtype=np.float64)
    if records.shape != (count,) or rows.shape != (count, p) or labels.shape != (count,):
        raise InputError(
            f"Replacements must have {count} records, {count} rows of {p} features and {count} "
            f"labels, but they have shapes {records.shape}, {rows.shape} and {labels.shape}."
        )
    if np.any((records < 0) | (records >= n)):
        raise InputError(f"Replacements: a record must be a row of X, from 0 to {n - 1}.")
    return Replacements(records, rows, labels)
