"""The response of a softmax model with many coefficients, without a matrix of (C d)^2 entries.

A curvature block c_j has a zero row sum and is close to diag(a_j) - a_j a_j'/sum(a_j), exactly so
where the yield is diagonal; a_j is chosen to keep its diagonal.  Then

    Hbar = D - Phi Phi',   D block-diagonal over the classes (d x d each),   Phi = [x_j (x) phi_j],

phi_j = a_j / sqrt(sum a_j), and Woodbury's identity needs one N x N factorisation of
I - Phi' D^{-1} Phi instead of one of order C d.  A leverage block is its class-diagonal part,
exactly, plus the covariance of X D^{-1} Phi L^{-T} zeta over normal zeta; a variance block is the
covariance of the predictions that forces of variance t_j make.  Both are estimated from draws: the
class-diagonal part carries most of the leverage, so that the draws' noise touches only the rest.

The large products are in single precision: the laws are wanted to a per cent, not to 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.fitted.softmax_loss import centred, square_root

SingleArray = npt.NDArray[np.float32]

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = linalg.blas

# Couplings below this are left out of Phi; they enter K squared.
_COUPLED = 0.03

# Draws for the part of the leverages that couples the classes.
LEVERAGE_DRAWS = 64

# Draws handled at once.
_DRAWS_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class StructuredSoftmax:
    """The factors of Hbar at one set of curvature blocks.

    Attributes
    ----------
    X
        The design in single precision.
    inverses
        D_c^{-1}.
    phi
        The couplings, N x C.
    factor
        The lower Cholesky factor of I - Phi' D^{-1} Phi; None leaves the coupling out.
    leverage
        The blocks g_i, with the constant logit taken out.
    """

    X: SingleArray
    inverses: SingleArray
    phi: SingleArray
    factor: SingleArray | None
    leverage: FloatArray
    draws: int
    seed: int

    @classmethod
    def at(
        cls,
        X: SingleArray,
        penalty: FloatArray,
        c: FloatArray,
        *,
        draws: int,
        seed: int,
        coupled: bool = True,
    ) -> StructuredSoftmax:
        """Factorise at these curvature blocks (N x C x C); uncoupled, their class diagonal."""
        size, classes = c.shape[:2]
        a = coupled_diagonal(np.einsum("icc->ic", c))
        total = np.maximum(a.sum(axis=1, keepdims=True), 1e-30)
        phi = (a / np.sqrt(total)).astype(np.float32)
        free = np.where(penalty == 0.0, 1e-3 * float(a.sum(axis=0).mean()), 0.0)
        diagonal = (penalty + free).astype(np.float32)
        inverses = np.empty((classes, X.shape[1], X.shape[1]), dtype=np.float32)
        own = np.empty((size, classes))
        matrix = np.zeros((size, size), dtype=np.float32) if coupled else None
        for label in range(classes):
            root = X * np.sqrt(a[:, label, None]).astype(np.float32)
            inverses[label], half = _halved(X, root, diagonal)
            own[:, label] = np.einsum("ai,ai->i", half, half)
            if matrix is not None:
                rows = np.flatnonzero(phi[:, label] > _COUPLED)
                part = half[:, rows] * phi[rows, label]
                matrix[np.ix_(rows, rows)] -= part.T @ part
        factor = None
        if matrix is not None:
            matrix[np.diag_indices_from(matrix)] += 1.0
            factor = _cholesky(matrix)
        made = cls(X, inverses, phi, factor, np.empty(0), draws, seed)
        blocks = made._coupled_leverage() if coupled else np.zeros((size, classes, classes))
        blocks[:, np.arange(classes), np.arange(classes)] += own
        object.__setattr__(made, "leverage", centred(blocks))
        return made

    def _coupled_leverage(self) -> FloatArray:
        assert self.factor is not None
        size, classes = self.phi.shape
        total = np.zeros((size, classes, classes), dtype=np.float32)
        for number, count in _batches(LEVERAGE_DRAWS):
            zeta = _normals(self.seed, (1, number), (size, count))
            zeta[...] = linalg.solve_triangular(
                self.factor, zeta, lower=True, trans=1, check_finite=False
            )
            force = self.phi.T[:, :, None] * zeta
            moved = self._predictions(self._diagonal_solve(self.X.T @ force))
            total += moved @ np.swapaxes(moved, 1, 2)
        return np.asarray(total / LEVERAGE_DRAWS, dtype=np.float64)

    def _diagonal_solve(self, right: SingleArray) -> SingleArray:
        """D^{-1} right, C x d x M."""
        return np.asarray(self.inverses @ right)

    def _predictions(self, theta: SingleArray) -> SingleArray:
        """X theta as N x C x M, centred over the classes."""
        moved = np.swapaxes(self.X @ theta, 0, 1)
        return np.ascontiguousarray(moved - moved.mean(axis=1, keepdims=True))

    def _solve(self, right: SingleArray) -> SingleArray:
        """Hbar^{-1} right, C x d x M."""
        first = self._diagonal_solve(right)
        if self.factor is None:
            return first
        inner = np.einsum("ic,cim->im", self.phi, self.X @ first)
        inner = linalg.cho_solve((self.factor, True), inner, check_finite=False)
        return np.asarray(first + self._diagonal_solve(self.X.T @ (self.phi.T[:, :, None] * inner)))

    def step(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, both d x C."""
        right = gradient.T[:, :, None].astype(np.float32)
        return np.asarray(self._solve(right)[:, :, 0].T, dtype=np.float64)

    def spread(self, t: FloatArray, draws: int | None = None) -> FloatArray:
        """sum over j != i of G_ij t_j G_ij', C x C blocks for every record i, from draws."""
        draws = self.draws if draws is None else draws
        size, classes = self.phi.shape
        root = square_root(t).astype(np.float32)
        own = self.leverage.astype(np.float32)
        total = np.zeros((size, classes, classes), dtype=np.float32)
        for number, count in _batches(draws):
            force = root @ _normals(self.seed, (2, number), (size, classes, count))
            theta = self._solve(self.X.T @ np.ascontiguousarray(np.swapaxes(force, 0, 1)))
            moved = self._predictions(theta) - own @ force
            total += moved @ np.swapaxes(moved, 1, 2)
        return np.asarray(total / draws, dtype=np.float64)

    def rows(self, records: npt.NDArray[np.intp], directions: FloatArray) -> FloatArray:
        """direction' G_ij for a few records i and all j: M x N x C."""
        right = directions.T[:, None, :] * self.X[records].T
        moved = self.X @ self._solve(right.astype(np.float32))
        return np.asarray(np.transpose(moved, (2, 1, 0)), dtype=np.float64)


