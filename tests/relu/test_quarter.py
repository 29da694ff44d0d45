"""The proof of the quarter in docs/relu.md, step by step; and when constants are optimal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from margin_sets import optimum
from scipy import optimize

from leakscope import relu
from leakscope.relu.moments import neuron_moments

SEEDS = range(20)
# kinks of a gap between held records: rising, falling, how many distinct ones
GAPS = ((0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 2), (1, 1, 1))
# kinks on a held record: rising, falling
ON = ((0, 0), (1, 0), (0, 1), (1, 1))


def most_candidates(q: int, *, each: bool = True, unbounded: bool = False, one: bool = True) -> int:
    """The largest number of candidates that steps 1 to 3 allow around q held records.

    ``each``: a kink on a record excludes its direction in each gap beside it, not only in both
    together.  ``unbounded``: over every piece.  ``one``: a rising kink left of all records and a
    falling one right of all do not both exist.
    """
    best = 0
    for gaps in itertools.product(GAPS, repeat=q + 1):
        pairs = itertools.pairwise(gaps)
        if any(a[0] and b[0] and a[1] and b[1] and max(a[2], b[2]) == 2 for a, b in pairs):
            continue
        if unbounded and (gaps[0][1] or gaps[-1][0] or (one and gaps[0][0] and gaps[-1][1])):
            continue
        for on in itertools.product(ON, repeat=q):
            beside = [(gaps[i][d], gaps[i + 1][d]) for i in range(q) for d in (0, 1) if on[i][d]]
            if any(any(two) if each else all(two) for two in beside):
                continue
            # kinks from left to right: whether each lies on a held record
            row: list[bool] = []
            for i in range(q + 1):
                row += [False] * gaps[i][2]
                row += [True] * (i < q and any(on[i]))
            if unbounded:
                best = max(best, 2 * (len(row) + 1) - sum(row))
            elif len(row) >= 2 and (gaps[0][2] or any(on[0])) and (gaps[-1][2] or any(on[-1])):
                best = max(best, 2 * (len(row) - 1) - sum(row[1:-1]))
    return best


State = tuple[int, ...]


def tables(longest: int, *, unbounded: bool) -> list[dict[State, int]]:
    """The same count from left to right: for 0, 1, ... records the best for each way to go on.

    A state is the gap at the right end and what the rules ask of what came before: over every
    piece, whether a rising kink lies left of all records; of a run, whether the last record has a
    kink on it, and whether there are none, one or more kinks so far.
    """
    table: dict[State, int] = {}
    for i, (rising, falling, count) in enumerate(GAPS):
        if not unbounded:
            table[i, 0, min(count, 2)] = 2 * count - 2
        elif not falling:
            table[i, rising] = 2 * count + 2
    found = [table]
    for q in range(longest):
        after: dict[State, int] = {}
        for (state, best), on, (j, gap) in itertools.product(
            table.items(), ON, list(enumerate(GAPS))
        ):
            before = GAPS[state[0]]
            crossed = all(before[:2]) and all(gap[:2]) and max(before[2], gap[2]) == 2
            if crossed or any(on[d] and (before[d] or gap[d]) for d in (0, 1)):
                continue
            more, new = best + any(on) + 2 * gap[2], (j, state[1])
            if not unbounded:
                if q == 0 and not before[2]:
                    if not any(on):
                        continue
                    more += 1  # the first kink is an end, and counts in full
                new = (j, int(any(on)), min(state[2] + any(on) + gap[2], 2))
            after[new] = max(after.get(new, 0), more)
        table = after
        found.append(table)
    return found


def best_of(table: dict[State, int], *, unbounded: bool) -> int:
    """The most candidates once nothing comes any more."""
    most = 0
    for state, best in table.items():
        rising, falling, count = GAPS[state[0]]
        if unbounded:
            if not rising and not (falling and state[1]):
                most = max(most, best)
        elif state[2] == 2 and (count or state[1]):
            most = max(most, best + (count == 0))
    return most


def test_a_run_has_at_most_four_candidates_for_each_held_record() -> None:
    """4, 8, 11; with exclusion in both gaps together only, 5, 10, 13 would be left."""
    assert [most_candidates(q) for q in (1, 2, 3)] == [4, 8, 11]
    assert [most_candidates(q, each=False) for q in (1, 2, 3)] == [5, 10, 13]


def test_every_piece_together_has_at_most_3q_plus_2_candidates() -> None:
    """Which needs that only one kink is active on all records from beyond them."""
    assert [most_candidates(q, unbounded=True) for q in (1, 2, 3, 4)] == [5, 8, 11, 14]
    without = [most_candidates(q, unbounded=True, one=False) for q in (2, 3, 4)]
    assert without == [10, 13, 16]


@pytest.mark.parametrize("unbounded", [False, True])
def test_both_bounds_hold_for_every_number_of_records(unbounded: bool) -> None:
    """A table that grows by 3 at most in every entry does so for ever.

    The next table is made from the last alone, by sums and maxima: larger entries give larger
    ones, and 3 more in all give 3 more in all.  This is the induction of docs/relu.md.
    """
    found = tables(4, unbounded=unbounded)
    enumerated = [most_candidates(q, unbounded=unbounded) for q in (1, 2, 3)]
    assert [best_of(t, unbounded=unbounded) for t in found[1:4]] == enumerated
    before, after = found[3], found[4]
    assert after.keys() == before.keys()
    assert all(after[state] <= best + 3 for state, best in before.items())
    assert best_of(found[3], unbounded=unbounded) == 3 * 3 + 2


@pytest.mark.parametrize("scale", [None, 10.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_steps_on_exact_networks(seed: int, scale: float | None) -> None:
    best = optimum(seed, scale)
    held = np.sort(best.x[best.support])
    neurons = neuron_moments(best.network)
    finite = np.isfinite(neurons.kinks)
    ends = np.array([-np.inf, *held, np.inf])
    sides = {}
    for rising in (True, False):
        kinks = neurons.kinks[finite & (neurons.rising == rising)]
        apart = np.abs(kinks[:, None] - held).min(axis=1) > 1e-9
        free = kinks[apart]
        inside = [bool(np.any((free > a) & (free < b))) for a, b in itertools.pairwise(ends)]
        sides[rising] = inside
        for i, x in enumerate(held):
            if np.any(np.abs(kinks - x) <= 1e-9):
                assert not inside[i]
                assert not inside[i + 1]
    assert not sides[False][0]
    assert not sides[True][-1]
    assert not (sides[True][0] and sides[False][-1])
    every = relu.reconstruct(best)
    assert len(every.candidates) <= 3 * held.size + 2


def constant_is_optimal(x: np.ndarray) -> bool:
    """Whether mu >= 0 with sum mu = 1, sum mu x = 0 keeps sum mu [w x + b]_+ <= 1 (a fine grid)."""
    angle = np.linspace(0.0, 2.0 * np.pi, 20_001)
    active = np.maximum(np.outer(np.sin(angle), x) + np.cos(angle)[:, None], 0.0)
    found = optimize.linprog(
        np.append(np.zeros(x.size), 1.0),
        A_ub=np.hstack([active, -np.ones((angle.size, 1))]),
        b_ub=np.zeros(angle.size),
        A_eq=np.array([[*np.ones(x.size), 0.0], [*x, 0.0]]),
        b_eq=[1.0, 0.0],
    )
    return bool(found.status == 0 and found.fun <= 1.0 + 1e-6)


def test_records_of_one_label_on_both_sides_of_zero_may_be_recovered() -> None:
    """{-2, 2}: f is not constant, its norm is 2/sqrt(5), and both records come back."""
    best = relu.max_margin_network([-2.0, 2.0], [1, 1])
    assert best.primal == pytest.approx(2.0 / np.sqrt(5.0), abs=1e-9)
    assert np.ptp(best.network(np.linspace(-2.0, 2.0, 41))) > 0.1
    found = relu.reconstruct(best)
    np.testing.assert_allclose(found.x, [-2.0, 2.0], atol=1e-8)
    assert found.recall == found.precision == found.guarantee == 1.0
    assert not constant_is_optimal(np.array([-2.0, 2.0]))


@pytest.mark.parametrize("seed", range(12))
def test_when_a_constant_network_is_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(0.0, rng.choice([0.7, 1.5, 3.0]), int(rng.integers(2, 7))))
    best = relu.max_margin_network(x, np.ones(x.size))
    inner = np.linspace(x[0], x[-1], 101)
    flat = bool(np.ptp(best.network(inner)) < 1e-6 and best.primal > 1.0 - 1e-7)
    assert flat == constant_is_optimal(x)
    if flat:
        assert relu.reconstruct(best).candidates == ()
