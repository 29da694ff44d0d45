"""Every group of records at its own points, from one inverse.

Symbols as in :mod:`leakscope.lood.distinguish`: M = K + s2 I, a = M^{-1} y, and for the group G the
block V_G = [M^{-1}]_GG.  In the eigenvectors of V_G (eigenvalues m_i) the group falls apart into g
independent "records" with leverage h_i = 1 - s2 m_i, excess x_i = h_i/(s2 m_i) and score
t_i = (E^T a_G)_i/sqrt(m_i).  The groups are a partition, so that all blocks together are a part of
one inverse, and groups of one size go through one batched eigendecomposition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood.all_records import (
    ERROR_SHARE,
    SMALL_LEVERAGE,
    checked_problem,
    factorise,
    probes,
)
from leakscope.lood.groups_out import LeaveGroupsOut
from leakscope.lood.identities import EPS, TRUSTED_BELOW
from leakscope.lood.real_numbers import require_real
from leakscope.lood.sufficient import kl_parts


def all_groups(
    kernel_matrix: FloatArray,
    y: FloatArray,
    groups: ArrayLike,
    *,
    noise_variance: float,
    overwrite: bool = False,
) -> LeaveGroupsOut:
    """The joint laws with and without each group, at the group's own points, for all at once.

    What :func:`leakscope.lood.distinguish` says of one group, for every group of a partition.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C), used as they are; the prior mean is zero.
    groups
        (n,) numbers 0 to G - 1, one a record; those with the same number leave together.
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
    fit = _Fit(
        a=solved[:, : outputs.shape[1]],
        probed=solved[:, outputs.shape[1] :],
        error_matrix=ERROR_SHARE * EPS * factor.norm,
        noise_variance=float(noise_variance),
        prior=prior,
        condition_number=cholesky.condition_number(factor),
        packed=cholesky.inverse(factor, overwrite=True).packed,
    )
    return _laws(fit, labels)


def checked_groups(groups: ArrayLike, records: int) -> NDArray[np.intp]:
    """The groups' numbers, one a record, none left out."""
    require_real(groups, "groups")
    labels = np.asarray(groups)
    if labels.shape != (records,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"groups must be one whole number a record, ({records},), but it is an array of "
            f"{labels.dtype} of shape {labels.shape}."
        )
    found = np.unique(labels)
    if found[0] != 0 or found[-1] != len(found) - 1:
        raise InputError(
            f"groups must be numbered from 0 to {len(found) - 1} with none left out, but they run "
            f"from {found[0]} to {found[-1]}."
        )
    return labels.astype(np.intp)


@dataclass(frozen=True)
class _Fit:
    """One inverse: ``packed`` has M^{-1} in its lower triangle and M in its strict upper one."""

    a: FloatArray
    probed: FloatArray
    error_matrix: float
    noise_variance: float
    prior: FloatArray
    condition_number: float
    packed: FloatArray

    def block(self, rows: NDArray[np.intp]) -> FloatArray:
        """(b, g, g) blocks of the inverse at (b, g) row numbers."""
        i, j = rows[:, :, None], rows[:, None, :]
        return self.packed[np.maximum(i, j), np.minimum(i, j)]

    def inverse_columns(self, rows: NDArray[np.intp]) -> FloatArray:
        """(n, g) columns of the inverse."""
        every = np.arange(len(self.packed))[:, None]
        return self.packed[np.maximum(every, rows), np.minimum(every, rows)]

    def kernel_columns(self, rows: NDArray[np.intp]) -> FloatArray:
        """(n, g) columns of K, from the strict upper triangle and the diagonal."""
        every = np.arange(len(self.packed))[:, None]
        found = self.packed[np.minimum(every, rows), np.maximum(every, rows)]
        found[rows, np.arange(len(rows))] = self.prior[rows]
        return found


