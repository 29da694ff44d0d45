"""Two normals with any means and variances: everything in closed form.

In the nonmember's standard units the nonmember law is N(0, 1) and the member law N(d, s^2) with
d >= 0 (mirror the line if it is not), and with g = s^2 - 1 the log likelihood ratio is a parabola,

    l(w) = w^2/2 - (w - d)^2/(2 s^2) - log s,      vertex at c = -d/g.

The region l > t is the outside of an interval if g > 0, its inside if g < 0, and a half line if
g = 0.  This contains Eqs. (3) and (4) of the paper **linear** (d = 0) and the Gaussian mechanism
(g = 0).  Tails are kept as logs, so that probabilities of 1e-300 have digits too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import growing_panels
from leakscope._numerics.special_functions import (
    LOG_SQRT_2PI,
    log1mexp,
    log_between,
    log_interval,
    log_upper,
)
from leakscope.laws.distributions import Normal
from leakscope.measures.normal_divergence import renyi_of_normals
from leakscope.measures.ratio import Ratio

_FAR = 40.0  # beyond so many standard deviations nothing is left beside what is nearer
_CANCELS = 1e-2  # below this log ratio of two masses their difference is integrated instead
_BULK = 9.5  # standard deviations beyond which a normal law has no mass in double precision


class Rates(NamedTuple):
    """Logs of a test's rates, (B,) each."""

    log_tpr: FloatArray
    log_fnr: FloatArray
    log_fpr: FloatArray


