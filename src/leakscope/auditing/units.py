"""What leaves an audit's data as a whole: single records, or groups of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.checks import record_name
from leakscope.data import RecordId
from leakscope.errors import InputError


def leaving_units(
    ids: tuple[RecordId, ...], groups: Sequence[Any] | None
) -> tuple[tuple[RecordId, ...], NDArray[np.intp] | None]:
    """The ids of what leaves, and each record's number among them where those are groups.

    Examples
    --------
    >>> from leakscope import auditing
    >>> names, numbers = auditing.leaving_units((0, 1, 2), ["ann", "bob", "ann"])
    >>> names, numbers.tolist()
    (('ann', 'bob'), [0, 1, 0])
    """
    if groups is None:
        return tuple(ids), None
    if len(groups) != len(ids):
        raise InputError(f"there are {len(ids)} records and {len(groups)} groups.")
    place: dict[RecordId, int] = {}
    numbers = [place.setdefault(record_name(value), len(place)) for value in groups]
    if len(place) < 2:
        raise InputError("all records belong to one group; an audit needs at least two.")
    return tuple(place), np.array(numbers, dtype=np.intp)
