"""Measures of leakage from two samples of scores, each with an interval, but for KL.

They take the scores that any real model or attack gives to members and to nonmembers, as arrays of
shapes (..., n_member) and (..., n_nonmember): finite, at least 2 of each; leading axes are a batch
and broadcast.  The attacker is a threshold test on the score: score high -> member.  Every measure
depends on the order of the scores only.  What comes back has the shape of the batch, followed by
(m,) where the measure was asked for at an array of m levels.  ``confidence`` is that of each
interval on its own; ``key`` is the random key of the splits, the same for the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures.empirical_ranks import (
    AnyDirection,
    Estimate,
    Integers,
    Ranks,
    beta_quantile,
    binomial_lower,
    binomial_upper,
    by_blocks,
    check_confidence,
    check_levels,
    count_above,
    directions_of,
    dkw,
    dkw_sum,
    held_out,
    suffix_counts,
    sure_rates,
    views,
)
from leakscope.settings.measure import MEASURE_DEFAULTS

_FEW_ERRORS = 5.0


def auc(
    member: npt.ArrayLike, nonmember: npt.ArrayLike, confidence: float = MEASURE_DEFAULTS.confidence
) -> Estimate:
    """Estimate the chance that a random member outscores a random nonmember, ties one half.

    The attacker is a threshold test on the score (score high -> member).  The estimator is that
    of Mann and Whitney.  The interval is symmetric on the logit scale with the variance of DeLong
    et al. [1]_ and the Satterthwaite degrees of freedom of Brunner and Munzel [2]_.  Where fewer
    than five errors are seen (min(AUC, 1 - AUC) * min(n_member, n_nonmember) < 5), that variance
    is too uncertain and the interval is widened to its hull with the score interval of Newcombe
    [3]_ (Hanley and McNeil's variance at the tested value).  Where the variance is 0 (perfect
    separation, or all scores equal) an exact interval is used: min(n_member, n_nonmember)
    disjoint pairs are independent, and Clopper-Pearson applies to them.

    No leakage is 0.5.  The value is unbiased.

    References
    ----------
    .. [1] E. DeLong, D. DeLong, D. Clarke-Pearson, Biometrics 44, 1988.
    .. [2] E. Brunner, U. Munzel, Biometrical Journal 42, 2000.
    .. [3] R. Newcombe, Statistics in Medicine 25, 2006, method 5.
    """
    level = check_confidence(confidence)
    value, low, high = by_blocks(member, nonmember, lambda ranks: _auc(ranks, level))
    return Estimate(value, low, high, confidence, "Mann-Whitney, DeLong on the logit scale", "")


def _auc(ranks: Ranks, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
    beaten = _placements(ranks.member, np.sort(ranks.nonmember, axis=-1), ranks.size)
    beating = 1.0 - _placements(ranks.nonmember, np.sort(ranks.member, axis=-1), ranks.size)
    value = beaten.mean(axis=-1)
    part_member = beaten.var(axis=-1, ddof=1) / n_member
    part_nonmember = beating.var(axis=-1, ddof=1) / n_nonmember
    variance = part_member + part_nonmember

    smaller = min(n_member, n_nonmember)
    edge = (level / 2.0) ** (1.0 / smaller)
    separated = np.where(value > 0.75, 1.0, np.where(value < 0.25, 0.0, 0.5))
    low = np.select([separated == 1.0, separated == 0.0], [edge, 0.0], 0.5 - (1.0 - edge) / 2.0)
    high = np.select([separated == 1.0, separated == 0.0], [1.0, 1 - edge], 0.5 + (1 - edge) / 2.0)

    # Rounding can leave a variance of 1e-33 where it is 0.
    usable = variance > 1e-12 / (n_member * n_nonmember)
    safe = np.where(usable, variance, 1.0)
    freedom = safe**2 / np.where(
        usable, part_member**2 / (n_member - 1) + part_nonmember**2 / (n_nonmember - 1), 1.0
    )
    centre = np.where(usable, np.clip(value, 1e-300, 1 - 1e-16), 0.5)
    quantile = special.stdtrit(np.maximum(freedom, 1.0), 1.0 - level / 2.0)
    half = quantile * np.sqrt(safe) / (centre * (1.0 - centre))
    low = np.where(usable, special.expit(special.logit(centre) - half), low)
    high = np.where(usable, special.expit(special.logit(centre) + half), high)

    few = usable & (np.minimum(value, 1.0 - value) * smaller < _FEW_ERRORS - 1e-9)
    if few.any():
        normal = float(special.ndtri(1.0 - level / 2.0))
        outer = _score_interval(value[few], n_member, n_nonmember, normal)
        low[few] = np.minimum(low[few], outer[0])
        high[few] = np.maximum(high[few], outer[1])
    return value, np.minimum(low, value), np.maximum(high, value)


def _placements(
    scores: npt.NDArray[np.int64], reference: npt.NDArray[np.int64], size: int
) -> FloatArray:
    """Return the share of the reference sample that each score exceeds, ties one half."""
    rows, count = reference.shape
    offset = np.arange(rows, dtype=np.int64)[:, None] * size
    flat, query = (reference + offset).ravel(), (scores + offset).ravel()
    both = np.searchsorted(flat, query, side="left") + np.searchsorted(flat, query, side="right")
    below = both.reshape(scores.shape) - 2 * np.arange(rows)[:, None] * count
    return np.asarray(below / (2.0 * count), dtype=np.float64)


def _score_interval(
    value: FloatArray, n_member: int, n_nonmember: int, normal: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of {theta : |value - theta| <= normal * sd(theta)} by bisection."""
    weight = (n_member + n_nonmember) / 2.0 - 1.0

    def outside(theta: FloatArray) -> npt.NDArray[np.bool_]:
        spread = 1.0 + weight * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        variance = theta * (1.0 - theta) * spread / (n_member * n_nonmember)
        return np.asarray((value - theta) ** 2 > normal**2 * variance)

    ends = []
    for far in (0.0, 1.0):
        out, inside = np.full_like(value, far), value.copy()
        for _ in range(60):
            middle = 0.5 * (out + inside)
            beyond = outside(middle)
            out, inside = np.where(beyond, middle, out), np.where(beyond, inside, middle)
        ends.append(out)
    return ends[0], ends[1]


