"""Two mixtures of normals (scale mixtures among them): regions found, masses exact.

The region l > t is a union of intervals between the crossings of `mixture_table`; its masses are
sums of normal interval probabilities, and integrals that have no closed form (KL, Rényi, AUC, and
differences of nearly equal masses) use Gauss-Legendre nodes in the cells of the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.quadrature import panels
from leakscope.laws import NormalMixture
from leakscope.measures import mixture_table
from leakscope.measures.integrands import kl_integrand, moment_integrand, moment_weight
from leakscope.measures.level_integral import auc_by_levels
from leakscope.measures.mixture_densities import MixturePair, log_mass
from leakscope.measures.parabola import log_difference
from leakscope.measures.ratio import Tails
from leakscope.measures.search import SearchedRatio, epsilon_by_search, tpr_by_search

FloatArray = npt.NDArray[np.float64]

_ORDER = 10
_SHARES = (1e-8, 1e-5, 1e-3, 0.01, 0.05, 0.15, 0.35, 0.5, 0.65, 0.85, 0.95, 0.99, 0.999)


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

    @classmethod
    def of(cls, member: NormalMixture, nonmember: NormalMixture) -> NormalMixtureRatio:
        """Take two flat batches."""
        return cls(MixturePair.of(member, nonmember))

    def reversed(self) -> Self:
        """Exchange the roles; what was tabulated serves both ways."""
        back = type(self)(self.pair.reversed())
        if "_table" in self.__dict__:
            table = self._table
            back.__dict__["_table"] = mixture_table.Table(table.x, -table.llr, -table.extremes)
        if "_nodes" in self.__dict__:
            x, weight, up, down, llr = self._nodes
            back.__dict__["_nodes"] = Nodes(x, weight, down, up, -llr)
        return back

    @property
    def size(self) -> int:
        """B, the number of pairs."""
        return int(self.pair.mean_change.shape[0])

    def take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The pairs ``rows``."""
        part = type(self)(self.pair.take(rows))
        part.__dict__["_table"] = self._table.take(rows)
        return part

    @cached_property
    def _table(self) -> mixture_table.Table:
        return mixture_table.make_table(self.pair)

    @cached_property
    def _nodes(self) -> Nodes:
        return self._at(*panels(self._table.x, _ORDER))

    def _at(self, x: FloatArray, weight: FloatArray) -> Nodes:
        up, down = self.pair.log_densities(x)
        return Nodes(x, weight, up, down, self.pair.llr(x))

    @property
    def _equal(self) -> npt.NDArray[np.bool_]:
        """Where both laws are one law."""
        return np.asarray(np.all(self._table.llr == 0.0, axis=-1))

    # ---- the region l > t ----------------------------------------------------------------

    def _intervals(
        self, threshold: FloatArray, tolerance: float = 4e-16
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Ends of the intervals between crossings, (B, m, C + 1), and whether l > t inside."""
        found = mixture_table.crossings(self.pair, self._table, threshold, tolerance)
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
        value, lost = log_difference(
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
        rise = self.pair.llr(x) - epsilon[:, None]
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            shift = np.maximum(up, down).max(axis=-1, keepdims=True)
            small = np.exp(down + epsilon[:, None] - shift) * np.expm1(np.minimum(rise, 1.0))
            large = np.exp(up - shift) - np.exp(down + epsilon[:, None] - shift)
            value = np.where(rise > 0.0, np.where(rise < 1.0, small, large), 0.0)
            return np.asarray(np.log((value * weight).sum(axis=-1)) + shift[:, 0])

    # ---- measures ------------------------------------------------------------------------

    def llr_scale(self) -> FloatArray:
        """A typical size of |l|: its root mean square under both laws."""
        nodes = self._nodes
        weight = nodes.weight * (np.exp(nodes.up) + np.exp(nodes.down))
        return np.asarray(np.sqrt((weight * nodes.llr**2).sum(axis=-1)))

    def log_certain(self) -> FloatArray:
        """No observation is impossible under either law."""
        return np.full(self.size, -np.inf)

    def advantage(self) -> FloatArray:
        """Total variation distance."""
        return np.asarray(np.exp(self.log_excess(np.zeros((self.size, 1)))[:, 0]))

    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance."""
        tails = self.tails(np.zeros((self.size, 1)))
        value = np.minimum(np.logaddexp(tails.log_fnr, tails.log_fpr)[:, 0], 0.0)
        return np.where(self._equal, 0.0, value)

    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size."""
        return tpr_by_search(self, log_fpr)

    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""
        return epsilon_by_search(self, log_delta)

    def renyi(self, order: float) -> FloatArray:
        """D_order(P1 || P0); KL at order 1, sup l at infinity."""
        nodes = self._nodes
        wide1, wide0 = self.pair.widest
        if np.isinf(order):
            return np.asarray(np.where(wide1 > wide0, np.inf, self._table.llr.max(axis=-1)))
        if order == 1.0:
            value = kl_integrand(nodes.up, nodes.down, nodes.llr)
            return np.asarray((value * nodes.weight).sum(axis=-1))
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

    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)).

        The size of the test has kinks at the extremes of l and at what l tends to in the tails.
        """
        levels = np.concatenate([self.kinks(), self._quantiles()], axis=-1)
        # laws that are equal in disguise: the order of rounding errors says nothing
        same = self.advantage() < 1e-14
        return np.asarray(np.where(same, 0.5, auc_by_levels(self.size_of_test, levels)))

    def kinks(self) -> FloatArray:
        """The extremes of l, and what it tends to in the tails."""
        table = self._table
        return np.concatenate([table.extremes, table.llr[:, [0, -1]]], axis=-1)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision."""
        low, high, inside = self._intervals(threshold, tolerance=1e-12)
        mass = np.exp(log_mass(self.pair.nonmember, low, high))
        return np.asarray(np.where(inside, mass, 0.0).sum(axis=-1))

    def _quantiles(self) -> FloatArray:
        """Quantiles of l under both laws together, shape (B, 13)."""
        nodes = self._nodes
        order = np.argsort(nodes.llr, axis=-1)
        mass = nodes.weight * (np.exp(nodes.up) + np.exp(nodes.down))
        below = np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)
        share = below / below[:, -1:]
        at = [(share < q).sum(axis=-1) for q in _SHARES]
        index = np.take_along_axis(order, np.stack(at, axis=-1), axis=-1)
        return np.asarray(np.take_along_axis(nodes.llr, index, axis=-1))
