"""Where objective perturbation stops having a solution: in the limit, and for one dataset.

The objective of lasso Eq. (2) has a minimiser if and only if lam >= lambda_c, where

    lambda_c = min_theta ||eta - X'theta||_inf = max { eta'v : Xv = 0, ||v||_1 <= 1 }.

A v of the second form with eta'v > lam proves the contrary: along -v the quadratic term stays as it
is, and the rest falls by eta'v - lam for each unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize, special
from scipy.optimize import linprog

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lasso.noise_laws import Tails, tails
from leakscope.lasso.setting import NOISE, LassoSetting
from leakscope.settings.plan import LassoNoise


def stability_edge(alpha: ArrayLike, noise: LassoNoise = NOISE) -> FloatArray:
    """The least lambda/sigma_eta at which objective perturbation has a solution.

    Condition (42) of **lasso**, rho_hat < alpha, holds if and only if lambda/sigma_eta is above

        sqrt(t / (2 phi(t)/alpha - t)),  t = Q^{-1}(alpha/2),

    whatever rho, sigma_xi and the signal are: as the error diverges the estimate forgets all of
    them.  Zero for alpha >= 1, which is always stable.  With Laplace noise the same two equations
    have no closed solution, and are solved.

    Examples
    --------
    >>> from leakscope.lasso import stability_edge
    >>> stability_edge([0.3, 0.5, 0.8, 1.0]).round(4).tolist()
    [1.4146, 1.0633, 0.5963, 0.0]
    >>> stability_edge([0.3, 0.5, 0.8, 1.0], "laplace").round(4).tolist()
    [1.5174, 1.0971, 0.5991, 0.0]
    """
    value = np.asarray(alpha, dtype=np.float64)
    if not np.all(value > 0.0):
        raise InputError("stability_edge: alpha must be above zero.")
    if noise == "laplace":
        return np.asarray(np.vectorize(_laplace_edge, otypes=[float])(value))
    half = 0.5 * np.minimum(value, 1.0)
    t = np.maximum(-special.ndtri(half), 0.0)
    # phi(t)/Q(t) - t without cancellation: the inverse Mills ratio less t, t = 0 at alpha >= 1
    excess = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) / half - t
    return np.asarray(np.sqrt(t / excess))


@lru_cache(maxsize=4096)
def _laplace_edge(alpha: float) -> float:
    """At the edge the field is sqrt(1 - q) n + sqrt(q/2) l in units of its sd, cut at t.

    A share alpha of it is beyond t, and its second moment there is alpha (1 - q); lambda/sigma_eta
    is t/sqrt(q).  The share fixes t for each q.
    """
    if alpha >= 1.0:
        return 0.0

    def beyond(t: float, q: float) -> Tails:
        return tails(np.asarray(t), np.asarray(1.0 - q) ** 0.5, np.asarray(q) ** 0.5, "laplace")

    def cut(q: float) -> float:
        found = optimize.brentq(lambda t: 2.0 * float(beyond(t, q).beyond) - alpha, 0.0, 60.0)
        return float(found)

    q = optimize.brentq(
        lambda q: alpha * (1.0 - q) - 2.0 * float(beyond(cut(q), q).square), 1e-12, 1.0 - 1e-12
    )
    return cut(float(q)) / math.sqrt(q)


def stability_ratio(setting: LassoSetting) -> FloatArray:
    """How much of the noise that the problem can bear is there: below 1 it is stable.

    sigma_eta times the edge over lambda; zero without noise in the objective and for alpha >= 1.
    """
    edge = stability_edge(setting.alpha, setting.noise)
    return np.asarray(edge * setting.objective_noise / setting.lam)


@dataclass(frozen=True, eq=False)
class StabilityEdge:
    """lambda_c of one (X, eta), and the two points that prove it.

    Attributes
    ----------
    edge
        lambda_c; below it the objective has no minimiser.
    theta
        (n,) with ||eta - X'theta||_inf = ``upper``.
    direction
        (p,) u with Xu = 0, ||u||_1 = 1 and eta'u = -``lower``: for lam below the edge the
        objective falls for ever along u.
    lower, upper
        What the direction and theta prove: lower <= lambda_c <= upper, up to the rounding in
        Xu = 0.
    """

    edge: float
    theta: FloatArray
    direction: FloatArray
    lower: float
    upper: float


def stability_programme(X: ArrayLike, linear_term: ArrayLike) -> StabilityEdge:
    """lambda_c of one dataset X (n, p) and one noise draw eta (p,), as a linear programme by HiGHS.

    With p <= n and independent columns it is 0.  `stability_edge` is the limit n, p to infinity, in
    units of sigma_eta.
    """
    design = np.asarray(X, dtype=np.float64)
    eta = np.asarray(linear_term, dtype=np.float64)
    if design.ndim != 2 or eta.shape != (design.shape[1],):
        raise InputError(
            f"The linear term must have one entry for each of the columns of X, but X has shape "
            f"{design.shape} and the linear term {eta.shape}."
        )
    if not (np.all(np.isfinite(design)) and np.all(np.isfinite(eta))):
        raise InputError("X and the linear term must be finite.")
    n, p = design.shape
    size = float(np.abs(eta).max(initial=0.0))
    lengths = np.linalg.norm(design, axis=0)
    lengths[lengths == 0.0] = 1.0
    theta = np.linalg.lstsq((design / lengths).T, eta / lengths, rcond=None)[0]
    rest = float(np.abs(eta - design.T @ theta).max(initial=0.0))
    if rest <= 1e-10 * size:
        # eta is in the row space, as it always is when the columns are independent
        return StabilityEdge(0.0, theta, np.zeros(p), 0.0, rest)
    require_memory(
        64 * n * p, f"The linear programme for {n} records and {p} features", "take fewer features"
    )
    rows = float(np.sqrt(np.mean(design**2) * p)) or 1.0
    scaled, target = design / rows, eta / size
    found = linprog(
        np.concatenate([-target, target]),
        A_eq=np.vstack([np.hstack([scaled, -scaled]), np.ones((1, 2 * p))]),
        b_eq=np.append(np.zeros(n), 1.0),
        bounds=(0.0, None),
        method="highs",
    )
    if found.x is None:
        raise InputError(f"The linear programme was not solved: {found.message}")
    v = project_out(design, found.x[:p] - found.x[p:])
    if np.abs(v).sum() <= 1e-7:
        # the programme's v was within its tolerance of Xv = 0, and nothing more
        return StabilityEdge(0.0, theta, np.zeros(p), 0.0, rest)
    v /= np.abs(v).sum()
    theta = -size / rows * np.asarray(found.eqlin.marginals[:n])
    lower = float(eta @ v)
    upper = float(np.abs(eta - design.T @ theta).max())
    return StabilityEdge(0.5 * (lower + upper), theta, -v, lower, upper)


def project_out(design: FloatArray, vector: FloatArray) -> FloatArray:
    """The part of ``vector`` that X does not see: v - X^+ X v."""
    gram = design @ design.T
    gram[np.diag_indices_from(gram)] += 1e-14 * np.trace(gram) / gram.shape[0]
    factor = linalg.cho_factor(gram, lower=True, check_finite=False)
    rest = vector
    for _ in range(2):
        rest = rest - design.T @ linalg.cho_solve(factor, design @ rest, check_finite=False)
    return np.asarray(rest)


def falls_for_ever(
    design: FloatArray, eta: FloatArray, lam: float, guess: FloatArray
) -> FloatArray | None:
    """A v near ``guess`` with Xv = 0 and lam ||v||_1 + eta'v < 0, or None.

    Such a v proves that the objective has no minimiser.  The margin must exceed what rounding can
    have left in Xv.
    """
    if design.shape[1] <= design.shape[0]:
        return None
    v = project_out(design, guess)
    size = float(np.abs(v).sum())
    if size <= 1e-10 * float(np.abs(guess).sum()):
        return None
    v /= size
    unseen = float(np.linalg.norm(design @ v)) / float(np.sqrt(np.mean(design**2)) or 1.0)
    if unseen <= 1e-9 and lam + float(eta @ v) < -1e-9 * (lam + float(np.abs(eta).max())):
        return v
    return None
