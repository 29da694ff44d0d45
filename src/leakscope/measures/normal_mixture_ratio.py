"""Two mixtures of normals (scale mixtures among them): regions found, masses exact.

Both laws are expressed in common units (nonmember's first component: mean 0, sigma 1).  For laws
that nearly agree, log p1 - log p0 would lose its digits; there the difference is summed component
by component,

    p1 - p0 = sum_j  dw_j phi_0j + w_1j phi_0j (exp(q_j) - 1),

with q_j the log ratio of the j-th components alone (a parabola with exact coefficients) and dw_j
the difference of weights, which sums to zero exactly.

The ratio can cross a level any number of times.  A grid fine enough for every component, together
with all points where the ratio turns, splits the line into cells on which it is monotone: each
cell then holds at most one crossing of any level, which is refined to machine precision.  Where a
narrow component gives way to another under the other law's wide ones, the ratio bends at a point
that no component is fine enough for; such bends are points of the grid as well.

The region l > t is a union of intervals between the crossings; its masses are sums of normal
interval probabilities, and integrals that have no closed form (KL, Rényi, and differences of nearly
equal masses) use Gauss-Legendre nodes in the cells of the same table.  The AUC is that of the order
of its cells (:mod:`leakscope.measures.ordered_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope._numerics.special_functions import LOG_SQRT_2PI
from leakscope.laws.distributions import NormalMixture
from leakscope.measures import normal_total_variation as parabola
from leakscope.measures.ordered_cells import Score, auc_by_cells
from leakscope.measures.ratio import (
    Bracket,
    IndexArray,
    SearchedRatio,
    Tails,
    kl_integrand,
    moment_integrand,
    moment_weight,
    shrink_bracket,
)


class Components(NamedTuple):
    """Normalised log weights, means and log sigmas in common units, shape (B, J)."""

    log_weight: FloatArray
    mean: FloatArray
    log_sigma: FloatArray


@dataclass(frozen=True, eq=False)
class MixturePair:
    """Flat batches of two mixtures, padded to as many components, in common units."""

    member: Components
    nonmember: Components
    weight_change: FloatArray
    mean_change: FloatArray
    log_sigma_change: FloatArray
    matched: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, member: NormalMixture, nonmember: NormalMixture) -> MixturePair:
        """Pad both to as many components and reduce them to common units."""
        most = max(member.components, nonmember.components)
        member, nonmember = member.padded(most), nonmember.padded(most)
        raw1, mean1, sigma1 = member.raw_weights, member.means, member.sigmas
        raw0, mean0, sigma0 = nonmember.raw_weights, nonmember.means, nonmember.sigmas
        centre, unit = mean0[:, :1], sigma0[:, :1]
        sum1, sum0 = raw1.sum(-1, keepdims=True), raw0.sum(-1, keepdims=True)
        step = raw1 - raw0
        change = step / sum1 - raw0 * step.sum(-1, keepdims=True) / (sum1 * sum0)
        # the heaviest component takes what rounding left over: the changes sum to zero
        heaviest = np.argmax(raw0, axis=-1)[:, None]
        np.put_along_axis(change, heaviest, 0.0, axis=-1)
        np.put_along_axis(change, heaviest, -change.sum(-1, keepdims=True), axis=-1)
        matched = (raw1 > 0.0) & (raw0 > 0.0)
        log_sigma_change = parabola.log_scale(np.where(matched, sigma1, sigma0), sigma0)
        with np.errstate(divide="ignore"):
            log_w1, log_w0 = np.log(raw1) - np.log(sum1), np.log(raw0) - np.log(sum0)
        return cls(
            Components(log_w1, (mean1 - centre) / unit, np.log(sigma1 / unit)),
            Components(log_w0, (mean0 - centre) / unit, np.log(sigma0 / unit)),
            change,
            np.where(matched, (mean1 - mean0) / sigma0, 0.0),
            log_sigma_change,
            matched,
        )

    def reversed(self) -> MixturePair:
        """Exchange the roles; the units stay."""
        ratio = np.exp(self.nonmember.log_sigma - self.member.log_sigma)
        return MixturePair(
            self.nonmember,
            self.member,
            -self.weight_change,
            np.where(self.matched, -self.mean_change * ratio, 0.0),
            -self.log_sigma_change,
            self.matched,
        )

    def take(self, rows: IndexArray) -> MixturePair:
        """The pairs ``rows``."""
        return MixturePair(
            Components(*(a[rows] for a in self.member)),
            Components(*(a[rows] for a in self.nonmember)),
            self.weight_change[rows],
            self.mean_change[rows],
            self.log_sigma_change[rows],
            self.matched[rows],
        )

    def log_densities(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log p1 and log p0 at x, shape (B, N)."""
        return _log_sum(_log_terms(self.member, x)), _log_sum(_log_terms(self.nonmember, x))

    def llr(self, x: FloatArray) -> FloatArray:
        """log p1/p0 at x, shape (B, N)."""
        return self.llr_of(x, *self.log_densities(x))

    def llr_of(self, x: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
        """log p1/p0 at x, where both log densities are known already."""
        ratio = up - down
        rows, columns = np.nonzero(np.abs(ratio) < 0.05)
        if rows.size:
            exact = self._llr_close(rows, x[rows, columns], down[rows, columns])
            ratio[rows, columns] = np.where(np.abs(exact) < 0.1, exact, ratio[rows, columns])
        return ratio

    def _llr_close(self, rows: IndexArray, x: FloatArray, down: FloatArray) -> FloatArray:
        """log1p((p1 - p0)/p0) of the pairs ``rows`` at points (P,), component by component."""
        part = self.take(rows)
        law = Components(*(a.T for a in part.nonmember))
        z = (x - law.mean) * np.exp(-law.log_sigma)
        shape = -0.5 * z * z - law.log_sigma - LOG_SQRT_2PI - down
        own = parabola.height(part.mean_change.T, part.log_sigma_change.T, z)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            both = np.exp(shape) * part.weight_change.T + np.exp(
                part.member.log_weight.T + shape
            ) * np.expm1(own)
            up = np.exp(_log_terms(part.member, x[:, None])[..., 0] - down)
            only_one = up - np.exp(law.log_weight + shape)
            relative = np.where(part.matched.T, both, only_one).sum(axis=0)
        return np.asarray(np.log1p(np.maximum(np.nan_to_num(relative, nan=-0.5), -0.5)))

    def llr_slope(self, x: FloatArray) -> FloatArray:
        """The derivative of log p1/p0 at x, shape (B, N)."""
        slopes = []
        for law in (self.member, self.nonmember):
            terms = _log_terms(law, x)
            share = np.exp(terms - terms.max(axis=0))
            pull = (law.mean.T[..., None] - x) * np.exp(-2.0 * law.log_sigma.T)[..., None]
            slopes.append((share * pull).sum(axis=0) / share.sum(axis=0))
        return np.asarray(slopes[0] - slopes[1])

    def masses_below(self, x: FloatArray, rows: IndexArray) -> FloatArray:
        """Masses of the nonmember and the member law below points (P,) of the pairs ``rows``."""
        found = np.zeros((2, x.size))
        for total, law in zip(found, (self.nonmember, self.member), strict=True):
            weight, scale = np.exp(law.log_weight), np.exp(-law.log_sigma)
            for j in range(law.mean.shape[-1]):
                z = (x - law.mean[:, j][rows]) * scale[:, j][rows]
                total += weight[:, j][rows] * ndtr(z)
        return found

    @cached_property
    def widest(self) -> tuple[FloatArray, FloatArray]:
        """The largest sigma of each law among components with weight, shape (B,)."""
        return _widest(self.member), _widest(self.nonmember)


def log_mass(law: Components, low: FloatArray, high: FloatArray) -> FloatArray:
    """Log mass of each mixture between ``low`` and ``high``, any shape (B, ...)."""
    extra = (slice(None),) + (None,) * (low.ndim - 1)
    weight, mean, log_sigma = (a[(*extra, slice(None))] for a in law)
    parts = parabola.log_between_member(mean, log_sigma, low[..., None], high[..., None])
    return _log_sum(np.moveaxis(weight + parts, -1, 0))


def _widest(law: Components) -> FloatArray:
    used = np.where(np.isneginf(law.log_weight), -np.inf, law.log_sigma)
    return np.asarray(np.exp(used.max(axis=-1)))


def _log_terms(law: Components, x: FloatArray) -> FloatArray:
    """Log of each component's share of the density, (J, B, N): long rows are computed faster."""
    weight, mean, log_sigma = (a.T[..., None] for a in law)
    z = (x - mean) * np.exp(-log_sigma)
    return np.asarray((weight - log_sigma) - 0.5 * z * z - LOG_SQRT_2PI)


def _log_sum(terms: FloatArray) -> FloatArray:
    """Log of the sum of exponentials over the first axis; -inf where all terms are."""
    if terms.shape[0] == 1:
        return np.asarray(terms[0])
    peak = terms.max(axis=0)
    safe = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(terms - safe).sum(axis=0)) + safe)


