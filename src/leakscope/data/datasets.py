"""A dataset as the instruments take it: numbers, a target, and each record's own id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.columns import shown
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS, Decimal, Missing
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
    target, id_column, task, group_column, ignore, missing, split, header, na_values, decimal
        As they were given.
    sample, sample_seed
        How many records were drawn, where not all were taken, and the seed.
    digest
        Of the features, the target, the ids and the groups, and of the file: the same data, or
        not; see :func:`leakscope.data.datasets.same_data`.

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
    header: bool = DATA_DEFAULTS.header
    na_values: tuple[str, ...] = DATA_DEFAULTS.na_values
    decimal: Decimal = DATA_DEFAULTS.decimal
    sample: int | None = DATA_DEFAULTS.sample
    sample_seed: int = DATA_DEFAULTS.sample_seed


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
    group
        Each record's group, such as the person, where the group is the unit.
    by
        Each record's subgroup, for every column that exposure is summed up by.
    picture
        Height, width and, in colour, 3, where records are known to be pictures, row by row and
        channels last; None where nothing says so.
    sampled_from
        How many records there were, where these are a sample; None where they are all.

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
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    picture: tuple[int, ...] | None = None
    sampled_from: int | None = None


def subgroups(column: pd.Series[Any]) -> tuple[str, ...]:
    """Each record's subgroup: its value, or its quarter where there are many numbers."""
    if many_numbers(column):
        numbers = column.astype(float)
        if np.isinf(numbers).any():
            row = column.index[int(np.argmax(np.isinf(numbers)))]
            raise InputError(
                f"column {column.name!r} holds an infinite number in row {row} (rows count from "
                "0) and cannot be cut into subgroups; correct it."
            )
        quarters = pd.qcut(numbers, 4, duplicates="drop")
        column = pd.Series(quarters.astype(object), index=column.index)
    return tuple("(empty)" if pd.isna(value) else subgroup_label(value) for value in column)


def many_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column of subgroups is of numbers, too many to be a subgroup each."""
    return pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_SUBGROUPS


def subgroup_label(value: object) -> str:
    """A subgroup's name: its value, a number in the fewest digits that are this number's alone.

    Examples
    --------
    >>> from leakscope.data import subgroup_label
    >>> subgroup_label(3.0), subgroup_label(0.1), subgroup_label(None)
    ('3', '0.1', '(empty)')
    """
    if value is None or value != value:
        return "(empty)"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))
    return str(value)


# Before every digest of this form; one without it is of the features and the target only.
DIGEST_FORM = "2"


def digest(
    features: NDArray[np.float64],
    target: NDArray[Any],
    ids: Sequence[RecordId],
    group: Sequence[RecordId] | None = None,
    file: str | None = None,
) -> str:
    """Three digests in one text: of the values with ids and groups, of values only, of the file.

    Parsers of decimal numbers differ in the last digit from one version to the next, so that
    the same file need not give the same values everywhere; its bytes are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.data.datasets import digest, same_data
    >>> X, y = np.eye(2), np.array([0.0, 1.0])
    >>> one, other = digest(X, y, ("ann", "bob")), digest(X, y, ("bob", "ann"))
    >>> same_data(one, one), same_data(one, other)
    (True, False)
    """
    numbers = hashlib.sha256(np.ascontiguousarray(features).reshape(-1).view(np.uint8).data)
    values = numbers.copy()
    for part in (target.tolist(), ids, group or ()):
        values.update(f"{len(part)};".encode())
        for entry in part:
            text = str(entry).encode(errors="surrogatepass")
            values.update(f"{len(text)};".encode())
            values.update(text)
    for place, entry in enumerate(target.tolist()):
        numbers.update(f"{chr(0) if place else ''}{entry}".encode(errors="surrogatepass"))
    held = "" if file is None else file_digest(file)
    return "-".join((DIGEST_FORM, values.hexdigest(), numbers.hexdigest(), held))


def file_digest(file: str) -> str:
    """SHA-256 of a file's bytes, or of the names and bytes of all files in a folder."""
    place = Path(file)
    if not place.is_dir():
        with place.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    found = hashlib.sha256()
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        name = path.relative_to(place).as_posix().encode(errors="surrogateescape")
        found.update(f"{len(name)};{path.stat().st_size};".encode())
        found.update(name)
        found.update(bytes.fromhex(file_digest(str(path))))
    return found.hexdigest()


def same_data(one: str, other: str, *, read_alike: bool = True) -> bool:
    """Whether two digests are of the same data.

    ``read_alike`` says that the same columns were asked of both: the same file is then the same
    data, and other ids make other data.  Otherwise features and targets are compared alone; a
    digest of the former kind knows nothing else.

    Examples
    --------
    >>> from leakscope.data.datasets import same_data
    >>> same_data("2-a-b-c", "2-x-y-c"), same_data("2-a-b-c", "2-x-b-z")
    (True, False)
    >>> same_data("2-a-b-c", "2-x-b-z", read_alike=False), same_data("2-a-b-c", "b")
    (True, True)
    """
    first, second = (text.split("-") for text in (one, other))
    if read_alike and len(first) == len(second) == 4:
        return first[1] == second[1] or (bool(first[3]) and first[3] == second[3])
    known = [parts[2] if len(parts) == 4 else parts[0] for parts in (first, second)]
    return known[0] == known[1]


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
