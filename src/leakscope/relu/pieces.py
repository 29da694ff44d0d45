"""A one-dimensional network as what it is: a continuous function made of straight pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork

BoolArray = NDArray[np.bool_]

EQUAL = 1e-9  # breakpoints this near each other, in arctan(x), are one


@dataclass(frozen=True, eq=False)
class Pieces:
    """Breakpoints t_1 < ... < t_K and the K + 1 straight pieces between and beside them.

    Piece 0 reaches to minus infinity, piece K to infinity.  Breakpoints where the slope does not
    change, and equal ones, are merged away: this is the function, not the neurons.

    Attributes
    ----------
    breakpoints, values
        t and f(t), length K.
    slopes
        Of the pieces, length K + 1.
    constant
        Which pieces have slope zero, up to rounding, length K + 1.
    error
        A bound on the rounding error of the values, one number.
    starts
        A finite point of each closed piece, and the piece's own line there, (K + 1) x 2.  Merged
        breakpoints differ in their last digits, and the lines do not suffer from that.

    Examples
    --------
    >>> from leakscope.relu import TwoLayerNetwork, pieces
    >>> found = pieces(TwoLayerNetwork(w=[1.0, -1.0], b=[0.0, 1.0], v=[1.0, 1.0]))
    >>> found.breakpoints.tolist(), found.slopes.tolist(), found.constant.tolist()
    ([0.0, 1.0], [-1.0, 0.0, 1.0], [False, True, False])
    """

    breakpoints: FloatArray
    values: FloatArray
    slopes: FloatArray
    constant: BoolArray
    error: float
    starts: FloatArray

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self.slopes)

    def bounds(self, piece: int) -> tuple[float, float]:
        """The piece's two ends; infinite for the first and the last."""
        low = -np.inf if piece == 0 else float(self.breakpoints[piece - 1])
        high = np.inf if piece == len(self) - 1 else float(self.breakpoints[piece])
        return low, high

    def start(self, piece: int) -> tuple[float, float]:
        """A finite point of the closed piece, and f there."""
        return float(self.starts[piece, 0]), float(self.starts[piece, 1])

    def level(self, piece: int, margin: float, tolerance: float) -> int:
        """1 or -1 where a constant piece lies on the margin of that sign, otherwise 0."""
        if not self.constant[piece]:
            return 0
        value = self.start(piece)[1]
        if abs(abs(value) - margin) > tolerance * margin + self.error:
            return 0
        return 1 if value > 0.0 else -1

    def __call__(self, x: ArrayLike) -> FloatArray:
        """The function at ``x``, from the pieces alone."""
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        which = np.searchsorted(self.breakpoints, points)
        start = self.starts[which]
        return np.asarray(start[:, 1] + self.slopes[which] * (points - start[:, 0]))


def require_one_input(network: TwoLayerNetwork) -> None:
    """Refuse a network of several inputs."""
    if network.features != 1:
        raise InputError(
            "Reconstruction from the margin is for networks with one input, but this one has "
            f"{network.features}; for those there is the membership attack."
        )


def pieces(network: TwoLayerNetwork, *, tolerance: float = 1e-9) -> Pieces:
    """The breakpoints and linear pieces of a network with one input.

    A slope is zero, and a breakpoint none, where it is below ``tolerance`` times the sum of
    |v_j w_j|, which is what rounding and an imperfect optimum leave of it.

    Examples
    --------
    >>> from leakscope.relu import TwoLayerNetwork, pieces
    >>> found = pieces(TwoLayerNetwork(w=[2.0], b=[-1.0], v=[3.0]))
    >>> found.bounds(1), found([2.0]).tolist()
    ((0.5, inf), [9.0])
    """
    require_one_input(network)
    b, v = network.b, network.v
    # a kink beyond 1e14 is a constant neuron's rounding
    w = np.where(np.abs(network.w[:, 0]) > 1e-14 * np.abs(b), network.w[:, 0], 0.0)
    change = np.abs(v * w)
    total = float(change.sum())
    bends = np.flatnonzero(change > 0.0)
    kinks = -b[bends] / w[bends]
    order = np.argsort(kinks, kind="stable")
    bends, kinks = bends[order], kinks[order]
    # neurons in groups of equal breakpoints, each at the mean weighted by its bend
    group = np.zeros(len(kinks), dtype=np.intp)
    if len(kinks):
        group[1:] = np.cumsum(np.diff(np.arctan(kinks)) > EQUAL)
    count = int(group[-1]) + 1 if len(kinks) else 0
    jump = np.bincount(group, weights=(v * np.abs(w))[bends], minlength=count)
    mass = np.bincount(group, weights=change[bends], minlength=count)
    place = np.bincount(group, weights=change[bends] * kinks, minlength=count) / mass
    place = place[np.abs(jump) > tolerance * total]
    lines = np.array([_line(w, b, v, low, high) for low, high in _intervals(place)])
    slopes = lines[:, 0]
    at = first_points(place)
    starts = np.stack([at, slopes * at + lines[:, 1]], axis=1)
    constant = np.abs(slopes) <= tolerance * total
    slopes = np.where(constant, 0.0, slopes)
    reach = np.abs(place).max(initial=1.0)
    error = 4.0 * np.finfo(np.float64).eps * float(np.abs(v) @ (np.abs(w) * reach + np.abs(b)))
    return Pieces(place, network(place), slopes, constant, error, starts)


def first_points(breakpoints: FloatArray) -> FloatArray:
    """A finite end of each piece; zero where there are no breakpoints."""
    if not len(breakpoints):
        return np.zeros(1)
    return np.concatenate([breakpoints[:1], breakpoints])


def _intervals(breakpoints: FloatArray) -> list[tuple[float, float]]:
    ends = np.concatenate([[-np.inf], breakpoints, [np.inf]])
    return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))


def _line(
    w: FloatArray, b: FloatArray, v: FloatArray, low: float, high: float
) -> tuple[float, float]:
    """Slope and intercept: v_j (w_j, b_j) summed over the neurons active inside the interval."""
    middle = np.tan(0.5 * (np.arctan(low) + np.arctan(high)))
    active = w * middle + b > 0.0
    return float(np.sum((v * w)[active])), float(np.sum((v * b)[active]))