def coupled_diagonal(diagonal: FloatArray) -> FloatArray:
    """The a with a_c - a_c^2 / sum(a) = diagonal_c, along the last axis."""
    # With s = sum(a): a_c = s/2 (1 -+ sqrt(1 - 4 d_c / s)); the plus sign only for a class that
    # holds more than half.  Iterating a <- d + a^2/s from a = d keeps to the right branch.
    d = np.maximum(diagonal, 0.0)
    a = d.copy()
    for _ in range(200):
        total = np.maximum(a.sum(axis=-1, keepdims=True), 1e-300)
        new = d + a * a / total
        done = float(np.max(np.abs(new - a) / total)) < 1e-6
        a = new
        if done:
            break
    return a


def _halved(
    X: SingleArray, root: SingleArray, diagonal: SingleArray
) -> tuple[SingleArray, SingleArray]:
    """D^{-1} and L^{-1} X' for D = root'root + diagonal = L L', by symmetric routines."""
    block = _blas.ssyrk(1.0, root.T, lower=1)
    index = np.arange(len(diagonal))
    block[index, index] += diagonal
    scale = (1.0 / np.sqrt(block[index, index])).astype(np.float32)
    factor = _cholesky(block * scale * scale[:, None])
    half = _blas.strsm(1.0, np.asfortranarray(factor), (X * scale).T, lower=1)
    inverse = linalg.cho_solve((factor, True), np.diag(scale), check_finite=False, overwrite_b=True)
    return np.asarray(inverse * scale[:, None], dtype=np.float32), np.asarray(half)


def _cholesky(matrix: SingleArray) -> SingleArray:
    try:
        return np.asarray(linalg.cholesky(matrix, lower=True, check_finite=False))
    except linalg.LinAlgError:
        double = matrix.astype(np.float64)
        double[np.diag_indices_from(double)] += 1e-6 * float(np.mean(np.diagonal(double)))
        return np.asarray(linalg.cholesky(double, lower=True), dtype=np.float32)


def _batches(draws: int) -> list[tuple[int, int]]:
    counts = [_DRAWS_AT_ONCE] * (draws // _DRAWS_AT_ONCE)
    if draws % _DRAWS_AT_ONCE:
        counts.append(draws % _DRAWS_AT_ONCE)
    return list(enumerate(counts))


def _normals(seed: int, path: tuple[int, ...], shape: tuple[int, ...]) -> SingleArray:
    return Key(seed, path).generator().standard_normal(shape, dtype=np.float32)
