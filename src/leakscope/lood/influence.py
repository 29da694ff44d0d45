"""Every record's influence on every query, without refitting.

Symbols as in :mod:`leakscope.lood.distinguish`: C = K_QD' M^{-1}, a = M^{-1} y, m_i = [M^{-1}]_ii.
Leaving out record i moves the mean at query j by -C_ji a_i/m_i and adds C_ji^2/m_i to the variance
v_j (with all records), so that the pair (i, j) has the excess x_ij = C_ji^2/(m_i v_j) and the score
t_i = a_i/sqrt(m_i) of :mod:`leakscope.lood.separation`.  All n x q pairs cost one factorisation,
one triangular inverse and one solve for the queries.

Asked together, all queries have the covariance Sigma' = K_QQ - C K_D'Q, and record i the excess
C_i' Sigma'^{-1} C_i/m_i with the same score: one more factorisation, of q x q, for all records.  It
is at most the excess at the record itself, which is reached where the queries hold its point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.lood.dense import ERROR_SHARE, all_records, factorise, probes
from leakscope.lood.distinguish import ESTIMATE_MARGIN, apart
from leakscope.lood.inputs import checked_problem, real_numbers
from leakscope.lood.separation import EPS, TRUSTED_BELOW, Separation, coordinate_pair, leaving_out
from leakscope.measures.normal_divergence import kl_parts, kl_reverse_parts

# Most records do nothing at most queries; what is below this share of the record's KL at its own
# point is nothing, and need not have digits.
NEGLIGIBLE = 1e-6

# Rounding in the triangular solves moves C_ji by this share of eps ||M^{-1} e_i|| ||k_j||,
# calibrated as ERROR_SHARE was (benchmarks/lood_accuracy.py, seeds from 0).
ROUNDING_SHARE = 0.2


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
    excess_together, kl_together
        (n,) of all queries asked at once.
    error_estimate, trusted
        (n, q) the estimated error of ``kl``, relative to the larger of the pair's own value and
        ``NEGLIGIBLE`` times the record's value at its own point; and whether it is below 1e-8.
    error_together, trusted_together
        (n,) the same of ``kl_together``.
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
    excess_together: FloatArray
    kl_together: FloatArray
    error_estimate: FloatArray
    trusted: NDArray[np.bool_]
    error_together: FloatArray
    trusted_together: NDArray[np.bool_]
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
        provenance = self._provenance("at one query, by a rank-one update", self.trusted)
        without = variance + added
        return coordinate_pair(
            shift[..., None, :], variance[..., None], without[..., None], provenance
        )

    def pair_together(self) -> LawPair:
        """The (n,) batch of pairs of all queries at once, in the one coordinate that differs.

        Every measure of it is that of all answers together, exactly.
        """
        shift = np.sqrt(self.excess_together / self.m)[:, None] * self.a
        spread = np.ones((len(self.m), 1)), 1.0 + self.excess_together[:, None]
        told = f"at {len(self.variance_with)} queries together, by rank-one updates"
        return coordinate_pair(
            shift[:, None, :], *spread, self._provenance(told, self.trusted_together)
        )

    def _provenance(self, source: str, trusted: NDArray[np.bool_]) -> Provenance:
        untrusted = int(np.count_nonzero(~trusted))
        what = "pairs of a record and a query" if trusted.ndim == 2 else "records"
        resolved = Assumption(
            "float64 resolves the influences to a relative error of 1e-8",
            holds=untrusted == 0,
            evidence=f"{untrusted} of {trusted.size} {what} flagged",
        )
        return leaving_out(f"lood Defs. C.1 and C.3 {source}", self.noise_variance, resolved)


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
    resolved = checked_kernel(kernel, rows)
    matrix, targets = checked_problem(resolved(rows), y, noise_variance)
    laws = all_records(matrix, targets, noise_variance=noise_variance)
    m = laws.leverage / laws.variance_without
    a = ((targets - laws.mean_with) / noise_variance).reshape(count, -1)
    factor = factorise(matrix, noise_variance)
    if queries is None:
        answers = _at_records(factor, matrix, noise_variance, laws)
    else:
        answers = _at_queries(factor, resolved, rows, asked, noise_variance, m)
    added = answers.weight**2 * m[:, None]
    squares = np.sum(a**2, axis=1)
    excess, score = added / answers.variance, (squares / m)[:, None]
    outputs = a.shape[1]
    kl = sum(kl_parts(excess, score, outputs), np.zeros(()))
    error = _error(answers, excess, score, m, a) / np.maximum(kl, NEGLIGIBLE * laws.kl[:, None])
    if queries is None:
        np.fill_diagonal(error, laws.error_estimate)
        together = _Together(laws.excess, laws.error_estimate)
    else:
        together = _together(resolved(asked), answers, m, a, laws, _held(rows, asked))
    kl_together = sum(kl_parts(together.excess, squares / m, outputs), np.zeros(()))
    return Influence(
        mean_distance=0.5 * answers.weight**2 * squares[:, None],
        kl=kl,
        kl_reverse=sum(kl_reverse_parts(excess, score, outputs), np.zeros(())),
        weight=answers.weight,
        a=a,
        m=m,
        variance_with=answers.variance,
        variance_added=added,
        memorisation=laws.mean_distance,
        kl_own=laws.kl,
        excess_together=together.excess,
        kl_together=kl_together,
        error_estimate=error,
        trusted=error < TRUSTED_BELOW,
        error_together=together.error,
        trusted_together=together.error < TRUSTED_BELOW,
        noise_variance=float(noise_variance),
    )


@dataclass(frozen=True)
class _Answers:
    """What the queries say, and what their errors are made of.

    ``reach`` is ||M^{-1} e_i||^2; ``error_matrix`` the size of a change of M that rounding amounts
    to; ``rounding_variance`` (q,) and ``rounding_weight`` (n, q) the rounding of v_j and C_ji.
    """

    weight: FloatArray
    variance: FloatArray
    reach: FloatArray
    error_matrix: float
    rounding_variance: FloatArray
    rounding_weight: FloatArray
    cross: FloatArray | None = None


@dataclass(frozen=True)
class _Together:
    """(n,) the excess of all queries at once, and the relative error of its KL."""

    excess: FloatArray
    error: FloatArray


def _held(rows: FloatArray, asked: FloatArray) -> NDArray[np.bool_]:
    """(n,) whether a query is the record's own point."""
    # Minus zero and zero are one number of two spellings.
    points = {(row + 0.0).tobytes() for row in asked}
    return np.array([(row + 0.0).tobytes() in points for row in rows])


