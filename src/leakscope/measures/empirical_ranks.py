"""Two samples of scores as ranks, the exact laws of counts among them, and tests judged by others.

Every empirical measure here depends on the scores only through their order, so the scores are
turned into dense ranks (equal scores share a rank) once, and everything after that is counting.

A threshold chosen on the scores that judge it looks better than it is.  Two ways around that:
`held_out` chooses on one half and judges on the other, and a list of order-statistic cuts fixed
before the scores are seen has its error rates bounded all at once (`sure_rates`).  Point values use
the first; lower bounds use both, since the list is tighter for continuous scores (measured: the
mean lower bound on epsilon is 0.60 against 0.46 for two normals one sd apart and 200 scores each)
and the held-out threshold for scores with a few values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError

Direction = Literal["nonmember_to_member", "member_to_nonmember"]
AnyDirection = Literal["nonmember_to_member", "member_to_nonmember", "both"]

_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "member_to_nonmember": ("member_to_nonmember",),
    "nonmember_to_member": ("nonmember_to_member",),
    "both": ("member_to_nonmember", "nonmember_to_member"),
}


def directions_of(direction: str) -> tuple[Direction, ...]:
    """The one direction, or both."""
    if direction not in _DIRECTIONS:
        raise InputError(
            "direction must be member_to_nonmember, nonmember_to_member or both, "
            f"but it is {direction!r}."
        )
    return _DIRECTIONS[direction]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A measure estimated from two samples of scores, its interval, and what is known of its bias.

    Parameters
    ----------
    value : ndarray
        The point estimate, in the shape of the batch; it always lies in ``[low, high]``, unless it
        is NaN because the measure cannot be estimated from these samples.
    low, high : ndarray
        Ends of the confidence interval.  An end at the limit of what the measure can be (0 or 1
        for a probability, ``inf`` for an epsilon) says that the samples cannot bound that side.
    confidence : float
        The share of repetitions in which the interval contains the true measure.
    method : str
        How value and interval were got, in a few words.
    bias : str
        What is known of the bias of ``value`` and what was done about it; empty when it has none.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    bias: str

    def reshape(self, shape: tuple[int, ...]) -> Estimate:
        """The same estimates with the batch laid out as ``shape``."""
        value, low, high = (a.reshape(shape) for a in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.confidence, self.method, self.bias)

    def contains(self, truth: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say for every member of the batch whether the interval contains ``truth``."""
        target = np.asarray(truth, dtype=np.float64)
        return np.asarray((self.low <= target) & (target <= self.high), dtype=np.bool_)


Integers = npt.NDArray[np.int64]

_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Ranks:
    """Dense ranks of both samples among the pooled scores of each batch row.

    ``member`` and ``nonmember`` have shapes (rows, n_member) and (rows, n_nonmember); a rank is an
    integer from 0 to ``size - 1`` where ``size`` is n_member + n_nonmember.
    """

    member: Integers
    nonmember: Integers

    @property
    def size(self) -> int:
        """How many scores there are in both samples together."""
        return int(self.member.shape[-1] + self.nonmember.shape[-1])

    def mirrored(self) -> Ranks:
        """Swap the samples and negate the scores: low score -> nonmember becomes high -> member."""
        top = self.size - 1
        return Ranks(top - self.nonmember, top - self.member)


def by_blocks(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    compute: Callable[[Ranks], tuple[FloatArray, ...]],
) -> tuple[FloatArray, ...]:
    """Check both samples, rank them, and run ``compute`` over blocks of batch rows.

    ``compute`` returns arrays whose first axis is the rows of the block; they come back with that
    axis replaced by the batch shape.
    """
    first, second = _checked("member", member), _checked("nonmember", nonmember)
    try:
        batch = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    except ValueError:
        raise InputError(
            f"The batch shapes of member scores {first.shape[:-1]} and of nonmember scores "
            f"{second.shape[:-1]} do not match; only the last axis may differ."
        ) from None
    n_member, n_nonmember = first.shape[-1], second.shape[-1]
    first = np.broadcast_to(first, (*batch, n_member)).reshape(-1, n_member)
    second = np.broadcast_to(second, (*batch, n_nonmember)).reshape(-1, n_nonmember)
    rows = first.shape[0]
    step = max(1, _BLOCK_NUMBERS // (n_member + n_nonmember))
    pieces = [
        compute(_ranked(first[start : start + step], second[start : start + step]))
        for start in range(0, max(rows, 1), step)
    ]
    return tuple(
        np.concatenate(parts).reshape((*batch, *parts[0].shape[1:]))
        for parts in zip(*pieces, strict=True)
    )


def _checked(name: str, scores: npt.ArrayLike) -> FloatArray:
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"The {name} scores are not an array of numbers.") from None
    if array.ndim == 0 or array.shape[-1] < 2:
        count = 1 if array.ndim == 0 else array.shape[-1]
        raise InputError(
            f"At least 2 {name} scores are needed along the last axis, but there are {count}."
        )
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        position = where[0] if len(where) == 1 else where
        raise InputError(
            f"Scores must be finite, but the {name} score at position {position} is {array[where]}."
        )
    return array


