"""Which convex problem a fitted scikit-learn estimator solved, and how it is fitted again.

Estimators are known by the names of their classes, parents included, so that a subclass is taken
for what it derives from; scikit-learn itself is imported only where it is needed.  First pipelines,
searches and calibration are taken off, then one reader for each estimator describes its problem.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.optimum import Distance, distance_to_optimum
from leakscope.fitted.problem import ConvexProblem, FittedModel, LossName, as_weights
from leakscope.laws.pair import Assumption

Labels = npt.NDArray[Any]
Reader = Callable[[Any, FloatArray, Labels, FloatArray], FittedModel]

# A fit further from the optimum than this share of its own sampling noise is not the optimum.
FARTHEST = 0.1

_TREES = ("Tree", "Forest", "Boosting", "Bagging", "XGB", "LGBM", "CatBoost")
_NETWORKS = ("MLP", "Module", "Sequential", "NeuralNet")
_SEARCHES = ("BaseSearchCV", "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV")

# What has no penalty of its own to set, and what has: the class, and the settings taken over.
_WITH_PENALTY = {
    "LinearRegression": "Ridge",
    "RidgeCV": "Ridge",
    "RidgeClassifierCV": "RidgeClassifier",
    "LogisticRegressionCV": "LogisticRegression",
}


def from_sklearn(
    estimator: Any, X: Any, y: Any, *, sample_weight: npt.ArrayLike | None = None
) -> FittedModel:
    """The convex problem that a fitted estimator solved on these records.

    Parameters
    ----------
    estimator
        A fitted Ridge, LinearRegression, KernelRidge, GaussianProcessRegressor,
        LogisticRegression, RidgeClassifier, PoissonRegressor, SGDClassifier or SGDRegressor; a
        Pipeline that ends in one, a search over one, or a CalibratedClassifierCV with one fit.
    X, y
        The records that it was fitted on, as it was given them.
    sample_weight
        The weights that ``fit`` was given, if any.

    Returns
    -------
    FittedModel
        The problem, with the assumptions made on the way.

    Raises
    ------
    InputError
        Where the estimator is not fitted, is not one of these, or is not the optimum here.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = load_diabetes(return_X_y=True)
    >>> fitted.from_sklearn(Ridge(alpha=1.0).fit(X, y), X, y).name
    'Ridge(alpha=1)'
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError("One label per record is wanted; audit the outputs one at a time.")
    inner, design, assumptions = _unwrapped(estimator, X)
    reader = next((READERS[name] for name in class_names(inner) if name in READERS), None)
    if reader is None:
        raise InputError(_refusal(inner))
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(inner)):
        raise InputError(f"This {type(inner).__name__} is not fitted; call fit first.")
    features = _as_matrix(design, type(inner).__name__)
    if len(features) != len(labels):
        raise InputError(
            f"X has {len(features)} records and y has {len(labels)}; they must be as many."
        )
    expected = getattr(inner, "n_features_in_", features.shape[1])
    if features.shape[1] != expected:
        raise InputError(
            f"The model was fitted on {expected} features, but X has {features.shape[1]}."
        )
    model = reader(inner, features, labels, as_weights(sample_weight, len(labels)))
    return _at_optimum(model, inner, assumptions)


def _as_matrix(design: Any, name: str) -> FloatArray:
    if hasattr(design, "toarray"):
        rows, columns = design.shape
        require_memory(
            2 * 8 * rows * columns,
            f"A dense copy of {rows} x {columns} features",
            "select fewer features",
        )
        design = design.toarray()
    try:
        matrix = np.asarray(design, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"The features that reach {name} are not all numbers; encode them in a Pipeline."
        ) from None
    if matrix.ndim != 2:
        raise InputError(f"X must have one row per record, but its shape is {matrix.shape}.")
    good = np.isfinite(matrix).all(axis=1)
    if not good.all():
        raise InputError(f"Row {int(np.argmin(good))} of X has a value that is not finite.")
    return matrix


