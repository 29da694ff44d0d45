"""What an estimator is inside, and how it is fitted again: whole, or with what it learned held.

The laws are those of the innermost estimator on the features that reach it.  What else ``fit``
learns from the records, a pipeline's steps above all, is held there as it was fitted on all of
them.  Whether it may be is measured: `WholeFit` fits everything again on parts of the records, with
the steps and with the steps held, and `moved` says how far the two answers are apart.

Estimators are known by the names of their classes, parents included, so that a subclass is taken
for what it derives from; scikit-learn itself is imported only where it is needed.
"""

from __future__ import annotations

import time
import warnings
from copy import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption
from leakscope.single_fit.losses import label_log_odds

if TYPE_CHECKING:
    from leakscope.fitted.people import People

Labels = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]

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
# Decision values of several classes that are log-odds before a softmax.
_WITH_LOG_ODDS = ("LogisticRegression",)

# Refits of the whole on parts of the records; fewer of a search, which takes many fits each time.
# With 12 and a move of 0.4 at most, 0.6% or fewer of the records that pass are off by more than 0.1
# in the advantage or a factor of two in the TPR at 1% FPR (benchmarks/refits.py).
REFITS, SEARCHES_AGAIN = 12, 6
# So few are enough where nobody's score moves by more than this share of its deviation, unless what
# is learned may be another thing altogether in the next refit.
FIRST_REFITS, HARDLY = 4, 0.1

# The log-odds of a chance of none or all are those of this one.
LEAST_CHANCE = 1e-12

# A refit on all records gives the released scores again, up to this share of their spread.  Of a
# solver that stops early by chance the nearest of so many refits is as near as the two furthest of
# them are to each other, and these no further than this share.
SAME_FIT = 0.02
SAME_REFITS, MOST_APART = 5, 0.1
# What a model is asked for, a classifier by preference first.
ANSWERS = ("predict_proba", "decision_function", "predict")
# So many records are asked about again, in other order.  Answers may differ by this share of their
# spread (root mean squares): bfloat16 rounds to 0.002, dropout of 1% that is left on makes 0.02, of
# 10% 0.07 to 0.11, batch normalisation by the batch 0.03 (perceptrons on digits).
ASKED_AGAIN, REPEATED = 200, 0.01
# Transformed records, and answers, differ where they are further apart than this, beside their
# own size.
SAME = 1e-9

