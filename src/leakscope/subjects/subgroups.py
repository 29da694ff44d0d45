"""Exposure by subgroup: whether some kinds of records give more away than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.results.audit import Subgroup

# A share of fewer records than this says little.
SMALL_BELOW = 10

# More subgroups than this are not subgroups.
MOST_SUBGROUPS = 50

# Where a group of records has more than one value.
SEVERAL = "(several)"


def exposure_by(
    columns: Mapping[str, Sequence[str]], advantage: FloatArray, exposed: FloatArray
) -> list[Subgroup]:
    """One entry per column and value, the largest median of each column first.

    ``columns`` have the value of each unit, ``exposed`` how likely it is exposed.
    """
    return [
        entry
        for name, values in columns.items()
        for entry in _exposure(values, advantage, exposed, name)
    ]


def _exposure(
    values: Sequence[str], advantage: FloatArray, exposed: FloatArray, name: str
) -> list[Subgroup]:
    labels = np.asarray(values, dtype=object)
    found = sorted(set(values))
    require_few_subgroups(name, len(found))
    entries = []
    for value in found:
        own = advantage[labels == value]
        entries.append(
            Subgroup(
                column=name,
                value=value,
                count=len(own),
                median_advantage=float(np.median(own)),
                largest_advantage=float(np.max(own)),
                share_exposed=float(np.mean(exposed[labels == value])),
                small=len(own) < SMALL_BELOW,
            )
        )
    return sorted(entries, key=lambda entry: -(entry.median_advantage or 0.0))


def require_few_subgroups(name: str, count: int) -> None:
    """Refuse a column of more values than can be told apart."""
    if count > MOST_SUBGROUPS:
        raise InputError(
            f"column {name!r} has {count} different values; --by takes one with at most "
            f"{MOST_SUBGROUPS}."
        )


def of_groups(values: Sequence[str], groups: NDArray[np.intp], count: int) -> tuple[str, ...]:
    """The subgroup of each group: its records' value where they all have the same."""
    found: list[set[str]] = [set() for _ in range(count)]
    for value, group in zip(values, groups.tolist(), strict=True):
        found[group].add(value)
    return tuple(next(iter(own)) if len(own) == 1 else SEVERAL for own in found)