# floor(0.29 * 100) is 28 in floating point; a product this close to an integer is that integer.
_SLACK = 1e-9


def tpr_at_fpr(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the true positive rate of the best threshold test with a given false positive rate.

    The value is conservative: the threshold is the lowest whose empirical FPR does not exceed
    ``fpr``; it is a deterministic test, which cannot split ties.

    The interval holds for every sample size and any law, ties included, and covers the true TPR
    at the *true* FPR ``fpr``, also of a test that tosses a coin at a tied score: it allows for the
    threshold being estimated.  The true FPR of a test that cuts at the j-th largest nonmember score
    is Beta(j, n - j + 1) distributed [1]_, or beyond that on the safe side under ties; the interval
    takes the cuts whose FPR is below and above ``fpr`` with chance 1 - alpha/4 each, and
    Clopper-Pearson bounds at alpha/4 for the TPR of these cuts, with alpha = 1 - confidence.

    Where ``fpr`` is below about ``log(4 / alpha) / n_nonmember`` the lower end is 0: so few
    nonmembers cannot show that a test has so small an FPR.

    References
    ----------
    .. [1] H. David, H. Nagaraja, "Order Statistics", 2003, section 7.2 (tolerance limits).
    """
    level = check_confidence(confidence)
    target = check_levels("fpr", fpr, upper=1.0)
    cuts = np.atleast_1d(target)

    def compute(ranks: Ranks) -> tuple[FloatArray, FloatArray, FloatArray]:
        n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
        cut = _Cuts(ranks)
        value = cut.strict(cuts)
        below, above = _sure_cuts(n_nonmember, cuts, level / 4.0)
        hits = cut.exceeding(below)
        low = np.where(below > 0, binomial_lower(hits, n_member, level / 4.0), 0.0)
        hits = cut.reaching(above)
        high = np.where(above <= n_nonmember, binomial_upper(hits, n_member, level / 4.0), 1.0)
        low = np.where(cuts == 1.0, 1.0, low)
        return value, np.minimum(low, value), np.maximum(high, value)

    value, low, high = by_blocks(member, nonmember, compute)
    n_nonmember = np.shape(nonmember)[-1]
    needed = 1.0 - (level / 4.0) ** (1.0 / n_nonmember)
    bias = (
        "The value takes the threshold whose empirical FPR does not exceed the target, which "
        "is low by up to the slope of the ROC curve over n_nonmember; under ties it does not split "
        "the tied score."
    )
    if (cuts < needed).any():
        bias += (
            f" Below an FPR of {needed:.2g}, {n_nonmember} nonmember scores cannot show that a "
            "test has so small an FPR: there the lower end is 0 and the value is only what this "
            "sample's strictest test gives."
        )
    method = "order statistic and Clopper-Pearson"
    shape = value.shape[:-1] if target.ndim == 0 else value.shape
    return Estimate(value, low, high, confidence, method, bias).reshape(shape)


def roc(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the ROC curve at the given false positive rates, with a simultaneous band.

    The attacker is a threshold test on the score (score high -> member), randomised at ties: the
    value is the empirical staircase with straight segments through ties.  It is not made concave,
    since that takes a test that is no threshold.  The band contains the whole true ROC curve, at
    all FPRs at once, with the given confidence, for every sample size and any law: it shifts the
    empirical curve along both axes by the Dvoretzky-Kiefer-Wolfowitz bound with Massart's
    constant [1]_, at confidence sqrt(confidence) for each of the two independent samples.  See
    `tpr_at_fpr` for a tighter interval at one FPR fixed in advance.

    The value is biased by order 1/n_nonmember only; the band is wide at small FPRs.

    References
    ----------
    .. [1] P. Massart, Annals of Probability 18, 1990; for ROC bands: S. Macskassy, F. Provost,
       ICML 2005.
    """
    level = check_confidence(confidence)
    target = check_levels("fpr", fpr, upper=1.0)
    cuts = np.atleast_1d(target)
    single = 1.0 - np.sqrt(1.0 - level)

    def compute(ranks: Ranks) -> tuple[FloatArray, FloatArray, FloatArray]:
        n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
        cut = _Cuts(ranks)
        value = cut.curve(cuts)
        up, along = dkw(n_member, single), dkw(n_nonmember, single)
        low = np.where(cuts >= along, cut.strict(np.maximum(cuts - along, 0.0)) - up, 0.0)
        above = np.ceil((cuts + along) * n_nonmember - _SLACK).astype(np.int64)
        high = np.where(above <= n_nonmember, cut.reaching(above) / n_member + up, 1.0)
        low = np.where(cuts == 1.0, 1.0, np.maximum(low, 0.0))
        return value, np.minimum(low, value), np.minimum(np.maximum(high, value), 1.0)

    value, low, high = by_blocks(member, nonmember, compute)
    method = "empirical ROC, simultaneous DKW band"
    bias = "The value is the empirical ROC curve; its bias is of order 1/n_nonmember."
    shape = value.shape[:-1] if target.ndim == 0 else value.shape
    return Estimate(value, low, high, confidence, method, bias).reshape(shape)


def trade_off(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the trade-off curve of f-DP, 1 - TPR at each FPR, with a simultaneous band.

    Everything said for `roc` holds; the attacker is a threshold test on the score, so the true
    trade-off between the two laws can lie below this curve (see J. Dong, A. Roth, W. Su,
    "Gaussian differential privacy", JRSS B 84, 2022).
    """
    curve = roc(member, nonmember, fpr, confidence)
    return Estimate(
        1.0 - curve.value,
        1.0 - curve.high,
        1.0 - curve.low,
        confidence,
        "one minus the " + curve.method,
        "The value is one minus the empirical ROC curve; its bias is of order 1/n_nonmember.",
    )


class _Cuts:
    """Threshold tests that cut at order statistics of the nonmember scores of each row."""

    def __init__(self, ranks: Ranks) -> None:
        self.size = ranks.size
        self.member = np.sort(ranks.member, axis=-1)
        self.nonmember = np.sort(ranks.nonmember, axis=-1)
        self.n_member = self.member.shape[-1]
        self.n_nonmember = self.nonmember.shape[-1]

    def _largest(self, order: Integers) -> Integers:
        """Return the order-th largest nonmember rank; -1 for order n_nonmember + 1."""
        index = np.clip(self.n_nonmember - order, -1, self.n_nonmember - 1)
        chosen = self.nonmember[:, np.maximum(index, 0)]
        return np.asarray(np.where(index < 0, -1, chosen), dtype=np.int64)

    def exceeding(self, order: Integers) -> Integers:
        """Count the members strictly above the order-th largest nonmember."""
        return count_above(self.member, self._largest(order), size=self.size)

    def reaching(self, order: Integers) -> Integers:
        """Count the members at or above the order-th largest nonmember."""
        lower = np.maximum(self._largest(order) - 1, -1)
        return count_above(self.member, lower, size=self.size)

    def strict(self, fpr: FloatArray) -> FloatArray:
        """Return the TPR of the lowest threshold whose empirical FPR is at most ``fpr``."""
        allowed = np.floor(fpr * self.n_nonmember + _SLACK).astype(np.int64)
        return np.asarray(self.exceeding(allowed + 1) / self.n_member)

    def curve(self, fpr: FloatArray) -> FloatArray:
        """Return the height of the empirical ROC curve, straight through ties."""
        allowed = np.floor(fpr * self.n_nonmember + _SLACK).astype(np.int64)
        order = allowed + 1
        tied = self._largest(order)
        above, reach = self.exceeding(order), self.reaching(order)
        false = count_above(self.nonmember, tied, size=self.size)
        width = count_above(self.nonmember, np.maximum(tied - 1, -1), size=self.size) - false
        share = (fpr * self.n_nonmember - false) / np.maximum(width, 1)
        # A lone nonmember is no tie unless a member shares its score.
        return np.asarray((above + np.clip(share, 0.0, 1.0) * (reach - above)) / self.n_member)


def _sure_cuts(n_nonmember: int, fpr: FloatArray, level: float) -> tuple[Integers, Integers]:
    """Return, for each FPR, the orders of the cuts that are surely below and surely above it.

    The first is the largest j with P(Beta(j, n - j + 1) > fpr) <= level, 0 if there is none; the
    second the smallest j with P(Beta(j, n - j + 1) < fpr) <= level, n + 1 if there is none.
    """
    order = np.arange(1, n_nonmember + 1, dtype=np.int64)
    upper = beta_quantile(1.0 - level, order, n_nonmember - order + 1)
    lower = beta_quantile(level, order, n_nonmember - order + 1)
    below = np.searchsorted(upper, fpr, side="right").astype(np.int64)
    above = np.searchsorted(lower, fpr, side="left").astype(np.int64) + 1
    return below, above


_DEFAULT_KEY = Key(0)
_CHOICE_LEVEL = 0.05


def advantage(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
) -> Estimate:
    """Estimate the advantage, the largest TPR - FPR that a threshold on the score can have.

    The attacker is a threshold test on the score (score high -> member), so this is a lower
    bound on the total variation distance between the two laws of the score.  It is
    ``delta_at_epsilon`` at epsilon 0; what is said there of value and interval holds.  On null
    data with continuous scores the mean value is about a quarter of the plug-in's (about half for
    scores with three values, where the plug-in is less biased), all of it from the floor at 0, and
    the interval contains 0 with at least the nominal confidence at every sample size.
    """
    return delta_at_epsilon(member, nonmember, 0.0, confidence, key)


def delta_at_epsilon(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    direction: AnyDirection = "member_to_nonmember",
) -> Estimate:
    """Estimate delta(epsilon), the hockey-stick divergence over threshold tests on the score.

    For ``member_to_nonmember`` this is the largest TPR - exp(epsilon) * FPR (score high ->
    member), for ``nonmember_to_member`` the largest TNR - exp(epsilon) * FNR (score low ->
    nonmember), for ``both`` the larger of the two.  The attacker is a threshold test, so the true
    hockey-stick divergence between the two laws can be larger.

    The plug-in maximum is biased upward by order n**-1/2.  The value is cross-fitted instead: the
    threshold is chosen on one half of each sample and judged on the other, both ways, over five
    random splits; the average is floored at 0.  Before the floor it has mean exactly 0 or less
    on null data and in general is biased downward, by what half the data lose in choosing the
    threshold.  The interval holds for every sample size and any law, ties included.  Its upper
    end adds to the plug-in a quantile of the sum of the two one-sided Dvoretzky-Kiefer-Wolfowitz
    deviations (Massart's constant [1]_, convolved since the samples are independent).  Its lower
    end is the larger of the same from below and of TPR_low - exp(epsilon) * FPR_high, with
    Clopper-Pearson and Beta bounds for a fixed list of order-statistic cuts and for one held-out
    threshold; both at half the level.

    References
    ----------
    .. [1] P. Massart, Annals of Probability 18, 1990.
    """
    level = check_confidence(confidence)
    directions_of(direction)
    levels = check_levels("epsilon", epsilon)

    def compute(ranks: Ranks, weight: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        sides = views(ranks, direction)

        def gain(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> FloatArray:
            return np.asarray(top / n_top - weight * (bottom / n_bottom))

        held = held_out(ranks, direction, gain, key)
        gains = held.hits / held.numerators - weight * (held.misses / held.denominators)
        value = np.maximum(gains.mean(axis=0), 0.0)
        numerator, denominator = sure_rates(ranks, direction, held, level / 4.0)
        low = np.maximum((numerator - weight * denominator).max(axis=-1), 0.0)
        high = np.zeros_like(value)
        for side in sides:
            sizes = side.member.shape[-1], side.nonmember.shape[-1]
            plugin = _plugin(side, weight)
            low = np.maximum(low, plugin - dkw_sum(*sizes, weight, level / (4.0 * len(sides))))
            high = np.maximum(high, plugin + dkw_sum(*sizes, weight, level / 2.0))
        high = np.minimum(high, 1.0)
        return np.clip(value, low, high), low, high

    return _over_levels(
        member,
        nonmember,
        levels,
        lambda ranks, one: compute(ranks, float(np.exp(one))),
        confidence,
        "two-fold cross-fitted threshold; DKW and Clopper-Pearson",
        "The plug-in maximum is biased upward; this value is cross-fitted, which removes that and "
        "leaves a smaller downward bias; the floor at 0 lifts its mean when there is no leakage.",
    )


def epsilon_at_delta(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    delta: npt.ArrayLike = 0.0,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    direction: AnyDirection = "both",
) -> Estimate:
    """Estimate from below the epsilon at a given delta that threshold tests on the score reveal.

    The attacker is a threshold test on the score.  For ``member_to_nonmember`` it reveals
    log((TPR - delta) / FPR) (score high -> member), for ``nonmember_to_member``
    log((TNR - delta) / FNR) (score low -> nonmember), and for ``both`` the larger.  This is the
    audit of Jagielski et al. [1]_ and Nasr et al. [2]_.

    Samples can never bound epsilon from above, as an event too rare to be in them can have any
    likelihood ratio; so ``high`` is infinity, and the whole error level goes to ``low``.  The
    value is a lower estimate: on one half of each sample the threshold with the best one-sided
    95% Clopper-Pearson bound is chosen, its rates are taken on the other half, both ways over five
    random splits; the rates are averaged (one half added to each count, so that a rate of 0 is
    not log 0), and the result is multiplied by the share of splits that found any evidence at
    all, which keeps it near 0 on null data.  It is never below ``low``.  The lower end holds for
    every sample size and any law: it is the best of a list of order-statistic cuts fixed in
    advance, by Beta and Clopper-Pearson bounds, and of one held-out threshold by Clopper-Pearson,
    all at once.

    References
    ----------
    .. [1] M. Jagielski, J. Ullman, A. Oprea, NeurIPS 2020.
    .. [2] M. Nasr et al., "Tight auditing of differentially private machine learning",
       USENIX Security 2023.
    """
    level = check_confidence(confidence)
    directions_of(direction)
    levels = check_levels("delta", delta, upper=1.0)

    def compute(ranks: Ranks, one: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        def sure(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> FloatArray:
            return _log_ratio_bound(top, bottom, n_top, n_bottom, one)

        held = held_out(ranks, direction, sure, key)
        found = held.criterion > 0.0
        splits = np.maximum(found.sum(axis=0), 1)
        hits, numerators = (held.hits + 0.5) * found, held.numerators + 1.0
        misses, denominators = (held.misses + 0.5) * found, held.denominators + 1.0
        excess = (hits / numerators).sum(axis=0) / splits - one
        false = (misses / denominators).sum(axis=0) / splits
        usable = (excess > 0.0) & (false > 0.0)
        ratio = np.where(usable, excess, 1.0) / np.where(usable, false, 1.0)
        value = found.mean(axis=0) * np.maximum(np.log(ratio), 0.0)
        numerator, denominator = sure_rates(ranks, direction, held, level)
        ratios = np.maximum(numerator - one, 0.0) / denominator
        low = np.log(np.maximum(ratios.max(axis=-1), 1.0))
        return np.maximum(value, low), low, np.full_like(low, np.inf)

    return _over_levels(
        member,
        nonmember,
        levels,
        compute,
        confidence,
        "two-fold cross-fitted threshold; Clopper-Pearson lower bound",
        "A lower estimate: only threshold tests that half of the sample vouches for are counted, "
        "and samples can never bound epsilon from above, so the upper end is infinite.",
    )


def _plugin(view: Ranks, weight: float) -> FloatArray:
    top = suffix_counts(view.member, view.size) / view.member.shape[-1]
    bottom = suffix_counts(view.nonmember, view.size) / view.nonmember.shape[-1]
    return np.asarray((top - weight * bottom).max(axis=-1))


def _log_ratio_bound(
    top: Integers, bottom: Integers, n_top: int, n_bottom: int, delta: float
) -> FloatArray:
    """Return a one-sided lower bound on log((TPR - delta) / FPR) at every threshold."""
    sure = _choice_bounds(n_top)[0] - delta
    false = _choice_bounds(n_bottom)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(sure, 0.0))[top] - np.log(false)[bottom])


@lru_cache(maxsize=8)
def _choice_bounds(trials: int) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson bounds for every count out of ``trials``."""
    counts = np.arange(trials + 1)
    return (
        beta_quantile(_CHOICE_LEVEL, counts, trials - counts + 1),
        beta_quantile(1.0 - _CHOICE_LEVEL, counts + 1, trials - counts),
    )


def _over_levels(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    levels: FloatArray,
    compute: Callable[[Ranks, float], tuple[FloatArray, FloatArray, FloatArray]],
    confidence: float,
    method: str,
    bias: str,
) -> Estimate:
    """Run ``compute`` for every level and put the levels on the last axis."""

    def block(ranks: Ranks) -> tuple[FloatArray, ...]:
        found = [compute(ranks, float(one)) for one in np.atleast_1d(levels)]
        return tuple(np.stack(column, axis=-1) for column in zip(*found, strict=True))

    value, low, high = by_blocks(member, nonmember, block)
    shape = value.shape[:-1] if levels.ndim == 0 else value.shape
    return Estimate(value, low, high, confidence, method, bias).reshape(shape)


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