_STEPS = np.concatenate(
    [np.arange(0.0, 1.0, 0.25), np.arange(1.0, 2.2, 0.3), 2.2 * 1.17 ** np.arange(19)]
)
_MANY = 24  # components beyond which the grid is built from representative ones
_FINEST = 1600  # points of a grid at most
_SHARP = 6.0  # a bend that takes less than this part of a cell is one that nodes in it would miss
_BEND = 1e-9  # what one may cost a divergence, roughly


@dataclass(frozen=True, eq=False)
class Table:
    """Grid points ``x`` with the ratio's turning points among them, the ratio and its slope there.

    All three (B, G).  ``extremes`` are the ratio's values at its turning points, (B, K), padded
    with one that it has at the end of the grid.
    """

    x: FloatArray
    llr: FloatArray
    slope: FloatArray
    extremes: FloatArray

    def take(self, rows: IndexArray) -> Table:
        """The rows ``rows``."""
        return Table(self.x[rows], self.llr[rows], self.slope[rows], self.extremes[rows])

    def reversed(self) -> Table:
        """That of the ratio with the roles exchanged."""
        return Table(self.x, -self.llr, -self.slope, -self.extremes)


class Crossings(NamedTuple):
    """Sorted crossings of a level, padded with +inf, (B, m, C), and whether l > t at -inf."""

    x: FloatArray
    starts_above: npt.NDArray[np.bool_]


