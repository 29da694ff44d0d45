"""Kullback-Leibler divergence between the laws of two samples of scores, by ranks."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures.empirical_crossfit import held_out, sure_rates
from leakscope.measures.empirical_ranks import Floats, Integers, Ranks, by_blocks, check_confidence
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS

__all__ = ["kl"]

_DEFAULT_KEY = Key(0)
_FEWEST = 8
_GROUPS = 20
_TIE_BREAKS = 4
_MOST_EMPTY = 0.02
_NULL_DRAWS = 399
_NULL_NUMBERS = 20_000_000


def kl(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    direction: Literal["nonmember_to_member", "member_to_nonmember"] = "nonmember_to_member",
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    interval: Literal["guaranteed", "asymptotic"] = "guaranteed",
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
    interval with a finite upper end is valid for all laws.  There is a choice:

    - ``interval="guaranteed"``: ``high`` is infinite, and ``low`` is the KL divergence between the
      two outcomes of a threshold test (score high -> member), by data processing, at bounds for
      its error rates that hold for any law and sample size; it is at least Pinsker's
      ``2 * advantage**2`` at the same rates.
    - ``interval="asymptotic"``: value -/+ a t quantile times a grouped jackknife standard error
      [2]_, the upper end moved up further by the size of the extrapolation; ``low`` is 0 unless a
      rank permutation test, which is exact, rejects that the laws are equal.  It is much tighter,
      and *its upper end can be far too low*: it assumes a likelihood ratio whose tails the samples
      reach.  Measured coverage at 95%: 0.95 to 1.00 for shifted normals and logistics, 0.82 to
      0.97 when P is a normal 1.7 times as wide as Q, 0.91 for scores with two values and 100 of
      each, and 0.35 to 0.65 for 50 to 1000 scores when P is Laplace and Q normal.  Where more than
      2% of the windows of P have no score of Q, the samples show that the assumption fails, and
      the guaranteed interval is given instead.

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores; leading axes are a batch and broadcast.  With fewer than 8 of either, the
        value is NaN and the interval [0, inf].
    direction : {"nonmember_to_member", "member_to_nonmember"}
        Which law comes first.
    confidence : float
        Confidence of the interval.
    key : Key
        Random key of tie-breaking, groups and splits; the same ones serve the whole batch.
    interval : {"guaranteed", "asymptotic"}
        See above.

    Returns
    -------
    Estimate
        Arrays of the batch shape; no leakage is 0.

    References
    ----------
    .. [1] Q. Wang, S. Kulkarni, S. Verdu, IEEE Transactions on Information Theory 55, 2009.
    .. [2] B. Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> scores = generator.normal(size=2000) + 1.0, generator.normal(size=2000)
    >>> found = kl(*scores)
    >>> bool(0.2 < found.low < 0.5 < found.high == np.inf)
    True
    >>> found = kl(*scores, interval="asymptotic")
    >>> bool(0.3 < found.low < 0.5 < found.high < 0.7)
    True
    """
    level = check_confidence(confidence)
    if direction not in ("nonmember_to_member", "member_to_nonmember"):
        raise InputError(
            "direction must be nonmember_to_member or member_to_nonmember for kl, "
            f"not {direction!r}."
        )
    if interval not in ("asymptotic", "guaranteed"):
        raise InputError(f"interval must be asymptotic or guaranteed, not {interval!r}.")

    def compute(ranks: Ranks) -> tuple[Floats, Floats, Floats]:
        forward = direction == "member_to_nonmember"
        first, second = ranks.member, ranks.nonmember
        if not forward:
            first, second = second, first
        enough = min(first.shape[-1], second.shape[-1]) >= _FEWEST
        rows = first.shape[0]
        if enough:
            value, low, high, sparse = _estimate(first, second, level, key)
        else:
            value, low, high = np.full(rows, np.nan), np.zeros(rows), np.full(rows, np.inf)
            sparse = np.full(rows, interval == "guaranteed")
        fall_back = sparse | (interval == "guaranteed")
        if fall_back.any():
            low = np.where(fall_back, _binary_bound(ranks, forward, level, key), low)
            high = np.where(fall_back, np.inf, high)
            value = np.maximum(value, low)
        return value, low, high

    value, low, high = by_blocks(member, nonmember, compute)
    if np.isnan(value).any():
        bias = f"Not estimated: fewer than {_FEWEST} scores in one sample."
    else:
        bias = (
            "Exactly unbiased on null data before the floor at 0; biased downward where the first "
            "law puts mass where the second has few scores."
        )
    bias += (
        " The upper end is infinite, as no sample can exclude rare events."
        if interval == "guaranteed"
        else " The interval is asymptotic: its upper end is too low where the first law has "
        "heavier tails than the second; where the samples visibly do not reach those tails, the "
        "guaranteed interval is given."
    )
    method = (
        "rank nearest neighbours, grouped jackknife"
        if interval == "asymptotic"
        else "rank nearest neighbours, data-processing lower bound"
    )
    return Estimate(value, low, high, confidence, method, bias)


