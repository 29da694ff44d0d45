"""How the ranks move when the noise variance does.

The level of every number is set by the noise variance, and nobody knows it to within a factor of
a few; what should be read are ranks, and those that hold over two decades of it.

Cost: each level beside the audit's own is another factorisation and triangular inverse.  One
eigendecomposition would serve all levels, but costs more than ten of them (docs/lood.md), so five
levels are factorised, in the memory of one kernel matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cholesky import refill
from leakscope.errors import InputError
from leakscope.lood.all_records import all_records
from leakscope.lood.real_numbers import real_numbers
from leakscope.lood.separation import Separation

# Half a decade apart, two decades in all, the audit's own level in the middle.
FACTORS = (0.1, 10.0**-0.5, 1.0, 10.0**0.5, 10.0)


@dataclass(frozen=True)
class NoiseSweep:
    """The ranks of all records at several noise variances, 1 for the most exposed.

    Attributes
    ----------
    noise_variances
        (L,) the levels, rising.
    kl
        (L, n) KL(without || with) at each.
    ranks
        (L, n)
    rank_low, rank_high
        (n,) the best and the worst rank over the levels: the record is among the ``rank_high``
        most exposed at every level.
    refused
        Levels at which float64 could not factorise, left out of the above.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.2, -1.0])
    >>> sweep = lood.sweep_noise(kernels.rbf(1.0)(X), y, noise_variance=0.1)
    >>> sweep.rank_low.tolist(), sweep.rank_high.tolist()
    ([3, 2, 1], [3, 2, 1])
    """

    noise_variances: FloatArray
    kl: FloatArray
    ranks: NDArray[np.intp]
    rank_low: NDArray[np.intp]
    rank_high: NDArray[np.intp]
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
    """The levels that a sweep adds to the audit's own.

    Examples
    --------
    >>> from leakscope import lood
    >>> [round(level, 3) for level in lood.added_levels(1.0)]
    [0.1, 0.316, 3.162, 10.0]
    """
    return tuple(float(noise_variance * factor) for factor in FACTORS if factor != 1.0)


def sweep_levels(
    audit_at: Callable[[float], Separation],
    noise_variance: float,
    known: Separation | None,
) -> NoiseSweep:
    """The sweep by any route: ``audit_at`` gives the laws at a noise variance.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [0.2], [3.0]]), np.array([1.0, 1.1, 0.9, -1.0])
    >>> process = lood.Process(X, y, kernels.rbf(1.0), noise_variance=0.1)
    >>> found = lood.sweep_levels(lambda s2: process.with_noise(s2).separation(), 0.1, None)
    >>> len(found.noise_variances)
    5
    """
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
    """1 for the largest; equal numbers keep their order, as in the audit's own ranking.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> lood.ranks_of(np.array([0.2, 3.0, 0.2])).tolist()
    [2, 1, 3]
    """
    ranks = np.empty(len(kl), dtype=np.intp)
    ranks[np.argsort(-kl, kind="stable")] = np.arange(1, len(kl) + 1)
    return ranks
