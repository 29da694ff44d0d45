"""The maximum-margin network in one dimension, exactly: a conic programme, then Newton's method."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError, required
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

    answer = _polished(points, labels, *_conic(points, labels), score)
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
    clarabel = required("clarabel", "The maximum-margin network")

    # equal records are one constraint; the multiplier goes to the first of them
    unique, first = np.unique(x, return_index=True)
    scale = max(1.0, float(np.abs(unique).max()))
    rows = np.column_stack([unique, np.ones_like(unique)])
    patterns, cones = _patterns(unique)
    outputs = np.tile([1.0, -1.0], len(patterns))
    total = len(outputs)
    # variables: u of each pattern and sign (2 each), then the norms
    margin = [
        -(sign * y[first] * patterns[j // 2])[:, None] * rows for j, sign in enumerate(outputs)
    ]
    in_cone: Any = sparse.block_diag([-cones[j // 2] / scale for j in range(total)])
    linear: Any = sparse.vstack([sparse.csc_matrix(np.hstack(margin)), in_cone])
    linear = sparse.hstack([linear, sparse.csc_matrix((linear.shape[0], total))])
    of_norm = np.column_stack([2 * total + np.arange(total), np.arange(2 * total).reshape(-1, 2)])
    second: Any = -sparse.identity(3 * total, format="csr")[of_norm.ravel()]
    sides = np.zeros(linear.shape[0] + 3 * total)
    sides[: len(unique)] = -1.0
    cost = np.concatenate([np.zeros(2 * total), np.ones(total)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((3 * total, 3 * total)),
        cost,
        sparse.vstack([linear, second]).tocsc(),
        sides,
        [clarabel.NonnegativeConeT(linear.shape[0])] + [clarabel.SecondOrderConeT(3)] * total,
        settings,
    ).solve()
    found = np.asarray(solution.x)
    if not np.all(np.isfinite(found)) or "Infeasible" in str(solution.status):
        raise InputError(
            f"The conic solver stopped with {solution.status}; some records are too near each "
            "other to be separated; merge or move them."
        )
    vectors = found[: 2 * total].reshape(total, 2)
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


def _polished(
    x: FloatArray,
    y: FloatArray,
    vectors: FloatArray,
    outputs: FloatArray,
    multipliers: FloatArray,
    score: Callable[..., float],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's method from the solver's answer, on the neurons and kinks that it seems to mean.

    What is noise and what is a small neuron, and whether a kink lies on a record or beside it,
    cannot be read off one tolerance: several are tried, and ``score``, the certificate's
    error, chooses.
    """
    best: tuple[float, Any] = (np.inf, None)
    for start, support, pinned in _starts(x, y, vectors, outputs, multipliers):
        for found in (_newton(x, y, *start, support, pinned), start):
            value = score(*found)
            if value < best[0]:
                best = (value, found)
        if best[0] <= 1e-12:
            break
    answer: tuple[FloatArray, FloatArray, FloatArray] = best[1]
    return answer


def _starts(
    x: FloatArray, y: FloatArray, vectors: FloatArray, outputs: FloatArray, multipliers: FloatArray
) -> Iterator[tuple[tuple[FloatArray, FloatArray, FloatArray], BoolArray, NDArray[np.intp]]]:
    size = np.linalg.norm(vectors, axis=1)
    choices = itertools.product(
        (1e-6, 1e-4, 1e-5, 1e-3), (1e-6, 1e-4, 1e-8, 1e-3), (1e-6, 1e-4), (False, True)
    )
    for least, reach, smallest, free in choices:
        keep = size > least * size.max()
        support = multipliers > smallest * multipliers.max()
        u, s = vectors[keep].copy(), outputs[keep]
        pinned = _pinned(x, y, u, s, support, reach)
        if free:
            pinned = _unpinned(x, u, s, pinned)
        u, s, pinned = _merged(x, u, s, pinned)
        yield (u, s, np.where(support, multipliers, 0.0)), support, pinned


def _pinned(
    x: FloatArray,
    y: FloatArray,
    vectors: FloatArray,
    outputs: FloatArray,
    support: BoolArray,
    reach: float,
) -> NDArray[np.intp]:
    """The record on which each neuron kinks, -1 for none.

    sum_i lambda_i y_i relu(w x_i + b) is largest at a neuron, which a term of the neuron's own
    sign forbids at its kink: only records of the other sign can be there.
    """
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    distance = np.abs(unit[:, :1] * x + unit[:, 1:]) / np.sqrt(1.0 + x * x)
    distance = np.where(support & (outputs[:, None] * y < 0.0), distance, np.inf)
    nearest = np.argmin(distance, axis=1)
    near = distance[np.arange(len(unit)), nearest] <= reach
    return np.where(near, nearest, -1)


