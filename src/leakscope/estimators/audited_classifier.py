"""Gaussian-process classification that stores what its answers give away about each record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.estimators.audited_model import AuditedModel
from leakscope.estimators.class_coding import Classes, coded
from leakscope.estimators.model_family import chosen_kernel, own_ids

# A variance that rounding has brought to zero is taken for this share of the largest.
LEAST_VARIANCE = 1e-14


class AuditedClassifier(ClassifierMixin, AuditedModel):  # type: ignore[misc]
    """Least-squares Gaussian-process classification that stores what its answers give away.

    Two classes are one output of -1/2 and +1/2, C classes are C outputs, one-hot minus 1/C, as in
    ``leakscope audit``.  What is released, and counted in ``leakage_``, are these outputs; their
    class alone gives away no more.

    Parameters
    ----------
    kernel, length_scale, kernel_variance, smoothness, depth, activation, weight_variance, \
bias_variance, noise_variance, fit_kernel_scale, route, inducing, error, release, \
output_noise_variance
        As in :class:`AuditedRegressor`; variances are in squared units of the coded target.

    Attributes
    ----------
    classes_
        (C,) the class labels, sorted.
    leakage_, kl_, auc_, trusted_, record_ids_, ranking_, result_, posterior_
        As in :class:`AuditedRegressor`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import leakscope
    >>> X, y = load_iris(return_X_y=True)
    >>> model = leakscope.AuditedClassifier(noise_variance=0.1).fit(X, y)
    >>> model.predict(X[::50]).tolist(), round(model.score(X, y), 2)
    ([0, 1, 2], 0.98)
    >>> model.ranking_[0], round(float(model.leakage_.max()), 2)
    (106, 0.41)
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, record_ids: Sequence[Any] | None = None) -> Self:
        """Audit the records and train on them; y holds class labels."""
        kernel = chosen_kernel(self)
        ids = own_ids(X) if record_ids is None else record_ids
        features, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        classes, codes = coded(labels)
        self.classes_ = classes.names
        self._train(features, classes.outputs(codes), kernel, ids)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """(q,) or (q, C) the latent mean over the deviation of a label's prediction."""
        return self._standardised(self._queries(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(q,) the class of the posterior mean."""
        queries = self._queries(X)
        mean = self.posterior_.mean(queries)
        codes = (mean > 0.0).astype(np.intp) if mean.ndim == 1 else np.argmax(mean, axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """(q, C) the chance that a label's prediction, noise included, falls to each class."""
        queries = self._queries(X)
        mean, latent = self.posterior_.at(queries)
        return self._classes().chances(mean, latent + self.posterior_.noise_variance)

    def answer(self, X: ArrayLike, random_state: Any = None) -> FloatArray:
        """(q,) or (q, C) the released outputs at these queries together.

        ``leakage_`` counts one answer at the record.  k of them in one call are worth one with a
        k-th of the output noise; a draw without it counts once however many rows are asked
        together.  Every further call is another draw, and composes.  None takes fresh entropy; a
        seed that others know takes the protection away.
        """
        return self._drawn(self._queries(X), random_state)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy of the released answers, in expectation over their randomness."""
        mean, variance = self._answer_laws(self._queries(X))
        least = LEAST_VARIANCE * float(np.max(variance, initial=1e-300))
        chances = self._classes().chances(mean, np.maximum(variance, least))
        labels = np.asarray(y)
        if labels.shape != (len(mean),):
            raise InputError(
                f"y must be {len(mean)} class labels, but its shape is {labels.shape}."
            )
        right = np.where(labels[:, None] == self.classes_, chances, 0.0).sum(axis=1)
        weight = np.ones(len(right)) if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(right, weights=weight))

    def _standardised(self, queries: FloatArray) -> FloatArray:
        mean, latent = self.posterior_.at(queries)
        sigma = np.sqrt(latent + self.posterior_.noise_variance)
        return np.asarray(mean / sigma if mean.ndim == 1 else mean / sigma[:, None])

    def _classes(self) -> Classes:
        return Classes(self.classes_)
