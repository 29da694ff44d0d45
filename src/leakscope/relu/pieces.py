"""A one-dimensional network as what it is: a continuous function made of straight pieces.

The pieces are read from the weights, or found by asking the function; and where it meets the
margin: crossings, kinks that touch it, flats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork

Ask = Callable[[Any], ArrayLike]

BoolArray = NDArray[np.bool_]

EQUAL = 1e-9  # breakpoints this near each other, in arctan(x), are one


@dataclass(frozen=True, eq=False)
class Pieces:
    """Breakpoints t_1 < ... < t_K and the K + 1 straight pieces between and beside them.

    Piece 0 reaches to minus infinity, piece K to infinity.  Breakpoints where the slope does not
    change, and equal ones, are merged away: this is the function, not the neurons.
    """

    breakpoints: FloatArray  # t and f(t), length K
    values: FloatArray
    slopes: FloatArray  # of the pieces, length K + 1
    constant: BoolArray  # which pieces have slope zero, up to rounding, length K + 1
    error: float  # a bound on the rounding error of the values, one number
    # A finite point of each closed piece, and the piece's own line there, (K + 1) x 2.  Merged
    # breakpoints differ in their last digits, and the lines do not suffer from that.
    starts: FloatArray

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self.slopes)

    def bounds(self, piece: int) -> tuple[float, float]:
        """The piece's two ends; infinite for the first and the last."""
        low = -np.inf if piece == 0 else float(self.breakpoints[piece - 1])
        high = np.inf if piece == len(self) - 1 else float(self.breakpoints[piece])
        return low, high

    def start(self, piece: int) -> tuple[float, float]:
        """A finite point of the closed piece, and f there."""
        return float(self.starts[piece, 0]), float(self.starts[piece, 1])

    def level(self, piece: int, margin: float, tolerance: float) -> int:
        """1 or -1 where a constant piece lies on the margin of that sign, otherwise 0."""
        if not self.constant[piece]:
            return 0
        value = self.start(piece)[1]
        if abs(abs(value) - margin) > tolerance * margin + self.error:
            return 0
        return 1 if value > 0.0 else -1

    def __call__(self, x: ArrayLike) -> FloatArray:
        """The function at ``x``, from the pieces alone."""
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        which = np.searchsorted(self.breakpoints, points)
        start = self.starts[which]
        return np.asarray(start[:, 1] + self.slopes[which] * (points - start[:, 0]))


def pieces(network: TwoLayerNetwork, *, tolerance: float = 1e-9) -> Pieces:
    """The breakpoints and linear pieces of a network with one input.

    A slope is zero, and a breakpoint none, where it is below ``tolerance`` times the sum of
    |v_j w_j|, which is what rounding and an imperfect optimum leave of it.

    Examples
    --------
    >>> from leakscope.relu import TwoLayerNetwork, pieces
    >>> found = pieces(TwoLayerNetwork(w=[2.0], b=[-1.0], v=[3.0]))
    >>> found.bounds(1), found([2.0]).tolist()
    ((0.5, inf), [9.0])
    """
    if network.features != 1:
        raise InputError(
            "Reconstruction from the margin is for networks with one input, but this one has "
            f"{network.features}; use the membership attack."
        )
    b, v = network.b, network.v
    # a kink beyond 1e14 is a constant neuron's rounding
    w = np.where(np.abs(network.w[:, 0]) > 1e-14 * np.abs(b), network.w[:, 0], 0.0)
    change = np.abs(v * w)
    total = float(change.sum())
    bends = np.flatnonzero(change > 0.0)
    kinks = -b[bends] / w[bends]
    order = np.argsort(kinks, kind="stable")
    bends, kinks = bends[order], kinks[order]
    # neurons in groups of equal breakpoints, each at the mean weighted by its bend
    group = np.zeros(len(kinks), dtype=np.intp)
    if len(kinks):
        group[1:] = np.cumsum(np.diff(np.arctan(kinks)) > EQUAL)
    count = int(group[-1]) + 1 if len(kinks) else 0
    jump = np.bincount(group, weights=(v * np.abs(w))[bends], minlength=count)
    mass = np.bincount(group, weights=change[bends], minlength=count)
    place = np.bincount(group, weights=change[bends] * kinks, minlength=count) / mass
    place = place[np.abs(jump) > tolerance * total]
    # each piece's line: v_j (w_j, b_j) summed over the neurons active inside it
    ends = np.arctan(np.concatenate([[-np.inf], place, [np.inf]]))
    active = np.tan(0.5 * (ends[:-1] + ends[1:]))[:, None] * w + b > 0.0
    slopes, heights = (
        np.array([float(np.sum((v * part)[on])) for on in active]) for part in (w, b)
    )
    at = _first_points(place)
    starts = np.stack([at, slopes * at + heights], axis=1)
    constant = np.abs(slopes) <= tolerance * total
    slopes = np.where(constant, 0.0, slopes)
    reach = np.abs(place).max(initial=1.0)
    error = 4.0 * np.finfo(np.float64).eps * float(np.abs(v) @ (np.abs(w) * reach + np.abs(b)))
    return Pieces(place, network(place), slopes, constant, error, starts)