def _unpinned(
    x: FloatArray, vectors: FloatArray, outputs: FloatArray, pinned: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The same pins without those beside which a free neuron of the same kind was found.

    A kink on a record excludes one of its own kind in the gaps on both sides: where the solver
    shows both, a hair apart, one of them is its noise.
    """
    kept = pinned.copy()
    order = np.sort(x)
    kinks = -vectors[:, 1] / vectors[:, 0]
    for j in np.flatnonzero(pinned >= 0):
        at = int(np.searchsorted(order, x[pinned[j]]))
        low, high = np.concatenate([[-np.inf], order, [np.inf]])[[at, at + 2]]
        twin = (pinned < 0) & (outputs == outputs[j]) & (low < kinks) & (kinks < high)
        twin &= (vectors[:, 0] > 0.0) == (vectors[j, 0] > 0.0)
        if twin.any():
            other = int(np.flatnonzero(twin)[0])
            kept[j] = -1
            vectors[j] = vectors[other] * (
                np.linalg.norm(vectors[j]) / np.linalg.norm(vectors[other])
            )
    return kept


def _merged(
    x: FloatArray, vectors: FloatArray, outputs: FloatArray, pinned: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """One neuron for each output sign and set of active records (Lemma A.1), and for each pin."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    before = vectors[:, :1] * x + vectors[:, 1:]
    for j, at in enumerate(pinned):
        if at >= 0:
            key: tuple[Any, ...] = (outputs[j], vectors[j, 0] > 0.0, int(at))
        else:
            key = (outputs[j], tuple(before[j] > 0.0))
        groups.setdefault(key, []).append(j)
    members = list(groups.values())
    return (
        np.array([vectors[group].sum(axis=0) for group in members]),
        np.array([outputs[group[0]] for group in members]),
        np.array([pinned[group[0]] for group in members]),
    )


def _newton(
    x: FloatArray,
    y: FloatArray,
    vectors: FloatArray,
    outputs: FloatArray,
    multipliers: FloatArray,
    support: BoolArray,
    pinned: NDArray[np.intp],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve u/|u| = s sum_i lambda_i y_i sigma'_ij (x_i, 1) and y f = 1 on the support.

    A neuron pinned to a record has u . (x, 1) = 0 there, and the share of that record's
    multiplier which counts for it is one more unknown.
    """
    rows = np.column_stack([x, np.ones_like(x)])
    live = np.flatnonzero(support)
    pins = [(j, int(i)) for j, i in enumerate(pinned) if i >= 0]
    active = vectors @ rows.T > 0.0
    for j, i in pins:
        active[j] = (rows[:, 0] > x[i]) == (vectors[j, 0] > 0.0)
        active[j, i] = False
    u, lam = vectors.copy(), multipliers[live].copy()
    share = np.full(len(pins), 0.5)
    neurons, records = len(u), len(live)
    scale = 1.0 / np.sqrt(1.0 + x[live] ** 2)
    for _ in range(30):
        size = np.linalg.norm(u, axis=1)
        unit = u / size[:, None]
        weight = (outputs[:, None] * active[:, live]) * y[live]
        for (j, i), part in zip(pins, share, strict=True):
            weight[j, np.flatnonzero(live == i)[0]] = outputs[j] * y[i] * part
        stationary = unit - (weight * lam) @ rows[live]
        answer = ((u @ rows[live].T) * active[:, live] * outputs[:, None]).sum(axis=0) * y[live]
        pin_values = np.array([u[j] @ rows[i] for j, i in pins])
        residual = np.concatenate([stationary.ravel(), (answer - 1.0) * scale, pin_values])
        jacobian = np.zeros((len(residual), 2 * neurons + records + len(pins)))
        for j in range(neurons):
            block = slice(2 * j, 2 * j + 2)
            jacobian[block, block] = (np.eye(2) - np.outer(unit[j], unit[j])) / size[j]
            jacobian[block, 2 * neurons : 2 * neurons + records] = -(
                weight[j][:, None] * rows[live]
            ).T
            jacobian[2 * neurons : 2 * neurons + records, block] = (
                scale * y[live] * outputs[j] * active[j, live]
            )[:, None] * rows[live]
        for p, (j, i) in enumerate(pins):
            where = np.flatnonzero(live == i)[0]
            last = 2 * neurons + records + p
            jacobian[2 * j : 2 * j + 2, last] = -outputs[j] * y[i] * lam[where] * rows[i]
            jacobian[last, 2 * j : 2 * j + 2] = rows[i]
        step = np.linalg.lstsq(jacobian, -residual, rcond=1e-12)[0]
        if not np.all(np.isfinite(step)):
            break
        u = u + step[: 2 * neurons].reshape(neurons, 2)
        lam = lam + step[2 * neurons : 2 * neurons + records]
        share = share + step[2 * neurons + records :]
        if np.abs(step).max() <= 1e-15 * max(1.0, float(np.abs(u).max())):
            break
    full = np.zeros(len(x))
    full[live] = np.maximum(lam, 0.0)
    return u, outputs, full
