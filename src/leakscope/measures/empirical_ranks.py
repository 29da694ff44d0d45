"""Two samples of scores as ranks, and the exact laws of counts among them.

Every empirical measure here depends on the scores only through their order, so the scores are
turned into dense ranks (equal scores share a rank) once, and everything after that is counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope.errors import InputError

__all__ = [
    "Ranks",
    "beta_quantile",
    "binomial_lower",
    "binomial_upper",
    "by_blocks",
    "check_confidence",
    "check_levels",
    "check_probability",
    "count_above",
    "dkw",
    "dkw_sum",
    "suffix_counts",
]

Floats = npt.NDArray[np.float64]
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
    compute: Callable[[Ranks], tuple[Floats, ...]],
) -> tuple[Floats, ...]:
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


def _checked(name: str, scores: npt.ArrayLike) -> Floats:
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


def check_probability(name: str, value: npt.ArrayLike) -> Floats:
    """Return a scalar or one-dimensional array of numbers in [0, 1]."""
    return check_levels(name, value, upper=1.0)


def check_levels(name: str, value: npt.ArrayLike, upper: float = np.inf) -> Floats:
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


def _ranked(member: Floats, nonmember: Floats) -> Ranks:
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


def beta_quantile(level: float, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Return the quantile of the Beta law, which is 0 where a = 0 and 1 where b = 0."""
    first, second = np.broadcast_arrays(
        np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    )
    inside = special.betaincinv(np.maximum(first, 1e-9), np.maximum(second, 1e-9), level)
    return np.asarray(np.where(first <= 0, 0.0, np.where(second <= 0, 1.0, inside)))


def binomial_lower(successes: Integers, trials: int | Integers, level: float) -> Floats:
    """Return the Clopper-Pearson lower bound, which exceeds the truth with chance <= level."""
    if not isinstance(trials, np.ndarray):
        counts, back = np.unique(successes, return_inverse=True)
        return beta_quantile(level, counts, trials - counts + 1)[back].reshape(successes.shape)
    return beta_quantile(level, successes, trials - successes + 1)


def binomial_upper(successes: Integers, trials: int | Integers, level: float) -> Floats:
    """Return the Clopper-Pearson upper bound, which is below the truth with chance <= level."""
    if not isinstance(trials, np.ndarray):
        counts, back = np.unique(successes, return_inverse=True)
        bound = beta_quantile(1.0 - level, counts + 1, trials - counts)
        return bound[back].reshape(successes.shape)
    return beta_quantile(1.0 - level, successes + 1, trials - successes)


def dkw(size: int, level: float) -> float:
    """Return the half width of the two-sided Dvoretzky-Kiefer-Wolfowitz band.

    With Massart's constant [1]_: the empirical distribution function of ``size`` draws from any
    law is further than this from the true one, anywhere, with chance at most ``level``.

    References
    ----------
    .. [1] P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality",
       Annals of Probability 18, 1990.
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
