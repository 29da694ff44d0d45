"""Units that join or leave a fit together, and what joining does to their predictions.

A unit is a record or a group of r records; with O outputs it has q = r O predictions.  Units of one
size are handled as stacks: vectors are B x q, matrices B x q x q, and with q = 1 all products are
those of plain arrays.  Without the unit the model predicts m + eps, eps ~ N(0, v), and yields kappa
per unit of force; if the unit joins, its predictions fall to the z with z + kappa F(z) = m + eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.single_fit.losses import (
    LOSSES,
    Codes,
    class_weights,
    contrasts,
    diagonal_yield,
    joined_move,
    one_hot,
    softmax,
    softmax_prox,
)
from leakscope.single_fit.problem import ConvexProblem

# Units with more predictions than this are pushed along their mean: they have no room for points.
MOST_SMOOTHED = 40
# Numbers that the points of some units take together.
AT_ONCE = 2_000_000
# Of points in turned frames: at least so many, and what turns them.
POINTS, SEED = 24, 20263
# Where the steps of several rows jointly end.
SETTLED = 1e-6
# A unit without which the fit is not determined has no slack; this much is left to it.
LEAST_SLACK = 1e-12


def times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of stacked matrices; of plain numbers where q = 1."""
    if left.shape[-1] == 1 and right.shape[-1] == 1 and left.shape[-2] == 1:
        return np.asarray(left * right)
    return np.asarray(left @ right)


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """matrix^{-1} right of stacked matrices; quotients where q = 1."""
    if matrix.shape[-1] == 1:
        return np.asarray(right / matrix)
    return np.asarray(np.linalg.solve(matrix, right))


def along(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """matrix vector, of stacks."""
    if matrix.shape[-1] == 1:
        return np.asarray(matrix[..., 0] * vector)
    return np.asarray((matrix @ vector[..., None])[..., 0])


def transposed(matrix: npt.NDArray[Any]) -> FloatArray:
    """Of the last two axes."""
    return np.swapaxes(matrix, -1, -2)


def symmetric(matrix: npt.NDArray[Any]) -> FloatArray:
    """The mean of every matrix and its transpose."""
    return matrix if matrix.shape[-1] == 1 else np.asarray(0.5 * (matrix + transposed(matrix)))


def unit_matrix(stack: FloatArray) -> FloatArray:
    """1 x q x q, to be added to a stack of matrices, in its precision."""
    return np.eye(stack.shape[-1], dtype=stack.dtype)[None]


def square_root(covariances: FloatArray) -> FloatArray:
    """R with R R' the covariance; what lies below zero by rounding is taken as zero."""
    size = covariances.shape[-1]
    if size == 1:
        return np.sqrt(np.maximum(covariances, 0.0))
    trace = np.einsum("icc->i", covariances) / size
    single = covariances.dtype == np.float32
    # Copies of a row, or few draws, leave a covariance singular; Cholesky's root is smooth in it.
    floor = (1e-5 if single else 1e-6) * trace + 1e-12 * np.median(trace)
    floor = floor + np.finfo(covariances.dtype).tiny
    return _root(covariances + floor[:, None, None] * np.eye(size, dtype=covariances.dtype))


def _root(covariances: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        if len(covariances) > 1:  # few fail: find them by halves
            middle = len(covariances) // 2
            return np.concatenate([_root(covariances[:middle]), _root(covariances[middle:])])
    values, vectors = np.linalg.eigh(covariances.astype(np.float64))
    values = np.maximum(values, 1e-9 * np.maximum(values[:, -1:], 1e-300))
    return np.asarray(vectors * np.sqrt(values)[:, None, :], dtype=covariances.dtype)


@lru_cache(maxsize=64)
def normal_points(size: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Points (S, q) and weights above zero (S,) with the moments of N(0, I).

    One and two dimensions: Gauss and Hermite's; up to seven: the rule of degree 5 by Mysovskikh;
    above: both ends of every axis of turned frames, at the radius of a normal; from `POINTS` on the
    corners of a simplex do, to degree 2.
    """
    if size <= 2:
        # 25 points are within 2e-5 of 441 on wine, 24 on a circle within 0.008 (advantages)
        x, weight = np.polynomial.hermite_e.hermegauss(nodes if size == 1 else min(nodes, 5))
        weight = weight / weight.sum()
        if size == 1:
            return x[:, None], weight
        grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
        return grid, np.outer(weight, weight).ravel()
    if size <= 7:
        return _mysovskikh(size)
    generator = Key(SEED, (17, size)).generator()
    if size >= POINTS:
        corners = np.linalg.qr(np.column_stack([np.ones(size + 1), np.eye(size + 1)[:, 1:]]))[0]
        frame = np.linalg.qr(generator.standard_normal((size, size)))[0]
        return np.sqrt(size + 1.0) * corners[:, 1:] @ frame, np.full(size + 1, 1.0 / (size + 1))
    points = []
    for _ in range(max(1, -(-POINTS // (2 * size)))):
        frame = np.sqrt(size) * np.linalg.qr(generator.standard_normal((size, size)))[0]
        points += [frame, -frame]
    found = np.concatenate(points)
    return found, np.full(len(found), 1.0 / len(found))


def _mysovskikh(n: int) -> tuple[FloatArray, FloatArray]:
    """Vertices of a simplex and the middles of its edges, with their mirror images."""
    centred = np.eye(n + 1) - 1.0 / (n + 1)
    vertices = centred @ np.linalg.qr(centred[:, :n])[0]
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    middles = [vertices[i] + vertices[j] for i in range(n + 1) for j in range(i)]
    middles = np.array(middles) / np.linalg.norm(middles, axis=1, keepdims=True)
    radius = np.sqrt(n + 2.0)
    scale = (n + 1.0) ** 2 * (n + 2.0) ** 2
    weights = [2.0 / (n + 2.0), 0.5 * n**2 * (7.0 - n) / scale, 2.0 * (n - 1.0) ** 2 / scale]
    groups = [np.zeros((1, n)), radius * vertices, -radius * vertices]
    groups += [radius * middles, -radius * middles]
    shares = [np.full(len(g), weights[w]) for g, w in zip(groups, (0, 1, 1, 2, 2), strict=True)]
    kept = np.concatenate(shares) > 0.0
    return np.concatenate(groups)[kept], np.concatenate(shares)[kept]


def sizes_of(codes: Codes) -> list[tuple[Codes, Codes]]:
    """The groups of each size (B,), and their rows (B, r); ``codes`` is each record's group."""
    members = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    alike = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes > 0])]
    return [(some, members[starts[some][:, None] + np.arange(sizes[some[0]])]) for some in alike]


