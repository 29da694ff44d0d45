"""How a model answers to a force on one record: G = X Hbar^{-1} X', which is never formed.

Hbar = sum_j c_j x_j x_j' + Lambda.  There are four forms of it: one output in feature space, one
output in function space, several classes with a dense Hessian, and with a structured one.

Feature space.  All passes go over the records in blocks, so that the memory beside the design is
d x d and a few numbers per record.

Function space (kernels, and designs with more columns than records).  With K the kernel over its
penalty and B = I + c^{1/2} K c^{1/2}, the matrix G of docs/fitted.md is
c^{-1/2} (I - B^{-1}) c^{-1/2}; so 1 - c_i g_i is [B^{-1}]_ii, without a cancellation, and for
i != j G_ij is -[B^{-1}]_ij / sqrt(c_i c_j).

Several classes, few coefficients: one dense Hessian, inverted.

Several classes, many coefficients: no matrix of (C d)^2 entries.  A curvature block c_j has a zero
row sum and is close to diag(a_j) - a_j a_j'/sum(a_j), exactly so where the yield is diagonal; a_j
is chosen to keep its diagonal.  Then

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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.fitted.losses import centred, square_root
from leakscope.fitted.optimum import inverse_hessian, quadratic_forms, spd_inverse, weighted_gram

# A record with no curvature left would divide by zero; this share of the largest changes nothing.
_FLOOR = 1e-12

# float32; typed loosely, because the functions shared with the dense route say float64.
SingleArray = npt.NDArray[Any]
Records = npt.NDArray[np.intp]

# Untyped on purpose: the stubs of these wrappers change from one release to the next.
_blas: Any = linalg.blas
_lapack: Any = linalg.lapack

# Couplings below this are left out of Phi; they enter K squared.
_COUPLED = 0.03

# Records whose curvature in a class is below this share of the largest are far from it: they enter
# the class's Gram matrix by their mean second moment.
_CURVED = 3e-3

# Draws for the part of the leverages that couples the classes.
LEVERAGE_DRAWS = 64

# Draws handled at once.
_DRAWS_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Response(ABC):
    """The response of a model with one output at one set of curvatures c.

    Attributes
    ----------
    prediction
        X theta after a Newton step.
    leverage
        g_i = x_i' Hbar^{-1} x_i.
    slack
        1 - c_i g_i.
    inverse
        Hbar^{-1} in feature space, B^{-1} in function space.
    """

    prediction: FloatArray
    leverage: FloatArray
    slack: FloatArray
    inverse: FloatArray

    @abstractmethod
    def from_others(self, t: FloatArray) -> FloatArray:
        """The sum over j != i of G_ij^2 t_j, for every record i."""

    @abstractmethod
    def rows(self, part: Records) -> npt.NDArray[np.floating]:
        """The rows G_i. of some records."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """What a row of G costs, in passes over the records."""

    def spread(self, t: FloatArray) -> FloatArray:
        """v_i where the records' forces have variance t_j beyond what Hbar carries."""
        total = self.from_others(t / self.slack**2)
        return np.asarray(np.maximum(total, 0.0) / self.slack**2)

    def shared(self, other: Response, t: FloatArray) -> FloatArray:
        """The sum over j != i of G_ij G'_ij t_j, with G' another model's of the same records."""
        total = np.empty(len(t))
        for start in range(0, len(t), 512):
            part = np.arange(start, min(start + 512, len(t)))
            block = self.rows(part) * other.rows(part).astype(np.float64)
            total[part] = block @ t
        return np.asarray(total - self.leverage * other.leverage * t)

    def moves(self, pull: FloatArray, part: Records) -> npt.NDArray[np.floating]:
        """How far a pull of each record j (columns) moves some records i (rows), times slack_i."""
        block = self.rows(part)
        block = block * (pull / self.slack).astype(block.dtype)
        block[np.arange(len(part)), part] = 0.0
        return block


