"""The feature-space route: finite features, cost linear in the number of records, exact.

With the kernel k(x, z) = phi(x) . phi(z) of d features, Phi the n x d matrix of them and
A = Phi^T Phi + s2 I (d x d), beta = A^{-1} Phi^T y: the leverage is h_i = phi_i^T A^{-1} phi_i,
the same number as [K M^{-1}]_ii, and

    s2 m_i = 1 - h_i,      s2 a_i = y_i - phi_i . beta,

so that :mod:`leakscope.lood.separation` gives every record's laws from d x d algebra.  Two passes
over the records in blocks: one for A and Phi^T y, one for h and a; memory d^2 and one block beside
the answers, and Phi may be a memory-mapped array of millions of rows.  The two passes' arithmetic
on a block is `feature_sums` and `FeatureRegression.leverages`, which the streamed audit of
``leakscope.subjects.stream`` shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.inputs import checked_targets, require_positive, require_real
from leakscope.lood.separation import EPS, Leverages, Separation, laws_from_leverages

# Bytes of features worked on at once: what a cache holds, but enough rows for a matrix product to
# be quick, as long as that is not too much memory.
CACHE_BYTES = 2**22
ENOUGH_ROWS = 1024
BLOCK_BYTES = 2**25

# The share of eps ||A|| that rounding really uses; benchmarks/lood_accuracy.py calibrates it.
ERROR_SHARE = 0.1

# Random signs that estimate ||A^{-1} phi_i||^2, which only the error estimate needs: of 16, one in
# 5,000 is below a quarter of it, and so below half of it after doubling.
PROBES = 16


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
    regression = FeatureRegression.of(FeatureSums.over(rows, outputs), noise_variance)
    parts = [
        regression.leverages(block, outputs[start : start + len(block)], first_row=start)
        for start, block in blocks(rows)
    ]
    joined = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Leverages)
    }
    return regression.laws(Leverages(**joined), targets)


@dataclass(frozen=True)
class FeatureSums:
    """What the first pass adds up: Phi^T Phi (d, d), Phi^T y (d, C) and |y|^2, over ``records``."""

    gram: FloatArray
    product: FloatArray
    squares: float
    records: int

    @classmethod
    def none(cls, width: int, outputs: int) -> FeatureSums:
        """The sums over no record."""
        return cls(np.zeros((width, width)), np.zeros((width, outputs)), 0.0, 0)

    @classmethod
    def over(cls, rows: NDArray[np.generic], outputs: FloatArray) -> FeatureSums:
        """The sums over records that are there, (n, d) and (n, C), block by block."""
        sums = cls.none(rows.shape[1], outputs.shape[1])
        for start, block in blocks(rows):
            sums = sums + feature_sums(block, outputs[start : start + len(block)])
        return sums

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(
            self.gram + other.gram,
            self.product + other.product,
            self.squares + other.squares,
            self.records + other.records,
        )


def feature_sums(block: FloatArray, outputs: FloatArray) -> FeatureSums:
    """The sums over one block of features, (b, d), and its targets, (b, C)."""
    with np.errstate(over="ignore", invalid="ignore"):  # FeatureRegression.of refuses them
        squares = float(np.vdot(outputs, outputs))
        return FeatureSums(row_products(block.T), block.T @ outputs, squares, len(block))


@dataclass(frozen=True)
class FeatureRegression:
    """The factorised problem, from which the second pass answers for any block of records."""

    lower: FloatArray  # (d, d) Cholesky factor of A
    beta: FloatArray  # (d, C) coefficients
    norm: float  # ||A||_1
    noise_variance: float

    @classmethod
    def of(cls, sums: FeatureSums, noise_variance: float) -> FeatureRegression:
        """Factorise A; the sums are left as they are."""
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(sums.gram, 1)) + noise_variance
        if not np.isfinite(norm):
            raise InputError(
                "the features are too large for float64, which cannot hold their squares: scale "
                "them down."
            )
        if not np.isfinite(sums.product).all():
            raise InputError(
                "the targets times the features are too large for float64: scale the targets or "
                "the features down."
            )
        gram = sums.gram.copy()
        gram[np.diag_indices(len(gram))] += noise_variance
        try:
            factor = cholesky.factorise(gram, overwrite=True)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"noise_variance {noise_variance:g} is too small beside these features for float64 "
                f"({error}): raise it, or scale the features down."
            ) from error
        beta = cholesky.solve(factor, sums.product)
        return cls(np.tril(factor.packed), beta, norm, float(noise_variance))

    @property
    def condition_number(self) -> float:
        """An upper estimate of A's."""
        return self.norm / self.noise_variance

    @cached_property
    def inverse(self) -> FloatArray:
        """(d, d) L^{-1}, column after column.

        Products with it take 2/3 of the time of solving with L, and differ from that by less than
        eps sqrt(cond A), which forming A has lost before (tests/lood/test_routes.py).
        """
        return cholesky.inverse_factor(cholesky.Factor(self.lower, self.norm)).packed

    @cached_property
    def probes(self) -> FloatArray:
        """(d, k) P with ||P^T v||^2 about twice ||L^{-T} v||^2, or the same for few features."""
        width = len(self.lower)
        if width <= PROBES:
            return self.inverse
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (width, PROBES))
        return np.asarray(self.inverse @ signs * np.sqrt(2.0 / PROBES))

    def covariance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """(q,) the posterior covariance of the answers at a row of (q, d) features and another."""
        one, other = (self.inverse @ rows.T for rows in (left, right))
        return np.asarray(self.noise_variance * np.einsum("ij,ij->j", one, other))

    def leverages(self, block: FloatArray, outputs: FloatArray, *, first_row: int = 0) -> Leverages:
        """Leverage, residual and errors of the records of one block, (b, d) and (b, C)."""
        if block.flags.c_contiguous:
            half = blas.dtrmm(1.0, self.inverse, block.T, lower=1).T
        else:
            half = blas.dtrmm(1.0, self.inverse, block, side=1, lower=1, trans_a=1)
        leverage = np.einsum("ij,ij->i", half, half)
        probed = half @ self.probes
        reach = np.einsum("ij,ij->i", probed, probed)
        a = (outputs - block @ self.beta) / self.noise_variance
        empty = np.flatnonzero(leverage < np.finfo(np.float64).tiny)
        if empty.size:
            row = first_row + int(empty[0])
            if not block[empty[0]].any():
                raise InputError(f"the features of the record in row {row} are all zero.")
            raise InputError(
                f"the features of the record in row {row} are too small beside noise_variance "
                f"{self.noise_variance:g} for float64: scale the features up."
            )
        complement = np.maximum(1.0 - leverage, EPS)
        # A change E of A changes h_i by at most ||E|| ||A^{-1} phi_i||^2 and phi_i . beta by at
        # most ||E|| ||A^{-1} phi_i|| ||beta||.
        error_gram = ERROR_SHARE * EPS * self.norm
        error_h = error_gram * reach + EPS * leverage
        fitted = np.linalg.norm(outputs, axis=1) + self.noise_variance * np.linalg.norm(a, axis=1)
        error_fit = error_gram * np.sqrt(reach) * np.linalg.norm(self.beta) + EPS * fitted
        return Leverages(
            leverage=leverage,
            m=complement / self.noise_variance,
            a=a,
            relative_error_h=error_h / leverage,
            relative_error_m=(error_h + EPS) / complement,
            error_a=error_fit / self.noise_variance,
        )

    def laws(self, found: Leverages, targets: FloatArray) -> Separation:
        """The laws of the records whose leverages these are; targets (b,) or (b, C)."""
        return laws_from_leverages(
            found,
            targets,
            noise_variance=self.noise_variance,
            condition_number=self.condition_number,
            route="features",
        )


