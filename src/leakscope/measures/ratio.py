"""What every measure is made of: the law of the log likelihood ratio under both hypotheses.

A law without a closed form for them answers the inverse questions, the TPR at an FPR and the
epsilon at a delta, by a search over the threshold of the likelihood-ratio test; its divergences and
the area under its ROC are integrals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import expm1_minus_x, log1mexp

IndexArray = npt.NDArray[np.intp]


class Tails(NamedTuple):
    """Log probabilities of the test "member if l > threshold", each of shape (B, m)."""

    log_tpr: FloatArray
    log_fpr: FloatArray
    log_fnr: FloatArray
    log_tnr: FloatArray


class Ratio(ABC):
    """The log likelihood ratio l = log p1/p0 of B pairs (p1 the member law, p0 the nonmember).

    Queries of shape (B, m) ask m questions of each pair.  Everything is in logs, so that
    probabilities of 1e-300 and differences of 1e-12 both keep their digits.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """B, the number of pairs."""

    @abstractmethod
    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""

    @abstractmethod
    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the hockey stick P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""

    @abstractmethod
    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""

    @abstractmethod
    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""

    @abstractmethod
    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""

    @abstractmethod
    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""

    @abstractmethod
    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size, randomised where it must be."""

    @abstractmethod
    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""

    def log_certain(self) -> FloatArray:
        """log P1(l = inf): what a member shows that a nonmember never does, shape (B,)."""
        return np.full(self.size, -np.inf)

    def jeffreys(self) -> FloatArray:
        """KL(P1 || P0) + KL(P0 || P1), shape (B,)."""
        return self.renyi(1.0) + self.reversed().renyi(1.0)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision, shape (B, m)."""
        return np.asarray(np.exp(self.tails(threshold).log_fpr))

    def kinks(self) -> FloatArray:
        """Levels at which the size of the test is not smooth, (B, K); others do no harm."""
        return np.stack([self.renyi(np.inf), -self.reversed().renyi(np.inf)], axis=-1)

    @abstractmethod
    def reversed(self) -> Self:
        """The same pairs with the roles of member and nonmember exchanged."""