@dataclass(frozen=True, eq=False)
class Stack:
    """B units of r rows: their numbers (B,), rows (B, r), and the rows' labels and weights.

    ``labels`` are (B, r, O), the classes' numbers (B, r, 1) where there are several.
    """

    units: Codes
    rows: Codes
    labels: FloatArray
    weights: FloatArray
    loss: str
    classes: int

    @classmethod
    def of(cls, problem: ConvexProblem, units: Codes, rows: Codes) -> Stack:
        """Some units of a problem."""
        labels = problem.y[rows].reshape(*rows.shape, -1)
        weights = problem.sample_weights[rows]
        return cls(units, rows, labels, weights, problem.loss, problem.classes)

    @property
    def outputs(self) -> int:
        """O."""
        return self.classes - 1 if self.loss == "softmax" else int(self.labels.shape[2])

    @property
    def size(self) -> int:
        """q."""
        return int(self.rows.shape[1]) * self.outputs

    @property
    def quadratic(self) -> bool:
        """Whether the predictions fall linearly."""
        return self.loss == "square"

    @property
    def class_row(self) -> bool:
        """Whether a unit is one row with several classes, whose yield may be a diagonal."""
        return self.loss == "softmax" and self.rows.shape[1] == 1

    @cached_property
    def basis(self) -> FloatArray:
        """C x (C - 1): what takes contrasts to logits."""
        return contrasts(self.classes)

    def some(self, part: slice | Codes) -> Stack:
        """Some of the units."""
        return replace(
            self,
            units=self.units[part],
            rows=self.rows[part],
            labels=self.labels[part],
            weights=self.weights[part],
        )

    def parts(self, points: int) -> Iterator[slice]:
        """Some units at a time."""
        step = max(1, AT_ONCE // (points * self.size * (1 if self.size == 1 else self.size + 4)))
        for start in range(0, len(self.units), step):
            yield slice(start, start + step)

    # Of predictions (B, S, q), all rows of a unit beside each other.

    def by_row(self, z: FloatArray) -> FloatArray:
        """(B, S, r, O)."""
        return z.reshape(*z.shape[:-1], self.rows.shape[1], self.outputs)

    def _targets(self) -> FloatArray:
        """(B, 1, r, O): labels, or of several classes the contrasts of e_y."""
        if self.loss == "softmax":
            return self.basis[self.labels[..., 0].astype(np.intp)][:, None]
        return self.labels[:, None]

    def value(self, z: FloatArray) -> FloatArray:
        """The summed loss of a unit's rows, (B, S)."""
        rows = self.by_row(z)
        if self.loss == "softmax":
            logits = rows @ self.basis.T
            top = logits.max(axis=-1, keepdims=True)
            loss = top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
            loss = loss - (self._targets() * rows).sum(axis=-1, keepdims=True)
        else:
            loss = LOSSES[self.loss].value(rows, self._targets())
        return np.asarray((self.weights[:, None, :, None] * loss).sum(axis=(2, 3)))

    def force(self, z: FloatArray) -> FloatArray:
        """(B, S, q)."""
        rows = self.by_row(z)
        if self.loss == "softmax":
            force = softmax(rows @ self.basis.T) @ self.basis - self._targets()
        else:
            force = LOSSES[self.loss].force(rows, self._targets())
        return np.asarray((self.weights[:, None, :, None] * force).reshape(z.shape))

    def curvature(self, z: FloatArray) -> FloatArray:
        """(B, S, q, q), zero between rows."""
        rows = self.by_row(z)
        count, points, size, outputs = rows.shape
        weights = self.weights[:, None, :, None]
        if self.loss == "softmax":
            p = softmax(rows @ self.basis.T)
            mean = p @ self.basis
            h = transposed(self.basis[..., :, :]) @ (p[..., None] * self.basis)
            h = weights[..., None] * (h - mean[..., :, None] * mean[..., None, :])
        else:
            h = (weights * LOSSES[self.loss].curvature(rows, self._targets()))[..., None]
            h = h * np.eye(outputs)
        if size == 1:
            return np.asarray(h[:, :, 0])
        whole = np.zeros((count, points, size, outputs, size, outputs))
        place = np.arange(size)
        # advanced indices come first: rows, units, points, outputs
        whole[:, :, place, :, place, :] = np.moveaxis(h, 2, 0)
        return np.asarray(whole.reshape(count, points, size * outputs, size * outputs))

    def joined(self, m: FloatArray, kappa: FloatArray, force: FloatArray, z: FloatArray) -> Joined:
        """Where predictions m (B, S, q) fall when the unit joins.

        ``force`` and ``z``, (B, q), are those of a model on average: where to begin, and where the
        classes are weighed.
        """
        if self.quadratic:
            h = self.curvature(m[:, :1])[:, 0]
            slope = solved(unit_matrix(h) + times(h, kappa), h)
            pull = (m - self._targets().reshape(len(m), 1, -1)) @ transposed(slope)
            return Joined(m - pull @ kappa, pull, slope[:, None])
        if self.size == 1:
            loss, y, w = LOSSES[self.loss], self.labels[:, :, 0], self.weights
            k = kappa[:, :, 0]
            fallen = loss.prox(m[..., 0], k * w, y)
            h = w * loss.curvature(fallen, y)
            pull = w * loss.force(fallen, y)
            return Joined(fallen[..., None], pull[..., None], (h / (1.0 + k * h))[..., None, None])
        if self.class_row:
            return self._joined_classes(m, kappa, z)
        return self.joined_exactly(m, kappa, force)

    def _joined_classes(self, m: FloatArray, kappa: FloatArray, z: FloatArray) -> Joined:
        """One row with several classes, by the diagonal yield: O(C) a step."""
        kind = m.dtype
        B = self.basis.astype(kind)
        k = diagonal_yield(B @ kappa @ B.T, softmax(z @ B.T)).astype(kind)
        w = self.weights[:, :, None].astype(kind)
        kw = k[:, None] * w
        target = one_hot(self.labels[:, 0, 0].astype(np.intp), self.classes, kind)[:, None]
        logits = m @ B.T
        first = logits[:, :1]
        centre = softmax_prox(first, kw, target, first - 0.5 * kw * (softmax(first) - target))
        start = centre
        if m.shape[1] > 1:
            p = softmax(centre)
            start = centre + joined_move(p, kw * p, logits - first)
        fallen = softmax_prox(logits, kw, target, start)
        p = softmax(fallen)
        return Joined(fallen @ B, w * (p - target) @ B, None, class_weights(p, k[:, None], w))

    @np.errstate(over="ignore", invalid="ignore")
    def joined_exactly(self, m: FloatArray, kappa: FloatArray, force: FloatArray) -> Joined:
        """Several rows jointly: z = m - kappa a with a = F(z), where a'kappa a/2 + l(z) is least.

        Steps with one matrix a unit, then damped Newton steps of what has not settled.
        """
        centre = m.mean(axis=1, keepdims=True)
        a = np.repeat(force[:, None], m.shape[1], axis=1)
        h = self.curvature(centre - a[:, :1] @ kappa)[:, 0]
        matrix = transposed(np.linalg.inv(unit_matrix(h) + h @ kappa))
        z = m - a @ kappa
        for _ in range(6):
            a = a + (self.force(z) - a) @ matrix
            new = m - a @ kappa
            moved = np.abs(new - z).max(axis=-1)
            z = new
            if not np.isfinite(moved).all() or float(moved.max()) <= SETTLED:
                break
        unit, point = np.nonzero(~(moved <= SETTLED))
        if len(unit):
            z[unit, point] = self.some(unit)._damped(m[unit, point], kappa[unit], force[unit])
        return Joined(z, self.force(z), None)

    def _damped(self, m: FloatArray, kappa: FloatArray, a: FloatArray) -> FloatArray:
        """The z of pairs (P, q), by Newton steps halved where they do not lower the objective."""
        z, cost = self._objective(m, kappa, a)
        left = np.arange(len(m))
        for _ in range(100):
            some = self.some(left)
            k, here = kappa[left], z[left]
            h = some.curvature(here[:, None])[:, 0]
            excess = some.force(here[:, None])[:, 0] - a[left]
            step = np.linalg.solve(unit_matrix(h) + h @ k, excess[..., None])[..., 0]
            length = np.ones(len(left))
            for _ in range(30):
                there = a[left] + length[:, None] * step
                new, lower = some._objective(m[left], k, there)
                worse = ~(lower <= cost[left] + 1e-12 * (1.0 + np.abs(cost[left])))
                if not worse.any():
                    break
                length = np.where(worse, 0.5 * length, length)
            moved = np.abs(new - here).max(axis=-1)
            a[left], z[left], cost[left] = there, new, lower
            left = left[moved > SETTLED * (1.0 + np.abs(new).max(axis=-1))]
            if not len(left):
                break
        return z

    def _objective(
        self, m: FloatArray, kappa: FloatArray, a: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        pushed = (a[:, None] @ kappa)[:, 0]
        z = m - pushed
        return z, 0.5 * (a * pushed).sum(axis=-1) + self.value(z[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class Joined:
    """Where predictions fall, (B, S, q), and the force there.

    ``slopes`` (B, S, q, q) are dF/dm, (B, 1, q, q) where they are one, None where they are not
    known; ``class_weights`` (B, S, C) stand for them, diag(a) - a a'/sum(a) of logits.
    """

    z: FloatArray
    force: FloatArray
    slopes: FloatArray | None
    class_weights: FloatArray | None = None

    def slope(self, stack: Stack, kappa: FloatArray, shares: FloatArray) -> FloatArray:
        """E[dF/dm], (B, q, q), over points with these shares."""
        if self.class_weights is not None:
            a, B = self.class_weights, stack.basis.astype(self.z.dtype)
            scaled = (
                a @ B * np.sqrt(shares[:, None] / np.maximum(a.sum(axis=-1, keepdims=True), 1e-300))
            )
            diagonal = np.einsum("s,usc->uc", shares, a)
            return symmetric(B.T @ (diagonal[..., None] * B) - transposed(scaled) @ scaled)
        slopes = self.slopes
        if slopes is None:
            h = stack.curvature(self.z)
            slopes = np.asarray(np.linalg.solve(np.eye(stack.size) + h @ kappa[:, None], h))
        if slopes.shape[1] == 1:
            return symmetric(slopes[:, 0])
        return symmetric(np.einsum("s,usij->uij", shares, slopes))


@dataclass(frozen=True, eq=False)
class State:
    """What is known of the units of a stack between rounds.

    Attributes
    ----------
    z, m, v, kappa
        The mean model's predictions; those without the unit, their covariance and the yield.
    force, square
        E[F] and E[FF'] of the unit's force when it is in.
    c, t
        The curvature in Hbar, and the covariance t' in the variance, that the unit stands for.
    slope, explained
        E[dF/dm], and the part of E[FF'] of the mean and of what is linear in eps.
    missed
        How far the last round's m was from its equation.
    """

    z: FloatArray
    m: FloatArray
    v: FloatArray
    kappa: FloatArray
    force: FloatArray
    square: FloatArray
    c: FloatArray
    t: FloatArray
    slope: FloatArray
    explained: FloatArray
    missed: FloatArray

    def source(self, fraction: float, *, fresh: bool) -> FloatArray:
        """t: the covariance of the unit's force, beyond what Hbar carries in a pool."""
        if fresh:
            return fraction * self.square
        if fraction == 1.0:
            return np.zeros_like(self.square)
        t = fraction * self.square - fraction**2 * self.explained
        return np.maximum(t, 0.0) if t.shape[-1] == 1 else t

    def amplified(self, t: FloatArray) -> FloatArray:
        """t' = (I + c kappa) t (I + kappa c)."""
        factor = unit_matrix(t) + times(self.c, self.kappa)
        return times(times(factor, t), transposed(factor))


def nodes_for(v: FloatArray) -> int:
    """How many nodes stand for a normal law in one dimension, by the widest of the spreads."""
    widest = float(np.sqrt(np.max(np.einsum("icc->ic", v), initial=0.0)))
    return 3 if widest < 0.05 else 5 if widest < 0.8 else 9


def renewed(
    stack: Stack,
    m: FloatArray,
    v: FloatArray,
    kappa: FloatArray,
    z: FloatArray,
    force: FloatArray,
    fraction: float,
    *,
    plain: bool = False,
) -> State:
    """The moments of the force where the predictions without the unit are N(m, v).

    With one Newton step of m - f kappa E[F] = z, and what the unit stands for in Hbar and in the
    variance.  ``plain`` takes the mean for the law, which is exact for the square loss.
    """
    plain = plain or stack.quadratic or stack.size > MOST_SMOOTHED or not np.any(v)
    points, shares = np.zeros((1, stack.size)), np.ones(1)
    if not plain:
        points, shares = normal_points(stack.size, nodes_for(v))
        root = square_root(v)
    mean, slope, square, linear = (np.empty_like(part) for part in (m, v, v, v))
    points, shares = points.astype(m.dtype), shares.astype(m.dtype)
    for part in stack.parts(len(points)):
        some, k = stack.some(part), kappa[part]
        without = m[part, None]
        if not plain:
            without = without + points @ transposed(root[part])
        fallen = some.joined(without, k, force[part], z[part])
        pull = fallen.force
        weighted = pull * shares[:, None]
        mean[part] = weighted.sum(axis=1)
        square[part] = transposed(weighted) @ pull
        slope[part] = fallen.slope(some, k, shares)
        if plain:
            linear[part] = times(times(slope[part], v[part]), slope[part])
            square[part] += linear[part]
            continue
        # by regression on the points, so that what is left of the covariance stays positive
        moved = transposed(weighted) @ points
        linear[part] = times(moved, transposed(moved))
    explained = linear + mean[:, :, None] * mean[:, None, :]
    missed = m - fraction * along(kappa, mean) - z
    ahead = unit_matrix(slope) - fraction * times(kappa, slope)
    missed = solved(ahead, missed[..., None])[..., 0]
    mean = mean - along(slope, missed)
    c = symmetric(fraction * solved(transposed(ahead), slope))
    state = State(
        z, m - missed, v, kappa, mean, square, c, np.zeros_like(v), slope, explained, missed
    )
    return replace(state, t=state.amplified(state.source(fraction, fresh=False)))
