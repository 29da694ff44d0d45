"""Gaussian processes as scikit-learn estimators that know what they give away about each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.special_functions import chance_of_largest
from leakscope.auditing.audit import audit_subject
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.laws.pair import LawPair
from leakscope.lood.separation import Release
from leakscope.results.audit import Audit
from leakscope.results.document import DatasetEntry
from leakscope.settings.audit import AuditSettings
from leakscope.settings.kernel_catalogue import kernel_options
from leakscope.settings.setting import validated
from leakscope.subjects.arrays import checked_ids, leaving_units, oddities
from leakscope.subjects.process.choices import kernel_from_settings
from leakscope.subjects.process.routes import RoutePlan
from leakscope.subjects.process.subject import GaussianProcess, laws_of_separation

# The options of the named kernels, each a parameter of the estimators.
KERNEL_OPTIONS = kernel_options()

# The settings of an audit that are not the kernel's, each a parameter of the estimators.
MODEL_OPTIONS = ("noise_variance", "fit_kernel_scale", "route", "inducing", "error")


def chosen_kernel(estimator: Any) -> kernels.Kernel:
    """The kernel that an estimator's parameters name, or the kernel given."""
    given = {name: _plain(getattr(estimator, name)) for name in KERNEL_OPTIONS}
    kernel = estimator.kernel
    if isinstance(kernel, str):
        return kernel_from_settings(validated(AuditSettings, kernel=kernel, **given))
    if not isinstance(kernel, kernels.Kernel):
        raise InputError(
            "kernel must be the name of one or one from leakscope.kernels, but it is a "
            f"{type(kernel).__name__}."
        )
    doubled = [name for name, value in given.items() if value is not None]
    if doubled:
        raise InputError(
            f"{doubled[0]} belongs to a kernel given by name; this {type(kernel).__name__} has "
            "its own parameters."
        )
    return kernel


def audited(
    estimator: Any,
    features: FloatArray,
    targets: FloatArray,
    *,
    kernel: kernels.Kernel,
    record_ids: Sequence[Any] | None,
    groups: Sequence[Any] | None = None,
    sensitivity: bool = False,
    target_name: str = "y",
) -> Audit:
    """The audit of the estimator's model family on these records; it shows no warnings."""
    settings = validated(
        AuditSettings,
        **{name: _plain(getattr(estimator, name)) for name in MODEL_OPTIONS},
        sensitivity=sensitivity,
    )
    ids, labels = leaving_units(checked_ids(record_ids, len(features)), groups)
    named = ids if labels is None else tuple(range(len(features)))
    level, plan = RoutePlan.of(settings)
    subject = GaussianProcess(
        lood.Process(features, targets, kernel, level, groups=labels),
        plan,
        ids=ids,
        dataset=DatasetEntry(
            name="arrays",
            records=features.shape[0],
            features=features.shape[1],
            outputs=1 if targets.ndim == 1 else targets.shape[1],
            target_name=target_name,
            steps=[],
        ),
        settings={
            **{name: getattr(settings, name) for name in MODEL_OPTIONS},
            "sensitivity": sensitivity,
            "scaling": "none",
        },
        warnings=oddities(features, targets, named),
    )
    return audit_subject(subject)


def own_ids(X: Any) -> list[int | str] | None:
    """The ids that a pandas frame brings along: its index, unless it merely counts.

    An index of several levels, or one that repeats, is no id: records are then known by their row
    numbers.
    """
    if not isinstance(X, pd.DataFrame) or X.index.nlevels > 1:
        return None
    index = X.index
    if index.equals(pd.RangeIndex(len(X))) or bool(index.hasnans):
        return None
    integral = pd.api.types.is_integer_dtype(index)
    ids: list[int | str] = [int(value) if integral else str(value) for value in index]
    return ids if len(set(ids)) == len(ids) else None


def _plain(value: Any) -> Any:
    """A NumPy number, as grids are made of, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Classes:
    """The classes of a training set, sorted.

    Attributes
    ----------
    names
        (C,) the class labels.
    """

    names: NDArray[Any]

    def outputs(self, codes: NDArray[np.intp]) -> FloatArray:
        """(n,) or (n, C) the targets of the records with these class numbers."""
        if len(self.names) == 2:
            return np.asarray(codes - 0.5, dtype=np.float64)
        return np.asarray(np.eye(len(self.names))[codes] - 1.0 / len(self.names))

    def chances(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """(q, C) the chance that each class wins, where the latent value is normal.

        With two classes the sign of one normal decides; with C, the largest of C independent
        normals with the same variance.  The class with the largest mean has the largest chance.

        Parameters
        ----------
        mean
            (q,) or (q, C) means of the latent function.
        variance
            (q,) their variance, above zero.
        """
        sigma = np.sqrt(variance)
        if mean.ndim == 1:
            return np.column_stack([ndtr(-mean / sigma), ndtr(mean / sigma)])
        return _largest_of_normals(mean / sigma[:, None])


def coded(y: ArrayLike) -> tuple[Classes, NDArray[np.intp]]:
    """The classes of labels, and each record's class number."""
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"the target holds one class only, {str(names[0])!r}; two are needed.")
    return Classes(names), codes


