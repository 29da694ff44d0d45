"""The cavity where all rows of a person leave together: one block for each person.

As `cavity` and `softmax_cavity` have it.  A person has the rows R, and z and F are vectors of
q = |R| C numbers, C outputs for each row; the person is in the training set with probability f.
With X_R the rows (times the unit matrix of the outputs):

- Hbar = sum_R X_R' c_R X_R + Lambda, g_R = X_R Hbar^{-1} X_R', kappa_R = (I - g c)^{-1} g;
- prox_kappa(m) is the z with z + kappa F(z) = m, for all rows jointly;
- c = f E[F'] (I - f kappa E[F'])^{-1}, t = f E[FF'] - f^2 E[F]E[F]' - f^2 E[F'] V E[F'];
- t' = (I + c kappa) t (I + kappa c), S = sum_R X_R' t'_R X_R, and
  V_R = (I + kappa c) [X_R Hbar^{-1} S Hbar^{-1} X_R' - g t' g] (I + c kappa).

A force is a person's whole force, so that the variance is over the other people.  Persons of one
size are handled together.  Kernels, and designs with more columns than records, are turned into
features by the eigenvectors of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.fitted.cavity import Question
from leakscope.fitted.losses import (
    LOSSES,
    Codes,
    hermite,
    one_hot,
    sigma_points,
    softmax,
    square_root,
)
from leakscope.fitted.optimum import spd_inverse
from leakscope.fitted.problem import ConvexProblem, FittedModel, NoLawsError

TOLERANCE, QUADRATIC_TOLERANCE = 1e-3, 2e-5
MAX_ROUNDS = 100
# Kappa and V swing about their limits where the loss is curved: part of the way back is quicker.
RELAX = 0.8

# Coefficients up to which the Hessian of all outputs is inverted.
MOST_COEFFICIENTS = 2500

# Where no points in a grid do, so many sigma points at least, and what turns them.
POINTS, SEED = 24, 20263
# Of persons with more answers than this the mean prediction stands for its law.
MOST_SMOOTHED = 40
# Numbers of the curvatures of all points that are there at once.
AT_ONCE = 4_000_000
# The most that a Newton step may move a prediction, where a loss does not say.
LONGEST_STEP = 4.0

# Without a person whose slack is singular the fit is not determined.
LEAST_SLACK = 1e-10

# Eigenvalues of a kernel below this share of the largest are rounding.
LEAST_EIGENVALUE = 1e-12


def of_one_size(codes: Codes) -> list[tuple[Codes, Codes]]:
    """The persons of each size, and their rows (persons x size)."""
    members = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    found = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        alike = np.flatnonzero(sizes == size)
        found.append((alike, members[starts[alike][:, None] + np.arange(size)]))
    return found


def in_features(problem: ConvexProblem, fraction: float) -> tuple[FloatArray, FloatArray]:
    """Design and penalty with no more columns than records; a kernel's from its eigenvectors."""
    size = problem.records
    if problem.X is not None and (problem.X.shape[1] <= size or problem.loss == "softmax"):
        return problem.X, problem.penalty_at(fraction)
    require_memory(
        5 * 8 * size * size, f"The laws of {size} records under a kernel", "use fewer records"
    )
    values, vectors = symmetric_eigen(problem.kernel_at(fraction))
    kept = values > LEAST_EIGENVALUE * values[-1]
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept])), np.ones(kept.sum())