def check_confidence(confidence: float) -> float:
    """Return the level at which an interval may miss, 1 - confidence."""
    if not (isinstance(confidence, (int, float, np.number)) and 0.0 < float(confidence) < 1.0):
        raise InputError(f"confidence must lie strictly between 0 and 1, but it is {confidence}.")
    return 1.0 - float(confidence)


def check_levels(name: str, value: npt.ArrayLike, upper: float = np.inf) -> FloatArray:
    """Return a scalar or one-dimensional array of finite numbers from 0 to ``upper``."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or an array of numbers.") from None
    if array.ndim > 1:
        raise InputError(
            f"{name} must be a number or one-dimensional, but its shape is {array.shape}."
        )
    bad = ~(np.isfinite(array) & (array >= 0.0) & (array <= upper))
    if bad.any():
        where = int(np.argmax(np.atleast_1d(bad)))
        span = "finite and not negative" if np.isinf(upper) else f"between 0 and {upper:g}"
        place = "" if array.ndim == 0 else f" at position {where}"
        raise InputError(f"{name} must be {span}, but{place} it is {np.atleast_1d(array)[where]}.")
    return array


def _ranked(member: FloatArray, nonmember: FloatArray) -> Ranks:
    pooled = np.concatenate([member, nonmember], axis=-1)
    order = np.argsort(pooled, axis=-1, kind="stable")
    ordered = np.take_along_axis(pooled, order, axis=-1)
    dense = np.zeros(pooled.shape, dtype=np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=-1, out=dense[:, 1:])
    ranks = np.empty_like(dense)
    np.put_along_axis(ranks, order, dense, axis=-1)
    n_member = member.shape[-1]
    return Ranks(ranks[:, :n_member], ranks[:, n_member:])


def count_above(ordered: Integers, thresholds: Integers, *, size: int) -> Integers:
    """Count, row by row, the ranks of an ascending array that exceed each threshold.

    Thresholds run from -1 (everything exceeds it) to ``size - 1``.
    """
    rows = ordered.shape[0]
    offset = np.arange(rows, dtype=np.int64)[:, None] * (size + 1) + 1
    found = np.searchsorted((ordered + offset).ravel(), (thresholds + offset).ravel(), side="right")
    at_most = found.reshape(thresholds.shape) - np.arange(rows)[:, None] * ordered.shape[1]
    return np.asarray(ordered.shape[1] - at_most, dtype=np.int64)


def suffix_counts(ranks: Integers, size: int) -> Integers:
    """Count, row by row, the ranks that are at least r, for r = 0, ..., size."""
    rows = ranks.shape[0]
    flat = (ranks + np.arange(rows, dtype=np.int64)[:, None] * size).ravel()
    histogram = np.bincount(flat, minlength=rows * size).reshape(rows, size)
    counts = np.zeros((rows, size + 1), dtype=np.int64)
    counts[:, :size] = np.cumsum(histogram[:, ::-1], axis=-1)[:, ::-1]
    return counts


def beta_quantile(level: float, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Return the quantile of the Beta law, which is 0 where a = 0 and 1 where b = 0."""
    first, second = np.broadcast_arrays(
        np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    )
    inside = special.betaincinv(np.maximum(first, 1e-9), np.maximum(second, 1e-9), level)
    return np.asarray(np.where(first <= 0, 0.0, np.where(second <= 0, 1.0, inside)))


