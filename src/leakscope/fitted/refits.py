"""What an estimator is inside, and its whole recipe fitted again on parts of the records.

The laws are those of the innermost estimator on the features that reach it (`unwrapped`).  What
``fit`` learns besides, a pipeline's steps above all, is held there as it was fitted on all records;
whether the laws hold all the same is counted on refits of the whole recipe (`refits_of`), which are
asked as the user's own object answers.

Estimators are known by the names of their classes, parents included, so that a subclass is taken
for what it derives from; scikit-learn itself is imported only where it is needed.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption
from leakscope.recipes.answers import own_label_log_odds
from leakscope.single_fit.losses import label_log_odds

Labels = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]
Observed = Literal["log_odds", "scores", "prediction", "residual", "label", "probabilities"]

_SEARCHES = ("BaseSearchCV", "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV")
# These decide at another threshold; what their model answers is its own.
_THRESHOLDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")

# What has no penalty of its own to set, and what has: the class, and the settings taken over.
_WITH_PENALTY = {
    "LinearRegression": "Ridge",
    "RidgeCV": "Ridge",
    "RidgeClassifierCV": "RidgeClassifier",
    "LogisticRegressionCV": "LogisticRegression",
}

# Those whose penalty is C, its inverse.
_INVERSE = ("LogisticRegression", "LogisticRegressionCV")


# Refits on all records of a recipe that is another each time.
SAME_REFITS = 5
# A part of the records that lacks a class is drawn again so often.
REDRAWN = 100
# Decision values are the log-odds of the probabilities where they agree up to this, as far as
# probabilities have digits.
AGREE, WITH_DIGITS = 1e-3, 20.0
# Transformed records, and answers, differ where they are further apart than this, beside their
# own size.
SAME = 1e-9


def class_names(estimator: Any) -> list[str]:
    """The names of an estimator's class and its parents, nearest first."""
    return [kind.__name__ for kind in type(estimator).__mro__]


@dataclass(frozen=True, eq=False)
class Unwrapped:
    """The innermost estimator, and what lies around it.

    Attributes
    ----------
    inner, design
        The innermost estimator, and the features that reach it.
    steps
        The fitted transformers that the records pass, in order.
    searched, calibrated
        Whether a search chose its settings, and whether its answers are calibrated afterwards.
    assumptions
        What was taken for granted on the way.
    frozen
        Whether the innermost estimator was fitted before what lies around it, which keeps it.
    """

    inner: Any
    design: Any
    steps: tuple[Any, ...]
    searched: bool
    calibrated: bool
    assumptions: tuple[Assumption, ...]
    frozen: bool = False

    @property
    def penalty_chosen(self) -> bool:
        """Whether the innermost estimator chooses its penalty itself."""
        own = [k for k in class_names(self.inner) if k in _WITH_PENALTY]
        return any(k.endswith("CV") for k in own)

    @property
    def choices(self) -> tuple[str, ...]:
        """What ``fit`` chooses among several settings, in words."""
        names = ["the settings that a search chose"] if self.searched else []
        if self.penalty_chosen:
            names.append("the penalty that cross-validation chose")
        return tuple(names)

    @property
    def learned(self) -> tuple[str, ...]:
        """What ``fit`` learns from the records beside the optimum, in words."""
        names = [type(step).__name__ for step in self.steps]
        names += self.choices
        if self.calibrated:
            names.append("the calibration map")
        kinds = class_names(self.inner)
        if isinstance(getattr(self.inner, "class_weight", None), str):
            names.append("balanced class weights")
        if "GaussianProcessRegressor" in kinds:
            if self.inner.optimizer is not None and len(self.inner.kernel_.theta):
                names.append("the kernel's parameters")
            if self.inner.normalize_y:
                names.append("the target's scale")
        return tuple(names)


def replaced_methods(estimator: Any) -> list[str]:
    """The methods of its class that were replaced on this object alone, which no copy has."""
    present, kind = getattr(estimator, "__dict__", {}), type(estimator)
    return [k for k, v in present.items() if callable(v) and callable(getattr(kind, k, None))]


