"""From a table to a dataset: which column is what, and what was done to each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.columns import (
    column_name,
    listed,
    numbers,
    refuse_marks,
    refuse_written_numbers,
    require_present,
    shown,
    written_numbers,
)
from leakscope.data.datasets import (
    MIXED,
    Dataset,
    Names,
    Task,
    names_of,
    require_distinct_ids,
    subgroups,
)
from leakscope.data.doubts import two_classes
from leakscope.data.person_columns import person_columns
from leakscope.data.preparation import MOST_CLASSES, encode, without_empty
from leakscope.data.tables import emptied, table_from_frame
from leakscope.errors import InputError, Where
from leakscope.settings.data import DATA_DEFAULTS, Missing


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
    two_values_are_classes: bool = False,
) -> Dataset:
    """A pandas, polars or Arrow table in memory as a dataset.

    The options are those of :class:`leakscope.data.Source`, and ``two_values_are_classes`` that of
    its ``read``.  Where there is no id column, a pandas frame's index is the id unless it merely
    counts.

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
    opened = OpenTable(
        table=table,
        roles=roles,
        where=where,
        name=name,
        read_from="a frame in memory",
        task=task or usual_task(table[roles.target]),
        missing=missing,
        index=index,
        na_values=tuple(na_values),
    )
    found = opened.dataset()
    if two_values_are_classes and task is None and two_classes(found):
        return opened.as_classes(found, {})
    return found


