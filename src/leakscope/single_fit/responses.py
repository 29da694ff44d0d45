"""How a model answers to forces on its records: G = X Hbar^{-1} X', which is never formed.

Hbar = sum_R X_R' c_R X_R + Lambda.  There are three forms.  *Features*: coefficients with a dense
Hessian, any outputs and groups.  *Function space*, for one output of kernels and of designs with
more columns than records: with B = I + c^{1/2} K c^{1/2}, K the kernel over its penalty, G is
c^{-1/2} (I - B^{-1}) c^{-1/2}, so that 1 - c_i g_i is [B^{-1}]_ii without a cancellation.
*Structured*, for many classes with many features (`structured`).

What all three answer: a Newton step, each unit's own block g of G, the sums over the others of
G_ij t_j G_ij', and rows of G.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.single_fit.losses import Codes, contrasts
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.units import LEAST_SLACK, Stack, sizes_of, symmetric, times, transposed

# Numbers of a design that are handled at once: they stay in the cache.
AT_ONCE = 500_000
# Coefficients up to which a Hessian is inverted.
DENSE = 2500
# Eigenvalues of a kernel below this share of the largest are rounding.
LEAST_EIGENVALUE = 1e-12
# A record with no curvature left would divide by zero; this share of the largest changes nothing.
LEAST_CURVATURE = 1e-12

# Arrays of all units x q x q that are there at once, as measured.
BLOCKS_AT_ONCE = 22

Stacked = list[FloatArray]


def spd_inverse(matrix: FloatArray, name: str) -> FloatArray:
    """The inverse of a positive definite matrix, scaled to a unit diagonal on the way."""
    diagonal = np.diagonal(matrix)
    if np.any(diagonal <= 0.0):
        column = int(np.argmin(diagonal))
        raise InputError(f"{name}: column {column} is zero and not penalised; drop it.")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = matrix * scale[:, None] * scale
    try:
        factor = linalg.cholesky(scaled, lower=True, check_finite=False)
        pivot = float(np.min(np.diagonal(factor)))
    except linalg.LinAlgError:
        pivot = 0.0
    if pivot < 1e-7:
        raise InputError(
            f"{name}: some columns that are not penalised are combinations of the others (a "
            "constant column beside an intercept, a repeated column), so the coefficients are not "
            "determined; drop them or add a penalty."
        )
    inverse = linalg.cho_solve((factor, True), np.eye(len(matrix)), check_finite=False)
    return np.asarray(0.5 * (inverse + inverse.T) * scale[:, None] * scale)


def gram(X: FloatArray, blocks: FloatArray) -> FloatArray:
    """sum_R X_R' block_R X_R of X (B, r, d) and blocks (B, q, q); entry (a, o) at o d + a."""
    count, size, d = X.shape
    outputs = blocks.shape[1] // size
    split = blocks.reshape(count, size, outputs, size, outputs)
    total = np.zeros((outputs * d, outputs * d))
    step = max(1, AT_ONCE // (size * d))
    for start in range(0, count, step):
        rows = X[start : start + step]
        flat = rows.reshape(-1, d)
        for a in range(outputs):
            for b in range(a + 1):
                part = split[start : start + step, :, a, :, b]
                weighted = part * rows if size == 1 else part @ rows
                product = weighted.reshape(-1, d).T @ flat
                total[a * d : (a + 1) * d, b * d : (b + 1) * d] += product.T
                if a != b:
                    total[b * d : (b + 1) * d, a * d : (a + 1) * d] += product
    return np.asarray(0.5 * (total + total.T))


def within(X: FloatArray, matrix: FloatArray, outputs: int) -> FloatArray:
    """X_R matrix X_R' of every unit, (B, q, q), of X (B, r, d)."""
    count, size, d = X.shape
    blocks = np.empty((count, size, outputs, size, outputs))
    step = max(1, AT_ONCE // (size * d))
    for start in range(0, count, step):
        rows = X[start : start + step]
        flat = rows.reshape(-1, d)
        for a in range(outputs):
            for b in range(a + 1):
                part = np.ascontiguousarray(matrix[a * d : (a + 1) * d, b * d : (b + 1) * d])
                moved = (flat @ part).reshape(rows.shape)
                if size == 1:
                    own = np.einsum("urd,urd->u", moved, rows)[:, None, None]
                else:
                    own = moved @ transposed(rows)
                blocks[start : start + step, :, a, :, b] = own
                if a != b:
                    blocks[start : start + step, :, b, :, a] = transposed(own)
    return symmetric(blocks.reshape(count, size * outputs, size * outputs))


@dataclass(frozen=True, eq=False)
class Features:
    """A design of d columns with O outputs; coefficients are d x O.

    ``X`` has the rows of every stack, (B, r, d).
    """

    stacks: tuple[Stack, ...]
    X: tuple[FloatArray, ...]
    penalty: FloatArray
    outputs: int
    start: FloatArray
    name: str
    rounds_held: int = 1
    rows_allowed: float = np.inf
    bound_factor: float = 1.0
    tolerance: float = 0.0
    exact: bool = True
    plain_rounds: int = 0

    @cached_property
    def single(self) -> tuple[npt.NDArray[np.float32], ...]:
        """All rows of every stack, for what needs no digits."""
        return tuple(X.reshape(-1, X.shape[2]).astype(np.float32) for X in self.X)

    @classmethod
    def of(
        cls,
        problem: ConvexProblem,
        fraction: float,
        stacks: tuple[Stack, ...],
        *,
        columns: bool = False,
    ) -> Features:
        """Of a problem whose penalty is that of a share of the records.

        ``columns`` keeps the columns of the design, however many there are.
        """
        if columns and problem.X is not None:
            X, penalty = problem.X, problem.penalty_at(fraction)
        else:
            X, penalty = design_of(problem, fraction)
        outputs = problem.outputs
        start = np.zeros((X.shape[1], outputs))
        if X is problem.X and problem.coefficients is not None:
            start = np.array(problem.coefficients, dtype=np.float64).reshape(X.shape[1], -1)
            if problem.loss == "softmax":
                start = start @ contrasts(problem.classes)
        width = outputs * X.shape[1]
        blocks = sum(len(stack.units) * stack.size**2 for stack in stacks)
        require_memory(
            8 * (4 * width**2 + 4 * X.size + BLOCKS_AT_ONCE * blocks),
            f"The laws of {len(X)} records with {width} coefficients",
            "use fewer records or features",
        )
        every = np.arange(len(X))
        rows = tuple(
            X[:, None] if np.array_equal(stack.rows[:, :1], every[:, None]) else X[stack.rows]
            for stack in stacks
        )
        return cls(stacks, rows, penalty, outputs, start, problem.name)

    def predict(self, theta: FloatArray) -> Stacked:
        """X theta of every stack, (B, q)."""
        return [(X @ theta).reshape(len(X), -1) for X in self.X]

    def pulled(self, forces: Sequence[FloatArray]) -> FloatArray:
        """X' F, d x O, of forces (B, q)."""
        total = np.zeros_like(self.start)
        for X, force in zip(self.X, forces, strict=True):
            total += X.reshape(-1, X.shape[2]).T @ force.reshape(-1, self.outputs)
        return total

    def gram(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """sum_R X_R' block_R X_R."""
        parts = [gram(X, block) for X, block in zip(self.X, blocks, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    def within(self, matrix: FloatArray) -> Stacked:
        """X_R matrix X_R' of every unit."""
        return [within(X, matrix, self.outputs) for X in self.X]

    def respond(self, c: Sequence[FloatArray]) -> FeatureResponse:
        """The response at curvatures c."""
        hessian = self.gram(c)
        index = np.arange(len(hessian))
        hessian[index, index] += np.tile(self.penalty, self.outputs)
        return FeatureResponse(self, list(c), spd_inverse(hessian, self.name))


@dataclass(frozen=True, eq=False)
class FeatureResponse:
    """Hbar^{-1} at some curvatures."""

    route: Features
    c: Stacked
    inverse: FloatArray

    def solve(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, (..., d, O)."""
        swapped = np.swapaxes(gradient, -1, -2)
        flat = swapped.reshape(*gradient.shape[:-2], -1) @ self.inverse
        return np.asarray(np.swapaxes(flat.reshape(swapped.shape), -1, -2))

    def step(self, forces: Sequence[FloatArray], theta: FloatArray) -> FloatArray:
        """The Newton step that forces (B, q) and the penalty ask for at theta."""
        penalty = self.route.penalty[:, None]
        gradient = self.route.pulled(forces) + penalty * theta
        step = self.solve(gradient)
        # one step of refinement: the inverse alone loses digits where the columns' scales differ
        moved = self.route.predict(step)
        bent = [(h @ z[..., None])[..., 0] for h, z in zip(self.c, moved, strict=True)]
        step = step + self.solve(gradient - self.route.pulled(bent) - penalty * step)
        return np.asarray(-step)

    def leverage(self) -> Stacked:
        """g of every unit."""
        return self.route.within(self.inverse)

    def slack(self, g: Stacked, c: Sequence[FloatArray]) -> Stacked:
        """I - g c of every unit, not quite singular."""
        return [_slack(own, curvature) for own, curvature in zip(g, c, strict=True)]

    def carried(self, t: Sequence[FloatArray]) -> FloatArray:
        """Hbar^{-1} (sum_R X_R' t_R X_R) Hbar^{-1}."""
        return np.asarray(self.inverse @ self.route.gram(t) @ self.inverse)

    def others(self, t: Sequence[FloatArray], g: Stacked, *, last: bool = False) -> Stacked:
        """The sums over the others of G_ij t_j G_ij'; exact whether they are the last or not."""
        every = self.route.within(self.carried(t))
        return [_others(whole, own, part) for whole, own, part in zip(every, g, t, strict=True)]

    def lifted(self, stack: int, units: Codes, directions: FloatArray) -> FloatArray:
        """Hbar^{-1} X_R' direction of some units of a stack, k x (O d)."""
        X = self.route.X[stack][units]
        split = directions.reshape(len(X), X.shape[1], self.route.outputs)
        return np.asarray((transposed(split) @ X).reshape(len(X), -1) @ self.inverse)

    def rows(self, stack: int, units: Codes, directions: FloatArray) -> Iterator[FloatArray]:
        """direction' G_ij of some units i of a stack, for all j of each stack: k x B x q."""
        reach = self.lifted(stack, units, directions).astype(np.float32)
        reach = reach.reshape(len(units), self.route.outputs, -1)
        for X, flat in zip(self.route.X, self.route.single, strict=True):
            if self.route.outputs == 1:
                yield np.asarray((reach[:, 0] @ flat.T).reshape(len(units), len(X), -1))
            else:
                met = np.tensordot(reach, flat, axes=(2, 1))  # units, outputs, rows
                yield np.asarray(transposed(np.asarray(met)).reshape(len(units), len(X), -1))


def _slack(g: FloatArray, c: FloatArray) -> FloatArray:
    if g.shape[-1] == 1:
        return np.maximum(1.0 - g * c, LEAST_SLACK)
    slack = np.eye(g.shape[-1]) - g @ c
    singular = np.abs(np.linalg.det(slack)) < LEAST_SLACK ** min(g.shape[-1], 2)
    slack[singular] += 1e2 * LEAST_SLACK * np.eye(g.shape[-1])
    return np.asarray(slack)


def _others(whole: FloatArray, g: FloatArray, t: FloatArray) -> FloatArray:
    found = whole - times(times(g, t), g)
    return np.maximum(found, 0.0) if found.shape[-1] == 1 else symmetric(found)


def design_of(problem: ConvexProblem, fraction: float) -> tuple[FloatArray, FloatArray]:
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
class FunctionSpace:
    """Records with one output under a kernel; the predictions stand for the coefficients."""

    stacks: tuple[Stack, ...]
    kernel: FloatArray
    start: FloatArray
    name: str
    outputs: int = 1
    rounds_held: int = 1
    rows_allowed: float = np.inf
    bound_factor: float = 1.0
    tolerance: float = 0.0
    exact: bool = True
    plain_rounds: int = 0

    @classmethod
    def of(
        cls, problem: ConvexProblem, fraction: float, stacks: tuple[Stack, ...]
    ) -> FunctionSpace:
        """Of a problem whose penalty is that of a share of the records."""
        size = problem.records
        require_memory(
            3 * 8 * size * size, f"The laws of {size} records under a kernel", "use fewer records"
        )
        start = np.zeros((size, 1))
        if problem.X is not None and problem.coefficients is not None:
            start[:, 0] = problem.X @ problem.coefficients
        return cls(stacks, problem.kernel_at(fraction), start, problem.name)

    def predict(self, z: FloatArray) -> Stacked:
        """The predictions themselves."""
        return [z]

    def respond(self, c: Sequence[FloatArray]) -> FunctionResponse:
        """The response at curvatures c."""
        curvature = np.maximum(c[0][:, 0, 0], LEAST_CURVATURE * float(np.max(c[0])))
        root = np.sqrt(curvature)
        matrix = self.kernel * root * root[:, None]
        matrix[np.diag_indices_from(matrix)] += 1.0
        try:
            factor = cholesky.factorise(matrix, overwrite=True)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{self.name}: the kernel matrix is not positive semidefinite, so there is no "
                "convex problem to solve; use a valid kernel."
            ) from None
        inverse = np.ascontiguousarray(cholesky.inverse(factor, overwrite=True).full())
        return FunctionResponse(self, [curvature[:, None, None]], inverse, root)


@dataclass(frozen=True, eq=False)
class FunctionResponse:
    """B^{-1} at some curvatures, and their roots."""

    route: FunctionSpace
    c: Stacked
    inverse: FloatArray
    root: FloatArray

    def step(self, forces: Sequence[FloatArray], z: FloatArray) -> FloatArray:
        """The Newton step of the predictions."""
        root = self.root
        dual = root * (self.inverse @ (root * z[:, 0] - forces[0][:, 0] / root))
        return np.asarray((self.route.kernel @ dual)[:, None] - z)

    def leverage(self) -> Stacked:
        """g of every record."""
        return [((1.0 - np.diagonal(self.inverse)) / self.root**2)[:, None, None]]

    def slack(self, g: Stacked, c: Sequence[FloatArray]) -> Stacked:
        """1 - g c of every record."""
        return [np.diagonal(self.inverse)[:, None, None].copy()]

    def others(self, t: Sequence[FloatArray], g: Stacked, *, last: bool = False) -> Stacked:
        """The sums over the others of G_ij^2 t_j."""
        share = t[0][:, 0, 0] / self.root**2
        total = np.empty(len(share))
        for start in range(0, len(share), 512):
            part = slice(start, start + 512)
            total[part] = (self.inverse[part] ** 2) @ share
        total = (total - np.diagonal(self.inverse) ** 2 * share) / self.root**2
        return [np.maximum(total, 0.0)[:, None, None]]

    def rows(self, stack: int, units: Codes, directions: FloatArray) -> Iterator[FloatArray]:
        """The rows of G of some records times their directions, k x N x 1."""
        block = -self.inverse[units] / self.root / self.root[units, None]
        own = (1.0 - np.diagonal(self.inverse)[units]) / self.root[units] ** 2
        block[np.arange(len(units)), units] = own
        yield (block * directions)[:, :, None]


def stacks_of(problem: ConvexProblem, groups: Codes | None) -> tuple[Stack, ...]:
    """The units of a problem by their sizes; records where there are no groups."""
    every = np.arange(problem.records)
    alike = [(every, every[:, None])] if groups is None else sizes_of(groups)
    return tuple(Stack.of(problem, units, rows) for units, rows in alike)
