"""From a table to a dataset: which column is what, and what was done to each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.columns import (
    Roles,
    column_name,
    listed,
    numbers,
    refuse_written_numbers,
    require_present,
)
from leakscope.data.datasets import (
    Dataset,
    RecordId,
    Source,
    Task,
    digest,
    require_distinct_ids,
    subgroups,
)
from leakscope.data.delimited import emptied, refuse_marks
from leakscope.data.preparation import MOST_CLASSES, encode, without_empty
from leakscope.data.regular_files import is_folder
from leakscope.data.tables import table_from_frame
from leakscope.data.written_numbers import written_numbers
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS, Missing


def from_frame(
    frame: Any,
    *,
    target: str,
    id_column: str | None = None,
    task: Task | None = None,
    missing: Missing = DATA_DEFAULTS.missing,
    ignore: Sequence[str] = (),
    group_column: str | None = None,
    by: str | Sequence[str] = (),
    na_values: Sequence[str] = DATA_DEFAULTS.na_values,
    name: str = "frame",
) -> Dataset:
    """A pandas, polars or Arrow table in memory as a dataset; the rest as in ``read_dataset``.

    Where there is no id column, a pandas frame's index is the id unless it merely counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope import data
    >>> frame = pd.DataFrame({"age": [31, 45, 28], "smokes": [True, False, True],
    ...                       "region": ["north", "south", "north"], "cost": [1.0, 3.0, 1.5]})
    >>> people = data.from_frame(frame, target="cost")
    >>> people.feature_names
    ('age', 'smokes', 'region=north', 'region=south')
    >>> print(people.steps[-1])
    categories one-hot encoded as 2 features of 0 and 1, which are not scaled (scikit-learn
    OneHotEncoder): region
    """
    table, index = table_from_frame(frame)
    table = emptied(table, na_values)
    by = (by,) if isinstance(by, str) else tuple(by)
    columns = [str(column) for column in table.columns]
    where = "the frame"
    roles = roles_of(columns, where, target, id_column, group_column, by, ignore)
    return dataset_of(
        table,
        roles,
        Reading(
            where=where,
            name=name,
            read_from="a frame in memory",
            task=task or usual_task(table[roles.target]),
            missing=missing,
            source=None,
            index=index,
            na_values=tuple(na_values),
        ),
    )


def roles_of(
    columns: list[str],
    where: str,
    target: str,
    id_column: str | None,
    group_column: str | None,
    by: tuple[str, ...],
    ignore: Sequence[str],
) -> Roles:
    """Which column is what, by names or positions."""

    def found(wanted: str | None, role: str) -> str | None:
        return None if wanted is None else column_name(columns, wanted, role, where)

    roles = Roles(
        target=column_name(columns, target, "target", where),
        id=found(id_column, "id"),
        group=found(group_column, "group"),
        by=tuple(dict.fromkeys(column_name(columns, name, "subgroups", where) for name in by)),
        ignored=tuple(column_name(columns, name, "list to ignore", where) for name in ignore),
    )
    for other, role in ((roles.id, "the id"), (roles.group, "the group")):
        if roles.target == other:
            raise InputError(f"{where}: column {other!r} cannot be both the target and {role}.")
    if roles.target in roles.ignored:
        raise InputError(f"{where}: column {roles.target!r} is the target and cannot be ignored.")
    if not roles.features(columns):
        raise InputError(f"{where}: no feature is left beside the target {roles.target!r}.")
    return roles


def usual_task(target: pd.Series[Any]) -> Task:
    """What a target asks for where nobody says: text of a few kinds, no quantities, is classes."""
    # Lists have no kinds, and numbers of the other order of bytes cannot be looked through.
    if pd.api.types.infer_dtype(target, skipna=True) not in ("string", "categorical"):
        return "regression"
    kinds = target.dropna().unique()
    if not 2 <= len(kinds) <= MOST_CLASSES or not all(isinstance(kind, str) for kind in kinds):
        return "regression"
    no_number = pd.to_numeric(pd.Series(kinds), errors="coerce").isna().all()
    names = no_number and written_numbers([str(kind) for kind in kinds]) is None
    return "classification" if names and 2 * len(kinds) <= len(target) else "regression"


@dataclass(frozen=True)
class Reading:
    """Where a table came from, and how it is to be read; labels as a text file has them."""

    where: str
    name: str
    read_from: str
    task: Task
    missing: Missing
    source: Source | None
    index: pd.Index[Any] | None = None
    picture: tuple[int, ...] | None = None
    steps: Sequence[str] = ()
    written: Mapping[str, pd.Series[Any]] = field(default_factory=dict)
    na_values: tuple[str, ...] = ()


def dataset_of(table: pd.DataFrame, roles: Roles, reading: Reading) -> Dataset:
    """The dataset: records without empty values, encoded features, a target, ids."""
    where, missing, source, index = reading.where, reading.missing, reading.source, reading.index
    picture = reading.picture
    names = roles.features([str(column) for column in table.columns])
    read = f"read {len(table)} records of {len(names)} features from {reading.read_from}"
    steps = [read, *reading.steps]
    if reading.na_values:
        steps.append(f"read as empty: {listed([repr(text) for text in reading.na_values])}")
    else:
        refuse_marks(table, [*names, roles.target], where)
    if roles.ignored:
        steps.append(f"ignored: {listed(roles.ignored)}")
    if missing == "drop":
        table, step = without_empty(table, [*names, roles.target], where)
        steps.extend([step] if step else [])

    def labelled(name: str) -> pd.Series[Any]:
        own = reading.written.get(name)
        return table[name] if own is None else own.loc[table.index]

    steps.append(f"target: column {roles.target}")
    if roles.id is not None:
        ids = _ids(labelled(roles.id), roles.id, where)
        steps.append(f"record_id: column {roles.id}")
    elif index is not None:
        ids = _ids(pd.Series(index.to_numpy())[table.index], str(index.name or "index"), where)
        steps.append("record_id: the frame's index")
    else:
        ids = tuple(int(row) for row in table.index)
        steps.append("record_id: row numbers, starting at 0")
    target = _target(labelled(roles.target), roles.target, reading.task, where)
    encoded = encode(table, names, where, missing=missing)
    steps.extend(encoded.steps)
    group = None
    if roles.group is not None:
        require_present(table[roles.group], roles.group, where, "every record needs its group")
        group = _labels(labelled(roles.group), roles.group, where)
        steps.append(f"group: column {roles.group}, {len(set(group))} of them; not a feature")
    if source is not None:
        # The values of a folder's Arrow files are exact, and other splits lie beside them.
        file = None if source.file is None or is_folder(Path(source.file)) else source.file
        source = replace(source, digest=digest(encoded.features, target, ids, group, file))
    return Dataset(
        name=reading.name,
        features=encoded.features,
        target=target,
        record_ids=ids,
        feature_names=encoded.names,
        target_name=roles.target,
        task=reading.task,
        steps=tuple(steps),
        source=source,
        indicators=encoded.indicators,
        group=group,
        by={name: subgroups(labelled(name)) for name in roles.by},
        picture=picture if picture and math.prod(picture) == encoded.features.shape[1] else None,
    )


def required_target(target: str | None, columns: list[str], where: str) -> str:
    """The target's name, which only an archive can do without."""
    if target is None:
        raise InputError(
            f"{where}: which column is the target?  Name it with --target; the columns are "
            f"{listed(columns)}."
        )
    return target


