"""What a Gaussian process answers at any query: posterior means and variances, by every route.

Symbols as in :mod:`leakscope.lood.separation`: M = K + s2 I, a = M^{-1} y.  At a query q, with k_q
its kernel with the records,

    dense:     mean = k_q . a            variance = k(q, q) - ||L^{-1} k_q||^2,   M = L L^T
    features:  mean = phi_q . beta       variance = s2 ||L^{-1} phi_q||^2,        A = L L^T
    Nyström:   mean = phi_q . beta       variance = k(q, q) - ||phi_q||^2 + s2 ||L^{-1} phi_q||^2,

with A and beta of :mod:`leakscope.lood.features`, and phi_q = L_u^{-1} k_uq of
:mod:`leakscope.lood.nystrom`.  The variance is that of the latent function; no noise is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import factorise
from leakscope.lood.features import FeatureRegression, FeatureSums, feature_sums, finite_features
from leakscope.lood.inputs import (
    checked_problem,
    checked_targets,
    real_numbers,
    require_positive,
    require_prior,
)
from leakscope.lood.nystrom import Inducing, Rows
from leakscope.lood.process import Process
from leakscope.lood.separation import Route

# Bytes of kernel values between records and queries that are worked on at once.
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process trained on all records, ready to be asked."""

    kernel: Kernel  # with every parameter a number
    kernel_scale: float
    noise_variance: float
    route: Route
    weights: FloatArray  # (p, C) what the p basis values of a query are multiplied with: a or beta
    lower: FloatArray  # (p, p) L in its lower triangle; the rest is not used
    # (p, d) the records that a query is compared with; none where the basis is features
    anchors: FloatArray | None
    inducing: Inducing | None
    single: bool  # whether targets were a vector: answers then are one, too

    def mean(self, queries: ArrayLike) -> FloatArray:
        """(q,) or (q, C) posterior means."""
        rows = _rows(queries)
        parts = [self._basis(block).T @ self.weights for block in self._blocks(rows)]
        return self._shaped(np.concatenate(parts))

    def at(self, queries: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Means, (q,) or (q, C), and variances, (q,), of the latent function."""
        rows = _rows(queries)
        means, variances = [], []
        for block in self._blocks(rows):
            basis = self._basis(block)
            means.append(basis.T @ self.weights)
            half = self._solved(basis)
            reduced = np.einsum("ij,ij->j", half, half)
            variances.append(self._variance(block, basis, reduced))
        return self._shaped(np.concatenate(means)), np.concatenate(variances)

    def covariance(self, queries: ArrayLike) -> FloatArray:
        """(q, q) the posterior covariance of the latent function at all queries together."""
        rows = _rows(queries)
        require_memory(
            8 * (3 * len(rows) ** 2 + 2 * len(self.lower) * len(rows)),
            f"the joint law of {len(rows)} answers",
            "ask fewer queries at a time",
        )
        basis = self._basis(rows)
        half = self._solved(basis)
        if self.route == "features":
            return np.asarray(self.noise_variance * (half.T @ half))
        prior = self.kernel_scale * self.kernel(rows)
        if self.route == "nystrom":
            found = prior - basis.T @ basis + self.noise_variance * (half.T @ half)
        else:
            found = prior - half.T @ half
        return np.asarray(0.5 * (found + found.T))

    def _variance(self, block: FloatArray, basis: FloatArray, reduced: FloatArray) -> FloatArray:
        if self.route == "features":
            return self.noise_variance * reduced
        prior = self.kernel_scale * self.kernel.diagonal(block)
        if self.route == "nystrom":
            left = prior - np.einsum("ij,ij->j", basis, basis)
            return np.asarray(np.maximum(left, 0.0) + self.noise_variance * reduced)
        return np.asarray(np.maximum(prior - reduced, 0.0))

    def _basis(self, rows: FloatArray) -> FloatArray:
        """(p, q) what the process knows a query by."""
        if self.anchors is None:
            phi = finite_features(self.kernel, rows)
            if phi is None:
                raise InputError("the kernel has no finite features at these queries.")
            return np.asarray(np.sqrt(self.kernel_scale) * phi.T)
        if self.inducing is not None:
            return self.inducing.features(rows).T
        shared = self.kernel(self.anchors, rows)
        return shared if self.kernel_scale == 1.0 else np.asarray(self.kernel_scale * shared)

    def _solved(self, basis: FloatArray) -> FloatArray:
        return np.asarray(
            linalg.solve_triangular(self.lower, basis, lower=True, check_finite=False)
        )

    def _blocks(self, rows: FloatArray) -> Iterator[FloatArray]:
        size = max(1, BLOCK_BYTES // (8 * len(self.lower)))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def _shaped(self, answers: FloatArray) -> FloatArray:
        return answers[:, 0] if self.single else answers


def posterior(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: Kernel,
    noise_variance: float,
    kernel_scale: float = 1.0,
    route: Route = "dense",
    inducing: Rows | None = None,
) -> Posterior:
    """Train a Gaussian process on all records, by one of the audit's routes.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C), used as they are.
    kernel
        From :mod:`leakscope.kernels`; what it leaves open is chosen from X.
    noise_variance
        s2, in squared units of the target.
    kernel_scale
        A factor of the kernel.
    route
        ``"dense"`` keeps an n by n factor, ``"features"`` one of as many rows as features,
        ``"nystrom"`` one of as many as inducing records.
    inducing
        Which records those are, by row number: those of the audit (``certificate.rows``).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X, y, k = rng.normal(size=(40, 2)), rng.normal(size=40), kernels.rbf(1.0)
    >>> trained = lood.posterior(X, y, kernel=k, noise_variance=0.1)
    >>> audited = lood.all_records(k(X), y, noise_variance=0.1)
    >>> mean, variance = trained.at(X)
    >>> bool(np.allclose(mean, audited.mean_with)), bool(np.allclose(variance,
    ...                                                              audited.variance_with))
    (True, True)
    """
    rows = _rows(X, "X")
    resolved = kernel.resolved(rows)
    require_positive(kernel_scale, "kernel_scale")
    anchors, induced = rows, None
    if route == "features":
        phi = finite_features(resolved, rows)
        if phi is None:
            raise InputError("the route features needs a kernel with finitely many features.")
        targets = checked_targets(y, len(rows), "the dataset")
        require_positive(noise_variance, "noise_variance")
        sums = FeatureSums.over(np.sqrt(kernel_scale) * phi, targets.reshape(len(rows), -1))
        weights, lower = _regressed(sums, noise_variance)
    elif route == "nystrom":
        if inducing is None:
            raise InputError("the route nystrom needs the row numbers of its inducing records.")
        process = Process(rows, real_numbers(y, "y"), resolved, noise_variance, kernel_scale)
        require_prior(process.diagonal())
        induced, outputs = Inducing.of(process, inducing), process.outputs
        sums = FeatureSums.none(len(inducing), outputs.shape[1])
        for some in induced.blocks():
            sums = sums + feature_sums(induced.features(process.features[some]), outputs[some])
        weights, lower = _regressed(sums, noise_variance)
        anchors = rows[inducing]
    else:
        require_memory(
            8 * (2 * len(rows) ** 2 + 3 * rows.size),
            f"the factor of {len(rows)} records",
            "train on fewer records, or take the route nystrom",
        )
        matrix = resolved(rows)
        if kernel_scale != 1.0:
            matrix = matrix * kernel_scale
        matrix, targets = checked_problem(matrix, y, noise_variance)
        factor = factorise(matrix, noise_variance, overwrite=True)
        weights = cholesky.solve(factor, targets.reshape(len(targets), -1))
        lower, route = factor.packed, "dense"
    return Posterior(
        kernel=resolved,
        kernel_scale=kernel_scale,
        noise_variance=float(noise_variance),
        route=route,
        weights=weights,
        lower=lower,
        anchors=None if route == "features" else anchors,
        inducing=induced,
        single=np.ndim(y) == 1,
    )


def _regressed(sums: FeatureSums, noise_variance: float) -> tuple[FloatArray, FloatArray]:
    """beta and L."""
    regression = FeatureRegression.of(sums, noise_variance)
    return regression.beta, regression.lower


def _rows(values: ArrayLike, name: str = "queries") -> FloatArray:
    rows = real_numbers(values, name)
    if rows.ndim != 2 or len(rows) == 0:
        raise InputError(
            f"rows of features are needed, at least one, but the shape is {rows.shape}."
        )
    return rows
