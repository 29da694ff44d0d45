"""The cavity for several classes: z and F are vectors, kappa, c, t and V blocks of C x C.

As in `cavity`, with kappa = (I - g c)^{-1} g, c = f E[F'] (I - f kappa E[F'])^{-1},
t = f E[F F'] - f^2 E[F] E[F]' - f^2 E[F'] V E[F'], t' = (I + c kappa) t (I + kappa c) and
V_i = (I + kappa c) [sum over j != i of G_ij t'_j G_ij'] (I + c kappa).

Here the Hessian is inverted whole; beyond `DENSE` coefficients `softmax_many` takes over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.softmax_dense import DenseSoftmax
from leakscope.fitted.softmax_loss import (
    SoftmaxMoments,
    centred,
    diagonal_yield,
    sigma_points,
    softmax,
    softmax_moments,
    square_root,
)
from leakscope.fitted.softmax_structured import StructuredSoftmax

# Coefficients up to which the Hessian is inverted whole.
DENSE = 2500

TOLERANCE = 4e-3
MAX_ROUNDS = 60

SEED = 20261


@dataclass(frozen=True, eq=False)
class SoftmaxCavity:
    """Where the rounds ended; attributes as in `leakscope.fitted.cavity.Cavity`."""

    mean: FloatArray
    variance: FloatArray
    kappa: FloatArray
    diagonal: FloatArray
    curvature: FloatArray
    moments: SoftmaxMoments
    response: DenseSoftmax | StructuredSoftmax
    rounds: int
    change: float
    converged: bool

    def spread(self, t: FloatArray, draws: int = 0) -> FloatArray:
        """V_i where the records' forces have covariance t_j beyond what Hbar carries."""
        inner = self.response.spread(amplified(self.curvature, self.kappa, t), draws)
        reply = np.eye(inner.shape[1], dtype=inner.dtype) + self.kappa @ self.curvature
        result = reply @ inner @ np.swapaxes(reply, 1, 2)
        return np.asarray(0.5 * (result + np.swapaxes(result, 1, 2)))


def amplified(c: FloatArray, kappa: FloatArray, t: FloatArray) -> FloatArray:
    """t' = (I + c kappa) t (I + kappa c)."""
    factor = np.eye(t.shape[1], dtype=t.dtype) + c @ kappa
    return np.asarray(factor @ t @ np.swapaxes(factor, 1, 2))


def pooled_force(found: SoftmaxMoments, fraction: float) -> FloatArray:
    """t_j of the pool; none where all of it is trained on, whatever smoothing leaves of it."""
    if fraction == 1.0:
        return np.zeros_like(found.square)
    mean = fraction * found.force
    return np.asarray(
        fraction * found.square - mean[:, :, None] * mean[:, None, :] - fraction**2 * found.linear
    )


