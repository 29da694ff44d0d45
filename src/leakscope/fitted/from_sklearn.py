"""Which convex problem a fitted scikit-learn estimator solved.

First pipelines, searches and calibration are taken off (`refits.unwrapped`), then one reader for
each estimator describes its problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.problem import FittedModel, NoLawsError, NotOptimalError
from leakscope.fitted.refits import (
    Labels,
    WholeFit,
    class_names,
    fits_the_same,
    innermost,
    replaced_methods,
)
from leakscope.laws.pair import Assumption
from leakscope.single_fit.losses import tweedie
from leakscope.single_fit.optimum import Distance, distance_to_optimum
from leakscope.single_fit.problem import ConvexProblem, LossName, as_weights

Reader = Callable[[Any, FloatArray, Labels, FloatArray], FittedModel]


# A fit further from the optimum than this share of its own sampling noise is not the optimum, and
# one nearer than the second is: one record that was not there puts it at about one over the root
# of their number.  Between them lies what a solver leaves that stops early, by its own tolerance.
FARTHEST, NEAR = 0.1, 1e-3
# Solvers that stop where no entry of the mean loss's gradient is above ``tol``, and solvers that
# stop by other rules; what is not named is exact.
_BY_GRADIENT = ("lbfgs", "newton-cg", "newton-cholesky")
_BY_OTHER_RULES = ("sag", "saga", "liblinear", "sparse_cg", "lsqr")

_SGD_LOSSES: dict[str, LossName] = {"log_loss": "logistic", "squared_error": "square"}


def from_sklearn(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: npt.ArrayLike | None = None,
    at_optimum: bool = True,
) -> FittedModel:
    """The convex problem that a fitted estimator solved on these records.

    Parameters
    ----------
    estimator
        A fitted Ridge, LinearRegression, KernelRidge, GaussianProcessRegressor,
        LogisticRegression, RidgeClassifier, PoissonRegressor, GammaRegressor, TweedieRegressor,
        SGDClassifier or SGDRegressor; a Pipeline that ends in one, a search over one, or a
        CalibratedClassifierCV with one fit.
    X, y
        The records that it was fitted on, as it was given them.
    sample_weight
        The weights that ``fit`` was given, if any.
    at_optimum
        Whether to refuse coefficients that are not the optimum on these records; an erasure looks
        at what they are.

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
        raise InputError("There must be one label per record; audit the outputs one at a time.")
    if sample_weight is not None:
        sample_weight = as_weights(sample_weight, len(labels))
    whole = WholeFit.of(estimator, X, labels, sample_weight)
    inner, design = whole.found.inner, whole.found.design
    why = _why_none(inner)
    if why is not None:
        raise NoLawsError(why)
    reader = next(READERS[name] for name in class_names(inner) if name in READERS)
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
    for part in (estimator, *whole.found.steps, inner):
        if methods := replaced_methods(part):
            raise NoLawsError(
                f"{methods[0]} of this {type(part).__name__} was put on the object itself, which "
                "no refit has."
            )
    given = as_weights(sample_weight, len(labels))
    assumptions = list(whole.found.assumptions)
    try:
        model = reader(inner, features, labels, given)
        if at_optimum:
            try:
                model = _at_optimum(model, inner, assumptions)
            except NotOptimalError:
                # Fitted on these very records it gives the same again: then the solver stopped, or
                # a step codes its own records otherwise than others.
                if not fits_the_same(whole):
                    raise
                try:
                    most = FARTHEST if _solver(inner) in _BY_OTHER_RULES else None
                    model = _at_optimum(model, inner, assumptions, most)
                except NotOptimalError as error:
                    raise NoLawsError(_stopped_too_far(inner)) from error
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        # A file may say anything: a penalty that is text, an intercept of another length.
        raise InputError(
            f"This {type(inner).__name__} does not hold what a fitted one does "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]}); fit it again."
        ) from error
    around = [type(step).__name__ for step in whole.found.steps]
    named = replace(model.problems[0], name=" → ".join([*around, model.name]))
    problems = (named, *model.problems[1:])
    return replace(model, problems=problems, whole=whole if whole.learned else None)


