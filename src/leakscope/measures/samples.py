"""Measures of leakage from two samples of scores, each with an interval.

They take the scores that any real model or attack gives to members and to nonmembers, as arrays of
shapes (..., n_member) and (..., n_nonmember): finite, at least 2 of each; leading axes are a batch
and broadcast.  The attacker is a threshold test on the score (score high -> member), so that every
measure depends on the order of the scores only.

A threshold chosen on the scores that judge it looks better than it is.  So values are cross-fitted:
the threshold is chosen on one half of each sample and judged on the other.  Intervals hold for
every sample size and any law, ties included.  They are made of three laws: an empirical
distribution function is within sqrt(log(1/a)/(2n)) below the true one with chance 1 - a
(Dvoretzky, Kiefer, Wolfowitz; constant of P. Massart, Annals of Probability 18, 1990), and above it
likewise; a count is binomial (Clopper and Pearson); the false-positive rate of a cut at the j-th
largest of n nonmember scores is a Beta(j, n - j + 1) variable, or smaller under ties (H. David,
H. Nagaraja, "Order Statistics", 2003, section 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special, stats
from scipy.optimize import brentq

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.settings.measure import MEASURE_DEFAULTS

Direction = Literal["nonmember_to_member", "member_to_nonmember"]
AnyDirection = Literal["nonmember_to_member", "member_to_nonmember", "both"]

# Two halves, five times, had the least squared error for the advantage among 2x1, 2x5, 5x2, 10x1
# and 10x3 (parts x repeats) on null data and for weak and middling leakage.
REPEATS = 5
# The one-sided level at which a threshold is chosen for its epsilon.
CHOICE_LEVEL = 0.05
# floor(0.29 * 100) is 28 in floating point; a product this close to an integer is that integer.
SLACK = 1e-9

_DEFAULT_KEY = Key(0)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A measure estimated from two samples of scores, its interval, and what is known of its bias.

    Parameters
    ----------
    value : ndarray
        The point estimate, in the shape of the batch, in ``[low, high]``.
    low, high : ndarray
        Ends of the confidence interval.  An end at the limit of what the measure can be (0 or 1
        for a probability, ``inf`` for an epsilon) says that the samples cannot bound that side.
    confidence : float
        The share of repetitions in which the interval contains the true measure.
    method : str
        How value and interval were got, in a few words.
    bias : str
        What is known of the bias of ``value``; empty when it has none.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    bias: str = ""

    def contains(self, truth: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say for every member of the batch whether the interval contains ``truth``."""
        target = np.asarray(truth, dtype=np.float64)
        return np.asarray((self.low <= target) & (target <= self.high), dtype=np.bool_)


Interval = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]


def _estimated(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    confidence: float,
    compute: Callable[[FloatArray, FloatArray, float], Interval],
    method: str,
    bias: str = "",
) -> Estimate:
    """Run ``compute`` (value, low and high of two samples and a level) for each of a batch."""
    first, second = _checked("member", member), _checked("nonmember", nonmember)
    if not (isinstance(confidence, (int, float, np.number)) and 0.0 < float(confidence) < 1.0):
        raise InputError(f"confidence must lie strictly between 0 and 1, but it is {confidence}.")
    try:
        batch = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    except ValueError:
        raise InputError(
            f"The batch shapes of member scores {first.shape[:-1]} and of nonmember scores "
            f"{second.shape[:-1]} do not match; only the last axis may differ."
        ) from None
    rows = [
        np.broadcast_to(side, (*batch, side.shape[-1])).reshape(-1, side.shape[-1])
        for side in (first, second)
    ]
    level = 1.0 - float(confidence)
    each = [compute(one, other, level) for one, other in zip(*rows, strict=True)]
    value, low, high = (np.asarray(part, dtype=np.float64) for part in zip(*each, strict=True))
    shape = (*batch, *value.shape[1:])
    low, high = np.minimum(low, value).reshape(shape), np.maximum(high, value).reshape(shape)
    return Estimate(value.reshape(shape), low, high, confidence, method, bias)


def _checked(name: str, scores: npt.ArrayLike) -> FloatArray:
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"The {name} scores are not an array of numbers.") from None
    if array.ndim == 0 or array.shape[-1] < 2:
        raise InputError(f"At least 2 {name} scores are needed along the last axis.")
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            f"Scores must be finite, but the {name} score at position "
            f"{place if len(place) > 1 else place[0]} is {array[place]}."
        )
    return array


