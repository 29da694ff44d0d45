"""A dataset as the instruments take it: numbers, a target, and each record's own id."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.columns import shown
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS, Missing
from leakscope.settings import Task as Task

RecordId = int | str

# A column of more different numbers than this is cut into quarters where subgroups are wanted.
MOST_SUBGROUPS = 20


@dataclass(frozen=True)
class Source:
    """Where a dataset came from, so that it can be read again.

    Attributes
    ----------
    file, example
        The file's absolute path, or the example's name.
    target, id_column, task, group_column, ignore, missing, split
        As they were given.
    digest
        SHA-256 of the features and the target as read: the same data, or not.

    Examples
    --------
    >>> from leakscope import data
    >>> data.read_example("wine").source.example
    'wine'
    """

    file: str | None
    example: str | None
    target: str | None
    id_column: str | None
    task: Task
    digest: str
    group_column: str | None = None
    ignore: tuple[str, ...] = ()
    missing: Missing = DATA_DEFAULTS.missing
    split: str | None = None


@dataclass(frozen=True)
class Dataset:
    """Records by features, a target, ids, and what was done to them.

    Attributes
    ----------
    name
        The file's or the example's name.
    features
        (n, d) numbers; a column of categories is one indicator a category.
    target
        (n,) numbers or class labels as read; (n,) or (n, C) numbers once prepared.
    record_ids
        One a record: the id column's values, or row numbers starting at 0.
    feature_names, target_name
        The columns' names; ``region=north`` for the indicator of a category.
    task
        Whether the target is a quantity or a class.
    steps
        What was done to the data, in order, in words.
    source
        Where it can be read again; None where it came from memory.
    indicators
        Positions of the features that indicate a category; they are never scaled.
    group, group_name
        Each record's group, such as the person, where the group is the unit; and its column.
    by, by_name
        Each record's subgroup, where exposure is summed up by one; and its column.
    picture
        Height, width and, in colour, 3, where records are known to be pictures, row by row and
        channels last; None where nothing says so.

    Examples
    --------
    >>> from leakscope import data
    >>> diabetes = data.read_example("diabetes")
    >>> diabetes.features.shape, diabetes.record_ids[:3]
    ((442, 10), (0, 1, 2))
    """

    name: str
    features: NDArray[np.float64]
    target: NDArray[Any]
    record_ids: tuple[RecordId, ...]
    feature_names: tuple[str, ...]
    target_name: str
    task: Task
    steps: tuple[str, ...] = ()
    source: Source | None = None
    indicators: tuple[int, ...] = ()
    group: tuple[RecordId, ...] | None = None
    group_name: str | None = None
    by: tuple[str, ...] | None = None
    by_name: str | None = None
    picture: tuple[int, ...] | None = None


def subgroups(column: pd.Series[Any]) -> tuple[str, ...]:
    """Each record's subgroup: its value, or its quarter where there are many numbers."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_SUBGROUPS:
        quarters = pd.qcut(column, 4, duplicates="drop")
        column = pd.Series(quarters.astype(object), index=column.index)
    empty = column.isna().to_numpy()
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in column]
    return tuple("(empty)" if gone else value for value, gone in zip(values, empty, strict=True))


def digest(features: NDArray[np.float64], target: NDArray[Any]) -> str:
    """SHA-256 of the numbers and of the target's values as text."""
    found = hashlib.sha256(np.ascontiguousarray(features).tobytes())
    found.update("\0".join(str(value) for value in target.tolist()).encode())
    return found.hexdigest()


def require_distinct_ids(
    ids: list[RecordId], what: str, rows: Sequence[int] | None = None
) -> tuple[RecordId, ...]:
    """The ids as a tuple, or a sentence that names the first one that stands twice.

    Examples
    --------
    >>> from leakscope import data
    >>> data.require_distinct_ids(["a", "b"], "the ids")
    ('a', 'b')
    """
    first_row: dict[RecordId, int] = {}
    for row, value in zip(rows if rows is not None else range(len(ids)), ids, strict=True):
        if value in first_row:
            raise InputError(
                f"{what} holds {shown(value)} twice, in rows {first_row[value]} and {row} (rows "
                "count from 0); ids must be distinct."
            )
        first_row[value] = row
    return tuple(ids)
