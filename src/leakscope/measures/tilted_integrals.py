"""Tail probabilities of the log likelihood ratio of two normals, one real half line at a time.

With nonmember law N(0, I), member law N(mu, diag(lam)) and lam = 1 + excess, the moments
M(s) = E0[exp(s l)] are finite on an interval of the real axis that contains [0, 1].  The integrands
of the inversion integrals, M(s) exp(-s t) / s and M(s) exp(-s t) / (s - 1), have poles at 0 and 1,
and the saddle point that gives a tail its relative accuracy lies right of 1, left of 0, or between.
In every case write

    s = anchor + sign * rho,   0 < rho < reach,

with the pole nearest to the saddle as anchor.  Then, with D = 1 (anchor 1) or lam (anchor 0),
z = sign * excess / D, m = mu^2 / D, kappa = +1 outside [0, 1] and -1 inside,

    log M(s) - sign rho t = -rho sign (sum log(lam)/2 + t)
                            + sum [ -log(1 - rho z)/2 + rho (rho + kappa) m / (2 (1 - rho z)) ]

and the poles are 1/rho (near) and 1/(1 + kappa rho) (far): one problem instead of four.

Where l is bounded on the side of the tail, at distance ``gap`` from the threshold, all z are
negative, and taking the bound out of both parts leaves

    rho gap + sum [ -log(1 - rho z)/2 + rho (1 + kappa z) m / (2 z (1 - rho z)) ],

which keeps the digits of a gap far below the rounding of the threshold.

The integrals are taken by `integrate_upwards`.  Each row of a batch has a function f, real on the
real axis near 0 with f(0) = 1, whose modulus has a saddle point at or near 0: a minimum along the
real axis and a maximum across it.  Wanted is

    (1/pi) Im int_0^infinity f(delta) d delta

along any path that leaves 0 upwards and ends where f vanishes: half of an inversion integral
(1/(2 pi i)) int f over a contour symmetric about the real axis.

The path is a polygon that follows the steepest descent of |f|, never further than 45 degrees from
the vertical.  So f neither oscillates much nor decays slowly along it, whatever mixture of scales
it is made of, and the integral keeps its relative accuracy.  Each straight piece is integrated by
Gauss's rule and halved until its Legendre coefficients have died out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray

BoolArray = npt.NDArray[np.bool_]
ComplexArray = npt.NDArray[np.complex128]
IndexArray = npt.NDArray[np.intp]

_ELEMENTS_AT_ONCE = 1 << 15
_SEARCH_STEPS = 100
_FARTHEST = 340.0  # log of the largest rho; its square must not overflow


def log_lam(excess: FloatArray, lam: FloatArray) -> FloatArray:
    """log(lam) from whichever of lam - 1 and lam holds its digits."""
    near = np.abs(excess) < 0.5
    return np.where(near, np.log1p(np.where(near, excess, 0.0)), np.log(lam))


class HalfLine(NamedTuple):
    """Which part of the real axis the contour crosses, one entry per row."""

    anchor: BoolArray  # True: the pole at 1
    sign: FloatArray  # +1 or -1

    @property
    def kappa(self) -> FloatArray:
        """+1 outside [0, 1], -1 inside."""
        return np.where(self.anchor, self.sign, -self.sign)


@dataclass(frozen=True)
class TiltedRays:
    """N problems in the variable rho; arrays over coordinates have shape (d, N)."""

    kappa: FloatArray  # (N,)
    linear: FloatArray  # (N,) sign * (sum log(lam)/2 + t)
    gap: FloatArray  # (N,) distance to the bound of l, inf where the form without it is used
    reach: FloatArray  # (N,) where the nearest branch point lies, inf where there is none
    z: FloatArray
    m: FloatArray
    twist: FloatArray  # 1 + kappa z, which is lam or 1/lam

    @classmethod
    def of(
        cls,
        mu: FloatArray,
        excess: FloatArray,
        lam: FloatArray,
        threshold: FloatArray,
        gap: FloatArray,
        line: HalfLine,
    ) -> TiltedRays:
        """Problems for pairs with ``mu``, ``excess`` and ``lam`` of shape (d, N).

        ``gap`` (N,) is the distance from ``threshold`` to the bound of l on the side of the tail.
        """
        base = np.where(line.anchor, 1.0, lam)
        z = line.sign * (excess / base)
        half_log = 0.5 * log_lam(excess, lam).sum(axis=0)
        linear = line.sign * (half_log + threshold)
        steepest = z.max(axis=0, initial=0.0)
        with np.errstate(divide="ignore", over="ignore"):
            reach = np.where(line.kappa > 0.0, 1.0 / np.abs(steepest), 0.5)
        twist = np.where(line.anchor, lam, 1.0 / lam)
        # Neither form is worse than the other by more than a factor of two where they meet.
        rounding = 1e-6 * (np.abs(half_log) + np.abs(threshold))
        use_gap = (line.kappa > 0.0) & (gap <= np.abs(linear) + rounding)
        gap = np.where(use_gap, gap, np.inf)
        return cls(line.kappa, linear, gap, reach, z, mu * (mu / base), twist)

    @cached_property
    def _bounded(self) -> IndexArray:
        return np.flatnonzero(np.isfinite(self.gap))

    def _from_bound(self) -> tuple[FloatArray, FloatArray]:
        """z and m (1 + kappa z) / (2 z) of the problems with a gap."""
        z = self.z[:, self._bounded]
        pull = 0.5 * self.m[:, self._bounded] * self.twist[:, self._bounded]
        return z, np.divide(pull, z, out=np.zeros_like(z), where=z != 0.0)

    def first_derivative(self, rho: FloatArray) -> FloatArray:
        """d/drho of the exponent without the poles."""
        v = 1.0 - rho * self.z
        across = rho / v
        terms = 0.5 * (self.z / v)
        terms += 0.5 * self.m * ((2.0 * across + self.kappa / v) / v - (across * self.z) * across)
        result = terms.sum(axis=0) - self.linear
        rows = self._bounded
        if rows.size:
            z, pull = self._from_bound()
            v = 1.0 - rho[rows] * z
            result[rows] = ((0.5 * z + pull / v) / v).sum(axis=0) + self.gap[rows]
        return np.asarray(result)

    def second_derivative(self, rho: FloatArray) -> FloatArray:
        """d^2/drho^2 of the exponent without the poles: positive."""
        v = 1.0 - rho * self.z
        y = self.z / v
        return np.asarray((0.5 * (y * y) + (self.m / v) * (self.twist / v) / v).sum(axis=0))

    def exponent(self, rho: FloatArray) -> FloatArray:
        """log M(s) - sign rho t."""
        logs = -0.5 * np.log1p(-rho * self.z)
        terms = 0.5 * rho * (self.m / (1.0 - rho * self.z)) * (rho + self.kappa)
        result = (logs + terms).sum(axis=0) - rho * self.linear
        rows = self._bounded
        if rows.size:
            z, pull = self._from_bound()
            across = rho[rows] / (1.0 - rho[rows] * z)
            result[rows] = (logs[:, rows] + across * pull).sum(axis=0) + rho[rows] * self.gap[rows]
        return np.asarray(result)

    def take(self, rows: IndexArray) -> TiltedRays:
        """The problems ``rows``."""
        return TiltedRays(
            self.kappa[rows],
            self.linear[rows],
            self.gap[rows],
            self.reach[rows],
            self.z[:, rows],
            self.m[:, rows],
            self.twist[:, rows],
        )

    def saddle(self) -> FloatArray:
        """Where exponent - log(rho) - log(1 + kappa rho) is least, to a fraction of its width.

        Newton's method in x, rho = reach / (1 + exp(-x)) (or exp(x) where nothing bounds rho, or
        between the poles), in which the slope is of order one at both ends; kept in a bracket.
        """
        size = self.linear.size
        best = np.zeros(size)
        bounded = np.isfinite(self.reach) & (self.kappa > 0.0)
        top = np.where(self.kappa > 0.0, _FARTHEST, np.log(0.5))
        top = np.where(bounded, 36.0, top)
        origin = np.zeros(size)
        slope = self.first_derivative(origin)
        bend = np.maximum(self.second_derivative(origin), 1e-300)
        root = np.sqrt(slope * slope + 8.0 * bend)
        guess = np.where(slope > 0.0, 4.0 / (root + slope), 0.5 * (root - slope) / bend)
        guess = np.where(bounded, np.minimum(guess, 0.5 * self.reach), guess)
        x = np.log(guess) - np.where(bounded, np.log(self.reach - guess), 0.0)
        low, high = np.full(size, -_FARTHEST), top
        x = np.clip(x, low, high)
        rows = np.arange(size)
        work = self
        for iteration in range(_SEARCH_STEPS):
            limit = bounded[rows]
            rho = np.where(limit, work.reach / (1.0 + np.exp(-x)), np.exp(x))
            stretch = np.where(limit, rho / (1.0 + np.exp(x)), rho)
            first = work.first_derivative(rho) - 1.0 / rho - work.kappa / (1.0 + work.kappa * rho)
            second = (
                work.second_derivative(rho)
                + 1.0 / (rho * rho)
                + 1.0 / (1.0 + work.kappa * rho) ** 2
            )
            curved = second * stretch + first * np.where(
                limit, (1.0 - np.exp(x)) / (1.0 + np.exp(x)), 1.0
            )
            step = np.where(curved > 0.0, -first / curved, np.nan)
            best[rows] = rho
            low = np.where(first <= 0.0, x, low)
            high = np.where(first >= 0.0, x, high)
            settled = (np.abs(first) < 1e-2 * np.sqrt(second)) | (high - low < 1e-13 * np.abs(x))
            if settled.all():
                break
            trial = x + np.clip(step, -4.0, 4.0)
            stuck = ~((trial > low) & (trial < high))
            if iteration % 3 == 2:
                stuck |= high - low > 6.0
            x = np.where(stuck, 0.5 * (low + high), trial)
            keep = np.flatnonzero(~settled)
            if keep.size < settled.size:
                rows, x, low, high = rows[keep], x[keep], low[keep], high[keep]
                work = work.take(keep)
        return best

    def log_tails(self) -> tuple[FloatArray, FloatArray]:
        """Logs of (1/(2 pi i)) int exp(exponent) drho times the near and times the far pole."""
        near, far = self._log_integrals(joint=False)
        return near, far

    def log_both_poles(self) -> FloatArray:
        """Log of (1/(2 pi i)) int exp(exponent) drho times both poles."""
        (both,) = self._log_integrals(joint=True)
        return np.asarray(both)

    def _log_integrals(self, joint: bool) -> FloatArray:
        with np.errstate(all="ignore"):
            rho = self.saddle()
            local = LocalExpansion.at(self, rho, joint)
            # Laplace's approximation, for thresholds so far out that rounding hides the saddle
            # point: the relative error of the log is then below that of the threshold.
            value = np.tile(local.width / np.sqrt(2.0 * np.pi), (1 if joint else 2, 1))
            slope = local.slope(np.arange(rho.size), np.zeros(rho.size, dtype=np.complex128))
            found = np.flatnonzero(np.abs(slope) * local.width < 1.0)
            if found.size:
                local = local.take(found)
                value[:, found] = integrate_upwards(local, local.width, value.shape[0])
            near, far = np.log(rho), np.log1p(self.kappa * rho)
            poles = np.stack([near + far] if joint else [near, far])
            return np.asarray(self.exponent(rho) - poles + np.log(np.maximum(value, 0.0)))


@dataclass(frozen=True)
class LocalExpansion:
    """The exponent around rho, as a function of delta = rho' - rho, exactly:

    linear delta + sum [ c delta^2 / (1 - delta y) - log(1 - delta y)/2 ],

    with y = z / (1 - rho z) and c = m (1 + kappa z) / (2 (1 - rho z)^3).  Nothing here is large
    where the exponent is of order one, so deep tails cost no digits.
    """

    joint: bool  # one factor, the product of the poles, instead of two
    rho: FloatArray
    other: FloatArray  # distance of the far pole, kappa + rho
    linear: FloatArray
    width: FloatArray
    y: FloatArray
    c: FloatArray

    @classmethod
    def at(cls, rays: TiltedRays, rho: FloatArray, joint: bool) -> LocalExpansion:
        """Expand ``rays`` at ``rho``."""
        v = 1.0 - rho * rays.z
        y = rays.z / v
        c = 0.5 * (rays.m / v) * (rays.twist / v) / v
        other = rays.kappa + rho
        curvature = (
            (0.5 * (y * y) + 2.0 * c).sum(axis=0) + 1.0 / (rho * rho) + 1.0 / (other * other)
        )
        linear = rays.first_derivative(rho) - 0.5 * y.sum(axis=0)
        return cls(joint, rho, other, linear, 1.0 / np.sqrt(curvature), y, c)

    def take(self, rows: IndexArray) -> LocalExpansion:
        """The problems ``rows``."""
        if rows.size == self.rho.size:
            return self
        return LocalExpansion(
            self.joint,
            self.rho[rows],
            self.other[rows],
            self.linear[rows],
            self.width[rows],
            self.y[:, rows],
            self.c[:, rows],
        )

    def exponent(self, rows: IndexArray, delta: ComplexArray) -> tuple[FloatArray, FloatArray]:
        """Real and imaginary part at ``delta`` (P, n), relative to delta = 0."""
        right, up = np.ascontiguousarray(delta.real), np.ascontiguousarray(delta.imag)
        log_size = np.zeros(right.shape)
        angle = np.zeros(right.shape)
        real = np.zeros(right.shape)
        imaginary = np.zeros(right.shape)
        coordinates = self.y.shape[0]
        step = max(1, _ELEMENTS_AT_ONCE // max(right.size, 1))
        for first in range(0, coordinates, step):
            y = self.y[first : first + step, rows][:, :, None]
            c = self.c[first : first + step, rows][:, :, None]
            a = 1.0 - y * right
            b = y * up
            square = a * a + b * b
            log_size += np.log(square).sum(axis=0)
            angle += np.arctan2(b, a).sum(axis=0)
            c = c / square
            real += (c * a).sum(axis=0)
            imaginary += (c * b).sum(axis=0)
        delta2_real = (right - up) * (right + up)
        delta2_imaginary = 2.0 * right * up
        linear = self.linear[rows][:, None]
        return (
            linear * right + real * delta2_real - imaginary * delta2_imaginary - 0.25 * log_size,
            linear * up + real * delta2_imaginary + imaginary * delta2_real + 0.5 * angle,
        )

    def slope(self, rows: IndexArray, delta: ComplexArray) -> ComplexArray:
        """Derivative of exponent - log(near pole) - log(far pole) at ``delta`` (P,)."""
        y, c = self.y[:, rows], self.c[:, rows]
        inverse = 1.0 / (1.0 - delta * y)
        terms = c * delta * (1.0 + inverse) * inverse + 0.5 * y * inverse
        poles = 1.0 / (self.rho[rows] + delta) + 1.0 / (self.other[rows] + delta)
        return np.asarray(self.linear[rows] + terms.sum(axis=0) - poles)

    def factors(self, rows: IndexArray, delta: ComplexArray) -> ComplexArray:
        """The poles at ``delta`` (P, n), each 1 at delta = 0."""
        rho, other = self.rho[rows][:, None], self.other[rows][:, None]
        if self.joint:
            return np.asarray(((rho * other) / ((rho + delta) * (other + delta)))[None])
        return np.stack([rho / (rho + delta), other / (other + delta)])


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


def integrate_upwards(integrand: LocalExpansion, width: FloatArray, count: int) -> FloatArray:
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
    integrand: LocalExpansion, rows: IndexArray, start: ComplexArray, end: ComplexArray
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
    integrand: LocalExpansion, width: FloatArray
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


def _log_size(integrand: LocalExpansion, rows: IndexArray, delta: ComplexArray) -> FloatArray:
    """log of the largest |f| among the factors at one point of each row."""
    real, _ = integrand.exponent(rows, delta[:, None])
    factor = np.abs(integrand.factors(rows, delta[:, None])).max(axis=0)
    return np.asarray((real + np.log(np.maximum(factor, _TINY)))[:, 0])
