"""Advantage, delta(epsilon) and epsilon(delta) from two samples of scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from leakscope._numerics.keys import Key
from leakscope.measures.empirical_crossfit import (
    Direction,
    check_direction,
    held_out,
    sure_rates,
    views,
)
from leakscope.measures.empirical_ranks import (
    Floats,
    Integers,
    Ranks,
    beta_quantile,
    by_blocks,
    check_confidence,
    check_levels,
    check_probability,
    dkw_sum,
    suffix_counts,
)
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS

__all__ = ["advantage", "advantage_plugin", "delta_at_epsilon", "epsilon_at_delta"]

_DEFAULT_KEY = Key(0)
_CHOICE_LEVEL = 0.05


def advantage_plugin(member: npt.ArrayLike, nonmember: npt.ArrayLike) -> Floats:
    """Return the largest TPR - FPR over thresholds *on these samples* (one-sided KS statistic).

    The attacker is a threshold test on the score (score high -> member).  The number is biased
    upward: without any leakage it is about ``0.63 * sqrt(1/n_member + 1/n_nonmember)`` (the mean
    of the Kolmogorov-Smirnov limit law), and never 0.  Report `advantage` instead.

    Examples
    --------
    >>> float(advantage_plugin([3.0, 2.0, 1.0, 0.5], [2.5, 1.5, 0.0, -1.0]))
    0.5
    """
    return by_blocks(member, nonmember, lambda ranks: (_plugin(ranks, 1.0),))[0]


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

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    confidence : float
        Confidence of the interval.
    key : Key
        Random key of the splits; the same splits are used for the whole batch.

    Returns
    -------
    Estimate
        Arrays of the batch shape; no leakage is 0.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> same = advantage(generator.normal(size=200), generator.normal(size=300))
    >>> bool(same.low == 0.0)
    True
    """
    return delta_at_epsilon(member, nonmember, 0.0, confidence, key)


def delta_at_epsilon(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
    key: Key = _DEFAULT_KEY,
    *,
    direction: Direction = "member_to_nonmember",
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

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    epsilon : float or array_like, shape (m,)
        Not negative.
    confidence : float
        Confidence of each interval on its own.
    key : Key
        Random key of the splits; the same splits are used for the whole batch.
    direction : {"member_to_nonmember", "nonmember_to_member", "both"}
        Which inequality of differential privacy is examined.

    Returns
    -------
    Estimate
        Arrays of the batch shape, followed by (m,) when ``epsilon`` is an array.

    References
    ----------
    .. [1] P. Massart, Annals of Probability 18, 1990.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> scores = generator.normal(1.0, 1.0, 400), generator.normal(size=400)
    >>> found = delta_at_epsilon(*scores, [0.0, 1.0])
    >>> bool(found.value[0] > found.value[1] > 0)
    True
    """
    level = check_confidence(confidence)
    check_direction(direction)
    levels = check_levels("epsilon", epsilon)

    def compute(ranks: Ranks, weight: float) -> tuple[Floats, Floats, Floats]:
        sides = views(ranks, direction)

        def gain(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> Floats:
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
    direction: Direction = "both",
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

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    delta : float or array_like, shape (m,)
        Fractions in [0, 1].
    confidence : float
        Confidence of each lower end on its own.
    key : Key
        Random key of the splits; the same splits are used for the whole batch.
    direction : {"member_to_nonmember", "nonmember_to_member", "both"}
        Which inequality of differential privacy is examined.

    Returns
    -------
    Estimate
        Arrays of the batch shape, followed by (m,) when ``delta`` is an array.

    References
    ----------
    .. [1] M. Jagielski, J. Ullman, A. Oprea, NeurIPS 2020.
    .. [2] M. Nasr et al., "Tight auditing of differentially private machine learning",
       USENIX Security 2023.

    Examples
    --------
    >>> import numpy as np
    >>> found = epsilon_at_delta(np.arange(500.0) + 400, np.arange(500.0), 0.01)
    >>> bool(0 < found.low <= found.value < found.high == np.inf)
    True
    """
    level = check_confidence(confidence)
    check_direction(direction)
    levels = check_probability("delta", delta)

    def compute(ranks: Ranks, one: float) -> tuple[Floats, Floats, Floats]:
        def sure(top: Integers, bottom: Integers, n_top: int, n_bottom: int) -> Floats:
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


def _plugin(view: Ranks, weight: float) -> Floats:
    top = suffix_counts(view.member, view.size) / view.member.shape[-1]
    bottom = suffix_counts(view.nonmember, view.size) / view.nonmember.shape[-1]
    return np.asarray((top - weight * bottom).max(axis=-1))


def _log_ratio_bound(
    top: Integers, bottom: Integers, n_top: int, n_bottom: int, delta: float
) -> Floats:
    """Return a one-sided lower bound on log((TPR - delta) / FPR) at every threshold."""
    sure = _choice_bounds(n_top)[0] - delta
    false = _choice_bounds(n_bottom)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(sure, 0.0))[top] - np.log(false)[bottom])


@lru_cache(maxsize=8)
def _choice_bounds(trials: int) -> tuple[Floats, Floats]:
    """Return the Clopper-Pearson bounds for every count out of ``trials``."""
    counts = np.arange(trials + 1)
    return (
        beta_quantile(_CHOICE_LEVEL, counts, trials - counts + 1),
        beta_quantile(1.0 - _CHOICE_LEVEL, counts + 1, trials - counts),
    )


def _over_levels(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    levels: Floats,
    compute: Callable[[Ranks, float], tuple[Floats, Floats, Floats]],
    confidence: float,
    method: str,
    bias: str,
) -> Estimate:
    """Run ``compute`` for every level and put the levels on the last axis."""

    def block(ranks: Ranks) -> tuple[Floats, ...]:
        found = [compute(ranks, float(one)) for one in np.atleast_1d(levels)]
        return tuple(np.stack(column, axis=-1) for column in zip(*found, strict=True))

    value, low, high = by_blocks(member, nonmember, block)
    shape = value.shape[:-1] if levels.ndim == 0 else value.shape
    return Estimate(
        value.reshape(shape), low.reshape(shape), high.reshape(shape), confidence, method, bias
    )
