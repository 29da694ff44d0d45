"""Where a piecewise linear function meets the margin: crossings, kinks that touch it, flats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.relu.pieces import Pieces
from leakscope.settings import RECONSTRUCT_DEFAULTS


@dataclass(frozen=True)
class Crossing:
    """A point with |f(x)| equal to the margin, on a piece that is not constant.

    ``pieces`` are the pieces it belongs to: one, or the two beside a kink.
    """

    x: float
    sign: int
    pieces: tuple[int, ...]


def crossings(
    found: Pieces,
    margin: float,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> list[Crossing]:
    """All of them, in order; a kink within ``tolerance`` of the margin counts as touching it."""
    touching = {
        k: 1 if value > 0.0 else -1
        for k, value in enumerate(found.values)
        if abs(abs(value) - margin) <= tolerance * margin + found.error
    }
    places = [
        Crossing(
            float(found.breakpoints[k]),
            sign,
            tuple(piece for piece in (k, k + 1) if not found.constant[piece]),
        )
        for k, sign in touching.items()
        if not (found.constant[k] and found.constant[k + 1])
    ]
    for piece in np.flatnonzero(~found.constant):
        start, value = found.start(int(piece))
        low, high = found.bounds(int(piece))
        ends = {k: touching[k] for k in (int(piece) - 1, int(piece)) if k in touching}
        for sign in (1, -1):
            # the end that touches the margin is this piece's one crossing of that sign
            if sign in ends.values():
                continue
            x = start + (sign * margin - value) / float(found.slopes[piece])
            if low < x < high:
                places.append(Crossing(float(x), sign, (int(piece),)))
    return sorted(places, key=lambda place: place.x)


def flats(
    found: Pieces,
    margin: float,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> list[tuple[int, int]]:
    """The constant pieces on the margin, each with its sign."""
    levels = [(piece, found.level(piece, margin, tolerance)) for piece in range(len(found))]
    return [(piece, level) for piece, level in levels if level != 0]