def auc(
    member: npt.ArrayLike, nonmember: npt.ArrayLike, confidence: float = MEASURE_DEFAULTS.confidence
) -> Estimate:
    """Estimate the chance that a random member outscores a random nonmember, ties one half.

    The estimator is that of Mann and Whitney.  The interval is the hull of two: that with the
    variance of DeLong et al. [1]_ on the logit scale, with the Satterthwaite degrees of freedom of
    Brunner and Munzel [2]_, and Newcombe's score interval [3]_, which holds where errors are few.

    References
    ----------
    .. [1] E. DeLong, D. DeLong, D. Clarke-Pearson, Biometrics 44, 1988.
    .. [2] E. Brunner, U. Munzel, Biometrical Journal 42, 2000.
    .. [3] R. Newcombe, Statistics in Medicine 25, 2006, method 5.
    """

    def compute(one: FloatArray, other: FloatArray, level: float) -> Interval:
        beaten, beating = _placements(one, other), 1.0 - _placements(other, one)
        value = float(beaten.mean())
        low, high = _score_interval(value, one.size, other.size, level)
        parts = beaten.var(ddof=1) / one.size, beating.var(ddof=1) / other.size
        variance = sum(parts)
        if variance > 1e-12 / (one.size * other.size) and 0.0 < value < 1.0:
            freedom = variance**2 / sum(
                part**2 / (count - 1)
                for part, count in zip(parts, (one.size, other.size), strict=True)
            )
            quantile = special.stdtrit(max(freedom, 1.0), 1.0 - level / 2.0)
            half = quantile * np.sqrt(variance) / (value * (1.0 - value))
            centre = special.logit(value)
            low = min(low, special.expit(centre - half))
            high = max(high, special.expit(centre + half))
        return value, low, high

    return _estimated(
        member, nonmember, confidence, compute, "Mann-Whitney; DeLong and Newcombe intervals"
    )


def _placements(scores: FloatArray, reference: FloatArray) -> FloatArray:
    """The share of the reference sample that each score exceeds, ties one half."""
    ordered = np.sort(reference)
    both = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return np.asarray(both / (2.0 * reference.size))


def _score_interval(value: float, n: int, m: int, level: float) -> tuple[float, float]:
    """Ends of {theta : |value - theta| <= z sd(theta)} with Hanley and McNeil's variance."""
    z = float(special.ndtri(1.0 - level / 2.0))

    def outside(theta: FloatArray) -> FloatArray:
        spread = (1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta)
        variance = theta * (1.0 - theta) * (1.0 + (0.5 * (n + m) - 1.0) * spread) / (n * m)
        return (value - theta) ** 2 - z * z * variance

    far, inside = np.array([0.0, 1.0]), np.full(2, value)
    for _ in range(60):
        middle = 0.5 * (far + inside)
        beyond = outside(middle) > 0.0
        far, inside = np.where(beyond, middle, far), np.where(beyond, inside, middle)
    return float(far[0]), float(far[1])


def _at_least(ordered: FloatArray, thresholds: FloatArray) -> FloatArray:
    """How many of an ascending sample are at or above each threshold."""
    return np.asarray(ordered.size - np.searchsorted(ordered, thresholds, "left"), np.float64)


def _above(ordered: FloatArray, thresholds: FloatArray) -> FloatArray:
    """How many of an ascending sample exceed each threshold."""
    return np.asarray(ordered.size - np.searchsorted(ordered, thresholds, "right"), np.float64)


