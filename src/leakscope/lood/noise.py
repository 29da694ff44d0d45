"""Every level of the noise: the laws at any of them, how ranks move with it, how it is chosen.

**Any level from one eigendecomposition.**  Symbols as in :mod:`leakscope.lood.separation`.  With
K = U diag(d) U^T and s2 the noise variance,

    h_i = sum_k U_ik^2 d_k/(d_k + s2)      m_i = sum_k U_ik^2/(d_k + s2)
    a   = U diag(1/(d + s2)) U^T y,

so that a further level costs O(n^2) where the dense route costs a factorisation.  All terms of h_i
and m_i are positive: neither loses digits where the other is near 1.  For groups the blocks
U_G diag(1/(d + s2)) U_G^T take the place of m_i.  One eigendecomposition costs more than ten
factorisations (docs/lood.md): for a few levels `sweep_noise` is quicker.

**The sweep.**  The level of every number is set by the noise variance, and nobody knows it to
within a factor of a few; what should be read are ranks, and those that hold over two decades of it.
Each level beside the audit's own is another factorisation and triangular inverse, in the memory of
one kernel matrix.

**The choice.**  M = v (K + r I), v the kernel's scale, s2 = v r, C outputs.  Two criteria, both in
closed form for all r from one eigendecomposition of K:

    marginal likelihood   -1/2 [y^T M^{-1} y + C log det M + n C log 2 pi],
    leave-one-out score   sum_i log N(y_i | mean without, variance without + s2)
                          = 1/2 sum_i [C log m_i - |a_i|^2/m_i - C log 2 pi].

For either the best v given r has a closed form too, so that the search is over one number.
Marginal likelihood fits the noise of the labels; that this is also the randomness of training is
an assumption, and the audit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cholesky import refill
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.dense import all_records
from leakscope.lood.features import FeatureSums
from leakscope.lood.groups import InverseBlocks, separation_of_blocks
from leakscope.lood.inputs import checked_problem, real_numbers
from leakscope.lood.separation import EPS, Leverages, Separation, laws_from_leverages

# How many eps ||M|| an eigendecomposition's backward error is taken to be.  Over 470 records
# refitted at 40 digits the largest error was 0.6 of the estimate that follows, the median 0.02.
ERROR_SHARE = 2.0


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
        found, vectors = symmetric_eigen(matrix, driver)
        return cls(np.maximum(found, 0.0), vectors, np.diagonal(matrix).copy())

    @cached_property
    def squares(self) -> FloatArray:
        """(n, n) U_ik^2."""
        return np.asarray(self.vectors**2)

    def separation(
        self,
        targets: FloatArray,
        noise_variance: float,
        *,
        groups: NDArray[np.intp] | None = None,
    ) -> Separation:
        """What each unit's leaving changes at one noise variance."""
        if groups is None:
            return next(self.path(targets, np.array([noise_variance])))
        shrunk = 1.0 / (self.values + noise_variance)
        turned = self.vectors.T @ targets.reshape(len(targets), -1)
        norm = float(self.values[-1]) + noise_variance
        return separation_of_blocks(
            _Blocks(
                a=self.vectors @ (turned * shrunk[:, None]),
                error_matrix=ERROR_SHARE * EPS * norm,
                noise_variance=float(noise_variance),
                condition_number=norm / (float(self.values[0]) + noise_variance),
                spectrum=self,
                shrunk=shrunk,
            ),
            targets,
            groups,
        )

    def path(self, targets: FloatArray, levels: FloatArray) -> Iterator[Separation]:
        """What each record's leaving changes, at each noise variance in turn."""
        outputs = targets.reshape(len(targets), -1)
        values, turned = self.values, self.vectors.T @ outputs
        shrunk = 1.0 / (values[:, None] + levels)
        m = self.squares @ shrunk
        leverage = self.squares @ (values[:, None] * shrunk)
        reach = self.squares @ shrunk**2
        for place, level in enumerate(levels.tolist()):
            norm = float(values[-1]) + level
            # The same bounds as in the dense route: rounding must not make a variance negative.
            h = np.clip(leverage[:, place], self.prior / norm, self.prior / (self.prior + level))
            a = self.vectors @ (shrunk[:, place, None] * turned)
            error_matrix = ERROR_SHARE * EPS * norm
            relative_m = error_matrix * reach[:, place] / m[:, place]
            yield laws_from_leverages(
                Leverages(
                    leverage=h,
                    m=m[:, place],
                    a=a,
                    relative_error_h=EPS + relative_m * level * m[:, place] / h,
                    relative_error_m=relative_m,
                    error_a=error_matrix * np.sqrt(reach[:, place]) * np.linalg.norm(a),
                ),
                targets,
                noise_variance=level,
                condition_number=norm / (float(values[0]) + level),
                route="dense",
            )


