"""Coordinate descent for the perturbed LASSO, many problems at once: what lasso Fig. 3(b) runs.

The library's own solver follows supports instead, because sweeps need very many turns near the
stability edge.  That slowness is the subject of the figure, so it is here as the paper has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers.arrays import FloatArray


class Descended(NamedTuple):
    """Where the sweeps ended: coefficients (m, p), violations of the optimality conditions (m,)."""

    coef: FloatArray
    violation: FloatArray
    sweeps: int


def coordinate_descent(
    designs: FloatArray,
    labels: FloatArray,
    lam: FloatArray,
    linear_terms: FloatArray,
    *,
    tol: float,
    sweeps: int,
) -> Descended:
    """Minimise each 1/2 ||y - X b||^2 + lam ||b||_1 + eta'b by turns over the coordinates.

    Stops when all violations are at most ``tol`` times the problem's lambda, or after ``sweeps``.

    Parameters
    ----------
    designs, labels
        (m, n, p) and (m, n).
    lam, linear_terms
        (m,) and (m, p).
    """
    # a column's row of the Gram matrix of every problem at once: (p, m, p)
    gram = np.ascontiguousarray(np.einsum("mni,mnj->imj", designs, designs, optimize=True))
    descent = np.einsum("mni,mn->mi", designs, labels) - linear_terms
    own = np.array([gram[j, :, j] for j in range(gram.shape[0])])
    coef = np.zeros_like(linear_terms)
    violation = np.full(lam.shape, np.inf)
    turn = 0
    while turn < sweeps:
        turn += 1
        for j in range(gram.shape[0]):
            pull = descent[:, j] + own[j] * coef[:, j]
            new = (pull - np.clip(pull, -lam, lam)) / own[j]
            moved = new - coef[:, j]
            if moved.any():
                descent -= moved[:, None] * gram[j]
                coef[:, j] = new
        violation = _violation(descent, coef, lam[:, None])
        if np.all(violation <= tol * lam):
            break
    return Descended(coef, violation, turn)


def _violation(descent: FloatArray, coef: FloatArray, lam: FloatArray) -> FloatArray:
    """The largest violation of the optimality conditions along the last axis.

    A minimiser has g_j = lam sign(beta_j) where beta_j is not zero, and |g_j| <= lam where it is.
    """
    off = np.maximum(np.abs(descent) - lam, 0.0)
    on = np.abs(descent - lam * np.sign(coef))
    return np.asarray(np.where(coef != 0.0, on, off).max(axis=-1))
