"""The cavity of a softmax model with many coefficients: few factorisations, cheap steps between.

A factorisation of Hbar (`softmax_structured`) costs as much as several shadow fits, a step with it
next to nothing.  So the first rounds take the predictions without the record as points: then the
mean model minimises f sum_j M_{(1-f) k_j}[l_j] + theta' Lambda theta / 2, M the Moreau envelope,
and all is in closed form: with p at the proximal point, c = diag(a) - a a'/sum(a) with
a = f w p / (1 + (1-f) k w p), and E[F'] likewise with a = w p / (1 + k w p).  The last rounds
average over the sigma points.  Everything is in single precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.softmax_cavity import (
    SEED,
    SoftmaxCavity,
    block_change,
    centred_logits,
    mean_step,
    mean_variance,
    pooled_force,
    released,
    require_room,
    symmetric,
)
from leakscope.fitted.softmax_loss import (
    SoftmaxMoments,
    centred,
    diagonal_yield,
    prox,
    sigma_points,
    softmax,
    softmax_moments,
    square_root,
)
from leakscope.fitted.softmax_structured import StructuredSoftmax

# Where the rounds stop: V per record, whose draws alone are off by more.
TOLERANCE = 0.1
MAX_ROUNDS = 8

# Steps of the mean model without a spread, and with one, for each factorisation.
STEPS = 3
HELD = 3

# Class by class the curvature is too low in some directions, so a whole step would overshoot.
_UNCOUPLED_STEP = 0.6

# By how much less kappa moves in the next round: 0.14, 0.021, 0.006 on Location-30.
_STILL_TO_COME = 1.0 / 6.0

# Draws in the rounds, and for the last variance.
ROUND_DRAWS = 16
LAST_DRAWS = 192


@dataclass
class _Rounds:
    """The state between rounds: theta, the laws without the record, kappa and its diagonal."""

    problem: ConvexProblem
    fraction: float
    X: Any
    theta: FloatArray
    z: FloatArray
    m: FloatArray
    kappa: FloatArray
    k: FloatArray
    v: FloatArray
    force: FloatArray

    @classmethod
    def start(cls, problem: ConvexProblem, fraction: float) -> _Rounds:
        assert problem.X is not None
        X = problem.X.astype(np.float32)
        theta = released(problem)
        z = centred_logits(X, theta)
        blocks = np.zeros((*z.shape, problem.classes), dtype=np.float32)
        empty = np.zeros_like(z)
        return cls(problem, fraction, X, theta, z, z, blocks, empty, blocks, empty)

    @property
    def codes(self) -> Any:
        return self.problem.y.astype(np.intp)

    @property
    def penalty(self) -> FloatArray:
        return self.problem.penalty_at(self.fraction)

    def descend(self, response: StructuredSoftmax) -> float:
        """One step of the mean model, in the root mean square over the predictions."""
        pull = (self.X.T @ self.force).astype(np.float64)
        step = response.step(self.fraction * pull + self.penalty[:, None] * self.theta)
        moved = centred_logits(self.X, step)
        longest = float(np.max(np.abs(moved)))
        reach = 4.0 * max(1.0, 0.25 * float(np.max(np.abs(self.z))))
        whole = _UNCOUPLED_STEP if response.factor is None else 1.0
        scale = min(whole, reach / max(longest, 1e-30))
        self.theta = self.theta - scale * step
        self.z = centred_logits(self.X, self.theta)
        self.m = self.m - scale * moved
        return scale * float(np.sqrt(np.mean(moved**2)))

    def plain(self) -> SoftmaxMoments:
        """The forces of the records where they are in, without a spread but to first order."""
        weight = self.problem.sample_weights[:, None].astype(np.float32)
        target = np.zeros_like(self.z)
        target[np.arange(len(target)), self.codes] = 1.0
        kw = (1.0 - self.fraction) * self.k * weight
        p = softmax(prox(self.z, kw, target, self.z - 0.5 * kw * (softmax(self.z) - target)))
        self.force = weight * (p - target)
        self.m = self.z + self.fraction * self.k * self.force
        self.m = self.m - self.m.mean(axis=1, keepdims=True)
        slope = _blocks(weight * p / (1.0 + self.k * weight * p))
        linear = slope @ self.v @ slope
        square = self.force[:, :, None] * self.force[:, None, :] + linear
        return SoftmaxMoments(self.force, slope, square, linear)

    def smoothed(self) -> SoftmaxMoments:
        """The moments of the force over the spread; m follows z."""
        points = sigma_points(self.problem.classes, 24, SEED)
        found = softmax_moments(
            self.m,
            square_root(self.v),
            self.k,
            self.codes,
            self.problem.sample_weights,
            points,
        )
        away = mean_step(self.z, self.m, found, self.k, self.fraction)
        self.m = self.m - away
        self.force = found.force - (found.slope @ away[:, :, None])[:, :, 0]
        return found

    def curvature(self, found: SoftmaxMoments) -> FloatArray:
        """c = f E[F'] (I - f kappa E[F'])^{-1}."""
        slope = self.fraction * found.slope
        unit = np.eye(slope.shape[1], dtype=slope.dtype)
        return symmetric(np.linalg.solve(unit - slope @ self.kappa, slope))

    def renew(self, response: StructuredSoftmax, c: FloatArray) -> float:
        """kappa = (I - g c)^{-1} g and its diagonal; how far it moved."""
        g = response.leverage
        unit = np.eye(g.shape[1], dtype=g.dtype)
        kappa = centred(symmetric(np.linalg.solve(unit - g @ c, g)))
        change = block_change(self.kappa, kappa)
        self.kappa = kappa
        self.k = diagonal_yield(kappa, softmax(self.z))
        return change

    def descend_plainly(self, response: StructuredSoftmax) -> SoftmaxMoments:
        """Some steps of the mean model without a spread, which cost next to nothing."""
        found = self.plain()
        for _ in range(STEPS):
            self.descend(response)
            found = self.plain()
        return found

    def cavity(
        self, c: FloatArray, found: SoftmaxMoments, response: StructuredSoftmax
    ) -> SoftmaxCavity:
        """The state as a cavity that is still on its way."""
        return SoftmaxCavity(
            self.m, self.v, self.kappa, self.k, c, found, response, 0, np.inf, converged=False
        )


def _blocks(a: FloatArray) -> FloatArray:
    """diag(a) - a a' / sum(a)."""
    scaled = a / np.sqrt(np.maximum(a.sum(axis=1, keepdims=True), 1e-30))
    found = -scaled[:, :, None] * scaled[:, None, :]
    index = np.arange(a.shape[1])
    found[:, index, index] += a
    return np.asarray(found)


