"""The cavity for several classes: z and F are vectors, kappa, c, t and V blocks of C x C.

As in `cavity`, with kappa = (I - g c)^{-1} g, c = f E[F'] (I - f kappa E[F'])^{-1},
t = f E[F F'] - f^2 E[F] E[F]' - f^2 E[F'] V E[F'], t' = (I + c kappa) t (I + kappa c) and
V_i = (I + kappa c) [sum over j != i of G_ij t'_j G_ij'] (I + c kappa).

Up to `DENSE` coefficients the Hessian is inverted whole; beyond that `softmax_structured` is used.
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

# The structured route stops earlier, at the level of its draws' noise.
STRUCTURED_TOLERANCE = 0.06

# The first rounds of the structured route leave the coupling of the classes out.
UNCOUPLED = 2

# Draws in the rounds, and for the last variance.
ROUND_DRAWS = 32
LAST_DRAWS = 192

_SEED = 20261


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

    def spread(self, t: FloatArray, draws: int | None = None) -> FloatArray:
        """V_i where the records' forces have covariance t_j beyond what Hbar carries."""
        inner = self.response.spread(amplified(self.curvature, self.kappa, t), draws)
        reply = np.eye(inner.shape[1]) + self.kappa @ self.curvature
        result = reply @ inner @ np.swapaxes(reply, 1, 2)
        return np.asarray(0.5 * (result + np.swapaxes(result, 1, 2)))


def amplified(c: FloatArray, kappa: FloatArray, t: FloatArray) -> FloatArray:
    """t' = (I + c kappa) t (I + kappa c)."""
    factor = np.eye(t.shape[1]) + c @ kappa
    return np.asarray(factor @ t @ np.swapaxes(factor, 1, 2))


def pooled_force(found: SoftmaxMoments, fraction: float) -> FloatArray:
    """t_j of the pool."""
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
    dense = classes * X.shape[1] <= DENSE
    _require_room(problem, dense)
    single = None if dense else X.astype(np.float32)
    tolerance = tolerance if dense else max(tolerance, STRUCTURED_TOLERANCE)
    theta = (
        np.zeros((X.shape[1], classes))
        if problem.coefficients is None
        else np.array(problem.coefficients, dtype=np.float64)
    )
    points = sigma_points(classes, 24, _SEED)
    z = _logits(X, theta)
    m, root = z.copy(), None
    kappa = np.zeros((size, classes, classes))
    v = np.zeros((size, classes, classes))
    diagonal = np.zeros((size, classes))
    change, converged, rounds = np.inf, False, 0
    response: DenseSoftmax | StructuredSoftmax
    while True:
        rounds += 1
        found = softmax_moments(m, root, diagonal, codes, weight, points)
        # one Newton step of m - f k E[F] = z; the force moves with it
        away = _without_step(z, m, found, diagonal, fraction)
        m = m - away
        force = found.force - (found.slope @ away[:, :, None])[:, :, 0]
        slope = fraction * found.slope
        c = _symmetric(np.linalg.solve(np.eye(classes) - slope @ kappa, slope))
        if single is None:
            response = DenseSoftmax.at(X, penalty, c, problem.name)
        else:
            # the first rounds are far off: the class-diagonal part of the response will do
            response = StructuredSoftmax.at(
                single, penalty, c, draws=ROUND_DRAWS, seed=_SEED, coupled=rounds > UNCOUPLED
            )
        step = response.step(fraction * (X.T @ force) + penalty[:, None] * theta)
        moved = _logits(X, step)
        longest = float(np.max(np.abs(moved)))
        scale = min(1.0, 4.0 * max(1.0, 0.25 * float(np.max(np.abs(z)))) / max(longest, 1e-300))
        theta -= scale * step
        g = response.leverage
        new_kappa = np.linalg.solve(np.eye(classes) - g @ c, g)
        new_kappa = centred(_symmetric(new_kappa))
        cavity = SoftmaxCavity(
            m, v, new_kappa, diagonal, c, found, response, rounds, change, converged
        )
        source = pooled_force(found, fraction)
        new_v = cavity.spread(source)
        unit = _unit(new_v, fraction)
        change = max(
            _moved(kappa, new_kappa),
            _moved(v, new_v),
            scale * float(np.sqrt(np.mean(moved**2) / unit)),
            float(np.sqrt(np.mean(away**2) / unit)),
        )
        converged = change <= tolerance and (dense or rounds > UNCOUPLED + 1)
        last = converged or rounds >= MAX_ROUNDS
        if last and not dense:
            new_v = cavity.spread(source, LAST_DRAWS)
        # kappa and V swing about their limits, by about a quarter: part of the way back is quicker
        relax = 0.8 if rounds > 1 and not last else 1.0
        kappa = relax * new_kappa + (1.0 - relax) * kappa
        v = relax * new_v + (1.0 - relax) * v
        m = m - scale * moved
        z = _logits(X, theta)
        diagonal = diagonal_yield(kappa, softmax(m - fraction * diagonal * force))
        root = square_root(v)
        if last:
            break
    found = softmax_moments(m, root, diagonal, codes, weight, points)
    m = m - _without_step(z, m, found, diagonal, fraction)
    return SoftmaxCavity(m, v, kappa, diagonal, c, found, response, rounds, change, converged)


def _without_step(
    z: FloatArray, m: FloatArray, found: SoftmaxMoments, diagonal: FloatArray, fraction: float
) -> FloatArray:
    """How far m is from m - f k E[F(m + eps)] = z, with the diagonal yield k."""
    residual = m - fraction * diagonal * found.force - z
    residual -= residual.mean(axis=1, keepdims=True)
    if not np.any(diagonal):
        return residual
    matrix = np.eye(z.shape[1]) - fraction * diagonal[:, :, None] * found.slope
    return np.asarray(np.linalg.solve(matrix, residual[:, :, None])[:, :, 0])


def _symmetric(blocks: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(0.5 * (blocks + np.swapaxes(blocks, 1, 2)), dtype=np.float64)


def _logits(X: FloatArray, theta: FloatArray) -> FloatArray:
    z = X @ theta
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _unit(v: FloatArray, fraction: float) -> float:
    """The mean variance of a logit, in whose units a step is small; 1 where nothing varies."""
    return max(float(np.mean(np.einsum("icc->ic", v))), 1e-300) if fraction < 1.0 else 1.0


def _moved(old: FloatArray, new: FloatArray) -> float:
    """The relative change of the blocks, record by record, in the root mean square."""
    change = np.sqrt(np.einsum("icd,icd->i", new - old, new - old))
    size = np.sqrt(np.einsum("icd,icd->i", new, new))
    return float(np.sqrt(np.mean((change / np.maximum(size, 1e-300)) ** 2)))


def _require_room(problem: ConvexProblem, dense: bool) -> None:
    assert problem.X is not None
    size, classes = problem.records, problem.classes
    blocks = 8 * 8 * size * classes**2
    order = classes * problem.X.shape[1] if dense else size
    require_memory(
        blocks + 4 * 8 * order**2 + 4 * problem.X.nbytes,
        f"The laws of {size} records in {classes} classes",
        "use fewer records",
    )