def unwrapped(estimator: Any, X: Any) -> Unwrapped:
    """Take off pipelines, searches and calibration."""
    steps: list[Any] = []
    assumptions: list[Assumption] = []
    searched, calibrated, frozen = False, False, False
    for _ in range(20):
        names = class_names(estimator)
        if "Pipeline" in names:
            estimator, X = _through_pipeline(estimator, X, steps)
        elif any(name in names for name in _SEARCHES):
            if not hasattr(estimator, "best_estimator_"):
                raise InputError(f"This {names[0]} has no best_estimator_; fit it with refit=True.")
            estimator, searched = estimator.best_estimator_, True
        elif "CalibratedClassifierCV" in names:
            frozen = frozen or estimator.cv == "prefit"
            estimator, calibrated = _one_calibrated(estimator, assumptions), True
        elif "FrozenEstimator" in names:
            estimator, frozen = estimator.estimator, True
        elif _only_decides(estimator, names):
            estimator = getattr(estimator, "estimator_", estimator.estimator)
        elif "OneVsRestClassifier" in names:
            estimator = _one_of_two(estimator)
        else:
            notes = tuple(assumptions)
            return Unwrapped(estimator, X, tuple(steps), searched, calibrated, notes, frozen)
    raise InputError("The estimator is wrapped more than twenty times; pass the inner one.")


def innermost(estimator: Any) -> Any:
    """The estimator inside pipelines, searches and calibration, fitted or not.

    An average of several calibrated models is itself: no one fit stands for it.
    """
    for _ in range(20):
        names = class_names(estimator)
        if "Pipeline" in names:
            estimator = estimator.steps[-1][1]
        elif any(name in names for name in _SEARCHES):
            estimator = getattr(estimator, "best_estimator_", estimator.estimator)
        elif "FrozenEstimator" in names or _is_one_calibrated(estimator, names):
            estimator = estimator.estimator
        elif _only_decides(estimator, names):
            estimator = getattr(estimator, "estimator_", estimator.estimator)
        elif "OneVsRestClassifier" in names:
            estimator = estimator.estimator
        else:
            break
    return estimator


def _through_pipeline(pipeline: Any, X: Any, steps: list[Any]) -> tuple[Any, Any]:
    kept = [entry for entry in pipeline.steps[:-1] if entry[1] not in (None, "passthrough")]
    for (name, step), (_, following) in zip(kept, [*kept, pipeline.steps[-1]][1:], strict=True):
        if not hasattr(step, "transform"):
            raise InputError(
                f"The pipeline's step {name!r} cannot transform; pass a plain Pipeline."
            )
        try:
            _require_width(step, following, X)
            X = step.transform(X)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"The pipeline's step {name!r} could not transform the records "
                f"({type(error).__name__}: {str(error).splitlines()[0]}); pass a fitted pipeline "
                "and the records that it was given."
            ) from None
        steps.append(step)
    return pipeline.steps[-1][1], X


def _require_width(step: Any, following: Any, X: Any) -> None:
    """Refuse, before it is made, what does not fit the next step, or the memory.

    A file of some kilobytes may hold a step that makes millions of features of ten.
    """
    width = getattr(step, "n_output_features_", None)
    if width is None:
        few = X.iloc[:2] if hasattr(X, "iloc") else X[:2]
        found = step.transform(few)
        width = found.shape[1] if getattr(found, "ndim", 0) == 2 else None
    if width is None:
        return
    expected = getattr(following, "n_features_in_", width)
    if width != expected:
        raise InputError(
            f"{type(step).__name__} makes {width} features, and {type(following).__name__} was "
            f"fitted on {expected}; pass the pipeline as it was fitted."
        )
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    require_memory(
        3 * 8 * rows * width, f"{rows} x {width} features", "use fewer records or features"
    )


def _only_decides(estimator: Any, names: list[str]) -> bool:
    """Whether its answers are those of one model fitted on all records."""
    return any(name in names for name in _THRESHOLDS) and bool(getattr(estimator, "refit", True))