def _at_optimum(model: FittedModel, inner: Any, assumptions: list[Assumption]) -> FittedModel:
    """The model with its assumptions, or a refusal where it is not the optimum on these records."""
    distances = [d for d in map(distance_to_optimum, model.problems) if d is not None]
    if distances:
        worst = max(distances, key=lambda d: d.relative)
        if not worst.relative <= FARTHEST:
            raise InputError(_not_the_optimum(inner, worst))
        assumptions = [
            *assumptions,
            Assumption(
                "the released fit is the optimum of its penalised loss on these records",
                holds=True,
                evidence=f"largest gradient entry {worst.gradient:.2g}; a Newton step would move "
                f"it by {worst.relative:.2g} of its sampling noise",
            ),
        ]
    problems = tuple(
        replace(problem, assumptions=(*problem.assumptions, *assumptions))
        for problem in model.problems
    )
    return replace(model, problems=problems)


def _not_the_optimum(inner: Any, away: Distance) -> str:
    name = type(inner).__name__
    iterations = np.max(np.asarray(getattr(inner, "n_iter_", 0)))
    allowed = getattr(inner, "max_iter", None)
    figures = (
        f"the gradient there is {away.gradient:.3g}, {away.relative:.2g} of the sampling noise away"
    )
    if allowed is not None and iterations and iterations >= allowed:
        return (
            f"This {name} has not converged ({int(iterations)} iterations; {figures}); raise "
            "max_iter or scale the features, and fit again."
        )
    if "SGD" in name:
        return (
            f"This {name} has not converged to the optimum ({figures}); lower tol, raise max_iter "
            "or set average=True, or use the solver-based estimator with the same penalty."
        )
    return (
        f"The coefficients of this {name} are not the optimum on these records ({figures}): it was "
        "fitted on other data, on scaled features or with weights that were not passed; pass the "
        "records, the whole Pipeline and the sample_weight that fit was given."
    )


def class_names(estimator: Any) -> list[str]:
    """The names of an estimator's class and its parents, nearest first."""
    return [kind.__name__ for kind in type(estimator).__mro__]


def _unwrapped(estimator: Any, X: Any) -> tuple[Any, Any, list[Assumption]]:
    """The innermost estimator, the features that reach it, and what was assumed on the way."""
    assumptions: list[Assumption] = []
    for _ in range(20):
        names = class_names(estimator)
        if "Pipeline" in names:
            estimator, X = _through_pipeline(estimator, X, assumptions)
        elif any(name in names for name in _SEARCHES):
            if not hasattr(estimator, "best_estimator_"):
                raise InputError(f"This {names[0]} has no best_estimator_; fit it with refit=True.")
            estimator = estimator.best_estimator_
            assumptions.append(
                Assumption(
                    "the setting that the search chose does not depend on the record",
                    holds=None,
                    evidence="the search is not repeated",
                )
            )
        elif "CalibratedClassifierCV" in names:
            estimator = _one_calibrated(estimator, assumptions)
        elif "FrozenEstimator" in names:
            estimator = estimator.estimator
        else:
            return estimator, X, assumptions
    raise InputError("The estimator is wrapped more than twenty times; pass the inner one.")


def _through_pipeline(pipeline: Any, X: Any, assumptions: list[Assumption]) -> tuple[Any, Any]:
    steps = pipeline.steps
    kept = [(name, step) for name, step in steps[:-1] if step not in (None, "passthrough")]
    for name, step in kept:
        if not hasattr(step, "transform"):
            raise InputError(
                f"The pipeline's step {name!r} cannot transform; pass a plain Pipeline."
            )
        try:
            X = step.transform(X)
        except Exception as error:
            raise InputError(
                f"The pipeline's step {name!r} could not transform the records "
                f"({type(error).__name__}: {str(error).splitlines()[0]}); pass a fitted pipeline "
                "and the records that it was given."
            ) from None
    if kept:
        assumptions.append(
            Assumption(
                f"the pipeline's transformers ({', '.join(name for name, _ in kept)}) stay as "
                "fitted whether or not the record is there",
                holds=None,
                evidence="they are not fitted again",
            )
        )
    return steps[-1][1], X