@dataclass(frozen=True, eq=False)
class NormalRatio(Ratio):
    """``shift`` is d >= 0 (the sign does not matter) and ``log_scale`` is log s, shape (B,)."""

    shift: FloatArray
    log_scale: FloatArray

    @classmethod
    def of(cls, member: Normal, nonmember: Normal) -> NormalRatio:
        """Reduce flat batches of normals; differences are taken before anything is rounded."""
        shift = _shift(np.abs(member.mean - nonmember.mean) / nonmember.sigma)
        log_scale = _log_scale(member.sigma, nonmember.sigma)
        return cls(shift, log_scale)

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return int(self.shift.size)

    @property
    def growth(self) -> FloatArray:
        """g = s^2 - 1."""
        return np.asarray(np.expm1(2.0 * self.log_scale))

    def reversed(self) -> Self:
        """Exchange the roles: in the member's units the shift is d/s and the scale 1/s."""
        back = type(self)(self.shift * np.exp(-self.log_scale), -self.log_scale)
        back.__dict__["_total_variation"] = self._total_variation  # the same both ways
        return back

    def _hockey_stick(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, _LevelSet]:
        """Log excess and log FPR at one epsilon per pair, and the level set they belong to."""
        d, log_s = self.shift, self.log_scale
        level = _level_set(d, log_s, epsilon)
        outside = log_s >= 0.0
        stop = np.where(outside, np.inf, level.far)
        excess, log_fpr = _log_excess_between(d, log_s, epsilon, level.near, stop, level.slope)
        two = np.flatnonzero(outside & np.isfinite(level.far))  # and the other side, mirrored
        if two.size:
            far = -level.far[two]
            left, log_left = _log_excess_between(
                -d[two], log_s[two], epsilon[two], far, stop[two], level.slope[two]
            )
            excess[two] = np.logaddexp(excess[two], left)
            log_fpr[two] = np.logaddexp(log_fpr[two], log_left)
        whole = (level.slope == 0.0) & outside & (epsilon < 0.0)
        if whole.any():
            excess = np.where(whole, log1mexp(np.minimum(epsilon, 0.0)), excess)
        return excess, log_fpr, level

    def delta_at(self, epsilon: FloatArray) -> FloatArray:
        """The hockey sticks P1(l > epsilon) - exp(epsilon) P0(l > epsilon), (B, m)."""
        shape = self.size, epsilon.size
        cells = type(self)(np.repeat(self.shift, shape[1]), np.repeat(self.log_scale, shape[1]))
        return np.asarray(np.exp(cells._hockey_stick(np.tile(epsilon, shape[0]))[0]).reshape(shape))

    # ---- measures ------------------------------------------------------------------------

    def advantage(self) -> FloatArray:
        """Total variation distance."""
        return self._total_variation.copy()

    @cached_property
    def _total_variation(self) -> FloatArray:
        return np.asarray(np.exp(_log_total_variation(self.shift, self.log_scale)))

    def overlap(self) -> FloatArray:
        """One minus the total variation distance: both errors of the test at threshold 0."""
        result = 1.0 - self._total_variation
        rows = np.flatnonzero(result <= 0.1)  # where the difference has lost digits
        part = type(self)(self.shift[rows], self.log_scale[rows])
        rates = part.rates(np.zeros(rows.size))
        result[rows] = np.exp(np.minimum(np.logaddexp(rates.log_fnr, rates.log_fpr), 0.0))
        return result

    def rates(self, threshold: FloatArray) -> Rates:
        """Those of the test "member if l > threshold", one threshold for each pair."""
        d, log_s = self.shift, self.log_scale
        level = _level_set(d, log_s, threshold)
        outside = log_s >= 0.0
        low = np.where(outside, level.far, level.near)
        high = np.where(outside, level.near, level.far)
        ends = _member_units(d, log_s, low), _member_units(d, log_s, high)
        found = _log_between_member(d, log_s, low, high), _log_outside(*ends)
        passed = np.where(outside, _log_outside(low, high), log_between(low, high))
        return Rates(
            np.where(outside, found[1], found[0]), np.where(outside, found[0], found[1]), passed
        )

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)): two orthant probabilities of a bivariate normal (Owen's T).

        For g > 0 the event is |X1 - c| > |X0 - c|, that is (X1 - X0)(X1 + X0 - 2c) > 0.
        """
        d, g = self.shift, self.growth
        s2 = np.exp(2.0 * self.log_scale)
        scale = np.sqrt(1.0 + s2)
        h = d / scale
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            k = np.where(g == 0.0, np.inf, d * (1.0 + 2.0 / np.where(g == 0.0, 1.0, g)) / scale)
            root = 2.0 * np.sqrt(s2) / (1.0 + s2)  # sqrt(1 - rho^2), rho = g/(2 + g)
            rho = g / (2.0 + g)
            slope_h = np.where(np.isinf(k), np.inf, (k - rho * h) / (h * root))
            slope_k = np.where(np.isinf(k), 0.0, (h - rho * k) / (k * root))
            both_zero = (2.0 * np.arcsin(rho) / np.pi + 1.0) / 2.0
        owen = special.owens_t(h, np.nan_to_num(slope_h, nan=0.0)) + special.owens_t(
            np.where(np.isinf(k), 0.0, k), np.nan_to_num(slope_k, nan=0.0)
        )
        opposite = (np.minimum(h, k) < 0.0) & (np.maximum(h, k) >= 0.0)
        same_sign = 1.0 - 2.0 * owen - np.where(opposite, 1.0, 0.0)
        same_sign = np.where((h == 0.0) & (k == 0.0), both_zero, same_sign)
        same_sign = np.where(np.isinf(k), special.ndtr(h), same_sign)
        return np.asarray(np.where(g >= 0.0, same_sign, 1.0 - same_sign))

    def renyi(self, order: float) -> FloatArray:
        """D_order(P1 || P0); KL at order 1, sup l at infinity."""
        d = self.shift
        with np.errstate(over="ignore"):
            g = self.growth
        if not np.isinf(order):
            return renyi_of_normals(order, d, g, 2.0 * self.log_scale)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            peak = np.where(g < 0.0, -self.log_scale - d * d / (2.0 * g), np.inf)
        return np.asarray(np.where((g == 0.0) & (d == 0.0), 0.0, peak))

    # ---- inverse questions ---------------------------------------------------------------

    def tpr_at(self, fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """TPR and FNR, (B, m), of the best tests of the sizes ``fpr``, (m,)."""
        d, g = self.shift[:, None], self.growth[:, None]
        asked = np.broadcast_to(fpr, (self.size, fpr.size))
        ends = (asked == 0.0) | (asked == 1.0)
        log_fpr = np.log(np.where(ends, 0.5, asked))
        outside = np.broadcast_to(g >= 0.0, log_fpr.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.where(g == 0.0, -np.inf, -d / g)
        vertex = np.where((g == 0.0) & (d == 0.0), 0.0, vertex)
        vertex = np.broadcast_to(vertex, log_fpr.shape)
        log_tpr, log_fnr = np.empty(log_fpr.shape), np.empty(log_fpr.shape)
        scale = np.broadcast_to(np.exp(self.log_scale)[:, None], log_fpr.shape)
        d = np.broadcast_to(d, log_fpr.shape)
        if outside.any():
            near = _edge_outside(log_fpr[outside], -2.0 * vertex[outside])
            low, high = 2.0 * vertex[outside] - near, near
            low, high = ((edge - d[outside]) / scale[outside] for edge in (low, high))
            log_tpr[outside], log_fnr[outside] = _log_outside(low, high), log_between(low, high)
        inside = ~outside
        if inside.any():
            middle, s = vertex[inside], scale[inside]
            near, half = _edge_inside(log_fpr[inside], middle)
            low = (near - d[inside]) / s
            high = (2.0 * middle - near - d[inside]) / s
            part = log_interval((middle - d[inside]) / s, half / s)
            far = np.flatnonzero(middle > _FAR)
            part[far] = log_between(low[far], high[far])
            log_tpr[inside] = part
            log_fnr[inside] = _log_outside(low, high)
        same = (self.shift == 0.0) & (self.log_scale == 0.0)
        trivial = same[:, None] | ends
        tpr = np.where(trivial, asked, np.exp(np.minimum(log_tpr, 0.0)))
        return tpr, np.where(trivial, 1.0 - asked, np.exp(np.minimum(log_fnr, 0.0)))

    def epsilon_at(self, delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most ``delta``, by Halley's method."""
        result = np.zeros((self.size, delta.size))
        for column, level in enumerate(delta.tolist()):
            if level == 0.0:
                result[:, column] = np.maximum(self.renyi(np.inf), 0.0)
                continue
            rows = np.flatnonzero(self._total_variation > level)
            part = type(self)(self.shift[rows], self.log_scale[rows])
            result[rows, column] = part._epsilon_search(np.full(rows.size, np.log(level)))
        return result

    def _epsilon_search(self, target: FloatArray) -> FloatArray:
        """Solve log_excess(epsilon) = target for pairs whose advantage is above it.

        Halley's method from above; a step that leaves the bracket, or starts too far off to be
        worth anything, is replaced by the bracket's middle.
        """
        high = np.maximum(self._level_of_member_tail(target), 0.0)
        low = np.zeros(target.shape)
        epsilon = self._first_guess(target, high)
        active = np.arange(target.size)
        for _ in range(100):
            if not active.size:
                break
            part = type(self)(self.shift[active], self.log_scale[active])
            x = epsilon[active]
            value, log_fpr, level = part._hockey_stick(x)
            error = value - target[active]
            low[active] = np.where(error > 0.0, x, low[active])
            high[active] = np.where(error <= 0.0, x, high[active])
            with np.errstate(all="ignore"):
                # f = log delta has f' = -A/delta with A = exp(eps) P0, and A' = A - exp(eps) p_l
                fall = np.exp(x + log_fpr - value)
                scale = x - value - LOG_SQRT_2PI
                bell = np.exp(scale - 0.5 * level.near**2) + np.exp(scale - 0.5 * level.far**2)
                bend = bell / level.slope - fall - fall * fall
                newton = x + error / fall
                new = x + error / (fall - 0.5 * error * bend / fall)
            a, b = low[active], high[active]
            new = np.where((new >= a) & (new <= b), new, newton)
            bad = ~((new >= a) & (new <= b)) | (np.abs(error) > 30.0)
            new = np.where(bad, 0.5 * (a + b), new)
            epsilon[active] = new
            settled = (np.abs(new - x) <= 1e-9 * new) & (np.abs(error) < 1e-3)
            active = active[~(settled | (b - a <= 1e-15 * b))]
        return epsilon

    def _first_guess(self, target: FloatArray, high: FloatArray) -> FloatArray:
        """Where l is bounded and the region narrow, the hockey stick grows as its width cubed."""
        d, log_s, g = self.shift, self.log_scale, self.growth
        with np.errstate(all="ignore"):
            s = np.exp(log_s)
            bend = -g / (2.0 * s * s)
            peak = -log_s - d * d / (2.0 * g)
            log_height = -0.5 * (d * s / g) ** 2 - LOG_SQRT_2PI - log_s  # log p1 at the vertex
            half = np.exp((target - log_height - np.log(bend * 4.0 / 3.0)) / 3.0)
            flat = half / s * (1.0 - d * s / g) < 0.5  # p1 hardly changes over the region
            narrow = (g < 0.0) & flat & (bend * half * half < 0.5)
            guess = peak - bend * half * half
        return np.where(narrow & (guess > 0.0) & (guess < high), guess, high)

    def _level_of_member_tail(self, log_delta: FloatArray) -> FloatArray:
        """The level t with P1(l > t) = delta: above the epsilon sought, and close to it."""
        d, log_s, g = self.shift, self.log_scale, self.growth
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.where(g == 0.0, -np.inf, -d * np.exp(log_s) / g)
        near = np.empty(d.shape)
        outside = g >= 0.0
        near[outside] = _edge_outside(log_delta[outside], -2.0 * vertex[outside])
        inside = ~outside
        near[inside] = _edge_inside(log_delta[inside], vertex[inside])[0]
        gap = d + np.expm1(log_s) * near  # w - z at the edge, where w is in nonmember units
        return np.asarray(gap * (near + 0.5 * gap) - log_s)


def _log_outside(low: FloatArray, high: FloatArray) -> FloatArray:
    """Log mass of the standard normal outside [low, high]; ends may be infinite."""
    return np.asarray(np.minimum(np.logaddexp(special.log_ndtr(low), log_upper(high)), 0.0))


def _edge_outside(log_mass: FloatArray, gap: FloatArray) -> FloatArray:
    """Solve log(Q(t) + Q(t + gap)) = log_mass for t >= -gap/2, with Q the upper tail.

    The left side is concave, so Newton's method from the upper bound Q^-1(mass/2) converges
    monotonically.
    """
    t = np.asarray(-special.ndtri_exp(log_mass - np.log(2.0)))
    one_sided = ~(gap < 60.0)
    if one_sided.any():
        t[one_sided] = -special.ndtri_exp(log_mass[one_sided])
    active = np.nonzero(~one_sided & np.isfinite(t))[0]
    for _ in range(60):
        if not active.size:
            break
        x, k = t[active], gap[active]
        log_q = np.logaddexp(log_upper(x), log_upper(x + k))
        log_slope = np.logaddexp(-0.5 * x * x, -0.5 * (x + k) ** 2) - LOG_SQRT_2PI
        step = (log_q - log_mass[active]) * np.exp(log_q - log_slope)
        new = np.maximum(x + step, -0.5 * k)
        t[active] = new
        active = active[np.abs(new - x) > 1e-14 * (1.0 + np.abs(new))]
    return t


def _edge_inside(log_mass: FloatArray, middle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve log P(|Z - middle| <= h) = log_mass; return middle - h and h.  ``middle`` >= 0.

    The left side is concave and increasing in h: Newton's method from below converges
    monotonically, and so does it from above after one step.
    """
    near = -special.ndtri_exp(log_mass)
    with np.errstate(over="ignore", invalid="ignore"):
        uniform = np.exp(log_mass + LOG_SQRT_2PI - np.log(2.0))
        flat = uniform * np.exp(0.5 * middle * middle)
        lower = np.maximum(middle - near, uniform)
        h = np.where(flat * (1.0 + middle) < 0.5, np.maximum(flat, lower), lower)
    bounded = middle <= _FAR
    active = np.nonzero(bounded & np.isfinite(h) & (h > 0.0))[0]
    for _ in range(100):
        if not active.size:
            break
        x, m = h[active], middle[active]
        log_p = log_interval(m, x)
        log_slope = np.logaddexp(-0.5 * (m - x) ** 2, -0.5 * (m + x) ** 2) - LOG_SQRT_2PI
        step = (log_mass[active] - log_p) * np.exp(log_p - log_slope)
        new = np.maximum(x + step, 0.5 * x)
        h[active] = new
        active = active[np.abs(new - x) > 1e-14 * new]
    return np.where(bounded, middle - h, near), h


class _LevelSet(NamedTuple):
    """Roots of l = t, next to the nonmember's centre and far from it, and the slope there.

    Where there is no root both are the vertex and the slope is zero: the region is everything
    or nothing.
    """

    near: FloatArray
    far: FloatArray
    slope: FloatArray


def _shift(d: FloatArray) -> FloatArray:
    """d, or zero where its square underflows: such a shift tells nothing apart."""
    return np.where(np.abs(d) < 1e-130, 0.0, d)


def _log_scale(sigma1: FloatArray, sigma0: FloatArray) -> FloatArray:
    """log(sigma1/sigma0), subtracting before anything is rounded."""
    relative = (sigma1 - sigma0) / sigma0
    near = np.abs(relative) < 0.5
    return np.where(near, np.log1p(np.where(near, relative, 0.0)), np.log(sigma1 / sigma0))


def _level_set(d: FloatArray, log_s: FloatArray, threshold: FloatArray) -> _LevelSet:
    """Solve l = threshold; the far root is -inf when g = 0."""
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    lift = log_s + threshold
    root = s * np.sqrt(np.maximum(d * d + 2.0 * g * lift, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        near = (d * d + 2.0 * s * s * lift) / (d + root)
        far = np.where(g == 0.0, -np.inf, -(d + root) / g)
        # equal laws: l = 0 everywhere, and l > t is everything (t < 0) or nothing
        vertex = np.where(g == 0.0, np.where(lift < 0.0, -np.inf, np.inf), -d / g)
    none = root == 0.0
    near = np.where(none, vertex, near)
    far = np.where(none & (g != 0.0), vertex, far)
    return _LevelSet(near, far, root / (s * s))


def _member_units(d: FloatArray, log_s: FloatArray, w: FloatArray) -> FloatArray:
    """The point w in the member's standard units."""
    return np.asarray((w - d) * np.exp(-log_s))


def _log_between_member(
    d: FloatArray, log_s: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Log of the member's mass between two points given in nonmember units."""
    d, log_s, low, high = np.broadcast_arrays(d, log_s, low, high)
    with np.errstate(invalid="ignore"):
        half = 0.5 * (high - low) * np.exp(-log_s)
    close = half < 50.0
    if close.all():
        mid = _member_units(d, log_s, 0.5 * (low + high))
        return log_interval(mid, np.maximum(half, 0.0))
    result = np.empty(half.shape)
    wide = ~close
    result[wide] = log_between(
        _member_units(d[wide], log_s[wide], low[wide]),
        _member_units(d[wide], log_s[wide], high[wide]),
    )
    mid = _member_units(d[close], log_s[close], 0.5 * (low[close] + high[close]))
    result[close] = log_interval(mid, np.maximum(half[close], 0.0))
    return result


def _log_total_variation(d: FloatArray, log_s: FloatArray) -> FloatArray:
    """Log of P1(l > 0) - P0(l > 0), as the sum of two short intervals; one-dimensional, d >= 0.

    At a root w of l = 0 let z = (w - d)/s be the same point in the member's units.  The masses
    beyond it differ by the standard normal's between z and w, and those of both roots add up:
    nothing cancels, however alike the laws are.  Nor do the lengths.  At the root near the centre
    w - z = d + (s - 1) z = (d + (s - 1) w)/s, a sum of two positive terms in one form or the other;
    at the far one w - z = 2 log(s)/(w + z), because l = 0.
    """
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    level = _level_set(d, log_s, np.zeros_like(d))
    same, spread = level.slope == 0.0, np.expm1(log_s)
    w = np.where(same, 0.0, level.near)
    z = (2.0 * log_s - d * d) / (s * np.where(same, 1.0, d + level.slope))
    apart = d + np.minimum(spread, 0.0) * z + np.maximum(spread, 0.0) * w
    half = 0.5 * apart / np.maximum(s, 1.0)
    high = np.where(half < _FAR, w, np.minimum(w, _FAR))
    half = np.where(half < _FAR, half, 0.5 * (high - np.maximum(z, -_FAR)))
    masses = log_interval(high - half, half)
    far = np.flatnonzero(np.abs(level.far) < _FAR)
    if far.size:
        w = level.far[far]
        z = -(d + level.slope)[far] * s[far] / g[far]
        other = log_interval(0.5 * (w + z), np.abs(log_s[far] / (w + z)))
        masses[far] = np.logaddexp(masses[far], other)
    return np.minimum(masses, 0.0)


def _log_excess_between(
    d: FloatArray,
    log_s: FloatArray,
    epsilon: FloatArray,
    start: FloatArray,
    stop: FloatArray,
    slope: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Log of the integral of p1 - exp(epsilon) p0 from ``start`` upwards to ``stop``, and of p0.

    ``start`` is a root of l = epsilon, with this slope, and l is above epsilon up to ``stop``,
    which may be infinite; d may have either sign.  Masses are subtracted where they differ, and
    the difference is integrated where their digits would cancel.
    """
    log_p0, log_p1 = log_between(start, stop), _log_between_member(d, log_s, start, stop)
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(log_p1), 0.0, log_p1 - log_p0 - epsilon)
    value = np.where(gap > 0.0, log_p1 + log1mexp(-np.maximum(gap, 0.0)), -np.inf)
    lost = (gap < _CANCELS) & (log_p1 > -np.inf)
    if lost.any():
        rise = _log_rise(*(each[lost] for each in (d, log_s, start, stop, slope)))
        value[lost] = epsilon[lost] + rise
    return value, log_p0


def _log_rise(
    d: FloatArray, log_s: FloatArray, root: FloatArray, stop: FloatArray, slope: FloatArray
) -> FloatArray:
    """Log of the integral of phi(w) (exp(l(w) - epsilon) - 1): a positive integrand."""
    s, g = np.exp(log_s), np.expm1(2.0 * log_s)
    start = np.minimum(np.maximum(root, -_BULK), np.maximum(stop, root))
    reach0, first0 = _reach(start)
    reach1, first1 = _reach(_member_units(d, log_s, start))
    last = np.maximum(np.minimum(np.maximum(reach0, s * reach1), stop - start), 0.0)
    first = np.minimum(first0, s * first1)
    bend = 0.5 * g / (s * s)
    result = np.empty(start.shape)
    short = last < 4.0 * first  # one panel resolves it
    for some, count, order in ((short, 1, 20), (~short, 32, 12)):
        if not some.any():
            continue
        v, weights = growing_panels(first[some], last[some], count, order)
        a = start[some][:, None]
        u = v + (start - root)[some][:, None]
        rise = u * (slope[some][:, None] + bend[some][:, None] * u)
        # phi(a + v) relative to its peak on the interval, so that far tails do not underflow
        peak = np.where(a > 0.0, -0.5 * a * a, 0.0)
        base = np.where(a > 0.0, -v * (a + 0.5 * v), -0.5 * (a + v) ** 2)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            small = np.exp(base) * np.expm1(np.minimum(rise, 1.0))
            density = np.where(rise < 1.0, small, np.exp(base + rise) - np.exp(base))
            total = np.log(np.maximum((density * weights).sum(axis=-1), 0.0))
        result[some] = total + peak[:, 0] - LOG_SQRT_2PI
    return result


def _reach(start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far from ``start`` upwards the standard normal has mass, and its shortest scale."""
    positive = np.maximum(start, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        tail = np.minimum(_BULK, 42.0 / positive)
    return np.where(start > 0.0, tail, _BULK - start), 0.25 / (1.0 + positive)
