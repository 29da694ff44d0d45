"""Both laws of every unit's predictions from one convex fit: the cavity.

Each unit, a record or a group, is in the training set with probability f.  Take unit R away: the
model without it predicts m + eps at its rows, eps ~ N(0, v), and yields kappa per unit of force.
If it joins, the predictions fall to the z with z + kappa F(z) = m + eps (`units`).  On average over
both cases they are m - f kappa E[F], and all of them are what the mean model predicts, which
balances f sum_R X_R' E[F_R] + Lambda theta = 0.

One round makes a Newton step towards that balance and renews kappa and v:

- c = f E[F'] (I - f kappa E[F'])^{-1}, Hbar = sum_R X_R' c_R X_R + Lambda, g = X_R Hbar^{-1} X_R';
- kappa = (I - g c)^{-1} g;
- t = f E[FF'] - f^2 E[F]E[F]' - f^2 E[F'] v E[F'], the covariance of the force beyond what Hbar
  carries, and t' = (I + c kappa) t (I + kappa c);
- v_i = (I - g c)^{-1} [sum over the others of G_ij t'_j G_ij'] (I - c g)^{-1}.

Each unit keeps the c and the t' that are inside Hbar and the sum, so that exactly these are taken
away; then the rounds need neither relaxation nor acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.single_fit.losses import Codes
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import (
    DENSE,
    Features,
    FunctionSpace,
    Stacked,
    stacks_of,
)
from leakscope.single_fit.units import (
    Stack,
    State,
    renewed,
    solved,
    symmetric,
    transposed,
)

TOLERANCE = 3e-4
MAX_ROUNDS = 150


@dataclass(frozen=True, eq=False)
class Cavity:
    """Where the rounds ended.

    Attributes
    ----------
    problem, fraction, groups
        What was asked.
    where
        The mean model's coefficients, d x O, or its predictions in function space.
    states
        Of every stack.
    g, slack
        Each unit's own block of G, and I - g c.
    rounds, change, converged
        How many rounds, the last one's largest relative change, and whether it is small enough.
    """

    problem: ConvexProblem
    fraction: float
    groups: Codes | None
    response: Any
    where: FloatArray
    states: tuple[State, ...]
    g: Stacked
    slack: Stacked
    rounds: int
    change: float
    converged: bool

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The units by their sizes."""
        stacks: tuple[Stack, ...] = self.response.route.stacks
        return stacks

    @property
    def units(self) -> int:
        """How many units there are."""
        return sum(len(stack.units) for stack in self.stacks)

    def pulls(self, *, fresh: bool) -> Stacked:
        """t' of every stack: of a pool, or of fresh others."""
        return [s.amplified(s.source(self.fraction, fresh=fresh)) for s in self.states]

    @cached_property
    def pool_variances(self) -> Stacked:
        """v of every stack, of a pool; where they are drawn, of more draws than in the rounds."""
        return [s.v for s in self.states] if self.response.route.exact else self._drawn(fresh=False)

    @cached_property
    def fresh_variances(self) -> Stacked:
        """v of every stack, of fresh others."""
        return self._drawn(fresh=True)

    def _drawn(self, *, fresh: bool) -> Stacked:
        inner = self.response.others(self.pulls(fresh=fresh), self.g, last=True)
        return [through(*pair) for pair in zip(self.slack, inner, strict=True)]


def through(slack: FloatArray, inner: FloatArray) -> FloatArray:
    """(I - g c)^{-1} inner (I - c g)^{-1}."""
    half = solved(slack, inner)
    return symmetric(transposed(solved(slack, transposed(half))))


