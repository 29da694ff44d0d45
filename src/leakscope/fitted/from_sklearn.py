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
from leakscope.fitted.refits import Labels, WholeFit, class_names, innermost, replaced_methods
from leakscope.laws.pair import Assumption
from leakscope.single_fit.losses import tweedie
from leakscope.single_fit.optimum import Distance, distance_to_optimum
from leakscope.single_fit.problem import ConvexProblem, LossName, as_weights

Reader = Callable[[Any, FloatArray, Labels, FloatArray], FittedModel]

# A fit further from the optimum than this share of its own sampling noise is not the optimum, and
# one nearer than the second is: one record that was not there puts it at about one over the root
# of their number.  Between them lies what a solver leaves that stops early, by its own tolerance.
FARTHEST, NEAR = 0.1, 1e-3
# Fits on the same records end alike up to this share of their scores' spread: rounding.
AGAIN = 1e-9
# Fits of a recipe that show how far apart they end.
ENDINGS = 8
# Solvers that stop where no entry of the mean loss's gradient is above ``tol``, and solvers that
# stop by other rules; what is not named is exact.
_BY_GRADIENT = ("lbfgs", "newton-cg", "newton-cholesky")
_BY_OTHER_RULES = ("sag", "saga", "liblinear", "sparse_cg", "lsqr")


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
        A fitted Ridge, LinearRegression, KernelRidge, LogisticRegression, RidgeClassifier,
        PoissonRegressor, GammaRegressor or TweedieRegressor; a Pipeline that ends in one, a search
        over one, or a CalibratedClassifierCV with one fit.
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
    NoLawsError
        Where no laws follow from this fit: another class, an L1 penalty, a solver that stopped.
    InputError
        Where the estimator is not fitted, or is not the optimum here.

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
    weights = as_weights(sample_weight, len(labels))
    whole = WholeFit.of(estimator, X, labels, None if sample_weight is None else weights)
    inner, kind = whole.found.inner, type(whole.found.inner).__name__
    why = no_laws(inner)
    if why is not None:
        raise NoLawsError(why)
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(inner)):
        raise InputError(f"This {kind} is not fitted; call fit first.")
    features = _as_matrix(whole.found.design, kind, len(labels))
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
    reader = next(READERS[name] for name in class_names(inner) if name in READERS)
    assumptions = whole.found.assumptions
    try:
        model = reader(inner, features, labels, weights)
        if at_optimum:
            assumptions = (*assumptions, *_optimum_assumed(model, whole))
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        # A file may say anything: a penalty that is text, an intercept of another length.
        raise InputError(
            f"This {kind} does not hold what a fitted one does "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]}); fit it again."
        ) from error
    around = [type(step).__name__ for step in whole.found.steps]
    problems = [
        replace(problem, assumptions=(*problem.assumptions, *assumptions))
        for problem in model.problems
    ]
    problems[0] = replace(problems[0], name=" → ".join([*around, model.name]))
    return replace(model, problems=tuple(problems), whole=whole if whole.learned else None)


def is_read(estimator: Any) -> bool:
    """Whether laws of one fit are known of this class of estimators, fitted or not."""
    return any(name in READERS for name in class_names(innermost(estimator)))


def no_laws(estimator: Any) -> str | None:
    """Why no laws follow from one fit of this estimator by its parameters; None where they do.

    What only the fit shows, such as that it has not converged, is a `NoLawsError` of
    `from_sklearn`.
    """
    inner = innermost(estimator)
    name = type(inner).__name__
    if not is_read(inner):
        return f"no laws of one fit are known of {name}."
    if getattr(inner, "positive", False):
        return f"{name} with positive=True is not smooth in the records."
    if _l1_share(inner) > 0.0:
        return f"{name} with an L1 penalty is not smooth in the records."
    if "TweedieRegressor" in class_names(inner) and _glm_loss(inner) is None:
        return f"{name} with power {inner.power:g} and link {inner.link!r} has no convex loss."
    return None


def _l1_share(inner: Any) -> float:
    """The share of the L1 penalty, which scikit-learn had in the penalty's name before 1.8."""
    penalty = str(getattr(inner, "penalty", ""))
    if penalty in ("l1", "l2", "None"):
        return float(penalty == "l1")
    share = getattr(inner, "l1_ratio_", getattr(inner, "l1_ratio", None))
    return float(np.max(np.nan_to_num(np.ravel(np.asarray(share, dtype=np.float64)))))


def _as_matrix(design: Any, name: str, records: int) -> FloatArray:
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
    if matrix.ndim != 2 or len(matrix) != records:
        raise InputError(
            f"X must have one row for each of {records} labels, but its shape is {matrix.shape}."
        )
    good = np.isfinite(matrix).all(axis=1)
    if not good.all():
        raise InputError(f"Row {int(np.argmin(good))} of X has a value that is not finite.")
    return matrix


# Whether it is the optimum.


def optimal(away: Distance, *, holds: bool) -> Assumption:
    """That a fit is the optimum, with how far it is from it."""
    return Assumption(
        "the released fit is the optimum of its penalised loss on these records",
        holds=holds,
        evidence=f"largest gradient entry {away.gradient:.2g}; a Newton step would move it by "
        f"{away.relative:.2g} of its sampling noise",
    )


