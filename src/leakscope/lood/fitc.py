"""The FITC route: a Nyström approximation that keeps every record's own prior variance.

Some records u, the inducing ones, give Q = K_nu K_uu^{-1} K_un; the approximate kernel matrix is Q
off the diagonal and K on it.  (The form without the exact diagonal hides outliers: a record that
the inducing ones do not see has no variance left, and so seems to leak nothing.)  With
V = L_u^{-1} K_un, Lambda_i = K_ii - Q_ii + s2 and A = I + V Lambda^{-1} V^T,

    m_i = (1 - g_i)/Lambda_i,   g_i = v_i^T A^{-1} v_i/Lambda_i,
    h_i = 1 - s2 m_i = (Lambda_i - s2 + s2 g_i)/Lambda_i,

and :mod:`leakscope.lood.identities` does the rest.  With r inducing records the cost is n r^2 and
the memory n r.  Inducing records are drawn at random, with the same draw every time: the greedy
choice by largest remaining variance was tried and ranks worse (docs/lood.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, stats

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels import Kernel
from leakscope.laws import Assumption
from leakscope.lood.all_records import all_records, checked_targets, require_positive
from leakscope.lood.features import ERROR_SHARE
from leakscope.lood.identities import EPS, Leverages, laws_from_leverages
from leakscope.lood.real_numbers import real_numbers
from leakscope.lood.separation import Separation
from leakscope.settings import AUDIT_DEFAULTS

# How many records stand for all, and how many are audited densely to see what that does.
INDUCING = AUDIT_DEFAULTS.inducing
CHECKED = 2000

# Added to K_uu, relative to its mean diagonal, so that near-duplicates can be factorised.
JITTER = 1e-10

TOP = 20

# Approximate records are trusted where the KL of every record compared was right to this share.
APPROXIMATION_TRUSTED_BELOW = 0.1


STANDING_FOR_ALL = "(FITC: exact prior variances, approximate covariances)"


@dataclass(frozen=True)
class ApproximationError:
    """FITC against the dense answer, on a subsample audited as a dataset of its own.

    The subsample keeps the share of inducing records; the full dataset, which has more of them
    for the same kernel, is as a rule approximated better.

    Attributes
    ----------
    records, inducing
        How many records were compared, and how many of them were inducing.
    median_relative_error, largest_relative_error
        Of the KL.
    rank_correlation
        Spearman's, of the KL.
    top_shared
        How many of the 20 most exposed are among FITC's 20 most exposed.

    Examples
    --------
    >>> from leakscope.lood import ApproximationError
    >>> print(ApproximationError(2000, 200, 0.02, 0.4, 0.998, 17).sentence())
    on 2000 records with 200 inducing, kl is off by 2% (median) and 40% (largest), its ranks
    correlate by 0.998, and 17 of the 20 most exposed agree
    """

    records: int
    inducing: int
    median_relative_error: float
    largest_relative_error: float
    rank_correlation: float
    top_shared: int

    @property
    def trusted(self) -> bool:
        """Whether every record compared came out right to a tenth."""
        return self.largest_relative_error <= APPROXIMATION_TRUSTED_BELOW

    def applied_to(self, laws: Separation) -> Separation:
        """The approximate laws with this for their error: what was measured outweighs rounding."""
        return replace(
            laws,
            error_estimate=np.maximum(laws.error_estimate, self.median_relative_error),
            trusted=laws.trusted & self.trusted,
            assumptions=tuple(
                replace(entry, holds=self.trusted, evidence=self.sentence())
                if entry.statement.endswith(STANDING_FOR_ALL)
                else entry
                for entry in laws.assumptions
            ),
        )

    def sentence(self) -> str:
        """The finding in words."""
        return (
            f"on {self.records} records with {self.inducing} inducing, kl is off by "
            f"{self.median_relative_error:.0%} (median) and {self.largest_relative_error:.0%} "
            f"(largest), its ranks correlate by {self.rank_correlation:.3f}, and "
            f"{self.top_shared} of the {min(TOP, self.records)} most exposed agree"
        )


@dataclass(frozen=True)
class InducedKernel:
    """What the inducing records say about the kernel matrix; one for every noise level.

    Attributes
    ----------
    V
        (r, n) L_u^{-1} K_un, so that Q = V^T V.
    residual
        (n,) K_ii - Q_ii, not below zero.
    inducing
        Row numbers.
    """

    V: FloatArray
    residual: FloatArray
    inducing: NDArray[np.intp]

    def scaled(self, scale: float) -> InducedKernel:
        """The same for ``scale`` times the kernel."""
        if scale == 1.0:
            return self
        return InducedKernel(self.V * np.sqrt(scale), self.residual * scale, self.inducing)


def induce(X: ArrayLike, kernel: Kernel, inducing: int = INDUCING) -> InducedKernel:
    """Draw the inducing records and see all others through them.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> type(lood.induce(X, kernels.rbf(1.0), 5)).__name__
    'InducedKernel'
    """
    rows = real_numbers(X, "X")
    count = len(rows)
    number = min(inducing, count)
    require_memory(
        8 * (4 * number * count + 2 * number * number),
        f"the approximate audit of {count} records with {number} inducing ones",
        "use fewer inducing records",
    )
    chosen = np.sort(np.random.default_rng(0).permutation(count)[:number])
    corner = kernel(rows[chosen])
    corner[np.diag_indices(number)] += JITTER * float(np.mean(np.diagonal(corner)))
    try:
        lower = linalg.cholesky(corner, lower=True, overwrite_a=True)
    except linalg.LinAlgError as error:
        raise InputError(
            f"the kernel matrix of {number} inducing records is singular in float64 ({error}): "
            "use fewer of them."
        ) from error
    V = linalg.solve_triangular(lower, kernel(rows[chosen], rows), lower=True, overwrite_b=True)
    prior = kernel.diagonal(rows)
    empty = np.flatnonzero(~(np.isfinite(prior) & (prior > 0.0)))
    if empty.size:
        raise InputError(
            f"the kernel of the record in row {empty[0]} with itself is {prior[empty[0]]}; it "
            "must be positive and finite."
        )
    residual = prior - np.einsum("ij,ij->j", V, V)
    # An inducing record is seen in full; what is left is rounding and jitter.
    residual[chosen] = 0.0
    return InducedKernel(V=V, residual=np.maximum(residual, 0.0), inducing=chosen)


def fitc_records(induced: InducedKernel, y: ArrayLike, noise_variance: float) -> Separation:
    """The laws with and without each record, at that record, under the approximate kernel.

    Examples
    --------
    With every record inducing it is the dense answer:

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.lood.fitc import induce
    >>> rng = np.random.default_rng(0)
    >>> X, y, k = rng.normal(size=(50, 3)), rng.normal(size=50), kernels.rbf(1.0)
    >>> close = lood.fitc_records(induce(X, k, inducing=50), y, noise_variance=0.1)
    >>> dense = lood.all_records(k(X), y, noise_variance=0.1)
    >>> bool(np.allclose(close.kl, dense.kl, rtol=1e-6)), close.route
    (True, 'fitc')
    """
    V, residual = induced.V, induced.residual
    targets = checked_targets(y, V.shape[1], "the dataset")
    require_positive(noise_variance, "noise_variance")
    outputs = targets.reshape(len(targets), -1)
    spread = residual + noise_variance
    scaled = V / spread
    inner = scaled @ V.T
    norm = float(np.linalg.norm(inner, 1)) + 1.0
    inner[np.diag_indices(len(inner))] += 1.0
    lower = linalg.cholesky(inner, lower=True, overwrite_a=True)
    fitted = linalg.cho_solve((lower, True), scaled @ outputs)
    a = (outputs - V.T @ fitted) / spread[:, None]
    half = linalg.solve_triangular(lower, V, lower=True)
    seen = np.einsum("ij,ij->j", half, half) / spread
    complement = np.maximum(1.0 - seen, EPS)
    leverage = (residual + noise_variance * seen) / spread
    # With v_i/sqrt(Lambda_i) for features and 1 for the noise this is the feature-space route.
    whole = linalg.solve_triangular(lower, half, lower=True, trans="T", overwrite_b=True)
    reach = np.einsum("ij,ij->j", whole, whole)
    error_inner = ERROR_SHARE * EPS * norm
    error_seen = error_inner * reach / spread + EPS
    found = Leverages(
        leverage=leverage,
        m=complement / spread,
        a=a,
        relative_error_h=EPS + noise_variance * error_seen / (spread * leverage),
        relative_error_m=error_seen / complement,
        error_a=error_inner * np.sqrt(reach) * np.linalg.norm(fitted) / spread
        + EPS * np.linalg.norm(outputs, axis=1) / spread,
    )
    return laws_from_leverages(
        found,
        targets,
        noise_variance=noise_variance,
        condition_number=norm,
        route="fitc",
        assumptions=(
            Assumption(
                statement=f"{len(induced.inducing)} inducing records stand for all "
                f"{V.shape[1]} {STANDING_FOR_ALL}",
                holds=None,
                evidence="not compared with the dense answer",
            ),
        ),
    )


def approximation_error(
    X: ArrayLike,
    y: ArrayLike,
    kernel: Kernel,
    noise_variance: float,
    *,
    inducing: int = INDUCING,
    checked: int = CHECKED,
) -> ApproximationError:
    """Audit a subsample both ways, with the same share of inducing records.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 2)), rng.normal(size=400)
    >>> found = lood.approximation_error(
    ...     X, y, kernels.rbf(1.0), 0.1, inducing=200, checked=200)
    >>> found.records, found.inducing, found.rank_correlation > 0.99
    (200, 100, True)
    """
    rows, targets = real_numbers(X, "X"), real_numbers(y, "y")
    count = len(rows)
    some = np.sort(np.random.default_rng(1).permutation(count)[: min(checked, count)])
    share = max(2, round(len(some) * min(inducing, count) / count))
    exact = all_records(
        kernel(rows[some]), targets[some], noise_variance=noise_variance, overwrite=True
    ).kl
    close = fitc_records(induce(rows[some], kernel, share), targets[some], noise_variance).kl
    relative = np.abs(close / exact - 1.0)
    top = min(TOP, len(some))
    return ApproximationError(
        records=len(some),
        inducing=share,
        median_relative_error=float(np.median(relative)),
        largest_relative_error=float(np.max(relative)),
        rank_correlation=float(stats.spearmanr(close, exact).statistic),
        top_shared=len({*np.argsort(-close)[:top]} & {*np.argsort(-exact)[:top]}),
    )