class SearchedRatio(Ratio):
    """A ratio whose inverse questions are answered by a search over the threshold."""

    @abstractmethod
    def llr_scale(self) -> FloatArray:
        """A typical size of |l| for each pair, shape (B,); zero for equal laws."""

    @abstractmethod
    def take(self, rows: IndexArray) -> Self:
        """The pairs ``rows``, some perhaps several times."""

    @property
    def equal(self) -> npt.NDArray[np.bool_]:
        """Where both laws are known to be one law, shape (B,)."""
        return np.zeros(self.size, dtype=bool)

    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold), shape (B, m)."""
        return self.tails(threshold).log_fpr

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return np.asarray(np.exp(self.log_excess(np.zeros((self.size, 1)))[:, 0]))

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""
        tails = self.tails(np.zeros((self.size, 1)))
        value = np.minimum(np.logaddexp(tails.log_fnr, tails.log_fpr)[:, 0], 0.0)
        return np.where(self.equal, 0.0, value)

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size.

        The threshold need not be known exactly: the ROC has the slope exp(threshold) there, and the
        step along this tangent to the size asked for leaves an error of second order, or a relative
        one of the bracket's width.  At an atom of l, where the best test is randomised, the ROC is
        a straight line and the step is exact.
        """
        shape = (self.size, log_fpr.shape[-1])
        rows = np.repeat(np.arange(shape[0]), shape[1])
        asked = np.broadcast_to(log_fpr, shape).ravel()
        ends = (asked == 0.0) | np.isneginf(asked)
        target = np.where(ends, -1.0, asked)

        def gap(threshold: FloatArray, which: IndexArray) -> FloatArray:
            return self.take(rows[which]).log_fpr(threshold[:, None])[:, 0] - target[which]

        start = expand_bracket(gap, *self._around(target, rows))
        found = shrink_bracket(gap, start, f_tolerance=1e-11, x_absolute=1e-13)
        cells = self.take(rows)
        at = _column(cells.tails(found.high[:, None]))
        with np.errstate(invalid="ignore"):
            missing = target + log1mexp(np.minimum(at.log_fpr - target, 0.0)) + found.high
            log_tpr = np.logaddexp(at.log_tpr, missing)
            log_fnr = at.log_fnr + log1mexp(np.minimum(missing - at.log_fnr, 0.0))
        # across an atom the FNR comes up from the low end instead, where nothing cancels
        jump = np.flatnonzero((np.abs(found.f_high) > 1e-11) & np.isfinite(found.low))
        if jump.size:
            below = _column(cells.take(jump).tails(found.low[jump][:, None]))
            step = np.maximum(below.log_fpr - target[jump], 0.0)
            spare = target[jump] + step + log1mexp(-step) + found.low[jump]
            log_fnr[jump] = np.logaddexp(below.log_fnr, spare)
        # a TPR lies between its FPR and that plus the advantage, whatever the search has rounded
        with np.errstate(divide="ignore"):
            most = np.logaddexp(target, np.log(self.advantage())[rows])
        log_tpr = np.clip(log_tpr, target, most)
        # at the ends: everything is called a member, or only what no nonmember can show
        certain = self.log_certain()[rows]
        log_tpr = np.where(asked == 0.0, 0.0, np.where(np.isneginf(asked), certain, log_tpr))
        log_fnr = np.where(
            asked == 0.0, -np.inf, np.where(np.isneginf(asked), log1mexp(certain), log_fnr)
        )
        return np.minimum(log_tpr, 0.0).reshape(shape), np.minimum(log_fnr, 0.0).reshape(shape)

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta; inf where there is none."""
        shape = (self.size, log_delta.shape[-1])
        rows = np.repeat(np.arange(shape[0]), shape[1])
        target = np.broadcast_to(log_delta, shape).ravel()
        with np.errstate(divide="ignore"):
            already = np.log(self.advantage())[rows] <= target
        never = self.log_certain()[rows] > target
        result = np.where(never, np.inf, 0.0)
        cells = np.flatnonzero(~already & ~never)

        def gap(epsilon: FloatArray, which: IndexArray) -> FloatArray:
            part = self.take(rows[cells[which]])
            return part.log_excess(epsilon[:, None])[:, 0] - target[cells[which]]

        if cells.size:
            start = expand_bracket(gap, np.zeros(cells.size), self._widths()[rows[cells]])
            found = shrink_bracket(gap, start, f_tolerance=1e-13)
            result[cells] = found.high
        return result.reshape(shape)

    def _widths(self) -> FloatArray:
        """How far apart thresholds that differ may lie, shape (B,)."""
        scale = self.llr_scale()
        return np.where(scale > 0.0, scale, 1.0)

    def _around(self, log_fpr: FloatArray, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Two thresholds to start from, low < high; of this size, a test of the pairs ``rows``."""
        width = self._widths()[rows]
        return -width, width


def _column(tails: Tails) -> Tails:
    return Tails(*(a[:, 0] for a in tails))


# ---- roots of monotone functions, a whole batch at once -----------------------------------

Function = Callable[[FloatArray, IndexArray], FloatArray]
"""f(x, which): the values of the functions number ``which`` at x, one-dimensional arrays."""


class Bracket(NamedTuple):
    """``low`` and ``high`` with f(low) > 0 >= f(high), and the values there."""

    low: FloatArray
    high: FloatArray
    f_low: FloatArray
    f_high: FloatArray