@dataclass(frozen=True, eq=False)
class FeatureResponse(Response):
    """The response in feature space."""

    X: FloatArray

    @classmethod
    def at(
        cls,
        X: FloatArray,
        penalty: FloatArray,
        name: str,
        c: FloatArray,
        s: FloatArray,
        z: FloatArray,
    ) -> FeatureResponse:
        """Newton step and leverages, where the total force s has slope c at the predictions z."""
        inverse = inverse_hessian(X, c, penalty, name)
        theta = inverse @ (X.T @ (c * z - s))
        # one step of refinement: the inverse alone loses digits where the columns' scales differ
        theta = theta + inverse @ (X.T @ (c * (z - X @ theta) - s) - penalty * theta)
        leverage = quadratic_forms(X, inverse)
        return cls(X @ theta, leverage, np.maximum(1.0 - c * leverage, 1e-12), inverse, X)

    def from_others(self, t: FloatArray) -> FloatArray:
        """The sum over j != i of G_ij^2 t_j, for every record i."""
        spread = self.inverse @ weighted_gram(self.X, t) @ self.inverse
        return np.asarray(quadratic_forms(self.X, spread) - self.leverage**2 * t)

    def shared(self, other: Response, t: FloatArray) -> FloatArray:
        """The sum over j != i of G_ij G'_ij t_j; without a row of G where both have features."""
        if not isinstance(other, FeatureResponse):
            return super().shared(other, t)
        gram = self.inverse @ ((self.X * t[:, None]).T @ other.X) @ other.inverse
        total = np.einsum("nd,nd->n", self.X @ gram, other.X)
        return np.asarray(total - self.leverage * other.leverage * t)

    @property
    def columns(self) -> int:
        """What a row of G costs."""
        return int(self.X.shape[1])

    def rows(self, part: Records) -> npt.NDArray[np.floating]:
        """The rows G_i. of some records, in single precision: only their sizes matter."""
        return np.asarray((self.X[part] @ self.inverse).astype(np.float32) @ self._single.T)

    @cached_property
    def _single(self) -> npt.NDArray[np.float32]:
        return self.X.astype(np.float32)


@dataclass(frozen=True, eq=False)
class FunctionResponse(Response):
    """The response in function space; ``root`` is c^{1/2}."""

    root: FloatArray

    @classmethod
    def at(
        cls, kernel: FloatArray, name: str, c: FloatArray, s: FloatArray, z: FloatArray
    ) -> FunctionResponse:
        """Newton step and leverages, where the total force s has slope c at the predictions z."""
        c = np.maximum(c, _FLOOR * float(np.max(c)))
        root = np.sqrt(c)
        matrix = kernel * root * root[:, None]
        matrix[np.diag_indices_from(matrix)] += 1.0
        try:
            factor = cholesky.factorise(matrix, overwrite=True)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{name}: the kernel matrix is not positive semidefinite, so there is no "
                "convex problem to solve; use a valid kernel."
            ) from None
        inverse = np.ascontiguousarray(cholesky.inverse(factor, overwrite=True).full())
        dual = root * (inverse @ (root * z - s / root))
        slack = np.diagonal(inverse).copy()
        return cls(kernel @ dual, (1.0 - slack) / c, slack, inverse, root)

    def from_others(self, t: FloatArray) -> FloatArray:
        """The sum over j != i of G_ij^2 t_j, for every record i."""
        share = t / self.root**2
        total = np.empty(len(t))
        for start in range(0, len(t), 512):
            part = slice(start, start + 512)
            total[part] = (self.inverse[part] ** 2) @ share
        return np.asarray((total - self.slack**2 * share) / self.root**2)

    @property
    def columns(self) -> int:
        """A row of G is at hand, so that all of them cost little."""
        return len(self.root)

    def rows(self, part: Records) -> FloatArray:
        """The rows G_i. of some records."""
        block = -self.inverse[part] / self.root / self.root[part, None]
        block[np.arange(len(part)), part] = self.leverage[part]
        return np.asarray(block)


