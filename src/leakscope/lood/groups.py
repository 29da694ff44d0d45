"""Every group of records at its own points, from blocks of M^{-1}.

Symbols as in :mod:`leakscope.lood.separation`: in the eigenvectors E of a unit's block (eigenvalues
m_i) the unit falls apart into coordinates with leverage h_i = 1 - s2 m_i, excess x_i = h_i/(s2 m_i)
and residual r_i = (E^T a_G)_i/m_i.  Units of one size go through one batched eigendecomposition,
whoever computed the blocks; where the groups are a partition, those of all of them together are a
part of one inverse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.lood.dense import ERROR_SHARE, factorise, probes
from leakscope.lood.inputs import checked_groups, checked_problem
from leakscope.lood.separation import EPS, SMALL_LEVERAGE, Separation, resolved
from leakscope.measures.normal_divergence import kl_parts

Rows = NDArray[np.intp]


# Of a single record's share of the rounding: in a block several errors meet, and one processor (AMD
# EPYC) gave 1.2 times what would be expected of one record.
GROUP_ERROR_SHARE = 1.5 * ERROR_SHARE


@dataclass(frozen=True, eq=False)
class InverseBlocks(ABC):
    """What is known of M^{-1}."""

    a: FloatArray  # (n, C) M^{-1} y
    error_matrix: float  # the size of the change of M to which rounding amounts
    noise_variance: float
    condition_number: float  # of M

    @abstractmethod
    def block(self, rows: Rows) -> FloatArray:
        """(b, g, g) blocks of the inverse at (b, g) row numbers."""

    @abstractmethod
    def reach(self, rows: Rows, vectors: FloatArray) -> FloatArray:
        """(b, g) ||M^{-1} E e_i||^2 of the columns of E, (b, g, g), placed at (b, g) rows."""

    @abstractmethod
    def leverage(self, rows: Rows, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(g,) h of one unit as a sum that keeps its digits near 0, and a bound on its rounding."""


def separation_of_blocks(
    blocks: InverseBlocks,
    targets: FloatArray,
    groups: Rows | None,
    *,
    rows: Rows | None = None,
) -> Separation:
    """What each unit's leaving changes.

    Parameters
    ----------
    blocks
        Of the inverse.
    targets
        (n,) or (n, C).
    groups
        (n,) numbers 0 to G - 1; None where records leave singly.
    rows
        (n,) the row in ``blocks`` of each record; the first n where left out.
    """
    count, s2 = len(targets), blocks.noise_variance
    labels = np.arange(count) if groups is None else groups
    members = np.argsort(labels, kind="stable")
    placed = members if rows is None else rows[members]
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    outputs = blocks.a.shape[1]
    excess, residual = np.empty(count), np.empty((count, outputs))
    free, label, error = np.empty(len(sizes)), np.empty(len(sizes)), np.empty(len(sizes))
    norm = float(np.linalg.norm(blocks.a if rows is None else blocks.a[rows]))
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        places = starts[alike][:, None] + np.arange(size)
        found = _alike(blocks, placed[places], norm)
        excess[places], residual[places] = found.excess, found.a / found.m[:, :, None]
        parts = kl_parts(found.excess, np.sum(found.a**2, axis=2) / found.m, outputs)
        free[alike], label[alike] = parts[0].sum(axis=1), parts[1].sum(axis=1)
        error[alike] = found.absolute_error
    error = error / np.maximum(free + label, np.finfo(np.float64).tiny)
    return Separation(
        targets=targets,
        excess=excess,
        residual=residual,
        kl_label_free=free,
        kl_label=label,
        error_estimate=error,
        trusted=resolved(free + label, error),
        condition_number=blocks.condition_number,
        noise_variance=s2,
        groups=groups,
    )


@dataclass(frozen=True)
class _Alike:
    """The coordinates of b units of one size: (b, g), ``a`` turned (b, g, C), the error (b,)."""

    m: FloatArray
    excess: FloatArray
    a: FloatArray
    absolute_error: FloatArray


