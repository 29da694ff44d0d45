"""Kullback-Leibler divergence between the laws of two samples of scores, by ranks."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures.empirical_ranks import (
    Estimate,
    Integers,
    Ranks,
    by_blocks,
    check_confidence,
    held_out,
    sure_rates,
)
from leakscope.settings.measure import MEASURE_DEFAULTS

_DEFAULT_KEY = Key(0)
_FEWEST = 8
_TIE_BREAKS = 4


def kl(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    direction: Literal["nonmember_to_member", "member_to_nonmember"] = "nonmember_to_member",
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
) -> Estimate:
    """Estimate the KL divergence between the two laws of the score, in natural logarithms.

    ``nonmember_to_member`` is KL(nonmember || member), ``member_to_nonmember`` the other.  Below,
    P is the first law with n scores and Q the second with m.

    This is a nearest-neighbour estimator like that of Wang, Kulkarni and Verdu [1]_, with ranks
    in place of distances.  Around each score of P the window reaches k scores of P to either
    side; it holds s spacings of P and c scores of Q, and the estimate is the mean over windows of
    ``digamma(s) - digamma(n+1) - digamma(c+1) + digamma(m+1)``.  By ranks it does not change under
    a monotone transform of the score, as KL does not; its law on null data depends on n and m
    only; and its bias there is known in closed form and subtracted, so that on null data it is
    exactly unbiased before the floor at 0.  The bias from the width of the windows is taken out to
    first order by extrapolating from k and 2k, with k = max(sqrt(n), n / sqrt(m)).  Ties are
    broken at random (averaged over four draws): a coin that is independent of membership leaves
    KL as it is, so that discrete scores need no estimator of their own.

    What remains is a downward bias where P puts much mass where Q has almost no scores.  No sample
    can exclude that KL is larger, or infinite, on account of events too rare to be in it, so no
    interval with a finite upper end is valid for all laws: ``high`` is infinite, and ``low`` is the
    KL divergence between the two outcomes of a threshold test (score high -> member), by data
    processing, at bounds for its error rates that hold for any law and sample size; it is at least
    Pinsker's ``2 * advantage**2`` at the same rates.

    ``key`` is the random key of tie-breaking and splits; the same ones serve the whole batch.  With
    fewer than 8 scores of either law the value is NaN and the interval [0, inf].

    References
    ----------
    .. [1] Q. Wang, S. Kulkarni, S. Verdu, IEEE Transactions on Information Theory 55, 2009.
    """
    level = check_confidence(confidence)
    if direction not in ("nonmember_to_member", "member_to_nonmember"):
        raise InputError(
            "direction must be nonmember_to_member or member_to_nonmember for kl, "
            f"not {direction!r}."
        )

    def compute(ranks: Ranks) -> tuple[FloatArray, FloatArray]:
        forward = direction == "member_to_nonmember"
        first, second = ranks.member, ranks.nonmember
        if not forward:
            first, second = second, first
        low = _binary_bound(ranks, forward, level, key)
        if min(first.shape[-1], second.shape[-1]) < _FEWEST:
            return np.full(len(first), np.nan), low
        return np.maximum(_estimate(first, second, key), low), low

    value, low = by_blocks(member, nonmember, compute)
    if np.isnan(value).any():
        bias = f"Not estimated: fewer than {_FEWEST} scores in one sample."
    else:
        bias = (
            "Exactly unbiased on null data before the floor at 0; biased downward where the first "
            "law puts mass where the second has few scores."
        )
    bias += " The upper end is infinite, as no sample can exclude rare events."
    method = "rank nearest neighbours, data-processing lower bound"
    return Estimate(value, low, np.full_like(low, np.inf), confidence, method, bias)


def _estimate(first: Integers, second: Integers, key: Key) -> FloatArray:
    """Return the estimate from ranks of P and of Q, floored at 0."""
    n, m = first.shape[-1], second.shape[-1]
    pooled = np.concatenate([first, second], axis=-1)
    ordered = np.sort(pooled, axis=-1)
    breaks = _TIE_BREAKS if bool((ordered[:, 1:] == ordered[:, :-1]).any()) else 1
    full = np.zeros(len(first))
    for draw in range(breaks):
        coin = key.child(1, draw).generator().random(n + m)
        sources = np.argsort(pooled + coin, axis=-1) < n
        narrow, broad = _windows(_below(sources, n), m, _reach(n, m))
        full += (2.0 * narrow - broad) / breaks
    return np.maximum(full, 0.0)


def _reach(n: int, m: int) -> int:
    """Return how many scores of P a window reaches to either side."""
    return max(2, round(float(max(np.sqrt(n), n / np.sqrt(m)))))


def _below(sources: npt.NDArray[np.bool_], n: int) -> Integers:
    """Return, for each score of P in ascending order, how many scores of Q are below."""
    counts = np.cumsum(~sources, axis=-1)
    return np.asarray(counts[sources].reshape(len(sources), n), dtype=np.int64)


def _windows(below: Integers, m: int, reach: int) -> tuple[FloatArray, FloatArray]:
    """Return the estimates from windows that reach ``reach`` scores of P, and twice as many."""
    n = below.shape[-1]
    harmonic = special.digamma(np.arange(m + 1) + 1.0) - special.digamma(m + 1.0)
    index = np.arange(n)
    found = []
    for size in (reach, 2 * reach):
        upper, lower = np.minimum(index + size, n - 1), np.maximum(index - size, 0)
        inside = below[:, upper] - below[:, lower]
        spacings = upper - lower
        mass = special.digamma(spacings) - special.digamma(n + 1.0) + _null_bias(n, m, spacings)
        found.append((mass - harmonic[inside]).mean(axis=-1))
    return found[0], found[1]


def _null_bias(n: int, m: int, spacings: Integers) -> FloatArray:
    """Return E[digamma(c+1) - digamma(m+1)] - E[log q] for c ~ Bin(m, q), q ~ Beta(s, n+1-s).

    With H the harmonic numbers, E[H_c | q] = sum_{j=1}^m (1 - (1-q)^j) / j, which is
    H_m + log q + sum_{j>m} (1-q)^j / j.  The last sum, averaged over q, is the bias; it is an
    integral over log j by the midpoint rule.
    """
    sizes, back = np.unique(spacings, return_inverse=True)
    s = sizes.astype(np.float64)[:, None]
    # The integrand falls like (1 + j/n)**-s; windows that surely hold scores of Q have none.
    needed = s[:, 0] * np.log1p(m / n) < 40.0
    bias = np.zeros(len(sizes))
    if needed.any():
        s = s[needed]
        log_j = np.linspace(np.log(m + 0.5), np.log(m + 0.5) + 45.0, 1501)
        j = np.exp(log_j)
        moment = special.gammaln(n + 1.0) - special.gammaln(n + 1.0 - s)
        exact = special.gammaln(n + 1.0 - s + j) - special.gammaln(n + 1.0 + j)
        moment = moment + np.where(j > 1e6 * (n + 1.0), -s * log_j, exact)
        bias[needed] = integrate.trapezoid(np.exp(moment), log_j, axis=-1)
    return np.asarray(bias[back].reshape(spacings.shape))


def _binary_bound(ranks: Ranks, forward: bool, level: float, key: Key) -> FloatArray:
    """Return the KL between the outcomes of the best threshold test, at bounds for its rates."""

    def gap(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> FloatArray:
        return np.asarray(top / n_top - bottom / n_bottom)

    held = held_out(ranks, "member_to_nonmember", gap, key.child(3), repeats=1)
    tpr, fpr = sure_rates(ranks, "member_to_nonmember", held, level)
    p, q = (tpr, fpr) if forward else (fpr, tpr)
    bound = special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q)
    return np.asarray(np.where(tpr > fpr, bound, 0.0).max(axis=-1))
