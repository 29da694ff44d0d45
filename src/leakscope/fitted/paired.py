"""Models that are not smooth: both answers about a record from the same fit.

A fit on a random part of the records answers for every record both ways.  Of a record that is in
the part, its own answer is the one with it, and its answer without it is what the fit would say had
it not been there; of a record that is not in the part it is the other way round.  So one fit gives
a pair of answers for every record, in which all else is the same: the shift between the two has no
noise of its own (docs/fitted.md).

A family (`Family`) says how the answers of one kind of estimator turn when a record comes or goes.
The table `FAMILIES` has them by the name of the estimator's class, and is the one place where a new
one is added.  `leakscope.fitted.paired_laws` makes laws of the pairs, and checks them by refits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.fitted import exact, held_sets, margins
from leakscope.fitted.problem import FittedModel, NoLawsError
from leakscope.fitted.refits import (
    Labels,
    Rows,
    WholeFit,
    class_names,
    fits_the_same,
    parts_of,
    score_records,
)

Mask = npt.NDArray[np.bool_]
Turned = Callable[[Any, FloatArray, Labels, Mask], FloatArray]

# How many parts are fitted, by records times features of what reaches the model; a model that
# chooses its own settings takes many fits each time.
FITS = ((3e4, 256), (1e5, 64), (1e6, 32))
FITS_OF_CHOSEN = ((1e4, 64),)
FEWEST_FITS = 16
# Of smooth models with all that they learn, by records times features times the fits of a search.
FITS_OF_WHOLE = ((1e5, 256), (1e6, 128), (1e7, 32))


@dataclass(frozen=True)
class Family:
    """How one fit answers about a record that comes or goes.

    Attributes
    ----------
    turned
        Of a fitted estimator, the features that reach it (N x d), the labels and who is in its
        training set (N,): the score of every record where that one record alone is taken out, if
        it is in, or put in, if it is not; NaN where that is not known.  Scores are those of
        `refits.score_records`.
    observes
        What an attacker sees: ``"prediction"`` of a quantity, ``"log_odds"`` or ``"scores"`` of the
        own label.
    held
        What stays as it is while a record comes or goes, in words; empty where nothing is held and
        the answers are exact.
    refusal
        Why an estimator of this class cannot be taken, in a sentence; None where it can.
    suits
        Whether an estimator of this class belongs here; all do where left out.
    corner
        Of losses with a corner, on which answers with the record may lie exactly: where it is for
        every record, given an estimator, the labels and the mean score without the record, and
        +1 where scores below it are moved up, -1 where those above are moved down.
    counted
        Whether its laws are counted from the records themselves, without fits
        (`leakscope.fitted.neighbours`).
    """

    turned: Turned
    observes: Literal["prediction", "log_odds", "scores"]
    held: str = ""
    refusal: Callable[[Any], str | None] = lambda inner: None
    suits: Callable[[Any], bool] = lambda inner: True
    corner: Callable[[Any, Labels, FloatArray], tuple[FloatArray, FloatArray]] | None = None
    counted: bool = False


ACTIVE = "the set of coefficients that are not zero"
MARGIN = "the set of records within the margin"
OUTLIERS = "the set of outliers"
FREE = "the set of support vectors on the margin"
PRECISIONS = "the precision of each coefficient"
LEARNED = "what is learned beside the coefficients"

_LASSO = Family(held_sets.lasso, "prediction", ACTIVE, held_sets.lasso_refusal)
_L1 = Family(
    held_sets.logistic, "log_odds", ACTIVE, held_sets.logistic_refusal,
    suits=lambda inner: held_sets.l1_share(inner) > 0.0,
)  # fmt: skip

FAMILIES: dict[str, Family] = {
    "Lasso": _LASSO,
    "ElasticNet": _LASSO,
    "ElasticNetCV": _LASSO,
    "LassoCV": _LASSO,
    "MultiTaskElasticNetCV": _LASSO,
    "MultiTaskLassoCV": _LASSO,
    "LassoLars": _LASSO,
    "LassoLarsCV": _LASSO,
    "LassoLarsIC": _LASSO,
    "ARDRegression": Family(held_sets.relevance, "prediction", PRECISIONS),
    "LogisticRegression": _L1,
    "LogisticRegressionCV": _L1,
    "LinearSVC": Family(
        held_sets.squared_hinge, "scores", MARGIN,
        suits=lambda inner: inner.loss == "squared_hinge",
    ),
    "LinearSVR": Family(
        held_sets.squared_insensitive, "prediction", "the set of records beyond epsilon",
        suits=lambda inner: inner.loss == "squared_epsilon_insensitive",
    ),
    "GaussianNB": Family(exact.naive_bayes, "log_odds"),
    "MultinomialNB": Family(exact.multinomial, "log_odds"),
    "ComplementNB": Family(exact.complement, "log_odds"),
    "BernoulliNB": Family(exact.bernoulli, "log_odds"),
    "CategoricalNB": Family(exact.categorical, "log_odds", refusal=exact.categorical_refusal),
    "LinearDiscriminantAnalysis": Family(
        exact.linear_discriminant, "log_odds", refusal=exact.discriminant_refusal
    ),
    "QuadraticDiscriminantAnalysis": Family(
        exact.quadratic_discriminant, "log_odds", refusal=exact.discriminant_refusal
    ),
    "NearestCentroid": Family(exact.nearest_centroid, "scores", refusal=exact.centroid_refusal),
    "KNeighborsClassifier": Family(
        margins.unknown, "scores", refusal=exact.neighbours_refusal, counted=True
    ),
    "HuberRegressor": Family(held_sets.huber, "prediction", OUTLIERS),
    "SVC": Family(
        margins.svc, "scores", FREE, margins.refusal, margins.curved, margins.at_margin
    ),
    "SVR": Family(
        margins.svr, "prediction", FREE, margins.refusal, margins.curved, margins.at_tube
    ),
    "NuSVC": Family(
        margins.svc, "scores", FREE, margins.refusal, margins.curved, margins.at_margin
    ),
    "NuSVR": Family(margins.nu_svr, "prediction", FREE, margins.refusal, margins.curved),
}  # fmt: skip


# Linear machines whose loss has a corner: what a record changes is seen between fits only.
WITH_CORNERS: dict[str, Family] = {
    "LinearSVC": Family(
        margins.unknown, "scores", "", margins.linear_refusal, corner=margins.at_margin
    ),
    "LinearSVR": Family(margins.unknown, "prediction", corner=margins.at_tube),
    "SVC": Family(margins.unknown, "scores", "", margins.refusal, corner=margins.at_margin),
    "SVR": Family(margins.unknown, "prediction", "", margins.refusal, corner=margins.at_tube),
    "NuSVC": Family(margins.unknown, "scores", "", margins.refusal, corner=margins.at_margin),
    "QuantileRegressor": Family(margins.unknown, "prediction", corner=margins.at_target),
}


_RIDGE = Family(held_sets.ridge, "prediction", LEARNED, held_sets.smooth_refusal)
_CLASSES = Family(held_sets.ridge, "scores", LEARNED, held_sets.smooth_refusal)
_LOGISTIC = Family(held_sets.logistic, "log_odds", LEARNED, held_sets.smooth_refusal)

# Smooth models have laws of one fit, as long as what they learn beside their coefficients (steps, a
# penalty that is chosen) hardly moves with the records; where it does, the whole is paired.
SMOOTH: dict[str, Family] = {
    "Ridge": _RIDGE,
    "RidgeCV": _RIDGE,
    "LinearRegression": _RIDGE,
    "RidgeClassifier": _CLASSES,
    "RidgeClassifierCV": _CLASSES,
    "LogisticRegression": _LOGISTIC,
    "LogisticRegressionCV": _LOGISTIC,
}


def family_of(inner: Any) -> Family | None:
    """The family of an estimator, by its class or the nearest parent's; None where it has none."""
    return _in_tables(inner, FAMILIES, WITH_CORNERS)


