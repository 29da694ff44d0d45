"""Every record's influence on every query, without refitting.

Symbols as in :mod:`leakscope.lood.distinguish`: C = K_QD' M^{-1}, a = M^{-1} y, m_i = [M^{-1}]_ii.
Leaving out record i moves the mean at query j by -C_ji a_i/m_i and adds C_ji^2/m_i to the variance
v_j (with all records), so that the pair (i, j) has the excess x_ij = C_ji^2/(m_i v_j) and the score
t_i = a_i/sqrt(m_i) of :mod:`leakscope.lood.sufficient`.  All n x q pairs cost one factorisation,
one triangular inverse and one solve for the queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels import Kernel
from leakscope.laws import LawPair, MultivariateNormal, Normal, Provenance
from leakscope.lood.all_records import all_records, checked_problem, factorise
from leakscope.lood.assumptions import common_assumptions
from leakscope.lood.sufficient import kl_parts, kl_reverse_parts

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Influence:
    """What each of n records changes at each of q queries, one query at a time.

    Attributes
    ----------
    mean_distance
        (n, q) half the squared difference of means, summed over outputs (lood Def. C.1).
    kl, kl_reverse
        (n, q) KL(without || with) and KL(with || without) of the answer at that query alone.
    weight
        (n, q) C_ji/m_i: the mean at query j shifts by ``weight * a_i`` when record i is there.
    a
        (n, C) rows of M^{-1} y.
    variance_with, variance_added
        (q,) variance at each query with all records; (n, q) what leaving out a record adds to it.
    memorisation
        (n,) the self-influence, the mean distance of each record at its own point.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> found = lood.influence(X, y, [[2.0], [2.9]], kernels.rbf(1.0), noise_variance=0.1)
    >>> found.mean_distance.round(4).tolist()
    [[0.0, 0.0], [0.0002, 0.0], [0.1547, 0.4193]]
    >>> found.memorisation.round(4).tolist()
    [0.0011, 0.0012, 0.4235]
    """

    mean_distance: FloatArray
    kl: FloatArray
    kl_reverse: FloatArray
    weight: FloatArray
    a: FloatArray
    variance_with: FloatArray
    variance_added: FloatArray
    memorisation: FloatArray
    noise_variance: float

    def law_pair(self) -> LawPair:
        """The (n, q) batch of pairs, measured from the mean without the record.

        `Normal` for one output, `MultivariateNormal` of C independent ones otherwise.
        """
        shift = self.weight[:, :, None] * self.a[:, None, :]
        variance = np.broadcast_to(self.variance_with, self.weight.shape)
        without = variance + self.variance_added
        provenance = Provenance(
            question="leave_one_out",
            adjacency="removed",
            observes="latent",
            random=("training",),
            attacker_knows_label=True,
            method="exact",
            source="lood Defs. C.1 and C.3 at one query, by a rank-one update",
            assumptions=common_assumptions(self.noise_variance),
        )
        if shift.shape[2] == 1:
            return LawPair(
                Normal(shift[:, :, 0], np.sqrt(variance)),
                Normal(np.zeros_like(without), np.sqrt(without)),
                provenance,
            )
        identity = np.eye(shift.shape[2])
        return LawPair(
            MultivariateNormal(shift, variance[:, :, None, None] * identity),
            MultivariateNormal(np.zeros_like(shift), without[:, :, None, None] * identity),
            provenance,
        )


def influence(
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None,
    kernel: Kernel,
    noise_variance: float,
) -> Influence:
    """The influence of every record on every query, and every record's memorisation.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C); used as they are.
    queries
        Queries by features; None asks at the records themselves.
    kernel
        From :mod:`leakscope.kernels`.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    The record that a prediction owes most to:

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 0.5, -1.0])
    >>> found = lood.influence(X, y, [[0.2], [2.7]], kernels.rbf(1.0), noise_variance=0.1)
    >>> np.argmax(found.mean_distance, axis=0).tolist()
    [0, 2]
    """
    rows = np.asarray(X, dtype=np.float64)
    asked = rows if queries is None else np.asarray(queries, dtype=np.float64)
    if asked.ndim != 2 or len(asked) == 0:
        raise InputError(
            f"queries must be rows of features, at least one, but their shape is {asked.shape}."
        )
    count, number = len(rows), len(asked)
    require_memory(
        8 * (2 * count * count + 7 * count * number),
        f"the influence of {count} records on {number} queries",
        "ask fewer queries at a time",
    )
    resolved = kernel.resolved(rows)
    matrix, targets = checked_problem(resolved(rows), np.asarray(y), noise_variance)
    laws = all_records(matrix, targets, noise_variance=noise_variance)
    m = laws.leverage / laws.variance_without
    a = ((targets - laws.mean_with) / noise_variance).reshape(count, -1)
    if queries is None:
        weight, variance = _at_records(matrix, noise_variance, laws.leverage, m)
    else:
        weight, variance = _at_queries(matrix, resolved, rows, asked, noise_variance, m)
    added = weight**2 * m[:, None]
    squares = np.sum(a**2, axis=1)
    excess, score = added / variance, (squares / m)[:, None]
    outputs = a.shape[1]
    return Influence(
        mean_distance=0.5 * weight**2 * squares[:, None],
        kl=sum(kl_parts(excess, score, outputs), np.zeros(())),
        kl_reverse=sum(kl_reverse_parts(excess, score, outputs), np.zeros(())),
        weight=weight,
        a=a,
        variance_with=variance,
        variance_added=added,
        memorisation=laws.mean_distance,
        noise_variance=float(noise_variance),
    )


def _at_queries(
    matrix: FloatArray,
    kernel: Kernel,
    rows: FloatArray,
    asked: FloatArray,
    noise_variance: float,
    m: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    noisy = matrix.copy()
    noisy[np.diag_indices(len(noisy))] += noise_variance
    factor = factorise(noisy, noise_variance, overwrite=True)
    cross = kernel(rows, asked)
    transposed = cholesky.solve(factor, cross)
    prior = kernel.diagonal(asked)
    variance = prior - np.einsum("ij,ij->j", cross, transposed)
    lost = np.flatnonzero(variance <= 64.0 * np.finfo(np.float64).eps * prior)
    if lost.size:
        raise InputError(
            f"query {lost[0]} has no variance left that float64 resolves at noise_variance "
            f"{noise_variance:g}: raise it."
        )
    return transposed / m[:, None], variance


def _at_records(
    matrix: FloatArray, noise_variance: float, leverage: FloatArray, m: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """C = K M^{-1} = I - s2 M^{-1}, with the leverages, digits and all, on its diagonal."""
    noisy = matrix.copy()
    noisy[np.diag_indices(len(noisy))] += noise_variance
    factor = factorise(noisy, noise_variance, overwrite=True)
    smoother = cholesky.inverse(factor, overwrite=True).full()
    smoother *= -noise_variance
    np.fill_diagonal(smoother, leverage)
    return np.asarray(smoother / m[:, None]), noise_variance * leverage