def is_read(estimator: Any) -> bool:
    """Whether laws of one fit are known of this class of estimators, fitted or not."""
    return any(name in READERS for name in class_names(innermost(estimator)))


def no_laws(estimator: Any) -> str | None:
    """Why no laws follow from one fit of this estimator by its parameters; None where they do.

    What only the fit shows, such as that it has not converged, is a `NoLawsError` of
    `from_sklearn`.
    """
    return _why_none(innermost(estimator))


def _why_none(inner: Any) -> str | None:
    names = class_names(inner)
    name = names[0]
    if not any(known in READERS for known in names):
        return f"no laws of one fit are known of {name}."
    if getattr(inner, "positive", False):
        return f"{name} with positive=True is not smooth in the records."
    if _l1_share(inner) > 0.0:
        return f"{name} with an L1 penalty is not smooth in the records."
    if "TweedieRegressor" in names and _glm_loss(inner) is None:
        return f"{name} with power {inner.power:g} and link {inner.link!r} has no convex loss."
    if "SGD" in name and inner.loss not in _SGD_LOSSES:
        return f"{name} with loss {inner.loss!r} has no laws of one fit."
    return None


def _l1_share(inner: Any) -> float:
    """The share of the L1 penalty, which scikit-learn had in the penalty's name before 1.8."""
    penalty = str(getattr(inner, "penalty", ""))
    if penalty in ("l1", "l2", "None"):
        return float(penalty == "l1")
    share = getattr(inner, "l1_ratio_", getattr(inner, "l1_ratio", None))
    return float(np.max(np.nan_to_num(np.ravel(np.asarray(share, dtype=np.float64)))))


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


def optimal(away: Distance, *, holds: bool) -> Assumption:
    """That a fit is the optimum, with how far it is from it."""
    return Assumption(
        "the released fit is the optimum of its penalised loss on these records",
        holds=holds,
        evidence=f"largest gradient entry {away.gradient:.2g}; a Newton step would move it by "
        f"{away.relative:.2g} of its sampling noise",
    )


def _assuming(model: FittedModel, assumptions: list[Assumption]) -> FittedModel:
    problems = tuple(
        replace(problem, assumptions=(*problem.assumptions, *assumptions))
        for problem in model.problems
    )
    return replace(model, problems=problems)


def _solver(inner: Any) -> str:
    """The solver that fitted it; ridge regression takes one by itself where features are sparse."""
    return str(getattr(inner, "solver_", getattr(inner, "solver", "")))


def _at_optimum(
    model: FittedModel, inner: Any, assumptions: list[Assumption], most: float | None = None
) -> FittedModel:
    """The model with its assumptions, or a refusal where it is not the optimum on these records.

    ``most`` is how far from it the coefficients may be, where that is not the solver's to say.
    """
    distances = [d for d in map(distance_to_optimum, model.problems) if d is not None]
    if distances:
        worst = max(distances, key=lambda d: d.relative)
        weight = float(model.problems[0].sample_weights.sum())
        if not worst.relative <= (farthest(inner, worst, weight) if most is None else most):
            stopped = _stopped_early(inner)
            raise (NoLawsError if stopped else NotOptimalError)(_not_the_optimum(inner, worst))
        assumptions = [*assumptions, optimal(worst, holds=True)]
    return _assuming(model, assumptions)


def stops_at(inner: Any, weight: float) -> float | None:
    """The largest entry of a gradient at which this solver may stop; None where not known."""
    solver = str(getattr(inner, "solver", ""))
    if "SGD" in type(inner).__name__ or solver in _BY_OTHER_RULES:
        return None
    # Half as much again: where it stopped, the solver saw the gradient before its last rounding.
    return 1.5 * float(inner.tol) * weight if solver in _BY_GRADIENT else 0.0