def expand_bracket(
    f: Function, low: FloatArray, high: FloatArray, farthest: float = 1e60
) -> Bracket:
    """Move the ends of [low, high] outwards until a non-increasing f changes sign between them.

    The step doubles each time.  Where f keeps its sign as far as ``farthest``, that end is
    infinite.
    """
    everything = np.arange(low.size)
    low, high = low.copy(), high.copy()
    f_low, f_high = f(low, everything), f(high, everything)
    width = high - low
    while True:
        up = np.flatnonzero((f_high > 0.0) & np.isfinite(high))
        down = np.flatnonzero((f_low <= 0.0) & np.isfinite(low))
        if not (up.size or down.size):
            break
        width[up] *= 2.0
        width[down] *= 2.0
        low[up], f_low[up] = high[up], f_high[up]
        high[up] += width[up]
        high[down], f_high[down] = low[down], f_low[down]
        low[down] -= width[down]
        high[high > farthest], low[low < -farthest] = np.inf, -np.inf
        some = up[np.isfinite(high[up])]
        f_high[some] = f(high[some], some)
        some = down[np.isfinite(low[down])]
        f_low[some] = f(low[some], some)
    return Bracket(low, high, f_low, f_high)


def shrink_bracket(
    f: Function,
    bracket: Bracket,
    *,
    f_tolerance: float | FloatArray = 0.0,
    x_tolerance: float = 1e-15,
    x_absolute: float = 0.0,
    limit: int = 200,
) -> Bracket:
    """Close the bracket of a non-increasing f: inverse quadratic steps, else bisection.

    An entry is finished when |f(high)| <= f_tolerance (one for all, or one each) or when the
    bracket is narrower than x_absolute, or than x_tolerance times its ends' size.  Jumps and
    infinite values are allowed: there the bracket closes on the jump.  The rule that chooses
    between the steps is Chandrupatla's (1997).
    """
    low, high, f_low, f_high = (np.array(a, dtype=np.float64) for a in bracket)
    enough = np.broadcast_to(np.asarray(f_tolerance, dtype=np.float64), low.shape)
    # the end that moved last, and where it stood before
    last_high = np.ones(low.shape, dtype=bool)
    left, f_left = high.copy(), f_high.copy()
    active = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    for iteration in range(limit):
        a, b = low[active], high[active]
        size = np.maximum(x_tolerance * np.maximum(np.abs(a), np.abs(b)), x_absolute)
        wide = (np.abs(f_high[active]) > enough[active]) & (b - a > size)
        active, a, b, size = active[wide], a[wide], b[wide], size[wide]
        if not active.size:
            break
        newest_high = last_high[active]
        fa, fb = f_low[active], f_high[active]
        x1, f1 = np.where(newest_high, b, a), np.where(newest_high, fb, fa)
        x2, f2 = np.where(newest_high, a, b), np.where(newest_high, fa, fb)
        x3, f3 = left[active], f_left[active]
        with np.errstate(all="ignore"):
            if iteration == 0:  # two points only
                step = f1 / (f1 - f2)
                safe = np.isfinite(step)
            else:
                along, down = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
                safe = (down * down < along) & ((1.0 - down) ** 2 < 1.0 - along)
                step = f1 / (f2 - f1) * f3 / (f2 - f3)
                step += (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
                safe &= np.isfinite(step)
            least = np.minimum(0.5 * size / (b - a), 0.5)
            step = np.where(safe, np.clip(step, least, 1.0 - least), 0.5)
            x = x1 + step * (x2 - x1)
        x = np.where((x > a) & (x < b), x, 0.5 * (a + b))
        value = f(x, active)
        above = value > 0.0
        left[active] = np.where(above, a, b)
        f_left[active] = np.where(above, fa, fb)
        last_high[active] = ~above
        up, falls = active[above], active[~above]
        low[up], f_low[up] = x[above], value[above]
        high[falls], f_high[falls] = x[~above], value[~above]
    return Bracket(low, high, f_low, f_high)


# ---- integrals -----------------------------------------------------------------------------
#
# The integrands of divergences never change sign, so that nearly equal laws keep their digits.
# ``up`` and ``down`` are log p1 and log p0, and ``llr`` their difference with digits of its own.


def kl_integrand(up: FloatArray, down: FloatArray, llr: FloatArray) -> FloatArray:
    """p1 l - p1 + p0, which is never negative and integrates to KL(P1 || P0)."""
    with np.errstate(under="ignore"):
        return kl_terms(np.exp(up), np.exp(down), llr)


def kl_terms(p1: FloatArray, p0: FloatArray, llr: FloatArray) -> FloatArray:
    """`kl_integrand` of densities or masses themselves."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = p1 * expm1_minus_x(-llr)
        large = p1 * (llr - 1.0) + p0
    return np.asarray(np.where(np.abs(llr) < 0.5, small, large))


def moment_weight(order: float) -> float:
    """What the integral of `moment_integrand` is multiplied with: a - 1, or -a below 1/2."""
    return order - 1.0 if order >= 0.5 else -order


def moment_integrand(order: float, up: FloatArray, down: FloatArray, llr: FloatArray) -> FloatArray:
    """p1 (exp(r l) - 1)/r - p1 + p0 with r = ``order`` - 1, never negative.

    It integrates to (E0[exp(a l)] - 1)/r with a = ``order``, and becomes `kl_integrand` as a goes
    to 1.  Below a = 1/2 the laws change places, so that a going to 0 costs no digits either; the
    integral times `moment_weight` is the moment minus one in both cases.
    """
    r = moment_weight(order)
    if order < 0.5:
        order, up, down, llr = 1.0 - order, down, up, -llr
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        p1, p0, tilt = np.exp(up), np.exp(down), r * llr
        power = np.exp(order * up - r * down)
        grown = np.where(np.abs(tilt) <= 1.0, p1 * np.expm1(tilt) / r, (power - p1) / r)
        close = np.abs(llr) < 0.5
        small = p1 * (expm1_minus_x(tilt) / r + expm1_minus_x(-llr))
        large = grown + np.where(close, p1 * np.expm1(-llr), p0 - p1)
    return np.asarray(np.where(close & (np.abs(tilt) <= 1.0), small, large))


# The double-exponential rule on [0, 1]: any power at the ends of a piece is integrated well.
_STEP = np.arange(-19, 20) * 0.16
_ANGLE = 0.5 * np.pi * np.sinh(_STEP)
_NODES = 1.0 / (1.0 + np.exp(-2.0 * _ANGLE))
_WEIGHTS = 0.16 * 0.25 * np.pi * np.cosh(_STEP) / np.cosh(_ANGLE) ** 2


def auc_by_levels(
    size_of_test: Callable[[FloatArray], FloatArray], levels: FloatArray
) -> FloatArray:
    """AUC of B pairs, from the size of the likelihood-ratio test alone.

    With F(t) = P0(l > t), the ROC's slope at that point is exp(t), and integrating by parts

        1 - AUC = (1/2) integral of exp(t) F(t)^2 dt,

    ties counting one half, atoms included.  With s = exp(t) below t = 0 and r = exp(-t) above it,
    both halves are integrals over [0, 1] of functions between 0 and 1 (above, because
    F(t) <= exp(-t)).

    Parameters
    ----------
    size_of_test
        F at thresholds of shape (B, m).
    levels
        (B, K): where F has kinks, and enough other levels to show where l lies; the pieces of
        the integral end there.
    """
    batch = levels.shape[0]
    missed = np.zeros(batch)
    for sign in (-1.0, 1.0):
        ends = np.exp(-np.maximum(sign * levels, 0.0))
        edge = np.broadcast_to(np.array([0.0, 1.0]), (batch, 2))
        breaks = np.sort(np.concatenate([ends, edge], axis=-1), axis=-1)
        breaks = breaks[:, _used(breaks)]
        width = np.diff(breaks, axis=-1)[..., None]
        x = (breaks[:, :-1, None] + width * _NODES).reshape(batch, -1)
        weight = (width * _WEIGHTS).reshape(batch, -1)
        level = sign * -np.log(np.maximum(x, 1e-300))
        value = size_of_test(level)
        if sign > 0.0:
            value = np.minimum(value / np.maximum(x, 1e-300), 1.0)
        missed += (weight * value * value).sum(axis=-1)
    return np.asarray(1.0 - 0.5 * missed)


def _used(breaks: FloatArray) -> npt.NDArray[np.bool_]:
    """Columns that end a piece of some width in at least one row."""
    wide = (np.diff(breaks, axis=-1) > 0.0).any(axis=0)
    return np.concatenate([wide, [True]])
