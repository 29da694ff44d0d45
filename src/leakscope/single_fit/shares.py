"""Who carries the variance of a unit's score: how unequally the other units share in it.

The part of unit j in unit i is r_i' G_ij t'_j G_ij' r_i, with r_i the gradient of i's score over
its slack.  It is at most (r_i' g_i r_i) tr(t'_j g_j): the units with the largest traces are looked
at one by one, as many as can be, and the first of the others bounds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.single_fit.cavity import Cavity
from leakscope.single_fit.losses import Codes
from leakscope.single_fit.responses import Stacked
from leakscope.single_fit.units import along, solved, square_root, transposed

# Rows of G that may be looked at: so many entries, or so many rows for each coefficient, which is
# what the rounds cost.
MOST_ENTRIES, ROWS_PER_COEFFICIENT = 6e7, 40
# A share above this is heavy; where no unit that was not looked at can have as much, no more are.
HEAVY = 0.05


@dataclass(frozen=True, eq=False)
class Shares:
    """With s_j the share of unit j, which sum to one over the others; all are upper bounds.

    Attributes
    ----------
    largest
        (U,) the largest s_j.
    squares
        (U,) the sum of s_j^2.
    heavy
        (U,) the sum of the shares that are above `HEAVY`.
    """

    largest: FloatArray
    squares: FloatArray
    heavy: FloatArray

    @property
    def effective(self) -> FloatArray:
        """How many equal units would share as unequally, at least."""
        return np.asarray(1.0 / np.maximum(self.squares, 1e-300))

    @classmethod
    def unknown(cls, size: int) -> Shares:
        """Nobody looked at anybody: one unit may carry all."""
        return cls(*(np.ones(size) for _ in range(3)))

    @classmethod
    def none(cls, size: int) -> Shares:
        """Before any unit is looked at."""
        return cls(*(np.zeros(size) for _ in range(3)))

    def more(self, share: npt.NDArray[np.floating]) -> Shares:
        """With the shares (k, U) of some more units."""
        return Shares(
            np.maximum(self.largest, share.max(axis=0, initial=0.0)),
            self.squares + np.einsum("ij,ij->j", share, share),
            self.heavy + np.where(share > HEAVY, share, 0.0).sum(axis=0),
        )

    def bounded(self, rest: FloatArray, left: FloatArray) -> Shares:
        """Where the units that were not looked at share ``left``, none of them above ``rest``."""
        left = np.clip(left, 0.0, 1.0)
        return Shares(
            np.minimum(np.maximum(self.largest, rest), 1.0),
            np.minimum(self.squares + np.minimum(rest, left) * left, 1.0),
            np.minimum(self.heavy + np.where(rest > HEAVY, left, 0.0), 1.0),
        )


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What makes the laws of a few units.

    Attributes
    ----------
    weight, surprise
        (k,) the trace of kappa and the length of the force, each over the median of all units.
    others, shares
        (k, m) the units with the largest shares in its variance, and these shares.
    """

    weight: FloatArray
    surprise: FloatArray
    others: Codes
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Carriers:
    """A cavity with what its units' scores are, for looking at who moves whom.

    ``pulls`` are t' of every stack, ``replies`` (B, q) the gradients of the scores over the slack.
    """

    cavity: Cavity
    pulls: Stacked
    replies: Stacked

    @classmethod
    def of(cls, cavity: Cavity, gradients: Stacked, *, fresh: bool) -> Carriers:
        """Of scores with these gradients (B, q) in the predictions without the unit."""
        replies = [
            solved(transposed(s), g[..., None])[..., 0]
            for s, g in zip(cavity.slack, gradients, strict=True)
        ]
        return cls(cavity, cavity.pulls(fresh=fresh), replies)

    def stack_of(self, units: Codes) -> Iterator[tuple[int, Codes, Codes]]:
        """Stacks, places in them, and which of the units they are."""
        for number, stack in enumerate(self.cavity.stacks):
            place = np.full(self.cavity.units, -1)
            place[stack.units] = np.arange(len(stack.units))
            here = np.flatnonzero(place[units] >= 0)
            if len(here):
                yield number, place[units[here]], here

    def parts(self, units: Codes) -> FloatArray:
        """(k, U) the parts that some units have in the variance of every unit's score."""
        parts = np.zeros((len(units), self.cavity.units))
        for number, place, here in self.stack_of(units):
            # G is symmetric: the rows of a unit are its columns.
            root = square_root(self.pulls[number][place])
            for column in range(root.shape[2]):
                every = self.cavity.response.rows(number, place, root[:, :, column])
                for stack, reply, met in zip(self.cavity.stacks, self.replies, every, strict=True):
                    moved = np.einsum("kuq,uq->ku", met, reply.astype(met.dtype))
                    parts[np.ix_(here, stack.units)] += moved**2
        parts[np.arange(len(units)), units] = 0.0
        return parts

    def shares(self, variances: FloatArray) -> Shares:
        """Of every unit, whose scores have these variances (U,)."""
        count, route = self.cavity.units, self.cavity.response.route
        loads, reach = np.empty(count), np.empty(count)
        for stack, t, g, reply in zip(
            self.cavity.stacks, self.pulls, self.cavity.g, self.replies, strict=True
        ):
            loads[stack.units] = np.einsum("uij,uji->u", t, g)
            reach[stack.units] = np.einsum("ui,ui->u", along(g, reply), reply)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(variances > 0.0, route.bound_factor * reach / variances, np.inf)
        order = np.argsort(-loads, kind="stable")
        predictions = sum(state.z.size for state in self.cavity.states)
        allowed = max(MOST_ENTRIES / predictions, ROWS_PER_COEFFICIENT * route.start.size)
        widest = max(state.z.shape[1] for state in self.cavity.states)
        allowed = max(min(allowed, route.rows_allowed) / widest, 1)
        needed = int(np.count_nonzero(loads * np.max(reach) > HEAVY))
        looked = count if allowed >= count else min(int(allowed), needed)
        found, seen = Shares.none(count), np.zeros(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            for units in _few(order[:looked], predictions):
                share = np.nan_to_num(self.parts(units) / variances, nan=1.0, posinf=1.0)
                found, seen = found.more(share), seen + share.sum(axis=0)
        if looked == count:
            return found
        return found.bounded(reach * loads[order[looked]], 1.0 - seen)

    def neighbours(self, units: Codes, most: int) -> Neighbours:
        """What makes the laws of some units: the ``most`` others with the largest shares."""
        parts = np.zeros((len(units), self.cavity.units))
        for number, place, here in self.stack_of(units):
            every = self.cavity.response.rows(number, place, self.replies[number][place])
            for stack, t, met in zip(self.cavity.stacks, self.pulls, every, strict=True):
                part = np.einsum("kui,uij,kuj->ku", met, t, met, optimize=True)
                parts[np.ix_(here, stack.units)] = np.maximum(part, 0.0)
        parts[np.arange(len(units)), units] = 0.0
        parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
        others = np.argsort(-parts, axis=1, kind="stable")[:, : min(most, parts.shape[1] - 1)]
        weight, surprise = np.empty(self.cavity.units), np.empty(self.cavity.units)
        for stack, state in zip(self.cavity.stacks, self.cavity.states, strict=True):
            weight[stack.units] = np.einsum("uii->u", state.kappa)
            surprise[stack.units] = np.linalg.norm(state.force, axis=1)
        return Neighbours(
            weight[units] / max(float(np.median(weight)), 1e-300),
            surprise[units] / max(float(np.median(surprise)), 1e-300),
            others,
            np.take_along_axis(parts, others, axis=1),
        )


def _few(units: Codes, size: int) -> Iterator[Codes]:
    """The units in parts whose rows of G fit in the cache."""
    rows = max(1, min(512, int(4e6 / size)))
    for start in range(0, len(units), rows):
        yield units[start : start + rows]
