"""Numbers as JSON can say them: one that is not finite is null."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def finite_or_none(value: float | None) -> float | None:
    """The number, or None where it is infinite or is none.

    Examples
    --------
    >>> from leakscope._numerics.json_numbers import finite_or_none
    >>> finite_or_none(0.5), finite_or_none(float("inf")), finite_or_none(None)
    (0.5, None, None)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def plain(values: ArrayLike) -> Any:
    """A float or nested lists of them, with None for what is not finite.

    Examples
    --------
    >>> from leakscope._numerics.json_numbers import plain
    >>> plain([[1.0, float("nan")], [2.0, 3.0]])
    [[1.0, None], [2.0, 3.0]]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return finite_or_none(float(array))
    return [plain(entry) for entry in array]


def without_non_finite(value: Any) -> Any:
    """Dictionaries, lists and what they hold, with None for every float that is not finite.

    Examples
    --------
    >>> from leakscope._numerics.json_numbers import without_non_finite
    >>> without_non_finite({"kl": float("inf"), "ranks": (1, 2.5)})
    {'kl': None, 'ranks': [1, 2.5]}
    """
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, dict):
        return {str(key): without_non_finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_non_finite(entry) for entry in value]
    return value