def _alike(blocks: InverseBlocks, rows: Rows, norm: float) -> _Alike:
    s2 = blocks.noise_variance
    block = blocks.block(rows)
    if rows.shape[1] == 1:
        m, E = block[:, :, 0], np.ones_like(block)
    else:
        m, E = np.linalg.eigh(block)
    # The eigenvalues lie above 0, which rounding may overstep.
    m = np.maximum(m, np.finfo(np.float64).tiny)
    leverage, error_h = 1.0 - s2 * m, (EPS * s2 * np.broadcast_to(m[:, -1:], m.shape)).copy()
    for place in np.flatnonzero(leverage.min(axis=1) < SMALL_LEVERAGE):
        products, rounding = blocks.leverage(rows[place], E[place])
        better = rounding < error_h[place]
        leverage[place] = np.where(better, products, leverage[place])
        error_h[place] = np.where(better, rounding, error_h[place])
    # A direction in which the group's records are copies of each other has none.
    leverage = np.clip(leverage, 0.0, 1.0)
    a = np.swapaxes(E, 1, 2) @ blocks.a[rows]
    reach = blocks.reach(rows, E)
    # The eigenvalues themselves are right to eps times the largest of the block.
    relative_m = (blocks.error_matrix * reach + EPS * m[:, -1:]) / m
    x = leverage / (s2 * m)
    error_x = (error_h + relative_m * s2 * m) / (s2 * m) + x * relative_m
    squares = np.sum(a**2, axis=2)
    error_a = blocks.error_matrix * np.sqrt(reach) * norm
    error_t = (2.0 * np.sqrt(squares) * error_a + error_a**2 + squares * relative_m) / m
    absolute = 0.5 * a.shape[2] * (x / (1.0 + x)) * error_x
    absolute += 0.5 * (squares / m) * error_x + 0.5 * x * error_t
    return _Alike(m, x, a, absolute.sum(axis=1))