@dataclass(frozen=True)
class Roles:
    """Which column is what, by name; every other column is a feature.

    The group is never a feature; subgroups (``by``) are, unless they are ignored.
    """

    target: str
    id: str | None = None
    group: str | None = None
    by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def features(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that are features, in their order."""
        used = {self.target, self.id, self.group, *self.ignored}
        return tuple(name for name in columns if name not in used)


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


def required_target(target: str | None, columns: list[str], where: str) -> str:
    """The target's name, which only an archive can do without."""
    if target is None:
        raise InputError(
            f"{where}: which column is the target?  Name it with --target; the columns are "
            f"{listed(columns)}.",
            option="target",
        )
    return target


def usual_task(target: pd.Series[Any]) -> Task:
    """What a target asks for where nobody says: text of a few kinds, no quantities, is classes."""
    # Lists have no kinds, and numbers of the other order of bytes cannot be looked through.
    if pd.api.types.infer_dtype(target, skipna=True) not in ("string", "categorical"):
        return "regression"
    kinds = target.dropna().unique()
    if not 2 <= len(kinds) <= MOST_CLASSES or not all(isinstance(kind, str) for kind in kinds):
        return "regression"
    no_number = pd.to_numeric(pd.Series(kinds), errors="coerce").isna().all()
    names = no_number and not written_numbers(kinds.tolist())
    return "classification" if names and 2 * len(kinds) <= len(target) else "regression"


@dataclass(frozen=True)
class OpenTable:
    """A table that has been read, which column is what, and how it is told of.

    Attributes
    ----------
    where, name, read_from
        What sentences, the dataset and its first step call it.
    task
        Whether the target is a quantity or a class, said or usual.
    index
        A frame's index, where it is the id.
    written
        Labels as a text file has them.
    """

    table: pd.DataFrame
    roles: Roles
    where: str
    name: str
    read_from: str
    task: Task
    missing: Missing
    index: pd.Index[Any] | None = None
    picture: tuple[int, ...] | None = None
    written: Mapping[str, pd.Series[Any]] = field(default_factory=dict)
    na_values: tuple[str, ...] = ()

    def dataset(self) -> Dataset:
        """The dataset: records without empty values, encoded features, a target, ids."""
        where, roles, picture = self.where, self.roles, self.picture
        names = roles.features([str(column) for column in self.table.columns])
        read = f"read {len(self.table)} records of {len(names)} features from {self.read_from}"
        steps = [read]
        if self.na_values:
            steps.append(f"read as empty: {listed([repr(text) for text in self.na_values])}")
        else:
            refuse_marks(self.table, [*names, roles.target], where)
        if roles.ignored:
            steps.append(f"ignored: {listed(roles.ignored)}")
        table, step = self._kept()
        steps.extend([step] if step else [])
        steps.append(f"target: column {roles.target}")
        if roles.id is not None:
            ids = _ids(self._labelled(table, roles.id), roles.id, where)
            steps.append(f"record_id: column {roles.id}{_said(ids)}")
        elif self.index is not None:
            own = pd.Series(self.index.to_numpy())[table.index]
            ids = _ids(own, str("index" if self.index.name is None else self.index.name), where)
            steps.append(f"record_id: the frame's index{_said(ids)}")
        else:
            ids = Names(tuple(int(row) for row in table.index), False)
            steps.append("record_id: row numbers, starting at 0")
        target = self._target(table, self.task)
        encoded = encode(table, names, where, missing=self.missing)
        steps.extend(encoded.steps)
        group = None
        if roles.group is not None:
            require_present(table[roles.group], roles.group, where, "every record needs its group")
            people = id_labels(self._labelled(table, roles.group), roles.group, where)
            group = people.names
            steps.append(
                f"group: column {roles.group}, {len(set(group))} of them; not a feature"
                f"{_said(people)}"
            )
        by_row = group is None or len(set(group)) == len(group)
        ignored = set(roles.ignored) - {roles.id, roles.group}
        return Dataset(
            name=self.name,
            features=encoded.features,
            target=target,
            record_ids=ids.names,
            feature_names=encoded.names,
            target_name=roles.target,
            task=self.task,
            steps=tuple(steps),
            indicators=encoded.indicators,
            columns=encoded.columns,
            group=group,
            by={name: subgroups(self._labelled(table, name)) for name in roles.by},
            person_columns=person_columns(table, [*names, *sorted(ignored)], [*names, roles.target])
            if by_row
            else (),
            picture=picture
            if picture and math.prod(picture) == encoded.features.shape[1]
            else None,
        )

    def as_classes(self, dataset: Dataset, written: Mapping[str, pd.Series[Any]]) -> Dataset:
        """The same dataset with the target's values as class names, as they are written."""
        table = replace(self, written={**self.written, **written})
        target = table._target(table._kept()[0], "classification")
        return replace(dataset, task="classification", target=target)

    def _kept(self) -> tuple[pd.DataFrame, str | None]:
        """The records that are taken, under their own row numbers, and the step in words."""
        if self.missing != "drop":
            return self.table, None
        names = self.roles.features([str(column) for column in self.table.columns])
        return without_empty(self.table, [*names, self.roles.target], self.where)

    def _labelled(self, table: pd.DataFrame, name: str) -> pd.Series[Any]:
        """A column of labels, as it is written where that is known."""
        own = self.written.get(name)
        return table[name] if own is None else own.loc[table.index]

    def _target(self, table: pd.DataFrame, task: Task) -> NDArray[Any]:
        name, where = self.roles.target, self.where
        column = self._labelled(table, name) if task == "classification" else table[name]
        require_present(
            column, name, where, "every record needs a target; give --read missing=drop", "missing"
        )
        if task == "classification":
            return np.asarray(column.to_numpy())
        try:
            return numbers(column, name, where)
        except InputError as error:
            row = None if error.where is None else error.where.row
            if row is None or pd.api.types.is_numeric_dtype(column):
                raise
            refuse_written_numbers(column, name, where)
            raise InputError(
                f"{where}: column {name!r} holds {shown(column[row])} in row {row} (rows count "
                "from 0), which is not a number",
                where=Where(where, name, row),
                remedy="for a target of classes give --task classification",
                option="task",
            ) from None


def _said(names: Names) -> str:
    return f"; {MIXED}" if names.mixed else ""


def _ids(column: pd.Series[Any], name: str, where: str) -> Names:
    require_present(column, name, where, "every record needs its id")
    labels, rows = id_labels(column, name, where), [int(row) for row in column.index]
    try:
        require_distinct_ids(list(labels.names), f"{where}: the id column {name!r}", rows)
        return labels
    except InputError as error:
        raise InputError(
            f"{str(error).removesuffix('.')}; where a person has several records, name the person "
            "with --group instead.",
            option="id_column",
        ) from None


def id_labels(column: pd.Series[Any], name: str, where: str) -> Names:
    """What a column calls its records: all whole numbers, or all text."""
    if any(isinstance(value, (list, dict)) for value in column):
        raise InputError(
            f"{where}: column {name!r} holds lists or tables; an id must be a number or a text."
        )
    return names_of(column)
