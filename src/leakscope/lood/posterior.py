"""What a Gaussian process answers at any query: posterior means and variances.

Symbols as in :mod:`leakscope.lood.separation`: M = K + s2 I = L L^T, a = M^{-1} y.  At a query q,
with k_q its kernel with the records, mean = k_q . a and variance = k(q, q) - ||L^{-1} k_q||^2.  The
variance is that of the latent function; no noise is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.lood.dense import factorise
from leakscope.lood.inputs import checked_problem, real_numbers

# Bytes of kernel values between records and queries that are worked on at once.
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process trained on all records, ready to be asked."""

    kernel: Kernel  # with every parameter a number
    noise_variance: float
    records: FloatArray  # (n, d)
    weights: FloatArray  # (n, C) a
    lower: FloatArray  # (n, n) L in its lower triangle; the rest is not used
    single: bool  # whether targets were a vector: answers then are one, too

    def mean(self, queries: ArrayLike) -> FloatArray:
        """(q,) or (q, C) posterior means."""
        return self.at(queries, variances=False)[0]

    def at(self, queries: ArrayLike, *, variances: bool = True) -> tuple[FloatArray, FloatArray]:
        """Means, (q,) or (q, C), and variances, (q,), of the latent function."""
        rows = _rows(queries)
        means, left = [], []
        size = max(1, BLOCK_BYTES // (8 * len(self.records)))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            shared = self.kernel(self.records, block)
            means.append(shared.T @ self.weights)
            if variances:
                left.append(variances_left(self.lower, shared, self.kernel.diagonal(block)))
        found = np.concatenate(means)
        spread = np.concatenate(left) if variances else np.empty(0)
        return (found[:, 0] if self.single else found), spread


def variances_left(lower: FloatArray, shared: FloatArray, prior: FloatArray) -> FloatArray:
    """(q,) posterior variances from L, the kernel (n, q) with the records, and k(q, q)."""
    half = linalg.solve_triangular(lower, shared, lower=True, check_finite=False)
    return np.asarray(np.maximum(prior - np.einsum("ij,ij->j", half, half), 0.0))


def predicted(
    factor: cholesky.Factor, shared: FloatArray, prior: FloatArray, outputs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(q, C) posterior means and (q,) variances, from the factor of M."""
    means = shared.T @ cholesky.solve(factor, outputs)
    return means, variances_left(factor.packed, shared, prior)


def posterior(X: ArrayLike, y: ArrayLike, *, kernel: Kernel, noise_variance: float) -> Posterior:
    """Train a Gaussian process on all records.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C), used as they are.
    kernel
        From :mod:`leakscope.kernels`; what it leaves open is chosen from X.
    noise_variance
        s2, in squared units of the target.

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
    resolved = checked_kernel(kernel, rows)
    require_memory(
        8 * (2 * len(rows) ** 2 + 3 * rows.size),
        f"the factor of {len(rows)} records",
        "train on fewer records",
    )
    matrix, targets = checked_problem(resolved(rows), y, noise_variance)
    factor = factorise(matrix, noise_variance, overwrite=True)
    weights = cholesky.solve(factor, targets.reshape(len(targets), -1))
    return Posterior(resolved, float(noise_variance), rows, weights, factor.packed, np.ndim(y) == 1)


def _rows(values: ArrayLike, name: str = "queries") -> FloatArray:
    rows = real_numbers(values, name)
    if rows.ndim != 2 or len(rows) == 0:
        raise InputError(
            f"rows of features are needed, at least one, but the shape is {rows.shape}."
        )
    return rows
