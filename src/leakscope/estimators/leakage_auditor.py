"""The audit as a scikit-learn estimator: ``fit`` on records, ``leakage_`` of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from leakscope.errors import InputError
from leakscope.estimators.class_coding import coded
from leakscope.estimators.model_family import audited, chosen_kernel, own_ids
from leakscope.kernels import Kernel
from leakscope.settings import AuditSettings

if TYPE_CHECKING:
    import pandas as pd

DEFAULTS = AuditSettings()


class LeakageAuditor(BaseEstimator):  # type: ignore[misc]
    """How much a Gaussian process trained on X and y gives away about each record.

    ``leakscope.audit`` behind ``fit``: X and y are used as they are, so put scalers and encoders
    before it in a pipeline.  It predicts nothing; :class:`AuditedRegressor` and
    :class:`AuditedClassifier` do.

    Parameters
    ----------
    kernel
        A name in :data:`leakscope.settings.KERNELS`, or a kernel from
        :mod:`leakscope.kernels`.
    length_scale, kernel_variance, smoothness, depth, activation, weight_variance, bias_variance
        Of the named kernel, as in ``leakscope audit``; its own defaults where None.
    noise_variance
        In squared units of y, or ``"marginal_likelihood"`` or ``"leave_one_out"``.
    fit_kernel_scale
        Have that criterion choose a factor of the kernel too.
    route, inducing, error
        How to compute, as in ``leakscope.audit``: ``"auto"`` goes by kernel and size.
    task
        ``"regression"`` takes y as numbers, (n,) or (n, C); ``"classification"`` as class labels.
    sensitivity
        Whether to sweep the noise variance for each record's range of ranks; four more audits.

    Attributes
    ----------
    leakage_
        (n,) the advantage of the best test against each record, in the order of X; with groups,
        of each group, in the order of ``record_ids_``.
    kl_, auc_
        (n,) KL(without || with), and the AUC.
    trusted_
        (n,) whether float64 resolves the record's numbers.
    record_ids_, ranking_
        The ids in the order of X, and most exposed first.
    result_
        The :class:`leakscope.AuditResult`, with ``to_frame()``, the verdict, the assumptions, and
        the warnings, which ``fit`` does not show.
    classes_
        The class labels, where the task is classification.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> y = np.array([1.0, 1.1, 0.9, -1.0])
    >>> auditor = leakscope.LeakageAuditor(length_scale=1.0, noise_variance=0.1).fit(X, y)
    >>> auditor.leakage_.round(3).tolist(), auditor.ranking_[0]
    ([0.127, 0.148, 0.136, 0.657], 3)
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
        task: Literal["regression", "classification"] = "regression",
        sensitivity: bool = False,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.kernel_variance = kernel_variance
        self.smoothness = smoothness
        self.depth = depth
        self.activation = activation
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.noise_variance = noise_variance
        self.fit_kernel_scale = fit_kernel_scale
        self.route = route
        self.inducing = inducing
        self.error = error
        self.task = task
        self.sensitivity = sensitivity

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        record_ids: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
    ) -> Self:
        """Audit the records.

        ``record_ids`` are a pandas frame's index, or row numbers, where left out.  Records with
        the same value of ``groups`` leave together.
        """
        if self.task not in ("regression", "classification"):
            raise InputError(f"task must be regression or classification, but it is {self.task!r}.")
        kernel = chosen_kernel(self)
        ids = own_ids(X) if record_ids is None else record_ids
        regression = self.task == "regression"
        features, targets = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            ensure_min_samples=2,
            multi_output=regression,
            y_numeric=regression,
        )
        if regression:
            targets = np.asarray(targets, dtype=np.float64)
            targets = targets[:, 0] if targets.shape[1:] == (1,) else targets
        else:
            classes, codes = coded(targets)
            targets, self.classes_ = classes.outputs(codes), classes.names
        self.result_ = audited(
            self,
            features,
            targets,
            kernel=kernel,
            record_ids=ids,
            groups=groups,
            sensitivity=bool(self.sensitivity),
        )
        self.leakage_ = self.result_.advantage
        self.kl_ = self.result_.kl
        self.auc_ = self.result_.auc
        self.trusted_ = self.result_.trusted
        self.record_ids_ = self.result_.record_ids
        self.ranking_ = self.result_.ranking()
        return self

    def to_frame(self) -> pd.DataFrame:
        """``result_.to_frame()``: every record, most exposed first."""
        check_is_fitted(self)
        return self.result_.to_frame()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.task == "regression"
        return tags
