"""The user's own estimator, fitted again: other records, another penalty or fewer features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.sklearn_parts import class_names, unwrapped

# What has no penalty of its own to set, and what has: the class, and the settings taken over.
_WITH_PENALTY = {
    "LinearRegression": "Ridge",
    "RidgeCV": "Ridge",
    "RidgeClassifierCV": "RidgeClassifier",
    "LogisticRegressionCV": "LogisticRegression",
}


def inner_model(estimator: Any, X: Any) -> tuple[Any, FloatArray]:
    """The estimator inside pipelines and searches, and the numbers that reach it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from leakscope import fitted
    >>> X, y = np.arange(6.0)[:, None], np.arange(6.0)
    >>> inner, design = fitted.inner_model(make_pipeline(StandardScaler(), Ridge()).fit(X, y), X)
    >>> type(inner).__name__, bool(abs(design.mean()) < 1e-12)
    ('Ridge', True)
    """
    inner, design, _ = unwrapped(estimator, X)
    return inner, design.toarray() if hasattr(design, "toarray") else np.asarray(design)


def penalty_of(inner: Any) -> tuple[str, float] | None:
    """The name and value of an estimator's penalty; None where it has none that can be set.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from leakscope import fitted
    >>> fitted.penalty_of(LogisticRegression(C=0.5)), fitted.penalty_of(LinearRegression())
    (('C', 0.5), ('alpha', 0.0))
    """
    names = class_names(inner)
    if "LogisticRegression" in names or "LogisticRegressionCV" in names:
        value = np.ravel(getattr(inner, "C_", getattr(inner, "C", np.inf)))[0]
        return "C", float("inf") if str(getattr(inner, "penalty", "")) == "None" else float(value)
    if "LinearRegression" in names:
        return "alpha", 0.0
    value = np.ravel(getattr(inner, "alpha_", getattr(inner, "alpha", np.nan)))
    return ("alpha", float(value[0])) if value.size == 1 and np.isfinite(value[0]) else None


def fresh_copy(inner: Any, *, penalty: float | None = None) -> Any:
    """An estimator like this one, not fitted yet; with another penalty where one is given.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from leakscope import fitted
    >>> fitted.fresh_copy(LinearRegression(), penalty=3.0)
    Ridge(alpha=3.0)
    """
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
    """Fit a copy, from the released coefficients where its solver takes a start; the copy itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = np.arange(6.0)[:, None], np.arange(6.0)
    >>> released = Ridge(alpha=1.0).fit(X, y)
    >>> fitted.fit_again(fitted.fresh_copy(released), released, X[:4], y[:4], None).n_features_in_
    1
    """
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
