"""The Nyström route: approximate leave-one-out laws with an interval for every record.

More and more inducing records, until nearly all records are known to the error asked for or there
may be no more of them.  Where the n^2 values of the kernel can be computed a few times, the labels'
part and the few records that are still not known are then solved by conjugate gradients.

**The approximation.**  With u the rows of r inducing records, Q = K_nu (K_uu + jitter)^{-1} K_un
never exceeds K: what is left, E = K - Q, has no negative eigenvalue.  Q has the features
phi_i = L_u^{-1} k_ui, so that :mod:`leakscope.lood.features` applies; here
Phi^T Phi = U diag(w) U^T is diagonalised instead of factorised, so that one more pass over the
records gives the leverages h and the leave-one-out residuals of Q at any number of noise variances.
Time n r^2, memory r^2 and one block of records.  What E does to the answers is known from a sample
of records, whose kernel with *all* records is computed in the same pass (`ExactRows`).

Some inducing records are the most exposed, as far as is known.  The others are drawn by their ridge
leverages, h_i + E_ii/s2 from fewer inducing records, a chance of at most 1 each; records that no
other stands for are the first to be surely among them.

**Leverages.**  H = Q M_Q^{-1}, z_i = M_Q^{-1} e_i, M = M_Q + E.  With
tau_i = s2^2 z_i^T E z_i = E_ii - 2 [EH]_ii + [HEH]_ii and lambda_i = s2^2 ||E z_i||^2 / tau_i, by
the variational form of [M^{-1}]_ii from below and by Jensen's inequality with M >= E + s2 from
above,

    h_i^Q + tau_i/(s2 + lambda_i)  <=  h_i  <=  h_i^Q + tau_i/(s2 + tau_i/(1 - h_i^Q)).

A record that no other resembles has lambda_i = E_ii, and both ends are exact.  E_ii is known for
every record, [EH]_ii and the row of E for the sampled ones; the traces of HEH and HE^2H are sums
over the sample too, and are shared out by how much of a record's fit is due to others.

**Labels.**  What the others predict of record i errs to first order by
G_i = sum over j != i of E_ij a_j, with a those of Q without i; the sampled ones know it.

**Claims.**  The error of a record is claimed to be at most a constant times a scale that is known
for every record.  The constant is the sample's conformal quantile, for the most exposed and for the
others apart: where records are exchangeable with those drawn, all but half a per cent of either are
within their claims.  To first order in G the claim is not a bound; that it holds is measured in
tests/lood/test_certificate.py and docs/benchmarks/size.md.

**Conjugate gradients.**  M is never held: each step computes all n^2 values of the kernel in tiles,
once for all columns of M X = B.  The steps needed follow from how near M_Q^{-1} comes to M^{-1},
and so do not grow with n.  What is left, R = B - M X, is computed anew at the end, so that the
bounds on the answer,

    |[M^{-1} b - x]_i| <= sqrt([M^{-1}]_ii/s2) ||r||,
    0 <= b^T M^{-1} b - (b + r)^T x <= ||r||^2/s2,

hold whatever rounding did on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption
from leakscope.lood.features import FeatureSums, feature_sums
from leakscope.lood.inputs import require_prior
from leakscope.lood.process import ProcessOnRecords
from leakscope.lood.separation import EPS, Leverages, Separation, laws_from_leverages
from leakscope.settings.audit import AUDIT_DEFAULTS

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
    """Some records of a process, and the features that they give to any other."""

    process: ProcessOnRecords
    rows: Rows  # (r,) row numbers, rising
    half: FloatArray  # (r, r) L_u^{-1} in its lower triangle, Fortran-ordered
    rounding: float  # what float64 may have done to a residual K_ii - Q_ii, as a share of K_ii

    @classmethod
    def of(cls, process: ProcessOnRecords, rows: Rows) -> Inducing:
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
    """What the rows of E of some records add up to, over all records."""

    phi: FloatArray  # (b, r) their features
    with_features: FloatArray  # (b, r) E Phi of these rows
    with_targets: FloatArray  # (b, C) E y
    squares: FloatArray  # (b,) sums of the squares of a row of E


@dataclass(frozen=True)
class Seen:
    """What Q says of every record at one noise variance."""

    noise_variance: float
    leverage: FloatArray  # (n,) h_i = [Q M_Q^{-1}]_ii; the true one is not smaller
    # (n,) sum over j != i of [Q M_Q^{-1}]_ij^2: how much of its fit comes from other records
    others: FloatArray
    residual: FloatArray  # (n, C) the label minus what the others predict
    # (n,) the parts of [HEH]_ii and [HE^2H]_ii that are due to the records seen worst, each taken
    # alone: about the sums of E_jj H_ij^2 and of E_jj^2 H_ij^2
    worst: FloatArray
    worst_squared: FloatArray


@dataclass(frozen=True)
class Nystrom:
    """A process seen through inducing records; `seen` answers at any noise variance."""

    inducing: Inducing
    left: FloatArray  # (n,) E_ii, the prior variance that is not seen, not below 0
    values: FloatArray  # (r,) w, the eigenvalues of Phi^T Phi
    turned: FloatArray  # (r, r) U^T L_u^{-1}: features in which Phi^T Phi is diagonal
    product: FloatArray  # (r, C) U^T Phi^T y
    exact: ExactRows  # the sampled records, in the same turned features

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
            exact=ExactRows(phi_sampled @ vectors, with_features @ vectors, with_targets, squares),
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


def first_rows(process: ProcessOnRecords, number: int, seed: int = 0) -> Rows:
    """Inducing records before anything is known: drawn at random, the same every time."""
    drawn = np.random.default_rng(seed).permutation(process.records)
    return np.sort(drawn[: min(number, process.records)])


def more_rows(
    rows: Rows, leverage: FloatArray, number: int, *, first: Rows = NONE, seed: int = 0
) -> Rows:
    """These rows, ``first``, and others up to ``number``, with a chance in proportion to leverage.

    Those that would get a chance above 1 are surely among them.
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


