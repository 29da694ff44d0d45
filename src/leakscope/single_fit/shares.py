"""Who carries the variance of a unit's score: how unequally the other units share in it.

The part of unit j in unit i is r_i' G_ij t'_j G_ij' r_i, with r_i the gradient of i's score over
its slack.  It is at most (r_i' g_i r_i) tr(t'_j g_j), so that where not all rows of G can be looked
at, the units with the largest traces are looked at one by one, and the first of the others bounds
the rest.
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
# Below this share no other unit is heavy, and an upper bound says enough.  Units are looked at
# until the rest are surely below the second, where their skewness hardly counts either.
HEAVY, LIGHT = 0.05, 0.02


@dataclass(frozen=True, eq=False)
class Shares:
    """With s_j the share of unit j, which sum to one over the others; NaN where nobody looked.

    Attributes
    ----------
    largest
        (U,) the largest s_j, or an upper bound of it where that is below `HEAVY`.
    squares, cubes
        (U,) the sum of s_j^2, and the size of the sum of s_j^1.5 with the signs of the moves, or
        without them, which is more: kurtosis and skewness of the score come from them.
    heavy
        (U,) the sum of the shares that are above `HEAVY`.
    """

    largest: FloatArray
    squares: FloatArray
    cubes: FloatArray
    heavy: FloatArray

    @property
    def effective(self) -> FloatArray:
        """How many equal units would share as unequally; at least so many where bounded."""
        return np.asarray(1.0 / np.maximum(self.squares, 1e-300))

    @classmethod
    def unknown(cls, size: int) -> Shares:
        """Nobody looked at anybody."""
        return cls(*(np.full(size, np.nan) for _ in range(4)))

    def bound(self, upper: FloatArray) -> Codes:
        """Note upper bounds of the largest shares; the units that they do not settle."""
        clear = upper <= HEAVY
        # a sum of s^a is at most the largest s to the power of a - 1
        self.largest[clear] = self.squares[clear] = upper[clear]
        self.cubes[clear], self.heavy[clear] = np.sqrt(upper[clear]), 0.0
        return np.flatnonzero(~clear)

    def note(self, units: Codes, moves: npt.NDArray[np.floating]) -> None:
        """Note how far all units (columns) move the scores of these (rows), up to a factor."""
        parts = moves**2
        total = np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(parts.dtype).tiny)
        share = parts / total
        self.largest[units] = share.max(axis=1)
        self.squares[units] = np.einsum("ij,ij->i", share, share)
        self.cubes[units] = np.abs(np.einsum("ij,ij->i", share, moves / np.sqrt(total)))
        self.heavy[units] = np.where(share > HEAVY, share, 0.0).sum(axis=1)


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

    def moves(self, units: Codes) -> npt.NDArray[np.floating]:
        """How far every unit (columns) moves the scores of some (rows), signed by its force."""
        kind = np.float32
        moves = np.empty((len(units), self.cavity.units), dtype=kind)
        for number, place, here in self.stack_of(units):
            reply = self.replies[number][place]
            every = self.cavity.response.rows(number, place, reply)
            for stack, state, t, met in zip(
                self.cavity.stacks, self.cavity.states, self.pulls, every, strict=True
            ):
                if stack.size == 1:
                    pull = np.copysign(np.sqrt(np.maximum(t[:, 0, 0], 0.0)), state.force[:, 0])
                    moves[np.ix_(here, stack.units)] = met[..., 0] * pull.astype(met.dtype)
                    continue
                part = np.einsum("kui,uij,kuj->ku", met, t, met, optimize=True)
                towards = np.einsum("kui,ui->ku", met, state.force)
                moves[np.ix_(here, stack.units)] = np.copysign(
                    np.sqrt(np.maximum(part, 0.0)), towards
                )
        moves[np.arange(len(units)), units] = 0.0
        return moves

    def largest_at_most(self, variances: FloatArray, looked: int) -> FloatArray:
        """(U,) an upper bound of every unit's largest share, from the columns of some units."""
        loads, reach = np.empty(self.cavity.units), np.empty(self.cavity.units)
        for stack, t, g, reply in zip(
            self.cavity.stacks, self.pulls, self.cavity.g, self.replies, strict=True
        ):
            loads[stack.units] = np.einsum("uij,uji->u", t, g)
            reach[stack.units] = np.einsum("ui,ui->u", along(g, reply), reply)
        order = np.argsort(-loads, kind="stable")
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(variances > 0.0, reach / variances, np.inf)
        needed = int(np.count_nonzero(loads * np.max(reach) > LIGHT))
        looked = min(looked, needed)
        largest = reach * loads[order[min(looked, len(order) - 1)]]
        for units in _few(order[:looked], len(order)):
            largest = np.maximum(largest, self.parts_of(units) / variances)
        return np.asarray(largest)

    def parts_of(self, units: Codes) -> FloatArray:
        """(U,) the largest part that one of some units has in each unit's variance."""
        largest = np.zeros(self.cavity.units)
        for number, place, here in self.stack_of(units):
            root = square_root(self.pulls[number][place]).astype(np.float32)
            # G is symmetric: the rows of the heavy ones are their columns
            parts = np.zeros((len(place), self.cavity.units), dtype=np.float32)
            for column in range(root.shape[2]):
                every = self.cavity.response.rows(number, place, root[:, :, column])
                for stack, reply, met in zip(self.cavity.stacks, self.replies, every, strict=True):
                    moved = met[..., 0] * reply[:, 0].astype(np.float32)
                    if stack.size > 1:
                        moved = np.einsum("kuq,uq->ku", met, reply)
                    parts[:, stack.units] += moved**2
            parts[np.arange(len(place)), units[here]] = 0.0
            largest = np.maximum(largest, parts.max(axis=0))
        return largest

    def shares(self, variances: FloatArray) -> Shares:
        """Of every unit where the rows of G are not too many; else bounds, and rows for the rest.

        ``variances`` (U,) are those of the scores.
        """
        count, route = self.cavity.units, self.cavity.response.route
        found, doubtful = Shares.unknown(count), np.arange(count)
        predictions = sum(state.z.size for state in self.cavity.states)
        allowed = int(max(MOST_ENTRIES / predictions, ROWS_PER_COEFFICIENT * route.start.size))
        allowed = min(allowed, route.rows_allowed)
        if allowed < count:
            most = max(len(s.force[0]) for s in self.cavity.states)
            upper = route.bound_factor * self.largest_at_most(variances, max(allowed // most, 1))
            doubtful = found.bound(upper)[:allowed]
        for units in _few(doubtful, predictions):
            found.note(units, self.moves(units))
        return found

    def neighbours(self, units: Codes, most: int) -> Neighbours:
        """What makes the laws of some units: the ``most`` others with the largest shares."""
        parts = self.moves(units).astype(np.float64) ** 2
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
