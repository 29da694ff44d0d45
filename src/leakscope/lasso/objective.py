"""The objective of lasso Eq. (2): its data, checked, and how far a point is from minimising it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


def checked_data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(n, p) finite design in Fortran order and (n,) finite labels, or an `InputError`."""
    design = np.asarray(X, dtype=np.float64)
    labels = np.asarray(y, dtype=np.float64)
    if design.ndim != 2 or 0 in design.shape:
        raise InputError(
            f"X must be a table of n rows and p columns, but its shape is {design.shape}."
        )
    if labels.shape != (design.shape[0],):
        raise InputError(
            f"y must be {design.shape[0]} labels, one for each row of X, but its shape is "
            f"{labels.shape}."
        )
    with np.errstate(all="ignore"):
        total = design.sum()
    # a sum reads X once and makes no copy; only where it is not finite is a closer look needed
    if not np.isfinite(total) and not np.all(np.isfinite(design)):
        row, column = np.argwhere(~np.isfinite(design))[0]
        raise InputError(f"X has a value that is not finite at row {row}, column {column}.")
    if not np.all(np.isfinite(labels)):
        raise InputError(f"y is not finite at row {int(np.argmin(np.isfinite(labels)))}.")
    return np.asfortranarray(design), labels


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
    that ``coef`` minimises it; the unit is that of ``lam``, which is not divided by n.  A duality
    gap is no substitute: the usual dual point, a rescaled residual, is infeasible once max|eta|
    exceeds ``lam``.  ``coef`` is (p,), or (m, p) for several, one for each row of ``linear_term``.
    """
    design = np.asarray(X, dtype=np.float64)
    point = np.asarray(coef, dtype=np.float64)
    residual = np.asarray(y, dtype=np.float64) - point @ design.T
    descent = residual @ design - l2 * point
    if linear_term is not None:
        descent = descent - np.asarray(linear_term, dtype=np.float64)
    return float(violation_of(descent, point, lam).max())
