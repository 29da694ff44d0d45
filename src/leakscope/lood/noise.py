"""Every level of the noise: the laws at any of them, how ranks move with it, how it is chosen.

**Any level from one eigendecomposition.**  Symbols as in :mod:`leakscope.lood.separation`.  With
K = U diag(d) U^T and s2 the noise variance,

    m_i = sum_k U_ik^2/(d_k + s2)      a = U diag(1/(d + s2)) U^T y,

so that a further level costs O(n^2) where the dense route costs a factorisation.  For groups the
blocks U_G diag(1/(d + s2)) U_G^T take the place of m_i.  One eigendecomposition costs more than ten
factorisations (docs/lood.md).

**The sweep.**  The level of every number is set by the noise variance, and nobody knows it to
within a factor of a few; what should be read are ranks, and those that hold over two decades of it.

**The choice.**  Two criteria, in closed form for all s2 from the eigendecomposition, C outputs:

    marginal likelihood   -1/2 [y^T M^{-1} y + C log det M + n C log 2 pi],
    leave-one-out score   sum_i log N(y_i | mean without, variance without + s2)
                          = 1/2 sum_i [C log m_i - |a_i|^2/m_i - C log 2 pi].

Marginal likelihood fits the noise of the labels; that this is also the randomness of training is
an assumption, and the audit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.dense import group_laws
from leakscope.lood.inputs import checked_problem, real_numbers
from leakscope.lood.separation import Rows, Separation, record_laws


def spectrum_bytes(records: int) -> int:
    """What the decomposition needs: the matrix, its eigenvectors and LAPACK's workspace."""
    return 8 * 5 * records**2


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a kernel matrix, and its diagonal."""

    values: FloatArray  # (n,) rising; those that rounding makes negative are zeros
    vectors: FloatArray  # (n, n), column after column
    prior: FloatArray  # (n,) k(x, x)

    @classmethod
    def of(cls, matrix: FloatArray, driver: Literal["evd", "evr"] = "evd") -> Spectrum:
        """Decompose a symmetric matrix, by LAPACK's quickest driver or, evr, in less memory."""
        require_memory(
            spectrum_bytes(len(matrix)),
            f"the eigendecomposition of a {len(matrix)} x {len(matrix)} matrix",
            "take fewer records",
        )
        values, vectors = symmetric_eigen(matrix, driver)
        return cls(np.maximum(values, 0.0), vectors, np.diagonal(matrix).copy())

    def inverse(self, outputs: FloatArray, noise_variance: float) -> tuple[FloatArray, FloatArray]:
        """(n,) the diagonal of M^{-1} and (n, C) M^{-1} y."""
        shrunk = 1.0 / (self.values + noise_variance)
        a = self.vectors @ (shrunk[:, None] * (self.vectors.T @ outputs))
        return np.einsum("ij,ij,j->i", self.vectors, self.vectors, shrunk, optimize=True), a

    def separation(
        self, targets: FloatArray, noise_variance: float, *, groups: Rows | None = None
    ) -> Separation:
        """What each unit's leaving changes at one noise variance."""
        m, a = self.inverse(targets.reshape(len(targets), -1), noise_variance)
        norm = float(self.values[-1]) + noise_variance
        if groups is None:
            return record_laws(
                m, a, targets, prior=self.prior, noise_variance=noise_variance, norm=norm
            )
        shrunk = 1.0 / (self.values + noise_variance)

        def blocks(rows: Rows) -> FloatArray:
            vectors = self.vectors[rows]
            return np.asarray((vectors * shrunk) @ np.swapaxes(vectors, 1, 2))

        return group_laws(blocks, a, targets, groups, noise_variance=noise_variance, norm=norm)


def noise_path(
    kernel_matrix: FloatArray, y: FloatArray, *, noise_variances: ArrayLike
) -> Iterator[Separation]:
    """The laws with and without each record, at each noise variance in turn.

    What :func:`leakscope.lood.all_records` says at each level.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C), used as they are; the prior mean is zero.
    noise_variances
        (L,) the levels, in any order, in squared units of the target.

    Raises
    ------
    InputError
        Where shapes do not fit or a level is not positive, before anything is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> path = lood.noise_path(np.eye(2), np.array([0.0, 2.0]), noise_variances=[1.0, 3.0])
    >>> [laws.leverage.round(12).tolist() for laws in path]
    [[0.5, 0.5], [0.25, 0.25]]
    """
    levels = np.atleast_1d(real_numbers(noise_variances, "noise_variances"))
    if levels.ndim != 1 or levels.size == 0:
        raise InputError(f"noise_variances must be a list, but its shape is {levels.shape}.")
    for level in levels:
        matrix, targets = checked_problem(kernel_matrix, y, float(level))
    spectrum = Spectrum.of(matrix)
    return (spectrum.separation(targets, level) for level in levels.tolist())