def _first_points(breakpoints: FloatArray) -> FloatArray:
    """A finite end of each piece; zero where there are no breakpoints."""
    if not len(breakpoints):
        return np.zeros(1)
    return np.concatenate([breakpoints[:1], breakpoints])


@dataclass(frozen=True)
class Crossing:
    """A point with |f(x)| equal to the margin, on a piece that is not constant.

    ``pieces`` are the pieces it belongs to: one, or the two beside a kink.
    """

    x: float
    sign: int
    pieces: tuple[int, ...]


def crossings(found: Pieces, margin: float, tolerance: float) -> list[Crossing]:
    """All of them, in order; a kink within ``tolerance`` of the margin counts as touching it."""
    touching = {
        k: 1 if value > 0.0 else -1
        for k, value in enumerate(found.values)
        if abs(abs(value) - margin) <= tolerance * margin + found.error
    }
    places = [
        Crossing(
            float(found.breakpoints[k]),
            sign,
            tuple(piece for piece in (k, k + 1) if not found.constant[piece]),
        )
        for k, sign in touching.items()
        if not (found.constant[k] and found.constant[k + 1])
    ]
    for piece in np.flatnonzero(~found.constant):
        start, value = found.start(int(piece))
        low, high = found.bounds(int(piece))
        ends = {k: touching[k] for k in (int(piece) - 1, int(piece)) if k in touching}
        for sign in (1, -1):
            # the end that touches the margin is this piece's one crossing of that sign
            if sign in ends.values():
                continue
            x = start + (sign * margin - value) / float(found.slopes[piece])
            if low < x < high:
                places.append(Crossing(float(x), sign, (int(piece),)))
    return sorted(places, key=lambda place: place.x)


def flats(found: Pieces, margin: float, tolerance: float) -> list[tuple[int, int]]:
    """The constant pieces on the margin, each with its sign."""
    levels = [(piece, found.level(piece, margin, tolerance)) for piece in range(len(found))]
    return [(piece, level) for piece, level in levels if level != 0]


@dataclass(frozen=True, eq=False)
class FoundPieces:
    """The pieces of a function, how often it was asked, and whether every kink was resolved."""

    pieces: Pieces
    queries: int
    complete: bool