def farthest(inner: Any, away: Distance, weight: float) -> float:
    """How far from the optimum a fit by this solver may be, in shares of its sampling noise."""
    stops = stops_at(inner, weight)
    return FARTHEST if stops is None or 0.0 < stops >= away.gradient else NEAR


def _iterations(inner: Any) -> int:
    return int(np.max(np.asarray(getattr(inner, "n_iter_", 0))))


def _at_limit(inner: Any) -> bool:
    """Whether its solver stopped because it was not allowed more iterations."""
    # Of support vector machines -1 is no limit.
    allowed = getattr(inner, "max_iter", None) or -1
    return 0 < allowed <= _iterations(inner)


def _stopped_early(inner: Any) -> bool:
    """Whether it may be fitted on these very records and still not be their optimum."""
    return "SGD" in type(inner).__name__ or _at_limit(inner)


def _stopped_too_far(inner: Any) -> str:
    return (
        f"this {type(inner).__name__} is not the optimum of what reaches it: its solver stopped "
        "early (give a smaller tol), or a step codes the records that it is fitted on otherwise."
    )


def _not_the_optimum(inner: Any, away: Distance) -> str:
    name = type(inner).__name__
    figures = (
        f"the gradient there is {away.gradient:.3g}, {away.relative:.2g} of the sampling noise away"
    )
    if _at_limit(inner):
        return (
            f"This {name} has not converged ({_iterations(inner)} iterations; {figures}); raise "
            "max_iter or scale the features, and fit again."
        )
    if "SGD" in name:
        return (
            f"This {name} has not converged to the optimum ({figures}); lower tol, raise max_iter "
            "or set average=True, or use the solver-based estimator with the same penalty."
        )
    return (
        f"The coefficients of this {name} are not the optimum on these records ({figures}): it was "
        "fitted on other data, without some of these records, on scaled features, by a step that "
        "codes its own records otherwise (a target encoder), or with weights that were not passed; "
        "pass the records, the whole Pipeline and the sample_weight that fit was given."
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
    found = np.asarray(getattr(estimator, "alpha_", getattr(estimator, "alpha", 0.0)), dtype=float)
    if found.size > 1:
        raise InputError("One penalty per output was used; audit the outputs one at a time.")
    penalty = float(found.item())
    name = type(estimator).__name__
    X, diagonal, theta = _design(estimator, X, penalty)
    if penalty == 0.0 and len(theta) >= len(y):
        raise InputError(
            f"{name} without a penalty and with {len(theta)} coefficients for {len(y)} records "
            "interpolates: every member's residual is zero, so an attacker who knows the label "
            "recognises members with certainty; use Ridge."
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


def _class_weights(estimator: Any, codes: npt.NDArray[np.intp], weights: FloatArray) -> FloatArray:
    chosen = getattr(estimator, "class_weight", None)
    if chosen is None:
        return weights
    classes = np.asarray(estimator.classes_)
    if isinstance(chosen, str):
        counts = np.bincount(codes, minlength=len(classes)).astype(np.float64)
        factors = len(codes) / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
        return weights * factors[codes]
    factors = np.array([float(chosen.get(label, 1.0)) for label in classes.tolist()])
    return weights * factors[codes]


def _ridge_classifier(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    codes = _codes(estimator, y)
    weights = _class_weights(estimator, codes, weights)
    penalty = float(estimator.alpha_ if hasattr(estimator, "alpha_") else estimator.alpha)
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
        )
        for output, column in enumerate(theta.T)
    )
    own = np.zeros(len(y), dtype=np.intp) if two else codes
    sign = np.where(codes == 1, 1.0, -1.0) if two else np.ones(len(y))
    return FittedModel(problems, own, sign, "classification")


def _logistic(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    name = type(estimator).__name__
    codes = _codes(estimator, y)
    penalty = str(getattr(estimator, "penalty", "l2"))
    strength = np.unique(np.asarray(getattr(estimator, "C_", getattr(estimator, "C", np.inf))))
    if len(strength) > 1:
        raise NoLawsError(f"{name} chose one C per class; fit LogisticRegression with one C.")
    inverse = float(strength[0])
    level = 0.0 if penalty in ("None", "none") or np.isinf(inverse) else 1.0 / inverse
    weights = _class_weights(estimator, codes, weights)
    liblinear = getattr(estimator, "solver", "") == "liblinear"
    column = float(estimator.intercept_scaling) if liblinear else 1.0
    X, diagonal, theta = _design(estimator, X, level, column)
    if liblinear:
        diagonal[:] = level  # it penalises the intercept too
    classes = len(estimator.classes_)
    loss: LossName = "logistic" if classes == 2 else "softmax"
    if classes > 2 and (liblinear or getattr(estimator, "multi_class", "") == "ovr"):
        raise NoLawsError(
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
    )
    return FittedModel.of(problem)


def _power(estimator: Any) -> float:
    """Of the variance in the mean: of Poisson regression 1, of gamma regression 2."""
    names = class_names(estimator)
    usual = 1.0 if "PoissonRegressor" in names else 2.0 if "GammaRegressor" in names else 0.0
    return float(getattr(estimator, "power", usual))


def _glm_loss(estimator: Any) -> LossName | None:
    """The loss of a generalised linear model where it is convex for every label; else None."""
    power, link = _power(estimator), str(getattr(estimator, "link", "auto"))
    if link == "auto":
        link = "identity" if power <= 0.0 else "log"
    if power == 0.0 and link == "identity":
        return "square"
    if link != "log" or not 1.0 <= power <= 2.0:
        return None
    return "poisson" if power == 1.0 else tweedie(power)


def _glm(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    alpha, loss = float(estimator.alpha), _glm_loss(estimator)
    assert loss is not None
    X, diagonal, theta = _design(estimator, X, alpha)
    power = {"power": _power(estimator)} if hasattr(estimator, "power") else {}
    problem = ConvexProblem(
        y=_numbers(y, type(estimator).__name__),
        loss=loss,
        X=X,
        penalty=diagonal,
        weights=weights,
        penalty_per_record=True,
        coefficients=theta,
        name=_named(estimator, **power, alpha=alpha),
    )
    return FittedModel.of(problem)


def _sgd(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    name = type(estimator).__name__
    loss = _SGD_LOSSES[estimator.loss]
    level = float(estimator.alpha) if estimator.penalty == "l2" else 0.0
    labels = y
    if loss == "logistic" or hasattr(estimator, "classes_"):
        codes = _codes(estimator, y)
        if len(estimator.classes_) > 2:
            raise NoLawsError(
                f"{name} fits one class against the rest; use LogisticRegression for several."
            )
        weights = _class_weights(estimator, codes, weights)
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
    target = np.ravel((numbers - estimator._y_train_mean) / estimator._y_train_std)
    dual = np.ravel(estimator.alpha_)
    away = np.inf
    if dual.shape == target.shape:
        away = float(np.linalg.norm(kernel @ dual + noise * dual - target))
    if not away <= 1e-5 * float(np.linalg.norm(target)):
        raise InputError(
            "This GaussianProcessRegressor was fitted on other labels than these; pass the labels "
            "that fit was given, in the same order."
        )
    problem = ConvexProblem(
        y=target,
        loss="square",
        kernel=kernel,
        weights=1.0 / noise,
        name=_named(estimator, kernel=str(estimator.kernel_)),
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
    "PoissonRegressor": _glm,
    "GammaRegressor": _glm,
    "TweedieRegressor": _glm,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
    "KernelRidge": _kernel_ridge,
    "GaussianProcessRegressor": _gaussian_process,
}
