"""Where the log likelihood ratio of two normal mixtures crosses a level.

The ratio can cross a level any number of times.  A grid fine enough for every component, together
with all points where the ratio turns, splits the line into cells on which it is monotone: each
cell then holds at most one crossing of any level, which is refined to machine precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.roots import Bracket, shrink_bracket
from leakscope.measures.mixture_densities import MixturePair

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

_STEPS = np.concatenate(
    [np.arange(0.0, 1.0, 0.25), np.arange(1.0, 2.2, 0.3), 2.2 * 1.17 ** np.arange(19)]
)
_MANY = 24  # components beyond which the grid is built from representative ones
_FINEST = 1600  # points of a grid at most


@dataclass(frozen=True, eq=False)
class Table:
    """Grid points ``x`` with the ratio's turning points among them, and the ratio there, (B, G).

    ``extremes`` are the ratio's values at its turning points, (B, K), padded with one that it
    has at the end of the grid.
    """

    x: FloatArray
    llr: FloatArray
    extremes: FloatArray

    def take(self, rows: IndexArray) -> Table:
        """The rows ``rows``."""
        return Table(self.x[rows], self.llr[rows], self.extremes[rows])


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
        return Table(x, llr, llr[:, -1:])
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
    turning = np.repeat(x[:, -1:], most, axis=-1)
    turning[rows, place] = found.high
    extremes = pair.llr(turning)
    x, llr = np.concatenate([x, turning], axis=-1), np.concatenate([llr, extremes], axis=-1)
    order = np.argsort(x, axis=-1, kind="stable")
    x, llr = (np.take_along_axis(a, order, axis=-1) for a in (x, llr))
    return Table(x, llr, extremes)


def crossings(
    pair: MixturePair, table: Table, threshold: FloatArray, tolerance: float = 4e-16
) -> Crossings:
    """All points where l = threshold, for thresholds of shape (B, m), to relative tolerance."""
    above = table.llr[:, None, :] > threshold[..., None]
    change = above[..., 1:] != above[..., :-1]
    most = int(change.sum(axis=-1).max(initial=0))
    shape = (*threshold.shape, most)
    if most == 0:
        return Crossings(np.empty(shape), above[..., 0])
    row, column, cell = np.nonzero(change)
    place = (np.cumsum(change, axis=-1) - 1)[row, column, cell]
    level = threshold[row, column]
    direction = np.where(above[row, column, cell], 1.0, -1.0)

    def falling(at: FloatArray, which: IndexArray) -> FloatArray:
        llr = pair.take(row[which]).llr(at[:, None])[:, 0]
        return direction[which] * (llr - level[which])

    ends = table.x[row, cell], table.x[row, cell + 1]
    values = (direction * (table.llr[row, cell + k] - level) for k in (0, 1))
    found = shrink_bracket(falling, Bracket(*ends, *values), x_tolerance=tolerance)
    x = np.full(shape, np.inf)
    x[row, column, place] = found.high
    return Crossings(x, above[..., 0])


def _grid(pair: MixturePair) -> FloatArray:
    """Points at a few standard deviations of every component, or of representative ones."""
    means = np.concatenate([pair.member.mean, pair.nonmember.mean], axis=-1)
    sigmas = np.exp(np.concatenate([pair.member.log_sigma, pair.nonmember.log_sigma], axis=-1))
    if means.shape[-1] > _MANY and np.all(means == means[:, :1]):
        spread = np.linspace(0.0, 1.0, _MANY // 2)
        least, most = sigmas.min(axis=-1)[:, None], sigmas.max(axis=-1)[:, None]
        sigmas = least * (most / least) ** spread
        means = np.broadcast_to(means[:, :1], sigmas.shape)
    steps = np.concatenate([-_STEPS[:0:-1], _STEPS])
    x = (means[..., None] + sigmas[..., None] * steps).reshape(means.shape[0], -1)
    x = np.sort(x, axis=-1)
    if x.shape[-1] > _FINEST:
        x = x[:, np.linspace(0, x.shape[-1] - 1, _FINEST).astype(np.intp)]
    return np.asarray(x)


def _fill_zeros(sign: FloatArray) -> FloatArray:
    """Replace each zero by the last sign before it (or the first after it)."""
    index = np.where(sign != 0.0, np.arange(sign.shape[-1]), 0)
    forward = np.take_along_axis(sign, np.maximum.accumulate(index, axis=-1), axis=-1)
    first = np.argmax(sign != 0.0, axis=-1)[:, None]
    return np.where(forward == 0.0, np.take_along_axis(sign, first, axis=-1), forward)
