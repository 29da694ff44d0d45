"""A dataset as the instruments take it: numbers, a target, and each record's own id."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.io.tables import UNNAMED_ID, UNNAMED_TARGET, read_table

Task = Literal["regression", "classification"]
RecordId = int | str


@dataclass(frozen=True)
class Source:
    """Where a dataset came from, so that it can be read again.

    Attributes
    ----------
    file, example
        The file's absolute path, or the example's name.
    target, id_column, task
        As they were given.
    digest
        SHA-256 of the features and the target as read: the same data, or not.

    Examples
    --------
    >>> from leakscope import io
    >>> io.read_example("wine").source.example
    'wine'
    """

    file: str | None
    example: str | None
    target: str | None
    id_column: str | None
    task: Task
    digest: str


@dataclass(frozen=True)
class Dataset:
    """Records by features, a target, ids, and what was done to them.

    Attributes
    ----------
    name
        The file's or the example's name.
    features
        (n, d) numbers.
    target
        (n,) numbers or class labels as read; (n,) or (n, C) numbers once prepared.
    record_ids
        One a record: the id column's values, or row numbers starting at 0.
    feature_names, target_name
        The columns' names.
    task
        Whether the target is a quantity or a class.
    steps
        What was done to the data, in order, in words.
    source
        Where it can be read again; None where it came as arrays.

    Examples
    --------
    >>> from leakscope import io
    >>> diabetes = io.read_example("diabetes")
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


def read_dataset(
    path: str | Path,
    *,
    target: str | None = None,
    id_column: str | None = None,
    task: Task = "regression",
) -> Dataset:
    """Read CSV, TSV, Parquet, .npy or .npz; every column but target and id is a feature.

    Parameters
    ----------
    path
        The file; its suffix says what it is.
    target
        The target column's name, or its position (``0`` is the first, ``-1`` the last).  An
        .npz archive that holds ``y`` needs none.
    id_column
        The column with each record's own id.  Row numbers, from 0, where it is left out.
    task
        ``classification`` takes the target's values as class names.

    Raises
    ------
    InputError
        With the column and the row, where a value is missing or not a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("person,age,height,weight\\nann,31,1.7,65\\nbob,45,1.8,80\\n")
    ...     people = io.read_dataset(file, target="weight", id_column="person")
    >>> people.record_ids, people.feature_names, people.target.tolist()
    (('ann', 'bob'), ('age', 'height'), [65.0, 80.0])
    """
    path = Path(path)
    table = read_table(path)
    columns = [str(name) for name in table.columns]
    id_name = _id_name(columns, id_column, path)
    target_name = _target_name(columns, target, path)
    if target_name == id_name:
        raise InputError(f"{path}: column {target_name!r} cannot be both the target and the id.")
    feature_names = tuple(name for name in columns if name not in (id_name, target_name))
    if not feature_names:
        raise InputError(f"{path}: no feature is left beside the target {target_name!r}.")
    features = np.column_stack([_numbers(table[name], name, path) for name in feature_names])
    steps = [f"read {len(table)} records of {len(feature_names)} features from {path.name}"]
    steps.append(f"target: column {target_name}")
    if id_name is None:
        ids: tuple[RecordId, ...] = tuple(range(len(table)))
        steps.append("record_id: row numbers, starting at 0")
    else:
        ids = _ids(table[id_name], id_name, path)
        steps.append(f"record_id: column {id_name}")
    values = _target(table[target_name], target_name, task, path)
    return Dataset(
        name=path.stem,
        features=features,
        target=values,
        record_ids=ids,
        feature_names=feature_names,
        target_name=target_name,
        task=task,
        steps=tuple(steps),
        source=Source(
            file=str(path.resolve()),
            example=None,
            target=target,
            id_column=id_column,
            task=task,
            digest=digest(features, values),
        ),
    )


