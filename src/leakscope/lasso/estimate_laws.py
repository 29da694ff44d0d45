"""The laws of what a private LASSO releases: of one coefficient, and of the whole estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import log_interval
from leakscope.errors import InputError
from leakscope.lasso.divergence import Overlap, joint_parameters
from leakscope.lasso.setting import NOISE, provenance_of
from leakscope.lasso.state_evolution import FixedPoint
from leakscope.laws.distributions import MultivariateNormal, SpikeAndSlab
from leakscope.laws.pair import LawPair
from leakscope.settings.plan import LassoNoise


def law_over_data(point: FixedPoint, coefficient: ArrayLike, noise: ArrayLike) -> SpikeAndSlab:
    """The law of an estimate over datasets, its true coefficient and its own noise given: Eq. (46).

    soft(beta0 + sqrt(E/alpha) z - Sigma eta, lambda Sigma).
    """
    if point.setting.mechanism == "output":
        raise InputError("law_over_data is of objective perturbation, not of noise on the output.")
    location = np.asarray(coefficient) - point.scale * np.asarray(noise)
    return SpikeAndSlab(location, np.sqrt(point.error / point.setting.alpha), point.threshold)


def joint_law_pair(point: FixedPoint | Overlap) -> LawPair:
    """What an attacker sees of a typical pair of datasets: one record, or another in its place.

    Stable settings with privacy noise, one or a batch.  A measure of this pair is that of one test
    for all pairs of records, which compares their likelihood ratio with one threshold: its
    advantage, delta and KL are the means over pairs, its AUC and TPR are those of the single
    threshold.

    Ours, not the paper's; docs/lasso.md derives it.  Adding a record (x', y') multiplies the
    density of an estimate beta (`log_density`) by exp(Lambda), which for many coefficients is a
    quadratic form in two normal numbers: the residual r = y' - x'beta and
    b = sum_i x'_i E[eta_i | beta].  A record that was not trained on shows N(0, I) in suitable
    coordinates, one that was trained on N(0, P^-1) with

        P = [[1 + 2 V + a^2, sqrt(a^2 - V^2)], [sqrt(a^2 - V^2), 1]],   det P = (1 + V)^2,

    a^2 from `joint_parameters`.  Replacing a record is removing one and adding one: two independent
    such pairs of coordinates, normals of four dimensions.  Under output perturbation a pair's log
    ratio is N(K, 2 K) with K the mean KL times Exp(1), which is the same law at V = 0 and a^2 the
    mean KL.

    Examples
    --------
    >>> from leakscope import measures
    >>> from leakscope.lasso import LassoSetting, joint_law_pair, state_evolution
    >>> pair = joint_law_pair(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, sigma_eta=0.5)))
    >>> round(float(measures.kl(pair)), 6), round(float(measures.advantage(pair)), 6)
    (0.156528, 0.185642)
    >>> measures.epsilon_at_delta(pair, [1e-2, 1e-5, 1e-12]).round(4).tolist()
    [1.5678, 5.8958, 16.4861]
    """
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    setting = fixed.setting
    if not np.all(fixed.stable & (setting.sigma_eta > 0.0)):
        raise InputError("A likelihood ratio needs a stable setting with sigma_eta above zero.")
    trained = _variances(*joint_parameters(fixed))
    fresh = np.ones(trained.shape)
    centre = np.zeros(4)
    sides = (np.concatenate(two, axis=-1) for two in ((trained, fresh), (fresh, trained)))
    member, nonmember = (MultivariateNormal(centre, one[..., None] * np.eye(4)) for one in sides)
    return LawPair(member, nonmember, provenance_of(setting))


def _variances(gain: FloatArray, square: FloatArray) -> FloatArray:
    """The eigenvalues of P^-1, (..., 2).

    Their product is gain^-2 and their sum (2 gain + a^2)/gain^2.
    """
    middle = (1.0 + 0.5 * square / gain) / gain
    # middle^2 - gain^-2, factored so that nothing cancels
    root = np.sqrt(0.5 * square * (middle + 1.0 / gain)) / gain
    large = middle + root
    return np.stack([large, 1.0 / (gain * gain * large)], axis=-1)


def log_density(
    X: FloatArray,
    y: FloatArray,
    beta: FloatArray,
    lam: float,
    sigma_eta: float,
    noise: LassoNoise = NOISE,
) -> float:
    """log p(beta | D) of the whole estimate under objective perturbation of sd sigma_eta.

    The map from the noise to the estimate is piecewise affine, so its density is explicit.  With
    u = X'(y - X beta), A the support of beta and S its signs,

        log p(beta | D) = sum_A log phi(u_i - lambda S_i; sigma_eta^2)
                        + sum_notA log P(u_i - lambda <= eta_i <= u_i + lambda) + log det X_A'X_A,

    with respect to Lebesgue measure on the coordinates of A; phi is the noise's density.
    """
    _check(sigma_eta)
    support = beta != 0.0
    part = X[:, support]
    u = X.T @ (y - part @ beta[support])
    sign, size = np.linalg.slogdet(part.T @ part)
    if support.any() and sign <= 0:
        return -np.inf
    return float(_terms(u, beta, lam, sigma_eta, noise).sum() + (size if support.any() else 0.0))


def log_ratios(
    X: FloatArray,
    y: FloatArray,
    betas: FloatArray,
    rows: NDArray[np.intp],
    new_X: FloatArray,
    new_y: FloatArray,
    lam: float,
    sigma_eta: float,
    noise: LassoNoise = NOISE,
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
        own = _terms(u, beta, lam, sigma_eta, noise).sum()
        others = _terms(moved, beta, lam, sigma_eta, noise).sum(axis=-1)
        old, new = old_X[:, support], new_X[:, support]
        solved = np.linalg.solve(part.T @ part, np.concatenate([old, new]).T).T
        m = rows.size
        leverage = np.einsum("ij,ij->i", old, solved[:m])
        entered = np.einsum("ij,ij->i", new, solved[m:])
        crossed = np.einsum("ij,ij->i", old, solved[m:])
        result[index] = own - others - np.log((1.0 - leverage) * (1.0 + entered) + crossed**2)
    return result


def _terms(
    u: FloatArray, beta: FloatArray, lam: float, sigma: float, noise: LassoNoise
) -> FloatArray:
    active = beta != 0.0
    if noise == "laplace":
        return _laplace_terms(u * np.sqrt(2.0) / sigma, beta, lam * np.sqrt(2.0) / sigma, active)
    z = (u[..., active] - lam * np.sign(beta[active])) / sigma
    result = np.empty(u.shape)
    result[..., active] = -0.5 * z * z - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    result[..., ~active] = log_interval(u[..., ~active] / sigma, lam / sigma)
    return result


def _laplace_terms(
    u: FloatArray, beta: FloatArray, lam: float, active: NDArray[np.bool_]
) -> FloatArray:
    """In units of the noise's scale: -|u - lambda S| - log 2 where active, and log P(zero)."""
    result = np.empty(u.shape)
    result[..., active] = -np.abs(u[..., active] - lam * np.sign(beta[active])) - np.log(2.0)
    size = np.abs(u[..., ~active])
    inside = np.log1p(-0.5 * (np.exp(np.minimum(size - lam, 0.0)) + np.exp(-size - lam)))
    outside = lam - size + np.log(-0.5 * np.expm1(-2.0 * lam))
    result[..., ~active] = np.where(size < lam, inside, outside)
    return result


def _check(sigma_eta: float) -> None:
    if not sigma_eta > 0.0:
        raise InputError("The estimate has a density only with privacy noise: set sigma_eta > 0.")
