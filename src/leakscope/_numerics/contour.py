"""Integrals of batches of analytic functions from a real saddle point into the upper half plane.

Each row of a batch has a function f, real on the real axis near 0 with f(0) = 1, whose modulus has
a saddle point at or near 0: a minimum along the real axis and a maximum across it.  Wanted is

    (1/pi) Im int_0^infinity f(delta) d delta

along any path that leaves 0 upwards and ends where f vanishes: half of an inversion integral
(1/(2 pi i)) int f over a contour symmetric about the real axis.

The path is a polygon that follows the steepest descent of |f|, never further than 45 degrees from
the vertical.  So f neither oscillates much nor decays slowly along it, whatever mixture of scales
it is made of, and the integral keeps its relative accuracy.  Each straight piece is integrated by
Gauss's rule and halved until its Legendre coefficients have died out.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
IndexArray = npt.NDArray[np.intp]

_ORDER = 20
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
# Values at the nodes times this: the integral over [-1, 1] and the last two Legendre coefficients.
# One product of matrices too small for BLAS to start threads, which would cost more than it saves.
_RULE = np.polynomial.legendre.legvander(_NODES, _ORDER - 1)[:, [0, -2, -1]] * _WEIGHTS[:, None]
_RULE *= np.array([1.0, _ORDER - 1.5, _ORDER - 0.5])
_LOG_NEGLIGIBLE = float(np.log(1e-15))
_TOLERANCE = 1e-12
_FIRST = 2.0  # length of the first piece in units of the saddle's width
_GROWTH = 2.5  # length of each further piece in units of the distance from the saddle
_DECAY = 25.0  # at most this many e-folds on one piece
_SHORTEST = 0.05  # least length, in the same units
_MAX_PIECES = 120
_MAX_SHORTENINGS = 6
_MAX_HALVINGS = 12
_TINY = 1e-300
_PIECES_AT_ONCE = 512  # keeps the working arrays in the processor's cache


class Integrand(Protocol):
    """A batch of functions f = exp(exponent) * factor; several factors may share one exponent."""

    def exponent(self, rows: IndexArray, delta: ComplexArray) -> tuple[FloatArray, FloatArray]:
        """Real and imaginary part at ``delta`` of shape (P, n) for the P rows ``rows``."""

    def slope(self, rows: IndexArray, delta: ComplexArray) -> ComplexArray:
        """Derivative of log f at ``delta`` of shape (P,), for the factor that decays fastest."""

    def factors(self, rows: IndexArray, delta: ComplexArray) -> ComplexArray:
        """The k factors at ``delta`` of shape (P, n): shape (k, P, n)."""


def integrate_upwards(integrand: Integrand, width: FloatArray, count: int) -> FloatArray:
    """(1/pi) Im int f for each of ``count`` factors and each row: shape (count, rows).

    ``width`` (rows,) is the saddle's width 1/sqrt((log f)''(0)).
    """
    rows, start, end = _descend(integrand, width)
    total = np.zeros((count, width.size))
    for _ in range(_MAX_HALVINGS):
        unsettled = np.zeros(rows.size, dtype=bool)
        for block in range(0, rows.size, _PIECES_AT_ONCE):
            piece = slice(block, block + _PIECES_AT_ONCE)
            part, error = _gauss(integrand, rows[piece], start[piece], end[piece])
            bad = error > _TOLERANCE * width[rows[piece]]
            unsettled[piece] = bad
            part[:, bad] = 0.0
            for k in range(count):
                total[k] += np.bincount(rows[piece], part[k], width.size)
        if not unsettled.any():
            break
        rows, start, end = rows[unsettled], start[unsettled], end[unsettled]
        middle = 0.5 * (start + end)
        rows = np.concatenate([rows, rows])
        start, end = np.concatenate([start, middle]), np.concatenate([middle, end])
    else:
        # What is left is below the resolution of the exponent itself.
        part, _ = _gauss(integrand, rows, start, end)
        for k in range(count):
            total[k] += np.bincount(rows, part[k], width.size)
    return total / np.pi


def _gauss(
    integrand: Integrand, rows: IndexArray, start: ComplexArray, end: ComplexArray
) -> tuple[FloatArray, FloatArray]:
    """Im int f over straight pieces, shape (k, P), and an estimate of the error, shape (P,)."""
    half = 0.5 * (end - start)
    delta = (0.5 * (end + start))[:, None] + half[:, None] * _NODES
    real, imaginary = integrand.exponent(rows, delta)
    size = np.exp(np.minimum(real, 50.0))
    value = np.empty(delta.shape, dtype=np.complex128)
    value.real = size * np.cos(imaginary)
    value.imag = size * np.sin(imaginary)
    values = value * integrand.factors(rows, delta)
    summed = (values.reshape(-1, _ORDER) @ _RULE).reshape(*values.shape[:2], 3)
    part = np.asarray((summed[..., 0] * half).imag)
    last = np.abs(summed[..., 1]) + np.abs(summed[..., 2])
    largest = np.abs(values).max(axis=-1)
    # Gauss's rule integrates twice as many coefficients exactly as it has nodes, so its error is
    # like the square of the last coefficient where coefficients fall geometrically.
    error = np.abs(half) * last * np.minimum(last / np.maximum(largest, _TINY), 1.0)
    return part, np.asarray(error.max(axis=0))


def _descend(
    integrand: Integrand, width: FloatArray
) -> tuple[IndexArray, ComplexArray, ComplexArray]:
    """Pieces of the paths of all rows: row, start and end of each."""
    rows = np.arange(width.size)
    scale = width
    here = np.zeros(width.size, dtype=np.complex128)
    there = here + 1j * (_FIRST * width)
    level = _log_size(integrand, rows, there)
    pieces: list[tuple[IndexArray, ComplexArray, ComplexArray]] = [(rows, here, there)]
    for _ in range(_MAX_PIECES):
        alive = level + np.log(np.abs(there) / scale) > _LOG_NEGLIGIBLE
        if not alive.any():
            break
        rows, here, scale, level = rows[alive], there[alive], scale[alive], level[alive]
        distance = np.abs(here)
        slope = integrand.slope(rows, here)
        direction = _direction(slope)
        length = np.minimum(_GROWTH * distance, _DECAY / np.maximum(np.abs(slope), _TINY))
        length = np.maximum(length, _SHORTEST * distance)
        there = here + length * direction
        reached = _log_size(integrand, rows, there)
        for _ in range(_MAX_SHORTENINGS):
            # An overshoot over a valley: |f| is larger again at the end of the piece.
            risen = np.flatnonzero((reached > level) & (length > 2.0 * _SHORTEST * distance))
            if not risen.size:
                break
            length[risen] *= 0.5
            there[risen] = here[risen] + length[risen] * direction[risen]
            reached[risen] = _log_size(integrand, rows[risen], there[risen])
        level = reached
        pieces.append((rows, here, there))
    return (
        np.concatenate([p[0] for p in pieces]),
        np.concatenate([p[1] for p in pieces]),
        np.concatenate([p[2] for p in pieces]),
    )


def _direction(slope: ComplexArray) -> ComplexArray:
    """Unit vectors of the steepest descent of |f|, at most 45 degrees from the vertical."""
    sideways, upwards = -slope.real, slope.imag
    lean = np.where(
        upwards > 0.0,
        np.clip(sideways / np.maximum(upwards, _TINY), -1.0, 1.0),
        np.sign(sideways),
    )
    direction = lean + 1j
    return np.asarray(direction / np.abs(direction), dtype=np.complex128)


def _log_size(integrand: Integrand, rows: IndexArray, delta: ComplexArray) -> FloatArray:
    """log of the largest |f| among the factors at one point of each row."""
    real, _ = integrand.exponent(rows, delta[:, None])
    factor = np.abs(integrand.factors(rows, delta[:, None])).max(axis=0)
    return np.asarray((real + np.log(np.maximum(factor, _TINY)))[:, 0])