def stops_at(inner: Any, weight: float) -> float | None:
    """The largest entry of a gradient at which this solver may stop; None where not known."""
    solver = str(getattr(inner, "solver_", getattr(inner, "solver", "")))
    if solver in _BY_OTHER_RULES:
        return None
    # Half as much again: where it stopped, the solver saw the gradient before its last rounding.
    return 1.5 * float(inner.tol) * weight if solver in _BY_GRADIENT else 0.0


def farthest(inner: Any, away: Distance, weight: float) -> float:
    """How far from the optimum a fit by this solver may be, in shares of its sampling noise."""
    stops = stops_at(inner, weight)
    return FARTHEST if stops is None or 0.0 < stops >= away.gradient else NEAR


def _optimum_assumed(model: FittedModel, whole: WholeFit) -> tuple[Assumption, ...]:
    """That the coefficients are the optimum on these records, or a refusal.

    Coefficients that are not, and that fits on these very records give again, are those of a
    solver that stopped, or of a step that codes the records that it is fitted on otherwise.
    """
    distances = [d for d in map(distance_to_optimum, model.problems) if d is not None]
    if not distances:
        return ()
    inner, away = whole.found.inner, max(distances, key=lambda d: d.relative)
    weight = float(model.problems[0].sample_weights.sum())
    known_rule = stops_at(inner, weight) is not None
    if away.relative <= (farthest(inner, away, weight) if known_rule else NEAR):
        return (optimal(away, holds=True),)
    name = type(inner).__name__
    if _ends_so_again(whole):
        if away.relative <= FARTHEST:
            return (optimal(away, holds=True),)
        raise NoLawsError(
            f"this {name} is not the optimum of what reaches it: its solver stopped early (give a "
            "smaller tol, raise max_iter or scale the features), or a step codes the records that "
            "it is fitted on otherwise."
        )
    raise NotOptimalError(
        f"The coefficients of this {name} are not the optimum on these records (the gradient there "
        f"is {away.gradient:.3g}, {away.relative:.2g} of the sampling noise away): it was fitted "
        "on other data, without some of these records or with other weights; pass what fit was "
        "given."
    )


def _ends_so_again(whole: WholeFit) -> bool:
    """Whether fits on these records end where the released one did, as near as by chance.

    The released answers may lie twice as far from the mean of the refits as the farthest refit.
    """
    everybody = np.arange(len(whole.y))
    released = whole.answers(whole.estimator)
    refits = np.stack([whole.scores(everybody) for _ in range(ENDINGS)])
    middle = refits.mean(axis=0)
    squares = np.mean((refits - middle) ** 2, axis=tuple(range(1, refits.ndim)))
    by_chance = float(np.sqrt(squares.max()))
    rounding = AGAIN * max(float(np.std(middle)), 1e-300)
    return float(np.sqrt(np.mean((released - middle) ** 2))) <= max(2.0 * by_chance, rounding)


# One reader for each estimator.


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
    alpha = np.asarray(getattr(estimator, "alpha_", getattr(estimator, "alpha", 0.0)), dtype=float)
    if alpha.size > 1:
        raise InputError("One penalty per output was used; audit the outputs one at a time.")
    penalty, name = float(alpha.item()), type(estimator).__name__
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
    from sklearn.utils.class_weight import compute_class_weight

    chosen, classes = getattr(estimator, "class_weight", None), np.asarray(estimator.classes_)
    if chosen is None:
        return weights
    if isinstance(chosen, str):
        factors = compute_class_weight(chosen, classes=classes, y=classes[codes])
    else:
        factors = np.array([float(chosen.get(label, 1.0)) for label in classes.tolist()])
    return np.asarray(weights * factors[codes])


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
    name, codes = type(estimator).__name__, _codes(estimator, y)
    strength = np.unique(np.asarray(getattr(estimator, "C_", getattr(estimator, "C", np.inf))))
    if len(strength) > 1:
        raise NoLawsError(f"{name} chose one C per class; fit LogisticRegression with one C.")
    inverse = float(strength[0])
    free = str(getattr(estimator, "penalty", "l2")) in ("None", "none") or np.isinf(inverse)
    level = 0.0 if free else 1.0 / inverse
    liblinear = getattr(estimator, "solver", "") == "liblinear"
    column = float(estimator.intercept_scaling) if liblinear else 1.0
    X, diagonal, theta = _design(estimator, X, level, column)
    if liblinear:
        diagonal[:] = level  # it penalises the intercept too
    classes = len(estimator.classes_)
    if classes > 2 and (liblinear or getattr(estimator, "multi_class", "") == "ovr"):
        raise NoLawsError(
            f"{name} was fitted one class against the rest; fit it with the softmax loss (any "
            "solver but liblinear)."
        )
    problem = ConvexProblem(
        y=codes.astype(np.float64),
        loss="logistic" if classes == 2 else "softmax",
        X=X,
        penalty=diagonal,
        weights=_class_weights(estimator, codes, weights),
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


def _kernel_ridge(estimator: Any, X: FloatArray, y: Labels, weights: FloatArray) -> FittedModel:
    from sklearn.metrics.pairwise import pairwise_kernels

    size, alpha = len(y), float(np.ravel(estimator.alpha)[0])
    require_memory(4 * 8 * size * size, f"The kernel matrix of {size} records", "use fewer records")
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
        raise NotOptimalError(
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
    "KernelRidge": _kernel_ridge,
}
