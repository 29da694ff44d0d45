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
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.lood.dense import ERROR_SHARE, factorise
from leakscope.lood.inputs import checked_group, checked_problem, real_numbers
from leakscope.lood.separation import (
    EPS,
    TRUSTED_BELOW,
    Leverages,
    coordinate_pair,
    laws_from_leverages,
    leaving_out,
)
from leakscope.measures.normal_divergence import kl_parts, kl_reverse_parts


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
    error_estimate, trusted
        Estimated relative error of ``kl``, and whether it is below 1e-8.
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
    error_estimate: float
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

    @property
    def average_mean_distance(self) -> float:
        """Half the mean squared difference over queries and outputs: the authors' code's.

        The same as ``mean_distance`` for one query and one output.
        """
        return self.mean_distance / self.mean_shift.size

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
        if shift.size == 1:
            return LawPair(
                Normal(shift[0, 0], float(np.sqrt(self.covariance_with[0, 0]))),
                Normal(0.0, float(np.sqrt(self.covariance_without[0, 0]))),
                self.provenance(),
            )
        outputs = np.eye(shift.shape[1])
        return LawPair(
            MultivariateNormal(shift.T.ravel(), np.kron(outputs, self.covariance_with)),
            MultivariateNormal(np.zeros(shift.size), np.kron(outputs, self.covariance_without)),
            self.provenance(),
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        resolved = Assumption(
            statement="float64 resolves the laws to a relative 1e-8",
            holds=self.trusted,
            evidence=f"estimated error {self.error_estimate:.2g}; "
            f"{self.queries_used} of {len(self.mean_shift)} queries told apart",
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


# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_lapack: Any = linalg.lapack

# At queries away from the group the first-order estimate fell short of the error by 2 at most
# (benchmarks/lood_accuracy.py).
ESTIMATE_MARGIN = 2.5


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
    resolved = checked_kernel(kernel, rows)
    matrix, targets = checked_problem(resolved(rows), y, noise_variance)
    group = checked_group(leave_out, len(matrix))
    if asked is not None and (asked.ndim != 2 or len(asked) == 0):
        raise InputError(
            f"queries must be rows of features, at least one, but their shape is {asked.shape}."
        )
    fit = _fit(matrix, targets, group, noise_variance)
    if asked is None:
        return _at_own_points(fit, targets, noise_variance)
    contained = all((asked == rows[i]).all(axis=1).any() for i in group)
    cross, prior = resolved(rows, asked), resolved(asked)
    return _at_queries(fit, targets, cross, prior, noise_variance, contained=contained)


@dataclass(frozen=True)
class _Fit:
    """One factorisation, and what the group needs from it; ``H`` is [K M^{-1}]_GG."""

    group: NDArray[np.intp]
    factor: cholesky.Factor
    a: FloatArray
    V: FloatArray
    H: FloatArray
    H_error: float
    eigenvalues: FloatArray
    eigenvectors: FloatArray

    @property
    def error_matrix(self) -> float:
        """The size of the change of M that stands for all rounding."""
        return ERROR_SHARE * EPS * self.factor.norm

    @property
    def score(self) -> FloatArray:
        """T = R^T a_G with R = E diag(m)^{-1/2}."""
        return (self.eigenvectors.T @ self.a[self.group]) / np.sqrt(self.eigenvalues)[:, None]


def _fit(
    matrix: FloatArray, targets: FloatArray, group: NDArray[np.intp], noise_variance: float
) -> _Fit:
    factor = factorise(matrix, noise_variance)
    units = np.zeros((len(matrix), len(group)))
    units[group, np.arange(len(group))] = 1.0
    outputs = targets.reshape(len(targets), -1)
    solved = cholesky.solve(factor, np.column_stack([outputs, units]))
    a, V = solved[:, : outputs.shape[1]], solved[:, outputs.shape[1] :]
    V_group = 0.5 * (V[group] + V[group].T)
    eigenvalues, eigenvectors = np.linalg.eigh(V_group)
    # The better of the two exact forms of [K M^{-1}]_GG, as in all_records.
    H = np.eye(len(group)) - noise_variance * V_group
    H_error = EPS * noise_variance * float(np.max(np.diagonal(V_group)))
    products_error = EPS * float(np.max(np.sum(np.abs(matrix[group].T) * np.abs(V), axis=0)))
    if products_error < H_error:
        H = matrix[group] @ V
        H, H_error = 0.5 * (H + H.T), products_error
    return _Fit(group, factor, a, V, H, H_error, eigenvalues, eigenvectors)


def _own_coordinates(fit: _Fit, noise_variance: float) -> tuple[FloatArray, float]:
    """The excess at the group's own points, and the estimated relative error of the KL."""
    m, E = fit.eigenvalues, fit.eigenvectors
    tiny = np.finfo(np.float64).tiny
    leverage = np.maximum(np.einsum("ji,jk,ki->i", E, fit.H, E), tiny)
    reach = np.sum((fit.V @ E) ** 2, axis=0)
    relative_m = fit.error_matrix * reach / m
    found = Leverages(
        leverage=leverage,
        m=m,
        a=E.T @ fit.a[fit.group],
        relative_error_h=(fit.H_error + relative_m * noise_variance * m) / leverage,
        relative_error_m=relative_m,
        error_a=fit.error_matrix * np.sqrt(reach) * np.linalg.norm(fit.a),
    )
    laws = laws_from_leverages(
        found,
        np.zeros_like(found.a),
        noise_variance=noise_variance,
        condition_number=float("nan"),
        route="dense",
    )
    error = float(np.sum(laws.error_estimate * laws.kl) / max(float(np.sum(laws.kl)), tiny))
    return leverage / (noise_variance * m), error


def _at_own_points(fit: _Fit, targets: FloatArray, noise_variance: float) -> Distinguishability:
    m, E = fit.eigenvalues, fit.eigenvectors
    excess, error = _own_coordinates(fit, noise_variance)
    own = targets[fit.group].reshape(len(fit.group), -1)
    a = fit.a[fit.group]
    mean_without = own - (E / m) @ (E.T @ a)
    # a h/m = s2 a x, coordinate by coordinate.
    shift = noise_variance * (E * excess) @ (E.T @ a)
    shape = targets[fit.group].shape
    return Distinguishability(
        leave_out=tuple(int(i) for i in fit.group),
        mean_with=(own - noise_variance * a).reshape(shape),
        mean_without=mean_without.reshape(shape),
        covariance_with=noise_variance * fit.H,
        covariance_without=noise_variance * (E * excess) @ E.T,
        mean_shift=shift.reshape(shape),
        excess=excess,
        score=fit.score,
        sufficient=True,
        queries_used=len(fit.group),
        error_estimate=error,
        trusted=error < TRUSTED_BELOW,
        noise_variance=float(noise_variance),
    )


def _at_queries(
    fit: _Fit,
    targets: FloatArray,
    cross: FloatArray,
    prior: FloatArray,
    noise_variance: float,
    *,
    contained: bool,
) -> Distinguishability:
    half = _lapack.dtrtrs(fit.factor.packed, cross, lower=1)[0]
    covariance = prior - half.T @ half
    covariance = 0.5 * (covariance + covariance.T)
    R = fit.eigenvectors / np.sqrt(fit.eigenvalues)
    U = cross.T @ (fit.V @ R)
    score = fit.score
    excess, turn, error, used = _coordinates(fit, half, covariance, cross, prior, U, score)
    if contained:
        excess, error = _own_coordinates(fit, noise_variance)
    else:
        score = turn.T @ score
    mean_with, shift = cross.T @ fit.a, U @ fit.score
    shape = (cross.shape[1], *targets.shape[1:])
    return Distinguishability(
        leave_out=tuple(int(i) for i in fit.group),
        mean_with=mean_with.reshape(shape),
        mean_without=(mean_with - shift).reshape(shape),
        covariance_with=covariance,
        covariance_without=covariance + U @ U.T,
        mean_shift=shift.reshape(shape),
        excess=excess,
        score=score,
        sufficient=contained,
        queries_used=used,
        error_estimate=error,
        trusted=error < TRUSTED_BELOW,
        noise_variance=float(noise_variance),
    )


def _coordinates(
    fit: _Fit,
    half: FloatArray,
    covariance: FloatArray,
    cross: FloatArray,
    prior: FloatArray,
    U: FloatArray,
    score: FloatArray,
) -> tuple[FloatArray, FloatArray, float, int]:
    """Eigenvalues and eigenvectors of U^T Sigma'^{-1} U, the KL's error, and the queries used.

    Sigma' is factorised with pivots, in units of each query's prior deviation; queries whose
    answers the others determine to rounding are left out, which can only lower the KL.
    """
    size = np.sqrt(np.diagonal(prior))
    kept, lower = apart(covariance, size)
    if not len(kept):
        return np.zeros(U.shape[1]), np.eye(U.shape[1]), float("inf"), 0
    whitened = linalg.solve_triangular(lower, U[kept] / size[kept, None], lower=True)
    excess, turn = np.linalg.eigh(whitened.T @ whitened)
    excess = np.maximum(excess, 0.0)
    turned = turn.T @ score
    # First-order change of each x_i, -w' dSigma' w + 2 w' dU e with w = Sigma'^{-1} U e_i, when M
    # changes by error_matrix and the entries of Sigma' and U by the rounding of their sums.
    w = linalg.solve_triangular(lower, whitened @ turn, lower=True, trans="T")
    through = _lapack.dtrtrs(
        fit.factor.packed, half[:, kept] @ (w / size[kept, None]), lower=1, trans=1
    )[0]
    VR = fit.V @ (fit.eigenvectors / np.sqrt(fit.eigenvalues) @ turn)
    v = np.sqrt(np.sum(VR**2, axis=0))
    rounding_U = EPS * (np.abs(cross[:, kept]).T @ np.abs(VR)) / size[kept, None]
    p = np.sqrt(np.sum(through**2, axis=0))
    change = fit.error_matrix * (p + np.sqrt(excess) * v) ** 2
    change += EPS * np.sum(np.abs(w), axis=0) ** 2 + 2.0 * np.sum(np.abs(w) * rounding_U, axis=0)
    squares = np.sum(turned**2, axis=1)
    error_t = fit.error_matrix * v * np.linalg.norm(fit.a)
    absolute = 0.5 * change * (score.shape[1] * excess / (1.0 + excess) + squares)
    absolute += excess * error_t * (np.sqrt(squares) + 0.5 * error_t)
    total = sum(float(part.sum()) for part in kl_parts(excess, squares, score.shape[1]))
    error = ESTIMATE_MARGIN * float(absolute.sum()) / max(total, np.finfo(np.float64).tiny)
    return excess, turn, error, len(kept)


def apart(covariance: FloatArray, size: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """The queries that float64 can tell apart, and the Cholesky factor of their covariance.

    In units of ``size``, each query's prior deviation; the answers of the others follow from
    theirs.
    """
    scaled = np.asfortranarray(covariance / np.outer(size, size))
    packed, pivots, rank, _ = _lapack.dpstrf(scaled, tol=4.0 * len(size) * EPS, lower=1)
    return pivots[:rank] - 1, np.asfortranarray(np.tril(packed[:rank, :rank]))
