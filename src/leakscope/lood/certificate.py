"""What a Nyström approximation may claim of every record: intervals, calibrated on exact rows.

Symbols of :mod:`leakscope.lood.nystrom`; H = Q M_Q^{-1}, z_i = M_Q^{-1} e_i, M = M_Q + E.

**Leverages.**  With tau_i = s2^2 z_i^T E z_i = E_ii - 2 [EH]_ii + [HEH]_ii and
lambda_i = s2^2 ||E z_i||^2 / tau_i, by the variational form of [M^{-1}]_ii from below and by
Jensen's inequality with M >= E + s2 from above,

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.lood.identities import EPS
from leakscope.lood.nystrom import JITTER, Nystrom, Rows, Seen

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
    """The records whose rows of E are computed, and of which ones they stand for.

    Attributes
    ----------
    rows
        (b,) row numbers.
    exposed
        (n,) whether a record is among the most exposed.
    """

    rows: Rows
    exposed: NDArray[np.bool_]

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

    Attributes
    ----------
    leverage, leverage_low, leverage_high
        (n,) h_i.
    a
        (n, C)
    size_low, size_high
        (n,) of the length of a_i.
    """

    leverage: FloatArray
    leverage_low: FloatArray
    leverage_high: FloatArray
    a: FloatArray
    size_low: FloatArray
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
