"""Roots of monotone functions, a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Bracket(NamedTuple):
    """``low`` and ``high`` with f(low) > 0 >= f(high), and the values there."""

    low: FloatArray
    high: FloatArray
    f_low: FloatArray
    f_high: FloatArray


def expand_bracket(
    f: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, limit: int = 400
) -> Bracket:
    """Move the ends of [low, high] outwards until a non-increasing f changes sign between them.

    The step doubles each time.  Where f keeps its sign up to the range of double precision the
    end is infinite and its value that of the last try.
    """
    f_low, f_high = f(low), f(high)
    width = high - low
    for _ in range(limit):
        up, down = f_high > 0.0, f_low <= 0.0
        if not (up.any() or down.any()):
            break
        if up.any():
            low, f_low = np.where(up, high, low), np.where(up, f_high, f_low)
            high = np.where(up, high + width, high)
            f_high = np.where(up, f(high), f_high)
        if down.any():
            high, f_high = np.where(down, low, high), np.where(down, f_low, f_high)
            low = np.where(down, low - width, low)
            f_low = np.where(down, f(low), f_low)
        with np.errstate(over="ignore"):
            width = np.where(up | down, 2.0 * width, width)
        stuck = ~np.isfinite(low) | ~np.isfinite(high)
        f_low = np.where(stuck & (f_low <= 0.0), np.inf, f_low)
        f_high = np.where(stuck & (f_high > 0.0), -np.inf, f_high)
    return Bracket(low, high, f_low, f_high)


def shrink_bracket(
    f: Callable[[FloatArray], FloatArray],
    bracket: Bracket,
    *,
    f_tolerance: float,
    x_tolerance: float,
    x_absolute: float = 0.0,
    limit: int = 200,
) -> Bracket:
    """Close the bracket of a non-increasing f, by false position with a bisection fallback.

    An entry is finished when |f(high)| <= f_tolerance or when the bracket is narrower than
    x_absolute, or than x_tolerance times its ends' size.  Jumps and infinite values are allowed: there the bracket
    closes on the jump.
    """
    low, high, f_low, f_high = bracket
    weight_low, weight_high = f_low.copy(), f_high.copy()
    before = high - low
    for iteration in range(limit):
        size = np.maximum(x_tolerance * np.maximum(np.abs(low), np.abs(high)), x_absolute)
        active = (np.abs(f_high) > f_tolerance) & (high - low > size)
        active &= np.isfinite(low) & np.isfinite(high)
        if not active.any():
            break
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            x = (low * weight_high - high * weight_low) / (weight_high - weight_low)
        middle = 0.5 * (low + high)
        bisect = ~np.isfinite(x) | ~((x > low) & (x < high))
        if iteration % 3 == 2:  # three false-position steps must at least halve the bracket
            bisect |= high - low > 0.5 * before
            before = high - low
        x = np.where(bisect, middle, x)
        x = np.where(active, x, high)
        value = f(x)
        above = (value > 0.0) & active
        below = ~above & active
        # Anderson and Bjorck: an end that stays has its weight reduced
        with np.errstate(invalid="ignore", divide="ignore"):
            keep_high = 1.0 - value / weight_low
            keep_low = 1.0 - value / weight_high
        keep_high = np.where(np.isfinite(keep_high) & (keep_high > 0.0), keep_high, 0.5)
        keep_low = np.where(np.isfinite(keep_low) & (keep_low > 0.0), keep_low, 0.5)
        weight_high = np.where(above, weight_high * keep_high, weight_high)
        weight_low = np.where(below, weight_low * keep_low, weight_low)
        weight_low = np.where(above, value, weight_low)
        weight_high = np.where(below, value, weight_high)
        low, f_low = np.where(above, x, low), np.where(above, value, f_low)
        high, f_high = np.where(below, x, high), np.where(below, value, f_high)
    return Bracket(low, high, f_low, f_high)
