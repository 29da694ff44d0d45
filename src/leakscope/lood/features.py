"""The routes through features: linear in the number of records, exact or approximate.

With the kernel k(x, z) = phi(x) . phi(z) of d features, Phi the n x d matrix of them,
A = Phi^T Phi + s2 I (d x d) and beta = A^{-1} Phi^T y, the leverage is
h_i = phi_i^T A^{-1} phi_i, the same number as [K M^{-1}]_ii, and

    s2 m_i = 1 - h_i,      s2 a_i = y_i - phi_i . beta,

so that :mod:`leakscope.lood.separation` gives every record's laws from d x d algebra.  Two passes
over the records in blocks; memory d^2 and one block beside the answers, and Phi may be a
memory-mapped array of millions of rows.

**Nyström with the exact diagonal** (FITC).  With u the rows of r inducing records, the features
phi_i = L_u^{-1} k_ui give Q = K_nu K_uu^{-1} K_un, which never exceeds K.  What is left on the
diagonal, E_ii = K_ii - Q_ii, is each record's own, so that outliers are not hidden: M is taken as
Q + diag(E_ii + s2), the same regression with records of different noise l_i = E_ii + s2.  With rows
divided by sqrt(l_i) and g_i the leverage there,

    m_i = (1 - g_i)/l_i,      a_i = (y_i - phi_i . beta)/l_i.

Nothing says how far that is from the exact process for a given record, so none of it is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.inputs import checked_targets, require_positive, require_real
from leakscope.lood.separation import EPS, Rows, Separation, record_laws

# Bytes of features worked on at once.
BLOCK_BYTES = 2**25

# Added to K_uu, as a share of the mean of k(x, x): near-duplicates can then be factorised.
JITTER = 1e-10


def audit_features(phi: ArrayLike, y: ArrayLike, noise_variance: float) -> Separation:
    """The laws with and without each record, at that record, under finite features.

    Parameters
    ----------
    phi
        Features, n by d, any real dtype; a user's own embeddings, random features, or the inputs
        themselves for a linear kernel.  It may be a ``numpy.memmap``.
    y
        Targets, (n,) or (n, C), used as they are.
    noise_variance
        s2, in squared units of the target: the ridge penalty of the regression on phi.

    Raises
    ------
    InputError
        Where shapes do not fit, a row is not finite, or is zero, and so says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> rng = np.random.default_rng(0)
    >>> phi, y = rng.normal(size=(2000, 5)), rng.normal(size=2000)
    >>> quick = lood.audit_features(phi, y, noise_variance=0.1)
    >>> dense = lood.all_records(phi @ phi.T, y, noise_variance=0.1)
    >>> bool(np.allclose(quick.kl, dense.kl, rtol=1e-8)), quick.route
    (True, 'features')
    """
    rows = phi if isinstance(phi, np.ndarray) else np.asanyarray(phi)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"phi must be records by features, but its shape is {rows.shape}.")
    count, width = rows.shape
    targets = checked_targets(y, count, "phi")
    require_positive(noise_variance, "noise_variance")
    outputs = targets.reshape(count, -1)
    require_memory(
        8 * (4 * width * width + count * (18 + 5 * outputs.shape[1])) + 4 * BLOCK_BYTES,
        f"the audit of {count} records in {width} features",
        "use fewer features or records",
    )
    regression = FeatureRegression.of(lambda: feature_blocks(rows, outputs), noise_variance)
    share, residual, prior = np.empty(count), np.empty_like(outputs), np.empty(count)
    for start, block, target in feature_blocks(rows, outputs):
        some = slice(start, start + len(block))
        share[some], residual[some] = regression.leverages(block, target)
        prior[some] = np.einsum("ij,ij->i", block, block)
    empty = np.flatnonzero(prior < np.finfo(np.float64).tiny)
    if empty.size:
        raise InputError(f"the features of the record in row {empty[0]} are all zero.")
    return record_laws(
        np.maximum(1.0 - share, EPS) / noise_variance,
        residual / noise_variance,
        targets,
        prior=prior,
        noise_variance=noise_variance,
        norm=regression.norm,
        route="features",
    )


def nystrom_records(
    X: FloatArray,
    y: FloatArray,
    *,
    kernel: Kernel,
    noise_variance: float,
    inducing: int,
    seed: int = 0,
) -> Separation:
    """The laws with and without each record, approximately, by the kernel's Nyström features.

    For ranks where the kernel matrix does not fit: no record is trusted.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C).
    kernel
        With every parameter a number.
    noise_variance
        s2, in squared units of the target.
    inducing, seed
        How many records stand for all, drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.lood.features import nystrom_records
    >>> rng = np.random.default_rng(0)
    >>> X, y, kernel = rng.normal(size=(500, 2)), rng.normal(size=500), kernels.rbf(2.0)
    >>> near = nystrom_records(X, y, kernel=kernel, noise_variance=0.1, inducing=60)
    >>> exact = lood.all_records(kernel(X), y, noise_variance=0.1)
    >>> bool(np.corrcoef(near.kl, exact.kl)[0, 1] > 0.999), bool(near.trusted.any())
    (True, False)
    """
    if inducing < 2:
        raise InputError(f"at least 2 inducing records are needed, but there are {inducing}.")
    outputs, prior = y.reshape(len(y), -1), kernel.diagonal(X)
    drawn = np.random.default_rng(seed).permutation(len(X))[:inducing]
    places = X[np.sort(drawn)]
    require_memory(
        nystrom_bytes(len(X), len(places), outputs.shape[1]),
        f"the approximate audit of {len(X)} records with {len(places)} inducing ones",
        "use fewer inducing records",
    )
    corner = kernel(places)
    corner[np.diag_indices(len(corner))] += JITTER * float(np.mean(np.diagonal(corner)))
    half = np.linalg.cholesky(corner)
    own = np.empty(len(X))

    def blocks() -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Features and targets, divided by the root of each record's own noise."""
        step = max(1, BLOCK_BYTES // (8 * len(places)))
        for start in range(0, len(X), step):
            some = slice(start, start + step)
            phi = linalg.solve_triangular(half, kernel(places, X[some]), lower=True).T
            left = np.maximum(prior[some] - np.einsum("ij,ij->i", phi, phi), 0.0)
            own[some] = left + noise_variance
            root = np.sqrt(own[some])[:, None]
            yield start, phi / root, outputs[some] / root

    regression = FeatureRegression.of(blocks, 1.0)
    share, residual = np.empty(len(X)), np.empty_like(outputs)
    for start, block, target in blocks():
        some = slice(start, start + len(block))
        share[some], residual[some] = regression.leverages(block, target)
    return record_laws(
        np.maximum(1.0 - share, EPS) / own,
        residual / np.sqrt(own)[:, None],
        y,
        prior=prior,
        noise_variance=noise_variance,
        norm=float(np.sum(prior)) + noise_variance,
        route="nystrom",
    )


def nystrom_bytes(records: int, inducing: int, outputs: int) -> int:
    """What `nystrom_records` holds at once: r x r matrices, blocks, and numbers per record."""
    return 8 * (6 * inducing**2 + records * (12 + 6 * outputs)) + 6 * BLOCK_BYTES


Blocks = Iterator[tuple[int, FloatArray, FloatArray]]


@dataclass(frozen=True)
class FeatureRegression:
    """The factorised regression on features, from which a second pass answers for any block."""

    lower: FloatArray  # (d, d) Cholesky factor of A
    beta: FloatArray  # (d, C) coefficients
    norm: float  # ||A||_1
    noise_variance: float

    @classmethod
    def of(cls, blocks: Callable[[], Blocks], noise_variance: float) -> FeatureRegression:
        """One pass over blocks of (first row, features (b, d), targets (b, C))."""
        gram, product = np.zeros((1, 1)), np.zeros((1, 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for _, block, target in blocks():
                gram = gram + row_products(block.T)
                product = product + block.T @ target
            norm = float(np.linalg.norm(gram, 1)) + noise_variance
        if not (np.isfinite(norm) and np.isfinite(product).all()):
            raise InputError(
                "the features, or the targets times the features, are too large for float64, "
                "which cannot hold their squares: scale them down."
            )
        gram[np.diag_indices(len(gram))] += noise_variance
        try:
            factor = cholesky.factorise(gram, overwrite=True)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"noise_variance {noise_variance:g} is too small beside these features for float64 "
                f"({error}): raise it, or scale the features down."
            ) from error
        beta = cholesky.solve(factor, product)
        return cls(np.tril(factor.packed), beta, norm, float(noise_variance))

    def leverages(self, block: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(b,) phi^T A^{-1} phi and (b, C) target minus fit, of one block."""
        half = linalg.solve_triangular(self.lower, block.T, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", half, half), target - block @ self.beta

    def predictions(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(q, C) posterior means and (q,) variances at rows of (q, d) features."""
        half = linalg.solve_triangular(self.lower, phi.T, lower=True, check_finite=False)
        return phi @ self.beta, self.noise_variance * np.einsum("ij,ij->j", half, half)


def finite_features(kernel: Kernel, X: FloatArray) -> FloatArray | None:
    """The features of X under a kernel that has finitely many, or None.

    A linear kernel's are its scaled inputs and, where it has a bias, a constant; another kernel may
    have a method ``features``, which is compared with its own matrix on a few records.
    """
    described = kernel.describe()
    own = getattr(kernel, "features", None)
    if callable(own):
        phi = np.asarray(own(X), dtype=np.float64)
    elif described.get("name") == "linear" and X.ndim == 2:
        shared = X.shape[1] if described.get("divide_by_features") else 1
        phi = np.sqrt(float(described.get("weight_variance", 1.0)) / shared) * X
        bias = float(described.get("bias_variance", 0.0))
        if bias > 0.0:
            phi = np.column_stack([phi, np.full(len(X), np.sqrt(bias))])
    else:
        return None
    some: Rows = np.unique(np.linspace(0, len(X) - 1, 8).astype(np.intp))
    matrix = kernel(X[some])
    size = 1e-9 * float(np.max(np.diagonal(matrix)))
    agrees = np.allclose(phi[some] @ phi[some].T, matrix, rtol=1e-9, atol=size)
    return phi if agrees else None


def feature_blocks(rows: NDArray[np.generic], outputs: FloatArray) -> Blocks:
    """Blocks of rows as float64 with their targets; refuses what is not finite."""
    require_real(rows, "phi")
    size = max(BLOCK_BYTES // (8 * rows.shape[1]), 1)
    for start in range(0, len(rows), size):
        try:
            block = np.asarray(rows[start : start + size], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("phi must hold numbers only.") from None
        if not np.isfinite(block).all():
            row = start + int(np.argmax(~np.isfinite(block).all(axis=1)))
            raise InputError(f"phi is not finite in row {row} (rows count from 0).")
        yield start, block, outputs[start : start + size]