def whole_family_of(inner: Any) -> Family | None:
    """That of a smooth estimator, for fits of all that it learns; None where it has none."""
    return _in_tables(inner, SMOOTH)


def _turn_alike(one: Any, other: Any) -> bool:
    """Whether the answers of two estimators turn by one rule, as where a search chose both."""
    if type(one) is type(other) and family_of(one) is family_of(other):
        return True
    first, second = (
        {
            (found.turned, found.observes, found.corner, found.counted)
            for found in (family_of(each), whole_family_of(each))
            if found is not None
        }
        for each in (one, other)
    )
    return not first.isdisjoint(second)


def _in_tables(inner: Any, *tables: dict[str, Family]) -> Family | None:
    for name in class_names(inner):
        for table in tables:
            found = table.get(name)
            if found is not None and found.suits(inner):
                return found
    return None


@dataclass(frozen=True, eq=False)
class Pairs:
    """Answers about every record by fits on random parts, with it and without it.

    Attributes
    ----------
    inside
        (K, N) whether the record was in the part.
    without, within
        (K, N) the score where the record is out, and where it is in, the others as they are; NaN
        where it is not known.
    """

    inside: Mask
    without: FloatArray
    within: FloatArray

    @property
    def fits(self) -> int:
        """How many there are."""
        return len(self.inside)

    @property
    def own(self) -> FloatArray:
        """(K, N) what the fits answer themselves, not turned."""
        return np.where(self.inside, self.within, self.without)