def _one_of_two(estimator: Any) -> Any:
    """The one model inside where there are two classes, with their names; else it is refused."""
    from leakscope.fitted.problem import NoLawsError

    inside = getattr(estimator, "estimators_", None)
    if inside is None:
        raise InputError("This OneVsRestClassifier is not fitted; call fit first.")
    if len(inside) != 1 or "classes_" not in vars(inside[0]):
        raise NoLawsError(
            "OneVsRestClassifier is one model where it has two classes and a plain estimator "
            "inside; of several the laws together are not known, and `leakscope audit` examines it "
            "by a few models"
        )
    found = copy(inside[0])
    found.classes_ = estimator.classes_
    return found


def _is_one_calibrated(calibrated: Any, names: list[str]) -> bool:
    """Whether one fit is calibrated, or will be, and no average of several."""
    if "CalibratedClassifierCV" not in names:
        return False
    fits = getattr(calibrated, "calibrated_classifiers_", None)
    frozen = "FrozenEstimator" in class_names(calibrated.estimator)
    return len(fits) == 1 if fits else calibrated.ensemble is False or frozen


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


def inner_model(estimator: Any, X: Any) -> tuple[Any, FloatArray]:
    """The estimator inside pipelines and searches, and the numbers that reach it."""
    found = unwrapped(estimator, X)
    design = found.design
    return found.inner, design.toarray() if hasattr(design, "toarray") else np.asarray(design)


def penalty_of(inner: Any) -> tuple[str, float] | None:
    """The name and value of an estimator's penalty; None where it has none that can be set."""
    names = class_names(inner)
    if any(name in names for name in _INVERSE):
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
            kept = ("fit_intercept", "class_weight", "positive", "tol", "max_iter")
            told = {name: value for name, value in fresh.get_params().items() if name in kept}
            fresh = getattr(linear_model, other)(**told)
        fresh.set_params(**{named[0]: penalty})
    return fresh


def fit_again(fresh: Any, X: FloatArray, y: Labels, weights: FloatArray | None) -> Any:
    """Fit a copy, without what its solver warns of; it is returned."""
    extra = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fresh.fit(X, y, **extra)


class Refitting(Protocol):
    """What can be fitted again on some of its records."""

    @property
    def y(self) -> npt.NDArray[Any]:
        """One label for each record."""

    def lacks_a_class(self, rows: Rows) -> bool:
        """Whether a class is missing among these records."""

    def scores(self, rows: Rows, observes: Observed | None = None) -> FloatArray:
        """What a fit on these rows answers about all records: (N,), or (N, d) of d numbers."""


