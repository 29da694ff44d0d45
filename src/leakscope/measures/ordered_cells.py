"""The area under the ROC of a score that is known on cells: monotone in each, with its slopes.

No order of the line has a larger area than that of the likelihood ratio, so that small errors of
an order cost the area a second-order one only.  The score is therefore replaced by a monotone cubic
in each cell, whose crossings of a level need no search, and the area of that order is found from
the exact masses of both laws.

The points' scores cut the score's range into bands, over all of which a cell is crossed or not at
all.  Between two turning levels, low and high, both masses above a level t are smooth in the angle
a with t = low + (high - low) sin^2 a: in t they have a square root's singularity at either end.
So a few nodes in each band are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray

IndexArray = npt.NDArray[np.intp]
MassesBelow = Callable[[FloatArray, IndexArray], FloatArray]
"""Masses (2, P) of both laws, nonmember first, below points (P,) of the pairs ``rows`` (P,)."""


class Score(NamedTuple):
    """Rising points, the score there and its slope, each (B, G)."""

    x: FloatArray
    score: FloatArray
    slope: FloatArray


def _lobatto(order: int) -> tuple[FloatArray, FloatArray]:
    """Nodes u on [0, 1], both ends among them, and the matrix A of D' A F = integral of D dF.

    A is the rule's weights times the polynomial's derivative at the nodes, both in closed form
    from the Legendre polynomial of degree order - 1 (Canuto et al. 1988, section 2.3).
    """
    legendre = np.polynomial.legendre.Legendre.basis(order - 1)
    x = np.concatenate([[-1.0], legendre.deriv().roots(), [1.0]])
    height, edge = legendre(x), order * (order - 1.0)
    slopes = height[:, None] / height / (x[:, None] - x + np.eye(order))
    np.fill_diagonal(slopes, 0.0)
    slopes[0, 0], slopes[-1, -1] = -0.25 * edge, 0.25 * edge
    area = 2.0 / (edge * height[:, None] ** 2) * slopes
    return 0.5 * (1.0 + x), np.asarray(area, dtype=np.float64)


_ORDER = 6
_NODES, _AREA = _lobatto(_ORDER)
_INNER = _NODES[:-1]  # a band's last node is the next one's first
_STEPS = _INNER.size
_NO_MASS = 1e-14  # cells with less of both laws are left out
_LEVEL = 1e-3  # a slope of this share of the cell's mean slope is that of a turning point
_NEWTON = 2
_AT_ONCE = 1 << 14  # crossings that stay in the cache


def auc_by_cells(table: Score, below: MassesBelow) -> FloatArray:
    """P(s(X1) > s(X0)) of B pairs, ties counting one half."""
    batch, points = table.x.shape
    every = np.repeat(np.arange(batch), points)
    under = below(table.x.ravel(), every).reshape(2, batch, points)
    mass = np.diff(under, axis=-1)
    kept = np.asarray((mass > _NO_MASS).any(axis=0))
    bands, rank = _bands(table, kept)
    cells = _Cells.of(kept, rank)

    # masses above each band's levels: of cells that lie above all of it, and of those it crosses
    above = np.empty((2, batch, points, _STEPS))
    for part, masses in zip(above, mass, strict=True):
        begun = np.bincount(cells.row * points + cells.first, masses[kept], batch * points)
        rising = np.cumsum(begun.reshape(batch, points), axis=-1)
        part[...] = (rising[:, -1:] - rising)[..., None]
    for some, place in cells.parts():
        row, band = cells.row[some], cells.first[some] + place
        x = _crossings(table, bands, cells, some, place)
        crossed = below(x.ravel(), np.repeat(row, _STEPS)).reshape(2, *x.shape)
        key = (row * points + band)[:, None] * _STEPS + np.arange(_STEPS)
        for part, ends, here in zip(above, under, crossed, strict=True):
            rest = np.abs(ends[row, cells.high[some]][:, None] - here)
            np.add.at(part.reshape(-1), key.ravel(), rest.ravel())
    return _area(above)


class _Cells(NamedTuple):
    """The cells that are kept: their pair, the points where they are lowest and highest, (K,) each.

    A cell ``crosses`` so many bands, from its ``first`` upwards.
    """

    row: IndexArray
    low: IndexArray
    high: IndexArray
    first: IndexArray
    crosses: IndexArray

    @classmethod
    def of(cls, kept: npt.NDArray[np.bool_], rank: IndexArray) -> _Cells:
        """Of (B, G - 1) cells those that are kept, by their ends' places in the score's order."""
        row, left = np.nonzero(kept)
        falls = rank[row, left] > rank[row, left + 1]
        low, high = left + falls, left + ~falls
        return cls(row, low, high, rank[row, low], rank[row, high] - rank[row, low])

    def parts(self) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Some cells at a time: each once for every band it crosses, and the band's place."""
        total = np.cumsum(self.crosses) * _STEPS
        ends = np.searchsorted(total, np.arange(_AT_ONCE, total.max(initial=0), _AT_ONCE))
        for cells in np.split(np.arange(total.size), ends):
            times = self.crosses[cells]
            begin = np.repeat(np.cumsum(times) - times, times)
            yield np.repeat(cells, times), np.arange(begin.size) - begin