def make_table(pair: MixturePair) -> Table:
    """Grid the line, find the turning points of the ratio and put them in."""
    x = _grid(pair)
    slope = pair.llr_slope(x)
    llr = pair.llr(x)
    # a slope that is rounding noise changes no sign
    noise = 1e-13 * np.maximum(np.abs(llr), 1e-3 * np.abs(llr).max(axis=-1, keepdims=True))
    width = np.gradient(x, axis=-1)
    sign = np.where(np.abs(slope) * width > noise, np.sign(slope), 0.0)
    sign = _fill_zeros(sign)
    turns = sign[:, 1:] * sign[:, :-1] < 0.0
    most = int(turns.sum(axis=-1).max(initial=0))
    if most == 0:
        return Table(x, llr, slope, llr[:, -1:])
    rows, cells = np.nonzero(turns)
    place = (np.cumsum(turns, axis=-1) - 1)[rows, cells]
    direction = sign[rows, cells]

    def falling_slope(at: FloatArray, which: IndexArray) -> FloatArray:
        part = pair.take(rows[which])
        return direction[which] * part.llr_slope(at[:, None])[:, 0]

    ends = x[rows, cells], x[rows, cells + 1]
    everything = np.arange(rows.size)
    values = (falling_slope(end, everything) for end in ends)
    found = shrink_bracket(falling_slope, Bracket(*ends, *values))
    turning, level = np.repeat(x[:, -1:], most, axis=-1), np.repeat(slope[:, -1:], most, axis=-1)
    turning[rows, place], level[rows, place] = found.high, 0.0
    extremes = pair.llr(turning)
    x, llr, slope = (
        np.concatenate(both, axis=-1) for both in ((x, turning), (llr, extremes), (slope, level))
    )
    order = np.argsort(x, axis=-1, kind="stable")
    x, llr, slope = (np.take_along_axis(a, order, axis=-1) for a in (x, llr, slope))
    return Table(x, llr, slope, extremes)


