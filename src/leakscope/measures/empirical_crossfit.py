"""Threshold tests chosen on one part of the samples and judged on the other, or on a fixed grid.

A threshold chosen on the scores that judge it looks better than it is.  Two ways around that:
`held_out` chooses on one half and judges on the other, and a list of order-statistic cuts fixed
before the scores are seen has its error rates bounded all at once.  Point values use the first;
lower bounds use both, since the list is tighter for continuous scores (measured: the mean lower
bound on epsilon is 0.60 against 0.46 for two normals one sd apart and 200 scores each) and the
held-out threshold for scores with a few values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.measures.empirical_ranks import (
    Floats,
    Integers,
    Ranks,
    beta_quantile,
    binomial_lower,
    binomial_upper,
    count_above,
    suffix_counts,
)

__all__ = [
    "DIRECTIONS",
    "Direction",
    "HeldOutScores",
    "check_direction",
    "held_out",
    "sure_rates",
    "views",
]

Direction = Literal["member_to_nonmember", "nonmember_to_member", "both"]
DIRECTIONS = ("member_to_nonmember", "nonmember_to_member", "both")

# Counts of members and of nonmembers at or above each threshold -> how good that threshold is.
Criterion = Callable[[Integers, Integers, int, int], Floats]


def check_direction(direction: str) -> None:
    """Refuse a direction that is none of the three."""
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}.")


def views(ranks: Ranks, direction: str) -> list[Ranks]:
    """Return the samples so that each direction reads as numerator = member, high scores."""
    chosen = []
    if direction != "nonmember_to_member":
        chosen.append(ranks)
    if direction != "member_to_nonmember":
        chosen.append(ranks.mirrored())
    return chosen


@dataclass(frozen=True)
class _Fold:
    """Which positions of each sample judge; all others choose."""

    member: npt.NDArray[np.bool_]
    nonmember: npt.NDArray[np.bool_]


def _folds(n_member: int, n_nonmember: int, parts: int, repeats: int, key: Key) -> Iterator[_Fold]:
    """Yield random folds; the same for every batch row, so a row's result is its own."""
    parts = min(parts, n_member, n_nonmember)
    for repeat in range(repeats):
        generator = key.child(repeat).generator()
        member = generator.permutation(n_member) % parts
        nonmember = generator.permutation(n_nonmember) % parts
        for part in range(parts):
            yield _Fold(member == part, nonmember == part)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """For every fold and row: the criterion when choosing, and both counts when judging.

    The counts are of the held-out numerator and denominator samples on the chosen side of the
    threshold, in the roles of the chosen direction: (TP, FP) for member_to_nonmember and
    (TN, FN) for nonmember_to_member; ``numerators`` and ``denominators`` are out of how many.
    """

    criterion: Floats
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
    for fold in _folds(n_member, n_nonmember, 2, repeats, key):
        found = []
        if direction != "nonmember_to_member":
            found.append(_one_fold(ranks, fold.member, fold.nonmember, criterion))
        if direction != "member_to_nonmember":
            found.append(_one_fold(ranks.mirrored(), fold.nonmember, fold.member, criterion))
        best = found[0]
        if len(found) == 2:
            better = found[1][0] > found[0][0]
            best = tuple(np.where(better, new, old) for old, new in zip(*found, strict=True))
        chosen.append(best)
    criteria, *counts = (np.stack(column) for column in zip(*chosen, strict=True))
    return HeldOutScores(criteria, *(count.astype(np.int64) for count in counts))


def sure_rates(
    ranks: Ranks, direction: str, held: HeldOutScores, level: float
) -> tuple[Floats, Floats]:
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
) -> tuple[Floats, ...]:
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


def _grid_bounds(view: Ranks, level: float) -> tuple[Floats, Floats]:
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