def _crossings(
    table: Score, bands: _Bands, cells: _Cells, some: IndexArray, place: IndexArray
) -> FloatArray:
    """Where the cells ``some`` have the levels of the band ``place`` of theirs, (P, steps)."""
    row, low, high = cells.row[some], cells.low[some], cells.high[some]
    band = cells.first[some] + place
    bottom, height = table.score[row, low], table.score[row, high] - table.score[row, low]
    start, width = table.x[row, low], table.x[row, high] - table.x[row, low]
    # where the score is level any order will do, if it is one
    level = height <= 0.0
    height = np.where(level, cells.crosses[some], height)
    before = np.where(level, place, bands.low[row, band] - bottom)
    rise = np.where(level, 1.0, bands.height[row, band])
    share = (before[:, None] + rise[:, None] * bands.share[row, band]) / height[:, None]
    with np.errstate(over="ignore"):
        slopes = [
            np.where(level, 1.0, np.abs(table.slope[row, end] * width) / height)[:, None]
            for end in (low, high)
        ]
    inside = _crossed(np.clip(share, 0.0, 1.0), *slopes)
    return np.asarray(start[:, None] + width[:, None] * inside)


class _Bands(NamedTuple):
    """Lower ends and heights (B, G) of bands, and the nodes' shares of the height (B, G, steps)."""

    low: FloatArray
    height: FloatArray
    share: FloatArray


def _bands(table: Score, kept: npt.NDArray[np.bool_]) -> tuple[_Bands, IndexArray]:
    """The bands, and each point's place among their ends.

    Points of no cell that is kept come last, and end no band.
    """
    used = np.zeros(table.x.shape, dtype=bool)
    used[:, 1:] |= kept
    used[:, :-1] |= kept
    order = np.argsort(np.where(used, table.score, np.inf), axis=-1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :], axis=-1)
    level = np.take_along_axis(table.score, order, axis=-1)
    turns = np.take_along_axis(used & (table.slope == 0.0), order, axis=-1)
    last = used.sum(axis=-1, keepdims=True) - 1
    turns |= (np.arange(order.shape[1]) == 0) | (np.arange(order.shape[1]) == last)
    low, high = level, np.concatenate([level[:, 1:], level[:, -1:]], axis=-1)
    below = np.maximum.accumulate(np.where(turns, level, -np.inf), axis=-1)
    above = np.where(turns, level, np.inf)
    above = np.minimum.accumulate(above[:, ::-1], axis=-1)[:, ::-1]
    above = np.concatenate([above[:, 1:], above[:, -1:]], axis=-1)
    height = np.maximum(high - low, 0.0)
    return _Bands(low, height, _shares(below, low, high, above)), rank


def _shares(below: FloatArray, low: FloatArray, high: FloatArray, above: FloatArray) -> FloatArray:
    """Heights of nodes that are even in the angle, as shares of the band from low to high.

    The angle is counted from the nearer of the turning levels ``below`` and ``above``, so that
    sin^2 a - sin^2 b = sin(a - b) sin(a + b) keeps its digits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        up = (low - below) + (high - below) <= (above - low) + (above - high)
        near = [np.maximum(np.where(up, t - below, above - t), 0.0) for t in (low, high)]
        far = [np.maximum(np.where(up, above - t, t - below), 0.0) for t in (low, high)]
        first, last = (
            np.arctan2(np.sqrt(n), np.sqrt(f))[..., None] for n, f in zip(near, far, strict=True)
        )
        angle = first + (last - first) * _INNER
        share = np.sin(angle - first) * np.sin(angle + first)
        share /= np.sin(last - first) * np.sin(last + first)
    return np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), _INNER)


def _area(above: FloatArray) -> FloatArray:
    """Of the masses (2, B, bands, steps) above rising levels, of which the last band is none."""
    values = np.concatenate([above[:, :, :-1], above[:, :, 1:, :1]], axis=-1)
    fpr, tpr = values
    return np.asarray(-np.einsum("bmk,kl,bml->b", tpr, _AREA, fpr, optimize=True))


def _crossed(share: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Where in [0, 1] a cubic that rises from 0 to 1 with these slopes has the value ``share``.

    Slopes of at most 3 make a cubic monotone (Fritsch and Carlson 1980).  Newton's steps begin at
    the quadratic's solution.
    """
    start, end = np.minimum(start, 3.0), np.minimum(end, 3.0)
    first = np.clip(1.0 + 0.5 * (start - end), 0.0, 2.0)
    first = np.where(start < _LEVEL, 0.0, np.where(end < _LEVEL, 2.0, first))
    first = np.where((start < _LEVEL) & (end < _LEVEL), 1.0, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = 2.0 * share / (first + np.sqrt(first * first + 4.0 * (1.0 - first) * share))
    s = np.where(share > 0.0, s, 0.0)
    square, cube = 3.0 - 2.0 * start - end, start + end - 2.0
    for _ in range(_NEWTON):
        value = s * (start + s * (square + s * cube)) - share
        rise = start + s * (2.0 * square + 3.0 * s * cube)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.clip(np.where(rise > 0.0, s - value / rise, s), 0.0, 1.0)
    return np.asarray(s)
