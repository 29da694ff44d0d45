"""The same moments from whole matrices, one linear solve a trial: what checks the other routes."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.moments import Moments


def simulated_moments(
    design: GaussianDesign, norms: RecordNorms, key: Key, trials: int
) -> tuple[Moments, Moments]:
    """Draw n x D matrices, replace a row by the record for the member, solve, and collect.

    Nothing is shared with the exact route: each trial solves the normal equations of its own
    matrix.  Given the matrix X, beta and the noise are Gaussian, so the trial gives the moments of
    (y0, yhat0) and not only one draw of them.
    """
    shape = (norms.used.size, trials)
    found = [np.empty(shape) for _ in range(4)]
    for trial in range(trials):
        generator = key.child(trial).generator()
        rows = generator.standard_normal((design.n, design.dim))
        for j, (used, unused) in enumerate(zip(norms.used, norms.unused, strict=True)):
            record = _record(design, float(used), float(unused), generator)
            found[2][j, trial], found[3][j, trial] = _solve(design, rows, record, None)
            replaced = rows.copy()
            replaced[0] = record
            found[0][j, trial], found[1][j, trial] = _solve(design, replaced, record, 0)
    label = (design.sigma**2 + (norms.used + norms.unused) / design.dim)[:, None]
    return Moments(label, found[0], found[1]), Moments(label, found[2], found[3])


def _record(
    design: GaussianDesign, used: float, unused: float, generator: np.random.Generator
) -> FloatArray:
    record = generator.standard_normal(design.dim)
    head, tail = record[: design.p], record[design.p :]
    head *= np.sqrt(used / (head @ head))
    if tail.size:
        tail *= np.sqrt(unused / (tail @ tail))
    return record


def _solve(
    design: GaussianDesign, rows: FloatArray, record: FloatArray, own: int | None
) -> tuple[float, float]:
    """Var yhat0 and Cov(y0, yhat0): yhat0 = w'y for w = (pseudo-)inverse transposed times x0."""
    features, query = rows[:, : design.p], record[: design.p]
    tall = design.p <= design.n
    gram = features.T @ features if tall else features @ features.T
    gram[np.diag_indices_from(gram)] += design.penalty
    if tall:
        weights = features @ np.linalg.solve(gram, query)
    else:
        weights = np.linalg.solve(gram, features @ query)
    through = rows.T @ weights
    variance = through @ through / design.dim + design.sigma**2 * (weights @ weights)
    covariance = record @ through / design.dim
    if own is not None:
        covariance += design.sigma**2 * weights[own]
    return float(variance), float(covariance)