@dataclass(frozen=True, eq=False)
class _Blocks(InverseBlocks):
    """Blocks of M^{-1} at one level; ``shrunk`` is 1/(d + s2)."""

    spectrum: Spectrum
    shrunk: FloatArray

    def block(self, rows: NDArray[np.intp]) -> FloatArray:
        own = self.spectrum.vectors[rows]
        return np.asarray((own * self.shrunk) @ np.swapaxes(own, 1, 2))

    def reach(self, rows: NDArray[np.intp], vectors: FloatArray) -> FloatArray:
        turned = np.swapaxes(vectors, 1, 2) @ (self.spectrum.vectors[rows] * self.shrunk)
        return np.asarray(np.sum(turned**2, axis=2))

    def leverage(
        self, rows: NDArray[np.intp], vectors: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        weights = (vectors.T @ self.spectrum.vectors[rows]) ** 2
        found = weights @ (self.spectrum.values * self.shrunk)
        return found, EPS * found


def noise_path(
    kernel_matrix: FloatArray, y: FloatArray, *, noise_variances: ArrayLike
) -> Iterator[Separation]:
    """The laws with and without each record, at each noise variance in turn.

    What :func:`leakscope.lood.all_records` says at each level.  ``condition_number`` is in the
    2-norm here.

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
    count = len(matrix)
    require_memory(
        spectrum_bytes(count),
        f"the eigendecomposition of a {count} x {count} matrix",
        "take fewer records, or lood.sweep_noise",
    )
    return Spectrum.of(matrix).path(targets, levels)


# Half a decade apart, two decades in all, the audit's own level in the middle.
FACTORS = (0.1, 10.0**-0.5, 1.0, 10.0**0.5, 10.0)


@dataclass(frozen=True)
class NoiseSweep:
    """The ranks of all records at several noise variances, 1 for the most exposed."""

    noise_variances: FloatArray  # (L,) the levels, rising
    kl: FloatArray  # (L, n) KL(without || with) at each
    ranks: NDArray[np.intp]  # (L, n)
    # (n,) the best and the worst rank over the levels: the record is among the ``rank_high`` most
    # exposed at every level
    rank_low: NDArray[np.intp]
    rank_high: NDArray[np.intp]
    # levels at which float64 could not factorise, left out of the above
    refused: tuple[float, ...] = ()


def sweep_noise(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    noise_variance: float,
    known: Separation | None = None,
    prior: FloatArray | None = None,
    overwrite: bool = False,
) -> NoiseSweep:
    """Audit at five noise variances, from a tenth to ten times the given one.

    Parameters
    ----------
    kernel_matrix, y, noise_variance
        As for :func:`leakscope.lood.all_records`.
    known
        The answer at ``noise_variance`` itself, where it is there already.
    prior
        The kernel's diagonal, where ``all_records`` has been let overwrite the matrix: what it
        leaves, one triangle, is enough.
    overwrite
        Use the kernel matrix's memory; the matrix is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> sweep = lood.sweep_noise(np.diag([1.0, 2.0]), np.array([1.5, 0.0]), noise_variance=1.0)
    >>> sweep.noise_variances.round(3).tolist()
    [0.1, 0.316, 1.0, 3.162, 10.0]
    >>> sweep.ranks.tolist()
    [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]
    """
    matrix = real_numbers(kernel_matrix, "the kernel matrix")
    prior = np.diagonal(matrix).copy() if prior is None else prior
    if not overwrite or not (matrix.flags.f_contiguous or matrix.flags.c_contiguous):
        matrix = np.array(matrix, order="F")
    packed = matrix if matrix.flags.f_contiguous else matrix.T

    def at(level: float) -> Separation:
        refill(packed, prior)
        return all_records(packed, y, noise_variance=level, overwrite=True)

    return sweep_levels(at, noise_variance, known)


def added_levels(noise_variance: float) -> tuple[float, ...]:
    """The levels that a sweep adds to the audit's own."""
    return tuple(float(noise_variance * factor) for factor in FACTORS if factor != 1.0)


def sweep_levels(
    audit_at: Callable[[float], Separation],
    noise_variance: float,
    known: Separation | None,
) -> NoiseSweep:
    """The sweep by any route: ``audit_at`` gives the laws at a noise variance."""
    levels: list[float] = []
    found: list[FloatArray] = []
    refused: list[float] = []
    for factor in FACTORS:
        level = float(noise_variance * factor)
        if factor == 1.0 and known is not None:
            levels.append(level)
            found.append(known.kl)
            continue
        try:
            kl = audit_at(level).kl
        except InputError:
            # The level the user asked for must work; one that the sweep adds need not.
            if factor == 1.0:
                raise
            refused.append(level)
            continue
        levels.append(level)
        found.append(kl)
    kl = np.array(found)
    ranks = np.array([ranks_of(row) for row in kl])
    return NoiseSweep(
        noise_variances=np.array(levels),
        kl=kl,
        ranks=ranks,
        rank_low=ranks.min(axis=0),
        rank_high=ranks.max(axis=0),
        refused=tuple(refused),
    )


def ranks_of(kl: FloatArray) -> NDArray[np.intp]:
    """1 for the largest; equal numbers keep their order, as in the audit's own ranking."""
    ranks = np.empty(len(kl), dtype=np.intp)
    ranks[np.argsort(-kl, kind="stable")] = np.arange(1, len(kl) + 1)
    return ranks


Criterion = Literal["marginal_likelihood", "leave_one_out"]
CRITERIA: tuple[str, ...] = get_args(Criterion)

# r is sought between these, in units of the kernel's mean diagonal.
LOWEST, HIGHEST = 1e-8, 1e4
GRID = 73


@dataclass(frozen=True)
class NoiseChoice:
    """The noise variance that a criterion prefers."""

    noise_variance: float
    kernel_scale: float  # 1 unless it was asked for
    criterion: Criterion
    score: float  # the criterion's value there, in nats for each record and output
    at_bound: bool  # whether the best value lies at an end of the search, and so says only "beyond"

    def sentence(self) -> str:
        """The choice in words."""
        named = {
            "marginal_likelihood": "the marginal likelihood",
            "leave_one_out": "the leave-one-out predictive score",
        }[self.criterion]
        scale = "" if self.kernel_scale == 1.0 else f" with a kernel scale {self.kernel_scale:.4g}"
        bound = ", at the end of the range searched" if self.at_bound else ""
        return f"noise_variance {self.noise_variance:.4g}{scale} maximises {named}{bound}"


def choose_noise(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    criterion: Criterion = "marginal_likelihood",
    fit_scale: bool = False,
) -> NoiseChoice:
    """The noise variance, and with ``fit_scale`` the kernel's scale, that a criterion prefers.

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
    if criterion not in CRITERIA:
        raise InputError(
            f"the criterion must be one of {', '.join(CRITERIA)}, but it is {criterion!r}."
        )
    matrix, targets = checked_problem(kernel_matrix, y, 1.0)
    outputs = targets.reshape(len(targets), -1)
    unit = float(np.mean(np.diagonal(matrix)))
    spectrum = Spectrum.of(matrix, "evr")
    eigenvalues, vectors = spectrum.values, spectrum.vectors
    turned = vectors.T @ outputs
    squared_vectors = spectrum.squares if criterion == "leave_one_out" else None

    def score_and_scale(log_r: float) -> tuple[float, float]:
        r = unit * float(np.exp(log_r))
        shrunk = 1.0 / (eigenvalues + r)
        if squared_vectors is None:
            quadratic = float(np.sum(turned**2 * shrunk[:, None])) / outputs.size
            log_volume = float(np.mean(np.log(eigenvalues + r)))
        else:
            m = squared_vectors @ shrunk
            a = vectors @ (turned * shrunk[:, None])
            quadratic = float(np.sum(a**2 / m[:, None])) / outputs.size
            log_volume = -float(np.mean(np.log(m)))
        scale = quadratic if fit_scale else 1.0
        value = quadratic / scale + log_volume + np.log(scale) + np.log(2.0 * np.pi)
        return -0.5 * float(value), scale

    if fit_scale and not outputs.any():
        raise InputError("the targets are all zero: no kernel scale fits them best.")
    return _best(score_and_scale, unit, criterion)


def choose_noise_of_sums(sums: FeatureSums) -> NoiseChoice:
    """The noise variance of largest marginal likelihood, under finite features.

    With A = Phi^T Phi + r I (d x d) and beta = A^{-1} Phi^T y,

        y^T M^{-1} y = (|y|^2 - beta . Phi^T y)/r,    log det M = log det A + (n - d) log r,

    so that the sums over the records are enough, however many there are.
    """
    spectrum = Spectrum.of(sums.gram.copy(), "evr")
    eigenvalues, turned = spectrum.values, np.sum((spectrum.vectors.T @ sums.product) ** 2, axis=1)
    width, outputs = sums.product.shape

    def score_and_scale(log_r: float) -> tuple[float, float]:
        r = unit * float(np.exp(log_r))
        left = max(sums.squares - float(np.sum(turned / (eigenvalues + r))), 0.0)
        quadratic = left / r / (sums.records * outputs)
        log_volume = float(np.sum(np.log(eigenvalues + r))) + (sums.records - width) * np.log(r)
        return -0.5 * (quadratic + log_volume / sums.records + np.log(2.0 * np.pi)), 1.0

    unit = float(np.trace(sums.gram)) / sums.records
    return _best(score_and_scale, unit, "marginal_likelihood")


def _best(
    score_and_scale: Callable[[float], tuple[float, float]], unit: float, criterion: Criterion
) -> NoiseChoice:
    """Where the score is largest, r being sought in units of the kernel's mean diagonal."""
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), GRID)
    best = int(np.argmax([score_and_scale(x)[0] for x in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    found = optimize.minimize_scalar(
        lambda x: -score_and_scale(x)[0], bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    log_r = float(found.x)
    score, scale = score_and_scale(log_r)
    return NoiseChoice(
        noise_variance=scale * unit * float(np.exp(log_r)),
        kernel_scale=scale,
        criterion=criterion,
        score=score,
        at_bound=best in (0, GRID - 1),
    )
