"""Scorers for scikit-learn's searches: leakage, score minus leakage, and the best within a limit.

Every scorer is larger where things are better, so leakage comes with a minus sign.  The leakage is
that of the records a candidate was trained on (in cross-validation: of each fold's), the score that
of the records it was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from leakscope.errors import InputError

Measure = Literal["advantage", "auc", "kl"]

_ATTRIBUTES: dict[str, str] = {"advantage": "leakage_", "auc": "auc_", "kl": "kl_"}


@dataclass(frozen=True)
class LeakageScorer:
    """Minus the leakage of a fitted model, summed up over its records; see ``leakage_scorer``.

    Examples
    --------
    >>> from leakscope.estimators.leakage_scores import LeakageScorer
    >>> LeakageScorer("advantage", "max")
    LeakageScorer(measure='advantage', reduce='max')
    """

    measure: Measure
    reduce: str | float

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise InputError(
                f"measure must be one of {', '.join(get_args(Measure))}, but it is "
                f"{self.measure!r}."
            )
        level = self.reduce
        known = level in ("max", "mean", "median") if isinstance(level, str) else 0 <= level <= 1
        if not known:
            raise InputError(
                f"reduce must be max, median, mean or a quantile from 0 to 1, but it is {level!r}."
            )

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """Minus the reduced leakage; NaN where float64 does not resolve every record."""
        model = _fitted_model(estimator)
        values = np.asarray(getattr(model, _ATTRIBUTES[self.measure]), dtype=np.float64)
        if not np.all(model.trusted_):
            return float("nan")
        if self.reduce == "mean":
            return -float(np.mean(values))
        level = {"max": 1.0, "median": 0.5}.get(str(self.reduce), self.reduce)
        return -float(np.quantile(values, float(level)))


@dataclass(frozen=True)
class ScoreMinusLeakage:
    """The model's own score minus ``weight`` times its leakage; see ``score_minus_leakage``.

    Examples
    --------
    >>> from leakscope.estimators import score_minus_leakage
    >>> score_minus_leakage(0.5).weight
    0.5
    """

    weight: float
    leakage: LeakageScorer

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weight) and self.weight >= 0.0):
            raise InputError(f"weight must be zero or above, but it is {self.weight!r}.")

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score minus weighted leakage."""
        return released_score(estimator, X, y) + self.weight * self.leakage(estimator)


@dataclass(frozen=True)
class BestWithin:
    """The candidate with the best score whose leakage keeps within a limit; see ``best_within``.

    Examples
    --------
    >>> from leakscope.estimators import BestWithin
    >>> BestWithin(0.3)({"mean_test_score": [0.9, 0.8], "split0_test_leakage": [-0.4, -0.2]})
    1
    """

    limit: float
    score: str = "score"
    leakage: str = "leakage"

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """The number of the candidate, for ``refit``."""
        splits = [
            np.asarray(values, dtype=np.float64)
            for name, values in cv_results.items()
            if name.startswith("split") and name.endswith(f"_test_{self.leakage}")
        ]
        mean = cv_results.get(f"mean_test_{self.score}")
        if not splits or mean is None:
            raise InputError(
                f"the search has no scores called {self.score!r} and {self.leakage!r}; give "
                "scoring=score_and_leakage()."
            )
        # A NaN is a candidate of which nothing can be told: it is not within the limit.
        worst = -np.min(np.stack(splits), axis=0)
        score = np.asarray(mean, dtype=np.float64)
        within = (worst <= self.limit) & np.isfinite(score)
        if not within.any():
            told = worst[np.isfinite(worst)]
            least = f"the least is {told.min():.4g}" if told.size else "none is known"
            raise InputError(
                f"no candidate keeps its leakage within {self.limit:g} ({least}): search over "
                "larger noise_variance or output_noise_variance."
            )
        return int(np.argmax(np.where(within, score, -np.inf)))


def leakage_scorer(measure: Measure = "advantage", reduce: str | float = "max") -> LeakageScorer:
    """A scorer for ``scoring=``: minus the leakage of the fitted model.

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
    return LeakageScorer(measure, reduce)


def score_minus_leakage(
    weight: float, measure: Measure = "advantage", reduce: str | float = "max"
) -> ScoreMinusLeakage:
    """A scorer for ``scoring=``: the model's own ``score`` minus ``weight`` times its leakage.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope.estimators import score_minus_leakage
    >>> X, y = np.array([[0.0], [0.1], [0.2], [3.0]]), np.array([1.0, 1.1, 0.9, -1.0])
    >>> model = leakscope.AuditedRegressor(leakscope.kernels.rbf(1.0), noise_variance=0.1).fit(X, y)
    >>> round(score_minus_leakage(1.0)(model, X, y) - model.score(X, y), 3)
    -0.657
    """
    return ScoreMinusLeakage(float(weight), leakage_scorer(measure, reduce))


def released_score(estimator: Any, X: Any, y: Any) -> float:
    """The model's own ``score``, as a scorer that can stand beside others.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope.estimators.leakage_scores import released_score
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 0.0, -1.0])
    >>> model = leakscope.AuditedRegressor().fit(X, y)
    >>> released_score(model, X, y) == model.score(X, y)
    True
    """
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
    return {"score": released_score, "leakage": leakage_scorer(measure, reduce)}


def best_within(limit: float, *, score: str = "score", leakage: str = "leakage") -> BestWithin:
    """For a search's ``refit=``: the best mean score among candidates whose leakage is within.

    The leakage must be at most ``limit`` in every fold.  Folds hold fewer records than the refit:
    look at the refitted model's own ``leakage_`` before relying on it.

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
    return BestWithin(float(limit), score, leakage)


def _fitted_model(estimator: Any) -> Any:
    """The estimator that has the leakage: the last step of a pipeline, the best of a search."""
    model = estimator
    while not hasattr(model, "leakage_"):
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "regressor_"):
            model = model.regressor_
        else:
            raise InputError(
                f"a {type(model).__name__} stores no leakage_; use AuditedEstimator, "
                "AuditedRegressor or AuditedClassifier, and fit it."
            )
    return model
