"""Mixtures over drawn designs: how far their measures are known, from the designs themselves.

Given the design an observation is normal, so the two laws are mixtures over designs, known up to
the designs drawn (Rao-Blackwell).  The measures of the drawn mixtures come from
:mod:`leakscope.measures`; here is what belongs beside them:

- the standard error, by the jackknife over 16 groups of blocks;
- a value whose bias is the other way.  The measures are convex in the laws, so that those of drawn
  mixtures are too large on average.  A test learnt on one half of the designs and judged on the
  other half is too small on average (for KL, the Donsker-Varadhan bound with the learnt ratio).

The truth lies between the two expectations, and the interval reaches from the one less its error to
the other plus it.  Densities are tabulated once, on nodes that follow the components, and each
leave-one-out density is a difference of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture, Provenance

GROUPS = 16

# Nodes are placed around this many components of each side, by size and by place, in steps of z.
_PLACED, _Z = 16, np.arange(-9.0, 9.01, 0.15)


class Spread(NamedTuple):
    """A measure's value for the drawn mixtures, its standard error, and the half-judged value."""

    plug_in: float
    standard_error: float
    cross_fitted: float


@dataclass(frozen=True)
class Side:
    """One side's drawn components, and a share of probability that is known without drawing."""

    mean: list[FloatArray]
    sigma: list[FloatArray]
    settled: float = 0.0
    settled_law: Normal | None = None

    def law(self) -> Normal | NormalMixture:
        """The mixture of everything drawn."""
        mean, sigma = np.concatenate(self.mean), np.concatenate(self.sigma)
        if self.settled_law is not None and self.settled > 0.0:
            weights = np.concatenate(
                [[self.settled], np.full(len(mean), (1.0 - self.settled) / len(mean))]
            )
            mean = np.concatenate([[float(self.settled_law.mean)], mean])
            sigma = np.concatenate([[float(self.settled_law.sigma)], sigma])
            return NormalMixture(weights, mean, sigma)
        if np.ptp(mean) == 0.0 and np.ptp(sigma) == 0.0:
            return Normal(float(mean[0]), float(sigma[0]))
        return NormalMixture(1.0, mean, sigma)


class DesignMixtures:
    """The two mixtures, block after block; the blocks go to the groups in turn."""

    def __init__(self, settled: float = 0.0, settled_law: Normal | None = None) -> None:
        self.member = Side([], [])
        self.nonmember = Side([], [], settled, settled_law)
        self._nodes: FloatArray | None = None
        self._sums: list[FloatArray] = []
        self._tabulated = 0

    def add(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take in a block's components: member_mean, member_sigma and so on, each (designs,)."""
        for name, side in (("member", self.member), ("nonmember", self.nonmember)):
            side.mean.append(np.asarray(arrays[f"{name}_mean"], dtype=np.float64))
            side.sigma.append(np.asarray(arrays[f"{name}_sigma"], dtype=np.float64))

    def pair(self, provenance: Provenance) -> LawPair:
        """The pair of mixtures of everything drawn."""
        return LawPair(self.member.law(), self.nonmember.law(), provenance)

    def spread(self, measure: measures.TabulatedMeasure) -> Spread:
        """How well the measure is known; ``measure`` is advantage, auc, kl or kl_reverse."""
        weights, groups = self._groups()
        total = groups.sum(axis=1)
        plug_in = measures.tabulated(measure, weights, self._densities(total, GROUPS))
        left = [
            measures.tabulated(measure, weights, self._densities(total - groups[:, g], GROUPS - 1))
            for g in range(GROUPS)
        ]
        error = np.sqrt((GROUPS - 1) / GROUPS * np.sum((np.array(left) - np.mean(left)) ** 2))
        halves = [self._densities(groups[:, half::2].sum(axis=1), GROUPS // 2) for half in (0, 1)]
        judged = [
            measures.tabulated(measure, weights, halves[1 - half], learnt=halves[half])
            for half in (0, 1)
        ]
        return Spread(float(plug_in), float(error), float(np.mean(judged)))

    def _densities(self, sums: FloatArray, groups: int) -> tuple[FloatArray, FloatArray]:
        """Member and nonmember density on the nodes, from the sums over some groups."""
        per_group = len(self.member.mean) // GROUPS
        drawn = [groups * per_group * len(side.mean[0]) for side in (self.member, self.nonmember)]
        member, nonmember = sums[0] / drawn[0], sums[1] / drawn[1]
        if self.nonmember.settled_law is not None and self.nonmember.settled > 0.0:
            law, share = self.nonmember.settled_law, self.nonmember.settled
            assert self._nodes is not None
            known = _density(self._nodes, law.mean.reshape(1), law.sigma.reshape(1))
            nonmember = (1.0 - share) * nonmember + share * known
        return member, nonmember

    def _groups(self) -> tuple[FloatArray, FloatArray]:
        """Trapezoid weights, and sums of densities (2, groups, nodes); tabulated block by block."""
        count = len(self.member.mean)
        if count == 0 or count % GROUPS:
            raise InputError(f"the number of blocks must be a multiple of {GROUPS}.")
        if self._nodes is None:
            self._place(count)
        for _ in range(2):
            self._tabulate(count)
            assert self._nodes is not None
            weights = np.gradient(self._nodes)
            sums = np.array([self._sums[0], self._sums[1]])
            member, nonmember = self._densities(sums.sum(axis=1), GROUPS)
            if max(abs(weights @ member - 1.0), abs(weights @ nonmember - 1.0)) < 1e-3:
                break
            # Later components reach where the first ones did not.
            self._place(count)
        return weights, sums

    def _place(self, count: int) -> None:
        chosen = []
        for side in (self.member, self.nonmember):
            mean, sigma = np.concatenate(side.mean[:count]), np.concatenate(side.sigma[:count])
            spread = np.linspace(0, len(mean) - 1, _PLACED).astype(np.intp)
            rows = np.concatenate([np.argsort(sigma)[spread], np.argsort(mean)[spread]])
            chosen.append(mean[rows, None] + sigma[rows, None] * _Z)
        law = self.nonmember.settled_law
        if law is not None and self.nonmember.settled > 0.0:
            chosen.append(float(law.mean) + float(law.sigma) * _Z[None, :])
        self._nodes = np.unique(np.concatenate([nodes.ravel() for nodes in chosen]))
        self._sums = [np.zeros((GROUPS, len(self._nodes))) for _ in range(2)]
        self._tabulated = 0

    def _tabulate(self, count: int) -> None:
        assert self._nodes is not None
        for block in range(self._tabulated, count):
            for sums, side in zip(self._sums, (self.member, self.nonmember), strict=True):
                found = _density(self._nodes, side.mean[block], side.sigma[block])
                sums[block % GROUPS] += found
        self._tabulated = count


def _density(nodes: FloatArray, mean: FloatArray, sigma: FloatArray) -> FloatArray:
    """The sum of the components' densities on the nodes."""
    total = np.zeros(len(nodes))
    step = max(1, 2_000_000 // len(nodes))
    for start in range(0, len(mean), step):
        m, s = mean[start : start + step, None], sigma[start : start + step, None]
        total += (np.exp(-0.5 * ((nodes - m) / s) ** 2) / s).sum(axis=0)
    return np.asarray(total / np.sqrt(2.0 * np.pi))