def read_again(source: Source, file: str | Path | None = None) -> Dataset:
    """The dataset that a source names, from another file where one is given; the same, or refused.

    Examples
    --------
    >>> from leakscope import io
    >>> wine = io.read_example("wine")
    >>> io.read_again(wine.source).name
    'wine'
    """
    if source.example is not None and file is None:
        from leakscope.io.examples import read_example

        found = read_example(source.example)
    else:
        place = file or source.file
        if place is None:
            raise InputError("the result does not say where its data are; name the file.")
        found = read_dataset(
            place, target=source.target, id_column=source.id_column, task=source.task
        )
    assert found.source is not None
    if found.source.digest != source.digest:
        raise InputError(
            f"{file or source.file or source.example} does not hold the data that the result is "
            "about; they have changed since."
        )
    return found


def digest(features: NDArray[np.float64], target: NDArray[Any]) -> str:
    """SHA-256 of the numbers and of the target's values as text."""
    found = hashlib.sha256(np.ascontiguousarray(features).tobytes())
    found.update("\0".join(str(value) for value in target.tolist()).encode())
    return found.hexdigest()


def _target_name(columns: list[str], target: str | None, path: Path) -> str:
    if target is None:
        if path.suffix.lower() == ".npz" and UNNAMED_TARGET in columns:
            return UNNAMED_TARGET
        raise InputError(
            f"{path}: which column is the target?  Name it with --target; the columns are "
            f"{_listed(columns)}."
        )
    return _column_name(columns, target, "target", path)


def _id_name(columns: list[str], id_column: str | None, path: Path) -> str | None:
    if id_column is None:
        has_own = path.suffix.lower() == ".npz" and UNNAMED_ID in columns
        return UNNAMED_ID if has_own else None
    return _column_name(columns, id_column, "id", path)


def _column_name(columns: list[str], wanted: str, role: str, path: Path) -> str:
    if wanted in columns:
        return wanted
    try:
        return columns[int(wanted)]
    except (ValueError, IndexError):
        raise InputError(
            f"{path} has no column {wanted!r} for the {role}; the columns are {_listed(columns)}."
        ) from None


def _listed(columns: list[str], most: int = 12) -> str:
    shown = ", ".join(columns[:most])
    return shown if len(columns) <= most else f"{shown} and {len(columns) - most} more"


def _numbers(column: pd.Series[Any], name: str, path: Path) -> NDArray[np.float64]:
    """A column as float64, or a sentence that names the first value that is not a number."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"{path}: column {name!r} is empty in row {int(np.argmax(missing))} (rows count "
            "from 0); fill in or drop such records first."
        )
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if np.iscomplexobj(column.to_numpy()):
        raise InputError(f"{path}: column {name!r} holds complex numbers.")
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{path}: column {name!r} holds {_shown(column.iloc[row])} in row {row} (rows count "
            "from 0), which is not a finite number; encode such columns as numbers first."
        )
    return numbers


def _target(column: pd.Series[Any], name: str, task: Task, path: Path) -> NDArray[Any]:
    if task == "regression":
        is_text = not pd.api.types.is_numeric_dtype(column)
        try:
            return _numbers(column, name, path)
        except InputError as error:
            if not is_text or column.isna().any():
                raise
            raise InputError(
                f"{str(error).split(', which')[0]}, which is not a number; for a target of "
                "classes give --task classification."
            ) from None
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise InputError(
            f"{path}: column {name!r} is empty in row {row} (rows count from 0); every record "
            "needs a class."
        )
    return np.asarray(column.to_numpy())


def _ids(column: pd.Series[Any], name: str, path: Path) -> tuple[RecordId, ...]:
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise InputError(f"{path}: the id column {name!r} is empty in row {row}.")
    integral = pd.api.types.is_integer_dtype(column)
    ids: list[RecordId] = [int(v) if integral else str(v) for v in column]
    return require_distinct_ids(ids, f"{path}: the id column {name!r}")


def require_distinct_ids(ids: list[RecordId], what: str) -> tuple[RecordId, ...]:
    """The ids as a tuple, or a sentence that names the first one that stands twice."""
    first_row: dict[RecordId, int] = {}
    for row, value in enumerate(ids):
        if value in first_row:
            raise InputError(
                f"{what} holds {_shown(value)} twice, in rows {first_row[value]} and {row} (rows "
                "count from 0); ids must be distinct."
            )
        first_row[value] = row
    return tuple(ids)


def _shown(value: object, most: int = 40) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= most else f"{text[:most]}…"