def _laws(fit: _Fit, labels: NDArray[np.intp]) -> LeaveGroupsOut:
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    count, outputs = len(labels), fit.a.shape[1]
    excess, score = np.empty(count), np.empty((count, outputs))
    per_group = {name: np.empty(len(sizes)) for name in ("free", "label", "distance", "h", "error")}
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        places = starts[alike][:, None] + np.arange(size)
        found = _alike(fit, members[places])
        excess[places], score[places] = found.excess, found.score
        squares = np.sum(found.score**2, axis=2)
        free, label = kl_parts(found.excess, squares, outputs)
        per_group["free"][alike], per_group["label"][alike] = free.sum(axis=1), label.sum(axis=1)
        # The shift in a coordinate is a h/m = s2 x sqrt(m) t.
        shift = (fit.noise_variance * found.excess) ** 2 * found.m * squares
        per_group["distance"][alike] = 0.5 * shift.sum(axis=1)
        per_group["h"][alike] = found.leverage.sum(axis=1)
        per_group["error"][alike] = found.absolute_error
    total = np.maximum(per_group["free"] + per_group["label"], np.finfo(np.float64).tiny)
    error = per_group["error"] / total
    return LeaveGroupsOut(
        groups=labels,
        members=members,
        sizes=sizes,
        excess=excess,
        score=score,
        kl_label_free=per_group["free"],
        kl_label=per_group["label"],
        mean_distance=per_group["distance"],
        leverage=per_group["h"],
        error_estimate=error,
        trusted=error < TRUSTED_BELOW,
        condition_number=fit.condition_number,
        noise_variance=fit.noise_variance,
    )


@dataclass(frozen=True)
class _Alike:
    """The coordinates of b groups of one size: (b, g), the score (b, g, C), the error (b,)."""

    leverage: FloatArray
    m: FloatArray
    excess: FloatArray
    score: FloatArray
    absolute_error: FloatArray


def _alike(fit: _Fit, rows: NDArray[np.intp]) -> _Alike:
    s2 = fit.noise_variance
    m, E = np.linalg.eigh(fit.block(rows))
    leverage, error_h = 1.0 - s2 * m, EPS * s2 * np.broadcast_to(m[:, -1:], m.shape)
    error_h = error_h.copy()
    for place in np.flatnonzero(leverage.min(axis=1) < SMALL_LEVERAGE):
        columns, own = fit.inverse_columns(rows[place]), fit.kernel_columns(rows[place])
        turned = columns @ E[place]
        products = np.einsum("ni,ni->i", own @ E[place], turned)
        rounding = EPS * np.einsum("ni,ni->i", np.abs(own) @ np.abs(E[place]), np.abs(turned))
        better = rounding < error_h[place]
        leverage[place] = np.where(better, products, leverage[place])
        error_h[place] = np.where(better, rounding, error_h[place])
    # A direction in which the group's records are copies of each other has none.
    leverage = np.clip(leverage, 0.0, 1.0)
    a = np.swapaxes(E, 1, 2) @ fit.a[rows]
    # Random signs z give ||M^{-1} E e_i||^2 as the average of (E^T M^{-1} z)_i^2.
    reach = np.mean((np.swapaxes(E, 1, 2) @ fit.probed[rows]) ** 2, axis=2)
    # The eigenvalues themselves are right to eps times the largest of the block.
    relative_m = (fit.error_matrix * reach + EPS * m[:, -1:]) / m
    x = leverage / (s2 * m)
    error_x = (error_h + relative_m * s2 * m) / (s2 * m) + x * relative_m
    squares = np.sum(a**2, axis=2)
    error_a = fit.error_matrix * np.sqrt(reach) * np.linalg.norm(fit.a)
    error_t = (2.0 * np.sqrt(squares) * error_a + error_a**2 + squares * relative_m) / m
    absolute = 0.5 * a.shape[2] * (x / (1.0 + x)) * error_x
    absolute += 0.5 * (squares / m) * error_x + 0.5 * x * error_t
    return _Alike(leverage, m, x, a / np.sqrt(m)[:, :, None], absolute.sum(axis=1))