def _estimate(
    first: Integers, second: Integers, level: float, key: Key
) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    n, m = first.shape[-1], second.shape[-1]
    reach = _reach(n, m)
    groups = min(_GROUPS, n, m)
    generator = key.child(0).generator()
    group = np.append(generator.permutation(n) % groups, generator.permutation(m) % groups)
    pooled = np.concatenate([first, second], axis=-1)
    ordered = np.sort(pooled, axis=-1)
    breaks = _TIE_BREAKS if bool((ordered[:, 1:] == ordered[:, :-1]).any()) else 1
    full, wide, empty = (np.zeros(len(first)) for _ in range(3))
    deleted = np.zeros((groups, len(first)))
    for draw in range(breaks):
        coin = key.child(1, draw).generator().random(n + m)
        order = np.argsort(pooled + coin, axis=-1)
        sources = order < n
        narrow, broad, none = _windows(_below(order, sources, np.ones(n + m, bool)), m, reach)
        full += (2.0 * narrow - broad) / breaks
        wide += (narrow - broad) / breaks
        empty += none / breaks
        for out in range(groups):
            keep = group != out
            below = _below(order, sources, keep)
            narrow, broad, _ = _windows(below, int(keep[n:].sum()), reach)
            deleted[out] += (2.0 * narrow - broad) / breaks
    spread = ((deleted - deleted.mean(axis=0)) ** 2).sum(axis=0) * (groups - 1) / groups
    half = special.stdtrit(groups - 1, 1.0 - level / 2.0) * np.sqrt(spread)
    value = np.maximum(full, 0.0)
    low = np.where(full > _null_quantile(n, m, level / 2.0, key), full - half, 0.0)
    high = value + half + np.abs(wide)
    return value, np.clip(low, 0.0, value), high, np.asarray(empty > _MOST_EMPTY)


def _reach(n: int, m: int) -> int:
    """Return how many scores of P a window reaches to either side."""
    return max(2, round(float(max(np.sqrt(n), n / np.sqrt(m)))))


def _below(
    order: Integers, sources: npt.NDArray[np.bool_], keep: npt.NDArray[np.bool_]
) -> Integers:
    """Return, for each kept score of P in ascending order, how many kept scores of Q are below."""
    kept = keep[order]
    counts = np.cumsum(kept & ~sources, axis=-1)
    return np.asarray(counts[kept & sources].reshape(len(order), -1), dtype=np.int64)


def _windows(below: Integers, m: int, reach: int) -> tuple[Floats, Floats, Floats]:
    """Return the estimates at ``reach`` and twice that, and the share of windows without Q."""
    n = below.shape[-1]
    harmonic = special.digamma(np.arange(m + 1) + 1.0) - special.digamma(m + 1.0)
    index = np.arange(n)
    found = []
    empty = np.zeros(len(below))
    for size in (reach, 2 * reach):
        upper, lower = np.minimum(index + size, n - 1), np.maximum(index - size, 0)
        inside = below[:, upper] - below[:, lower]
        spacings = upper - lower
        mass = special.digamma(spacings) - special.digamma(n + 1.0) + _null_bias(n, m, spacings)
        found.append((mass - harmonic[inside]).mean(axis=-1))
        if size == reach:
            empty = (inside == 0).mean(axis=-1)
    return found[0], found[1], empty


def _null_bias(n: int, m: int, spacings: Integers) -> Floats:
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


def _null_quantile(n: int, m: int, level: float, key: Key) -> float:
    """Return what the estimate exceeds with chance at most ``level`` when the laws are equal.

    By Monte Carlo over random orders, exact as a permutation test; for samples so large that
    too few orders can be drawn, by a normal law with a fifth added for its skewness.
    """
    draws = max(_NULL_DRAWS, int(np.ceil(4.0 / level)))
    few = draws * (n + m) > _NULL_NUMBERS
    if few:
        draws = max(50, _NULL_NUMBERS // (n + m))
    generator = key.child(2).generator()
    reach = _reach(n, m)
    step = max(1, 4_000_000 // (n + m))
    found = []
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        sources = generator.permuted(np.broadcast_to(np.arange(n + m) < n, (rows, n + m)), axis=-1)
        below = np.cumsum(~sources, axis=-1)[sources].reshape(rows, n)
        narrow, broad, _ = _windows(below, m, reach)
        found.append(2.0 * narrow - broad)
    sample = np.sort(np.concatenate(found))
    if few:
        return float(1.2 * special.ndtri(1.0 - level) * sample.std())
    return float(sample[min(draws - 1, int(np.ceil((draws + 1) * (1.0 - level))) - 1)])


def _binary_bound(ranks: Ranks, forward: bool, level: float, key: Key) -> Floats:
    """Return the KL between the outcomes of the best threshold test, at bounds for its rates."""

    def gap(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> Floats:
        return np.asarray(top / n_top - bottom / n_bottom)

    held = held_out(ranks, "member_to_nonmember", gap, key.child(3), repeats=1)
    tpr, fpr = sure_rates(ranks, "member_to_nonmember", held, level)
    p, q = (tpr, fpr) if forward else (fpr, tpr)
    bound = special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q)
    return np.asarray(np.where(tpr > fpr, bound, 0.0).max(axis=-1))
