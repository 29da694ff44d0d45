"""Some of the records or groups of a result: one number, a slice, or an array."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError

Chosen = SupportsIndex | slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]


def chosen_places(chosen: Chosen, count: int, what: str) -> slice | NDArray[np.intp]:
    """What to index arrays of ``count`` entries with; one number gives an array of no dimension.

    Numbers below zero count from the end, and an array of truth values takes where they hold.
    """
    if isinstance(chosen, slice):
        try:
            chosen.indices(count)
        except TypeError:
            raise InputError(f"a slice of {what}s must be of whole numbers.") from None
        return chosen
    if isinstance(chosen, bool | np.bool_):
        raise InputError(_wrong(what, repr(chosen)))
    try:
        numbers = np.asarray(operator.index(chosen))  # type: ignore[arg-type]
    except TypeError:
        numbers = _array(chosen, count, what)
    outside = np.flatnonzero((numbers < -count) | (numbers >= count))
    if outside.size:
        raise InputError(
            f"there is no {what} {numbers.reshape(-1)[outside[0]]}: there are {count}, counted "
            "from 0."
        )
    return np.asarray(np.where(numbers < 0, numbers + count, numbers), dtype=np.intp)


def _array(chosen: object, count: int, what: str) -> NDArray[np.integer]:
    try:
        found = np.asarray(chosen)
    except ValueError:
        raise InputError(_wrong(what, "a ragged list")) from None
    if found.ndim == 1 and found.size == 0 and found.dtype.kind == "f":
        found = found.astype(np.intp)  # what NumPy makes of an empty list
    if found.ndim != 1 or found.dtype.kind not in "iub":
        raise InputError(_wrong(what, f"an array of {found.dtype} of shape {found.shape}"))
    if found.dtype.kind != "b":
        return found
    if len(found) != count:
        raise InputError(f"there are {count} {what}s, but {len(found)} truth values.")
    return np.flatnonzero(found)


def _wrong(what: str, given: str) -> str:
    return f"choose {what}s by a number, a slice or a list of numbers, but it is {given}."
