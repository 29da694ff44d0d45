"""Penalties and losses with corners: what a fit answers when one record comes or goes.

What is active is held: the coefficients that are not zero.  On them the model minimises
sum_{j in S} l_j(J_j theta) + |S| r(theta) + R(theta), where a penalty of the mean loss (r) grows
with the training set S and one of the summed loss (R) does not.  With F = l', c = l'' and H the
curvature of the objective, one record x changes its own prediction z so:

- taken out: z + (F g + q) / (1 - c g), where g = x' H^{-1} x, q = x' H^{-1} r' and H is that of S
  with the penalty of one record fewer;
- put in: the z' with z' + g F(z') = z - q, H with the penalty of one record more.

For the square loss both are exact as long as the active set stays what it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.losses import Loss, SquareLoss
from leakscope.fitted.refits import Labels, class_names

# Directions of the active columns with less curvature than this share of the largest are none.
NO_CURVATURE = 1e-12
# A record without which a direction has no curvature left.
ALONE = 1e-10


def turned(
    J: FloatArray,
    z: FloatArray,
    y: FloatArray,
    inside: Any,
    loss: Loss,
    *,
    scale: FloatArray | float = 1.0,
    growing: tuple[FloatArray, FloatArray] | None = None,
    fixed: FloatArray | float = 0.0,
) -> FloatArray:
    """The prediction of every record where it alone is taken out of the fit, or put in.

    Parameters
    ----------
    J
        (N, p) the active columns, of the intercept too.
    z, y, inside
        (N,) predictions, labels as the loss wants them, and who is in the training set.
    loss, scale
        The loss, and what it is multiplied by, for each record.
    growing
        Slope and curvature (p,) of the penalty that comes with each record.
    fixed
        (p,) curvature of the penalty that does not grow.
    """
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), z.shape)
    curvature = scale * loss.curvature(z, y)
    own = J[inside]
    slope, per_record = growing or (np.zeros(J.shape[1]), np.zeros(J.shape[1]))
    base = own.T @ (own * curvature[inside, None]) + np.diag(np.broadcast_to(fixed, J.shape[1]))
    size, found = int(np.count_nonzero(inside)), np.empty(len(z))
    for rows, records in ((inside, size - 1), (~inside, size + 1)):
        inverse = _inverse(base + records * np.diag(per_record))
        moved = J[rows] @ inverse
        g, q = np.einsum("np,np->n", moved, J[rows]), moved @ slope
        if records < size:
            left = np.maximum(1.0 - curvature[rows] * g, ALONE)
            force = scale[rows] * loss.force(z[rows], y[rows])
            found[rows] = z[rows] + (force * g + q) / left
        else:
            found[rows] = loss.prox(z[rows] - q, scale[rows] * g, y[rows])
    return found


def _inverse(H: FloatArray) -> FloatArray:
    """The inverse where there is curvature, zero where there is none."""
    values, vectors = np.linalg.eigh(H)
    good = values > NO_CURVATURE * max(float(values[-1]), 1e-300)
    return np.asarray((vectors[:, good] / values[good]) @ vectors[:, good].T)


def _active(inner: Any, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The columns whose coefficients are not zero with that of the intercept, and coefficients."""
    coefficients = np.ravel(np.asarray(inner.coef_, dtype=np.float64))
    active = coefficients != 0.0
    J = X[:, active]
    if inner.fit_intercept:
        J = np.column_stack([J, np.ones(len(X))])
    return J, coefficients[active]


def lasso(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Lasso and elastic net: the mean of (z - y)²/2 + alpha (rho |w| + (1 - rho) w²/2)."""
    J, coefficients = _active(inner, X)
    alpha = float(getattr(inner, "alpha_", getattr(inner, "alpha", 0.0)))
    rho = 1.0
    if "LassoCV" not in class_names(inner):
        rho = float(getattr(inner, "l1_ratio_", getattr(inner, "l1_ratio", 1.0)))
    slope, curvature = np.zeros(J.shape[1]), np.zeros(J.shape[1])
    held = len(coefficients)
    slope[:held] = alpha * (rho * np.sign(coefficients) + (1.0 - rho) * coefficients)
    curvature[:held] = alpha * (1.0 - rho)
    target = np.asarray(y, dtype=np.float64)
    z = np.asarray(inner.predict(X), dtype=np.float64)
    return turned(J, z, target, inside, SquareLoss(), growing=(slope, curvature))


def lasso_refusal(inner: Any) -> str | None:
    """Several targets are fitted together, and one at a time is audited."""
    names = class_names(inner)
    if any(name.startswith("MultiTask") for name in names):
        return f"{names[0]} fits several targets together; fit each with {names[0][9:]}"
    if np.ndim(getattr(inner, "coef_", 0.0)) > 1 and np.shape(inner.coef_)[0] > 1:
        return f"{names[0]} was fitted on several targets; fit and audit them one at a time"
    return None