class _Samples:
    """Sorted places and answers; asks only for what is new, and counts."""

    def __init__(self, ask: Ask, limit: int) -> None:
        self.ask = ask
        self.limit = limit
        self.x: FloatArray = np.zeros(0)
        self.f: FloatArray = np.zeros(0)

    def add(self, x: FloatArray) -> None:
        fresh = np.setdiff1d(x, self.x)
        if len(self.x) + len(fresh) > self.limit:
            raise _OutOfQueries
        if not len(fresh):
            return
        answers = np.asarray(self.ask(fresh), dtype=np.float64).reshape(-1)
        if answers.shape != fresh.shape:
            raise InputError(
                f"The function must give one number for each query, but it gave {answers.size} "
                f"for {fresh.size}."
            )
        bad = ~np.isfinite(answers)
        if bad.any():
            raise InputError(f"The function is not finite at x = {fresh[np.argmax(bad)]:g}.")
        where = np.searchsorted(self.x, fresh)
        self.x = np.insert(self.x, where, fresh)
        self.f = np.insert(self.f, where, answers)


class _OutOfQueries(Exception):
    pass


def find_pieces(
    ask: Ask, *, reach: float = 1e4, max_queries: int = 10_000, tolerance: float = 1e-11
) -> FoundPieces:
    """The breakpoints of a continuous piecewise linear function of one variable, by asking it.

    Three neighbouring samples on a line are taken for one piece (a function could leave the line
    between them and come back to it exactly; one that does so by accident has probability zero).
    An interval with a straight run on both sides has its kink where the two lines meet; two more
    queries, just beside that point, tell a kink from lines that happen to meet.  Any other
    interval is halved.  Lines are drawn through the ends of the longest runs, so that kinks are as
    exact as the answers.

    Parameters
    ----------
    ask
        The function; it is given an array of places and returns as many answers.
    reach
        Kinks are looked for in [-reach, reach].
    max_queries
        No more than this.
    tolerance
        How far off a line, as a share of the largest answer nearby, is still on it.
    """
    if not (np.isfinite(reach) and reach > 0.0):
        raise InputError(f"reach must be a positive number, but it is {reach!r}.")
    if max_queries < 100:
        raise InputError(f"max_queries must be 100 or more, but it is {max_queries}.")
    samples = _Samples(ask, max_queries)
    edge = float(np.arctan(reach))
    samples.add(np.tan(np.linspace(-edge, edge, 48)))
    complete = True
    try:
        while True:
            runs = _runs(samples, tolerance)
            wanted = _next_queries(samples, runs)
            if not wanted:
                break
            samples.add(np.array(wanted))
    except _OutOfQueries:
        complete = False
    runs = _runs(samples, tolerance)
    whole = complete and not _gaps(samples, runs)
    return FoundPieces(_pieces(samples, runs, tolerance), len(samples.x), whole)


def _runs(samples: _Samples, tolerance: float) -> list[tuple[int, int]]:
    """Longest straight runs of samples as (first, last), three samples each at least."""
    x, f = samples.x, samples.f

    level = float(np.median(np.abs(f)))

    def on_line(a: int, b: int) -> bool:
        share = (x[a : b + 1] - x[a]) / (x[b] - x[a])
        line = (1.0 - share) * f[a] + share * f[b]
        # an end far away, where answers are large, counts for little near the other end
        size = (1.0 - share) * abs(f[a]) + share * abs(f[b]) + np.abs(f[a : b + 1]) + level
        return bool(np.all(np.abs(f[a : b + 1] - line) <= tolerance * size))

    runs, start = [], 0
    while start + 2 < len(x):
        end = start + 1
        while end + 1 < len(x) and on_line(start, end + 1):
            end += 1
        if end - start >= 2:
            runs.append((start, end))
            start = end
        else:
            start += 1
    return runs


def _meeting(samples: _Samples, left: tuple[int, int], right: tuple[int, int]) -> float:
    """Where the lines of two runs meet; nan where they are parallel."""
    x, f = samples.x, samples.f
    first, second = ((f[b] - f[a]) / (x[b] - x[a]) for a, b in (left, right))
    if first == second:
        return float("nan")
    # from the two ends that face each other, where the offsets are small
    a, b = left[1], right[0]
    return float(x[a] + (f[b] - f[a] - second * (x[b] - x[a])) / (first - second))