# Half a decade apart, two decades in all, the audit's own level in the middle.
FACTORS = (0.1, 10.0**-0.5, 1.0, 10.0**0.5, 10.0)


@dataclass(frozen=True)
class NoiseSweep:
    """The ranks of all units at several noise variances, 1 for the most exposed."""

    noise_variances: FloatArray  # (L,) the levels, rising
    kl: FloatArray  # (L, U) KL(without || with) at each
    ranks: Rows  # (L, U)


def sweep_noise(
    laws_at: Callable[[float], Separation], noise_variance: float, known: Separation | None = None
) -> NoiseSweep:
    """Audit at five noise variances, from a tenth to ten times the given one.

    Parameters
    ----------
    laws_at
        The laws at a noise variance, by any route; a level that float64 refuses is left out.
    noise_variance, known
        The level in the middle, and the laws there where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> K, y = np.diag([1.0, 2.0]), np.array([1.5, 0.0])
    >>> sweep = lood.sweep_noise(lambda s2: lood.all_records(K, y, noise_variance=s2), 1.0)
    >>> sweep.noise_variances.round(3).tolist()
    [0.1, 0.316, 1.0, 3.162, 10.0]
    >>> sweep.ranks.tolist()
    [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]
    """
    by_level: dict[float, FloatArray] = {}
    for factor in FACTORS:
        level = float(noise_variance * factor)
        try:
            laws = known if factor == 1.0 and known is not None else laws_at(level)
        except InputError:
            # The level the user asked for must work; one that the sweep adds need not.
            if factor == 1.0:
                raise
            continue
        by_level[level] = laws.kl
    kl = np.array(list(by_level.values()))
    return NoiseSweep(np.array(list(by_level)), kl, np.array([ranks_of(row) for row in kl]))


def ranks_of(kl: FloatArray) -> Rows:
    """1 for the largest; equal numbers keep their order, as in the audit's own ranking."""
    ranks = np.empty(len(kl), dtype=np.intp)
    ranks[np.argsort(-kl, kind="stable")] = np.arange(1, len(kl) + 1)
    return ranks


Criterion = Literal["marginal_likelihood", "leave_one_out"]

# The noise variance is sought between these, in units of the kernel's mean diagonal; eight values
# a decade bracket the largest score.
LOWEST, HIGHEST = 1e-8, 1e4
GRID = 97


@dataclass(frozen=True)
class NoiseChoice:
    """The noise variance that a criterion prefers."""

    noise_variance: float
    criterion: Criterion
    score: float  # the criterion's value there, in nats for each record and output
    at_bound: bool  # whether the best value lies at an end of the search, and so says only "beyond"


def choose_noise(
    kernel_matrix: FloatArray, y: FloatArray, *, criterion: Criterion = "marginal_likelihood"
) -> NoiseChoice:
    """The noise variance that a criterion prefers.

    Cost: one eigendecomposition of the kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(300, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=300)
    >>> choice = lood.choose_noise(kernels.rbf(1.0)(X), y)
    >>> 0.07 < choice.noise_variance < 0.12
    True
    """
    if criterion not in get_args(Criterion):
        raise InputError(
            f"the criterion must be one of {', '.join(get_args(Criterion))}, but it is "
            f"{criterion!r}."
        )
    matrix, targets = checked_problem(kernel_matrix, y, 1.0)
    outputs = targets.reshape(len(targets), -1)
    spectrum = Spectrum.of(matrix, "evr")
    squares = np.sum((spectrum.vectors.T @ outputs) ** 2, axis=1)

    def score(log_level: float) -> float:
        level = float(np.exp(log_level))
        if criterion == "marginal_likelihood":
            values = spectrum.values + level
            fit, volume = float(np.sum(squares / values)), float(np.mean(np.log(values)))
        else:
            m, a = spectrum.inverse(outputs, level)
            fit, volume = float(np.sum(a**2 / m[:, None])), -float(np.mean(np.log(m)))
        return -0.5 * (fit / outputs.size + volume + float(np.log(2.0 * np.pi)))

    unit = float(np.mean(spectrum.prior))
    grid = np.linspace(np.log(LOWEST * unit), np.log(HIGHEST * unit), GRID)
    best = int(np.argmax([score(x) for x in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    peak = optimize.minimize_scalar(
        lambda x: -score(x), bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    return NoiseChoice(
        noise_variance=float(np.exp(peak.x)),
        criterion=criterion,
        score=-float(peak.fun),
        at_bound=best in (0, GRID - 1),
    )
