"""The dense route: every record, or group, at its own points, from one factorisation.

All n pairs of the paper's Def. C.3, each queried at its own record, cost one Cholesky
factorisation M = L L^T and one triangular inverse W = L^{-1}, because [M^{-1}]_ii is the squared
length of a column of W (:mod:`leakscope.lood.separation` has the formulas).  No query reveals more
about record i than x_i itself.

Groups need the blocks of M^{-1}: in the eigenvectors E of a unit's block (eigenvalues m_i) it falls
apart into coordinates with leverage h_i = 1 - s2 m_i and residual r_i = (E^T a_G)_i/m_i.  Units of
one size go through one batched eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood.inputs import checked_groups, checked_problem
from leakscope.lood.separation import Rows, Separation, confirmed_laws, record_laws


def all_records(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    noise_variance: float,
    overwrite: bool = False,
) -> Separation:
    """The laws with and without each record, at that record, for all records at once.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C).  They are used as they are; the process's prior mean is zero.
    noise_variance
        s2, in squared units of the target.
    overwrite
        Use the kernel matrix's memory for the factorisation; the matrix is lost.

    Raises
    ------
    InputError
        Where shapes do not fit, a record has no variance of its own, or K + s2 I is not positive
        definite to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> result = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> result.mean_with.round(12).tolist(), result.variance_with.round(12).tolist()
    ([0.0, 1.0], [0.5, 0.5])
    >>> result.mean_without.round(12).tolist(), result.variance_without.round(12).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    matrix, targets = checked_problem(kernel_matrix, y, noise_variance)
    prior = np.diagonal(matrix).copy()
    factor = factorise(matrix, noise_variance, overwrite=overwrite)
    a = cholesky.solve(factor, targets.reshape(len(targets), -1))
    m = cholesky.inverse_factor(factor, overwrite=True).inverse_diagonal()
    return record_laws(m, a, targets, prior=prior, noise_variance=noise_variance, norm=factor.norm)


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
    factor = factorise(matrix, noise_variance, overwrite=overwrite)
    norm = factor.norm
    a = cholesky.solve(factor, targets.reshape(len(targets), -1))
    lower = cholesky.inverse(factor, overwrite=True).packed

    def blocks(rows: Rows) -> FloatArray:
        i, j = rows[:, :, None], rows[:, None, :]
        return np.asarray(lower[np.maximum(i, j), np.minimum(i, j)])

    return group_laws(blocks, a, targets, labels, noise_variance=noise_variance, norm=norm)


def group_laws(
    blocks: Callable[[Rows], FloatArray],
    a: FloatArray,
    targets: FloatArray,
    groups: Rows,
    *,
    noise_variance: float,
    norm: float,
) -> Separation:
    """What each group's leaving changes; ``blocks`` gives M^{-1} at (b, g) rows, (b, g, g)."""
    members = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    share, m = np.empty(len(a)), np.empty(len(a))
    turned = np.empty_like(a)
    for size in np.unique(sizes):
        places = starts[sizes == size][:, None] + np.arange(size)
        rows = members[places]
        eigenvalues, vectors = np.linalg.eigh(blocks(rows))
        m[places] = np.maximum(eigenvalues, np.finfo(np.float64).tiny)
        turned[places] = np.swapaxes(vectors, 1, 2) @ a[rows]
    # A direction in which the group's records are copies of each other has no leverage.
    share = np.clip(1.0 - noise_variance * m, 0.0, 1.0)
    with_records = targets.reshape(a.shape) - noise_variance * a
    single = np.sqrt(noise_variance * np.maximum.reduceat(share, starts))[groups]
    trusted = confirmed_laws(with_records, single, noise_variance, norm)
    return Separation(
        targets=targets,
        excess=share / (noise_variance * m),
        residual=turned / m[:, None],
        trusted=np.logical_and.reduceat(trusted[members], starts),
        noise_variance=float(noise_variance),
        groups=groups,
    )


def factorise(
    kernel_matrix: FloatArray, noise_variance: float, *, overwrite: bool = False
) -> cholesky.Factor:
    """Factorise M = K + s2 I, or say what to do where it is not positive definite."""
    matrix = kernel_matrix
    if not overwrite or not matrix.flags.writeable:
        matrix = matrix.copy()
    matrix[np.diag_indices(len(matrix))] += noise_variance
    try:
        return cholesky.factorise(matrix, overwrite=True)
    except np.linalg.LinAlgError as error:
        raise not_positive_definite(noise_variance, error) from error


def not_positive_definite(noise_variance: float, why: object) -> InputError:
    """The sentence for a matrix that cannot be factorised."""
    return InputError(
        f"the kernel matrix with noise_variance {noise_variance:g} on its diagonal is not "
        f"positive definite in float64 ({why}): raise noise_variance, or check for repeated "
        "records."
    )
