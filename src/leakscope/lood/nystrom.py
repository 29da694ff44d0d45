"""The Nyström approximation: a process seen through some of its records, in bounded memory.

With u the rows of r inducing records, Q = K_nu (K_uu + jitter)^{-1} K_un never exceeds K: what is
left, E = K - Q, has no negative eigenvalue.  Q has the features phi_i = L_u^{-1} k_ui, so that
:mod:`leakscope.lood.features` applies; here Phi^T Phi = U diag(w) U^T is diagonalised instead of
factorised, so that one more pass over the records gives the leverages h and the leave-one-out
residuals of Q at any number of noise variances.  Time n r^2, memory r^2 and one block of records.

What E does to the answers is known from a sample of records, whose kernel with *all* records is
computed in the same pass (`ExactRows`); :mod:`leakscope.lood.certificate` makes claims of it.

Some inducing records are the most exposed, as far as is known.  The others are drawn by their ridge
leverages, h_i + E_ii/s2 from fewer inducing records, a chance of at most 1 each; records that no
other stands for are the first to be surely among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lood.features import FeatureSums, feature_sums
from leakscope.lood.identities import EPS
from leakscope.lood.process import Process

Rows = NDArray[np.intp]

# Added to K_uu, as a share of the noise variance: what it adds to E is a millionth of the noise,
# and near-duplicates can be factorised.  Never less than this share of the mean of k(x, x).
JITTER, LEAST_JITTER = 1e-7, 1e-11

# So many records that are seen worst have their effect on every other one followed singly.
FOLLOWED = 128

NONE: Rows = np.empty(0, dtype=np.intp)

# Bytes of kernel values that are worked on at once.
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Inducing:
    """Some records of a process, and the features that they give to any other.

    Attributes
    ----------
    process
        What is approximated.
    rows
        (r,) row numbers, rising.
    half
        (r, r) L_u^{-1} in its lower triangle, Fortran-ordered.
    rounding
        What float64 may have done to a residual K_ii - Q_ii, as a share of K_ii.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> process = lood.Process(X, X[:, 0], kernels.rbf(1.0), noise_variance=0.1)
    >>> lood.Inducing.of(process, np.array([0, 10, 19])).features(X).shape
    (20, 3)
    """

    process: Process
    rows: Rows
    half: FloatArray
    rounding: float

    @classmethod
    def of(cls, process: Process, rows: Rows) -> Inducing:
        """Factorise the kernel of the inducing records."""
        corner = process.between(process.features[rows])
        mean = float(np.mean(np.diagonal(corner)))
        jitter = max(JITTER * process.noise_variance, LEAST_JITTER * mean)
        corner[np.diag_indices(len(corner))] += jitter
        try:
            factor = cholesky.factorise(corner, overwrite=True)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"the kernel matrix of {len(rows)} inducing records is singular in float64 "
                f"({error}): use fewer of them, or raise noise_variance."
            ) from error
        packed = cholesky.inverse_factor(factor, overwrite=True).packed
        rounding = 4.0 * EPS * float(np.sqrt(len(rows) * mean / jitter))
        return cls(process, rows, np.asfortranarray(np.tril(packed)), rounding)

    def features(self, records: FloatArray) -> FloatArray:
        """(b, r) the features of some records, (b, d)."""
        shared = self.process.between(self.process.features[self.rows], records)
        return np.asarray(
            blas.dtrmm(1.0, self.half, shared.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        )

    def blocks(self) -> Iterator[slice]:
        """All records, as many at a time as fit a block."""
        size = max(256, BLOCK_BYTES // (8 * len(self.rows)))
        for start in range(0, self.process.records, size):
            yield slice(start, min(start + size, self.process.records))


@dataclass(frozen=True)
class ExactRows:
    """What the rows of E of some records add up to, over all records.

    Attributes
    ----------
    rows
        (b,) which records.
    phi
        (b, r) their features.
    with_features
        (b, r) E Phi of these rows.
    with_targets
        (b, C) E y.
    squares
        (b,) sums of the squares of a row of E.
    """

    rows: Rows
    phi: FloatArray
    with_features: FloatArray
    with_targets: FloatArray
    squares: FloatArray


@dataclass(frozen=True)
class Seen:
    """What Q says of every record at one noise variance.

    Attributes
    ----------
    noise_variance
        s2.
    leverage
        (n,) h_i = [Q M_Q^{-1}]_ii with M_Q = Q + s2 I; the true one is not smaller.
    others
        (n,) sum over j != i of [Q M_Q^{-1}]_ij^2: how much of its fit comes from other records.
    residual
        (n, C) the label minus what the others predict.
    worst, worst_squared
        (n,) the part of [HEH]_ii and [HE^2H]_ii, H = Q M_Q^{-1}, that is due to the records seen
        worst, each taken alone: about the sums of E_jj H_ij^2 and of E_jj^2 H_ij^2.
    """

    noise_variance: float
    leverage: FloatArray
    others: FloatArray
    residual: FloatArray
    worst: FloatArray
    worst_squared: FloatArray


@dataclass(frozen=True)
class Nystrom:
    """A process seen through inducing records; `seen` answers at any noise variance.

    Attributes
    ----------
    inducing
        The records it is seen through.
    left
        (n,) E_ii, the prior variance that is not seen, not below 0.
    values
        (r,) w, the eigenvalues of Phi^T Phi.
    turned
        (r, r) U^T L_u^{-1}: features in which Phi^T Phi is diagonal.
    product
        (r, C) U^T Phi^T y.
    exact
        The sampled records, seen exactly and in the same turned features.
    """

    inducing: Inducing
    left: FloatArray
    values: FloatArray
    turned: FloatArray
    product: FloatArray
    exact: ExactRows

    @classmethod
    def of(cls, inducing: Inducing, sampled: Rows = NONE) -> Nystrom:
        """One pass over all records; ``sampled`` are seen exactly."""
        process, width = inducing.process, len(inducing.rows)
        outputs, prior = process.outputs, process.diagonal()
        require_prior(prior)
        require_memory(
            nystrom_bytes(process.records, width, len(sampled), outputs.shape[1]),
            f"the approximate audit of {process.records} records with {width} inducing ones",
            "use fewer inducing records",
        )
        sums = FeatureSums.none(width, outputs.shape[1])
        left, places = np.empty(process.records), process.features[sampled]
        phi_sampled = inducing.features(places) if len(sampled) else np.empty((0, width))
        with_features = np.zeros((len(sampled), width))
        with_targets = np.zeros((len(sampled), outputs.shape[1]))
        squares = np.zeros(len(sampled))
        for some in inducing.blocks():
            records = process.features[some]
            phi = inducing.features(records)
            sums = sums + feature_sums(phi, outputs[some])
            left[some] = prior[some] - np.einsum("ij,ij->i", phi, phi)
            if len(sampled):
                rest = process.between(places, records) - phi_sampled @ phi.T
                with_features += rest @ phi
                with_targets += rest @ outputs[some]
                squares += np.einsum("ij,ij->i", rest, rest)
        values, vectors = symmetric_eigen(sums.gram)
        return cls(
            inducing=inducing,
            left=np.maximum(left, 0.0),
            values=np.maximum(values, 0.0),
            turned=np.ascontiguousarray(vectors.T @ inducing.half),
            product=vectors.T @ sums.product,
            exact=ExactRows(
                sampled, phi_sampled @ vectors, with_features @ vectors, with_targets, squares
            ),
        )

    def seen(self, levels: Sequence[float]) -> tuple[Seen, ...]:
        """One more pass over all records, for all the noise variances together.

        Only at the first of them are the records that are seen worst followed.
        """
        process = self.inducing.process
        count, outputs = process.records, process.outputs
        shrink = 1.0 / (self.values[:, None] + np.array(levels))
        weights = np.hstack([shrink, self.values[:, None] * shrink**2])
        squares = np.empty((count, weights.shape[1]))
        fits = np.empty((len(levels), count, outputs.shape[1]))
        places = process.features[self.inducing.rows]
        bad = np.argsort(-self.left, kind="stable")[:FOLLOWED]
        followed = process.between(places, process.features[bad]).T @ self.turned.T
        # Alone, a record's E_jj counts as this much (a change of M_Q by rank one).
        alone = self.left[bad] * (1.0 - (followed**2) @ shrink[:, 0]) / levels[0]
        alone = self.left[bad] / (1.0 + alone)
        lost = np.column_stack([alone, alone**2])
        followed *= shrink[:, 0]
        due = np.empty((count, 2))
        for some in self.inducing.blocks():
            phi = process.between(places, process.features[some]).T @ self.turned.T
            for place in range(len(levels)):
                fits[place, some] = phi @ (shrink[:, place, None] * self.product)
            due[some] = (phi @ followed.T) ** 2 @ lost
            np.square(phi, out=phi)
            squares[some] = phi @ weights
        due[bad] -= squares[bad, :1] ** 2 * lost
        np.maximum(due, 0.0, out=due)
        found = []
        for place, level in enumerate(levels):
            leverage = np.minimum(squares[:, place], 1.0 - EPS)
            whole = squares[:, len(levels) + place]
            found.append(
                Seen(
                    noise_variance=float(level),
                    leverage=leverage,
                    others=np.maximum(whole - leverage**2, 0.0),
                    residual=(outputs - fits[place]) / (1.0 - leverage)[:, None],
                    worst=due[:, 0],
                    worst_squared=due[:, 1],
                )
            )
        return tuple(found)


def nystrom_bytes(records: int, inducing: int, sampled: int, outputs: int) -> int:
    """What `Nystrom` holds at once: r x r matrices, a block, the sample and numbers per record."""
    return 8 * (8 * inducing**2 + 5 * sampled * inducing + records * (24 + 16 * outputs)) + 4 * max(
        BLOCK_BYTES, 8 * 256 * (inducing + sampled)
    )


def require_prior(prior: FloatArray) -> None:
    """Refuse a record whose kernel with itself is not positive and finite."""
    empty = np.flatnonzero(~(np.isfinite(prior) & (prior > 0.0)))
    if empty.size:
        raise InputError(
            f"the kernel of the record in row {empty[0]} with itself is {prior[empty[0]]}; it "
            "must be positive and finite."
        )


def first_rows(process: Process, number: int, seed: int = 0) -> Rows:
    """Inducing records before anything is known: drawn at random, the same every time."""
    drawn = np.random.default_rng(seed).permutation(process.records)
    return np.sort(drawn[: min(number, process.records)])


def more_rows(
    rows: Rows, leverage: FloatArray, number: int, *, first: Rows = NONE, seed: int = 0
) -> Rows:
    """These rows and others up to ``number``, each with a chance in proportion to its leverage.

    Parameters
    ----------
    rows
        Those that stay.
    leverage
        (n,) not negative; those that would get a chance above 1 are surely among them.
    first
        Those that are surely among them, whatever their leverage.
    """
    rows = np.union1d(rows, first)
    wanted = min(number, len(leverage)) - len(rows)
    if wanted <= 0:
        return rows
    generator = np.random.default_rng(seed)
    free = generator.permutation(np.setdiff1d(np.arange(len(leverage)), rows))
    size = np.maximum(leverage[free], 1e-12)
    chance, sure = np.zeros(len(free)), np.zeros(len(free), dtype=np.bool_)
    # Shares of the sample, none above 1: what is above leaves its excess to the others.
    for _ in range(64):
        left = wanted - np.count_nonzero(sure)
        chance = np.where(sure, 1.0, left * size / max(float(size[~sure].sum()), 1e-300))
        above = (chance >= 1.0) & ~sure
        if not above.any():
            break
        sure |= above
    # Systematic sampling: a comb of step 1 over the chances laid end to end.
    ends = np.cumsum(chance)
    comb = generator.random() + np.arange(wanted)
    places = np.unique(np.searchsorted(ends, comb * (ends[-1] / wanted), side="right"))
    return np.union1d(rows, free[np.minimum(places, len(free) - 1)])
