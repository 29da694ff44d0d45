"""Which numbers a plan can be made with: others are a slip of the hand, or overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping

from leakscope.errors import InputError

# Beyond these squares and quadratures leave float64.
LEAST, LARGEST = 1e-12, 1e12

# A ridge above this leaves nothing of the fit within the digits of float64.
MOST_RIDGE = 1e6


def require_reachable(values: Mapping[str, float | None], *, most: float = LARGEST) -> None:
    """Refuse a number that is neither 0 nor from 1e-12 to ``most`` in size, by its name."""
    for name, value in values.items():
        # What is no number at all is told by the design itself.
        if value is None or value == 0.0 or value != value or abs(value) == math.inf:
            continue
        if LEAST <= abs(value) <= most:
            continue
        told = f"{value:g}" if isinstance(value, float) else f"a number of {len(str(value))} digits"
        raise InputError(
            f"{name} must be 0, or from {LEAST:g} to {most:g} in size, but it is {told}."
        )