# A column that has not come down to its tolerance by then is handed on as it is, with its bound.
MOST_STEPS = 50


def solve_columns(
    nystrom: Nystrom, columns: FloatArray, tolerance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(n, k) X close to M^{-1} B, and (n, k) what is left of B.

    ``columns`` is B, (n, k), ``tolerance`` (k,) the length that each column of the rest may keep.
    """
    process = nystrom.inducing.process
    found, rest = np.zeros_like(columns), columns.copy()
    near = _preconditioned(nystrom, rest)
    ahead, product = near.copy(), np.einsum("ij,ij->j", rest, near)
    for _ in range(MOST_STEPS):
        active = np.linalg.norm(rest, axis=0) > tolerance
        if not active.any():
            break
        moved = _times(process, ahead)
        curve = np.einsum("ij,ij->j", ahead, moved)
        step = np.where(active, product / np.where(curve > 0.0, curve, 1.0), 0.0)
        found += step * ahead
        rest -= step * moved
        near = _preconditioned(nystrom, rest)
        before, product = product, np.einsum("ij,ij->j", rest, near)
        ahead = near + np.where(active, product / np.where(before > 0.0, before, 1.0), 0.0) * ahead
    return found, columns - _times(process, found)


def _times(process: ProcessOnRecords, columns: FloatArray) -> FloatArray:
    """M V, tile by tile."""
    size = max(64, BLOCK_BYTES // (8 * process.records))
    found = process.noise_variance * columns
    for start in range(0, process.records, size):
        some = slice(start, start + size)
        found[some] += process.between(process.features[some], process.features) @ columns
    return found


def _preconditioned(nystrom: Nystrom, columns: FloatArray) -> FloatArray:
    """M_Q^{-1} V, through the inducing records."""
    inducing, process = nystrom.inducing, nystrom.inducing.process
    places = process.features[inducing.rows]
    summed = np.zeros((len(places), columns.shape[1]))
    for some in inducing.blocks():
        summed += process.between(places, process.features[some]) @ columns[some]
    shrink = 1.0 / (nystrom.values + process.noise_variance)
    weights = nystrom.turned.T @ (shrink[:, None] * (nystrom.turned @ summed))
    found = columns / process.noise_variance
    for some in inducing.blocks():
        shared = process.between(places, process.features[some])
        found[some] -= shared.T @ weights / process.noise_variance
    return found


# Claims hold for this share of the records like those drawn.
COVERAGE = 0.995

# How many records are drawn from the most exposed and from the others; a fifth (a tenth) at most.
DRAWN_EXPOSED, DRAWN_OTHERS = 200, 400

# The most exposed are this share of the records, and at least so many for each one drawn.
EXPOSED_SHARE, EXPOSED_EACH = 0.002, 5

# The sample knows a record's own errors, and not what comes to it through those of others, nor what
# is of second order: claims are wider than its quantile by this factor.
MARGIN = 1.5

# Even where the sample was always right, a tenth of what is not seen is claimed.
LEAST_SCORE = 0.1

# A residual below this share of the noise is rounding and jitter: the record is seen in full, and
# no more than this is claimed to be known of it.
UNSEEN_SHARE = 2.0 * JITTER


@dataclass(frozen=True)
class Sample:
    """The records whose rows of E are computed, and of which ones they stand for."""

    rows: Rows  # (b,) row numbers
    exposed: NDArray[np.bool_]  # (n,) whether a record is among the most exposed

    @classmethod
    def of(cls, kl: FloatArray, seed: int = 1) -> Sample:
        """Draw, by a first idea of the KL."""
        count = len(kl)
        drawn = min(DRAWN_EXPOSED, max(1, count // 10))
        number = min(max(EXPOSED_EACH * drawn, round(EXPOSED_SHARE * count)), count // 2 + 1)
        exposed = np.zeros(count, dtype=np.bool_)
        exposed[np.argsort(-kl, kind="stable")[:number]] = True
        generator = np.random.default_rng(seed)
        others = generator.permutation(np.flatnonzero(~exposed))[:DRAWN_OTHERS]
        rows = [generator.permutation(np.flatnonzero(exposed))[:drawn], others]
        return cls(np.concatenate(rows), exposed)

    @property
    def weights(self) -> FloatArray:
        """(b,) how many records each one drawn stands for."""
        among = self.exposed[self.rows]
        shares = [
            float(np.sum(self.exposed == kind)) / max(1.0, float(np.sum(among == kind)))
            for kind in (False, True)
        ]
        return np.asarray(np.array(shares)[among.astype(np.intp)])

    def quantile(self, scores: FloatArray) -> FloatArray:
        """(n,) the conformal quantile of the scores drawn from each record's own kind."""
        among = self.exposed[self.rows]
        found = [_conformal(scores[among == kind]) for kind in (False, True)]
        return np.asarray(np.array(found)[self.exposed.astype(np.intp)])


@dataclass(frozen=True)
class Claims:
    """Each record's leverage h_i and a_i = [M^{-1} y]_i, and between what they lie.

    KL and advantage rise with both h_i and |a_i|, so that they lie between those of the two ends.
    """

    leverage: FloatArray  # (n,) h_i
    leverage_low: FloatArray
    leverage_high: FloatArray
    a: FloatArray  # (n, C)
    size_low: FloatArray  # (n,) of the length of a_i
    size_high: FloatArray


def uncertified(nystrom: Nystrom, seen: Seen) -> FloatArray:
    """(n,) leverages with what Q does not see taken as each record's own: a first idea."""
    rest = nystrom.left / (seen.noise_variance + nystrom.left)
    return np.minimum(seen.leverage + (1.0 - seen.leverage) * rest, 1.0 - EPS)


def claims(nystrom: Nystrom, seen: Seen, sample: Sample) -> Claims:
    """What can be claimed of every record from the sampled ones."""
    s2, left, exact = seen.noise_variance, nystrom.left, nystrom.exact
    drawn, weights = sample.rows, sample.weights
    shrink = 1.0 / (nystrom.values + s2)
    twice = nystrom.values * shrink**2
    own, h, others = left[drawn], seen.leverage[drawn], seen.others
    mixed = np.einsum("ij,j,ij->i", exact.with_features, shrink, exact.phi)  # [EH]_ii
    total = max(float(others.sum()), np.finfo(np.float64).tiny)
    smooth = np.einsum("ij,j,ij->i", exact.with_features, twice, exact.phi)  # [EHH]_ii
    phi = max(float(weights @ smooth), 0.0) / total
    phi_squared = float(weights @ (exact.with_features**2 @ twice)) / total
    partly = own > UNSEEN_SHARE * s2
    reach = _reach(left, others, exact.squares, own, drawn, partly, weights)
    eta = float(np.sum(weights[partly] * (own - 2.0 * mixed)[partly])) / max(
        float(np.sum(weights[partly] * own[partly])), np.finfo(np.float64).tiny
    )
    rounding = nystrom.inducing.rounding * nystrom.inducing.process.diagonal()
    smoothed = phi * others + seen.worst
    unit, soft = (left + rounding + UNSEEN_SHARE * s2) / (s2 + reach), smoothed / (s2 + reach)
    leverage = np.minimum(seen.leverage + np.maximum(eta, 0.0) * left / (s2 + reach) + soft, _TOP)
    # The ends that hold for the sampled: [HEH]_ii is at least [EH]_ii^2/E_ii (Cauchy-Schwarz).
    least = np.where(partly, mixed**2 / np.where(partly, own, 1.0), 0.0)
    tau_low = np.maximum(own - 2.0 * mixed + least, 0.0)
    tau_high = np.maximum(own - 2.0 * mixed + np.maximum(least, 2.0 * smoothed[drawn]), 0.0)
    wide = np.maximum(exact.squares / np.maximum(tau_low, 1e-300), tau_low / (1.0 - h))
    low = h + tau_low / (s2 + wide)
    high = h + tau_high / (s2 + tau_high / (1.0 - h))
    away = np.maximum(np.abs(leverage[drawn] - low), np.abs(leverage[drawn] - high)) - soft[drawn]
    score = np.where(partly, np.maximum(away, 0.0) / unit[drawn], 0.0)
    # Beyond what was drawn nothing is calibrated: only what holds always is claimed.
    largest = float(own.max(initial=0.0))
    beyond = left > largest + UNSEEN_SHARE * s2
    error = MARGIN * (np.maximum(sample.quantile(score), LEAST_SCORE) * unit + soft)
    ceiling = (np.sqrt(left + rounding) + np.sqrt(2.0 * smoothed)) ** 2
    ceiling = seen.leverage + ceiling / (s2 + ceiling)
    leverage_low = np.where(beyond, seen.leverage, np.maximum(seen.leverage, leverage - error))
    leverage_high = np.where(beyond, np.maximum(ceiling, leverage), leverage + error)
    # What the others predict, to first order.
    beta = shrink[:, None] * nystrom.product
    a = seen.residual[drawn] * ((1.0 - h) / s2)[:, None]
    miss = (exact.with_targets - exact.with_features @ beta) / s2 - own[:, None] * a
    miss += ((mixed - h * own) / s2)[:, None] * seen.residual[drawn]
    scale = np.sqrt(left * reach + phi_squared * others + seen.worst_squared) + rounding
    grown = np.where(beyond, left / max(largest, UNSEEN_SHARE * s2), 1.0)
    per_scale = sample.quantile(np.linalg.norm(miss, axis=1) / np.maximum(scale[drawn], 1e-300))
    error = MARGIN * per_scale * scale * grown / (1.0 - leverage)
    low_end, high_end = (np.minimum(end, _TOP) for end in (leverage_low, leverage_high))
    # a_i is m_i = (1 - h_i)/s2 times the residual, which does not rest on the record's own label.
    size = np.linalg.norm(seen.residual, axis=1)
    return Claims(
        leverage=leverage,
        leverage_low=low_end,
        leverage_high=high_end,
        a=seen.residual * ((1.0 - leverage) / s2)[:, None],
        size_low=np.maximum(size - error, 0.0) * (1.0 - high_end) / s2,
        size_high=(size + error) * (1.0 - low_end) / s2,
    )


# Leverages stay below 1 by what float64 tells apart.
_TOP = 1.0 - 4.0 * EPS


def _reach(
    left: FloatArray,
    others: FloatArray,
    squares: FloatArray,
    own: FloatArray,
    drawn: Rows,
    partly: NDArray[np.bool_],
    weights: FloatArray,
) -> FloatArray:
    """(n,) lambda_i: its own part E_ii exactly, that of others by a power law over the sample."""
    beside = squares[partly] / own[partly] - own[partly]
    if np.count_nonzero(beside > 0.0) < 10:
        return left + (float(np.max(beside, initial=0.0)))
    known = np.flatnonzero(partly)[beside > 0.0]
    design = np.log(np.column_stack([own[known], np.maximum(others[drawn[known]], 1e-300)]))
    middle, root = design.mean(axis=0), np.sqrt(weights[known])
    columns = np.column_stack([np.ones(len(known)), design - middle])
    target = np.log(beside[beside > 0.0])
    power = np.linalg.lstsq(columns * root[:, None], target * root, rcond=None)[0]
    # Not beyond what was drawn.
    low, high = design.min(axis=0), design.max(axis=0)
    places = [np.log(np.maximum(values, 1e-300)) for values in (left, others)]
    ahead = [np.clip(place, *ends) for place, *ends in zip(places, low, high, strict=True)]
    logs = power[0] + sum(p * (x - m) for p, x, m in zip(power[1:], ahead, middle, strict=True))
    return np.asarray(left + np.exp(logs))


def _conformal(scores: FloatArray) -> float:
    """What a further score exceeds with a chance of 1 - COVERAGE at most; else the largest."""
    if not len(scores):
        return 0.0
    rank = int(np.ceil((len(scores) + 1) * COVERAGE))
    return float(np.sort(scores)[min(rank, len(scores)) - 1])


INDUCING = AUDIT_DEFAULTS.inducing
ERROR = AUDIT_DEFAULTS.error

# The first inducing records are this share of the most there may be, then half of them, then all.
STAGES = (1 / 8, 1 / 2, 1.0)

# This share of the inducing records are the most exposed: they are then seen in full, and are what
# an audit is for.
EXPOSED = 0.1

# More inducing records are not tried once this share of the records is known well enough.
ENOUGH = 0.99

# A record whose KL is surely below this is known well enough: no test has an advantage of 0.001 on
# it (Pinsker's inequality), and nobody needs its digits.
UNSEEN_BELOW = 2e-6

# Up to so many records the kernel's n^2 values are computed again and again to solve what is left;
# so many records are solved together.
SOLVED_UP_TO = 100_000
SOLVED_AT_ONCE = 200

# By which powers of the inducing records the claims may be thought to fall on, and how far nearly
# all may be thought to lie behind half.
LEAST_POWER, MOST_POWER, MOST_SPREAD = 0.5, 3.0, 20.0

# What conjugate gradients may leave undone, as a share of the error asked for.
LEFT_UNDONE = 0.05


# Seconds of one core: of both passes for each record and pair of inducing records, all else
# included, and for each kernel value of a step of conjugate gradients (docs/benchmarks/size.md).
PER_PRODUCT, PER_VALUE, USUAL_STEPS = 1.5e-10, 1e-8, 12


@dataclass(frozen=True)
class Certificate:
    """What an approximate audit claims, and of how many records it cannot."""

    rows: Rows  # the inducing records, row numbers
    records: int  # how many were audited
    drawn: int  # how many of them were compared with all others exactly, to calibrate the claims
    error: float  # the relative error of the KL that was asked for
    claimed: float  # the median over the records of the relative error that is claimed
    unresolved: int  # how many records are not known to the error asked for
    solved: int  # how many were solved by conjugate gradients
    # about how many inducing records it would take; None where these are enough, or unknown
    needed: int | None

    def sentence(self) -> str:
        """The finding in words."""
        half = f"half of the KLs are known to {_percent(self.claimed)}"
        if self.claimed > 1.0:
            half = "half of the KLs are not known to a factor of 2"
        rest = f"{self.unresolved:,} are not known to {_percent(self.error)}"
        if not self.unresolved:
            rest = f"all to {_percent(self.error)}"
        elif self.needed == self.records:
            rest += ", for which nearly all records would have to be inducing"
        elif self.needed is not None:
            rest += f", which would take about {self.needed:,} inducing records"
        if self.solved:
            rest += f"; {self.solved:,} were solved exactly"
        return f"Nyström, {len(self.rows):,} inducing records of {self.records:,}; {half}, {rest}"


class Reached(NamedTuple):
    """The claims with so many inducing records: of half of the records, and of nearly all."""

    inducing: int
    median: float
    nearly_all: float


@dataclass(frozen=True)
class CertifiedRecords:
    """What the Nyström route comes back with."""

    laws: Separation  # with an interval for every record, trusted where it is narrow enough
    others: tuple[Separation, ...]  # at the other noise variances asked for, without intervals
    certificate: Certificate


def certified_cost(records: int, inducing: int, outputs: int = 1) -> tuple[float, int]:
    """Seconds of one core and bytes that `certified_records` takes at most."""
    number = min(inducing, records)
    seconds = PER_PRODUCT * records * sum((share * number) ** 2 for share in STAGES)
    if records <= SOLVED_UP_TO:
        seconds += PER_VALUE * USUAL_STEPS * records**2
    drawn = DRAWN_EXPOSED + DRAWN_OTHERS
    return seconds, nystrom_bytes(records, number, drawn, outputs)


def certified_records(
    process: ProcessOnRecords,
    *,
    inducing: int = INDUCING,
    error: float = ERROR,
    levels: Sequence[float] = (),
) -> CertifiedRecords:
    """The laws with and without each record, through some records that stand for all.

    Parameters
    ----------
    process
        With its noise variance; records leave singly.
    inducing
        The most inducing records there may be.
    error
        The relative error of a record's KL up to which it is trusted.
    levels
        Other noise variances, whose KL is wanted for ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
    >>> process = lood.ProcessOnRecords(X, y, kernels.rbf(2.0), noise_variance=0.1)
    >>> found = lood.certified_records(process, inducing=100)
    >>> low, high = found.laws.interval
    >>> dense = process.separation().kl
    >>> bool(np.mean((low <= dense) & (dense <= high)) > 0.99), found.laws.route
    (True, 'nystrom')
    """
    if process.groups is not None:
        raise InputError(
            "the route nystrom is for records that leave one at a time, not for groups."
        )
    if not 0.0 < error < 1.0:
        raise InputError(f"error must be between 0 and 1, but it is {error:g}.")
    if inducing < 2:
        raise InputError(f"at least 2 inducing records are needed, but there are {inducing}.")
    s2, count = process.noise_variance, process.records
    sizes = [min(max(2, round(share * inducing)), count) for share in STAGES]
    rows = first_rows(process, sizes[0])
    nystrom = Nystrom.of(Inducing.of(process, rows))
    (seen,) = nystrom.seen([s2])
    reached: list[Reached] = []
    for size in sorted({*sizes[1:]}):
        first = uncertified(nystrom, seen)
        kl = _laws(process, first, seen.residual * ((1.0 - first) / s2)[:, None]).kl
        sample = Sample.of(kl)
        most = np.argsort(-kl, kind="stable")[: round(EXPOSED * size)]
        rows = more_rows(rows, seen.leverage + nystrom.left / s2, size, first=most)
        nystrom = Nystrom.of(Inducing.of(process, rows), sample.rows)
        seen, *rest = nystrom.seen([s2, *levels])
        claimed = claims(nystrom, seen, sample)
        laws = _with_ends(process, claimed, error)
        middle, far = np.quantile(laws.error_estimate, [0.5, ENOUGH])
        reached.append(Reached(len(rows), float(middle), float(far)))
        if np.mean(laws.trusted) >= ENOUGH:
            break
    solved = 0
    if not laws.trusted.all() and count <= SOLVED_UP_TO:
        laws, solved = _solved(nystrom, claimed, laws, error)
    unresolved = int(np.count_nonzero(~laws.trusted))
    certificate = Certificate(
        rows=rows,
        records=count,
        drawn=len(sample.rows),
        error=error,
        claimed=float(np.median(laws.error_estimate)),
        unresolved=unresolved,
        solved=solved,
        needed=_needed(reached, error, count) if unresolved else None,
    )
    return CertifiedRecords(
        laws=replace(laws, assumptions=_assumed(certificate, sample)),
        others=tuple(
            _laws(
                process.with_noise(other.noise_variance, process.kernel_scale),
                leverage := uncertified(nystrom, other),
                other.residual * ((1.0 - leverage) / other.noise_variance)[:, None],
            )
            for other in rest
        ),
        certificate=certificate,
    )


def _assumed(told: Certificate, sample: Sample) -> tuple[Assumption, ...]:
    exposed = int(np.count_nonzero(sample.exposed[sample.rows]))
    return (
        Assumption(
            statement=f"the {told.drawn - exposed} records drawn at random, and {exposed} of the "
            f"{np.count_nonzero(sample.exposed)} most exposed, are like those they were drawn from:"
            f" their exact rows of the kernel set every interval, to hold for {COVERAGE:.1%}",
            holds=None,
            evidence=told.sentence(),
        ),
    )


def _needed(reached: list[Reached], error: float, records: int) -> int | None:
    """Where the claims fall to the error asked for, as a power of the inducing records."""
    last = reached[-1]
    if last.nearly_all <= error or len(reached) < 2:
        return None
    before, power = reached[-2], LEAST_POWER
    if before.median > last.median > 0.0:
        steeper = np.log(before.median / last.median) / np.log(last.inducing / before.inducing)
        power = float(np.clip(steeper, LEAST_POWER, MOST_POWER))
    far = min(last.nearly_all, MOST_SPREAD * last.median) / error
    wanted = last.inducing * far ** (1.0 / power)
    size = 10.0 ** np.floor(np.log10(wanted))
    return int(min(np.ceil(wanted / size) * size, records))


def _solved(
    nystrom: Nystrom, claimed: Claims, laws: Separation, error: float
) -> tuple[Separation, int]:
    """The labels' part of all records, and the most exposed unknown ones, exactly."""
    process = nystrom.inducing.process
    s2, outputs = process.noise_variance, process.outputs
    # Once the labels' part is known, only the leverages decide.
    size = np.linalg.norm(claimed.a, axis=1)
    known = _with_ends(process, replace(claimed, size_low=size, size_high=size), error)
    unknown = np.flatnonzero(~known.trusted)
    chosen = unknown[np.argsort(-laws.kl[unknown], kind="stable")][:SOLVED_AT_ONCE]
    columns = np.zeros((process.records, outputs.shape[1] + len(chosen)))
    columns[:, : outputs.shape[1]] = outputs
    columns[chosen, outputs.shape[1] + np.arange(len(chosen))] = 1.0
    h = claimed.leverage
    narrow = LEFT_UNDONE * error * np.sqrt(s2 * np.quantile(h, 0.01))
    own = np.sqrt(LEFT_UNDONE * error * np.minimum(h[chosen], 1.0 - h[chosen]))
    tolerance = np.concatenate([np.full(outputs.shape[1], narrow), own])
    found, rest = solve_columns(nystrom, columns, tolerance)
    a, lengths = found[:, : outputs.shape[1]], np.linalg.norm(rest, axis=0)
    m = (1.0 - claimed.leverage_low) / s2
    error_a = np.sqrt(m / s2) * np.linalg.norm(lengths[: outputs.shape[1]])
    # b^T M^{-1} b is at least (b + r)^T x, and at most that and ||r||^2/s2.
    tail = slice(outputs.shape[1], None)
    least = np.einsum("ij,ij->j", (columns + rest)[:, tail], found[:, tail])
    above = lengths[tail] ** 2 / s2
    leverage, low, high = h.copy(), claimed.leverage_low.copy(), claimed.leverage_high.copy()
    high[chosen] = np.minimum(1.0 - s2 * least, 1.0 - 4.0 * EPS)
    low[chosen] = np.maximum(high[chosen] - s2 * above, claimed.leverage_low[chosen])
    leverage[chosen] = np.maximum(high[chosen] - 0.5 * s2 * above, low[chosen])
    size = np.linalg.norm(a, axis=1)
    better = Claims(leverage, low, high, a, np.maximum(size - error_a, 0.0), size + error_a)
    return _with_ends(process, better, error), len(chosen)


def _with_ends(process: ProcessOnRecords, claimed: Claims, error: float) -> Separation:
    """The laws, those of both ends of each claim, and trust by how far these are apart."""
    size = np.linalg.norm(claimed.a, axis=1)
    along = claimed.a / np.where(size > 0.0, size, 1.0)[:, None]
    along[size == 0.0, 0] = 1.0
    middle = _laws(process, claimed.leverage, claimed.a)
    low = _laws(process, claimed.leverage_low, along * claimed.size_low[:, None])
    high = _laws(process, claimed.leverage_high, along * claimed.size_high[:, None])
    kl = np.maximum(middle.kl, np.finfo(np.float64).tiny)
    away = np.maximum(high.kl - middle.kl, middle.kl - low.kl) / kl
    trusted: NDArray[np.bool_] = (away <= error) | (high.kl < UNSEEN_BELOW)
    ends = [replace(end, error_estimate=away, trusted=trusted) for end in (low, high)]
    return replace(
        middle, error_estimate=away, trusted=trusted, ends=(ends[0], ends[1]), error_asked=error
    )


def _laws(process: ProcessOnRecords, leverage: FloatArray, a: FloatArray) -> Separation:
    s2, none = process.noise_variance, np.zeros(process.records)
    # A record that nobody sees has a leverage below what float64 holds.
    h = np.maximum(leverage, np.finfo(np.float64).tiny)
    return laws_from_leverages(
        Leverages(h, (1.0 - h) / s2, a, none, none, none),
        process.targets,
        noise_variance=s2,
        condition_number=float(np.sum(process.diagonal()) / s2),
        route="nystrom",
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100.0 * share:.2g}%"