def crossings(
    pair: MixturePair, table: Table, threshold: FloatArray, tolerance: float = 4e-16
) -> Crossings:
    """All points where l = threshold, for thresholds of shape (B, m), to relative tolerance."""
    above = table.llr[:, None, :] > threshold[..., None]
    row, column, cell = np.nonzero(above[..., 1:] != above[..., :-1])
    # how many crossings of the same level come before each, which are in order
    group = row * threshold.shape[-1] + column
    place = np.arange(group.size) - np.searchsorted(group, group)
    most = int(place.max(initial=-1)) + 1
    shape = (*threshold.shape, most)
    if most == 0:
        return Crossings(np.empty(shape), above[..., 0])
    level = threshold[row, column]
    direction = np.where(above[row, column, cell], 1.0, -1.0)

    def falling(at: FloatArray, which: IndexArray) -> FloatArray:
        llr = pair.take(row[which]).llr(at[:, None])[:, 0]
        return direction[which] * (llr - level[which])

    ends = table.x[row, cell], table.x[row, cell + 1]
    before, after = (direction * (table.llr[row, cell + k] - level) for k in (0, 1))
    # a ratio that misses the level by its own rounding error can come no closer
    noise = tolerance * np.maximum(before, -after)
    start = Bracket(*ends, before, after)
    found = shrink_bracket(falling, start, f_tolerance=noise, x_tolerance=tolerance)
    x = np.full(shape, np.inf)
    x[row, column, place] = found.high
    return Crossings(x, above[..., 0])


