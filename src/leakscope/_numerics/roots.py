"""Roots of monotone functions, a whole batch at once, evaluating only what is not finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
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
    f_tolerance: float = 0.0,
    x_tolerance: float = 1e-15,
    x_absolute: float = 0.0,
    limit: int = 200,
) -> Bracket:
    """Close the bracket of a non-increasing f, by false position with a bisection fallback.

    An entry is finished when |f(high)| <= f_tolerance or when the bracket is narrower than
    x_absolute, or than x_tolerance times its ends' size.  Jumps and infinite values are allowed:
    there the bracket closes on the jump.
    """
    low, high, f_low, f_high = (np.array(a, dtype=np.float64) for a in bracket)
    # the weights of Anderson and Bjorck's false position: an end that stays is reduced
    weight_low, weight_high = f_low.copy(), f_high.copy()
    before = high - low
    active = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    for iteration in range(limit):
        a, b = low[active], high[active]
        size = np.maximum(x_tolerance * np.maximum(np.abs(a), np.abs(b)), x_absolute)
        active = active[(np.abs(f_high[active]) > f_tolerance) & (b - a > size)]
        if not active.size:
            break
        a, b, wa, wb = low[active], high[active], weight_low[active], weight_high[active]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            x = a - wa * ((b - a) / (wb - wa))
        bisect = ~((x > a) & (x < b))
        if iteration % 3 == 2:  # three steps must at least halve the bracket
            bisect |= b - a > 0.5 * before[active]
            before[active] = b - a
        x = np.where(bisect, 0.5 * (a + b), x)
        value = f(x, active)
        above = value > 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            keep = 1.0 - value / np.where(above, wa, wb)
        keep = np.where(np.isfinite(keep) & (keep > 0.0), keep, 0.5)
        weight_low[active] = np.where(above, value, wa * keep)
        weight_high[active] = np.where(above, wb * keep, value)
        up, down = active[above], active[~above]
        low[up], f_low[up] = x[above], value[above]
        high[down], f_high[down] = x[~above], value[~above]
    return Bracket(low, high, f_low, f_high)
