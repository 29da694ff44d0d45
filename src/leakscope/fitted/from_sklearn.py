"""Which convex problem a fitted scikit-learn estimator solved; scikit-learn itself is not imported.

Estimators are known by the names of their classes, parents included, so that a subclass is taken
for what it derives from.
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
from leakscope.fitted.model import FittedModel
from leakscope.fitted.optimum import distance_to_optimum
from leakscope.fitted.sklearn_estimators import READERS, refusal
from leakscope.fitted.sklearn_parts import class_names, unwrapped
from leakscope.laws import Assumption

# A fit further from the optimum than this share of its own sampling noise is not the optimum.
FARTHEST = 0.1


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
    inner, design, assumptions = unwrapped(estimator, X)
    reader = _reader(inner)
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
    weights = _as_weights(sample_weight, len(labels))
    model = reader(inner, features, labels, weights)
    return _at_optimum(model, inner, assumptions)


def _reader(inner: Any) -> Callable[[Any, FloatArray, npt.NDArray[Any], FloatArray], FittedModel]:
    for name in class_names(inner):
        if name in READERS:
            return READERS[name]
    raise InputError(refusal(inner))


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


def _as_weights(sample_weight: npt.ArrayLike | None, size: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(size)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (size,):
        raise InputError(
            f"There are {weights.size} sample weights for {size} records; pass one for each."
        )
    return weights


def _at_optimum(model: FittedModel, inner: Any, assumptions: list[Assumption]) -> FittedModel:
    """The model with its assumptions, or a refusal where it is not the optimum on these records."""
    name = type(inner).__name__
    distances = [d for d in map(distance_to_optimum, model.problems) if d is not None]
    if distances:
        worst = max(distances, key=lambda d: d.relative)
        if not worst.relative <= FARTHEST:
            raise InputError(_not_the_optimum(inner, name, worst.gradient, worst.relative))
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


def _not_the_optimum(inner: Any, name: str, gradient: float, relative: float) -> str:
    iterations = np.max(
        np.asarray(getattr(inner, "n_iter_", 0) if hasattr(inner, "n_iter_") else 0)
    )
    allowed = getattr(inner, "max_iter", None)
    figures = f"the gradient there is {gradient:.3g}, {relative:.2g} of the sampling noise away"
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
