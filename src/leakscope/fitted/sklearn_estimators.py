"""One reader for each scikit-learn estimator whose fit is a smooth convex problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.model import FittedModel
from leakscope.fitted.problem import ConvexProblem, LossName
from leakscope.fitted.sklearn_parts import class_names
from leakscope.laws import Assumption

Labels = npt.NDArray[Any]
Reader = Callable[[Any, FloatArray, Labels, FloatArray], FittedModel]

_TREES = ("Tree", "Forest", "Boosting", "Bagging", "XGB", "LGBM", "CatBoost")
_NETWORKS = ("MLP", "Module", "Sequential", "NeuralNet")


def refusal(estimator: Any) -> str:
    """Why this estimator cannot be taken, and what can be done instead."""
    names = class_names(estimator)
    name = names[0]
    instead = "`leakscope audit --train` audits any estimator by a few models of it"
    if any(part in each for each in names for part in ("Lasso", "ElasticNet")):
        return (
            f"{name} has an L1 penalty, whose fit is not smooth in the records; {instead}, and "
            "`leakscope plan lasso` covers the private LASSO."
        )
    if any(part in each for each in names for part in _TREES):
        return (
            f"{name} changes its structure when a record leaves, so no formula follows it; "
            f"{instead}."
        )
    if any(part in each for each in names for part in _NETWORKS):
        return f"{name} is a network and has no convex objective; {instead}."
    return (
        f"{name} is not one of the models whose laws are known (ridge, kernel ridge, Gaussian "
        f"process, logistic, Poisson regression and their SGD forms); {instead}."
    )


def _numbers(y: Labels, name: str) -> FloatArray:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} predicts numbers, but the labels are not all numbers.") from None


def _designed(
    X: FloatArray, estimator: Any, penalty: float | FloatArray, column: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """The design with a column for the intercept, and the diagonal of the penalty."""
    diagonal = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (X.shape[1],))
    if not getattr(estimator, "fit_intercept", False):
        return X, np.array(diagonal)
    return np.column_stack([X, np.full(len(X), column)]), np.append(diagonal, 0.0)


def _theta(estimator: Any, column: float = 1.0) -> FloatArray:
    """Coefficients with the intercept below them: d or d x outputs."""
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    coef = coef[:, None] if coef.ndim == 1 else coef.T
    if getattr(estimator, "fit_intercept", False):
        intercept = np.broadcast_to(np.ravel(estimator.intercept_), (coef.shape[1],))
        coef = np.vstack([coef, intercept / column])
    return np.asarray(coef[:, 0] if coef.shape[1] == 1 else coef)


def _named(estimator: Any, **settings: float | str) -> str:
    parts = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items()]
    return f"{type(estimator).__name__}({', '.join(parts)})"


def _ridge(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    if getattr(estimator, "positive", False):
        raise InputError(
            f"{type(estimator).__name__} with positive=True has a constrained fit, which is not "
            "smooth in the records; fit without it, or use `leakscope verify`."
        )
    alpha = np.asarray(getattr(estimator, "alpha_", getattr(estimator, "alpha", 0.0)), dtype=float)
    if alpha.size > 1:
        raise InputError("One penalty per output was used; audit the outputs one at a time.")
    penalty = float(alpha)
    name = type(estimator).__name__
    design, diagonal = _designed(X, estimator, penalty)
    if penalty == 0.0 and design.shape[1] >= len(y):
        raise InputError(
            f"{name} without a penalty and with {design.shape[1]} coefficients for {len(y)} "
            "records interpolates: every member's residual is zero, and whoever knows the label "
            "tells members with certainty; use Ridge."
        )
    title = _named(estimator) if name == "LinearRegression" else _named(estimator, alpha=penalty)
    problem = ConvexProblem(
        y=_numbers(y, name),
        loss="square",
        X=design,
        penalty=diagonal,
        weights=weights,
        coefficients=_theta(estimator),
        name=title,
    )
    return FittedModel.of(problem)


def _codes(estimator: Any, y: Labels) -> npt.NDArray[np.intp]:
    classes = np.asarray(estimator.classes_)
    if len(np.unique(y)) < 2:
        raise InputError("All records have one class; a classifier needs at least two.")
    known = np.isin(y, classes)
    if not known.all():
        row = int(np.argmin(known))
        raise InputError(f"Row {row} has the label {y[row]}, which the model does not know.")
    return np.asarray(np.searchsorted(classes, y), dtype=np.intp)


def _class_weights(
    estimator: Any, codes: npt.NDArray[np.intp], weights: FloatArray
) -> tuple[FloatArray, tuple[Assumption, ...]]:
    chosen = getattr(estimator, "class_weight", None)
    if chosen is None:
        return weights, ()
    classes = np.asarray(estimator.classes_)
    if isinstance(chosen, str):
        counts = np.bincount(codes, minlength=len(classes)).astype(np.float64)
        factors = len(codes) / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
        note = Assumption(
            "balanced class weights stay what they are on all records",
            holds=None,
            evidence="they follow the classes' counts in a training set, which hardly vary",
        )
        return weights * factors[codes], (note,)
    factors = np.array([float(chosen.get(label, 1.0)) for label in classes.tolist()])
    return weights * factors[codes], ()


def _ridge_classifier(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    codes = _codes(estimator, y)
    weights, notes = _class_weights(estimator, codes, weights)
    penalty = float(getattr(estimator, "alpha_", estimator.alpha))
    design, diagonal = _designed(X, estimator, penalty)
    theta = _theta(estimator)
    theta = theta[:, None] if theta.ndim == 1 else theta
    outputs = theta.shape[1]
    two = outputs == 1
    problems = tuple(
        ConvexProblem(
            y=np.where(codes == (1 if two else output), 1.0, -1.0),
            loss="square",
            X=design,
            penalty=diagonal,
            weights=weights,
            coefficients=theta[:, output],
            name=_named(estimator, alpha=penalty),
            assumptions=notes,
        )
        for output in range(outputs)
    )
    own = np.zeros(len(y), dtype=np.intp) if two else codes
    sign = np.where(codes == 1, 1.0, -1.0) if two else np.ones(len(y))
    return FittedModel(problems, own, sign, "classification")


def _l1_ratio(estimator: Any) -> float:
    """The largest share of an L1 penalty; 0 where none is named."""
    named = getattr(estimator, "l1_ratio_", getattr(estimator, "l1_ratio", None))
    try:
        ratios = np.ravel(np.asarray(named, dtype=np.float64))
    except (TypeError, ValueError):
        return 0.0
    return float(np.max(np.nan_to_num(ratios), initial=0.0))


def _logistic(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    name = type(estimator).__name__
    codes = _codes(estimator, y)
    penalty = str(getattr(estimator, "penalty", "l2"))
    if penalty in ("l1", "elasticnet") or _l1_ratio(estimator) > 0.0:
        raise InputError(
            f"{name} with an L1 penalty is not smooth in the records; fit it with L2 only, or use "
            "`leakscope audit --train`, which audits any estimator by a few models of it."
        )
    strength = np.unique(np.asarray(getattr(estimator, "C_", getattr(estimator, "C", np.inf))))
    if len(strength) > 1:
        raise InputError(f"{name} chose one C per class; fit LogisticRegression with one C.")
    inverse = float(strength[0])
    level = 0.0 if penalty in ("None", "none") or np.isinf(inverse) else 1.0 / inverse
    weights, notes = _class_weights(estimator, codes, weights)
    liblinear = getattr(estimator, "solver", "") == "liblinear"
    column = float(estimator.intercept_scaling) if liblinear else 1.0
    design, diagonal = _designed(X, estimator, level, column)
    if liblinear:
        diagonal = np.full(len(diagonal), level)  # it penalises the intercept too
    classes = len(estimator.classes_)
    loss: LossName = "logistic" if classes == 2 else "softmax"
    if classes > 2 and (liblinear or getattr(estimator, "multi_class", "") == "ovr"):
        raise InputError(
            f"{name} was fitted one class against the rest; fit it with the softmax loss (any "
            "solver but liblinear)."
        )
    problem = ConvexProblem(
        y=codes.astype(np.float64),
        loss=loss,
        X=design,
        penalty=diagonal,
        weights=weights,
        classes=classes,
        coefficients=_theta(estimator, column),
        name=_named(estimator, C=inverse),
        assumptions=notes,
    )
    return FittedModel.of(problem)


def _poisson(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    design, diagonal = _designed(X, estimator, float(estimator.alpha))
    problem = ConvexProblem(
        y=_numbers(y, type(estimator).__name__),
        loss="poisson",
        X=design,
        penalty=diagonal,
        weights=weights,
        penalty_per_record=True,
        coefficients=_theta(estimator),
        name=_named(estimator, alpha=float(estimator.alpha)),
    )
    return FittedModel.of(problem)


def _sgd(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    name = type(estimator).__name__
    if estimator.penalty not in ("l2", None):
        raise InputError(f"{name} with penalty {estimator.penalty!r} is not smooth; use 'l2'.")
    losses: dict[str, LossName] = {"log_loss": "logistic", "squared_error": "square"}
    if estimator.loss not in losses:
        raise InputError(
            f"{name} with loss {estimator.loss!r} is not covered; log_loss and squared_error are, "
            "and `leakscope audit --train` audits any estimator by a few models of it."
        )
    loss = losses[estimator.loss]
    level = float(estimator.alpha) if estimator.penalty == "l2" else 0.0
    design, diagonal = _designed(X, estimator, level)
    notes: tuple[Assumption, ...] = ()
    labels = y
    if loss == "logistic" or hasattr(estimator, "classes_"):
        codes = _codes(estimator, y)
        if len(estimator.classes_) > 2:
            raise InputError(
                f"{name} fits one class against the rest; use LogisticRegression for several."
            )
        weights, notes = _class_weights(estimator, codes, weights)
        labels = codes.astype(np.float64) if loss == "logistic" else 2.0 * codes - 1.0
    problem = ConvexProblem(
        y=_numbers(labels, name),
        loss=loss,
        X=design,
        # the mean is over the records, whatever their weights
        penalty=diagonal * len(y) / weights.sum(),
        weights=weights,
        penalty_per_record=True,
        coefficients=_theta(estimator),
        name=_named(estimator, alpha=level),
        assumptions=notes,
    )
    return FittedModel.of(problem)


def _kernel_ridge(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    from sklearn.metrics.pairwise import pairwise_kernels

    _room_for_kernel(len(y))
    alpha = float(np.ravel(estimator.alpha)[0])
    if alpha <= 0.0:
        raise InputError("KernelRidge with alpha 0 interpolates; members' residuals are zero.")
    if estimator.kernel == "precomputed":
        kernel = X
    elif callable(estimator.kernel):
        kernel = pairwise_kernels(X, metric=estimator.kernel, **(estimator.kernel_params or {}))
    else:
        settings = {name: getattr(estimator, name) for name in ("gamma", "degree", "coef0")}
        kernel = pairwise_kernels(X, metric=estimator.kernel, filter_params=True, **settings)
    target = _numbers(y, "KernelRidge")
    dual = (
        np.linalg.norm(
            weights * (target - kernel @ np.ravel(estimator.dual_coef_))
            - alpha * np.ravel(estimator.dual_coef_)
        )
        if len(np.ravel(estimator.dual_coef_)) == len(y)
        else np.inf
    )
    if dual > 1e-5 * np.linalg.norm(target):
        raise InputError(
            "The coefficients of this KernelRidge are not the optimum on these records: it was "
            "fitted on other data or with other weights; pass what fit was given."
        )
    problem = ConvexProblem(
        y=target,
        loss="square",
        kernel=np.asarray(kernel) / alpha,
        weights=weights,
        name=_named(estimator, alpha=alpha, kernel=str(estimator.kernel)),
    )
    return FittedModel.of(problem)


def _gaussian_process(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    if np.any(weights != 1.0):
        raise InputError("GaussianProcessRegressor takes no sample weights.")
    _room_for_kernel(len(y))
    trained = np.asarray(estimator.X_train_, dtype=np.float64)
    if trained.shape != X.shape or not np.array_equal(trained, X):
        raise InputError(
            "This GaussianProcessRegressor was fitted on other records than these; pass the "
            "records that fit was given, in the same order."
        )
    kernel, noise = _without_noise(estimator.kernel_(X), estimator, X)
    target = (_numbers(y, "GaussianProcessRegressor") - estimator._y_train_mean) / (
        estimator._y_train_std
    )
    problem = ConvexProblem(
        y=np.ravel(target),
        loss="square",
        kernel=kernel,
        weights=1.0 / noise,
        name=_named(estimator, kernel=str(estimator.kernel_)),
        assumptions=(
            Assumption(
                "the kernel's parameters and the target's scale stay as fitted",
                holds=None,
                evidence="they are not fitted again without the record",
            ),
        ),
    )
    return FittedModel.of(problem)


def _without_noise(
    matrix: FloatArray, estimator: Any, X: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The kernel at distinct points, and the noise variance: alpha and the white kernel."""
    across = np.asarray(estimator.kernel_(X, X.copy()))
    noise = np.diagonal(matrix) - np.diagonal(across) + np.asarray(estimator.alpha)
    if np.any(noise <= 0.0):
        raise InputError("The Gaussian process has no noise and interpolates; raise alpha.")
    return across, np.array(np.broadcast_to(noise, (len(X),)))


def _room_for_kernel(size: int) -> None:
    require_memory(4 * 8 * size * size, f"The kernel matrix of {size} records", "use fewer records")


READERS: dict[str, Reader] = {
    "Ridge": _ridge,
    "RidgeCV": _ridge,
    "LinearRegression": _ridge,
    "RidgeClassifier": _ridge_classifier,
    "RidgeClassifierCV": _ridge_classifier,
    "LogisticRegression": _logistic,
    "LogisticRegressionCV": _logistic,
    "PoissonRegressor": _poisson,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
    "KernelRidge": _kernel_ridge,
    "GaussianProcessRegressor": _gaussian_process,
}