def _together(
    prior: FloatArray,
    answers: _Answers,
    m: FloatArray,
    a: FloatArray,
    laws: Separation,
    held: NDArray[np.bool_],
) -> _Together:
    """All queries at once, as ``distinguish`` has it for one group, for every record."""
    assert answers.cross is not None
    solved = answers.weight * m[:, None]
    covariance = prior - answers.cross.T @ solved
    size = np.sqrt(np.diagonal(prior))
    kept, lower = apart(0.5 * (covariance + covariance.T), size)
    score, outputs = np.sum(a**2, axis=1) / m, a.shape[1]
    root, r = np.sqrt(m), np.sqrt(answers.reach / m)
    scaled = solved[:, kept].T / size[kept, None]
    whitened = linalg.solve_triangular(lower, scaled, lower=True) / root
    excess = np.minimum(np.einsum("ji,ji->i", whitened, whitened), laws.excess)
    # As in ``distinguish``: how x moves when M and the entries of Sigma' and C do.
    w = linalg.solve_triangular(lower, whitened, lower=True, trans="T")
    through = np.sqrt(np.maximum(np.einsum("ji,ji->i", w, row_products(scaled) @ w), 0.0))
    change = answers.error_matrix * (through + np.sqrt(excess) * r) ** 2
    w = np.abs(w)
    change += EPS * np.sum(w, axis=0) ** 2
    rounding = answers.rounding_weight[:, kept].T / size[kept, None] / root
    change += 2.0 * np.sum(w * rounding, axis=0)
    error_score = answers.error_matrix * r * np.linalg.norm(a)
    absolute = 0.5 * change * (outputs * excess / (1.0 + excess) + score)
    absolute += excess * error_score * (np.sqrt(score) + 0.5 * error_score)
    kl = sum(kl_parts(excess, score, outputs), np.zeros(()))
    error = ESTIMATE_MARGIN * absolute / np.maximum(kl, NEGLIGIBLE * laws.kl)
    if not len(kept):
        error = np.full_like(error, np.inf)
    return _Together(
        np.where(held, laws.excess, excess), np.where(held, laws.error_estimate, error)
    )


