"""Numbers as JSON can say them: one that is not finite is null."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def finite_or_none(value: float | None) -> float | None:
    """The number, or None where it is infinite or is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain(values: ArrayLike) -> Any:
    """A float or nested lists of them, with None for what is not finite."""
    return without_non_finite(np.asarray(values, dtype=np.float64).tolist())


def without_non_finite(value: Any) -> Any:
    """Dictionaries, lists and what they hold, with None for every float that is not finite."""
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, dict):
        return {str(key): without_non_finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_non_finite(entry) for entry in value]
    return value
