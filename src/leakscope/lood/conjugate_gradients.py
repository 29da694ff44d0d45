"""Columns of M^{-1} B by conjugate gradients, with the Nyström approximation to start from.

M = K + s2 I is never held: each step computes all n^2 values of the kernel in tiles, once for all
columns.  The steps needed follow from how near M_Q^{-1} comes to M^{-1}, and so do not grow with n.
What is left, R = B - M X, is computed anew at the end, so that the bounds on the answer,

    |[M^{-1} b - x]_i| <= sqrt([M^{-1}]_ii/s2) ||r||,
    0 <= b^T M^{-1} b - (b + r)^T x <= ||r||^2/s2,

hold whatever rounding did on the way.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.lood.nystrom import BLOCK_BYTES, Nystrom
from leakscope.lood.process import Process

# A column that has not come down to its tolerance by then is handed on as it is, with its bound.
MOST_STEPS = 50


def solve_columns(
    nystrom: Nystrom, columns: FloatArray, tolerance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(n, k) X close to M^{-1} B, and (n, k) what is left of B.

    Parameters
    ----------
    nystrom
        Of the process in question, at its own noise variance.
    columns
        (n, k) B.
    tolerance
        (k,) the length that each column of the rest may keep.
    """
    process = nystrom.inducing.process
    found, rest = np.zeros_like(columns), columns.copy()
    near = _preconditioned(nystrom, rest)
    ahead, product = near.copy(), np.einsum("ij,ij->j", rest, near)
    for _ in range(MOST_STEPS):
        active = np.linalg.norm(rest, axis=0) > tolerance
        if not active.any():
            break
        moved = _times(process, ahead)
        curve = np.einsum("ij,ij->j", ahead, moved)
        step = np.where(active, product / np.where(curve > 0.0, curve, 1.0), 0.0)
        found += step * ahead
        rest -= step * moved
        near = _preconditioned(nystrom, rest)
        before, product = product, np.einsum("ij,ij->j", rest, near)
        ahead = near + np.where(active, product / np.where(before > 0.0, before, 1.0), 0.0) * ahead
    return found, columns - _times(process, found)


def _times(process: Process, columns: FloatArray) -> FloatArray:
    """M V, tile by tile."""
    size = max(64, BLOCK_BYTES // (8 * process.records))
    found = process.noise_variance * columns
    for start in range(0, process.records, size):
        some = slice(start, start + size)
        found[some] += process.between(process.features[some], process.features) @ columns
    return found


def _preconditioned(nystrom: Nystrom, columns: FloatArray) -> FloatArray:
    """M_Q^{-1} V, through the inducing records."""
    inducing, process = nystrom.inducing, nystrom.inducing.process
    places = process.features[inducing.rows]
    summed = np.zeros((len(places), columns.shape[1]))
    for some in inducing.blocks():
        summed += process.between(places, process.features[some]) @ columns[some]
    shrink = 1.0 / (nystrom.values + process.noise_variance)
    weights = nystrom.turned.T @ (shrink[:, None] * (nystrom.turned @ summed))
    found = columns / process.noise_variance
    for some in inducing.blocks():
        shared = process.between(places, process.features[some])
        found[some] -= shared.T @ weights / process.noise_variance
    return found