def _error(
    answers: _Answers, excess: FloatArray, score: FloatArray, m: FloatArray, a: FloatArray
) -> FloatArray:
    """(n, q) the absolute error of the KL, to first order, as for groups in ``distinguish``."""
    C = np.abs(answers.weight) * m[:, None]
    w = C / (np.sqrt(m)[:, None] * answers.variance)
    r = np.sqrt(answers.reach / m)[:, None]
    length = np.sqrt(np.sum(C**2, axis=0))
    change = answers.error_matrix * (length * w + np.sqrt(excess) * r) ** 2
    change += answers.rounding_variance * w**2
    change += 2.0 * w * answers.rounding_weight / np.sqrt(m)[:, None]
    error_score = answers.error_matrix * r * np.linalg.norm(a)
    absolute = 0.5 * change * (a.shape[1] * excess / (1.0 + excess) + score)
    absolute += excess * error_score * (np.sqrt(score) + 0.5 * error_score)
    return np.asarray(ESTIMATE_MARGIN * absolute)


def _at_queries(
    factor: cholesky.Factor,
    kernel: Kernel,
    rows: FloatArray,
    asked: FloatArray,
    noise_variance: float,
    m: FloatArray,
) -> _Answers:
    cross = kernel(rows, asked)
    solved = cholesky.solve(factor, np.column_stack([cross, probes(len(rows))]))
    transposed, reach = solved[:, : len(asked)], np.mean(solved[:, len(asked) :] ** 2, axis=1)
    prior = kernel.diagonal(asked)
    variance = prior - np.einsum("ij,ij->j", cross, transposed)
    lost = np.flatnonzero(variance <= 64.0 * EPS * prior)
    if lost.size:
        raise InputError(
            f"query {lost[0]} has no variance left that float64 resolves at noise_variance "
            f"{noise_variance:g}: raise it."
        )
    size = np.sqrt(np.einsum("ij,ij->j", cross, cross))
    return _Answers(
        weight=transposed / m[:, None],
        variance=variance,
        reach=reach,
        error_matrix=ERROR_SHARE * EPS * factor.norm,
        rounding_variance=EPS * prior,
        rounding_weight=ROUNDING_SHARE * EPS * np.sqrt(reach)[:, None] * size,
        cross=cross,
    )


def _at_records(
    factor: cholesky.Factor, matrix: FloatArray, noise_variance: float, laws: Separation
) -> _Answers:
    """C = K M^{-1} = I - s2 M^{-1}, with the leverages, digits and all, on its diagonal."""
    error_matrix = ERROR_SHARE * EPS * factor.norm
    smoother = cholesky.inverse(factor, overwrite=True).full()
    reach = np.einsum("ij,ij->i", smoother, smoother)
    size = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    smoother *= -noise_variance
    np.fill_diagonal(smoother, laws.leverage)
    return _Answers(
        weight=smoother / (laws.leverage / laws.variance_without)[:, None],
        variance=noise_variance * laws.leverage,
        reach=reach,
        error_matrix=error_matrix,
        rounding_variance=noise_variance * laws.error_estimate * laws.leverage,
        rounding_weight=ROUNDING_SHARE * EPS * np.sqrt(reach)[:, None] * size,
    )
