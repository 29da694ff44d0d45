"""The maximum-margin network in one dimension, exactly: a conic programme, then Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.margin_polish import polished
from leakscope.relu.network import TwoLayerNetwork, signs

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MaxMarginNetwork:
    """The global minimum of ||theta||^2 / 2 under y_i f(x_i) >= 1, Eq. (1) of **relu**, for d = 1.

    Attributes
    ----------
    network
        Balanced neurons, |v_j| = ||(w_j, b_j)||, equal ones merged.
    x, y
        The training set, length n.
    multipliers
        lambda_i, length n; zero off the margin.
    primal, dual
        Half the squared norm of the network scaled to be feasible, and a lower bound on the
        optimum: the sum of the multipliers over the largest |sum_i lambda_i y_i relu(w x_i + b)|
        at unit (w, b).  Both are evaluated anew from the polished answer, not the solver's.
    stationarity
        Largest entry of theta - sum_i lambda_i y_i grad f(x_i), over the largest entry of theta.

    Examples
    --------
    >>> from leakscope import relu
    >>> found = relu.max_margin_network([-1.0, 0.5, 2.0], [-1, 1, 1])
    >>> found.on_margin.tolist(), found.gap < 1e-12
    ([True, True, False], True)
    """

    network: TwoLayerNetwork
    x: FloatArray
    y: FloatArray
    multipliers: FloatArray
    primal: float
    dual: float
    stationarity: float

    @property
    def gap(self) -> float:
        """(primal - dual) / primal: how far from the global optimum it can be."""
        return (self.primal - self.dual) / self.primal

    @property
    def on_margin(self) -> BoolArray:
        """Which records have y f(x) = 1 to 1e-9."""
        return np.asarray(np.abs(self.network.margins(self.x, self.y) - 1.0) <= 1e-9)

    @property
    def support(self) -> BoolArray:
        """Which records have a multiplier above zero (1e-9 of the largest)."""
        return np.asarray(self.multipliers > 1e-9 * self.multipliers.max())


def max_margin_network(x: ArrayLike, y: ArrayLike) -> MaxMarginNetwork:
    """Solve Eq. (1) of **relu** for one-dimensional records to its global optimum.

    By balancedness the norm is the least total mass of a signed measure on unit (w, b).  Sorted
    records have 2n - 1 activation patterns (prefixes and suffixes); each carries one vector
    u = |v| (w, b) for each output sign, in the cone where the pattern is right, and the
    objective is the sum of their norms.  Clarabel solves it to about 1e-8; Newton's method on the
    stationarity and margin equations of the neurons and records it found takes that to machine
    precision.

    Examples
    --------
    >>> from leakscope import relu
    >>> found = relu.max_margin_network([0.0, 1.0], [-1, 1])
    >>> found.network.width, round(found.primal, 6)
    (2, 2.414214)
    """
    points, labels = _training_set(x, y)

    def score(*answer: FloatArray) -> float:
        found = _result(points, labels, *answer)
        return abs(found.gap) + found.stationarity

    answer = polished(points, labels, *_conic(points, labels), score)
    return _result(points, labels, *answer)


def _training_set(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    points = np.asarray(x, dtype=np.float64)
    if points.ndim == 2 and points.shape[1] == 1:
        points = points[:, 0]
    if points.ndim != 1:
        raise InputError(
            "The exact maximum-margin network is for one-dimensional records, but the records' "
            f"shape is {points.shape}."
        )
    if not len(points):
        raise InputError("There are no records.")
    bad = ~np.isfinite(points)
    if bad.any():
        raise InputError(f"The record in row {int(np.argmax(bad))} is not a finite number.")
    labels = signs(y, len(points))
    order = np.argsort(points, kind="stable")
    clash = (np.diff(points[order]) == 0.0) & (np.diff(labels[order]) != 0.0)
    if clash.any():
        row = int(order[int(np.argmax(clash))])
        raise InputError(
            f"No network separates the records: row {row} has a twin at x = {points[row]:g} with "
            "the other label."
        )
    return points, labels


def _conic(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Vectors u (m x 2: weight, bias), output signs and multipliers, to the solver's precision."""
    try:
        import clarabel
    except ImportError:
        raise InputError(
            "The maximum-margin network needs the package clarabel; install leakscope[conic]."
        ) from None

    # equal records are one constraint; the multiplier goes to the first of them
    unique, first = np.unique(x, return_index=True)
    scale = max(1.0, float(np.abs(unique).max()))
    rows = np.column_stack([unique, np.ones_like(unique)])
    patterns, cones = _patterns(unique)
    total = 2 * len(patterns)
    # variables: u of each pattern and sign (2 each), then the norms
    norms = 2 * total
    equations: list[Any] = []
    margin = sparse.lil_matrix((len(unique), 3 * total))
    for p, pattern in enumerate(patterns):
        for s, sign in enumerate((1.0, -1.0)):
            at = 2 * (2 * p + s)
            margin[:, at : at + 2] = -(sign * y[first] * pattern)[:, None] * rows
    equations.append(margin)
    sides = [-np.ones(len(unique))]
    linear = len(unique)
    for p, cone in enumerate(cones):
        for s in range(2):
            block = sparse.lil_matrix((len(cone), 3 * total))
            at = 2 * (2 * p + s)
            block[:, at : at + 2] = -cone / scale
            equations.append(block)
            sides.append(np.zeros(len(cone)))
            linear += len(cone)
    second = sparse.lil_matrix((3 * total, 3 * total))
    for j in range(total):
        second[3 * j, norms + j] = -1.0
        second[3 * j + 1, 2 * j] = second[3 * j + 2, 2 * j + 1] = -1.0
    equations.append(second)
    sides.append(np.zeros(3 * total))
    cost = np.concatenate([np.zeros(norms), np.ones(total)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((3 * total, 3 * total)),
        cost,
        sparse.vstack(equations).tocsc(),
        np.concatenate(sides),
        [clarabel.NonnegativeConeT(linear)] + [clarabel.SecondOrderConeT(3)] * total,
        settings,
    ).solve()
    found = np.asarray(solution.x)
    if not np.all(np.isfinite(found)) or "Infeasible" in str(solution.status):
        raise InputError(
            f"The conic solver stopped with {solution.status}; records so near each other that "
            "no network of moderate norm separates them have to be merged or moved first."
        )
    vectors = found[:norms].reshape(total, 2)
    outputs = np.tile([1.0, -1.0], len(patterns))
    multipliers = np.zeros(len(x))
    multipliers[first] = np.maximum(np.asarray(solution.z)[: len(unique)], 0.0)
    return vectors, outputs, multipliers


def _patterns(x: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
    """Activation patterns of sorted records, and the rows c of their cones c . u >= 0.

    A suffix needs u >= 0 at its first record and u <= 0 at the one before; a line can then do
    nothing else elsewhere.  The full pattern needs both ends.
    """
    n = len(x)
    rows = np.column_stack([x, np.ones(n)])
    patterns, cones = [np.ones(n)], [rows[[0, -1]]]
    for i in range(1, n):
        suffix = (np.arange(n) >= i).astype(np.float64)
        patterns += [suffix, 1.0 - suffix]
        cones += [np.stack([rows[i], -rows[i - 1]]), np.stack([rows[i - 1], -rows[i]])]
    return patterns, cones


def _result(
    x: FloatArray, y: FloatArray, vectors: FloatArray, outputs: FloatArray, multipliers: FloatArray
) -> MaxMarginNetwork:
    root = np.sqrt(np.linalg.norm(vectors, axis=1))
    network = TwoLayerNetwork(vectors[:, :1] / root[:, None], vectors[:, 1] / root, outputs * root)
    least = float(network.margins(x, y).min())
    mass = float(np.sum(root**2))
    primal = mass / least if least > 0.0 else np.inf
    dual = float(multipliers.sum()) / max(1.0, largest_response(x, multipliers * y))
    return MaxMarginNetwork(
        network, x, y, multipliers, primal, dual, _stationarity(network, x, y, multipliers)
    )


def largest_response(x: FloatArray, masses: FloatArray) -> float:
    """The largest |sum_i masses_i relu(w x_i + b)| over unit (w, b), exactly.

    Between the directions where a record enters or leaves, the sum is S . (w, b) with constant S:
    its largest size on that arc is |S| if S or -S points into the arc, and at an end otherwise.
    """
    if not len(x):
        return 0.0
    rows = np.column_stack([x, np.ones_like(x)])
    angles = np.unique(
        np.mod(np.concatenate([np.arctan2(x, -1.0), np.arctan2(-x, 1.0)]), 2 * np.pi)
    )
    ends = np.concatenate([angles, [angles[0] + 2 * np.pi]])
    middle = 0.5 * (ends[1:] + ends[:-1])
    # (w, b) = (cos, sin); a record switches where w x + b = 0
    active = (np.cos(middle)[:, None] * x + np.sin(middle)[:, None]) > 0.0
    moments = (active * masses) @ rows
    best = 0.0
    for low, high, total in zip(ends[:-1], ends[1:], moments, strict=True):
        size = float(np.linalg.norm(total))
        for sign in (1.0, -1.0):
            turn = np.mod(np.arctan2(sign * total[1], sign * total[0]) - low, 2 * np.pi)
            if turn <= high - low:
                best = max(best, size)
        for angle in (low, high):
            best = max(best, abs(float(total @ [np.cos(angle), np.sin(angle)])))
    return best


def _stationarity(
    network: TwoLayerNetwork, x: FloatArray, y: FloatArray, multipliers: FloatArray
) -> float:
    """The residual of Eqs. (7) to (9), with the subgradient at a kink on a record chosen best."""
    w, b, v = network.w[:, 0], network.b, network.v
    mass = multipliers * y
    before = np.outer(w, x) + b[:, None]
    near = np.abs(before) <= 1e-10 * np.hypot(w, b)[:, None] * np.sqrt(1.0 + x * x)
    active = (before > 0.0) & ~near
    zeroth, first = active @ mass, active @ (mass * x)
    for j in np.flatnonzero(near.any(axis=1)):
        at = int(np.argmax(near[j]))
        row = mass[at] * np.array([1.0, x[at]])
        want = np.array([b[j], w[j]]) / v[j] - [zeroth[j], first[j]]
        part = float(np.clip(want @ row / (row @ row), 0.0, 1.0)) if mass[at] else 0.0
        zeroth[j] += part * row[0]
        first[j] += part * row[1]
    residual = [v - np.maximum(before, 0.0) @ mass, w - v * first, b - v * zeroth]
    largest = max(float(np.abs(part).max()) for part in (w, b, v))
    return max(float(np.abs(part).max()) for part in residual) / largest