def _largest(ordered: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    """The order-th largest of an ascending sample; -inf beyond its size."""
    return np.append(ordered[::-1], -np.inf)[np.minimum(order - 1, ordered.size)]


def _beta_quantile(level: float, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """The quantile of the Beta law, which is 0 where a = 0 and 1 where b = 0."""
    first, second = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    inside = stats.beta.ppf(level, np.maximum(first, 1e-9), np.maximum(second, 1e-9))
    return np.where(first <= 0.0, 0.0, np.where(second <= 0.0, 1.0, inside))


def _binomial_lower(count: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Clopper and Pearson's lower bound, which exceeds the truth with chance ``level`` at most."""
    return _beta_quantile(level, count, trials - np.asarray(count) + 1.0)


def _binomial_upper(count: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Clopper and Pearson's upper bound, which is below the truth with chance ``level`` at most."""
    return _beta_quantile(1.0 - level, np.asarray(count) + 1.0, trials - np.asarray(count))


def tpr_at_fpr(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: FloatArray,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the true-positive rates, (..., m), of the best threshold tests of sizes ``fpr``.

    The value is conservative: the threshold is the lowest whose empirical FPR does not exceed
    ``fpr``.  The interval takes the cuts at order statistics of the nonmembers whose FPR is below
    and above ``fpr`` with chance 1 - alpha/4 each, and Clopper-Pearson bounds at alpha/4 for the
    TPR of these cuts, with alpha = 1 - confidence.  Below about ``log(4 / alpha) / n_nonmember``
    the lower end is 0: so few nonmembers cannot show that a test has so small an FPR.
    """

    def compute(one: FloatArray, other: FloatArray, level: float) -> Interval:
        n, m = one.size, other.size
        scores, others = np.sort(one), np.sort(other)
        allowed = np.floor(fpr * m + SLACK).astype(np.intp)
        value = _above(scores, _largest(others, allowed + 1)) / n
        order = np.arange(1, m + 1)
        upper = _beta_quantile(1.0 - level / 4.0, order, m - order + 1)
        lower = _beta_quantile(level / 4.0, order, m - order + 1)
        below = np.searchsorted(upper, fpr, side="right")
        above = np.searchsorted(lower, fpr, side="left") + 1
        hits = _above(scores, _largest(others, np.maximum(below, 1)))
        low = np.where(below > 0, _binomial_lower(hits, n, level / 4.0), 0.0)
        hits = _at_least(scores, _largest(others, above))
        high = np.where(above <= m, _binomial_upper(hits, n, level / 4.0), 1.0)
        return value, np.where(fpr == 1.0, 1.0, low), high

    bias = "The threshold's empirical FPR does not exceed the target, so that the value is low."
    return _estimated(
        member, nonmember, confidence, compute, "order statistic and Clopper-Pearson", bias
    )


# Each direction as (numerator, denominator), both with high scores for the numerator's side.
Side = tuple[FloatArray, FloatArray]


def _sides(one: FloatArray, other: FloatArray, direction: str) -> list[Side]:
    """Score high -> member, and score low -> nonmember, as far as ``direction`` asks."""
    found = [] if direction == "nonmember_to_member" else [(one, other)]
    return found if direction == "member_to_nonmember" else [*found, (-other, -one)]


# Counts of both samples at or above each threshold, and their sizes -> how good each threshold is.
Criterion = Callable[[FloatArray, FloatArray, int, int], FloatArray]


def _thresholds(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Every value, from the lowest, and one that none reaches."""
    return np.append(np.unique(np.concatenate([top, bottom])), np.inf)


@dataclass(frozen=True)
class _Judged:
    """The criterion of the chosen threshold, and the rates of the half that judges it."""

    criterion: float
    hits: float
    numerators: int
    misses: float
    denominators: int


def _held_out(
    one: FloatArray, other: FloatArray, direction: str, criterion: Criterion, key: Key
) -> list[_Judged]:
    """Choose the best threshold (and direction) on one half; judge it on the other; both ways."""
    judged = []
    for first, second in _halves(one.size, other.size, key):
        tries = []
        if direction != "nonmember_to_member":
            tries.append(_judge(one, other, first, second, criterion))
        if direction != "member_to_nonmember":
            tries.append(_judge(-other, -one, second, first, criterion))
        judged.append(max(tries, key=lambda each: each.criterion))
    return judged


def _halves(
    n: int, m: int, key: Key
) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """The random half of each sample that judges; the same for every row of a batch."""
    for repeat in range(REPEATS):
        generator = key.child(repeat).generator()
        first, second = generator.permutation(n) % 2, generator.permutation(m) % 2
        for part in range(2):
            yield first == part, second == part


def _judge(
    top: FloatArray,
    bottom: FloatArray,
    judge_top: npt.NDArray[np.bool_],
    judge_bottom: npt.NDArray[np.bool_],
    criterion: Criterion,
) -> _Judged:
    thresholds = _thresholds(top, bottom)
    chosen_by = np.sort(top[~judge_top]), np.sort(bottom[~judge_bottom])
    first, second = (_at_least(sample, thresholds) for sample in chosen_by)
    quality = criterion(first, second, chosen_by[0].size, chosen_by[1].size)
    best = int(np.argmax(quality))
    hits, misses = (
        float((sample >= thresholds[best]).sum())
        for sample in (top[judge_top], bottom[judge_bottom])
    )
    sizes = int(judge_top.sum()), int(judge_bottom.sum())
    return _Judged(float(quality[best]), hits, sizes[0], misses, sizes[1])


def delta_at_epsilon(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    epsilon: FloatArray,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    direction: AnyDirection = "member_to_nonmember",
) -> Estimate:
    """Estimate delta(epsilon), (..., m), the hockey stick over threshold tests; the advantage at 0.

    For ``member_to_nonmember`` this is the largest TPR - exp(epsilon) * FPR (score high ->
    member), for ``nonmember_to_member`` the largest TNR - exp(epsilon) * FNR (score low ->
    nonmember), for ``both`` the larger of the two.

    The plug-in maximum is biased upward by order n**-1/2.  The value is cross-fitted instead and
    floored at 0: before the floor it has mean 0 or less on null data.  The interval is the plug-in
    and the sum of the deviations of both empirical distribution functions, at alpha/2 either way.
    """
    if np.any(epsilon < 0.0):
        raise InputError("epsilon must not be negative for scores.")

    def compute(one: FloatArray, other: FloatArray, level: float) -> Interval:
        parts = []
        for weight in np.exp(epsilon).tolist():

            def gain(top: FloatArray, bottom: FloatArray, n: int, m: int) -> FloatArray:
                return np.asarray(top / n - weight * (bottom / m))  # noqa: B023

            held = _held_out(one, other, direction, gain, key)
            value = np.mean(
                [x.hits / x.numerators - weight * (x.misses / x.denominators) for x in held]
            )
            low, high = 0.0, 0.0
            sides = _sides(one, other, direction)
            for top, bottom in sides:
                at = _thresholds(top, bottom)
                first, second = (_at_least(np.sort(sample), at) for sample in (top, bottom))
                plugin = float(gain(first, second, top.size, bottom.size).max())
                reach = _deviation(top.size, bottom.size, weight, level / (2.0 * len(sides)))
                low, high = max(low, plugin - reach), max(high, plugin + reach)
            parts.append((np.clip(value, low, min(high, 1.0)), low, min(high, 1.0)))
        value, low, high = np.array(parts).T
        return value, low, high

    return _estimated(
        member,
        nonmember,
        confidence,
        compute,
        "two-fold cross-fitted threshold; DKW",
        "Cross-fitted: a small downward bias, and the floor at 0 lifts its mean without leakage.",
    )


@cache
def _deviation(n: int, m: int, weight: float, level: float) -> float:
    """c with P(D_n + weight D_m > c) <= level, of one-sided deviations of n and of m draws.

    A deviation exceeds sqrt(log(1/a)/(2n)) with chance a at most, for a up to one half.  The sum of
    the two independent ones is bounded by their convolution, a Riemann sum on the larger side.
    """
    tail = np.append(0.0, np.geomspace(1e-6 * level, 0.5, 2048))
    mass = np.append(np.diff(tail), 0.5)
    with np.errstate(divide="ignore"):
        second = np.sqrt(-np.log(np.append(tail[:-1], 0.5)) / (2.0 * m))

    def excess(c: float) -> float:
        first = np.maximum(c - weight * second, 0.0)
        chance = np.exp(-2.0 * n * first**2)
        return float(mass @ np.where(chance > 0.5, 1.0, chance)) - level

    return float(brentq(excess, 0.0, 10.0 * (n**-0.5 + weight * m**-0.5)))


def epsilon_at_delta(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    delta: FloatArray,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    direction: AnyDirection = "both",
) -> Estimate:
    """Estimate from below the epsilons, (..., m), that threshold tests reveal at given deltas.

    For ``member_to_nonmember`` a test reveals log((TPR - delta) / FPR) (score high -> member), for
    ``nonmember_to_member`` log((TNR - delta) / FNR) (score low -> nonmember), and for ``both`` the
    larger.  This is the audit of Jagielski et al. [1]_ and Nasr et al. [2]_.

    Samples can never bound epsilon from above, as an event too rare to be in them can have any
    likelihood ratio; so ``high`` is infinity, and the whole error level goes to ``low``: the best
    of a list of order-statistic cuts fixed in advance, by Beta and Clopper-Pearson bounds.  The
    value is a lower estimate: on one half of each sample the threshold with the best one-sided 95%
    Clopper-Pearson bound is chosen, and its rates are taken on the other half, with one half added
    to each count; it is multiplied by the share of splits that found any evidence at all, which
    keeps it near 0 on null data.

    References
    ----------
    .. [1] M. Jagielski, J. Ullman, A. Oprea, NeurIPS 2020.
    .. [2] M. Nasr et al., "Tight auditing of differentially private machine learning",
       USENIX Security 2023.
    """

    def compute(one: FloatArray, other: FloatArray, level: float) -> Interval:
        parts = []
        for target in delta:

            def surely(top: FloatArray, bottom: FloatArray, n: int, m: int) -> FloatArray:
                right = _binomial_lower(top, n, CHOICE_LEVEL) - target  # noqa: B023
                with np.errstate(divide="ignore"):
                    wrong = _binomial_upper(bottom, m, CHOICE_LEVEL)
                    return np.asarray(np.log(np.maximum(right, 0.0)) - np.log(wrong))

            held = _held_out(one, other, direction, surely, key)
            seen = [judged for judged in held if judged.criterion > 0.0]
            value = 0.0
            if seen:
                right = np.mean([(x.hits + 0.5) / (x.numerators + 1.0) for x in seen]) - target
                wrong = np.mean([(x.misses + 0.5) / (x.denominators + 1.0) for x in seen])
                value = len(seen) / len(held) * max(np.log(max(right / wrong, 1e-300)), 0.0)
            sides = _sides(one, other, direction)
            ratios = [_sure_ratio(*side, target, level / len(sides)) for side in sides]
            low = np.log(max(1.0, *ratios))
            parts.append((max(value, low), low, np.inf))
        value, low, high = np.array(parts).T
        return value, low, high

    return _estimated(
        member,
        nonmember,
        confidence,
        compute,
        "two-fold cross-fitted threshold; Clopper-Pearson lower bound",
        "A lower estimate: only threshold tests that half of the sample vouches for are counted.",
    )


def _sure_ratio(top: FloatArray, bottom: FloatArray, delta: float, level: float) -> float:
    """The largest (TPR - delta) / FPR that cuts at the 1st, 2nd, 3rd, 4th, 6th, 9th, ... vouch for.

    All bounds hold together with chance at least 1 - level.
    """
    orders = [1]
    while orders[-1] < bottom.size:
        orders.append(min(bottom.size, max(orders[-1] + 1, round(1.5 * orders[-1]))))
    order, each = np.array(orders), level / (2.0 * len(orders))
    wrong = _beta_quantile(1.0 - each, order, bottom.size - order + 1)
    right = _binomial_lower(_above(np.sort(top), _largest(np.sort(bottom), order)), top.size, each)
    return float(np.max((right - delta) / wrong))


def binned_advantage(
    member: npt.ArrayLike, nonmember: npt.ArrayLike, edges: npt.ArrayLike
) -> float:
    """Advantage of the test that says "member" in the bins where members are more frequent.

    It is biased: upwards by about sqrt(bins/draws) where the laws are close, because noise in a
    bin counts as evidence, and downwards where the bins are too wide for a narrow law.  For a
    score use `advantage` of a pair of empirical laws, whose bias is corrected.

    Parameters
    ----------
    member, nonmember
        Scores or predictions; those outside the bins are left out.
    edges
        The bins' edges, rising.

    Examples
    --------
    >>> from leakscope.measures import binned_advantage
    >>> binned_advantage([0, 0, 1, 1], [0, 1, 1, 1], edges=[-0.5, 0.5, 1.5])
    0.25
    """
    shares = []
    for side in (member, nonmember):
        count = np.histogram(np.asarray(side, dtype=np.float64).ravel(), np.asarray(edges))[0]
        if not count.sum():
            raise InputError("binned_advantage: no score of one of the two sides is in any bin.")
        shares.append(count / count.sum())
    return float(np.maximum(shares[0] - shares[1], 0.0).sum())


def advantage_of_log_ratios(log_ratios: npt.ArrayLike) -> float:
    """The mean of (1 - exp(-l))+ over log likelihood ratios l = log p1/p0 drawn from members.

    It has no bias, because the ratio is known and not learnt from the draws: the total variation
    distance is E1[(1 - p0/p1)+].

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import advantage_of_log_ratios
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, 200_000)
    >>> round(advantage_of_log_ratios(x - 0.5), 2)  # of N(1, 1) and N(0, 1)
    0.38
    """
    value = np.asarray(log_ratios, dtype=np.float64)
    return float(-np.expm1(-np.maximum(value, 0.0)).mean())
