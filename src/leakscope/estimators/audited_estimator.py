"""Any estimator, with the leakage of its own records beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leakscope.auditing.audit import as_given, examined
from leakscope.data.datasets import names_of
from leakscope.errors import told_in_python
from leakscope.settings.audit import MODEL_DEFAULTS, ModelSettings
from leakscope.subjects.subject import Asked

Method = TypeVar("Method", bound=Callable[..., Any])


def _has(name: str) -> Callable[[Method], Method]:
    """Have a method where the inner estimator, fitted or not yet, has it."""

    def check(audited: Any) -> bool:
        getattr(getattr(audited, "estimator_", audited.estimator), name)
        return True

    found: Callable[[Method], Method] = available_if(check)
    return found


def frame_ids(X: Any) -> list[int | str] | None:
    """The ids that a pandas frame brings along: its index, unless it merely counts.

    An index of several levels, or one that repeats, is no id: records are then known by their row
    numbers.
    """
    if not isinstance(X, pd.DataFrame) or X.index.nlevels > 1:
        return None
    index = X.index
    if index.equals(pd.RangeIndex(len(X))) or bool(index.hasnans):
        return None
    ids: list[int | str] = list(names_of(index).names)
    return ids if len(set(ids)) == len(ids) else None


class AuditedEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that knows its own records' leakage.

    ``fit`` fits a copy of the estimator and audits that very model, as ``leakscope.audit(X, y,
    model=...)`` does; everything else is the estimator's own.  A search over it sees both what a
    penalty costs and what it hides.

    Parameters
    ----------
    estimator
        Any that ``leakscope.audit(X, y, model=...)`` takes.  Where laws follow from one fit, a fit
        costs little more than its own; of a forest or a network a few models are trained each time.
    question, fraction, observes
        As in ``leakscope.audit``; they belong to laws of one fit.

    Attributes
    ----------
    estimator_
        The fitted copy.
    leakage_
        (n,) the advantage of the best test against each record, in the order of X.
    kl_, auc_, trusted_
        (n,) KL(without || with), the AUC, and whether the record's laws are trusted.
    tpr_at_fpr_
        True-positive rates by false-positive rate, 0.01 and 0.001, each (n,).
    record_ids_, ranking_
        The ids in the order of X, and most exposed first.
    result_
        The audit itself, with its verdict and warnings, which ``fit`` does not show.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope.estimators import AuditedEstimator
    >>> X, y = load_diabetes(return_X_y=True)
    >>> weak = AuditedEstimator(Ridge(alpha=0.1)).fit(X, y)
    >>> strong = AuditedEstimator(Ridge(alpha=10.0)).fit(X, y)
    >>> bool(weak.leakage_.max() > strong.leakage_.max()), weak.score(X, y) > strong.score(X, y)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        question: str = MODEL_DEFAULTS.question,
        fraction: float | None = MODEL_DEFAULTS.fraction,
        observes: str | None = MODEL_DEFAULTS.observes,
    ) -> None:
        self.estimator = estimator
        self.question = question
        self.fraction = fraction
        self.observes = observes

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        record_ids: Sequence[Any] | None = None,
    ) -> Self:
        """Fit a copy of the estimator, and audit it."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, y, **weights)
        asked = Asked(
            X=X,
            y=y,
            model=self.estimator_,
            sample_weight=sample_weight,
            record_ids=frame_ids(X) if record_ids is None else record_ids,
            chosen=as_given(ModelSettings, self._asked()),
        )
        with told_in_python():
            self.result_ = examined(asked, explain=0)
        self.leakage_ = self.result_.advantage
        self.kl_ = self.result_.kl
        self.auc_ = self.result_.auc
        self.tpr_at_fpr_ = dict(self.result_.tpr_at_fpr)
        self.trusted_ = self.result_.trusted
        self.record_ids_ = self.result_.record_ids
        self.ranking_ = self.result_.ranking()
        return self

    def _asked(self) -> dict[str, Any]:
        """What differs from the defaults: a model without laws of one fit has none of these."""
        given = {name: getattr(self, name) for name in ("question", "fraction", "observes")}
        return {n: value for n, value in given.items() if value != getattr(MODEL_DEFAULTS, n)}

    def predict(self, X: Any) -> NDArray[Any]:
        """What the estimator predicts."""
        check_is_fitted(self)
        found: NDArray[Any] = self.estimator_.predict(X)
        return found

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The estimator's probabilities."""
        check_is_fitted(self)
        found: NDArray[Any] = self.estimator_.predict_proba(X)
        return found

    @_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The estimator's scores."""
        check_is_fitted(self)
        found: NDArray[Any] = self.estimator_.decision_function(X)
        return found

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The estimator's own score: R² or accuracy."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **weights))

    def to_frame(self) -> pd.DataFrame:
        """``result_.to_frame()``: every record, most exposed first."""
        check_is_fitted(self)
        return self.result_.to_frame()

    @property
    def classes_(self) -> NDArray[Any]:
        """The estimator's classes."""
        found: NDArray[Any] = self.estimator_.classes_
        return found

    @property
    def n_features_in_(self) -> int:
        """How many features it was fitted on."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, where it was fitted on a frame."""
        found: NDArray[Any] = self.estimator_.feature_names_in_
        return found

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.target_tags, tags.input_tags = own.target_tags, own.input_tags
        tags.target_tags.required, tags.target_tags.multi_output = True, False
        return tags