def binomial_lower(successes: Integers, trials: int | Integers, level: float) -> FloatArray:
    """Return the Clopper-Pearson lower bound, which exceeds the truth with chance <= level."""
    if not isinstance(trials, np.ndarray):
        counts, back = np.unique(successes, return_inverse=True)
        return beta_quantile(level, counts, trials - counts + 1)[back].reshape(successes.shape)
    return beta_quantile(level, successes, trials - successes + 1)


def binomial_upper(successes: Integers, trials: int | Integers, level: float) -> FloatArray:
    """Return the Clopper-Pearson upper bound, which is below the truth with chance <= level."""
    if not isinstance(trials, np.ndarray):
        counts, back = np.unique(successes, return_inverse=True)
        bound = beta_quantile(1.0 - level, counts + 1, trials - counts)
        return bound[back].reshape(successes.shape)
    return beta_quantile(1.0 - level, successes + 1, trials - successes)


def dkw(size: int, level: float) -> float:
    """Return the half width of the two-sided Dvoretzky-Kiefer-Wolfowitz band.

    With Massart's constant (Annals of Probability 18, 1990): the empirical distribution function of
    ``size`` draws from any law is further than this from the true one, anywhere, with chance at
    most ``level``.
    """
    return float(np.sqrt(np.log(2.0 / level) / (2.0 * size)))


@lru_cache(maxsize=512)
def dkw_sum(n_first: int, n_second: int, weight: float, level: float) -> float:
    """Return c with P(D_first + weight * D_second > c) <= level for one-sided deviations D.

    Each D is the largest one-sided deviation of an empirical from its true distribution function,
    and the samples are independent.  By Massart's inequality D is stochastically below a variable
    with tail ``exp(-2 n x**2)`` cut off at 1/2, so the tail of the sum is bounded by that of the
    convolution, which is tighter than the union bound.  The Riemann sum below is taken on the
    side that makes c larger.
    """
    edges = np.append(0.0, np.geomspace(1e-6 * level, 0.5, 2048))
    with np.errstate(divide="ignore"):
        second = np.append(
            np.sqrt(-np.log(edges[:-1]) / (2.0 * n_second)),
            np.sqrt(np.log(2.0) / (2.0 * n_second)),
        )
    mass = np.append(np.diff(edges), 0.5)
    shortest = np.sqrt(np.log(2.0) / (2.0 * n_first))

    def exceeds(c: float) -> float:
        rest = c - weight * second
        chance = np.where(rest < shortest, 1.0, np.exp(-2.0 * n_first * np.maximum(rest, 0.0) ** 2))
        return float(mass @ chance)

    low = 0.0
    high = float(
        np.sqrt(np.log(4.0 / level) / (2.0 * n_first))
        + weight * np.sqrt(np.log(4.0 / level) / (2.0 * n_second))
    )
    while exceeds(high) > level:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) > level else (low, middle)
    return high


# Counts of members and of nonmembers at or above each threshold -> how good that threshold is.
Criterion = Callable[[Integers, Integers, int, int], FloatArray]


def views(ranks: Ranks, direction: str) -> list[Ranks]:
    """Return the samples so that each direction reads as numerator = member, high scores."""
    chosen = []
    if direction != "nonmember_to_member":
        chosen.append(ranks)
    if direction != "member_to_nonmember":
        chosen.append(ranks.mirrored())
    return chosen


def _folds(
    n_member: int, n_nonmember: int, repeats: int, key: Key
) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """Yield the random half of each sample that judges; the same for every batch row.

    So a row's result is its own.
    """
    for repeat in range(repeats):
        generator = key.child(repeat).generator()
        member = generator.permutation(n_member) % 2
        nonmember = generator.permutation(n_nonmember) % 2
        for part in range(2):
            yield member == part, nonmember == part


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """For every fold and row: the criterion when choosing, and both counts when judging.

    The counts are of the held-out numerator and denominator samples on the chosen side of the
    threshold, in the roles of the chosen direction: (TP, FP) for member_to_nonmember and
    (TN, FN) for nonmember_to_member; ``numerators`` and ``denominators`` are out of how many.
    """

    criterion: FloatArray
    hits: Integers
    numerators: Integers
    misses: Integers
    denominators: Integers


