"""Every record's influence on every query, without refitting.

Symbols as in :mod:`leakscope.lood.distinguish`: C = K_QD' M^{-1}, a = M^{-1} y, m_i = [M^{-1}]_ii.
Leaving out record i moves the mean at query j by -C_ji a_i/m_i and adds C_ji^2/m_i to the variance
v_j (with all records), so that the pair (i, j) has the excess x_ij = C_ji^2/(m_i v_j) and the score
t_i = a_i/sqrt(m_i) of :mod:`leakscope.lood.separation`.  All n x q pairs cost one factorisation,
one triangular inverse and one solve for the queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.laws.pair import Assumption, LawPair
from leakscope.lood.dense import all_records, factorise
from leakscope.lood.inputs import checked_problem, real_numbers
from leakscope.lood.separation import EPS, coordinate_pair, leaving_out
from leakscope.measures.normal_divergence import kl_parts, kl_reverse_parts
from leakscope.trust import ROUNDINGS, resolved


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
    a, m
        (n, C) rows of M^{-1} y, and (n,) the diagonal of M^{-1}.
    variance_with, variance_added
        (q,) variance at each query with all records; (n, q) what leaving out a record adds to it.
    memorisation, kl_own
        (n,) the self-influence, the mean distance of each record at its own point; and the KL
        there, which no queries exceed.
    trusted
        (n, q) whether float64 resolves the pair.
    noise_variance
        s2, in squared units of the target.
    """

    mean_distance: FloatArray
    kl: FloatArray
    kl_reverse: FloatArray
    weight: FloatArray
    a: FloatArray
    m: FloatArray
    variance_with: FloatArray
    variance_added: FloatArray
    memorisation: FloatArray
    kl_own: FloatArray
    trusted: NDArray[np.bool_]
    noise_variance: float

    def law_pair(self, at: ArrayLike | None = None) -> LawPair:
        """The (n, q) batch of pairs, measured from the mean without the record.

        ``at`` holds a query's number for each record, and gives the (n,) pairs there.  `Normal` for
        one output, `MultivariateNormal` of C independent ones otherwise.
        """
        weight, added = self.weight, self.variance_added
        variance = np.broadcast_to(self.variance_with, weight.shape)
        if at is not None:
            places = np.arange(len(weight)), np.asarray(at, dtype=np.intp)
            weight, added, variance = weight[places], added[places], variance[places]
        a = self.a if at is not None else self.a[:, None, :]
        shift = weight[..., None] * a
        lost = int(np.count_nonzero(~self.trusted))
        digits = Assumption(
            "float64 resolves the influences",
            holds=lost == 0,
            evidence=f"{lost} of {self.trusted.size} pairs of a record and a query flagged",
        )
        provenance = leaving_out(
            "lood Defs. C.1 and C.3 at one query, by a rank-one update", self.noise_variance, digits
        )
        without = variance + added
        return coordinate_pair(
            shift[..., None, :], variance[..., None], without[..., None], provenance
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
    rows = real_numbers(X, "X")
    asked = rows if queries is None else real_numbers(queries, "queries")
    if asked.ndim != 2 or len(asked) == 0:
        raise InputError(
            f"queries must be rows of features, at least one, but their shape is {asked.shape}."
        )
    count, number = len(rows), len(asked)
    require_memory(
        8 * (2 * count * count + 16 * count * number + 3 * number * number),
        f"the influence of {count} records on {number} queries",
        "ask fewer queries at a time",
    )
    resolved_kernel = checked_kernel(kernel, rows)
    matrix, targets = checked_problem(resolved_kernel(rows), y, noise_variance)
    laws = all_records(matrix, targets, noise_variance=noise_variance)
    m = laws.leverage / laws.variance_without
    a = ((targets - laws.mean_with) / noise_variance).reshape(count, -1)
    factor = factorise(matrix, noise_variance)
    if queries is None:
        # C = K M^{-1} = I - s2 M^{-1}, with the leverages on its diagonal.
        norm = factor.norm
        smoother = cholesky.inverse(factor, overwrite=True).full()
        smoother *= -noise_variance
        np.fill_diagonal(smoother, laws.leverage)
        variance, prior = noise_variance * laws.leverage, np.diagonal(matrix)
    else:
        cross, prior, norm = (
            resolved_kernel(rows, asked),
            resolved_kernel.diagonal(asked),
            factor.norm,
        )
        smoother = cholesky.solve(factor, cross)
        variance = prior - np.einsum("ij,ij->j", cross, smoother)
        # A variance is the difference of two numbers of the size of the prior.
        lost = np.flatnonzero(variance <= 64.0 * EPS * prior)
        if lost.size:
            raise InputError(
                f"query {lost[0]} has no variance left that float64 resolves at noise_variance "
                f"{noise_variance:g}: raise it."
            )
    weight = smoother / m[:, None]
    added = weight**2 * m[:, None]
    squares = np.sum(a**2, axis=1)
    excess, score, outputs = added / variance, (squares / m)[:, None], a.shape[1]
    answers = smoother.T @ targets.reshape(count, -1)
    clear = resolved(np.max(np.abs(answers), axis=1), np.sqrt(variance))
    if queries is not None:
        clear &= variance > ROUNDINGS * EPS * prior
    clear &= noise_variance > ROUNDINGS * EPS * norm
    return Influence(
        mean_distance=0.5 * weight**2 * squares[:, None],
        kl=sum(kl_parts(excess, score, outputs), np.zeros(())),
        kl_reverse=sum(kl_reverse_parts(excess, score, outputs), np.zeros(())),
        weight=weight,
        a=a,
        m=m,
        variance_with=variance,
        variance_added=added,
        memorisation=laws.mean_distance,
        kl_own=laws.kl,
        trusted=np.broadcast_to(clear, weight.shape).copy(),
        noise_variance=float(noise_variance),
    )
