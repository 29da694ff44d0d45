"""Exposure by subgroup: whether some kinds of records give more away than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.verdict import EXPOSED_ABOVE
from leakscope.errors import InputError

# A share of fewer records than this says little.
SMALL_BELOW = 10

# More subgroups than this are not subgroups.
MOST_SUBGROUPS = 50

# Where a group of records has more than one value.
SEVERAL = "(several)"


@dataclass(frozen=True)
class Subgroup:
    """The exposure of the records with one value of a column.

    Attributes
    ----------
    column, value
        The column, and its value.
    count
        Records (or groups, where they are the unit).
    median_advantage, largest_advantage
        Of the best test, over them.
    share_exposed
        The fraction whose advantage is 0.1 or more.
    small
        Whether there are fewer than ten, too few to compare.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> wine = data.read_example("wine", by="target")
    >>> [(entry.value, entry.count) for entry in auditing.audit_by_settings(wine).subgroups]
    [('2', 48), ('1', 71), ('0', 59)]
    """

    column: str
    value: str
    count: int
    median_advantage: float
    largest_advantage: float
    share_exposed: float
    small: bool

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def exposure_by(
    columns: Mapping[str, Sequence[str]],
    advantage: FloatArray,
    groups: NDArray[np.intp] | None = None,
) -> tuple[Subgroup, ...]:
    """One entry per column and value, the largest median of each column first.

    Parameters
    ----------
    columns
        By name, (n,) each record's subgroup.
    advantage
        Of each record, or of each group.
    groups
        (n,) each record's group, where groups leave as a whole.
    """
    found: list[Subgroup] = []
    for name, values in columns.items():
        own = values if groups is None else of_groups(values, groups, len(advantage))
        found += _exposure(own, advantage, name)
    return tuple(found)


def _exposure(values: Sequence[str], advantage: FloatArray, name: str) -> list[Subgroup]:
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
                share_exposed=float(np.mean(own >= EXPOSED_ABOVE)),
                small=len(own) < SMALL_BELOW,
            )
        )
    return sorted(entries, key=lambda entry: -entry.median_advantage)


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
