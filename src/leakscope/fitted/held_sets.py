"""Penalties and losses with corners: what a fit answers when one record comes or goes.

What is active is held: the coefficients that are not zero.  On them the model minimises
sum_{j in S} l_j(J_j theta) + |S| r(theta) + R(theta), where a penalty of the mean loss (r) grows
with the training set S and one of the summed loss (R) does not.  With F = l', c = l'' and H the
curvature of the objective, one record x changes its own prediction z so:

- taken out: z + (F g + q) / (1 - c g), where g = x' H^{-1} x, q = x' H^{-1} r' and H is that of S
  with the penalty of one record fewer;
- put in: the z' with z' + g F(z') = z - q, H with the penalty of one record more.

For the square loss both are exact as long as the active set stays what it is.  Where a record has
several predictions, the scores of all classes, or one and the scale of a robust regression, z and F
are vectors, c and g matrices, and the same holds in that order (`turned_vectors`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.fitted.refits import Labels, class_names, penalty_of
from leakscope.single_fit.losses import LOSSES, Loss, label_log_odds, one_hot, softmax

Mask = npt.NDArray[np.bool_]

# Directions of the active columns with less curvature than this share of the largest are none.
NO_CURVATURE = 1e-12
NEWTON_STEPS, HALVINGS = 60, 30
# A scale of so little of the targets' spread is what the solver leaves of none.
NO_SCALE = 1e-6
# Of a robust regression, which divides by it.
SMALLEST_SCALE = 1e-12
# A record without which a direction has no curvature left.
ALONE = 1e-10

# max(1 - y z, 0)^2 with labels -1 and 1: a linear support vector classifier.
SQUARED_HINGE = Loss(
    "squared_hinge",
    lambda z, y: np.maximum(1.0 - y * z, 0.0) ** 2,
    lambda z, y: -2.0 * y * np.maximum(1.0 - y * z, 0.0),
    lambda z, y: np.asarray(2.0 * (y * z < 1.0), dtype=np.float64),
    lambda m, k, y: y * np.where(m * y < 1.0, (m * y + 2.0 * k) / (1.0 + 2.0 * k), m * y),
)


def _insensitive(epsilon: float) -> Loss:
    """max(|z - y| - epsilon, 0)^2: a linear support vector regression."""

    def prox(m: FloatArray, k: FloatArray, y: FloatArray) -> FloatArray:
        off = m - y
        size = (np.abs(off) + 2.0 * k * epsilon) / (1.0 + 2.0 * k)
        return np.where(np.abs(off) <= epsilon, m, y + np.sign(off) * size)

    return Loss(
        "squared_insensitive",
        lambda z, y: np.maximum(np.abs(z - y) - epsilon, 0.0) ** 2,
        lambda z, y: 2.0 * np.sign(z - y) * np.maximum(np.abs(z - y) - epsilon, 0.0),
        lambda z, y: np.asarray(2.0 * (np.abs(z - y) > epsilon), dtype=np.float64),
        prox,
    )


def turned(
    J: FloatArray,
    z: FloatArray,
    y: FloatArray,
    inside: Mask,
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
        Slope and curvature (p,) of the penalty that comes with each record; the slope may be each
        record's own, (N, p).
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
        g = np.einsum("np,np->n", moved, J[rows])
        q = moved @ slope if slope.ndim == 1 else np.einsum("np,np->n", moved, slope[rows])
        if records < size:
            left = np.maximum(1.0 - curvature[rows] * g, ALONE)
            force = scale[rows] * loss.force(z[rows], y[rows])
            found[rows] = z[rows] + (force * g + q) / left
        else:
            found[rows] = loss.prox(z[rows] - q, scale[rows] * g, y[rows])
    return found


def turned_vectors(
    J: FloatArray,
    z: FloatArray,
    inside: Mask,
    slopes: Callable[[FloatArray, Mask], tuple[FloatArray, FloatArray]],
    fixed: FloatArray,
) -> FloatArray:
    """The same of records with C predictions each, which share one loss.

    ``J`` is (N, C, p) and ``z`` (N, C); ``slopes(z, rows)`` gives force (n, C) and curvature
    (n, C, C) of some records at their predictions; ``fixed`` (p,) is the penalty's curvature.
    """
    force, curvature = slopes(z[inside], inside)
    own = J[inside]
    H = np.einsum("nap,nab,nbq->pq", own, curvature, own, optimize=True) + np.diag(fixed)
    g = np.einsum("nap,pq,nbq->nab", J, _inverse(H), J, optimize=True)
    found, unit = np.array(z), np.eye(z.shape[1])
    left = unit - g[inside] @ curvature
    pushed = np.einsum("nab,nb->na", g[inside], force)
    found[inside] += np.linalg.solve(left, pushed[..., None])[..., 0]
    found[~inside] = _joined(z[~inside], g[~inside], lambda at: slopes(at, ~inside))
    return found


def _joined(
    start: FloatArray,
    g: FloatArray,
    slopes: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """The z with z + g F(z) = start, by Newton's steps, halved while they do not help."""
    z, unit = np.array(start), np.eye(start.shape[1])

    def off(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        force, curvature = slopes(at)
        return at + np.einsum("nab,nb->na", g, force) - start, curvature

    residual, curvature = off(z)
    near = 1e-12 * (1.0 + float(np.max(np.abs(start), initial=0.0)))
    for _ in range(NEWTON_STEPS):
        size, best = np.ones(len(z)), np.linalg.norm(residual, axis=1)
        if float(np.max(best, initial=0.0)) < near:
            break
        step = np.linalg.solve(unit + g @ curvature, residual[..., None])[..., 0]
        for _ in range(HALVINGS):
            after, bent = off(z - size[:, None] * step)
            worse = np.linalg.norm(after, axis=1) > best
            if not worse.any():
                break
            size = np.where(worse, 0.5 * size, size)
        if np.all(worse | (best < near)):
            break  # no step helps any record: this is as near as it gets
        z, residual, curvature = z - size[:, None] * step, after, bent
    return z


def _inverse(H: FloatArray) -> FloatArray:
    """The inverse where there is curvature, zero where there is none."""
    values, vectors = np.linalg.eigh(H)
    good = values > NO_CURVATURE * max(float(values[-1]), 1e-300)
    return np.asarray((vectors[:, good] / values[good]) @ vectors[:, good].T)


def _active(inner: Any, X: FloatArray, row: int = 0) -> tuple[FloatArray, FloatArray]:
    """The columns whose coefficients are not zero with that of the intercept, and coefficients."""
    coefficients = np.atleast_2d(np.asarray(inner.coef_, dtype=np.float64))[row]
    active = coefficients != 0.0
    J = X[:, active]
    # liblinear has a column of this value, which is penalised as the others are.
    column = float(getattr(inner, "intercept_scaling", 1.0)) if _liblinear(inner) else 1.0
    level = float(
        np.ravel(getattr(inner, "intercept_", 0.0))[row if np.size(inner.intercept_) > 1 else 0]
    )
    if inner.fit_intercept and not (_liblinear(inner) and level == 0.0):
        J = np.column_stack([J, np.full(len(X), column)])
    return J, coefficients[active]


def _liblinear(inner: Any) -> bool:
    return "LinearS" in type(inner).__name__ or getattr(inner, "solver", "") == "liblinear"


def lasso(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
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
    return turned(J, z, target, inside, LOSSES["square"], growing=(slope, curvature))


def relevance(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """ARDRegression: (z - y)²/2 summed + w' diag(lambda) w / (2 alpha), precisions as they are."""
    J, coefficients = _active(inner, X)
    fixed = np.zeros(J.shape[1])
    active = np.asarray(inner.coef_) != 0.0
    fixed[: len(coefficients)] = np.asarray(inner.lambda_)[active] / float(inner.alpha_)
    z, target = np.asarray(inner.predict(X)), np.asarray(y, dtype=np.float64)
    return turned(J, z, target, inside, LOSSES["square"], fixed=fixed)


def ridge(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """Ridge and least squares: (z - y)²/2 summed + alpha w²/2; of classes, each against the rest.

    Exact for a given penalty.
    """
    J, coefficients = np.asarray(X, dtype=np.float64), np.asarray(inner.coef_)
    fixed = np.full(J.shape[1], penalty_of(inner)[1])  # type: ignore[index]
    if inner.fit_intercept:
        J, fixed = np.column_stack([J, np.ones(len(J))]), np.append(fixed, 0.0)
    if not hasattr(inner, "classes_"):
        z, target = np.asarray(inner.predict(X)).reshape(len(y)), np.asarray(y, dtype=np.float64)
        return turned(J, z, target, inside, LOSSES["square"], fixed=fixed)
    codes = np.searchsorted(inner.classes_, y)
    if len(inner.classes_) == 2:
        sign = np.where(codes == 1, 1.0, -1.0)
        z = np.asarray(inner.decision_function(X), dtype=np.float64)
        return sign * turned(J, z, sign, inside, LOSSES["square"], fixed=fixed)
    scores, found = np.asarray(inner.decision_function(X), dtype=np.float64), np.empty(len(codes))
    for number in range(len(coefficients)):
        own = codes == number
        target = np.where(own, 1.0, -1.0)
        moved = turned(J, scores[:, number], target, inside, LOSSES["square"], fixed=fixed)
        found[own] = moved[own]
    return found


def smooth_refusal(inner: Any) -> str | None:
    """Without a penalty, or with weights of classes that are not followed here."""
    name = type(inner).__name__
    if hasattr(inner, "C"):
        if not np.isfinite(penalty_of(inner)[1]):  # type: ignore[index]
            return f"{name} has no penalty"
        return logistic_refusal(inner)
    if getattr(inner, "class_weight", None) is not None:
        return f"{name} has class weights"
    return f"{name} has one penalty per target" if penalty_of(inner) is None else None


def lasso_refusal(inner: Any) -> str | None:
    """Several targets are fitted together, and one at a time is audited."""
    names = class_names(inner)
    if any(name.startswith("MultiTask") for name in names):
        return f"{names[0]} fits several targets together; fit each with {names[0][9:]}"
    if np.ndim(getattr(inner, "coef_", 0.0)) > 1 and np.shape(inner.coef_)[0] > 1:
        return f"{names[0]} was fitted on several targets; fit and audit them one at a time"
    return None


def l1_share(inner: Any) -> float:
    """The share of the L1 penalty in that of a logistic regression.

    Before scikit-learn 1.8 the penalty is named, and l1_ratio counts for ``"elasticnet"`` alone.
    """
    penalty = str(getattr(inner, "penalty", ""))
    if penalty in ("l1", "l2", "None"):
        return float(penalty == "l1")
    named = getattr(inner, "l1_ratio_", getattr(inner, "l1_ratio", None))
    try:
        return float(np.max(np.nan_to_num(np.ravel(np.asarray(named, dtype=np.float64)))))
    except (TypeError, ValueError):
        return 0.0


def _weighed(inner: Any, y: Labels, inside: Mask) -> tuple[FloatArray, FloatArray]:
    """C times the class weight of every record where it is in the training set, (N,).

    Balanced weights follow the counts, and a record that comes or goes changes those of all: the
    second array, classes by classes by two, has the relative change of the weights of the second
    class when a record of the first leaves, and when one joins.
    """
    from sklearn.utils.class_weight import compute_class_weight

    C = float(np.ravel(inner.C_ if hasattr(inner, "C_") else inner.C)[0])
    codes = np.searchsorted(inner.classes_, y)
    weights = compute_class_weight(inner.class_weight, classes=inner.classes_, y=y[inside])
    classes = len(weights)
    changes = np.zeros((classes, classes, 2))
    if isinstance(inner.class_weight, str):
        counts = np.bincount(codes[inside], minlength=classes).astype(np.float64)
        total = counts.sum()
        for side, by in enumerate((-1.0, 1.0)):
            changes[:, :, side] = (total + by) / total - 1.0
            own = (total + by) / total * counts / np.maximum(counts + by, 1.0) - 1.0
            np.fill_diagonal(changes[:, :, side], own)
    joined = 1.0 + np.where(inside, 0.0, changes[codes, codes, 1])
    return np.asarray(C * weights[codes] * joined), changes


def _pull(
    J: FloatArray, force: FloatArray, codes: npt.NDArray[np.intp], inside: Mask, changes: FloatArray
) -> FloatArray:
    """(N, p) the slope that balanced weights bring when a record comes or goes."""
    sums = np.stack([J.T @ (force * inside * (codes == number)) for number in range(len(changes))])
    leaving = -changes[codes, :, 0] @ sums
    leaving += (changes[codes, codes, 0] * force)[:, None] * J
    return np.asarray(np.where(inside[:, None], leaving, changes[codes, :, 1] @ sums))


def logistic(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """Logistic regression with an L1 penalty or an elastic net, of two classes or several."""
    codes, share = np.searchsorted(inner.classes_, y), l1_share(inner)
    scale, changes = _weighed(inner, y, inside)
    if len(inner.classes_) == 2:
        J, coefficients = _active(inner, X)
        fixed = np.zeros(J.shape[1])
        fixed[: J.shape[1] if _liblinear(inner) else len(coefficients)] = 1.0 - share
        z, label = (
            np.asarray(inner.decision_function(X), dtype=np.float64),
            codes.astype(np.float64),
        )
        pull = _pull(J, scale * LOSSES["logistic"].force(z, label), codes, inside, changes)
        found = turned(
            J,
            z,
            label,
            inside,
            LOSSES["logistic"],
            scale=scale,
            growing=(pull, 0.0 * fixed),
            fixed=fixed,
        )
        return np.where(codes == 1, found, -found)
    classes = len(inner.classes_)
    active = np.asarray(inner.coef_) != 0.0
    widths = active.sum(axis=1) + bool(inner.fit_intercept)
    require_memory(
        2 * 8 * len(X) * classes * int(widths.sum()),
        f"paired fits of {len(X)} records with {int(widths.sum())} coefficients",
        "use fewer records or features",
    )
    J = np.zeros((len(X), classes, int(widths.sum())))
    fixed, start = np.zeros(J.shape[2]), 0
    for number, width in enumerate(widths.tolist()):
        held = int(active[number].sum())
        J[:, number, start : start + held] = X[:, active[number]]
        J[:, number, start + held : start + width] = 1.0
        fixed[start : start + held] = 1.0 - share
        start += width
    target = one_hot(codes, classes)

    def slopes(z: FloatArray, rows: Mask) -> tuple[FloatArray, FloatArray]:
        p, weight = softmax(z), scale[rows]
        bend = p[:, :, None] * np.eye(classes) - p[:, :, None] * p[:, None, :]
        return weight[:, None] * (p - target[rows]), weight[:, None, None] * bend

    z = np.asarray(inner.decision_function(X), dtype=np.float64)
    return label_log_odds(turned_vectors(J, z, inside, slopes, fixed), codes)


def logistic_refusal(inner: Any) -> str | None:
    """One C for each class, and one class against the rest, are other models."""
    name, several = type(inner).__name__, len(getattr(inner, "classes_", ())) > 2
    if np.unique(np.asarray(getattr(inner, "C_", 0.0))).size > 1:
        return f"{name} chose one C per class; fit LogisticRegression with one C"
    if several and isinstance(inner.class_weight, str):
        return f"{name} has balanced weights of several classes; give class_weight as numbers"
    if several and _liblinear(inner):
        return f"{name} was fitted one class against the rest; fit it with solver='saga'"
    return None


def squared_hinge(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """LinearSVC: |w|²/2 or |w| + C sum of max(1 - y z, 0)², each class against the rest."""
    codes = np.searchsorted(inner.classes_, y)
    scale, changes = _weighed(inner, y, inside)
    scores = np.asarray(inner.decision_function(X), dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    found, loss = np.empty(len(y)), SQUARED_HINGE
    for number in range(scores.shape[1]):
        label = np.where(codes == (1 if scores.shape[1] == 1 else number), 1.0, -1.0)
        J, _ = _active(inner, X, number)
        fixed = np.full(J.shape[1], float(inner.penalty == "l2"))
        pull = _pull(J, scale * loss.force(scores[:, number], label), codes, inside, changes)
        z = turned(
            J, scores[:, number], label, inside, loss, scale=scale, growing=(pull, 0.0 * fixed),
            fixed=fixed,
        )  # fmt: skip
        own = np.ones(len(y), dtype=np.bool_) if scores.shape[1] == 1 else codes == number
        found[own] = (label * z)[own]
    return found


def squared_insensitive(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """LinearSVR: |w|²/2 + C sum of max(|z - y| - epsilon, 0)²."""
    J, _ = _active(inner, X)
    z, target = np.asarray(inner.predict(X)), np.asarray(y, dtype=np.float64)
    loss = _insensitive(float(inner.epsilon))
    return turned(J, z, target, inside, loss, scale=float(inner.C), fixed=np.ones(J.shape[1]))


def huber(inner: Any, X: FloatArray, y: Labels, inside: Mask) -> FloatArray:
    """HuberRegressor: sum of s + s h((y - z)/s) + alpha |w|², of coefficients and the scale s.

    h(u) is u² up to epsilon and 2 epsilon |u| - epsilon² beyond.
    """
    epsilon, target = float(inner.epsilon), np.asarray(y, dtype=np.float64)
    if float(inner.scale_) <= NO_SCALE * float(np.std(target[inside])):
        raise np.linalg.LinAlgError("the fit follows its records exactly")
    J, width = np.zeros((len(X), 2, X.shape[1] + 1 + bool(inner.fit_intercept))), X.shape[1]
    J[:, 0, :width], J[:, 1, -1] = X, 1.0
    if inner.fit_intercept:
        J[:, 0, width] = 1.0
    fixed = np.zeros(J.shape[2])
    fixed[:width] = 2.0 * float(inner.alpha)

    def slopes(z: FloatArray, rows: Mask) -> tuple[FloatArray, FloatArray]:
        off, s = z[:, 0] - target[rows], np.maximum(z[:, 1], SMALLEST_SCALE)
        near = np.abs(off) <= epsilon * s
        u = off / s
        force = np.where(near, 2.0 * u, 2.0 * epsilon * np.sign(off))
        by_scale = 1.0 - np.where(near, u**2, epsilon**2)
        bend = np.zeros((len(z), 2, 2))
        bend[:, 0, 0] = near * 2.0 / s
        bend[:, 0, 1] = bend[:, 1, 0] = -2.0 * near * u / s
        bend[:, 1, 1] = near * 2.0 * u**2 / s
        return np.stack([force, by_scale], axis=1), bend

    z = np.column_stack([inner.predict(X), np.full(len(X), float(inner.scale_))])
    return turned_vectors(J, z, inside, slopes, fixed)[:, 0]
