"""Gaussian processes as scikit-learn estimators that know what they give away about each record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.audit import examined
from leakscope.errors import InputError, told_in_python
from leakscope.estimators.audited_estimator import frame_ids
from leakscope.kernels.kernel import checked_kernel
from leakscope.settings.audit import AUDIT_DEFAULTS, AuditSettings
from leakscope.settings.setting import validated
from leakscope.subjects.subject import Asked

if TYPE_CHECKING:
    import pandas as pd


class AuditedProcess(BaseEstimator):  # type: ignore[misc]
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
        asked = Asked(
            X=features,
            y=targets,
            kernel=kernel,
            record_ids=record_ids,
            settings=validated(AuditSettings, noise_variance=level, sensitivity=False),
        )
        with told_in_python():
            self.result_ = examined(asked, explain=0)
        level = self.result_.laws.separation.noise_variance
        self.posterior_ = lood.posterior(features, targets, kernel=kernel, noise_variance=level)
        self.leakage_ = self.result_.advantage
        self.kl_ = self.result_.kl
        self.auc_ = self.result_.auc
        self.trusted_ = self.result_.trusted
        self.record_ids_ = self.result_.record_ids
        self.ranking_ = self.result_.ranking()

    def to_frame(self) -> pd.DataFrame:
        """``result_.to_frame()``: every record, most exposed first."""
        check_is_fitted(self)
        return self.result_.to_frame()

    def _answers(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self.posterior_.mean(validate_data(self, X, dtype=np.float64, reset=False))


class AuditedRegressor(RegressorMixin, AuditedProcess):  # type: ignore[misc]
    """Gaussian-process regression that stores what a draw of it gives away about each record.

    X and y are used as they are: scaling belongs in a pipeline.

    Parameters
    ----------
    kernel
        A name in :data:`leakscope.settings.KERNELS`, or a kernel from :mod:`leakscope.kernels`.
        Its parameters stay fixed: nothing is optimised.
    noise_variance
        In squared units of y (scikit-learn's ``alpha``), or ``"marginal_likelihood"`` or
        ``"leave_one_out"``.

    Attributes
    ----------
    leakage_, kl_, auc_
        (n,) advantage of the best test, KL(without || with) and AUC of one draw of the latent
        function at each record, in the order of X.
    trusted_, record_ids_, ranking_
        Whether the numbers are trusted, the ids (a pandas frame's index where it has one), and the
        ids with the most exposed first.
    result_, posterior_
        The audit, with its assumptions and warnings; the trained process, which holds the records.

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
            self,
            X,
            y,
            dtype=np.float64,
            ensure_min_samples=2,
            multi_output=True,
            y_numeric=True,
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
    >>> model.ranking_[0], round(float(model.leakage_.max()), 2)
    (106, 0.41)
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