def solve_softmax(
    problem: ConvexProblem, fraction: float, *, tolerance: float = TOLERANCE
) -> SoftmaxCavity:
    """Iterate the rounds until predictions, kappa and V stand still."""
    assert problem.X is not None
    X, classes, size = problem.X, problem.classes, problem.records
    codes = problem.y.astype(np.intp)
    weight, penalty = problem.sample_weights, problem.penalty_at(fraction)
    require_room(problem, classes * X.shape[1])
    theta = released(problem)
    points = sigma_points(classes, 24, SEED)
    z = centred_logits(X, theta)
    m, root = z.copy(), None
    kappa = np.zeros((size, classes, classes))
    v = np.zeros((size, classes, classes))
    diagonal = np.zeros((size, classes))
    change, converged, rounds = np.inf, False, 0
    while True:
        rounds += 1
        found = softmax_moments(m, root, diagonal, codes, weight, points)
        # one Newton step of m - f k E[F] = z; the force moves with it
        away = mean_step(z, m, found, diagonal, fraction)
        m = m - away
        force = found.force - (found.slope @ away[:, :, None])[:, :, 0]
        slope = fraction * found.slope
        c = symmetric(np.linalg.solve(np.eye(classes) - slope @ kappa, slope))
        response = DenseSoftmax.at(X, penalty, c, problem.name)
        step = response.step(fraction * (X.T @ force) + penalty[:, None] * theta)
        moved = centred_logits(X, step)
        longest = float(np.max(np.abs(moved)))
        scale = min(1.0, 4.0 * max(1.0, 0.25 * float(np.max(np.abs(z)))) / max(longest, 1e-300))
        theta -= scale * step
        g = response.leverage
        new_kappa = np.linalg.solve(np.eye(classes) - g @ c, g)
        new_kappa = centred(symmetric(new_kappa))
        cavity = SoftmaxCavity(
            m, v, new_kappa, diagonal, c, found, response, rounds, change, converged
        )
        source = pooled_force(found, fraction)
        new_v = cavity.spread(source)
        unit = mean_variance(new_v, fraction)
        change = max(
            block_change(kappa, new_kappa),
            block_change(v, new_v),
            scale * float(np.sqrt(np.mean(moved**2) / unit)),
            float(np.sqrt(np.mean(away**2) / unit)),
        )
        converged = change <= tolerance
        last = converged or rounds >= MAX_ROUNDS
        # kappa and V swing about their limits, by about a quarter: part of the way back is quicker
        relax = 0.8 if rounds > 1 and not last else 1.0
        kappa = relax * new_kappa + (1.0 - relax) * kappa
        v = relax * new_v + (1.0 - relax) * v
        m = m - scale * moved
        z = centred_logits(X, theta)
        diagonal = diagonal_yield(kappa, softmax(m - fraction * diagonal * force))
        root = square_root(v)
        if last:
            break
    found = softmax_moments(m, root, diagonal, codes, weight, points)
    m = m - mean_step(z, m, found, diagonal, fraction)
    return SoftmaxCavity(m, v, kappa, diagonal, c, found, response, rounds, change, converged)


def mean_step(
    z: FloatArray, m: FloatArray, found: SoftmaxMoments, diagonal: FloatArray, fraction: float
) -> FloatArray:
    """How far m is from m - f k E[F(m + eps)] = z, with the diagonal yield k."""
    residual = m - fraction * diagonal * found.force - z
    residual -= residual.mean(axis=1, keepdims=True)
    if not np.any(diagonal):
        return residual
    matrix = np.eye(z.shape[1], dtype=z.dtype) - fraction * diagonal[:, :, None] * found.slope
    return np.asarray(np.linalg.solve(matrix, residual[:, :, None])[:, :, 0])


def symmetric(blocks: npt.NDArray[Any]) -> FloatArray:
    """The mean of every block and its transpose."""
    return np.asarray(0.5 * (blocks + np.swapaxes(blocks, 1, 2)))


def centred_logits(X: npt.NDArray[Any], theta: FloatArray) -> FloatArray:
    """X theta without the mean over the classes, in the precision of X."""
    z = X @ theta.astype(X.dtype)
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def mean_variance(v: FloatArray, fraction: float) -> float:
    """The mean variance of a logit, in whose units a step is small; 1 where nothing varies."""
    return max(float(np.mean(np.einsum("icc->ic", v))), 1e-300) if fraction < 1.0 else 1.0


def block_change(old: FloatArray, new: FloatArray) -> float:
    """The relative change of the blocks, record by record, in the root mean square."""
    change = np.sqrt(np.einsum("icd,icd->i", new - old, new - old))
    size = np.sqrt(np.einsum("icd,icd->i", new, new))
    return float(np.sqrt(np.mean((change / np.maximum(size, 1e-300)) ** 2)))


def released(problem: ConvexProblem) -> FloatArray:
    """The released coefficients to start from, or zeros: d x C."""
    assert problem.X is not None
    if problem.coefficients is None:
        return np.zeros((problem.X.shape[1], problem.classes))
    return np.array(problem.coefficients, dtype=np.float64)


def require_room(problem: ConvexProblem, order: int) -> None:
    """Refuse what does not fit: C x C blocks, the design, and a matrix of this order."""
    assert problem.X is not None
    size, classes = problem.records, problem.classes
    require_memory(
        8 * 8 * size * classes**2 + 4 * 8 * order**2 + 4 * problem.X.nbytes,
        f"The laws of {size} records in {classes} classes",
        "use fewer records",
    )
