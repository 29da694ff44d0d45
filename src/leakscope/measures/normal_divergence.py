"""Rényi divergences of two normals, coordinate by coordinate, with all digits at every order.

In the nonmember's standard units the nonmember law is N(0, 1) and the member law N(mu, lam),
lam = 1 + excess.  With r = order - 1 and left = 1 - r excess,

    D_order(P1 || P0) = (-log lam - log(left)/r + order mu^2/left) / 2,

infinite where left <= 0.  Near order 1 the first two terms are excess - log lam, the
Kullback-Leibler divergence's own, and a remainder of the order of r; near order 0 the laws change
places, D_a(P1 || P0) = a/(1 - a) D_(1-a)(P0 || P1), which goes to 0 as a does.

`kl_parts` divides a KL into the part that the variances make and the part that the means make.  In
coordinates of their own the member law is N(sqrt(x) t, 1) and the nonmember law N(0, 1 + x): x is
the ``excess`` and t the ``score``.  Then

    KL(nonmember || member) = [x - log(1 + x)]/2 + x t^2/2
    KL(member || nonmember) = [log(1 + x) - u]/2 + u t^2/2,   u = x/(1 + x),

and a law of several outputs has one excess and a score for each output.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import x_minus_log1p

# Below this |r excess| the logarithm of left is expanded: it would lose its digits to excess.
_EXPANDED = 0.3


def renyi_of_normals(
    order: float, mu: FloatArray, excess: FloatArray, log_lam: FloatArray
) -> FloatArray:
    """D_order(P1 || P0) of each coordinate, for a finite order above zero; KL at order 1.

    ``log_lam`` is log(1 + excess), with digits of its own where lam is near 0 or beyond float64.
    """
    share, r = 1.0, order - 1.0
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        if order < 0.5:
            # The complement 1 - order would round the order away; r = -order does not.
            share, order, r = order / (1.0 - order), 1.0 - order, -order
            back = np.where(np.abs(excess) < 0.5, -excess * np.exp(-log_lam), np.expm1(-log_lam))
            mu, excess, log_lam = mu * np.exp(-0.5 * log_lam), back, -log_lam
        left = 1.0 - r * excess
        small = np.abs(excess) < 0.5
        spread = np.where(small, x_minus_log1p(np.where(small, excess, 0.0)), excess - log_lam)
        if r != 0.0:
            expanded = np.abs(r * excess) < _EXPANDED
            remainder = x_minus_log1p(np.where(expanded, -r * excess, 0.0)) / r
            # left = order + (1 - order) lam: below order 1 a sum, and lam may be beyond float64
            log_left = np.log(left) if r > 0.0 else np.logaddexp(np.log1p(r), np.log(-r) + log_lam)
            spread = np.where(expanded, spread + remainder, -log_lam - log_left / r)
        value = 0.5 * share * (spread + order * mu * (mu / left))
    return np.asarray(np.where(left > 0.0, value, np.inf))


def kl_parts(
    excess: FloatArray, squared_score: FloatArray, outputs: int = 1
) -> tuple[FloatArray, FloatArray]:
    """KL(nonmember || member), coordinate by coordinate: the variances' part and the means'.

    Parameters
    ----------
    excess
        x, zero or above: by how much the nonmember's variance exceeds the member's.
    squared_score
        t^2, summed over outputs.
    outputs
        How many outputs share the excess.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import kl_parts
    >>> variance, mean = kl_parts(np.array([3.0]), np.array([0.5]))
    >>> variance.round(4).tolist(), mean.tolist()
    ([0.8069], [0.75])
    """
    variance = 0.5 * outputs * x_minus_log1p(excess)
    return variance, np.asarray(0.5 * excess * squared_score)


def kl_reverse_parts(
    excess: FloatArray, squared_score: FloatArray, outputs: int = 1
) -> tuple[FloatArray, FloatArray]:
    """KL(member || nonmember) in the same two parts, of the same numbers."""
    share = excess / (1.0 + excess)
    # log(1 + x) = -log(1 - u): the first form keeps its digits for small x, the second for large.
    small = x_minus_log1p(-np.minimum(share, 0.5))
    variance = np.where(excess < 1.0, small, np.log1p(excess) - share)
    return 0.5 * outputs * variance, np.asarray(0.5 * share * squared_score)


# Directions in which the first law has less than this share of its largest variance
# are those in which both laws are at a point.
SINGULAR = 1e-9


def normal_kl_of_draws(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """KL(first || second) of two normal laws from draws of each, and its standard error.

    Sample means and covariances give the KL, and what their being estimates adds to it on average
    is known exactly and taken off: means of Wishart matrices and of their inverses.

    Parameters
    ----------
    first, second
        (outputs, draws, g): outputs have means of their own and one covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import normal_kl_of_draws
    >>> generator = np.random.default_rng(0)
    >>> one = generator.normal(0.0, 1.0, size=(1, 20000, 2))
    >>> two = generator.normal(1.0, 1.0, size=(1, 20000, 2))
    >>> value, stderr = normal_kl_of_draws(one, two)
    >>> bool(abs(value - 1.0) < 4 * stderr < 0.1)
    True
    """
    outputs, draws, _ = first.shape
    values, vectors = np.linalg.eigh(_covariance(first))
    turn = vectors[:, values > SINGULAR * values[-1]]
    first, second = first @ turn, second @ turn
    g, freedom = turn.shape[1], outputs * (draws - 1)
    S_first, S_second = _covariance(first), _covariance(second)
    inverse = np.linalg.inv(S_second)
    # The mean of an inverse Wishart matrix is this much too large.
    shrink = (freedom - g - 1) / freedom
    delta = first.mean(axis=1) - second.mean(axis=1)
    trace = shrink * float(np.trace(inverse @ S_first))
    logs = float(np.linalg.slogdet(S_second)[1] - np.linalg.slogdet(S_first)[1])
    squares = shrink * float(np.einsum("ci,ij,cj->", delta, inverse, delta))
    squares -= outputs * (g + trace) / draws
    value = 0.5 * (outputs * (trace - g + logs) + squares)
    # First order in means and covariances, and what remains where the first order vanishes.
    slope_first = 0.5 * outputs * (inverse - np.linalg.inv(S_first))
    outer = np.einsum("ci,cj->ij", delta, delta)
    slope_second = 0.5 * (
        outputs * (inverse - inverse @ S_first @ inverse) - inverse @ outer @ inverse
    )
    pull = delta @ inverse
    variance = float(np.einsum("ci,ij,cj->", pull, S_first + S_second, pull)) / draws
    for slope, S in ((slope_first, S_first), (slope_second, S_second)):
        variance += 2.0 / freedom * float(np.trace(slope @ S @ slope @ S))
    variance += (g * (g + 1) + 2 * g * outputs) / draws**2
    return float(value), float(np.sqrt(variance))


def _covariance(found: FloatArray) -> FloatArray:
    """(g, g) pooled over outputs."""
    centred = found - found.mean(axis=1, keepdims=True)
    outputs, draws, _ = found.shape
    return np.asarray(np.einsum("cdi,cdj->ij", centred, centred) / (outputs * (draws - 1)))
