"""What stationarity alone says of the multipliers: linear equations, read from the weights.

Divide Eqs. (8) and (9) of **relu** by v_j.  With masses m_i = lambda_i y_i,

    sum over i of m_i sigma'_ij (1, x_i) = (b_j, w_j) / v_j,

so every neuron shows the zeroth and the first moment of the masses on its active side, and by
Eq. (7) that vector has length one.  The multipliers do not change when the network is scaled.  By
complementarity the x_i are places on the margin: crossings, kinks that touch it, and constant
pieces that lie on it.  There the x and the sign of y are known, so that the equations are linear
in the multipliers, and two linear programmes for each place say how small and how large its
multiplier can be in *any* training set for which this network is a KKT point.  Least above zero:
there is a record.  Largest zero: a record there, if any, does not hold the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.relu.network import TwoLayerNetwork

_ON_KINK = 1e-8  # in arctan(x): a place this near a neuron's kink lies on it
_SLACK = 1e-9  # allowed beyond the best residual, in units of the moments, which have length one


@dataclass(frozen=True, eq=False)
class NeuronMoments:
    """Neurons with one kink, one direction and one output sign as one.

    ``kinks`` is -b/w (infinite where w = 0), ``rising`` whether w > 0 (w = 0: whether b > 0),
    ``moments`` are (b, w) / v scaled to length one, K x 2, and ``imbalance`` is the largest
    | |v| - ||(w, b)|| | over |v| + ||(w, b)||, which is zero at a KKT point.
    """

    kinks: FloatArray
    rising: NDArray[np.bool_]
    moments: FloatArray
    imbalance: float

    def active(self, x: float) -> FloatArray:
        """1 for neurons active at x, 0 for the others, nan for those that kink there."""
        turn = np.arctan(x) - np.arctan(self.kinks)
        inside = np.where(np.isinf(self.kinks), True, (turn > 0.0) == self.rising)
        return np.where(np.abs(turn) <= _ON_KINK, np.nan, inside.astype(np.float64))


def neuron_moments(network: TwoLayerNetwork, tolerance: float = 1e-9) -> NeuronMoments:
    """The moments that the neurons of a network with one input show."""
    w, b, v = network.w[:, 0], network.b, network.v
    size = np.hypot(w, b)
    mass = np.abs(v) * size
    live = np.flatnonzero(mass > tolerance * mass.sum())
    # a neuron with w = 0 and b < 0 is off everywhere
    live = live[(w[live] != 0.0) | (b[live] > 0.0)]
    imbalance = np.abs(np.abs(v) - size)[live] / (np.abs(v) + size)[live]
    angle = np.arctan2(w[live], b[live])
    order = np.lexsort((angle, v[live] > 0.0))
    live, angle = live[order], angle[order]
    sign = np.where(v[live] > 0.0, 1.0, -1.0)
    fresh = np.ones(len(live), dtype=bool)
    fresh[1:] = (np.diff(angle) > 1e-9) | (np.diff(sign) != 0.0)
    group = np.cumsum(fresh) - 1
    sums = np.zeros((int(fresh.sum()), 2))
    np.add.at(sums, group, np.abs(v[live])[:, None] * np.stack([b[live], w[live]], axis=1))
    sums /= np.hypot(sums[:, 0], sums[:, 1])[:, None]
    flat = np.abs(sums[:, 1]) <= 1e-14
    with np.errstate(divide="ignore"):
        kinks = np.where(flat, -np.inf, -sums[:, 0] / np.where(flat, 1.0, sums[:, 1]))
    rising = flat | (sums[:, 1] > 0.0)
    return NeuronMoments(
        kinks, rising, sums * sign[fresh][:, None], float(imbalance.max(initial=0.0))
    )


@dataclass(frozen=True, eq=False)
class Places:
    """Where records that hold the network can be.

    Points: ``x`` and ``sign`` (of y), length c.  Intervals: ``low``, ``high`` and ``interval_sign``
    of the constant pieces on the margin, length r; ends may be infinite.
    """

    x: FloatArray
    sign: FloatArray
    low: FloatArray
    high: FloatArray
    interval_sign: FloatArray


@dataclass(frozen=True, eq=False)
class MomentBounds:
    """Least and largest multiplier of every place over all training sets that fit the weights."""

    # The least possible largest error of the moment equations; zero, up to rounding, if the network
    # is a KKT point of some training set with this margin.
    residual: float
    low: FloatArray  # for points, c x 2 in all: multiplier times sqrt(1 + x^2)
    high: FloatArray
    interval_low: FloatArray  # of the multipliers in a constant piece, summed
    interval_high: FloatArray
    # Of the multipliers' weighted mean place in a constant piece; nan where there may be none.
    mean_low: FloatArray
    mean_high: FloatArray


@dataclass(frozen=True, eq=False)
class _System:
    """Columns of the equations: for each place its own, and one for each neuron that kinks on it.

    A point on a kink has its multiplier lambda and, for each neuron there, the part of it that
    counts (the subgradient times lambda): a variable of its own between zero and lambda.
    """

    matrix: FloatArray  # 2K x columns
    target: FloatArray  # 2K
    parts: list[tuple[int, int]]  # (part's column, whole's column)
    points: list[int]  # column of each point
    intervals: list[list[tuple[int, float]]]  # for each its columns, and where they stand


def _system(neurons: NeuronMoments, places: Places) -> _System:
    columns: list[FloatArray] = []
    parts: list[tuple[int, int]] = []
    points: list[int] = []
    intervals: list[list[tuple[int, float]]] = []
    for x, sign in zip(places.x, places.sign, strict=True):
        row = sign * _direction(x)
        active = neurons.active(float(x))
        whole = len(columns)
        points.append(whole)
        columns.append(np.outer(np.nan_to_num(active), row).ravel())
        for j in np.flatnonzero(np.isnan(active)):
            part = np.zeros((len(active), 2))
            part[j] = row
            parts.append((len(columns), whole))
            columns.append(part.ravel())
    ends = zip(places.low, places.high, places.interval_sign, strict=True)
    for low, high, sign in ends:
        inside = neurons.active(float(np.tan(0.5 * (np.arctan(low) + np.arctan(high)))))
        own = []
        # the moments of any masses in an interval are a combination of those at its ends; the
        # whole line's need a point in the middle too
        for end in (low, 0.0, high) if np.isinf(low) and np.isinf(high) else (low, high):
            own.append((len(columns), float(end)))
            columns.append(np.outer(np.nan_to_num(inside), sign * _direction(end)).ravel())
        intervals.append(own)
    matrix = np.stack(columns, axis=1) if columns else np.zeros((neurons.moments.size, 0))
    return _System(matrix, neurons.moments.ravel(), parts, points, intervals)


def _direction(x: float) -> FloatArray:
    """(1, x) at length one, also for infinite x."""
    return np.array([np.cos(np.arctan(x)), np.sin(np.arctan(x))])


def moment_residual(neurons: NeuronMoments, places: Places) -> float:
    """The least possible largest error of the moment equations with these places."""
    return _residual(_system(neurons, places))[0]


def _residual(system: _System) -> tuple[float, FloatArray]:
    rows, columns = system.matrix.shape
    if columns == 0:
        return float(np.abs(system.target).max(initial=0.0)), np.zeros(0)
    ones = np.ones((rows, 1))
    upper = np.vstack(
        [np.hstack([system.matrix, -ones]), np.hstack([-system.matrix, -ones])]
        + [_part_row(system, pair, 1) for pair in system.parts]
    )
    side = np.concatenate([system.target, -system.target, np.zeros(len(system.parts))])
    cost = np.concatenate([np.zeros(columns), [1.0]])
    found = _programme(cost, upper, side)
    if found.x is None:
        return np.inf, np.zeros(columns)
    error = np.abs(system.matrix @ found.x[:-1] - system.target).max()
    return float(error), np.asarray(found.x[:-1])


def _programme(cost: FloatArray, upper: FloatArray, side: FloatArray) -> Any:
    """Minimise cost . x over x >= 0 with upper x <= side."""
    options: Any = {
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    }
    return optimize.linprog(cost, A_ub=upper, b_ub=side, method="highs", options=options)


def _part_row(system: _System, pair: tuple[int, int], more: int) -> FloatArray:
    row = np.zeros((1, system.matrix.shape[1] + more))
    row[0, pair[0]], row[0, pair[1]] = 1.0, -1.0
    return row


def moment_bounds(
    neurons: NeuronMoments, places: Places, *, slack: float | None = None
) -> MomentBounds:
    """Least and largest multiplier of every place; two small linear programmes for each."""
    system = _system(neurons, places)
    residual, _ = _residual(system)
    allowed = residual * (1.0 + 1e-6) + (_SLACK if slack is None else slack)
    upper = np.vstack(
        [system.matrix, -system.matrix] + [_part_row(system, pair, 0) for pair in system.parts]
    )
    side = np.concatenate(
        [system.target + allowed, allowed - system.target, np.zeros(len(system.parts))]
    )

    def extreme(cost: FloatArray) -> float:
        if not np.isfinite(residual):
            return np.nan
        found = _programme(cost, upper, side)
        if found.status == 3:
            return -np.inf
        return float(found.fun) if found.x is not None else np.nan

    def both(weights: FloatArray) -> tuple[float, float]:
        return extreme(weights), -extreme(-weights)

    width = system.matrix.shape[1]
    point = np.array([both(np.eye(width)[c]) for c in system.points]).reshape(-1, 2)
    total, mean = [], []
    for own in system.intervals:
        zeroth, moment = np.zeros(width), np.zeros(width)
        for column, end in own:
            zeroth[column], moment[column] = _direction(end)
        sums, firsts = both(zeroth), both(moment)
        total.append(sums)
        fixed = sums[0] > 1e-6 and sums[1] - sums[0] <= 1e-6 * sums[0]
        mean.append((firsts[0] / sums[0], firsts[1] / sums[0]) if fixed else (np.nan, np.nan))
    sums_, means_ = (np.array(pairs).reshape(-1, 2) for pairs in (total, mean))
    return MomentBounds(
        residual, point[:, 0], point[:, 1], sums_[:, 0], sums_[:, 1], means_[:, 0], means_[:, 1]
    )
