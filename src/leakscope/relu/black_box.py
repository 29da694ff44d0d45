"""Reconstruction from answers alone: the straight pieces of a function by adaptive queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import signs
from leakscope.relu.pieces import Pieces, first_points
from leakscope.relu.reconstruction import (
    Form,
    Reconstruction,
    assembled,
    candidates_of,
    require_margin,
)
from leakscope.relu.training_check import precision_and_recall
from leakscope.settings import RECONSTRUCT_DEFAULTS

Ask = Callable[[Any], ArrayLike]


@dataclass(frozen=True, eq=False)
class FoundPieces:
    """The pieces of a function, how often it was asked, and whether every kink was resolved.

    Examples
    --------
    >>> from leakscope import relu
    >>> found = relu.find_pieces(lambda x: abs(x - 0.25) - 1.0)
    >>> found.pieces.breakpoints.tolist(), found.pieces.slopes.tolist(), found.complete
    ([0.25], [-1.0, 1.0], True)
    """

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

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.TwoLayerNetwork(w=[1.0, -2.0, 1.0], b=[0.3, 1.0, -2.0], v=[1.0, 1.0, -3.0])
    >>> found = relu.find_pieces(network)
    >>> found.pieces.breakpoints.round(10).tolist(), found.queries < 150
    ([-0.3, 0.5, 2.0], True)
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
    at = first_points(np.array(kinks))
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


def reconstruct_from_queries(
    ask: Ask,
    *,
    margin: float = 1.0,
    form: Form = RECONSTRUCT_DEFAULTS.form,
    reach: float = 1e4,
    max_queries: int = 10_000,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> Reconstruction:
    """Candidates for training records from answers alone (footnote 3 of **relu**).

    ``form`` is ``"printed"`` or ``"pieces"``, as for :func:`reconstruct`; without weights there are
    no multipliers, so that no candidate is certified and there is no guarantee.  ``queries`` of the
    result says how often the function was asked.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.max_margin_network([-2.0, -0.5, 0.3, 1.8], [1, -1, 1, -1]).network
    >>> found = relu.reconstruct_from_queries(network)
    >>> found.x.round(8).tolist(), found.queries < 200
    ([-2.0, -0.5, 0.3, 1.8], True)
    """
    require_margin(margin)
    if form not in ("printed", "pieces"):
        raise InputError(
            f"From queries alone the form is printed or pieces, not {form!r}: the moments are in "
            "the weights."
        )
    found = find_pieces(ask, reach=reach, max_queries=max_queries)
    if not found.complete:
        raise InputError(
            f"{found.queries} queries did not resolve the kinks of the function; raise "
            "max_queries, or ask for fewer digits of a function whose answers are rounded."
        )
    candidates, flat, _ = candidates_of(found.pieces, None, margin, form, tolerance)
    result = assembled(candidates, flat, margin, form, None, None, None, found.queries)
    if training is None:
        return result
    x = np.asarray(training[0], dtype=np.float64).reshape(-1)
    labels = signs(training[1], len(x))
    answers = np.asarray(ask(x), dtype=np.float64).reshape(-1)
    on = np.abs(labels * answers - margin) <= tolerance * margin
    precision, recall = precision_and_recall(result.x, x, x[on], tolerance)
    return replace(result, precision=precision, recall=recall)
