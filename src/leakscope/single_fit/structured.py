"""The response of many classes with many features: no matrix of (C d)^2 entries.

A curvature block c_j has a zero row sum and is close to diag(a_j) - a_j a_j'/sum(a_j), exactly so
where the yield is diagonal; a_j is chosen to keep its diagonal.  Then

    Hbar = D - Phi Phi',   D block-diagonal over the classes (d x d each),   Phi = [x_j (x) phi_j],

phi_j = a_j / sqrt(sum a_j), and Woodbury's identity needs one N x N factorisation of
I - Phi' D^{-1} Phi instead of one of order C d.  A leverage block is its class-diagonal part,
exactly, plus the covariance of X D^{-1} Phi L^{-T} zeta over normal zeta; a variance block is the
covariance of the predictions that forces of variance t_j make.  Both are estimated from draws: the
class-diagonal part carries most of the leverage, so that the draws' noise touches only the rest.
All of it is in single precision: the laws are wanted to a per cent, not to 1e-7.  Predictions and
forces are N x C x M with M draws side by side, coefficients d x C x M, so that each pass over the
records is one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.single_fit.losses import Codes, contrasts
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import BLOCKS_AT_ONCE
from leakscope.single_fit.units import Stack, square_root, symmetric, transposed

# float32; typed loosely, because what is shared with the other routes says float64.
SingleArray = npt.NDArray[Any]

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = linalg.blas
_lapack: Any = linalg.lapack

# Couplings below this are left out of Phi; they enter K squared.
COUPLED = 0.03
# Records whose curvature in a class is below this share of the largest are far from it: they enter
# the class's Gram matrix by their mean second moment.
CURVED = 3e-3
# Draws for the coupled part of the leverages, for the variances in the rounds and for the last
# ones, and how many are made at once.
LEVERAGE_DRAWS, ROUND_DRAWS, LAST_DRAWS, TOGETHER = 64, 16, 192, 32
SEED = 20261
# Rounds with one factorisation, which costs as much as many steps with it.
HELD = 3
# V per record, whose draws alone are off by more.
TOLERANCE = 0.1
# Each row of G is solved for, so that few are looked at; totals are drawn, and off by so much.
ROWS_ALLOWED, DRAWN = 64, 1.5


@dataclass(frozen=True, eq=False)
class Structured:
    """A design in single precision for contrasts of many classes; coefficients are d x (C - 1)."""

    stacks: tuple[Stack, ...]
    X: SingleArray
    penalty: FloatArray
    start: FloatArray
    classes: int
    rounds_held: int = HELD
    rows_allowed: float = ROWS_ALLOWED
    bound_factor: float = DRAWN
    tolerance: float = TOLERANCE
    exact: bool = False
    plain_rounds: int = HELD + 1

    @classmethod
    def of(cls, problem: ConvexProblem, fraction: float, stacks: tuple[Stack, ...]) -> Structured:
        """Of a problem whose penalty is that of a share of the records."""
        X, size, classes = problem.X, problem.records, problem.classes
        assert X is not None
        require_memory(
            BLOCKS_AT_ONCE * 8 * size * classes**2 + 4 * 8 * size**2 + 4 * X.nbytes,
            f"The laws of {size} records in {classes} classes",
            "use fewer records",
        )
        start = np.zeros((X.shape[1], classes - 1))
        if problem.coefficients is not None:
            start = problem.coefficients @ contrasts(classes)
        penalty = problem.penalty_at(fraction)
        return cls(stacks, X.astype(np.float32), penalty, start, classes, rows_allowed=ROWS_ALLOWED)

    def predict(self, theta: FloatArray) -> list[FloatArray]:
        """The contrasts of every record."""
        return [np.asarray(self.X @ theta.astype(np.float32))]

    def respond(self, c: Sequence[FloatArray]) -> StructuredResponse:
        """The response at curvatures c, of which the diagonals in logits count."""
        basis = contrasts(self.classes)
        diagonal = np.einsum("ca,iab,cb->ic", basis, c[0], basis, optimize=True)
        return StructuredResponse.at(self, diagonal)


@dataclass(frozen=True, eq=False)
class StructuredResponse:
    """The factors of Hbar at some curvatures.

    Attributes
    ----------
    inverses
        D_c^{-1}.
    phi
        The couplings, N x C.
    factor
        R with R'R = I - Phi' D^{-1} Phi, upper triangular.
    blocks
        The leverages g_i in contrasts.
    """

    route: Structured
    inverses: SingleArray
    phi: SingleArray
    factor: SingleArray
    blocks: FloatArray

    @classmethod
    def at(cls, route: Structured, diagonal: FloatArray) -> StructuredResponse:
        """Factorise at curvatures with this diagonal (N x C)."""
        X = route.X
        size, classes = diagonal.shape
        a = coupled_diagonal(diagonal).astype(np.float32)
        phi = a / np.sqrt(np.maximum(a.sum(axis=1, keepdims=True), 1e-30))
        free = np.where(route.penalty == 0.0, 1e-3 * float(a.sum(axis=0).mean()), 0.0)
        penalty = (route.penalty + free).astype(np.float32)
        inverses = np.empty((classes, X.shape[1], X.shape[1]), dtype=np.float32)
        own = np.empty((size, classes), dtype=np.float32)
        matrix = np.eye(size, dtype=np.float32)
        every = _blas.ssyrk(1.0 / size, X.T)
        largest = a.max(axis=0)
        far = np.empty((classes, size), dtype=np.bool_)
        for label in range(classes):
            near = (a[:, label] > CURVED * largest[label]) | (phi[:, label] > COUPLED)
            rows = np.flatnonzero(near)
            rest = float(a[~near, label].sum())
            inverses[label], half = _halved(X[rows], a[rows, label], rest * every, penalty)
            own[rows, label] = np.einsum("ia,ia->i", half, half)
            far[label] = ~near
            there = phi[rows, label] > COUPLED
            if there.any():
                part = half[there] * phi[rows, label][there, None]
                _subtract(matrix, rows[there], _blas.ssyrk(1.0, part.T, trans=1, lower=1))
        _fill(own, far, X, inverses, every)
        # the lower triangle by rows is the upper one by columns, which LAPACK takes in place
        made = cls(route, inverses, phi, _upper(matrix.T), np.empty(0))
        blocks = made._coupled_leverage()
        blocks[:, np.arange(classes), np.arange(classes)] += own
        basis = contrasts(classes).astype(np.float32)
        object.__setattr__(made, "blocks", symmetric(basis.T @ blocks @ basis))
        return made

    def _coupled_leverage(self) -> SingleArray:
        size, classes = self.phi.shape
        total: SingleArray = np.zeros((size, classes, classes), dtype=np.float32)
        for number, count in _batches(LEVERAGE_DRAWS):
            zeta = _normals((1, number), (size, count))
            zeta = linalg.solve_triangular(self.factor, zeta, check_finite=False)
            moved = self._predictions(self._diagonal_solve(self._pulled(self._coupling(zeta))))
            total += moved @ np.swapaxes(moved, 1, 2)
        total /= LEVERAGE_DRAWS
        return np.asarray(total)

    def _coupling(self, zeta: SingleArray) -> SingleArray:
        """The forces phi_j zeta_j, N x C x M."""
        return np.asarray(self.phi[:, :, None] * zeta[:, None, :])

    def _pulled(self, force: SingleArray) -> SingleArray:
        """X' force, d x C x M."""
        flat = self.route.X.T @ force.reshape(len(force), -1)
        return np.asarray(flat.reshape(-1, *force.shape[1:]))

    def _diagonal_solve(self, right: SingleArray) -> SingleArray:
        """D^{-1} right, d x C x M."""
        solved = self.inverses @ np.ascontiguousarray(np.swapaxes(right, 0, 1))
        return np.ascontiguousarray(np.swapaxes(solved, 0, 1))

    def _predictions(self, theta: SingleArray) -> SingleArray:
        """X theta as N x C x M."""
        moved = self.route.X @ theta.reshape(len(theta), -1)
        return np.asarray(moved.reshape(-1, *theta.shape[1:]))

    def _solve(self, right: SingleArray) -> SingleArray:
        """Hbar^{-1} right, d x C x M."""
        first = self._diagonal_solve(right)
        inner = (self.phi[:, None, :] @ self._predictions(first))[:, 0, :]
        inner = linalg.cho_solve((self.factor, False), inner, check_finite=False)
        first += self._diagonal_solve(self._pulled(self._coupling(inner)))
        return first

    # What every response answers, in contrasts.

    @property
    def _basis(self) -> SingleArray:
        return contrasts(self.route.classes).astype(np.float32)

    def solve(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, d x (C - 1)."""
        right = gradient.astype(np.float32) @ self._basis.T
        solved = self._solve(np.ascontiguousarray(right)[:, :, None])[:, :, 0]
        return np.asarray(solved @ self._basis, dtype=np.float64)

    def step(self, forces: Sequence[FloatArray], theta: FloatArray) -> FloatArray:
        """The Newton step that forces and the penalty ask for at theta."""
        pulled = (self.route.X.T @ forces[0].astype(np.float32)).astype(np.float64)
        return -self.solve(pulled + self.route.penalty[:, None] * theta)

    def leverage(self) -> list[FloatArray]:
        """g of every record."""
        return [self.blocks]

    def slack(self, g: list[FloatArray], c: Sequence[FloatArray]) -> list[FloatArray]:
        """I - g c of every record."""
        return [np.eye(c[0].shape[-1], dtype=c[0].dtype) - g[0] @ c[0]]

    def others(
        self, t: Sequence[FloatArray], g: list[FloatArray], *, last: bool = False
    ) -> list[FloatArray]:
        """The sums over the others of G_ij t_j G_ij', from draws; the last from more."""
        draws = LAST_DRAWS if last else ROUND_DRAWS
        root = square_root(t[0]).astype(np.float32)
        own = g[0].astype(np.float32)
        total: SingleArray = np.zeros(root.shape, dtype=np.float32)
        for number, count in _batches(draws):
            force = root @ _normals((2, number), (len(root), root.shape[2], count))
            logits = self._basis @ force
            moved = self._basis.T @ self._predictions(self._solve(self._pulled(logits)))
            moved -= own @ force
            total += moved @ transposed(moved)
        return [np.asarray(total / draws)]

    def rows(self, stack: int, units: Codes, directions: FloatArray) -> Iterator[FloatArray]:
        """direction' G_ij of some records i, for all j: k x N x (C - 1)."""
        weights = directions.astype(np.float32) @ self._basis.T
        right = self.route.X[units].T[:, None, :] * weights.T
        moved = self._predictions(self._solve(np.ascontiguousarray(right)))
        yield np.transpose(moved, (2, 0, 1)) @ self._basis


def coupled_diagonal(diagonal: FloatArray) -> FloatArray:
    """The a with a_c - a_c^2 / sum(a) = diagonal_c, along the last axis."""
    # With s = sum(a): a_c = s/2 (1 -+ sqrt(1 - 4 d_c / s)); the plus sign only for a class that
    # holds more than half.  Iterating a <- d + a^2/s from a = d keeps to the right branch.
    d = np.maximum(diagonal, 0.0)
    a = d.copy()
    for _ in range(200):
        total = np.maximum(a.sum(axis=-1, keepdims=True), 1e-30)
        new = d + a * a / total
        done = float(np.max(np.abs(new - a) / total)) < 1e-6
        a = new
        if done:
            break
    return a


def _halved(
    near: SingleArray, a: SingleArray, rest: SingleArray, diagonal: SingleArray
) -> tuple[SingleArray, SingleArray]:
    """D^{-1} and x_j' R^{-1} of the rows near the class, D = R'R, by symmetric routines."""
    block = _blas.ssyrk(1.0, (near * np.sqrt(a[:, None])).T, beta=1.0, c=rest)
    index = np.arange(len(diagonal))
    block[index, index] += diagonal
    factor = _upper(block)
    half = _blas.strsm(1.0, factor, near.T, trans_a=1, overwrite_b=1)
    inverse = _lapack.spotri(factor)[0]
    return np.asarray(np.triu(inverse) + np.triu(inverse, 1).T), np.asarray(half).T


def _fill(
    own: SingleArray,
    far: npt.NDArray[np.bool_],
    X: SingleArray,
    inverses: SingleArray,
    every: SingleArray,
) -> None:
    """Leverages of records far from a class: those of the mean inverse, at the class's level."""
    moment = np.triu(every) + np.triu(every, 1).T
    mean = inverses.mean(axis=0)
    leverage = np.einsum("ia,ia->i", X @ mean, X)
    for label, inverse in enumerate(inverses):
        level = float(np.vdot(inverse, moment) / np.vdot(mean, moment))
        own[far[label], label] = level * leverage[far[label]]


def _subtract(matrix: SingleArray, rows: npt.NDArray[np.intp], part: SingleArray) -> None:
    """Take the lower triangle of ``part`` from these rows and columns of the lower triangle."""
    part = np.ascontiguousarray(part)
    for place, row in enumerate(rows):
        matrix[row, rows[: place + 1]] -= part[place, : place + 1]


def _upper(matrix: SingleArray) -> SingleArray:
    """R with R'R = matrix, whose upper triangle is read; the lower one holds anything."""
    factor, failed = _lapack.spotrf(matrix, lower=0, clean=0)
    if failed:
        double = matrix.astype(np.float64)
        double[np.diag_indices_from(double)] += 1e-6 * float(np.mean(np.diagonal(double)))
        factor = linalg.cholesky(double, lower=False).astype(np.float32, order="F")
    return np.asarray(factor)


def _batches(draws: int) -> list[tuple[int, int]]:
    counts = [TOGETHER] * (draws // TOGETHER)
    if draws % TOGETHER:
        counts.append(draws % TOGETHER)
    return list(enumerate(counts))


def _normals(path: tuple[int, ...], shape: tuple[int, ...]) -> SingleArray:
    return Key(SEED, path).generator().standard_normal(shape, dtype=np.float32)