def _one_calibrated(calibrated: Any, assumptions: list[Assumption]) -> Any:
    fits = getattr(calibrated, "calibrated_classifiers_", None)
    if not fits:
        raise InputError("This CalibratedClassifierCV is not fitted; call fit first.")
    if len(fits) > 1:
        raise InputError(
            f"This CalibratedClassifierCV averages {len(fits)} models fitted on parts of the "
            "records; fit it with ensemble=False, or pass one model fitted on all of them."
        )
    assumptions.append(
        Assumption(
            "the calibration map is one-to-one and stays as fitted",
            holds=None if calibrated.method == "sigmoid" else False,
            evidence=f"method {calibrated.method!r}; a map that merges scores can only hide more",
        )
    )
    return fits[0].estimator


def _refusal(estimator: Any) -> str:
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


def _design(
    estimator: Any, X: FloatArray, penalty: float, column: float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What describes a linear model: design, diagonal of the penalty, and coefficients.

    The intercept is the design's last column and not penalised; coefficients are d or d x outputs.
    """
    diagonal = np.full(X.shape[1], penalty)
    theta = np.asarray(estimator.coef_, dtype=np.float64)
    theta = theta[:, None] if theta.ndim == 1 else theta.T
    if getattr(estimator, "fit_intercept", False):
        intercept = np.broadcast_to(np.ravel(estimator.intercept_), (theta.shape[1],))
        theta = np.vstack([theta, intercept / column])
        X, diagonal = np.column_stack([X, np.full(len(X), column)]), np.append(diagonal, 0.0)
    theta = theta[:, 0] if theta.shape[1] == 1 else theta
    return X, diagonal, theta


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
    X, diagonal, theta = _design(estimator, X, penalty)
    if penalty == 0.0 and len(theta) >= len(y):
        raise InputError(
            f"{name} without a penalty and with {len(theta)} coefficients for {len(y)} "
            "records interpolates: every member's residual is zero, and whoever knows the label "
            "tells members with certainty; use Ridge."
        )
    title = _named(estimator) if name == "LinearRegression" else _named(estimator, alpha=penalty)
    problem = ConvexProblem(
        y=_numbers(y, name),
        loss="square",
        X=X,
        penalty=diagonal,
        weights=weights,
        coefficients=theta,
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
    X, diagonal, theta = _design(estimator, X, penalty)
    two = theta.ndim == 1
    theta = theta[:, None] if two else theta
    problems = tuple(
        ConvexProblem(
            y=np.where(codes == (1 if two else output), 1.0, -1.0),
            loss="square",
            X=X,
            penalty=diagonal,
            weights=weights,
            coefficients=column,
            name=_named(estimator, alpha=penalty),
            assumptions=notes,
        )
        for output, column in enumerate(theta.T)
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
    X, diagonal, theta = _design(estimator, X, level, column)
    if liblinear:
        diagonal[:] = level  # it penalises the intercept too
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
        X=X,
        penalty=diagonal,
        weights=weights,
        classes=classes,
        coefficients=theta,
        name=_named(estimator, C=inverse),
        assumptions=notes,
    )
    return FittedModel.of(problem)


def _poisson(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    alpha = float(estimator.alpha)
    X, diagonal, theta = _design(estimator, X, alpha)
    problem = ConvexProblem(
        y=_numbers(y, type(estimator).__name__),
        loss="poisson",
        X=X,
        penalty=diagonal,
        weights=weights,
        penalty_per_record=True,
        coefficients=theta,
        name=_named(estimator, alpha=alpha),
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
    # the mean is over the records, whatever their weights
    X, diagonal, theta = _design(estimator, X, level * len(y) / float(weights.sum()))
    problem = ConvexProblem(
        y=_numbers(labels, name),
        loss=loss,
        X=X,
        penalty=diagonal,
        weights=weights,
        penalty_per_record=True,
        coefficients=theta,
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
    target, dual = _numbers(y, "KernelRidge"), np.ravel(estimator.dual_coef_)
    gradient = np.inf
    if len(dual) == len(y):
        gradient = float(np.linalg.norm(weights * (target - kernel @ dual) - alpha * dual))
    if gradient > 1e-5 * np.linalg.norm(target):
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
    # the kernel at distinct points; the rest of the diagonal is noise, alpha and the white kernel
    kernel = np.asarray(estimator.kernel_(X, X.copy()))
    noise = np.diagonal(estimator.kernel_(X)) - np.diagonal(kernel) + np.asarray(estimator.alpha)
    if np.any(noise <= 0.0):
        raise InputError("The Gaussian process has no noise and interpolates; raise alpha.")
    numbers = _numbers(y, "GaussianProcessRegressor")
    target = (numbers - estimator._y_train_mean) / estimator._y_train_std
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


def inner_model(estimator: Any, X: Any) -> tuple[Any, FloatArray]:
    """The estimator inside pipelines and searches, and the numbers that reach it."""
    inner, design, _ = _unwrapped(estimator, X)
    return inner, design.toarray() if hasattr(design, "toarray") else np.asarray(design)


def penalty_of(inner: Any) -> tuple[str, float] | None:
    """The name and value of an estimator's penalty; None where it has none that can be set."""
    names = class_names(inner)
    if "LogisticRegression" in names or "LogisticRegressionCV" in names:
        value = np.ravel(getattr(inner, "C_", getattr(inner, "C", np.inf)))[0]
        return "C", float("inf") if str(getattr(inner, "penalty", "")) == "None" else float(value)
    if "LinearRegression" in names:
        return "alpha", 0.0
    value = np.ravel(getattr(inner, "alpha_", getattr(inner, "alpha", np.nan)))
    return ("alpha", float(value[0])) if value.size == 1 and np.isfinite(value[0]) else None


def fresh_copy(inner: Any, *, penalty: float | None = None) -> Any:
    """An estimator like this one, not fitted yet; with another penalty where one is given."""
    from sklearn import linear_model
    from sklearn.base import clone

    fresh = clone(inner)
    if "GaussianProcessRegressor" in class_names(inner):
        fresh.set_params(kernel=inner.kernel_, optimizer=None)
    if penalty is not None:
        named = penalty_of(inner)
        if named is None:
            raise InputError(f"{type(inner).__name__} has no penalty to set.")
        other = _WITH_PENALTY.get(type(inner).__name__)
        if other is not None:
            kept = ("fit_intercept", "class_weight")
            told = {name: value for name, value in fresh.get_params().items() if name in kept}
            fresh = getattr(linear_model, other)(**told)
        fresh.set_params(**{named[0]: penalty})
    if "warm_start" in fresh.get_params():
        fresh.set_params(warm_start=True)
    return fresh


def fit_again(
    fresh: Any, released: Any, X: FloatArray, y: npt.NDArray[Any], weights: FloatArray | None
) -> Any:
    """Fit a copy, from the released coefficients where its solver takes a start; it is returned."""
    if fresh.get_params().get("warm_start") and hasattr(released, "coef_"):
        coefficients = np.array(released.coef_)
        if coefficients.shape[-1] == X.shape[1]:
            fresh.coef_ = coefficients
            fresh.intercept_ = np.array(released.intercept_)
            for name in ("classes_", "n_features_in_"):
                if hasattr(released, name):
                    setattr(fresh, name, getattr(released, name))
    extra = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh.fit(X, y, **extra)
    return fresh
