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
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError

# From V = 0 the first iterate may be zero and stay for a step: look again before believing it.
FEWEST_ITERATIONS = 5
# Growth of the residual over that of beta = 0 after which an iteration does not come back.
BLOWN_UP = 1e6


def checked_data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(n, p) finite design in Fortran order and (n,) finite labels, or an `InputError`."""
    design, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if design.ndim != 2 or 0 in design.shape:
        raise InputError(
            f"X must be a table of n rows and p columns, but its shape is {design.shape}."
        )
    if labels.shape != (design.shape[0],):
        raise InputError(
            f"y must be {design.shape[0]} labels, one for each row of X, but its shape is "
            f"{labels.shape}."
        )
    bad = ~(np.isfinite(design).all(axis=1) & np.isfinite(labels))
    if bad.any():
        raise InputError(f"X and y must be finite, but row {int(np.argmax(bad))} is not.")
    return np.asfortranarray(design), labels


def violation_of(descent: FloatArray, coef: FloatArray, lam: float | FloatArray) -> FloatArray:
    """The largest violation along the last axis, from g = X'(y - X beta) - eta - l2 beta.

    A minimiser has g_j = lam sign(beta_j) where beta_j is not zero and |g_j| <= lam where it is.  A
    duality gap is no substitute: the usual dual point, a rescaled residual, is infeasible once
    max|eta| exceeds lam.
    """
    off = np.maximum(np.abs(descent) - lam, 0.0)
    on = np.abs(descent - lam * np.sign(coef))
    return np.asarray(np.where(coef != 0.0, on, off).max(axis=-1))


def soft(value: FloatArray, threshold: float | FloatArray) -> FloatArray:
    """Soft threshold, Eq. (30)."""
    return np.asarray(value - np.clip(value, -threshold, threshold))


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
        """
        rows = np.atleast_1d(np.asarray(records, dtype=np.int64))
        gain, asked = 1.0 + self.susceptibility[problem], self.design[rows]
        if form == "printed":
            # Sigma/(1 + V) is 1/alpha in units where rows have length one
            spread = self.spread[problem]
            shift = spread / gain * asked * self.loo_residuals[problem, rows, None]
            moved = self.field[problem] - shift - self.linear_terms[problem] * spread
            return soft(moved, self.lam * spread)
        if form != "corrected":
            raise InputError(f"form must be corrected or printed, but it is {form!r}.")
        beta = self.coef[problem]
        active = np.flatnonzero(beta)
        inside = self.design[:, active]
        moves = linalg.solve(inside.T @ inside, asked[:, active].T, assume_a="pos").T
        leverage = np.einsum("ij,ij->i", moves, asked[:, active])
        # at the fixed point z = (1 + V) r
        residual = self.loo_residuals[problem, rows] / gain
        moved = beta[active] - moves * (residual / (1.0 - leverage))[:, None]
        without = np.zeros((rows.size, beta.size))
        without[:, active] = np.where(moved * beta[active] > 0.0, moved, 0.0)
        return without

    def leave_one_out_spread(self, records: ArrayLike, problem: int = 0) -> FloatArray:
        """(k, p) s_{i->mu} of Eq. (33): Sigma where beta_{i->mu}, as printed, is not zero."""
        active = self.leave_one_out(records, problem, form="printed") != 0.0
        return np.asarray(np.where(active, self.spread[problem], 0.0))


def message_passing(
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    linear_terms: ArrayLike | None = None,
    *,
    tol: float = 1e-10,
    max_iterations: int = 1000,
) -> MessagePassing:
    """AMP for lasso Eq. (2), for many noise draws together.

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
        (m, p) eta of each problem, or (p,) for one; none is zero.
    tol
        A problem has converged when the optimality conditions are violated by at most
        tol times lam, rounding allowed for.
    max_iterations
        After which a problem is not_converged.

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
    given = np.zeros(p) if linear_terms is None else np.asarray(linear_terms, dtype=np.float64)
    every = np.atleast_2d(given)
    if every.ndim != 2 or every.shape[1] != p or not np.all(np.isfinite(every)):
        raise InputError(
            f"linear_terms must be finite, with {p} entries for each problem, one for each column "
            f"of X, but its shape is {every.shape}."
        )
    count = every.shape[0]
    memory = 8 * count * (6 * p + 4 * n)
    require_memory(memory, f"Message passing for {count} problems", "ask for fewer at a time")
    # mean squared row length; 1/weight plays the part of alpha in the units of X
    scale = float(np.einsum("ij,ij->", design, design)) / n
    if scale == 0.0:
        raise InputError("X is all zero: there is nothing to fit.")
    weight = p / (n * scale)
    size = math.sqrt(n * scale / p) * float(np.linalg.norm(labels)) + float(np.abs(every).max())
    accepted = tol * lam + 2e-15 * size

    coef, field = np.full((count, p), np.nan), np.full((count, p), np.nan)
    loo_residuals, susceptibility = np.full((count, n), np.nan), np.full(count, np.nan)
    violation, active = np.full(count, np.inf), np.full(count, np.nan)
    status = np.full(count, "not_converged", dtype="<U13")
    iterations = np.zeros(count, dtype=np.int64)
    live, eta = np.arange(count), every
    beta, v = np.zeros((count, p)), np.zeros(count)
    z = np.repeat(labels[None], count, axis=0)
    largest = BLOWN_UP * max(float(np.linalg.norm(labels)), lam / math.sqrt(n))
    pull = z @ design
    for step in range(1, max_iterations + 1):
        sigma = weight * (1.0 + v)
        beta = soft(beta + weight * pull - eta * sigma[:, None], lam * sigma[:, None])
        share = np.count_nonzero(beta, axis=1) / p
        v_new = sigma * share * scale
        residual = labels - beta @ design.T
        z = residual + (v_new / (1.0 + v))[:, None] * z
        v = v_new
        pull = z @ design
        # At a fixed point z = (1 + V) r, so X'z/(1 + V) is the descent X'r of the conditions;
        # the two differ by at most how far z is from it, which is checked with them.
        drift = np.abs(z / (1.0 + v)[:, None] - residual).max(axis=1)
        worst = violation_of(pull / (1.0 + v)[:, None] - eta, beta, lam)
        iterations[live] = step
        length = np.linalg.norm(z, axis=1)
        blown = ~np.isfinite(length) | (length > largest)
        good = (np.maximum(worst, drift) <= accepted) & (step >= FEWEST_ITERATIONS)
        done = good | blown | (step == max_iterations)
        if not done.any():
            continue
        active[live[done]], susceptibility[live[done]] = share[done], v[done]
        status[live[blown]], status[live[good & ~blown]] = "diverged", "converged"
        ended = done & ~blown
        which = live[ended]
        coef[which], loo_residuals[which] = beta[ended], z[ended]
        field[which] = beta[ended] + weight * pull[ended]
        # the certificate is from the residual itself
        violation[which] = violation_of(residual[ended] @ design - eta[ended], beta[ended], lam)
        if done.all():
            break
        live, eta, beta, z, v, pull = (part[~done] for part in (live, eta, beta, z, v, pull))
    return MessagePassing(
        coef=coef,
        status=status,
        iterations=iterations,
        field=field,
        spread=weight * (1.0 + susceptibility),
        susceptibility=susceptibility,
        loo_residuals=loo_residuals,
        active_fraction=active,
        kkt_violation=violation,
        lam=lam,
        linear_terms=every,
        design=design,
    )
