"""Any group of records, at any queries, by a low-rank update of one factorisation.

Symbols: M = K + s2 I over all n records (the paper's M_D'), a = M^{-1} y, G the group (the paper's
S), Q the queries, C = K_QD' M^{-1}, V = M^{-1} E_G the columns of the inverse at the group, and
B = (V_G)^{-1} = ([M^{-1}]_GG)^{-1}.  Leaving out G changes

    the mean at Q by  -C_G B a_G        and the covariance by  + C_G B C_G^T,

so that with B = R R^T, U = C_G R and t = R^T a_G the two posteriors are Sigma = Sigma' + U U^T and
mu = mu' - U t: the form of :mod:`leakscope.lood.separation`.

At the group's own points C_G = [K M^{-1}]_GG = I - s2 V_G, and in the eigenvectors of V_G
(eigenvalues m_i) the group falls apart into g independent "records" with leverage 1 - s2 m_i: the
leave-one-out identities apply as they stand, with no q x q matrix to invert.  Since f(X_G) is
sufficient, the same holds for every set of queries that contains X_G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.lood.dense import factorise
from leakscope.lood.inputs import checked_group, checked_problem, real_numbers
from leakscope.lood.separation import EPS, Rows, coordinate_pair, leaving_out
from leakscope.measures.normal_divergence import kl_parts, kl_reverse_parts
from leakscope.trust import ROUNDINGS, resolved


@dataclass(frozen=True)
class Distinguishability:
    """The two posteriors at q queries, and the few coordinates in which they differ.

    Means are (q,) for a vector of targets and (q, C) for C outputs; covariances are (q, q) and
    the same for every output.

    Attributes
    ----------
    leave_out
        Row numbers of the group.
    mean_with, mean_without, covariance_with, covariance_without
        Of the latent function at the queries.
    mean_shift
        Mean with minus mean without, computed without subtracting the two.
    excess, score
        (r,) x_i and (r, C) t_ic, the sufficient coordinates of :mod:`leakscope.lood.separation`;
        r is at most the size of the group.
    sufficient
        Whether the queries contain the group's own points, so that no other set of queries
        reveals more.
    queries_used
        How many queries float64 can tell apart; the others' answers follow from theirs.
    trusted
        Whether float64 resolves the laws.
    noise_variance
        s2, in squared units of the target.
    """

    leave_out: tuple[int, ...]
    mean_with: FloatArray
    mean_without: FloatArray
    covariance_with: FloatArray
    covariance_without: FloatArray
    mean_shift: FloatArray
    excess: FloatArray
    score: FloatArray
    sufficient: bool
    queries_used: int
    trusted: bool
    noise_variance: float

    @property
    def kl_label_free(self) -> float:
        """The part of ``kl`` from the drop in variance; no label enters it."""
        return float(self._parts(reverse=False)[0].sum())

    @property
    def kl_label(self) -> float:
        """The part of ``kl`` from the shift in mean."""
        return float(self._parts(reverse=False)[1].sum())

    @property
    def kl(self) -> float:
        """KL(without || with) over all queries at once (lood Def. C.3), summed over outputs."""
        return self.kl_label_free + self.kl_label

    @property
    def kl_reverse(self) -> float:
        """KL(with || without)."""
        return float(sum(part.sum() for part in self._parts(reverse=True)))

    @property
    def mean_distance(self) -> float:
        """Half the squared difference of means, summed over queries and outputs (lood Def. C.1)."""
        return 0.5 * float(np.sum(self.mean_shift**2))

    def sufficient_pair(self) -> LawPair:
        """The pair of laws of the r x C coordinates in which the two posteriors differ.

        Every measure of it is that of the queries' answers, exactly; it exists also where the
        queries' covariance is singular.  One left-out record and one output give a `Normal` pair,
        whatever the number of queries.
        """
        shift = np.sqrt(self.excess)[:, None] * self.score
        variances = np.ones_like(self.excess), 1.0 + self.excess
        return coordinate_pair(shift, *variances, self.provenance())

    def law_pair(self) -> LawPair:
        """The pair of laws of the latent function at the queries, from the mean without the group.

        `Normal` for one query and one output; otherwise `MultivariateNormal` over the queries,
        output after output.
        """
        shift = self.mean_shift.reshape(len(self.mean_shift), -1)
        return answers_pair(shift, self.covariance_with, self.covariance_without, self.provenance())

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        resolved = Assumption(
            statement="float64 resolves the laws",
            holds=self.trusted,
            evidence=f"{self.queries_used} of {len(self.mean_shift)} queries told apart",
        )
        return leaving_out(
            f"lood Def. C.3 and App. E, {len(self.leave_out)} left out, "
            f"{len(self.mean_shift)} queries, by a rank-{len(self.leave_out)} update",
            self.noise_variance,
            resolved,
            group=True,
        )

    def _parts(self, *, reverse: bool) -> tuple[FloatArray, FloatArray]:
        squares = np.sum(self.score**2, axis=1)
        function = kl_reverse_parts if reverse else kl_parts
        return function(self.excess, squares, self.score.shape[1])


def answers_pair(
    shift: FloatArray, inside: FloatArray, outside: FloatArray, provenance: Provenance
) -> LawPair:
    """The laws of q answers of C outputs, from the (q, C) shift and both (q, q) covariances."""
    if shift.size == 1:
        sds = [float(np.sqrt(covariance[0, 0])) for covariance in (inside, outside)]
        return LawPair(Normal(float(shift[0, 0]), sds[0]), Normal(0.0, sds[1]), provenance)
    outputs = np.eye(shift.shape[1])
    return LawPair(
        MultivariateNormal(shift.T.ravel(), np.kron(outputs, inside)),
        MultivariateNormal(np.zeros(shift.size), np.kron(outputs, outside)),
        provenance,
    )


# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_lapack: Any = linalg.lapack


def distinguish(
    X: ArrayLike,
    y: ArrayLike,
    *,
    leave_out: Sequence[int],
    queries: ArrayLike | None = None,
    kernel: Kernel,
    noise_variance: float,
) -> Distinguishability:
    """The laws at the queries with and without a group of records.

    X, y and the queries are used as they are; the prior mean is zero.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C).
    leave_out
        Row numbers of the records that leave together.
    queries
        Where the model is asked, queries by features; the group's own points where left out, the
        most revealing queries there are.
    kernel
        From :mod:`leakscope.kernels`.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    One record and three queries: a one-dimensional pair, and less than at the record itself.

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> k = kernels.rbf(1.0)
    >>> near = lood.distinguish(X, y, leave_out=[2], queries=[[2.0], [2.5], [4.0]],
    ...                         kernel=k, noise_variance=0.1)
    >>> near.law_pair().member.event_shape, near.sufficient_pair().member.event_shape
    ((3,), ())
    >>> own = lood.distinguish(X, y, leave_out=[2], kernel=k, noise_variance=0.1)
    >>> round(near.kl, 4), round(own.kl, 4)
    (5.9205, 8.459)
    """
    rows = real_numbers(X, "X")
    asked = None if queries is None else real_numbers(queries, "queries")
    number = len(rows) + (0 if asked is None else len(asked))
    require_memory(
        16 * number * number,
        f"the laws of {len(rows)} records at {number - len(rows) or 'their own'} queries",
        "ask fewer queries at a time, or leave records out of the dataset",
    )
    resolved_kernel = checked_kernel(kernel, rows)
    matrix, targets = checked_problem(resolved_kernel(rows), y, noise_variance)
    group = checked_group(leave_out, len(matrix))
    if asked is not None and (asked.ndim != 2 or len(asked) == 0):
        raise InputError(
            f"queries must be rows of features, at least one, but their shape is {asked.shape}."
        )
    factor = factorise(matrix, noise_variance)
    units = np.zeros((len(matrix), len(group)))
    units[group, np.arange(len(group))] = 1.0
    outputs = targets.reshape(len(targets), -1)
    solved = cholesky.solve(factor, np.column_stack([outputs, units]))
    a, columns = solved[:, : outputs.shape[1]], solved[:, outputs.shape[1] :]
    block = 0.5 * (columns[group] + columns[group].T)
    m, vectors = np.linalg.eigh(block)
    m = np.maximum(m, np.finfo(np.float64).tiny)
    root = vectors / np.sqrt(m)
    score = root.T @ a[group]
    # The coordinates of the group's own points: leverage 1 - s2 m, excess h/(s2 m).
    excess = np.maximum(1.0 - noise_variance * m, 0.0) / (noise_variance * m)
    visible = noise_variance > ROUNDINGS * EPS * factor.norm
    contained = asked is None or all((asked == rows[i]).all(axis=1).any() for i in group)
    if asked is None:
        labels, own = targets[group].reshape(len(group), -1), a[group]
        mean_with = labels - noise_variance * own
        covariance = noise_variance * (np.eye(len(group)) - noise_variance * block)
        # C_G = I - s2 V_G, so that C_G R = E diag(s2 x sqrt(m)).
        update = vectors * (noise_variance * excess * np.sqrt(m))
        shift, added, used = update @ score, update @ update.T, len(group)
    else:
        cross, prior = resolved_kernel(rows, asked), resolved_kernel(asked)
        half = _lapack.dtrtrs(factor.packed, cross, lower=1)[0]
        covariance = prior - half.T @ half
        covariance = 0.5 * (covariance + covariance.T)
        update = cross.T @ (columns @ root)
        mean_with, shift, added = cross.T @ a, update @ score, update @ update.T
        kept, lower = told_apart(covariance, np.sqrt(np.diagonal(prior)))
        used = len(kept)
        if not contained:
            size = np.sqrt(np.diagonal(prior))[kept, None]
            whitened = linalg.solve_triangular(lower, update[kept] / size, lower=True)
            excess, turn = np.linalg.eigh(whitened.T @ whitened)
            excess, score = np.maximum(excess, 0.0), turn.T @ score
    sds = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    clear = resolved(np.max(np.abs(mean_with), axis=1), sds)
    shape = (len(covariance), *targets.shape[1:])
    return Distinguishability(
        leave_out=tuple(int(i) for i in group),
        mean_with=mean_with.reshape(shape),
        mean_without=(mean_with - shift).reshape(shape),
        covariance_with=covariance,
        covariance_without=covariance + added,
        mean_shift=shift.reshape(shape),
        excess=excess,
        score=score,
        sufficient=contained,
        queries_used=used,
        trusted=bool(visible and used and (contained or clear.all())),
        noise_variance=float(noise_variance),
    )


def told_apart(covariance: FloatArray, size: FloatArray) -> tuple[Rows, FloatArray]:
    """The queries that float64 tells apart, and the Cholesky factor of their covariance.

    In units of ``size``, each query's prior deviation, with pivots; what is left of a query's
    variance beside the others must be ``ROUNDINGS`` roundings.  To leave queries out can only lower
    the KL.
    """
    scaled = np.asfortranarray(covariance / np.outer(size, size))
    packed, pivots, rank, _ = _lapack.dpstrf(scaled, tol=ROUNDINGS * EPS, lower=1)
    return pivots[:rank] - 1, np.asfortranarray(np.tril(packed[:rank, :rank]))
