"""Every group of records at its own points, from one inverse.

The groups are a partition, so that the blocks of all of them together are a part of one inverse
(:mod:`leakscope.lood.inverse_blocks` has the rest).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood.all_records import ERROR_SHARE, checked_problem, factorise, probes
from leakscope.lood.identities import EPS
from leakscope.lood.inverse_blocks import InverseBlocks, leverage_products, separation_of_blocks
from leakscope.lood.real_numbers import require_real
from leakscope.lood.separation import Separation


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
    if not overwrite or not matrix.flags.writeable:
        matrix = matrix.copy()
    np.fill_diagonal(matrix, prior + noise_variance)
    factor = factorise(matrix, noise_variance, overwrite=True)
    outputs = targets.reshape(len(targets), -1)
    solved = cholesky.solve(factor, np.column_stack([outputs, probes(len(targets))]))
    fit = _Packed(
        a=solved[:, : outputs.shape[1]],
        probed=solved[:, outputs.shape[1] :],
        error_matrix=ERROR_SHARE * EPS * factor.norm,
        noise_variance=float(noise_variance),
        prior=prior,
        condition_number=cholesky.condition_number(factor),
        packed=cholesky.inverse(factor, overwrite=True).packed,
    )
    return separation_of_blocks(fit, targets, labels)


def checked_groups(groups: ArrayLike, records: int) -> NDArray[np.intp]:
    """The groups' numbers, one per record, none left out."""
    require_real(groups, "groups")
    labels = np.asarray(groups)
    if labels.shape != (records,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"groups must be one whole number per record, ({records},), but it is an array of "
            f"{labels.dtype} of shape {labels.shape}."
        )
    found = np.unique(labels)
    if found[0] != 0 or found[-1] != len(found) - 1:
        raise InputError(
            f"groups must be numbered from 0 to {len(found) - 1} with none left out, but they run "
            f"from {found[0]} to {found[-1]}."
        )
    return labels.astype(np.intp)


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