@dataclass(frozen=True, eq=False)
class Design:
    """All rows with their losses: N rows, d columns, C outputs.

    ``target`` (N, C) is y, or the class as zeros and a one; ``start`` (d, C) are coefficients.
    """

    X: FloatArray
    penalty: FloatArray
    loss: str
    target: FloatArray
    weights: FloatArray
    start: FloatArray
    name: str
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, model: FittedModel, fraction: float, codes: Codes) -> Design:
        """Of a model's problems, which share a design, at a share of the records."""
        problem = model.problems[0]
        X, penalty = in_features(problem, fraction)
        outputs = problem.classes if problem.loss == "softmax" else len(model.problems)
        start = np.zeros((X.shape[1], outputs))
        if X is problem.X and all(each.coefficients is not None for each in model.problems):
            start = np.column_stack([np.asarray(each.coefficients) for each in model.problems])
        if outputs * X.shape[1] > max(MOST_COEFFICIENTS, problem.records):
            raise NoLawsError(
                f"{problem.name} has {outputs * X.shape[1]} coefficients in {outputs} classes, and "
                f"the laws of groups are known up to {MOST_COEFFICIENTS}; take train= (--train), "
                "or leave out the groups."
            )
        target = np.column_stack([each.y for each in model.problems])
        if problem.loss == "softmax":
            target = one_hot(problem.y.astype(np.intp), outputs)
        require_memory(
            4 * 8 * ((outputs * X.shape[1]) ** 2 + X.size),
            f"The laws of {len(X)} records in groups",
            "use fewer records or features",
        )
        made = cls(X, penalty, problem.loss, target, problem.sample_weights, start, problem.name)
        blocks = tuple(Block(made, units, rows) for units, rows in of_one_size(codes))
        return replace(made, blocks=blocks)

    @property
    def outputs(self) -> int:
        """C."""
        return int(self.target.shape[1])

    @property
    def longest_step(self) -> float:
        """The most that a Newton step may move a prediction."""
        return LONGEST_STEP if self.loss == "softmax" else LOSSES[self.loss].longest_step

    @property
    def quadratic(self) -> bool:
        """Whether everything is linear in the predictions."""
        return self.loss == "square"

    def pulled(self, forces: Sequence[FloatArray]) -> FloatArray:
        """X' F of the forces (U, q) of each block: d x C."""
        whole = np.empty_like(self.target)
        for block, force in zip(self.blocks, forces, strict=True):
            whole[block.rows] = force.reshape(*block.rows.shape, self.outputs)
        return np.asarray(self.X.T @ whole)

    def assembled(self, parts: Sequence[FloatArray]) -> FloatArray:
        """sum_R X_R' part_R X_R; coefficient (a, output) at output d + a."""
        d, outputs = self.X.shape[1], self.outputs
        total = np.zeros((outputs * d, outputs * d))
        for block, part in zip(self.blocks, parts, strict=True):
            count, size = block.rows.shape
            split = part.reshape(count, size, outputs, size, outputs)
            flat = block.X.reshape(-1, d)
            for a in range(outputs):
                for b in range(a + 1):
                    found = flat.T @ (split[:, :, a, :, b] @ block.X).reshape(-1, d)
                    total[a * d : (a + 1) * d, b * d : (b + 1) * d] += found
                    if a != b:
                        total[b * d : (b + 1) * d, a * d : (a + 1) * d] += found.T
        return np.asarray(0.5 * (total + total.T))

    def inverse(self, curvatures: Sequence[FloatArray]) -> FloatArray:
        """Hbar^{-1} at these curvatures."""
        d, outputs = self.X.shape[1], self.outputs
        hessian = self.assembled(curvatures)
        index = np.arange(outputs * d)
        hessian[index, index] += np.tile(self.penalty, outputs)
        if self.loss == "softmax":
            # A constant added to every class's free coefficient changes nothing: it may be fixed.
            for column in np.flatnonzero(self.penalty == 0.0):
                places = column + d * np.arange(outputs)
                hessian[np.ix_(places, places)] += float(np.mean(hessian[places, places]))
        return spd_inverse(hessian, self.name)