def _target(column: pd.Series[Any], name: str, task: Task, where: str) -> NDArray[Any]:
    require_present(column, name, where, "every record needs a target; give --missing drop")
    if task == "classification":
        return np.asarray(column.to_numpy())
    is_text = not pd.api.types.is_numeric_dtype(column)
    try:
        return numbers(column, name, where)
    except InputError as error:
        if not is_text or ", which" not in str(error):
            raise
        refuse_written_numbers(column, name, where)
        raise InputError(
            f"{str(error).split(', which')[0]}, which is not a number; for a target of "
            "classes give --task classification."
        ) from None


def _ids(column: pd.Series[Any], name: str, where: str) -> tuple[RecordId, ...]:
    require_present(column, name, where, "every record needs its id")
    return require_distinct_ids(
        list(_labels(column, name, where)),
        f"{where}: the id column {name!r}",
        [int(row) for row in column.index],
    )


def _labels(column: pd.Series[Any], name: str, where: str) -> tuple[RecordId, ...]:
    if any(isinstance(value, (list, dict)) for value in column):
        raise InputError(f"{where}: column {name!r} holds lists or tables, which name nothing.")
    integral = pd.api.types.is_integer_dtype(column) and column.max() < 2**63
    return tuple(int(value) if integral else str(value) for value in column)