def _largest_of_normals(z: FloatArray) -> FloatArray:
    """(q, C) P(Z_c is the largest) for independent Z_k ~ N(z_k, 1), which sum to one."""
    found = np.column_stack([chance_of_largest(z, c) for c in range(z.shape[1])])
    return np.asarray(found / found.sum(axis=1, keepdims=True))


if TYPE_CHECKING:
    import pandas as pd

DEFAULTS = AuditSettings()


class AuditedModel(BaseEstimator):  # type: ignore[misc]
    """A Gaussian process with its audit, what the regressor and the classifier share."""

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
        self.release = release
        self.output_noise_variance = output_noise_variance

    def _release(self) -> Release:
        return Release(self.release, float(self.output_noise_variance))  # type: ignore[arg-type]

    def _train(
        self,
        features: FloatArray,
        targets: FloatArray,
        kernel: Kernel,
        record_ids: Sequence[Any] | None,
    ) -> None:
        """Audit, then train on the kernel and noise that were audited."""
        release = self._release()
        kernel = kernel.resolved(features)
        result = audited(self, features, targets, kernel=kernel, record_ids=record_ids)
        computed = result.examined.computed
        laws, process = computed.laws, computed.process
        approximation = computed.approximation
        self.posterior_ = lood.posterior(
            features,
            targets,
            kernel=kernel,
            noise_variance=process.noise_variance,
            kernel_scale=process.kernel_scale,
            route=laws.route,
            inducing=None if approximation is None else approximation.rows,
        )
        self.result_ = result
        if release.plain:
            self.leakage_, self.kl_, self.auc_ = result.advantage, result.kl, result.auc
        else:
            seen = laws_of_separation(laws.released(release)).measures()
            self.leakage_, self.kl_, self.auc_ = seen["advantage"], seen["kl"], seen["auc"]
        self.trusted_ = laws.trusted
        self.record_ids_ = result.record_ids
        order = np.argsort(-self.kl_, kind="stable")
        self.ranking_ = tuple(self.record_ids_[row] for row in order)

    def law_pair(self) -> LawPair:
        """The pairs of laws of one answer at each record, for any other measure."""
        check_is_fitted(self)
        laws: lood.Separation = self.result_.examined.computed.laws
        return laws.released(self._release()).law_pair()

    def to_frame(self) -> pd.DataFrame:
        """``record_id``, ``advantage``, ``kl``, ``auc`` and ``trusted``, most exposed first."""
        import pandas as pd

        check_is_fitted(self)
        table = pd.DataFrame(
            {
                "record_id": list(self.record_ids_),
                "advantage": self.leakage_,
                "kl": self.kl_,
                "auc": self.auc_,
                "trusted": self.trusted_,
            }
        )
        order = np.argsort(-self.kl_, kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def _queries(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _drawn(self, queries: FloatArray, random_state: Any) -> FloatArray:
        """One released answer at all queries together, in the target as used."""
        generator = _noise_key(random_state).generator()
        release = self._release()
        mean = self.posterior_.mean(queries)
        noise = generator.standard_normal((2, *mean.shape))
        found = mean + np.sqrt(release.noise_variance) * noise[0]
        if release.what == "mean":
            return np.asarray(found)
        # Symmetric square root: a covariance at rounding's edge has no Cholesky factor.
        values, vectors = symmetric_eigen(self.posterior_.covariance(queries))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(found + root @ noise[1])

    def _answer_laws(self, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the released answers, in the target as used."""
        mean, latent = self.posterior_.at(queries)
        return mean, self._release().variance(latent)


def _noise_key(random_state: Any) -> Key:
    """Fresh entropy for None: a fixed seed would let whoever knows it take the noise away."""
    if random_state is None:
        return Key(int(np.random.SeedSequence().entropy))  # type: ignore[arg-type]
    if isinstance(random_state, np.random.RandomState):
        return Key(int(random_state.randint(2**63 - 1, dtype=np.int64)))
    return as_key(random_state)


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


if TYPE_CHECKING:
    import pandas as pd


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
        The :class:`leakscope.Audit`, with ``to_frame()``, the verdict, the assumptions, and
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