def refits_of(
    recipe: Refitting,
    refits: int,
    fraction: float,
    key: Key,
    *,
    observes: Observed | None = None,
    units: Rows | None = None,
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The scores of all records by fits on random parts, (K, N) or (K, N, d), and who was in.

    Each record is in by chance with probability ``fraction``; where ``units`` has the number of
    each record's group, groups are, and (K, U) of them were in.
    """
    records = len(recipe.y)
    size = records if units is None else int(units.max()) + 1
    scores, inside = [], np.empty((refits, size), dtype=np.bool_)
    for number in range(refits):
        generator = key.child(number).generator()
        for _ in range(REDRAWN):
            inside[number] = generator.random(size) < fraction
            rows = np.flatnonzero(inside[number] if units is None else inside[number][units])
            if len(rows) > 1 and not recipe.lacks_a_class(rows):
                break
        else:
            raise InputError("parts of the records lack a class")
        scores.append(recipe.scores(rows, observes))
    return np.stack(scores), inside


@dataclass(frozen=True, eq=False)
class WholeFit:
    """A released estimator with its records, to be fitted again with all that ``fit`` does.

    ``X`` and ``y`` are as ``fit`` was given them, ``weights`` those that the innermost estimator
    was given.  Without ``found.steps`` and a search, the innermost estimator is all there is.
    """

    estimator: Any
    X: Any
    y: Labels
    weights: FloatArray | None
    found: Unwrapped

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weights: npt.ArrayLike | None = None) -> WholeFit:
        """Of an estimator as it was fitted on these records."""
        labels = np.ravel(np.asarray(y))
        given = None if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(estimator, X, labels, given, unwrapped(estimator, X))

    @property
    def learned(self) -> tuple[str, ...]:
        """What ``fit`` learns beside the optimum, in words."""
        return self.found.learned

    @property
    def chosen(self) -> bool:
        """Whether ``fit`` chooses settings."""
        return self.found.searched or self.found.penalty_chosen

    def changed(
        self,
        inner: Any,
        design: FloatArray,
        *,
        rows: Rows | None = None,
        columns: Rows | None = None,
    ) -> WholeFit:
        """With another innermost estimator, on some records, on some of what reaches it.

        The settings are the estimator's own now; nothing searches for them.
        """
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import FunctionTransformer
        from sklearn.utils import _safe_indexing

        steps, weights, labels, X = self.found.steps, self.weights, self.y, self.X
        if rows is not None:
            X, labels = _safe_indexing(X, rows), labels[rows]
            weights = None if weights is None else weights[rows]
        if columns is not None:
            chosen = FunctionTransformer(
                _safe_indexing, kw_args={"indices": columns, "axis": 1}, check_inverse=False
            )
            steps = (*steps, chosen)
        found = Unwrapped(inner, design, steps, False, False, self.found.assumptions)
        whole = Pipeline([(str(k), part) for k, part in enumerate((*steps, inner))])
        return WholeFit(whole if steps else inner, X, labels, weights, found)

    def lacks_a_class(self, rows: Rows) -> bool:
        """Whether a class is missing among these records: a model of them has other scores."""
        known = getattr(self.found.inner, "classes_", None)
        return known is not None and len(np.unique(self.y[rows])) < len(known)

    def refitted(self, rows: Rows) -> Any:
        """The user's own estimator, fitted on these rows only."""
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh = _unknown_ignored(clone(self.estimator))
                part = _safe_indexing(self.X, rows)
                return fresh.fit(part, self.y[rows], **self._weights_by_name(rows))
        except InputError:
            raise
        except Exception as error:  # of the user's own steps: whatever they raise
            told = (str(error).strip().splitlines() or [""])[0][:200]
            raise InputError(
                f"the whole estimator could not be fitted again on {len(rows)} of its "
                f"{len(self.y)} records ({type(error).__name__}: {told})."
            ) from error

    def fitted_on(self, rows: Rows) -> tuple[Any, Any]:
        """The innermost estimator of a fit on these rows only, and what reaches it."""
        again = unwrapped(self.refitted(rows), self.X)
        return again.inner, again.design

    def scores(self, rows: Rows, observes: Observed | None = None) -> FloatArray:
        """What a fit on these rows answers about all records."""
        return self.answers(self.refitted(rows), observes)

    def answers(self, model: Any, observes: Observed | None = None) -> FloatArray:
        """What an estimator itself answers about all records, as the laws have it."""
        with warnings.catch_warnings():
            # Fitted on a frame and asked with its numbers: the columns are the same.
            warnings.simplefilter("ignore")
            return answers_of(model, self.X, self.y, observes, inner=self.found.inner)

    def _weights_by_name(self, rows: Rows) -> dict[str, FloatArray]:
        """Sample weights go to the last step of each pipeline on the way."""
        if self.weights is None:
            return {}
        prefix, estimator = "", self.estimator
        for _ in range(20):
            if "Pipeline" in class_names(estimator):
                name, estimator = estimator.steps[-1]
                prefix = f"{prefix}{name}__"
            elif hasattr(estimator, "estimator"):
                estimator = estimator.estimator
            else:
                break
        return {f"{prefix}sample_weight": self.weights[rows]}


def answers_of(
    model: Any, X: Any, y: Labels, observes: Observed | None = None, *, inner: Any = None
) -> FloatArray:
    """The scores (N,), or (N, d), that an object itself gives records, as the laws have them.

    ``inner`` is the released estimator inside, which knows the classes and the target's scale.
    """
    inner = model if inner is None else inner
    if not hasattr(inner, "classes_"):
        values = np.asarray(model.predict(X), dtype=np.float64).reshape(len(y))
        if "_GeneralizedLinearRegressor" in class_names(inner):
            # Poisson, gamma and Tweedie regression answer with the exponential of their score.
            values, y = np.log(np.maximum(values, np.finfo(np.float64).tiny)), np.zeros(len(y))
        if getattr(inner, "normalize_y", False):
            values = (values - inner._y_train_mean) / inner._y_train_std
        return y - values if observes == "residual" else values
    if observes == "label":
        return np.asarray(np.asarray(model.predict(X)) == y, dtype=np.float64)
    codes, rows = np.searchsorted(inner.classes_, y), np.arange(len(y))
    logits: Any = None
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        logits = np.stack([0.0 * values, values], axis=1) if values.ndim == 1 else values
    if observes == "scores" or not hasattr(model, "predict_proba"):
        assert logits is not None
        own = logits[rows, codes]
        return np.asarray(own - logits[rows, 1 - codes] if logits.shape[1] == 2 else own)
    chances = np.asarray(model.predict_proba(X), dtype=np.float64)
    score = own_label_log_odds(chances, codes)
    if logits is not None and logits.size == chances.size:
        # Decision values have their digits where a probability is nearly one.
        sharp = label_log_odds(logits, codes)
        known = np.abs(score) < WITH_DIGITS
        if np.all(np.abs(sharp - score)[known] <= AGREE * (1.0 + np.abs(score[known]))):
            score = sharp
        else:
            logits = None
    if observes != "probabilities":
        return score
    if logits is None:
        logits = np.log(np.maximum(chances, np.finfo(np.float64).tiny))
    return other_logits(logits, codes)


def other_logits(logits: FloatArray, codes: Rows) -> FloatArray:
    """(N, C - 1) the other classes' logits less the label's, of logits (N, C)."""
    others = np.array([np.delete(np.arange(logits.shape[1]), code) for code in codes])
    own = np.take_along_axis(logits, codes[:, None], axis=1)
    return np.asarray(np.take_along_axis(logits, others, axis=1) - own)


def fits_the_same(whole: WholeFit) -> bool:
    """Whether a fit on all records gives the released scores again.

    Of a recipe that is another each time the nearest refit is as near as refits are to each other.
    """
    everybody, released = np.arange(len(whole.y)), whole.answers(whole.estimator)
    refits = [whole.scores(everybody) for _ in range(2)]
    spread = max(float(np.std(refits[0])), 1e-300)
    if _apart(*refits) <= SAME * spread:
        return _apart(released, refits[0]) <= SAME * spread
    refits += [whole.scores(everybody) for _ in range(SAME_REFITS - 2)]
    by_chance = max(_apart(*two) for two in combinations(refits, 2))
    return min(_apart(released, each) for each in refits) <= by_chance


def same_numbers(first: Any, second: Any) -> bool:
    """Whether two tables are the same, but for rounding of the largest number."""
    first, second = (
        each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in (first, second)
    )
    if first.shape != second.shape:
        return False
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return bool(np.array_equal(first, second))
    first, second = (np.asarray(each, dtype=np.float64) for each in (first, second))
    known = ~np.isnan(second)
    if not np.array_equal(known, ~np.isnan(first)):
        return False
    size = max(float(np.abs(second[known]).max(initial=0.0)), 1e-300)
    return bool(np.abs(first[known] - second[known]).max(initial=0.0) <= SAME * size)


def _apart(one: FloatArray, other: FloatArray) -> float:
    """The root mean square difference."""
    return float(np.sqrt(np.mean((one - other) ** 2)))


def _unknown_ignored(fresh: Any) -> Any:
    """A category that a part of the records lacks has no column there, and is not an error."""
    told = fresh.get_params(deep=True)
    ends = [name for name, value in told.items() if value == "error"]
    for name in (name for name in ends if name.split("__")[-1] == "handle_unknown"):
        try:
            fresh.set_params(**{name: "ignore"})
        except ValueError:
            continue
    return fresh
