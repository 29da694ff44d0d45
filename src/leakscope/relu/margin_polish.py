"""From a conic solver's answer to machine precision: Newton's method on the KKT equations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray

BoolArray = NDArray[np.bool_]


def polished(
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
