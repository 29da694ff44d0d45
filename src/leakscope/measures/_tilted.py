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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.contour import ComplexArray, IndexArray, integrate_upwards

BoolArray = npt.NDArray[np.bool_]

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