_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


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
    layers
        Every estimator on the way, the innermost last, with the features that reach it.
    """

    inner: Any
    design: Any
    steps: tuple[Any, ...]
    searched: bool
    calibrated: bool
    assumptions: tuple[Assumption, ...]
    frozen: bool = False
    layers: tuple[tuple[Any, Any], ...] = ()

    @property
    def penalty_chosen(self) -> bool:
        """Whether the innermost estimator chooses its penalty itself."""
        own = [k for k in class_names(self.inner) if k in _WITH_PENALTY]
        return any(k.endswith("CV") for k in own)

    @property
    def answers_otherwise(self) -> str | None:
        """What answers otherwise than scikit-learn with the same numbers, in words; else None."""
        for layer, X in self.layers:
            plain = _of_scikit_learn(layer)
            for name in ANSWERS if plain is not layer else ():
                first, second = (getattr(part, name, None) for part in (layer, plain))
                if first is None and second is None:
                    continue
                if first is None or second is None or not same_numbers(first(X), second(X)):
                    return (
                        f"{name} of {type(layer).__name__} gives other answers than scikit-learn's "
                        "class with the same coefficients"
                    )
        return None

    @property
    def parts(self) -> list[Any]:
        """The steps, and the estimators in their parameters."""
        return [
            part
            for step in self.steps
            for part in (step, *getattr(step, "get_params", dict)(deep=True).values())
            if hasattr(part, "fit")
        ]

    @property
    def may_jump(self) -> bool:
        """Whether something is chosen: settings, features, or by a step that is not known here."""
        parts = self.parts
        known = all(type(part).__module__.startswith("sklearn.") for part in parts)
        chooses = any(hasattr(part, "get_support") for part in parts)
        return self.searched or self.penalty_chosen or chooses or not known

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


def _of_scikit_learn(estimator: Any) -> Any:
    """The same numbers under the nearest class of scikit-learn's; None where there is none.

    Itself where it is of that class.
    """
    kinds = [kind for kind in type(estimator).__mro__ if kind.__module__.startswith("sklearn.")]
    methods = replaced_methods(estimator)
    if type(estimator) in kinds and not methods:
        return estimator
    # A mixin may come before the class that answers.
    kind = next((kind for kind in kinds if hasattr(kind, "predict")), None)
    if kind is None:
        return None
    again = copy(estimator)
    again.__class__ = kind
    for name in methods:
        delattr(again, name)
    return again


def unwrapped(estimator: Any, X: Any) -> Unwrapped:
    """Take off pipelines, searches and calibration."""
    steps: list[Any] = []
    assumptions: list[Assumption] = []
    searched, calibrated, frozen = False, False, False
    layers: list[tuple[Any, Any]] = []
    for _ in range(20):
        layers.append((estimator, X))
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
            told = searched, calibrated, notes, frozen, tuple(layers)
            return Unwrapped(estimator, X, tuple(steps), *told)
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
    return _from_a_start(fresh)


def _from_a_start(fresh: Any) -> Any:
    if "warm_start" in fresh.get_params():
        fresh.set_params(warm_start=True)
    return fresh


def fit_again(
    fresh: Any, released: Any, X: FloatArray, y: Labels, weights: FloatArray | None
) -> Any:
    """Fit a copy, from the released coefficients where its solver takes a start; it is returned."""
    if fresh.get_params().get("warm_start") and hasattr(released, "coef_"):
        coefficients = np.array(released.coef_)
        if coefficients.shape[-1] == X.shape[1]:
            fresh.coef_ = coefficients
            fresh.intercept_ = np.array(released.intercept_)
            several = coefficients.ndim == 2 and len(coefficients) > 2
            if fresh.get_params().get("solver") == "newton-cholesky" and several:
                # scikit-learn 1.6 forgets what a start has of the last class, where no penalty
                # says how much; softmax knows differences only, so a start may do without it.
                fresh.intercept_ -= fresh.intercept_[-1]
                if penalty_of(fresh) == ("C", np.inf):
                    fresh.coef_ -= fresh.coef_[-1]
            for name in ("classes_", "n_features_in_", "scale_"):
                if hasattr(released, name):
                    setattr(fresh, name, getattr(released, name))
    extra = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh.fit(X, y, **extra)
    return fresh


def score_records(estimator: Any, X: Any, y: Labels) -> FloatArray:
    """The score that the laws are about: own label's log-odds or margin, or the prediction."""
    if hasattr(estimator, "decision_function"):
        codes = np.searchsorted(estimator.classes_, y)
        score = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if score.ndim == 1:
            return np.asarray(np.where(codes == 1, score, -score))
        if any(name in _WITH_LOG_ODDS for name in class_names(estimator)):
            return np.asarray(label_log_odds(score, codes))
        return np.asarray(score[np.arange(len(codes)), codes])
    if hasattr(estimator, "predict_proba"):
        codes = np.searchsorted(estimator.classes_, y)
        chance = np.asarray(estimator.predict_proba(X), dtype=np.float64)[
            np.arange(len(codes)), codes
        ]
        return np.asarray(special.logit(np.clip(chance, LEAST_CHANCE, 1.0 - LEAST_CHANCE)))
    if "_GeneralizedLinearRegressor" in class_names(estimator):
        # Before the link: Poisson, gamma and Tweedie regression answer with its exponential.
        return np.asarray(X @ estimator.coef_ + estimator.intercept_, dtype=np.float64)
    return np.asarray(estimator.predict(X), dtype=np.float64).reshape(len(y))


