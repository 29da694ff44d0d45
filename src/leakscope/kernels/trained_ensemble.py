"""The law of wide networks trained to the end: where the NTK belongs.

Networks drawn at random and trained by gradient flow on squared loss make, at infinite width, a
Gaussian process (Lee et al. 2019, "Wide neural networks of any depth evolve as linear models under
gradient descent", eqs. 14 and 15 at t = infinity).  Its mean and covariance need the NTK, T, and
the covariance of the random network, K:

    mean(q) = T_qD T_DD^{-1} y
    covariance(q, q) = K_qq + A K_DD A^T - A K_Dq - K_qD A^T,   A = T_qD T_DD^{-1}.

The posterior formula with T in the place of K is not this, and is the law of no trained network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


@dataclass(frozen=True)
class TrainedEnsemble:
    """Mean (queries, or queries by outputs) and covariance over the draw of initial weights.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> K, T = np.eye(2), 2.0 * np.eye(2)
    >>> kernels.trained_ensemble(K, K, K, T, T, [1.0, 2.0]).covariance.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    mean: FloatArray
    covariance: FloatArray


def trained_ensemble(
    nngp_train: ArrayLike,
    nngp_cross: ArrayLike,
    nngp_queries: ArrayLike,
    ntk_train: ArrayLike,
    ntk_cross: ArrayLike,
    y: ArrayLike,
    *,
    ridge: float = 0.0,
) -> TrainedEnsemble:
    """The law of the outputs, at some queries, of networks trained by gradient flow to the end.

    Parameters
    ----------
    nngp_train, nngp_cross, nngp_queries
        The NNGP kernel K: ``k(X)``, ``k(queries, X)``, ``k(queries)``.
    ntk_train, ntk_cross
        The NTK T: ``k.ntk(X)``, ``k.ntk(queries, X)``.
    y
        Targets of the n training records, or (n, outputs).
    ridge
        Added to the diagonal of T_DD: weight decay towards the initial weights, whose limit the
        formula then is; zero trains until the data are fitted exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> X, y, Q = np.eye(3), np.array([1.0, 0.0, -1.0]), np.eye(3)[:1]
    >>> k = kernels.nngp(depth=2)
    >>> law = kernels.trained_ensemble(k(X), k(Q, X), k(Q), k.ntk(X), k.ntk(Q, X), y)
    >>> law.mean.round(6).tolist()
    [1.0]
    """
    prior, cross, own = (np.asarray(a, np.float64) for a in (nngp_train, nngp_cross, nngp_queries))
    tangent, tangent_cross = (np.array(a, np.float64) for a in (ntk_train, ntk_cross))
    targets = np.asarray(y, np.float64)
    n, q = len(targets), len(own)
    shapes = [a.shape for a in (prior, cross, own, tangent, tangent_cross)]
    if shapes != [(n, n), (q, n), (q, q), (n, n), (q, n)]:
        raise InputError(
            f"trained_ensemble: for {n} records and {q} queries the kernels must have shapes "
            f"{[(n, n), (q, n), (q, q), (n, n), (q, n)]}, but they have {shapes}."
        )
    if not (np.isfinite(ridge) and ridge >= 0.0):
        raise InputError(f"trained_ensemble: ridge must be zero or more, but it is {ridge}.")
    tangent.flat[:: n + 1] += ridge
    try:
        factor = cholesky.factorise(tangent, overwrite=True)
    except np.linalg.LinAlgError as problem:
        raise InputError(
            "trained_ensemble: the NTK of the training records is not positive definite, as with "
            "two equal records; leave one out, or give a ridge."
        ) from problem
    weights = cholesky.solve(factor, tangent_cross.T).T
    mixed = weights @ cross.T
    covariance = own + weights @ prior @ weights.T - mixed - mixed.T
    return TrainedEnsemble(weights @ targets, 0.5 * (covariance + covariance.T))
