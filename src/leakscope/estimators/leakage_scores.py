"""Scorers for scikit-learn's searches: leakage, and the best score within a limit of it.

Every scorer is larger where things are better, so leakage comes with a minus sign.  The leakage is
that of the records a candidate was trained on (in cross-validation: of each fold's), the score that
of the records it was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from leakscope.errors import InputError

Measure = Literal["advantage", "auc", "kl"]


def leakage_scorer(
    measure: Measure = "advantage", reduce: str | float = "max"
) -> Callable[..., float]:
    """A scorer for ``scoring=``: minus the leakage of the fitted model.

    It is NaN where a number of a record is not confirmed, and then never within a limit.

    Parameters
    ----------
    measure
        ``"advantage"`` (``leakage_``), ``"auc"`` or ``"kl"``.
    reduce
        ``"max"`` over the training records, ``"median"``, ``"mean"``, or a quantile from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope.estimators import leakage_scorer
    >>> X, y = np.array([[0.0], [0.1], [0.2], [3.0]]), np.array([1.0, 1.1, 0.9, -1.0])
    >>> model = leakscope.AuditedRegressor(leakscope.kernels.rbf(1.0), noise_variance=0.1).fit(X, y)
    >>> round(leakage_scorer()(model, X, y), 3), round(leakage_scorer(reduce=0.5)(model, X, y), 3)
    (-0.657, -0.142)
    """
    if measure not in get_args(Measure):
        raise InputError(
            f"measure must be one of {', '.join(get_args(Measure))}, but it is {measure!r}."
        )
    if reduce != "mean":
        level = {"max": 1.0, "median": 0.5}.get(str(reduce), reduce)
        if isinstance(level, str) or not 0 <= level <= 1:
            raise InputError(
                f"reduce must be max, median, mean or a quantile from 0 to 1, but it is {reduce!r}."
            )
        reduce = float(level)
    attribute = "leakage_" if measure == "advantage" else f"{measure}_"
    return partial(_minus_leakage, attribute=attribute, level=reduce)


def _minus_leakage(
    estimator: Any, X: Any = None, y: Any = None, *, attribute: str, level: str | float
) -> float:
    model = _audited(estimator)
    values = np.asarray(getattr(model, attribute), dtype=np.float64)
    if not np.all(model.confirmed_):
        return float("nan")
    return -float(np.mean(values) if isinstance(level, str) else np.quantile(values, level))


def _model_score(estimator: Any, X: Any, y: Any) -> float:
    """The model's own ``score``, as a scorer that can stand beside others."""
    return float(estimator.score(X, y))


def score_and_leakage(
    measure: Measure = "advantage", reduce: str | float = "max"
) -> dict[str, Any]:
    """Both scorers by name, ``score`` and ``leakage``, for a search's ``scoring=``.

    Examples
    --------
    >>> from leakscope.estimators import score_and_leakage
    >>> list(score_and_leakage())
    ['score', 'leakage']
    """
    return {"score": _model_score, "leakage": leakage_scorer(measure, reduce)}


def best_within(limit: float) -> Callable[[Mapping[str, Any]], int]:
    """For a search's ``refit=``: the best mean score among candidates whose leakage is within.

    It goes with ``scoring=score_and_leakage()``.  The leakage must be at most ``limit`` in every
    fold.  Folds hold fewer records than the refit: look at the refitted model's own ``leakage_``
    before relying on it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> import leakscope
    >>> from leakscope.estimators import best_within, score_and_leakage
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(leakscope.AuditedRegressor(leakscope.kernels.rbf(0.5)),
    ...                       {"noise_variance": [0.1, 0.5, 1.0, 5.0]}, refit=best_within(0.3),
    ...                       scoring=score_and_leakage()).fit(X, (y - y.mean()) / y.std())
    >>> search.best_params_
    {'noise_variance': 0.5}
    >>> bool(search.best_estimator_.leakage_.max() <= 0.3)
    True
    """
    return partial(_best, limit=float(limit))


def _best(cv_results: Mapping[str, Any], *, limit: float) -> int:
    splits = [
        np.asarray(values, dtype=np.float64)
        for name, values in cv_results.items()
        if name.startswith("split") and name.endswith("_test_leakage")
    ]
    if not splits or "mean_test_score" not in cv_results:
        raise InputError("the search has no scores of leakage; give scoring=score_and_leakage().")
    # A NaN is a candidate of which nothing can be told: it is not within the limit.
    worst = -np.min(np.stack(splits), axis=0)
    score = np.asarray(cv_results["mean_test_score"], dtype=np.float64)
    within = (worst <= limit) & np.isfinite(score)
    if not within.any():
        finite = worst[np.isfinite(worst)]
        least = f"the least is {finite.min():.4g}" if finite.size else "none is known"
        raise InputError(
            f"no candidate keeps its leakage within {limit:g} ({least}): search over larger "
            "penalties or noise variances."
        )
    return int(np.argmax(np.where(within, score, -np.inf)))


def _audited(estimator: Any) -> Any:
    """The estimator that has the leakage: the last step of a pipeline, the best of a search."""
    model = estimator
    while not hasattr(model, "leakage_"):
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            raise InputError(
                f"a {type(model).__name__} stores no leakage_; use AuditedEstimator, "
                "AuditedRegressor or AuditedClassifier, and fit it."
            )
    return model
