"""Two normals with any means and variances: everything in closed form.

The log likelihood ratio is the parabola of `leakscope.measures.normal_total_variation`, whose signs
d, s, g and c are used here.  This contains Eqs. (3) and (4) of the paper **linear** (d = 0) and the
Gaussian mechanism (g = 0); neither has code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import (
    LOG_SQRT_2PI,
    log1mexp,
    log_between,
    log_interval,
    log_upper,
)
from leakscope.laws.distributions import Normal
from leakscope.measures import normal_total_variation as parabola
from leakscope.measures.normal_divergence import renyi_of_normals
from leakscope.measures.ratio import Ratio, Tails

_FAR = 40.0  # a vertex beyond this many standard deviations: the far edge does not matter


@dataclass(frozen=True, eq=False)
class NormalRatio(Ratio):
    """``shift`` is d >= 0 (the sign does not matter) and ``log_scale`` is log s, shape (B,)."""

    shift: FloatArray
    log_scale: FloatArray

    @classmethod
    def of(cls, member: Normal, nonmember: Normal) -> NormalRatio:
        """Reduce flat batches of normals; differences are taken before anything is rounded."""
        shift = parabola.shift(np.abs(member.mean - nonmember.mean) / nonmember.sigma)
        log_scale = parabola.log_scale(member.sigma, nonmember.sigma)
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

    # ---- the region l > t ----------------------------------------------------------------

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""
        d, log_s = self.shift[:, None], self.log_scale[:, None]
        level = parabola.level_set(d, log_s, threshold)
        outside = log_s >= 0.0
        low = np.where(outside, level.far, level.near)
        high = np.where(outside, level.near, level.far)
        fpr_in, fpr_out = log_between(low, high), _log_outside(low, high)
        tpr_in = parabola.log_between_member(d, log_s, low, high)
        tpr_out = _log_outside(
            parabola.member_units(d, log_s, low), parabola.member_units(d, log_s, high)
        )
        return Tails(
            log_tpr=np.where(outside, tpr_out, tpr_in),
            log_fpr=np.where(outside, fpr_out, fpr_in),
            log_fnr=np.where(outside, tpr_in, tpr_out),
            log_tnr=np.where(outside, fpr_in, fpr_out),
        )

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""
        columns = epsilon.shape[-1]
        cells = type(self)(np.repeat(self.shift, columns), np.repeat(self.log_scale, columns))
        return np.asarray(cells._hockey_stick(epsilon.ravel())[0].reshape(epsilon.shape))

    def _hockey_stick(
        self, epsilon: FloatArray
    ) -> tuple[FloatArray, FloatArray, parabola.LevelSet]:
        """Log excess and log FPR at one epsilon per pair, and the level set they belong to."""
        d, log_s = self.shift, self.log_scale
        level = parabola.level_set(d, log_s, epsilon)
        outside = log_s >= 0.0
        stop = np.where(outside, np.inf, level.far)
        excess, log_fpr = parabola.log_excess_between(
            d, log_s, epsilon, level.near, stop, level.near, level.slope
        )
        two = np.flatnonzero(outside & np.isfinite(level.far))  # and the other side, mirrored
        if two.size:
            far = -level.far[two]
            left, log_left = parabola.log_excess_between(
                -d[two], log_s[two], epsilon[two], far, stop[two], far, level.slope[two]
            )
            excess[two] = np.logaddexp(excess[two], left)
            log_fpr[two] = np.logaddexp(log_fpr[two], log_left)
        whole = (level.slope == 0.0) & outside & (epsilon < 0.0)
        if whole.any():
            excess = np.where(whole, log1mexp(np.minimum(epsilon, 0.0)), excess)
        return excess, log_fpr, level

    # ---- measures ------------------------------------------------------------------------

    def advantage(self) -> FloatArray:
        """Total variation distance."""
        return self._total_variation.copy()

    @cached_property
    def _total_variation(self) -> FloatArray:
        return np.asarray(np.exp(parabola.log_total_variation(self.shift, self.log_scale)))

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance."""
        result = np.log1p(-np.minimum(self._total_variation, 0.9))
        rows = np.flatnonzero(self._total_variation >= 0.9)  # where one minus it has no digits
        part = type(self)(self.shift[rows], self.log_scale[rows])
        tails = part.tails(np.zeros((rows.size, 1)))
        result[rows] = np.minimum(np.logaddexp(tails.log_fnr, tails.log_fpr)[:, 0], 0.0)
        return np.asarray(result)

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

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size."""
        d, g = self.shift[:, None], self.growth[:, None]
        asked = np.broadcast_to(log_fpr, (self.size, log_fpr.shape[-1]))
        all_of_it, none_of_it = asked == 0.0, np.isneginf(asked)
        log_fpr = np.where(all_of_it | none_of_it, -1.0, asked)
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
            ends = (low - d[outside]) / scale[outside], (high - d[outside]) / scale[outside]
            log_tpr[outside], log_fnr[outside] = _log_outside(*ends), log_between(*ends)
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
        trivial = same[:, None] | all_of_it | none_of_it
        log_tpr = np.where(trivial, asked, np.minimum(log_tpr, 0.0))
        return log_tpr, np.where(trivial, log1mexp(asked), np.minimum(log_fnr, 0.0))

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta, by Newton's method."""
        log_delta = np.broadcast_to(log_delta, (self.size, log_delta.shape[-1]))
        result = np.zeros(log_delta.shape)
        with np.errstate(divide="ignore"):
            log_advantage = np.log(self.advantage())[:, None]
        for column in range(log_delta.shape[-1]):
            target = log_delta[:, column]
            rows = np.nonzero(log_advantage[:, 0] > target)[0]
            part = type(self)(self.shift[rows], self.log_scale[rows])
            result[rows, column] = part._epsilon_search(target[rows])
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