def route_of(problem: ConvexProblem, fraction: float, groups: Codes | None) -> Any:
    """Features, function space, or the structured Hessian of many classes."""
    stacks = stacks_of(problem, groups)
    wide = problem.X is None or problem.X.shape[1] > problem.records
    if problem.outputs == 1 and groups is None and wide:
        return FunctionSpace.of(problem, fraction, stacks)
    if problem.loss == "softmax" and problem.X is not None:
        coefficients = problem.outputs * problem.X.shape[1]
        if coefficients > DENSE and groups is None:
            from leakscope.single_fit.structured import Structured

            return Structured.of(problem, fraction, stacks)
    return Features.of(problem, fraction, stacks)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def solve_cavity(
    problem: ConvexProblem,
    fraction: float,
    groups: Codes | None = None,
) -> Cavity:
    """Iterate the rounds until predictions, kappa and v stand still.

    ``groups`` has each record's group, from 0, where whole groups leave.
    """
    route = route_of(problem, fraction, groups)
    stacks: tuple[Stack, ...] = route.stacks
    where = route.start
    states = tuple(
        _first(stack, z, fraction) for stack, z in zip(stacks, route.predict(where), strict=True)
    )
    predictions = [state.z for state in states]
    tolerance = max(TOLERANCE, route.tolerance)
    change, rounds = np.inf, 0
    while change > tolerance and rounds < MAX_ROUNDS:
        rounds += 1
        if (rounds - 1) % route.rounds_held == 0:
            inside = [state.c for state in states]
            response = route.respond(inside)
            g = response.leverage()
            slack = response.slack(g, inside)
            kappas = [symmetric(solved(*pair)) for pair in zip(slack, g, strict=True)]
        step = response.step([fraction * state.force for state in states], where)
        moved = route.predict(step)
        longest = max(float(np.max(np.abs(part))) for part in moved)
        reach = problem.longest_step * max(
            1.0, 0.25 * max(float(np.max(np.abs(part))) for part in predictions)
        )
        length = min(1.0, reach / max(longest, 1e-300))
        where = where + length * step
        predictions = route.predict(where)
        inner = response.others([state.t for state in states], g)
        spreads = [through(*pair) for pair in zip(slack, inner, strict=True)]
        before, plain = states, rounds <= route.plain_rounds
        states = tuple(
            renewed(stack, old.m + z - old.z, v, kappa, z, old.force, fraction, plain=plain)
            for stack, old, z, v, kappa in zip(
                stacks, before, predictions, spreads, kappas, strict=True
            )
        )
        typical = _typical(states, fraction)
        change = max(
            _change([s.kappa for s in before], kappas),
            _change([s.v for s in before], spreads),
            _change([s.t for s in before], [s.t for s in states]) if fraction < 1.0 else 0.0,
            length * _rms(moved) / typical,
            _rms([s.missed for s in states]) / typical,
        )
        if not np.isfinite(change):
            break
    return Cavity(
        problem, fraction, groups, response, where, states, g, slack,
        rounds, change, change <= tolerance,
    )  # fmt: skip


def _first(stack: Stack, z: FloatArray, fraction: float) -> State:
    """Before the first round: no spread and no yield."""
    empty = np.zeros((*z.shape, z.shape[1]), dtype=z.dtype)
    return renewed(stack, z, empty, empty, z, np.zeros_like(z), fraction)


def _change(old: Sequence[FloatArray], new: Sequence[FloatArray]) -> float:
    """The relative change of the units' blocks, in the root mean square over the units."""
    changes = np.concatenate(
        [np.sqrt(((b - a) ** 2).sum(axis=(1, 2))) for a, b in zip(old, new, strict=True)]
    )
    sizes = np.concatenate([np.sqrt((b**2).sum(axis=(1, 2))) for b in new])
    # Where nothing is left of a spread that was there, the change is large, and still a number.
    floor = 1e-12 * max(float(sizes.max()), float(changes.max())) + 1e-300
    return float(np.sqrt(np.mean((changes / np.maximum(sizes, floor)) ** 2)))


def _rms(parts: Sequence[FloatArray]) -> float:
    return float(np.sqrt(sum(np.sum(p**2) for p in parts) / sum(p.size for p in parts)))


def _typical(states: Sequence[State], fraction: float) -> float:
    """In whose units a step is small: the root mean variance, or the predictions' spread."""
    if fraction == 1.0:
        return max(float(np.std(np.concatenate([s.z.ravel() for s in states]))), 1e-300)
    total = sum(float(np.einsum("icc->", state.v)) for state in states)
    return float(np.sqrt(max(total / sum(s.z.size for s in states), 1e-300)))
