"""How far a point is from solving the LASSO, read off the optimality (KKT) conditions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray


def violation_of(descent: FloatArray, coef: FloatArray, lam: float | FloatArray) -> FloatArray:
    """The largest violation along the last axis, from g = X'(y - X beta) - eta - l2 beta.

    A minimiser has g_j = lam sign(beta_j) where beta_j is not zero and |g_j| <= lam where it is.
    """
    off = np.maximum(np.abs(descent) - lam, 0.0)
    on = np.abs(descent - lam * np.sign(coef))
    return np.asarray(np.where(coef != 0.0, on, off).max(axis=-1))


def kkt_violation(
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    coef: ArrayLike,
    linear_term: ArrayLike | None = None,
    l2: float = 0.0,
) -> float:
    """The largest violation of the optimality conditions of lasso Eq. (2) at ``coef``.

    The objective is 1/2 ||y - X beta||^2 + lam ||beta||_1 + eta'beta + l2/2 ||beta||^2.  Zero means
    that ``coef`` minimises it; the unit is that of ``lam``.  A duality gap is no substitute: the
    usual dual point, a rescaled residual, is infeasible once max|eta| exceeds ``lam``.

    Parameters
    ----------
    X, y
        (n, p) design and (n,) labels.
    lam
        lambda, not divided by n.
    coef
        (p,) the point in question, or (m, p) several, one for each row of ``linear_term``.
    linear_term
        (p,) eta, or (m, p); none is zero.
    l2
        Weight of the squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.kkt import kkt_violation
    >>> kkt_violation(np.eye(2), [3.0, 0.5], 1.0, [2.0, 0.0])
    0.0
    >>> kkt_violation(np.eye(2), [3.0, 0.5], 1.0, [2.5, 0.0])
    0.5
    """
    design = np.asarray(X, dtype=np.float64)
    point = np.asarray(coef, dtype=np.float64)
    residual = np.asarray(y, dtype=np.float64) - point @ design.T
    descent = residual @ design - l2 * point
    if linear_term is not None:
        descent = descent - np.asarray(linear_term, dtype=np.float64)
    return float(violation_of(descent, point, lam).max())