def _gaps(samples: _Samples, runs: list[tuple[int, int]]) -> list[tuple[int, int, Any, Any]]:
    """Stretches of samples (first, last) in no run, with the runs on their two sides."""
    gaps: list[tuple[int, int, Any, Any]] = []
    at, before = 0, None
    for run in [*runs, None]:
        begin = len(samples.x) - 1 if run is None else run[0]
        if begin > at and not _meets_inside(samples, at, begin, before, run):
            gaps.append((at, begin, before, run))
        at, before = (begin if run is None else run[1]), run
    return gaps


def _meets_inside(
    samples: _Samples, first: int, last: int, left: Any, right: Any, width: float = 1e-7
) -> bool:
    """Whether a gap is narrow and its two lines meet in it, so that more queries tell no more."""
    if left is None or right is None:
        return False
    low, high = float(samples.x[first]), float(samples.x[last])
    narrow = np.arctan(high) - np.arctan(low) <= width
    return bool(narrow and low <= _meeting(samples, left, right) <= high)


def _next_queries(samples: _Samples, runs: list[tuple[int, int]]) -> list[float]:
    """Where two lines should meet in an interval between them, the middle of any other."""
    wanted = []
    for first, last, left, right in _gaps(samples, runs):
        if last == first + 1 and left is not None and right is not None:
            meet = _meeting(samples, left, right)
            if samples.x[first] < meet < samples.x[last]:
                # lines that meet at no kink still agree there, but not on both sides of it
                step = 1e-5 * min(meet - samples.x[first], samples.x[last] - meet)
                wanted += [meet - step, meet, meet + step]
                continue
        for i in range(first, last):
            low, high = np.arctan(samples.x[i]), np.arctan(samples.x[i + 1])
            if high - low > 1e-10:
                wanted.append(float(np.tan(0.5 * (low + high))))
    return wanted


def _pieces(samples: _Samples, runs: list[tuple[int, int]], tolerance: float) -> Pieces:
    x, f = samples.x, samples.f
    size = float(np.abs(f).max(initial=0.0))
    if not runs:
        raise InputError(
            "No straight piece was found with these queries: the function is not piecewise linear, "
            "or its answers are rounded; raise max_queries or tolerance."
        )
    slopes = [float((f[b] - f[a]) / (x[b] - x[a])) for a, b in runs]
    bend = float(np.abs(np.diff(slopes)).sum())
    scale = max(bend, max(map(abs, slopes)))
    kinks, values, kept, leads = [], [], [slopes[0]], [runs[0]]
    for run, slope in zip(runs[1:], slopes[1:], strict=True):
        if abs(slope - kept[-1]) <= 1e-9 * scale:
            continue
        lead = leads[-1]
        meet = _meeting(samples, lead, run)
        kinks.append(meet)
        values.append(float(f[lead[1]] + kept[-1] * (meet - x[lead[1]])))
        kept.append(slope)
        leads.append(run)
    steep = np.array(kept)
    constant = np.abs(steep) <= 1e-9 * scale
    if len(kept) == 1:
        a, b = runs[0][0], runs[-1][1]
        constant |= abs(f[b] - f[a]) <= tolerance * size
    at = _first_points(np.array(kinks))
    # each piece's line through the sample of its run that is nearest to the point in question
    near_end = [
        a if abs(x[a] - t) < abs(x[b] - t) else b for (a, b), t in zip(leads, at, strict=True)
    ]
    starts = np.stack([at, f[near_end] + steep * (at - x[near_end])], axis=1)
    near = float(np.abs(values).max(initial=0.0)) if values else size
    return Pieces(
        np.array(kinks),
        np.array(values),
        np.where(constant, 0.0, steep),
        constant,
        16.0 * tolerance * near,
        starts,
    )