def solve_many(problem: ConvexProblem, fraction: float) -> SoftmaxCavity:
    """Iterate the rounds until predictions, kappa and V stand still."""
    require_room(problem, problem.records)
    now = _Rounds.start(problem, fraction)
    # class by class: (H^{-1})_cc is within an eighth of (H_cc)^{-1}, and its factors cost a third
    c = fraction * now.plain().slope * np.eye(problem.classes, dtype=np.float32)
    response = StructuredSoftmax.at(now.X, now.penalty, c, seed=SEED, coupled=False)
    now.renew(response, c)
    found = now.descend_plainly(response)
    now.v = now.cavity(c, found, response).spread(pooled_force(found, fraction), ROUND_DRAWS)
    rounds, change = 1, np.inf
    while change > TOLERANCE and rounds < MAX_ROUNDS:
        rounds += 1
        c = now.curvature(now.smoothed())
        response = StructuredSoftmax.at(now.X, now.penalty, c, seed=SEED)
        yielded = now.renew(response, c)
        if rounds == 2:
            now.descend_plainly(response)
        for _ in range(HELD):
            found = now.smoothed()
            step = now.descend(response)
            v = now.cavity(c, found, response).spread(pooled_force(found, fraction), ROUND_DRAWS)
            change = max(
                _STILL_TO_COME * yielded,
                block_change(now.v, v),
                step / float(np.sqrt(mean_variance(v, fraction))),
            )
            now.v = v
            if change <= TOLERANCE:
                break
    found = now.smoothed()
    now.v = now.cavity(c, found, response).spread(pooled_force(found, fraction), LAST_DRAWS)
    return SoftmaxCavity(
        now.m, now.v, now.kappa, now.k, c, found, response, rounds, change, change <= TOLERANCE
    )
