"""Gaussian-process regression that stores what its answers give away about each record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import validate_data

from leakscope._numerics.arrays import FloatArray
from leakscope.estimators.audited_model import AuditedModel
from leakscope.estimators.model_family import chosen_kernel, own_ids
from leakscope.kernels import Kernel
from leakscope.settings import AuditSettings

DEFAULTS = AuditSettings()


class AuditedRegressor(RegressorMixin, AuditedModel):  # type: ignore[misc]
    """Gaussian-process regression that stores what its answers give away about each record.

    Parameters
    ----------
    kernel
        A name in :data:`leakscope.settings.KERNELS`, or a kernel from
        :mod:`leakscope.kernels`.  Its parameters stay fixed: nothing is optimised.
    length_scale, kernel_variance, smoothness, depth, activation, weight_variance, bias_variance
        Of the named kernel, as in ``leakscope audit``; its own defaults where None.
    noise_variance
        In squared units of y as used (scikit-learn's ``alpha``), or ``"marginal_likelihood"`` or
        ``"leave_one_out"``.
    fit_kernel_scale
        Have that criterion choose a factor of the kernel too.
    route, inducing, error
        How to compute, as in ``leakscope.audit``; predictions go the same way.
    release
        What is handed out: ``"draw"``, one draw of the latent function, as a model trained at
        random gives; or ``"mean"``, which needs ``output_noise_variance``.
    output_noise_variance
        Of independent Gaussian noise on every answer, in squared units of y as used.
    normalize_y
        Take y minus its mean, divided by its standard deviation, as used; both stay fixed when a
        record leaves.  Predictions are in y's own units.

    Attributes
    ----------
    leakage_, kl_, auc_
        (n,) advantage of the best test, KL(without || with) and AUC of one released answer at
        each record, in the order of X.
    trusted_, record_ids_, ranking_
        As in :class:`LeakageAuditor`; ids are a pandas frame's index where it has one.
    result_
        The audit of a draw without output noise, with its assumptions and warnings.
    posterior_
        The trained process (:class:`leakscope.lood.Posterior`).  It holds the records.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(60, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> for added in (0.0, 0.1):
    ...     model = leakscope.AuditedRegressor(length_scale=1.0, noise_variance=0.01,
    ...                                        output_noise_variance=added).fit(X, y)
    ...     print(round(model.score(X, y), 2), round(model.leakage_.max(), 2))
    0.98 0.37
    0.77 0.07
    """

    def __init__(
        self,
        kernel: str | Kernel = DEFAULTS.kernel,
        *,
        length_scale: float | None = DEFAULTS.length_scale,
        kernel_variance: float | None = DEFAULTS.kernel_variance,
        smoothness: float | None = DEFAULTS.smoothness,
        depth: int | None = DEFAULTS.depth,
        activation: str | None = DEFAULTS.activation,
        weight_variance: float | None = DEFAULTS.weight_variance,
        bias_variance: float | None = DEFAULTS.bias_variance,
        noise_variance: float | str = DEFAULTS.noise_variance,
        fit_kernel_scale: bool = DEFAULTS.fit_kernel_scale,
        route: str = DEFAULTS.route,
        inducing: int = DEFAULTS.inducing,
        error: float = DEFAULTS.error,
        release: str = "draw",
        output_noise_variance: float = 0.0,
        normalize_y: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            length_scale=length_scale,
            kernel_variance=kernel_variance,
            smoothness=smoothness,
            depth=depth,
            activation=activation,
            weight_variance=weight_variance,
            bias_variance=bias_variance,
            noise_variance=noise_variance,
            fit_kernel_scale=fit_kernel_scale,
            route=route,
            inducing=inducing,
            error=error,
            release=release,
            output_noise_variance=output_noise_variance,
        )
        self.normalize_y = normalize_y

    def fit(self, X: ArrayLike, y: ArrayLike, *, record_ids: Sequence[Any] | None = None) -> Self:
        """Audit the records and train on them; y is (n,) or (n, C)."""
        kernel = chosen_kernel(self)
        ids = own_ids(X) if record_ids is None else record_ids
        features, targets = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            ensure_min_samples=2,
            multi_output=True,
            y_numeric=True,
        )
        targets = np.asarray(targets, dtype=np.float64)
        self._y_mean = np.zeros(targets.shape[1:])
        self._y_scale = np.ones(targets.shape[1:])
        if self.normalize_y:
            spread = targets.std(axis=0)
            self._y_mean = targets.mean(axis=0)
            self._y_scale = np.where(spread > 0.0, spread, 1.0)
        self._train(features, (targets - self._y_mean) / self._y_scale, kernel, ids)
        return self

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """(q,) or (q, C) the posterior mean; with ``return_std`` also the latent deviation."""
        queries = self._queries(X)
        if not return_std:
            return self._in_own_units(self.posterior_.mean(queries))
        mean, variance = self.posterior_.at(queries)
        sigma = np.sqrt(variance)
        spread = sigma * self._y_scale if mean.ndim == 1 else sigma[:, None] * self._y_scale
        return self._in_own_units(mean), np.asarray(spread)

    def answer(self, X: ArrayLike, random_state: Any = None) -> FloatArray:
        """What is released at these queries together: a draw or the mean, and its noise.

        ``leakage_`` counts one answer at the record.  k of them in one call are worth one with a
        k-th of the output noise; a draw without it counts once however many rows are asked
        together.  Every further call is another draw, and composes.  None takes fresh entropy; a
        seed that others know takes the protection away.
        """
        return self._in_own_units(self._drawn(self._queries(X), random_state))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The R^2 of the released answers, in expectation over their randomness.

        It is ``r2_score`` of ``predict`` minus what the variance of an answer costs.
        """
        queries = self._queries(X)
        mean, variance = self._answer_laws(queries)
        means = self._in_own_units(mean)
        truth = np.asarray(y, dtype=np.float64).reshape(means.shape)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        around = truth - np.average(truth, axis=0, weights=weight)
        total = np.tensordot(weight, around**2, axes=1)
        cost = np.dot(weight, variance) * self._y_scale**2
        shares = np.divide(cost, total, out=np.zeros_like(cost + total), where=total > 0.0)
        return float(r2_score(truth, means, sample_weight=sample_weight) - np.mean(shares))

    def _in_own_units(self, values: FloatArray) -> FloatArray:
        return np.asarray(values * self._y_scale + self._y_mean)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