def held_out(
    ranks: Ranks, direction: str, criterion: Criterion, key: Key, *, repeats: int = 5
) -> HeldOutScores:
    """Choose the best threshold (and direction) on one half; judge it on the other; both ways.

    Two halves, five times, had the least squared error for the advantage among 2x1, 2x5, 5x2,
    10x1 and 10x3 (parts x repeats) on null data and for weak and middling leakage.
    """
    n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
    chosen = []
    for member, nonmember in _folds(n_member, n_nonmember, repeats, key):
        found = []
        if direction != "nonmember_to_member":
            found.append(_one_fold(ranks, member, nonmember, criterion))
        if direction != "member_to_nonmember":
            found.append(_one_fold(ranks.mirrored(), nonmember, member, criterion))
        best = found[0]
        if len(found) == 2:
            better = found[1][0] > found[0][0]
            best = tuple(np.where(better, new, old) for old, new in zip(*found, strict=True))
        chosen.append(best)
    criteria, *counts = (np.stack(column) for column in zip(*chosen, strict=True))
    return HeldOutScores(criteria, *(count.astype(np.int64) for count in counts))


def sure_rates(
    ranks: Ranks, direction: str, held: HeldOutScores, level: float
) -> tuple[FloatArray, FloatArray]:
    """Bound the numerator rate from below and the denominator rate from above, for many tests.

    All bounds hold together with chance at least 1 - level: half of it goes to a fixed list of
    cuts in each direction, half to Clopper-Pearson for the first held-out threshold.  Both arrays
    have shape (rows, tests).
    """
    sides = views(ranks, direction)
    low, high = [], []
    for view in sides:
        numerator, denominator = _grid_bounds(view, level / (2.0 * len(sides)))
        low.append(numerator)
        high.append(np.broadcast_to(denominator, numerator.shape))
    low.append(binomial_lower(held.hits[0], held.numerators[0], level / 4.0)[:, None])
    high.append(binomial_upper(held.misses[0], held.denominators[0], level / 4.0)[:, None])
    return np.concatenate(low, axis=-1), np.concatenate(high, axis=-1)


def _one_fold(
    view: Ranks,
    judge_top: npt.NDArray[np.bool_],
    judge_bottom: npt.NDArray[np.bool_],
    criterion: Criterion,
) -> tuple[FloatArray, ...]:
    top = suffix_counts(view.member[:, ~judge_top], view.size)
    bottom = suffix_counts(view.nonmember[:, ~judge_bottom], view.size)
    quality = criterion(top, bottom, int((~judge_top).sum()), int((~judge_bottom).sum()))
    threshold = np.argmax(quality, axis=-1)[:, None]
    best = np.take_along_axis(quality, threshold, axis=-1)[:, 0]
    hits = (view.member[:, judge_top] >= threshold).sum(axis=-1, dtype=np.float64)
    misses = (view.nonmember[:, judge_bottom] >= threshold).sum(axis=-1, dtype=np.float64)
    return (
        best,
        hits,
        np.full_like(hits, judge_top.sum()),
        misses,
        np.full_like(misses, judge_bottom.sum()),
    )


def _grid_bounds(view: Ranks, level: float) -> tuple[FloatArray, FloatArray]:
    """Bound TPR from below and FPR from above for a fixed list of cuts, all at once.

    The cuts are at the j-th largest nonmember scores for a geometric list of j (1, 2, 3, 4, 6, 9,
    ...), fixed before the scores are seen.  The FPR of the test "above the j-th largest" is at most
    a Beta(j, n - j + 1) variable whatever the law, and given the cut the members above it are
    binomial, so that the Beta quantile and Clopper-Pearson, at ``level`` divided by twice the
    number of cuts, hold together with chance at least 1 - level.  Returns arrays of shapes
    (rows, cuts) and (cuts,).
    """
    n_member, n_nonmember = view.member.shape[-1], view.nonmember.shape[-1]
    orders = _geometric_orders(n_nonmember)
    each = level / (2.0 * orders.size)
    fpr_high = beta_quantile(1.0 - each, orders, n_nonmember - orders + 1)
    thresholds = np.sort(view.nonmember, axis=-1)[:, n_nonmember - orders]
    above = count_above(np.sort(view.member, axis=-1), thresholds, size=view.size)
    return binomial_lower(above, n_member, each), fpr_high


def _geometric_orders(count: int) -> Integers:
    """Return 1, 2, 3, 4, 6, 9, 14, ... up to ``count``, each about 1.5 times the one before."""
    orders = [1]
    while orders[-1] < count:
        orders.append(min(count, max(orders[-1] + 1, round(1.5 * orders[-1]))))
    return np.asarray(orders, dtype=np.int64)