@dataclass(frozen=True, eq=False)
class PairedModel:
    """An estimator of a family with its records, as `FittedModel` is one of a convex problem."""

    whole: WholeFit
    family: Family
    name: str
    # What fits showed already, by the share of the records: other questions ask the same.
    seen: dict[float, Pairs] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, whole: WholeFit, family: Family) -> PairedModel:
        """Of an estimator as it was fitted on these records; refused where it was not."""
        inner = whole.found.inner
        refusal = family.refusal(inner)
        if refusal is None and whole.weights is not None:
            refusal = f"{type(inner).__name__} is audited without sample weights only"
        if refusal is None and whole.found.calibrated:
            refusal = "a calibrated answer is not that of the model inside"
        if refusal is not None:
            raise NoLawsError(f"{refusal}; `leakscope audit` examines any estimator.")
        inside = ", ".join(f"{k}={v}" for k, v in _own_parameters(inner).items())
        around = [type(step).__name__ for step in whole.found.steps]
        name = " → ".join([*around, f"{type(inner).__name__}({inside})"])
        found = cls(whole, family, name)
        found._require_same_fit()
        return found

    def _require_same_fit(self) -> None:
        if not fits_the_same(self.whole):
            inner = self.whole.found.inner
            bad = ~np.isfinite(score_records(inner, self.whole.found.design, self.whole.y))
            if bad.any():
                raise InputError(
                    f"This {type(inner).__name__} gives {int(bad.sum())} of {len(bad)} records, "
                    f"first {int(np.argmax(bad))}, no finite answer; drop constant columns, and "
                    "give records of two classes or more."
                )
            raise InputError(
                f"This {type(self.whole.found.inner).__name__} is not what a fit on these records "
                "gives: it was fitted on other data, without some of these records, or has not "
                "converged; pass the records that fit was given, or raise max_iter."
            )

    # Single records come and go.
    codes: ClassVar[None] = None
    unit: ClassVar[Literal["record"]] = "record"

    def in_groups(self, codes: Rows | None) -> PairedModel:
        """Itself; what a whole group changes of such a model is not known."""
        if codes is not None:
            raise NoLawsError(
                f"for {self.name} only the effect of single records is known, not that of whole "
                "groups."
            )
        return self

    def with_whole(self, whole: WholeFit) -> PairedModel:
        """The same family inside another estimator."""
        return PairedModel(whole, self.family, self.name)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.whole.y)

    @property
    def task(self) -> Literal["regression", "classification"]:
        """What the model does."""
        return "regression" if self.family.observes == "prediction" else "classification"

    @property
    def loss(self) -> str:
        """The loss by which its answers are priced."""
        if self.family.observes != "log_odds":
            return "square"
        return "logistic" if len(self.whole.found.inner.classes_) == 2 else "softmax"

    @property
    def targets(self) -> FloatArray:
        """The labels as numbers: of a quantity its values, of classes their codes."""
        if self.task == "regression":
            return np.asarray(self.whole.y, dtype=np.float64)
        return np.searchsorted(self.whole.found.inner.classes_, self.whole.y).astype(np.float64)

    @property
    def parameters(self) -> int | None:
        """How many coefficients it has; None where it has none."""
        coefficients = getattr(self.whole.found.inner, "coef_", None)
        return None if coefficients is None else int(np.size(coefficients))

    @property
    def fits(self) -> int:
        """How many parts are fitted."""
        size = float(self.records * np.shape(self.whole.found.design)[1])
        table = FITS_OF_CHOSEN if self.whole.chosen else FITS
        if self.family.held == LEARNED:
            size, table = size * self.whole.found.trials, FITS_OF_WHOLE
        found = next((count for most, count in table if size <= most), FEWEST_FITS)
        # A fit that answers one way only says half as much.
        return 2 * found if self.family.turned is margins.unknown else found

    def parts(self, fraction: float) -> Sequence[Rows]:
        """Random parts of the records, drawn apart: what varies between them is the spread."""
        labels, key = self.whole.y, Key(20266)
        if self.task == "regression":
            return parts_of(labels, fraction, 2 * self.fits, key, classes=False)[::2]
        # Each record comes or goes by itself, and with it the classes' shares; evenly spread only
        # where a class is so rare that parts lack it.
        drawn = parts_of(labels, fraction, 4 * self.fits, key, classes=False)[::2]
        values, codes = np.unique(labels, return_inverse=True)
        whole = [
            rows for rows in drawn if np.bincount(codes[rows], minlength=len(values)).min() > 1
        ]
        if len(whole) >= self.fits:
            return whole[: self.fits]
        return parts_of(labels, fraction, 2 * self.fits, key, classes=True)[::2]

    def pairs(self, fraction: float) -> Pairs:
        """Fit every part, and ask it about every record both ways."""
        if fraction not in self.seen:
            with warnings.catch_warnings():
                # Fitted on a frame and asked with its numbers: the columns are the same.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                self.seen[fraction] = self._pairs(self.parts(fraction))
        return self.seen[fraction]

    def _pairs(self, parts: Sequence[Rows]) -> Pairs:
        inside = np.zeros((len(parts), self.records), dtype=np.bool_)
        without, within = np.empty(inside.shape), np.empty(inside.shape)
        for number, rows in enumerate(parts):
            if self.whole.lacks_a_class(rows):
                raise InputError(
                    "A random half of the records lacks a class; use more records of the rarest "
                    "one."
                )
            inside[number, rows] = True
            inner, design = self.whole.fitted_on(rows)
            if not _turn_alike(inner, self.whole.found.inner):
                raise NoLawsError(
                    f"a search chose {type(inner).__name__} on a part of the records, and "
                    f"{type(self.whole.found.inner).__name__} on all of them, whose answers change "
                    "in other ways."
                )
            features = design.toarray() if hasattr(design, "toarray") else np.asarray(design)
            own = score_records(inner, features, self.whole.y)
            try:
                other = self.family.turned(inner, features, self.whole.y, inside[number])
            except np.linalg.LinAlgError as error:
                raise InputError(
                    "A fit on a random half of the records follows them exactly, so that what one "
                    "record changes is not defined; use a larger penalty, fewer features or more "
                    "records."
                ) from error
            without[number] = np.where(inside[number], other, own)
            within[number] = np.where(inside[number], own, other)
        return Pairs(inside, without, within)


Described = FittedModel | PairedModel


def _own_parameters(inner: Any) -> dict[str, Any]:
    """Those that were set, and what ``fit`` chose of them."""
    from sklearn.base import clone

    usual = clone(inner).__class__().get_params()
    found = {
        name: value
        for name, value in inner.get_params().items()
        if isinstance(value, (bool, int, float, str)) and value != usual.get(name)
    }
    for name in ("alpha", "l1_ratio", "C"):
        chosen: Any = getattr(inner, f"{name}_", None)
        value = np.ravel(chosen)
        # A chosen share of L1 may be none at all.
        if value.size == 1 and value[0] is not None:
            found[name] = float(value[0])
    return {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in found.items()}
