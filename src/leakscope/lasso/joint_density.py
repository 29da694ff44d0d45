"""The density of a whole private LASSO estimate, and its ratio between neighbouring datasets.

The map from the noise to the estimate is piecewise affine, so its density is explicit.  With
u = X'(y - X beta), A the support of beta and S its signs,

    log p(beta | D) = sum_A log phi(u_i - lambda S_i; sigma_eta^2)
                    + sum_notA log P(u_i - lambda <= eta_i <= u_i + lambda) + log det X_A'X_A,

with respect to Lebesgue measure on the coordinates of A.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.normal_tails import log_interval
from leakscope.errors import InputError


def log_density(
    X: FloatArray, y: FloatArray, beta: FloatArray, lam: float, sigma_eta: float
) -> float:
    """log p(beta | D) of objective perturbation with N(0, sigma_eta^2) noise.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import log_density
    >>> X, y = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([1.0, 0.2])
    >>> round(log_density(X, y, np.array([0.3, 0.0]), lam=0.5, sigma_eta=0.4), 4)
    -0.9352
    """
    _check(sigma_eta)
    support = beta != 0.0
    part = X[:, support]
    u = X.T @ (y - part @ beta[support])
    sign, size = np.linalg.slogdet(part.T @ part)
    if support.any() and sign <= 0:
        return -np.inf
    return float(_terms(u, beta, lam, sigma_eta).sum() + (size if support.any() else 0.0))


def log_ratios(
    X: FloatArray,
    y: FloatArray,
    betas: FloatArray,
    rows: NDArray[np.intp],
    new_X: FloatArray,
    new_y: FloatArray,
    lam: float,
    sigma_eta: float,
) -> FloatArray:
    """log p(beta | D) - log p(beta | D') for N estimates and M neighbours, shape (N, M).

    ``betas`` is (p, N); neighbour j has the record ``rows[j]`` of (X, y) replaced by
    (``new_X[j]``, ``new_y[j]``).  One factorisation an estimate serves all its neighbours: the
    determinant changes by a factor (1 - h)(1 + h') + c^2 of leverages.
    """
    _check(sigma_eta)
    result = np.empty((betas.shape[1], rows.size))
    old_X = X[rows]
    for index, beta in enumerate(betas.T):
        support = np.flatnonzero(beta)
        part = X[:, support]
        residual = y - part @ beta[support]
        u = X.T @ residual
        fresh = new_y - new_X[:, support] @ beta[support]
        moved = u - old_X * residual[rows][:, None] + new_X * fresh[:, None]
        own = _terms(u, beta, lam, sigma_eta).sum()
        others = _terms(moved, beta, lam, sigma_eta).sum(axis=-1)
        old, new = old_X[:, support], new_X[:, support]
        solved = np.linalg.solve(part.T @ part, np.concatenate([old, new]).T).T
        m = rows.size
        leverage = np.einsum("ij,ij->i", old, solved[:m])
        entered = np.einsum("ij,ij->i", new, solved[m:])
        crossed = np.einsum("ij,ij->i", old, solved[m:])
        result[index] = own - others - np.log((1.0 - leverage) * (1.0 + entered) + crossed**2)
    return result


def _terms(u: FloatArray, beta: FloatArray, lam: float, sigma: float) -> FloatArray:
    active = beta != 0.0
    z = (u[..., active] - lam * np.sign(beta[active])) / sigma
    result = np.empty(u.shape)
    result[..., active] = -0.5 * z * z - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    result[..., ~active] = log_interval(u[..., ~active] / sigma, lam / sigma)
    return result


def _check(sigma_eta: float) -> None:
    if not sigma_eta > 0.0:
        raise InputError("The estimate has a density only with privacy noise: set sigma_eta > 0.")