@runtime_checkable
class FiniteFeatures(Protocol):
    """A kernel that is the product of finitely many features."""

    def features(self, X: ArrayLike) -> FloatArray:
        """The matrix Phi with k(X, Z) = Phi(X) Phi(Z)^T."""
        ...


def finite_features(kernel: Kernel, X: FloatArray) -> FloatArray | None:
    """The features of X under a kernel that has finitely many, or None.

    A linear kernel's are its scaled inputs and, where it has a bias, a constant.  Whatever the
    kernel says of itself is compared with its own matrix on a few records.
    """
    phi: FloatArray | None = None
    described = kernel.describe()
    if isinstance(kernel, FiniteFeatures):
        phi = np.asarray(kernel.features(X), dtype=np.float64)
    elif described.get("name") == "linear":
        shared = X.shape[1] if described.get("divide_by_features") else 1
        bias = float(described.get("bias_variance", 0.0))
        shape = len(X), X.shape[1] + (bias > 0.0)
        phi = np.empty(shape, order="C" if X.flags.c_contiguous else "F")
        phi[:, X.shape[1] :] = np.sqrt(bias)
        weight = np.sqrt(float(described.get("weight_variance", 1.0)) / shared)
        np.multiply(X, weight, out=phi[:, : X.shape[1]])
    if phi is None:
        return None
    some = np.unique(np.linspace(0, len(X) - 1, 8).astype(np.intp))
    matrix = kernel(X[some])
    tolerance = 1e-9 * float(np.max(np.diagonal(matrix)))
    agrees = np.allclose(phi[some] @ phi[some].T, matrix, rtol=1e-9, atol=tolerance)
    return phi if agrees else None


def blocks(rows: NDArray[np.generic]) -> Iterator[tuple[int, FloatArray]]:
    """Blocks of rows as float64, each with its first row's number; refuses what is not finite."""
    require_real(rows, "phi")
    row_bytes = 8 * rows.shape[1]
    size = max(CACHE_BYTES // row_bytes, min(ENOUGH_ROWS, BLOCK_BYTES // row_bytes), 1)
    for start in range(0, len(rows), size):
        try:
            block = np.asarray(rows[start : start + size], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("phi must hold numbers only.") from None
        if not np.isfinite(block).all():
            row = start + int(np.argmax(~np.isfinite(block).all(axis=1)))
            raise InputError(f"phi is not finite in row {row} (rows count from 0).")
        yield start, block