@dataclass(frozen=True, eq=False)
class WholeInverse(InverseBlocks):
    """The whole inverse A = M^{-1}, (n, n), beside the kernel matrix.

    Records can be taken out of it.  Their rows stay, as zeros or nearly.
    """

    inverse: FloatArray
    kernel_matrix: FloatArray
    norm: float

    @classmethod
    def of(
        cls,
        factor: cholesky.Factor,
        kernel_matrix: FloatArray,
        outputs: FloatArray,
        noise_variance: float,
    ) -> WholeInverse:
        """From the factor of M, which is lost, and K; ``outputs`` is (n, C)."""
        a = np.array(cholesky.solve(factor, outputs))
        condition_number = cholesky.condition_number(factor)
        lower = np.tril(cholesky.inverse(factor, overwrite=True).packed)
        return cls(
            a=a,
            error_matrix=GROUP_ERROR_SHARE * EPS * factor.norm,
            noise_variance=noise_variance,
            condition_number=condition_number,
            inverse=lower + np.tril(lower, -1).T,
            kernel_matrix=kernel_matrix,
            norm=factor.norm,
        )

    def without(self, gone: Rows) -> WholeInverse:
        """The inverse over the others, in this one's memory, for b records gone in O(n^2 b).

        With B those that go and R the others,

            [M_RR]^{-1} = A_RR - A_RB [A_BB]^{-1} A_BR,    a_R -> a_R - A_RB [A_BB]^{-1} a_B.
        """
        columns = self.inverse[:, gone]
        solved = linalg.solve(columns[gone], columns.T, assume_a="pos", check_finite=False)
        own = self.a[gone].copy()
        np.subtract(self.inverse, columns @ solved, out=self.inverse)
        np.subtract(self.a, solved.T @ own, out=self.a)
        # Each time rounds once more, by about as much as the factorisation did.
        return replace(self, error_matrix=self.error_matrix + GROUP_ERROR_SHARE * EPS * self.norm)

    def block(self, rows: Rows) -> FloatArray:
        """(b, g, g) at (b, g) rows."""
        return np.asarray(self.inverse[rows[:, :, None], rows[:, None, :]])

    def reach(self, rows: Rows, vectors: FloatArray) -> FloatArray:
        """||M^{-1} E e_i||^2, (b, g)."""
        if rows.shape[1] == 1:
            own = self.inverse[rows[:, 0]]
            return np.asarray(np.einsum("ij,ij->i", own, own)[:, None])
        turned = np.swapaxes(vectors, 1, 2) @ self.inverse[rows]
        return np.asarray(np.sum(turned**2, axis=2))

    def leverage(self, rows: Rows, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h of one unit's coordinates as sum_j (K E)_ji (M^{-1} E)_ji, and its rounding."""
        return leverage_products(self.kernel_matrix[:, rows], self.inverse[:, rows], vectors)


def leverage_products(
    kernel_columns: FloatArray, inverse_columns: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(g,) h_i = sum_j (K E)_ji (M^{-1} E)_ji from (n, g) columns, and a bound on its rounding."""
    turned = inverse_columns @ vectors
    products = np.einsum("ni,ni->i", kernel_columns @ vectors, turned)
    sizes = np.abs(kernel_columns) @ np.abs(vectors)
    return products, EPS * np.einsum("ni,ni->i", sizes, np.abs(turned))


def all_groups(
    kernel_matrix: FloatArray,
    y: FloatArray,
    groups: ArrayLike,
    *,
    noise_variance: float,
    overwrite: bool = False,
) -> Separation:
    """The joint laws with and without each group, at the group's own points, for all at once.

    What :func:`leakscope.lood.distinguish` says of one group, for every group of a partition.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C), used as they are; the prior mean is zero.
    groups
        (n,) numbers 0 to G - 1, one per record; those with the same number leave together.
    noise_variance
        s2, in squared units of the target.
    overwrite
        Use the kernel matrix's memory for the inverse; the matrix is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> result = lood.all_groups(np.eye(3), np.array([0.0, 2.0, 2.0]), [0, 1, 1],
    ...                          noise_variance=1.0)
    >>> result.sizes.tolist(), result.kl.round(4).tolist()
    ([1, 2], [0.1534, 2.3069])
    """
    matrix, targets = checked_problem(kernel_matrix, y, noise_variance)
    labels = checked_groups(groups, len(matrix))
    prior = np.diagonal(matrix).copy()
    factor = factorise(matrix, noise_variance, overwrite=overwrite)
    outputs = targets.reshape(len(targets), -1)
    solved = cholesky.solve(factor, np.column_stack([outputs, probes(len(targets))]))
    fit = _Packed(
        a=solved[:, : outputs.shape[1]],
        probed=solved[:, outputs.shape[1] :],
        error_matrix=GROUP_ERROR_SHARE * EPS * factor.norm,
        noise_variance=float(noise_variance),
        prior=prior,
        condition_number=cholesky.condition_number(factor),
        packed=cholesky.inverse(factor, overwrite=True).packed,
    )
    return separation_of_blocks(fit, targets, labels)


@dataclass(frozen=True, eq=False)
class _Packed(InverseBlocks):
    """One inverse: ``packed`` has M^{-1} in its lower triangle and M in its strict upper one."""

    probed: FloatArray
    prior: FloatArray
    packed: FloatArray

    def block(self, rows: NDArray[np.intp]) -> FloatArray:
        """(b, g, g) blocks of the inverse at (b, g) row numbers."""
        i, j = rows[:, :, None], rows[:, None, :]
        return self.packed[np.maximum(i, j), np.minimum(i, j)]

    def reach(self, rows: NDArray[np.intp], vectors: FloatArray) -> FloatArray:
        """Random signs z give ||M^{-1} E e_i||^2 as the average of (E^T M^{-1} z)_i^2."""
        turned = np.swapaxes(vectors, 1, 2) @ self.probed[rows]
        return np.asarray(np.mean(turned**2, axis=2))

    def leverage(
        self, rows: NDArray[np.intp], vectors: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """h of one group's coordinates from the columns of K and of the inverse."""
        every = np.arange(len(self.packed))[:, None]
        high, low = np.maximum(every, rows), np.minimum(every, rows)
        own = self.packed[low, high]
        own[rows, np.arange(len(rows))] = self.prior[rows]
        return leverage_products(own, self.packed[high, low], vectors)
