"""Estimators of scikit-learn that know what they give away about each of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.audit import examined
from leakscope.data.datasets import names_of
from leakscope.errors import InputError
from leakscope.kernels.kernel import checked_kernel
from leakscope.settings.audit import AUDIT_DEFAULTS
from leakscope.subjects.subject import Asked


def frame_ids(X: Any) -> list[int | str] | None:
    """The ids that a pandas frame brings along: its index, unless it counts, repeats or nests."""
    if not isinstance(X, pd.DataFrame) or X.index.nlevels > 1:
        return None
    index = X.index
    if index.equals(pd.RangeIndex(len(X))) or bool(index.hasnans) or not index.is_unique:
        return None
    ids: list[int | str] = list(names_of(index).names)
    return ids


class Audited(BaseEstimator):  # type: ignore[misc]
    """What all audited estimators store of their audit."""

    def _audit(self, asked: Asked) -> None:
        self.result_ = examined(asked, explain=0)
        self.leakage_, self.confirmed_ = self.result_.advantage, self.result_.confirmed
        self.kl_, self.auc_ = self.result_.kl, self.result_.auc
        self.tpr_at_fpr_ = dict(self.result_.tpr_at_fpr)
        self.record_ids_, self.ranking_ = self.result_.record_ids, self.result_.ranking()

    def to_frame(self) -> pd.DataFrame:
        """``result_.to_frame()``: every record, most exposed first."""
        check_is_fitted(self)
        return self.result_.to_frame()


# What the estimator has, the audited one has.
DELEGATED = (
    "predict_proba", "decision_function", "classes_", "n_features_in_", "feature_names_in_",
)  # fmt: skip


class AuditedEstimator(MetaEstimatorMixin, Audited):  # type: ignore[misc]
    """Any estimator, with the leakage of its own records beside it.

    ``fit`` fits a copy of the estimator and audits that very model, as ``leakscope.audit(X, y,
    model=...)`` does; everything else is the estimator's own.  A search over it sees both what a
    penalty costs and what it hides.

    Parameters
    ----------
    estimator
        Any that ``leakscope.audit(X, y, model=...)`` takes.  Where laws follow from one fit, a fit
        costs little more than its own; of a forest or a network a few models are trained each time.

    Attributes
    ----------
    estimator_
        The fitted copy.
    leakage_, kl_, auc_, confirmed_
        (n,) the advantage of the best test against each record, KL(without || with), the AUC, and
        whether the record's laws are confirmed, in the order of X.
    tpr_at_fpr_
        True-positive rates by false-positive rate, 0.01 and 0.001, each (n,).
    record_ids_, ranking_
        The ids in the order of X (a pandas frame's index where it has one), and most exposed first.
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

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

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
        ids = frame_ids(X) if record_ids is None else record_ids
        self._audit(
            Asked(X=X, y=y, model=self.estimator_, sample_weight=sample_weight, record_ids=ids)
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """What the estimator predicts."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The estimator's own score: R² or accuracy."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **weights))

    def __getattr__(self, name: str) -> Any:
        """What else the estimator has: probabilities, scores, classes, features."""
        held = vars(self)
        inner = held.get("estimator_", held.get("estimator"))
        if name in DELEGATED and inner is not None:
            return getattr(inner, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.target_tags, tags.input_tags = own.target_tags, own.input_tags
        tags.target_tags.required, tags.target_tags.multi_output = True, False
        return tags


class AuditedProcess(Audited):
    """A Gaussian process with its audit, what the regressor and the classifier share."""

    def __init__(
        self,
        kernel: str | kernels.Kernel = AUDIT_DEFAULTS.kernel,
        *,
        noise_variance: float | str = AUDIT_DEFAULTS.noise_variance,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance

    def _train(
        self, features: FloatArray, targets: FloatArray, record_ids: Sequence[Any] | None
    ) -> None:
        """Audit, then train on the kernel and noise that were audited."""
        kernel = kernels.by_name(self.kernel) if isinstance(self.kernel, str) else self.kernel
        kernel = checked_kernel(kernel, features)
        given = self.noise_variance
        level = given.item() if isinstance(given, np.generic) else given
        self._audit(
            Asked(X=features, y=targets, model=lood.Process(kernel, level), record_ids=record_ids)
        )
        level = self.result_.laws.separation.noise_variance
        self.posterior_ = lood.posterior(features, targets, kernel=kernel, noise_variance=level)

    def _answers(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self.posterior_.mean(validate_data(self, X, dtype=np.float64, reset=False))


class AuditedRegressor(RegressorMixin, AuditedProcess):  # type: ignore[misc]
    """Gaussian-process regression that stores what a draw of it gives away about each record.

    X and y are used as they are: scaling belongs in a pipeline.  Attributes are those of
    :class:`AuditedEstimator`, of one draw of the latent function at each record, and
    ``posterior_``, the trained process, which holds the records.

    Parameters
    ----------
    kernel
        A name in :data:`leakscope.settings.KERNELS`, or a kernel from :mod:`leakscope.kernels`.
        Its parameters stay fixed: nothing is optimised.
    noise_variance
        In squared units of y (scikit-learn's ``alpha``), or ``"marginal_likelihood"`` or
        ``"leave_one_out"``.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(60, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = leakscope.AuditedRegressor(leakscope.kernels.rbf(1.0), noise_variance=0.01)
    >>> round(model.fit(X, y).score(X, y), 2), round(float(model.leakage_.max()), 2)
    (0.98, 0.37)
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, record_ids: Sequence[Any] | None = None) -> Self:
        """Audit the records and train on them; y is (n,) or (n, C)."""
        ids = frame_ids(X) if record_ids is None else record_ids
        features, targets = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2, multi_output=True, y_numeric=True
        )
        self._train(features, np.asarray(targets, dtype=np.float64), ids)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """(q,) or (q, C) the posterior mean."""
        return self._answers(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class AuditedClassifier(ClassifierMixin, AuditedProcess):  # type: ignore[misc]
    """Least-squares Gaussian-process classification that stores what its outputs give away.

    Two classes are one output of -1/2 and +1/2, C classes are C outputs, one-hot minus 1/C, as in
    ``leakscope audit``.  These outputs are counted in ``leakage_``; their class gives away no more.
    Parameters and attributes are those of :class:`AuditedRegressor`, and ``classes_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import leakscope
    >>> X, y = load_iris(return_X_y=True)
    >>> model = leakscope.AuditedClassifier(noise_variance=0.1).fit(X, y)
    >>> model.predict(X[::50]).tolist(), round(model.score(X, y), 2)
    ([0, 1, 2], 0.99)
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, record_ids: Sequence[Any] | None = None) -> Self:
        """Audit the records and train on them; y holds class labels."""
        ids = frame_ids(X) if record_ids is None else record_ids
        features, given = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        labels = column_or_1d(given, warn=True)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise InputError(
                f"the target holds one class only, {str(self.classes_[0])!r}; two are needed."
            )
        outputs = codes - 0.5 if count == 2 else np.eye(count)[codes] - 1.0 / count
        self._train(features, np.asarray(outputs, dtype=np.float64), ids)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """(q,) or (q, C) the posterior means of the outputs."""
        return self._answers(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(q,) the class of the posterior mean."""
        mean = self._answers(X)
        codes = (mean > 0.0).astype(np.intp) if mean.ndim == 1 else np.argmax(mean, axis=1)
        return np.asarray(self.classes_[codes])
