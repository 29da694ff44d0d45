"""Rényi divergences of two normals, coordinate by coordinate, with all digits at every order.

In the nonmember's standard units the nonmember law is N(0, 1) and the member law N(mu, lam),
lam = 1 + excess.  With r = order - 1 and left = 1 - r excess,

    D_order(P1 || P0) = (-log lam - log(left)/r + order mu^2/left) / 2,

infinite where left <= 0.  Near order 1 the first two terms are excess - log lam, the
Kullback-Leibler divergence's own, and a remainder of the order of r; near order 0 the laws change
places, D_a(P1 || P0) = a/(1 - a) D_(1-a)(P0 || P1), which goes to 0 as a does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakscope._numerics.log_space import x_minus_log1p

FloatArray = npt.NDArray[np.float64]

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
