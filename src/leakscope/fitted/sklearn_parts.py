"""Through pipelines, searches and calibration to the estimator that was fitted on all records."""

from __future__ import annotations

from typing import Any

from leakscope.errors import InputError
from leakscope.laws import Assumption

_SEARCHES = ("BaseSearchCV", "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV")


def class_names(estimator: Any) -> list[str]:
    """The names of an estimator's class and its parents, nearest first."""
    return [kind.__name__ for kind in type(estimator).__mro__]


def unwrapped(estimator: Any, X: Any) -> tuple[Any, Any, list[Assumption]]:
    """The innermost estimator, the features that reach it, and what was assumed on the way."""
    assumptions: list[Assumption] = []
    for _ in range(20):
        names = class_names(estimator)
        if "Pipeline" in names:
            estimator, X = _through_pipeline(estimator, X, assumptions)
        elif any(name in names for name in _SEARCHES):
            estimator = _best_estimator(estimator)
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


def _best_estimator(search: Any) -> Any:
    if not hasattr(search, "best_estimator_"):
        raise InputError(
            f"This {type(search).__name__} has no best_estimator_; fit it with refit=True."
        )
    return search.best_estimator_


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
