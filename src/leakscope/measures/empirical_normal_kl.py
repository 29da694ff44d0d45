"""KL between two normal laws that are met as draws, with its bias taken off.

Sample means and covariances give the KL, and what their being estimates adds to it on average is
known exactly: means of Wishart matrices and of their inverses.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray

# Directions in which the first law has less than this share of its largest variance
# are those in which both laws are at a point.
SINGULAR = 1e-9


def normal_kl_of_draws(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """KL(first || second) of two normal laws from draws of each, and its standard error.

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