@dataclass(frozen=True, eq=False)
class Block:
    """Persons of one size: their numbers (U,) and their rows (U, r)."""

    design: Design
    units: Codes
    rows: Codes

    @cached_property
    def X(self) -> FloatArray:
        """The rows, (U, r, d)."""
        return np.asarray(self.design.X[self.rows])

    def parts(self, points: int) -> Iterator[slice]:
        """Some persons at a time, so that their curvatures at so many points take little room."""
        step = max(1, AT_ONCE // (points * self.size**2))
        for start in range(0, len(self.units), step):
            yield slice(start, start + step)

    def some(self, part: slice) -> Block:
        """Some of the persons."""
        return Block(self.design, self.units[part], self.rows[part])

    @property
    def plain(self) -> bool:
        """Whether the mean prediction stands for its law: it does exactly, or for want of room."""
        return self.design.quadratic or self.size > MOST_SMOOTHED

    @property
    def size(self) -> int:
        """q = r C."""
        return int(self.rows.shape[1]) * self.design.outputs

    @cached_property
    def target(self) -> FloatArray:
        """(U, 1, r, C), for predictions at several points."""
        return np.asarray(self.design.target[self.rows][:, None])

    @cached_property
    def weights(self) -> FloatArray:
        """(U, 1, r, 1)."""
        return np.asarray(self.design.weights[self.rows][:, None, :, None])

    def predictions(self, theta: FloatArray) -> FloatArray:
        """(U, q) of coefficients d x C."""
        return np.asarray((self.X @ theta).reshape(len(self.units), self.size))

    def within(self, matrix: FloatArray) -> FloatArray:
        """X_R matrix X_R' of each person, (U, q, q)."""
        d, outputs = self.X.shape[2], self.design.outputs
        count, size = self.rows.shape
        found = np.empty((count, size, outputs, size, outputs))
        for a in range(outputs):
            for b in range(outputs):
                part = np.ascontiguousarray(matrix[a * d : (a + 1) * d, b * d : (b + 1) * d])
                found[:, :, a, :, b] = (self.X @ part) @ np.swapaxes(self.X, 1, 2)
        return symmetric(found.reshape(count, self.size, self.size))

    # Of predictions (U, S, q).

    def _rows_of(self, z: FloatArray) -> FloatArray:
        return z.reshape(*z.shape[:2], self.rows.shape[1], self.design.outputs)

    def value(self, z: FloatArray) -> FloatArray:
        """The summed loss of a person's rows, (U, S)."""
        z = self._rows_of(z)
        if self.design.loss == "softmax":
            top = z.max(axis=-1, keepdims=True)
            each = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
            each = each - (self.target * z).sum(axis=-1, keepdims=True)
        else:
            each = LOSSES[self.design.loss].value(z, self.target)
        return np.asarray((self.weights * each).sum(axis=(2, 3)))

    def force(self, z: FloatArray) -> FloatArray:
        """(U, S, q)."""
        rows = self._rows_of(z)
        if self.design.loss == "softmax":
            found = softmax(rows) - self.target
        else:
            found = LOSSES[self.design.loss].force(rows, self.target)
        return np.asarray((self.weights * found).reshape(z.shape))

    def curvature(self, z: FloatArray) -> FloatArray:
        """(U, S, q, q), zero between rows."""
        rows = self._rows_of(z)
        count, points, size, outputs = rows.shape
        found = np.zeros((count, points, size, outputs, size, outputs))
        place, every = np.arange(size), np.arange(outputs)
        if self.design.loss == "softmax":
            p = softmax(rows)
            h = p[..., :, None] * np.eye(outputs) - p[..., :, None] * p[..., None, :]
            # advanced indices come first: rows, persons, points, outputs
            found[:, :, place, :, place, :] = np.moveaxis(self.weights[..., None] * h, 2, 0)
        else:
            h = self.weights * LOSSES[self.design.loss].curvature(rows, self.target)
            found[:, :, place[:, None], every, place[:, None], every] = h
        return np.asarray(found.reshape(count, points, size * outputs, size * outputs))

    def prox(self, m: FloatArray, kappa: FloatArray, first: FloatArray) -> FloatArray:
        """The z with z + kappa F(z) = m, all rows of a person jointly; m is (U, S, q).

        With z = m - kappa a this is a = F(z), where a'kappa a / 2 + l(m - kappa a) is least: Newton
        steps, halved where they do not lower it.  ``first`` (U, q) is an a to begin with.
        """
        if self.design.quadratic:
            return np.asarray(m - _joined(self, m, kappa) @ kappa)
        if self.size == 1:
            k = kappa[:, :, 0] * self.weights[:, :, 0, 0]
            y = self.target[:, :, 0, 0]
            return np.asarray(LOSSES[self.design.loss].prox(m[..., 0], k, y)[..., None])
        a = np.broadcast_to(first[:, None, :], m.shape)
        z, cost = self._along(m, kappa, a)
        for _ in range(60):
            step = _joined(self, z, kappa, a)
            length = np.ones(m.shape[:2])
            for _ in range(12):
                there = a + length[..., None] * step
                new, lower = self._along(m, kappa, there)
                worse = lower > cost + 1e-9 * (1.0 + np.abs(cost))
                if not worse.any():
                    break
                length = np.where(worse, 0.5 * length, length)
            moved = float(np.max(np.abs(new - z) / (1.0 + np.abs(z)), initial=0.0))
            a, z, cost = there, new, lower
            if moved <= 1e-10:
                break
        return z

    def _along(
        self, m: FloatArray, kappa: FloatArray, a: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        pushed = a @ kappa
        z = m - pushed
        return z, 0.5 * (a * pushed).sum(axis=-1) + self.value(z)


def _joined(
    block: Block, z: FloatArray, kappa: FloatArray, a: FloatArray | None = None
) -> FloatArray:
    """(I + h kappa)^{-1} (F(z) - a), (U, S, q): a Newton step of a, whole for the square loss."""
    excess = block.force(z) - (0.0 if a is None else a)
    # the curvature of the square loss is the same everywhere
    h = block.curvature(z[:, :1] if block.design.quadratic else z)
    matrix = np.eye(block.size) + h @ kappa[:, None]
    return np.asarray(np.linalg.solve(matrix, excess[..., None])[..., 0])


@dataclass(frozen=True, eq=False)
class ForceMoments:
    """E[F] (U, q), E[F'] and E[FF'] (U, q, q) of persons of one size."""

    force: FloatArray
    slope: FloatArray
    square: FloatArray


def normal_points(
    dimension: int, widest: float, *, least: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Points (S, q) and shares (S,) that stand for a standard normal law."""
    nodes = max(3 if widest < 0.05 else 5 if widest < 0.8 else 9, least)
    nodes = {1: nodes, 2: nodes, 3: min(nodes, 5)}.get(dimension, 0)
    if nodes:
        x, share = hermite(nodes)
        grid = np.stack(np.meshgrid(*[x] * dimension, indexing="ij"), axis=-1)
        weight = np.ones(1)
        for _ in range(dimension):
            weight = np.outer(weight, share).reshape(-1)
        return grid.reshape(-1, dimension), weight
    points = sigma_points(dimension, POINTS, SEED)
    return points, np.full(len(points), 1.0 / len(points))


def _moments(
    block: Block,
    m: FloatArray,
    v: FloatArray,
    kappa: FloatArray,
    first: FloatArray,
    *,
    plain: bool,
) -> ForceMoments:
    """The moments of the force where the predictions without the person are N(m, v)."""
    plain = plain or block.plain or not np.any(v)
    points, shares = np.zeros((1, block.size)), np.ones(1)
    root = np.zeros_like(v)
    if not plain:
        widest = float(np.sqrt(np.max(np.einsum("icc->ic", v))))
        points, shares = normal_points(block.size, widest)
        root = square_root(v)
    found = ForceMoments(np.empty_like(m), np.empty_like(v), np.empty_like(v))
    for part in block.parts(len(points)):
        own, k = block.some(part), kappa[part]
        eps = points @ np.swapaxes(root[part], 1, 2)
        z = own.prox(m[part, None, :] + eps, k, first[part])
        force, h = own.force(z), own.curvature(z)
        # h (I + kappa h)^{-1} = (I + h kappa)^{-1} h
        slopes = np.linalg.solve(np.eye(block.size) + h @ k[:, None], h)
        found.slope[part] = symmetric(np.einsum("s,usij->uij", shares, slopes))
        weighted = force * shares[:, None]
        found.force[part] = weighted.sum(axis=1)
        found.square[part] = np.swapaxes(weighted, 1, 2) @ force
    if plain:
        found.square[...] += found.slope @ v @ found.slope
    return found


def yielded(g: FloatArray, c: FloatArray, right: FloatArray) -> FloatArray:
    """(I - g c)^{-1} right; nearly infinite where the fit is not determined without the person."""
    slack = np.eye(g.shape[-1]) - g @ c
    try:
        return np.asarray(np.linalg.solve(slack, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.solve(slack + LEAST_SLACK * np.eye(g.shape[-1]), right))


def symmetric(blocks: FloatArray) -> FloatArray:
    """The mean of every block and its transpose."""
    return np.asarray(0.5 * (blocks + np.swapaxes(blocks, -1, -2)))


def _positive(blocks: FloatArray) -> FloatArray:
    """What lies below zero taken as zero."""
    if blocks.shape[-1] == 1:
        return np.maximum(blocks, 0.0)
    values, vectors = np.linalg.eigh(symmetric(blocks))
    scaled = vectors * np.maximum(values, 0.0)[:, None, :]
    return np.asarray(scaled @ np.swapaxes(vectors, 1, 2))


@dataclass(eq=False)
class State:
    """What is known of the persons of one size between rounds."""

    m: FloatArray
    kappa: FloatArray
    v: FloatArray
    force: FloatArray
    curvature: FloatArray
    found: ForceMoments | None = None


@dataclass(frozen=True, eq=False)
class PeopleCavity:
    """Where the rounds ended, size by size; ``inverse`` is Hbar^{-1}."""

    design: Design
    states: list[State]
    inverse: FloatArray
    rounds: int
    change: float
    converged: bool

    def sources(self, question: Question, fraction: float) -> list[FloatArray]:
        """The covariance of the persons' forces, beyond what Hbar carries in the pool."""
        if question == "population":
            return [fraction * state.found.square for state in self.states if state.found]
        return [_pooled(state, fraction) for state in self.states]

    def spread(self, sources: Sequence[FloatArray]) -> list[FloatArray]:
        """V of each person where the others' forces have these covariances."""
        pulls = [raised(state, source) for state, source in zip(self.states, sources, strict=True)]
        carried = self.inverse @ self.design.assembled(pulls) @ self.inverse
        found = []
        for block, state, t in zip(self.design.blocks, self.states, pulls, strict=True):
            g = block.within(self.inverse)
            reply = np.eye(block.size) + state.kappa @ state.curvature
            inner = block.within(carried) - g @ t @ g
            found.append(_positive(reply @ inner @ np.swapaxes(reply, 1, 2)))
        return found


def _pooled(state: State, fraction: float) -> FloatArray:
    found = state.found
    assert found is not None
    if fraction == 1.0:
        return np.zeros_like(found.square)
    mean = fraction * found.force
    linear = fraction**2 * (found.slope @ state.v @ found.slope)
    return _positive(fraction * found.square - mean[:, :, None] * mean[:, None, :] - linear)


def raised(state: State, t: FloatArray) -> FloatArray:
    """t' = (I + c kappa) t (I + kappa c)."""
    factor = np.eye(t.shape[-1]) + state.curvature @ state.kappa
    return np.asarray(factor @ t @ np.swapaxes(factor, 1, 2))


def solve_people(
    model: FittedModel,
    codes: Codes,
    fraction: float,
    *,
    plain: bool = False,
    start: PeopleCavity | None = None,
    tolerance: float | None = None,
) -> PeopleCavity:
    """Iterate the rounds until predictions, kappa and V stand still."""
    design = Design.of(model, fraction, codes)
    if tolerance is None:
        tolerance = QUADRATIC_TOLERANCE if design.quadratic else TOLERANCE
    theta = design.start
    if start is None:
        states = []
        for block in design.blocks:
            empty = np.zeros((len(block.units), block.size, block.size))
            z = block.predictions(theta)
            states.append(State(z, empty, empty, np.zeros_like(z), empty))
    else:
        states = [replace(state) for state in start.states]
        theta = _theta_of(start, design)
    change, rounds = np.inf, 0
    while change > tolerance and rounds < MAX_ROUNDS:
        rounds += 1
        for block, state in zip(design.blocks, states, strict=True):
            _renewed(block, state, block.predictions(theta), fraction, plain=plain)
        inverse = design.inverse([state.curvature for state in states])
        gradient = fraction * design.pulled([state.force for state in states])
        gradient = gradient + design.penalty[:, None] * theta
        step = (inverse @ gradient.T.reshape(-1)).reshape(design.outputs, -1).T
        moved = design.X @ step
        longest = float(np.max(np.abs(moved)))
        reach = np.inf
        if not design.quadratic:
            reach = design.longest_step * max(1.0, 0.25 * float(np.max(np.abs(design.X @ theta))))
        length = min(1.0, reach / max(longest, 1e-300))
        theta = theta - length * step
        kappas = []
        for block, state in zip(design.blocks, states, strict=True):
            state.m = state.m - length * block.predictions(step)
            g = block.within(inverse)
            kappas.append(symmetric(yielded(g, state.curvature, g)))
        before = [(state.kappa, state.v) for state in states]
        for state, kappa in zip(states, kappas, strict=True):
            state.kappa = kappa
        now = PeopleCavity(design, states, inverse, rounds, change, converged=False)
        spreads = now.spread([_pooled(state, fraction) for state in states])
        change = max(
            *(_change(old[0], new) for old, new in zip(before, kappas, strict=True)),
            *(_change(old[1], new) for old, new in zip(before, spreads, strict=True)),
            length * _size(moved) / _typical(spreads, design, theta, fraction),
        )
        # the last state is that of the last round, not one on the way to it
        relax = 1.0 if design.quadratic or rounds == 1 or change <= tolerance else RELAX
        for state, (kappa, v), spread in zip(states, before, spreads, strict=True):
            state.kappa = relax * state.kappa + (1.0 - relax) * kappa
            state.v = relax * spread + (1.0 - relax) * v
    for block, state in zip(design.blocks, states, strict=True):
        _renewed(block, state, block.predictions(theta), fraction, plain=plain)
    return PeopleCavity(design, states, inverse, rounds, change, change <= tolerance)


def _theta_of(start: PeopleCavity, design: Design) -> FloatArray:
    """Coefficients of a mean model that is near, by its predictions at the rows."""
    z = np.empty_like(design.target)
    for block, state in zip(design.blocks, start.states, strict=True):
        z[block.rows] = state.m.reshape(*block.rows.shape, design.outputs)
    return np.asarray(np.linalg.lstsq(design.X, z, rcond=None)[0])


def _renewed(block: Block, state: State, z: FloatArray, fraction: float, *, plain: bool) -> None:
    """Moments at m, one Newton step of m - f kappa E[F] = z, and the curvature c there."""
    found = _moments(block, state.m, state.v, state.kappa, state.force, plain=plain)
    away = state.m - fraction * (found.force[:, None, :] @ state.kappa)[:, 0] - z
    matrix = np.eye(block.size) - fraction * state.kappa @ found.slope
    away = np.asarray(np.linalg.solve(matrix, away[..., None])[..., 0])
    state.m = state.m - away
    state.force = found.force - (away[:, None, :] @ found.slope)[:, 0]
    slope = fraction * found.slope
    solved = np.linalg.solve(np.eye(block.size) - slope @ state.kappa, slope)
    state.curvature = symmetric(np.asarray(solved))
    state.found = replace(found, force=state.force)


def _change(old: FloatArray, new: FloatArray) -> float:
    """The largest relative change of a person's block, in the root mean square over persons."""
    change = np.sqrt(((new - old) ** 2).sum(axis=(1, 2)))
    size = np.sqrt((new**2).sum(axis=(1, 2)))
    # Where nothing is left of a spread that was there, the change is large, and still a number.
    floor = 1e-12 * float(np.max([size, change], initial=0.0)) + 1e-300
    return float(np.sqrt(np.mean((change / np.maximum(size, floor)) ** 2)))


def _size(moved: FloatArray) -> float:
    return float(np.sqrt(np.mean(moved**2)))


def _typical(
    spreads: Sequence[FloatArray], design: Design, theta: FloatArray, fraction: float
) -> float:
    """In whose units a step is small: the root mean variance, or the predictions' own."""
    if fraction == 1.0:
        return max(float(np.std(design.X @ theta)), 1e-300)
    total = sum(float(np.einsum("icc->", each)) for each in spreads)
    return float(np.sqrt(max(total / design.target.size, 1e-300)))


def one_step_out_of_people(model: FittedModel, codes: Codes) -> FloatArray:
    """Every row's prediction without its person, one Newton step from the fit: N, or N x classes.

    z_out = z + (I - g c)^{-1} g F with the blocks of the person; exact for the square loss.
    """
    design = Design.of(model, 1.0, codes)
    theta = design.start
    found = np.empty_like(design.target)
    for last in (False, True):
        # one step to the optimum first: of a kernel nothing is known yet
        slopes, forces = [], []
        for block in design.blocks:
            z = block.predictions(theta)[:, None]
            slopes.append(block.curvature(z)[:, 0])
            forces.append(block.force(z)[:, 0])
        inverse = design.inverse(slopes)
        if not last:
            gradient = design.pulled(forces) + design.penalty[:, None] * theta
            theta = theta - (inverse @ gradient.T.reshape(-1)).reshape(design.outputs, -1).T
    for block, c, force in zip(design.blocks, slopes, forces, strict=True):
        g = block.within(inverse)
        pushed = yielded(g, c, g @ force[..., None])[..., 0]
        z = block.predictions(theta) + pushed
        found[block.rows] = z.reshape(*block.rows.shape, design.outputs)
    return found if design.outputs > 1 else found[:, 0]