@dataclass(frozen=True, eq=False)
class Moved:
    """How far scores move when the whole is fitted again, beside what it learned held.

    Attributes
    ----------
    size
        (N,) the root mean square over the refits; NaN where nobody could look.
    refits, seconds
        How many refits of the whole there were, and the processor time that they took.
    failure
        Why there were none, in words; empty where there were.
    """

    size: FloatArray
    refits: int
    seconds: float
    failure: str = ""


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
    # What refits showed already, the whole's scores and those with what it learned held, by the
    # share of the records and whether these are drawn singly: other questions ask the same.
    seen: dict[tuple[float, bool], list[tuple[FloatArray, FloatArray]]] = field(
        default_factory=dict, repr=False
    )

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
        calibrated, notes = self.found.calibrated, self.found.assumptions
        found = Unwrapped(inner, design, steps, False, calibrated, notes)
        return WholeFit(inner, X, labels, weights, found)

    def lacks_a_class(self, rows: Rows) -> bool:
        """Whether a class is missing among these records: a model of them has other scores."""
        known = getattr(self.found.inner, "classes_", None)
        return known is not None and len(np.unique(self.y[rows])) < len(known)

    def fitted_on(self, rows: Rows) -> tuple[Any, Any]:
        """Everything fitted on these rows only: the innermost estimator, and what reaches it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._fitted_on(rows)
        except InputError:
            raise
        except Exception as error:  # of the user's own steps: whatever they raise
            told = (str(error).strip().splitlines() or [""])[0][:200]
            raise InputError(
                f"the whole estimator could not be fitted again on {len(rows)} of its "
                f"{len(self.y)} records ({type(error).__name__}: {told})."
            ) from error

    def _fitted_on(self, rows: Rows) -> tuple[Any, Any]:
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        found, part, design = self.found, _safe_indexing(self.X, rows), self.X
        around = found.searched or (found.calibrated and self.estimator is not found.inner)
        # Around what is frozen nothing would fit that again.
        if around and not found.frozen:
            fresh = _unknown_ignored(clone(self.estimator))
            fresh.fit(part, self.y[rows], **self._weights_by_name(rows))
            again = unwrapped(fresh, self.X)
            return again.inner, again.design
        for step in found.steps:
            fresh = _unknown_ignored(clone(step))
            part = fresh.fit_transform(part, self.y[rows])
            design = fresh.transform(design)
        fresh = _from_a_start(clone(found.inner))
        fit_again(fresh, found.inner, part, self.y[rows], self._part_of_weights(rows))
        return fresh, design

    @property
    def answers_otherwise(self) -> str | None:
        """Why its answers are not those of its coefficients, in words; None where they are.

        It is asked about the records that it was fitted on, twice; and, where a class is not
        scikit-learn's own, fitted on half of them, about all.
        """
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        usual = all(_of_scikit_learn(layer) is layer for layer, _ in self.found.layers)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not self._repeats():
                    return "its answers about the same records differ when it is asked again"
                if usual:
                    return None
                classes = hasattr(self.found.inner, "classes_")
                rows = parts_of(self.y, 0.5, 2, Key(20267), classes=classes)[0]
                part, weights = _safe_indexing(self.X, rows), self._weights_by_name(rows)
                fresh = clone(self.estimator).fit(part, self.y[rows], **weights)
                return self.found.answers_otherwise or unwrapped(fresh, self.X).answers_otherwise
        except Exception as error:  # of the user's own class: whatever it raises; or of odd numbers
            name = type(self.estimator).__name__
            return None if usual else f"{name} fails when it is asked ({type(error).__name__})"

    def _repeats(self) -> bool:
        """Whether it answers alike in other order and another batch."""
        from sklearn.utils import _safe_indexing

        rows = Key(20267).generator().permutation(len(self.y))[:ASKED_AGAIN]
        name = next(name for name in ANSWERS if hasattr(self.estimator, name))
        ask = getattr(self.estimator, name)
        first, second = (ask(_safe_indexing(self.X, some)) for some in (rows, rows[::-2]))
        return alike(np.asarray(first)[::-2], np.asarray(second))

    def coded_otherwise(self) -> tuple[str, Any] | None:
        """The first step whose ``fit_transform`` makes other numbers than its ``transform``.

        With what then reaches the innermost estimator; None for that where it is another each time.
        None altogether where there is no such step, or where it or one before it was not fitted on
        these records: fitted on them again, it makes something else of them.
        """
        from sklearn.base import clone

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = self.X
                for place, step in enumerate(self.found.steps):
                    fresh = clone(step)
                    own, made = fresh.fit_transform(given, self.y), step.transform(given)
                    if not same_numbers(fresh.transform(given), made):
                        return None
                    if not same_numbers(own, made):
                        twice = [self._as_coded(given, place) for _ in range(2)]
                        return type(step).__name__, twice[0] if same_numbers(*twice) else None
                    given = made
        except Exception:  # of the user's own steps: whatever they raise
            return None
        return None

    def _as_coded(self, given: Any, first: int) -> Any:
        """What the steps from this one on make of records as they are fitted on them."""
        from sklearn.base import clone

        for step in self.found.steps[first:]:
            given = clone(step).fit_transform(given, self.y)
        return given

    def scores(self, rows: Rows) -> FloatArray:
        """The scores of all records where everything is fitted on these rows only."""
        inner, design = self.fitted_on(rows)
        return self._in_units(score_records(inner, design, self.y))

    def held(self, rows: Rows) -> FloatArray:
        """The same where all that ``fit`` learned beside the optimum stays as it was."""
        inner, labels = self.found.inner, self.y
        named = penalty_of(inner) if self.found.penalty_chosen else None
        fresh = fresh_copy(inner, penalty=None if named is None else named[1])
        if isinstance(getattr(inner, "class_weight", None), str):
            classes, counts = np.unique(labels, return_counts=True)
            balanced = len(labels) / (len(classes) * counts)
            fresh.set_params(class_weight=dict(zip(classes.tolist(), balanced, strict=True)))
        if getattr(inner, "normalize_y", False):
            fresh.set_params(normalize_y=False)
            labels = (labels - inner._y_train_mean) / inner._y_train_std
        design = self.found.design
        design = design.tocsr() if hasattr(design, "tocsr") else np.asarray(design)
        fit_again(fresh, inner, design[rows], labels[rows], self._part_of_weights(rows))
        return score_records(fresh, design, self.y)

    def _in_units(self, scores: FloatArray) -> FloatArray:
        """As the laws have them: a Gaussian process's target may be scaled."""
        inner = self.found.inner
        if not getattr(inner, "normalize_y", False):
            return scores
        return np.asarray((scores - inner._y_train_mean) / inner._y_train_std)

    def _part_of_weights(self, rows: Rows) -> FloatArray | None:
        return None if self.weights is None else self.weights[rows]

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

    def moved(self, sd: FloatArray, fraction: float, people: People | None = None) -> Moved:
        """How far everybody's score moves, in units of ``sd`` (N,); of groups, their sums'."""
        count = SEARCHES_AGAIN if self.found.searched else REFITS
        if self.found.calibrated:
            none = "calibrated answers are not compared with refits"
            return Moved(np.full(len(sd), np.nan), 0, 0.0, none)
        begin = time.process_time()
        total, made, failure = np.zeros(len(sd)), 0, ""
        # Fresh others of the released size: what halves show of the steps varies as much.
        share = fraction if fraction < 1.0 else 0.5
        classes = hasattr(self.found.inner, "classes_")
        units = None if people is None else people.codes
        parts = parts_of(self.y, share, count, Key(20262), classes=classes, units=units)
        for number, rows in enumerate(parts):
            if self.lacks_a_class(rows):
                failure = "a part of the records lacks a class"
                break
            try:
                scores, held = self._again(share, number, rows, single=people is None)
                gap = (scores - held if people is None else people.summed(scores - held)) / sd
            except InputError as error:
                failure = str(error).rstrip(".")
                break
            total, made = total + gap**2, made + 1
            hardly = made == FIRST_REFITS and float(np.max(total / made)) <= HARDLY**2
            if hardly and not self.found.may_jump:
                break
        seconds = time.process_time() - begin
        if made < FIRST_REFITS:
            return Moved(np.full(len(sd), np.nan), made, seconds, failure)
        return Moved(np.sqrt(total / made), made, seconds)

    def _again(
        self, share: float, number: int, rows: Rows, *, single: bool
    ) -> tuple[FloatArray, FloatArray]:
        """The scores by a refit of the whole, and by one with what it learned held."""
        seen = self.seen.setdefault((share, single), [])
        if number >= len(seen):
            seen.append((self.scores(rows), self.held(rows)))
        return seen[number]


