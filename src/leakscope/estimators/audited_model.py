"""Gaussian processes that predict and say what their answers give away about each record.

``predict`` is the posterior mean, from the kernel and the noise that were audited.  What is handed
out need not be that: ``release`` says whether it is one draw of the latent function (a model
trained at random) or the mean, and ``output_noise_variance`` is added to it.  ``leakage_`` is that
of one such answer, ``answer`` gives it, and ``score`` is what it is worth, in expectation over its
randomness: so noise that protects records costs score, and a search can trade one for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key, as_key
from leakscope.estimators.model_family import audited
from leakscope.kernels import Kernel
from leakscope.laws import LawPair
from leakscope.lood import Release
from leakscope.settings import AuditSettings
from leakscope.subjects.process.subject import laws_of_separation

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