@dataclass(frozen=True, eq=False)
class DenseSoftmax:
    """Hbar = sum_j x_j x_j' (x) c_j + Lambda (x) I; coefficient (a, class) at class d + a."""

    X: FloatArray
    inverse: FloatArray
    leverage: FloatArray

    @classmethod
    def at(cls, X: FloatArray, penalty: FloatArray, c: FloatArray, name: str) -> DenseSoftmax:
        """Build and invert the Hessian at these curvature blocks (N x C x C)."""
        classes = c.shape[1]
        hessian = assembled(X, c)
        d = X.shape[1]
        index = np.arange(classes * d)
        hessian[index, index] += np.tile(penalty, classes)
        # A constant added to every class's free coefficient changes nothing, so it may be fixed.
        for column in np.flatnonzero(penalty == 0.0):
            places = column + d * np.arange(classes)
            hessian[np.ix_(places, places)] += float(np.mean(hessian[places, places]))
        inverse = spd_inverse(hessian, name)
        return cls(X, inverse, centred(_blocks(X, inverse, classes)))

    def step(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, both d x C, or M x d x C."""
        swapped = np.swapaxes(gradient, -1, -2)
        solved = swapped.reshape(*gradient.shape[:-2], -1) @ self.inverse
        return np.asarray(np.swapaxes(solved.reshape(swapped.shape), -1, -2))

    def spread(self, t: FloatArray, draws: int = 0) -> FloatArray:
        """sum over j != i of G_ij t_j G_ij', C x C blocks for every record i; exact."""
        classes = t.shape[1]
        carried = self.inverse @ assembled(self.X, t) @ self.inverse
        own = self.leverage @ t @ self.leverage
        return np.asarray(centred(_blocks(self.X, carried, classes)) - own)

    def rows(self, records: npt.NDArray[np.intp], directions: FloatArray) -> FloatArray:
        """direction' G_ij for a few records i and all j: M x N x C."""
        right = (directions[:, :, None] * self.X[records][:, None, :]).reshape(len(records), -1)
        moved = (right @ self.inverse).reshape(len(records), directions.shape[1], -1)
        return np.asarray(np.swapaxes(moved @ self.X.T, 1, 2))


def assembled(X: FloatArray, blocks: FloatArray) -> FloatArray:
    """sum_j x_j x_j' (x) block_j, class by class: entry (a, class) at class d + a."""
    classes, d = blocks.shape[1], X.shape[1]
    total = np.empty((classes * d, classes * d))
    for a in range(classes):
        for b in range(a + 1):
            gram = weighted_gram(X, np.ascontiguousarray(blocks[:, a, b]))
            total[a * d : (a + 1) * d, b * d : (b + 1) * d] = gram
            total[b * d : (b + 1) * d, a * d : (a + 1) * d] = gram
    return total


def _blocks(X: FloatArray, matrix: FloatArray, classes: int) -> FloatArray:
    d = X.shape[1]
    result = np.empty((len(X), classes, classes))
    for a in range(classes):
        for b in range(a + 1):
            block = matrix[a * d : (a + 1) * d, b * d : (b + 1) * d]
            result[:, a, b] = result[:, b, a] = quadratic_forms(X, np.ascontiguousarray(block))
    return result


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
        R with R'R = I - Phi' D^{-1} Phi, upper triangular; None leaves the coupling out.
    leverage
        The blocks g_i, with the constant logit taken out.
    """

    X: SingleArray
    inverses: SingleArray
    phi: SingleArray
    factor: SingleArray | None
    leverage: FloatArray
    seed: int

    @classmethod
    def at(
        cls,
        X: SingleArray,
        penalty: FloatArray,
        c: FloatArray,
        *,
        seed: int,
        coupled: bool = True,
    ) -> StructuredSoftmax:
        """Factorise at these curvature blocks (N x C x C); uncoupled, their class diagonal."""
        size, classes = c.shape[:2]
        a = np.einsum("icc->ic", c)
        a = (coupled_diagonal(a) if coupled else np.maximum(a, 0.0)).astype(np.float32)
        total = np.maximum(a.sum(axis=1, keepdims=True), 1e-30)
        phi = a / np.sqrt(total)
        free = np.where(penalty == 0.0, 1e-3 * float(a.sum(axis=0).mean()), 0.0)
        diagonal = (penalty + free).astype(np.float32)
        inverses = np.empty((classes, X.shape[1], X.shape[1]), dtype=np.float32)
        own = np.empty((size, classes), dtype=np.float32)
        matrix = np.eye(size, dtype=np.float32) if coupled else None
        every = _blas.ssyrk(1.0 / size, X.T)
        largest = a.max(axis=0)
        far = np.empty((classes, size), dtype=np.bool_)
        for label in range(classes):
            near = (a[:, label] > _CURVED * largest[label]) | (phi[:, label] > _COUPLED)
            rows = np.flatnonzero(near)
            rest = float(a[~near, label].sum())
            inverses[label], half = _halved(X[rows], a[rows, label], rest * every, diagonal)
            own[rows, label] = np.einsum("ia,ia->i", half, half)
            far[label] = ~near
            if matrix is not None:
                coupling = phi[rows, label]
                there = coupling > _COUPLED
                if there.any():
                    part = half[there] * coupling[there, None]
                    _subtract(matrix, rows[there], _blas.ssyrk(1.0, part.T, trans=1, lower=1))
        _fill(own, far, X, inverses, every)
        # the lower triangle by rows is the upper one by columns, which LAPACK takes in place
        factor = None if matrix is None else _upper(matrix.T)
        made = cls(X, inverses, phi, factor, np.empty(0), seed)
        blocks: SingleArray = (
            made._coupled_leverage()
            if coupled
            else np.zeros((size, classes, classes), dtype=np.float32)
        )
        blocks[:, np.arange(classes), np.arange(classes)] += own
        object.__setattr__(made, "leverage", centred(blocks))
        return made

    def _coupled_leverage(self) -> SingleArray:
        assert self.factor is not None
        size, classes = self.phi.shape
        total: SingleArray = np.zeros((size, classes, classes), dtype=np.float32)
        for number, count in _batches(LEVERAGE_DRAWS):
            zeta = _normals(self.seed, (1, number), (size, count))
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
        flat = self.X.T @ force.reshape(len(force), -1)
        return np.asarray(flat.reshape(-1, *force.shape[1:]))

    def _diagonal_solve(self, right: SingleArray) -> SingleArray:
        """D^{-1} right, d x C x M."""
        solved = self.inverses @ np.ascontiguousarray(np.swapaxes(right, 0, 1))
        return np.ascontiguousarray(np.swapaxes(solved, 0, 1))

    def _predictions(self, theta: SingleArray, *, centre: bool = True) -> SingleArray:
        """X theta as N x C x M, centred over the classes."""
        if centre:
            theta = theta - theta.mean(axis=1, keepdims=True)
        moved = self.X @ theta.reshape(len(theta), -1)
        return np.asarray(moved.reshape(-1, *theta.shape[1:]))

    def _solve(self, right: SingleArray) -> SingleArray:
        """Hbar^{-1} right, d x C x M."""
        first = self._diagonal_solve(right)
        if self.factor is None:
            return first
        predicted = self._predictions(first, centre=False)
        inner = (self.phi[:, None, :] @ predicted)[:, 0, :]
        inner = linalg.cho_solve((self.factor, False), inner, check_finite=False)
        first += self._diagonal_solve(self._pulled(self._coupling(inner)))
        return first

    def step(self, gradient: FloatArray) -> FloatArray:
        """Hbar^{-1} gradient, both d x C."""
        right = gradient[:, :, None].astype(np.float32)
        return np.asarray(self._solve(right)[:, :, 0], dtype=np.float64)

    def spread(self, t: FloatArray, draws: int) -> FloatArray:
        """sum over j != i of G_ij t_j G_ij', C x C blocks for every record i, from draws."""
        size, classes = self.phi.shape
        root = square_root(t)
        total: SingleArray = np.zeros((size, classes, classes), dtype=np.float32)
        for number, count in _batches(draws):
            force = root @ _normals(self.seed, (2, number), (size, classes, count))
            moved = self._predictions(self._solve(self._pulled(force)))
            moved -= self.leverage @ force
            total += moved @ np.swapaxes(moved, 1, 2)
        total /= draws
        return np.asarray(total)

    def rows(self, records: npt.NDArray[np.intp], directions: FloatArray) -> FloatArray:
        """direction' G_ij for a few records i and all j: M x N x C."""
        right = self.X[records].T[:, None, :] * directions.T.astype(np.float32)
        moved = self._predictions(self._solve(np.ascontiguousarray(right)), centre=False)
        return np.asarray(np.transpose(moved, (2, 0, 1)), dtype=np.float64)


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
    counts = [_DRAWS_AT_ONCE] * (draws // _DRAWS_AT_ONCE)
    if draws % _DRAWS_AT_ONCE:
        counts.append(draws % _DRAWS_AT_ONCE)
    return list(enumerate(counts))


def _normals(seed: int, path: tuple[int, ...], shape: tuple[int, ...]) -> SingleArray:
    return Key(seed, path).generator().standard_normal(shape, dtype=np.float32)