def fits_the_same(whole: WholeFit, at_most: float | None = None) -> bool:
    """Whether a fit on all records gives the released scores again.

    ``at_most`` is the share of their spread by which one fit may differ; by default several are
    made of a solver that stops early by chance.
    """
    with warnings.catch_warnings():
        # Fitted on a frame and asked with its numbers: the columns are the same.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        released = score_records(whole.found.inner, whole.found.design, whole.y)
    everybody = np.arange(len(whole.y))
    refits = [whole.scores(everybody)]
    spread = max(float(np.std(refits[0])), 1e-300)
    apart = _apart(released, refits[0])
    if at_most is not None:
        return apart <= at_most * spread
    allowed = SAME_FIT * spread
    if apart > allowed:
        refits += [whole.scores(everybody) for _ in range(SAME_REFITS - 1)]
        apart = min(_apart(released, each) for each in refits)
        by_chance = max(_apart(*two) for two in combinations(refits, 2))
        allowed = max(allowed, min(by_chance, MOST_APART * spread))
    return apart <= allowed


def alike(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Whether answers about the same records are the same, but for the rounding of a network."""
    if first.shape != second.shape or first.dtype.kind not in "fiub":
        return bool(np.array_equal(first, second))
    if not np.isfinite(first).all():
        return bool(np.array_equal(first, second, equal_nan=True))
    first, second = (each.astype(np.float64) for each in (first, second))
    return bool(np.mean((first - second) ** 2) <= REPEATED**2 * np.mean(first.var(axis=0)))


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


def parts_of(
    y: Labels,
    fraction: float,
    count: int,
    key: Key,
    *,
    classes: bool,
    units: Rows | None = None,
) -> list[Rows]:
    """Random parts of the records in pairs, as far apart as can be: halves are complementary.

    Each class is spread evenly, so that one of two records or more is in both halves.  Where
    ``units`` has the number of each record's group, groups are drawn whole, each with the class of
    its first record.
    """
    generator = key.generator()
    labels = y if units is None else y[np.unique(units, return_index=True)[1]]
    size = len(labels)
    kept = min(max(2, round(fraction * size)), size - 1)
    found: list[Rows] = []
    for _ in range(count // 2):
        order = generator.permutation(size)
        if classes:
            # multiples of the golden section fill the unit interval evenly, class by class
            ranks = np.lexsort((generator.random(size), labels))
            order = ranks[np.argsort((np.arange(size) * _GOLDEN + generator.random()) % 1.0)]
        for some in (order[:kept], order[-kept:]):
            inside = np.isin(np.arange(size), some)
            found.append(np.flatnonzero(inside if units is None else inside[units]))
    return found