def _grid(pair: MixturePair) -> FloatArray:
    """Points at a few standard deviations of components, or of representative ones, and bends."""
    means = np.concatenate([pair.member.mean, pair.nonmember.mean], axis=-1)
    sigmas = np.exp(np.concatenate([pair.member.log_sigma, pair.nonmember.log_sigma], axis=-1))
    if means.shape[-1] > _MANY and np.all(means == means[:, :1]):
        spread = np.linspace(0.0, 1.0, _MANY // 2)
        least, most = sigmas.min(axis=-1)[:, None], sigmas.max(axis=-1)[:, None]
        sigmas = least * (most / least) ** spread
        means = np.broadcast_to(means[:, :1], sigmas.shape)
    elif means.shape[-1] <= _MANY:
        means, sigmas = _distinct(pair, means, sigmas)
    steps = np.concatenate([-_STEPS[:0:-1], _STEPS])
    x = (means[..., None] + sigmas[..., None] * steps).reshape(means.shape[0], -1)
    x = np.sort(x, axis=-1)
    if x.shape[-1] > _FINEST:
        x = x[:, np.linspace(0, x.shape[-1] - 1, _FINEST).astype(np.intp)]
    if 2 * pair.member.mean.shape[-1] <= _MANY:
        x = np.sort(np.concatenate([x, _bends(pair, x)], axis=-1), axis=-1)
    return np.asarray(x)


def _bends(pair: MixturePair, x: FloatArray) -> FloatArray:
    """Where a law's leading component changes within so little of a cell that it matters, (B, K).

    Rows that have fewer are padded with the grid's last point.
    """
    found = [_changes_of_lead(law) for law in (pair.member, pair.nonmember)]
    at, turn, height = (np.stack(both, axis=1) for both in zip(*found, strict=True))
    row, law, column = np.nonzero((at > x[:, :1, None]) & (at < x[:, -1:, None]))
    at, turn, height = (each[row, law, column] for each in (at, turn, height))
    logs = np.stack(pair.take(row).log_densities(at[:, None]))[..., 0]
    leads = height >= logs[law, np.arange(row.size)] - np.log1p(pair.member.mean.shape[-1])
    row, at, turn, density = (a[leads] for a in (row, at, turn, np.exp(logs.max(axis=0))))
    cell = (x[row] <= at[:, None]).sum(axis=-1)
    width = x[row, cell] - x[row, cell - 1]
    matters = (turn * width > _SHARP) & (density * turn * width**2 > _BEND)
    row, at = row[matters], at[matters]
    place = np.arange(row.size) - np.searchsorted(row, row)
    result = np.repeat(x[:, -1:], int(place.max(initial=-1)) + 1, axis=-1)
    result[row, place] = at
    return result


def _changes_of_lead(law: Components) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where two components have equal densities, (B, K), and there the change of slope and the log.

    Log densities are parabolas: each two are equal at the two roots of another, if it has any.
    """
    one, two = np.triu_indices(law.mean.shape[-1], k=1)
    precision, peak = np.exp(-2.0 * law.log_sigma), law.log_weight - law.log_sigma - LOG_SQRT_2PI
    gap = law.mean[:, two] - law.mean[:, one]
    with np.errstate(all="ignore"):
        square = 0.5 * (precision[:, two] - precision[:, one])
        linear = -precision[:, two] * gap
        level = 0.5 * precision[:, two] * gap * gap + (peak[:, one] - peak[:, two])
        turn = np.sqrt(linear * linear - 4.0 * square * level)
        half = -0.5 * (linear + np.copysign(turn, linear))
        beyond = np.concatenate([half / square, level / half], axis=-1)
        turn, one = np.concatenate([turn, turn], axis=-1), np.concatenate([one, one])
        height = peak[:, one] - 0.5 * precision[:, one] * beyond * beyond
        return law.mean[:, one] + beyond, turn, height


def _distinct(
    pair: MixturePair, means: FloatArray, sigmas: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Only components with weight, each once; of rows that have fewer the first fills up.

    Points that occur twice make cells without width, whose nodes cost as much as any.
    """
    weights = np.concatenate([pair.member.log_weight, pair.nonmember.log_weight], axis=-1)
    used = ~np.isneginf(weights)
    same = (means[:, :, None] == means[:, None, :]) & (sigmas[:, :, None] == sigmas[:, None, :])
    earlier = np.tril(np.ones(same.shape[1:], dtype=bool), k=-1)
    own = used & ~(same & used[:, None, :] & earlier).any(axis=-1)
    order = np.argsort(~own, axis=-1, kind="stable")[:, : int(own.sum(axis=-1).max())]
    order = np.where(np.take_along_axis(own, order, axis=-1), order, order[:, :1])
    return np.take_along_axis(means, order, axis=-1), np.take_along_axis(sigmas, order, axis=-1)


def _fill_zeros(sign: FloatArray) -> FloatArray:
    """Replace each zero by the last sign before it (or the first after it)."""
    index = np.where(sign != 0.0, np.arange(sign.shape[-1]), 0)
    forward = np.take_along_axis(sign, np.maximum.accumulate(index, axis=-1), axis=-1)
    first = np.argmax(sign != 0.0, axis=-1)[:, None]
    return np.where(forward == 0.0, np.take_along_axis(sign, first, axis=-1), forward)


_ORDER = 10
_MOMENT_PART = 6000  # cells times components of a table that moments are computed of at once


class Nodes(NamedTuple):
    """Quadrature nodes in the table's cells, (B, N), with both log densities and their ratio."""

    x: FloatArray
    weight: FloatArray
    up: FloatArray
    down: FloatArray
    llr: FloatArray


@dataclass(frozen=True, eq=False)
class NormalMixtureRatio(SearchedRatio):
    """A flat batch of pairs of mixtures."""

    pair: MixturePair

    def reversed(self) -> Self:
        """Exchange the roles; what was tabulated serves both ways."""
        back = type(self)(self.pair.reversed())
        if "_table" in self.__dict__:
            back.__dict__["_table"] = self._table.reversed()
        if "_advantage" in self.__dict__:
            back.__dict__["_advantage"] = self._advantage
        if "_nodes" in self.__dict__:
            x, weight, up, down, llr = self._nodes
            back.__dict__["_nodes"] = Nodes(x, weight, down, up, -llr)
        return back

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return int(self.pair.mean_change.shape[0])

    def take(self, rows: IndexArray) -> Self:
        """The pairs ``rows``."""
        part = type(self)(self.pair.take(rows))
        part.__dict__["_table"] = self._table.take(rows)
        return part

    @cached_property
    def _table(self) -> Table:
        return make_table(self.pair)

    @cached_property
    def _nodes(self) -> Nodes:
        return self._at(*panels(self._table.x, _ORDER))

    def _at(self, x: FloatArray, weight: FloatArray) -> Nodes:
        up, down = self.pair.log_densities(x)
        return Nodes(x, weight, up, down, self.pair.llr_of(x, up, down))

    @property
    def equal(self) -> npt.NDArray[np.bool_]:
        """Where both laws are one law."""
        return np.asarray(np.all(self._table.llr == 0.0, axis=-1))

    # ---- the region l > t ----------------------------------------------------------------

    def _intervals(
        self, threshold: FloatArray, tolerance: float = 4e-16
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Ends of the intervals between crossings, (B, m, C + 1), and whether l > t inside."""
        found = crossings(self.pair, self._table, threshold, tolerance)
        ends = np.full((*threshold.shape, 1), np.inf)
        low = np.concatenate([-ends, found.x], axis=-1)
        high = np.concatenate([found.x, ends], axis=-1)
        parity = np.arange(low.shape[-1]) % 2 == 0
        inside = found.starts_above[..., None] == parity
        return low, high, inside & (low < high)

    def _region_mass(
        self, threshold: FloatArray, laws: tuple[bool, ...], sides: tuple[bool, ...]
    ) -> list[FloatArray]:
        low, high, inside = self._intervals(threshold)
        result = []
        for member in laws:
            law = self.pair.member if member else self.pair.nonmember
            mass = log_mass(law, low, high)
            for above in sides:
                part = np.where(inside == above, mass, -np.inf)
                result.append(np.minimum(np.logaddexp.reduce(part, axis=-1), 0.0))
        return result

    def log_fpr(self, threshold: FloatArray) -> FloatArray:
        """log P0(l > threshold)."""
        return self._region_mass(threshold, laws=(False,), sides=(True,))[0]

    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""
        tpr, fnr, fpr, tnr = self._region_mass(threshold, (True, False), (True, False))
        return Tails(tpr, fpr, fnr, tnr)

    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""
        low, high, inside = self._intervals(epsilon)
        level = epsilon[..., None]
        value, lost = parabola.log_difference(
            level, log_mass(self.pair.member, low, high), log_mass(self.pair.nonmember, low, high)
        )
        total = np.logaddexp.reduce(np.where(inside, value, -np.inf), axis=-1)
        # intervals whose own difference cancels matter only if they are not negligible
        doubt = np.asarray((lost & inside).any(axis=-1))
        for column in np.flatnonzero(doubt.any(axis=0)):
            rows = np.nonzero(doubt[:, column])[0]
            exact = self.take(rows)._integrated_excess(
                epsilon[rows, column], low[rows, column], high[rows, column], inside[rows, column]
            )
            total[rows, column] = exact
        return np.asarray(total)

    def _integrated_excess(
        self,
        epsilon: FloatArray,
        low: FloatArray,
        high: FloatArray,
        inside: npt.NDArray[np.bool_],
    ) -> FloatArray:
        """The hockey stick as the integral of p0 (exp(l) - exp(epsilon)), all of one sign."""
        table = self._table.x
        ends = np.clip(np.where(inside, low, high), table[:, :1], table[:, -1:])
        stops = np.clip(high, table[:, :1], table[:, -1:])
        breaks = np.sort(np.concatenate([table, ends, stops], axis=-1), axis=-1)
        x, weight = panels(breaks, _ORDER)
        up, down = self.pair.log_densities(x)
        rise = self.pair.llr_of(x, up, down) - epsilon[:, None]
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            shift = np.maximum(up, down).max(axis=-1, keepdims=True)
            small = np.exp(down + epsilon[:, None] - shift) * np.expm1(np.minimum(rise, 1.0))
            large = np.exp(up - shift) - np.exp(down + epsilon[:, None] - shift)
            value = np.where(rise > 0.0, np.where(rise < 1.0, small, large), 0.0)
            return np.asarray(np.log((value * weight).sum(axis=-1)) + shift[:, 0])

    def _around(self, log_fpr: FloatArray, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Levels between which the size crosses ``log_fpr``: no cell lies on both sides of them.

        The ratio is monotone in a cell of the table, so that a cell is above a level for certain
        where both its ends are, and below for certain where both are below.
        """
        x, llr = self._table.x, self._table.llr
        mass = np.exp(log_mass(self.pair.nonmember, x[:, :-1], x[:, 1:]))
        least, most = np.minimum(llr[:, :-1], llr[:, 1:]), np.maximum(llr[:, :-1], llr[:, 1:])
        bounds = []
        for ends in (least, most):
            order = np.argsort(-ends, axis=-1)
            level = np.take_along_axis(ends, order, axis=-1)
            total = np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)[rows]
            # the first level at which the cells that begin or end there hold as much
            place = np.minimum((total < np.exp(log_fpr)[:, None]).sum(-1), total.shape[-1] - 1)
            bounds.append(level[rows, place])
        low, high = np.minimum(*bounds), np.maximum(*bounds)
        least_width = 1e-12 * np.maximum(np.abs(low), np.abs(high)) + 1e-14
        return low - least_width, high + least_width

    # ---- measures ------------------------------------------------------------------------

    def llr_scale(self) -> FloatArray:
        """A typical size of |l|: its root mean square under both laws."""
        nodes = self._nodes
        weight = nodes.weight * (np.exp(nodes.up) + np.exp(nodes.down))
        return np.asarray(np.sqrt((weight * nodes.llr**2).sum(axis=-1)))

    def renyi(self, order: float) -> FloatArray:
        """D_order(P1 || P0); KL at order 1, sup l at infinity."""
        wide1, wide0 = self.pair.widest
        if np.isinf(order):
            return np.asarray(np.where(wide1 > wide0, np.inf, self._table.llr.max(axis=-1)))
        if order == 1.0:
            nodes = self._nodes
            value = kl_integrand(nodes.up, nodes.down, nodes.llr)
            return np.asarray((value * nodes.weight).sum(axis=-1))
        if len(self._moment_parts) > 1:
            return np.concatenate([part.renyi(order) for part in self._moment_parts])
        diverges = order / wide1**2 + (1.0 - order) / wide0**2 <= 0.0
        fine = self._moment_nodes
        exponent = order * fine.up + (1.0 - order) * fine.down
        peak = exponent.max(axis=-1, keepdims=True)
        log_moment = np.log((np.exp(exponent - peak) * fine.weight).sum(axis=-1)) + peak[:, 0]
        near = ~diverges & (np.abs(log_moment) < 1e-3)
        if near.any():
            up, down, llr, weight = (a[near] for a in (fine.up, fine.down, fine.llr, fine.weight))
            value = moment_integrand(order, up, down, llr)
            log_moment[near] = np.log1p(moment_weight(order) * (value * weight).sum(axis=-1))
        return np.asarray(np.where(diverges, np.inf, log_moment / (order - 1.0)))

    @cached_property
    def _moment_parts(self) -> list[Self]:
        """A few pairs at a time: each has some tens of thousands of nodes."""
        few = max(1, _MOMENT_PART // (self._table.x.shape[-1] * self.pair.mean_change.shape[-1]))
        if self.size <= few:
            return [self]
        return [
            self.take(rows) for rows in np.split(np.arange(self.size), range(few, self.size, few))
        ]

    @cached_property
    def _moment_nodes(self) -> Nodes:
        """Finer and farther than the table: p1^a p0^(1 - a) peaks between or beyond the laws."""
        x = self._table.x
        middle, half = 0.5 * (x[:, :1] + x[:, -1:]), 0.5 * (x[:, -1:] - x[:, :1])
        beyond = half * 1.1 ** np.arange(1, 25)
        x = np.concatenate([(middle - beyond)[:, ::-1], x, middle + beyond], axis=-1)
        steps = np.linspace(0.0, 1.0, 10, endpoint=False)
        breaks = x[:, :-1, None] + np.diff(x, axis=-1)[..., None] * steps
        breaks = np.concatenate([breaks.reshape(x.shape[0], -1), x[:, -1:]], axis=-1)
        return self._at(*panels(breaks, 8))

    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""
        return self._advantage

    @cached_property
    def _advantage(self) -> FloatArray:
        return super().advantage()

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half."""
        table = self._table
        found = auc_by_cells(Score(table.x, table.llr, table.slope), self.pair.masses_below)
        # laws that are equal in disguise: the order of rounding errors says nothing
        return np.asarray(np.where(self.advantage() < 1e-14, 0.5, found))

    def kinks(self) -> FloatArray:
        """The extremes of l, and what it tends to in the tails."""
        table = self._table
        return np.concatenate([table.extremes, table.llr[:, [0, -1]]], axis=-1)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision."""
        found = crossings(self.pair, self._table, threshold, tolerance=1e-12)
        law = Components(*(a[:, None, None, :] for a in self.pair.nonmember))
        z = (found.x[..., None] - law.mean) * np.exp(-law.log_sigma)
        below = (np.exp(law.log_weight) * ndtr(z)).sum(axis=-1)
        ends = np.broadcast_to([0.0, 1.0], (*threshold.shape, 2))
        mass = np.diff(np.concatenate([ends[..., :1], below, ends[..., 1:]], axis=-1), axis=-1)
        inside = found.starts_above[..., None] == (np.arange(mass.shape[-1]) % 2 == 0)
        return np.asarray(np.where(inside, mass, 0.0).sum(axis=-1))
