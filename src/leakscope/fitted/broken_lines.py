"""Broken lines over the records' log-odds: values at knots, fitted and made to fall."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray

# What a bend costs a fitted line, in shares of the weight of the records at a knot.
BENDS = 0.02


def line(u: FloatArray, knots: FloatArray, values: FloatArray) -> FloatArray:
    """The broken line through ``values`` at ``knots``, constant slope beyond the last ones."""
    inside = np.interp(u, knots, values)
    left = (values[1] - values[0]) / (knots[1] - knots[0])
    right = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
    return np.asarray(
        inside + np.minimum(u - knots[0], 0.0) * left + np.maximum(u - knots[-1], 0.0) * right
    )


def hats(u: FloatArray, knots: FloatArray) -> FloatArray:
    """The functions of which every broken line is a sum, one column for each knot."""
    cell = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, len(knots) - 2)
    along = (u - knots[cell]) / (knots[cell + 1] - knots[cell])
    found = np.zeros((len(u), len(knots)))
    rows = np.arange(len(u))
    found[rows, cell] = 1.0 - along
    found[rows, cell + 1] += along
    return found


def falling(values: FloatArray, weight: FloatArray) -> FloatArray:
    """The nearest values that never rise (pool adjacent violators); their mean stays."""
    pooled: list[list[float]] = []
    for value, each in zip(values, weight + 1e-9, strict=True):
        pooled.append([float(value), float(each), 1.0])
        while len(pooled) > 1 and pooled[-2][0] < pooled[-1][0]:
            last, before = pooled.pop(), pooled.pop()
            total = last[1] + before[1]
            mean = (last[0] * last[1] + before[0] * before[1]) / total
            pooled.append([mean, total, last[2] + before[2]])
    return np.repeat([p[0] for p in pooled], [int(p[2]) for p in pooled])


def bends(cost: FloatArray) -> FloatArray:
    """The sum of squared second differences, each times its cost, as a matrix."""
    knots = len(cost)
    apart = np.diff(np.eye(knots), n=2, axis=0) if knots > 2 else np.zeros((0, knots))
    return np.asarray(apart.T @ (apart * cost[1:-1, None]))


def fitted_line(basis: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted least squares; bends of the line cost a little, so that empty stretches are safe."""
    gram = basis.T @ (basis * weight[:, None])
    least = 1e-6 * float(np.trace(gram)) / len(gram)
    gram = gram + bends(BENDS * np.diag(gram) + least) + least * np.eye(len(gram))
    return np.asarray(np.linalg.solve(gram, basis.T @ (weight * y)))
