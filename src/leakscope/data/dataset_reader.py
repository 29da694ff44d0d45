"""From a file, or a table in memory, to a dataset: which column is what, and what was done."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.arrow_tables import INDEX
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
    many_numbers,
    require_distinct_ids,
    subgroups,
)
from leakscope.data.delimited import Layout, emptied, refuse_marks, written_labels
from leakscope.data.hugging_face import is_hugging_face, open_hugging_face, read_columns
from leakscope.data.image_folder import read_image_folder
from leakscope.data.preparation import encode, without_empty
from leakscope.data.regular_files import is_folder
from leakscope.data.sampling import sampled
from leakscope.data.tables import (
    PICTURE,
    UNNAMED_ID,
    UNNAMED_TARGET,
    read_table,
    table_from_frame,
)
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS, Decimal, Missing

# The options of a table that is written as text.
_OF_TEXT = "--no-header, --na-values and --decimal"


def read_dataset(
    path: str | Path,
    *,
    target: str | None = None,
    id_column: str | None = None,
    task: Task | None = None,
    missing: Missing = DATA_DEFAULTS.missing,
    ignore: Sequence[str] = (),
    group_column: str | None = None,
    by: str | Sequence[str] = (),
    split: str | None = None,
    header: bool = DATA_DEFAULTS.header,
    na_values: Sequence[str] = DATA_DEFAULTS.na_values,
    decimal: Decimal = DATA_DEFAULTS.decimal,
    sample: int | None = DATA_DEFAULTS.sample,
    sample_seed: int = DATA_DEFAULTS.sample_seed,
) -> Dataset:
    """Read a file; every column that is not the target, the id or the group is a feature.

    Numbers stay numbers, booleans become 0 and 1, categories are one-hot encoded, and each step
    is told in ``steps``.

    Parameters
    ----------
    path
        CSV, TSV, Parquet, Arrow, .npy or .npz; its suffix says what it is.  A folder is a
        Hugging Face dataset on disk (``save_to_disk``), or pictures for
        :func:`read_image_folder`.
    target
        The target column's name, or its position (``0`` is the first, ``-1`` the last).  An
        .npz archive that holds ``y`` needs none.
    id_column
        The column with each record's own id.  Row numbers, from 0, where it is left out.
    task
        ``classification`` takes the target's values as class names.  Where left out it is
        regression, but classification for a Hugging Face ``ClassLabel``.
    missing
        ``error`` refuses an empty value; ``drop`` leaves out the records that have one (the
        others keep their ids); ``impute`` fills in a feature's median or most frequent value,
        never the target.
    ignore
        Columns that are not features.
    group_column
        The column with the unit that leaves as a whole, such as the person; never a feature.
    by
        A column of subgroups, or several; each is a feature as well, unless it is ignored.
    split
        Which split of a Hugging Face dataset; needed where it has several.
    header
        Whether the first line of a text file names the columns; ``x0``, ``x1`` and so on are the
        names where it does not.
    na_values
        Texts that mean empty, such as ``?``, beside nothing at all and ``NA``.  A sign such as
        ``?`` is refused while none is given: it is neither a number nor a category.
    decimal
        The decimal sign of a text file, ``.`` or ``,``.
    sample, sample_seed
        Draw so many records at random, in which the classes, or the tenths of a target of numbers,
        have the share that they have in all; of groups, so many that about as many records come.

    Raises
    ------
    InputError
        With the column and the row, where a value cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("person,age,height,weight\\nann,31,1.7,65\\nbob,45,1.8,80\\n")
    ...     people = data.read_dataset(file, target="weight", id_column="person")
    >>> people.record_ids, people.feature_names, people.target.tolist()
    (('ann', 'bob'), ('age', 'height'), [65.0, 80.0])
    """
    path = Path(path)
    by = (by,) if isinstance(by, str) else tuple(by)
    layout = Layout(header, tuple(na_values), decimal)
    source = Source(
        file=os.path.realpath(path),
        example=None,
        target=target,
        id_column=id_column,
        task=task or "regression",
        digest="",
        group_column=group_column,
        ignore=tuple(ignore),
        missing=missing,
        split=split,
        **vars(layout),
    )
    found = _read(path, source, task, by, layout)
    return found if sample is None else sampled(found, sample, seed=sample_seed)


def _read(
    path: Path, source: Source, task: Task | None, by: tuple[str, ...], layout: Layout
) -> Dataset:
    """All records of a file or a folder, as the source says."""
    target, id_column, group_column = source.target, source.id_column, source.group_column
    ignore, missing, split = source.ignore, source.missing, source.split
    if is_folder(path) and is_hugging_face(path):
        if layout != Layout():
            raise InputError(f"{path}: {_OF_TEXT} belong to a file, not to a folder.")
        return _from_hugging_face(path, source, task, by)
    if split is not None:
        raise InputError(f"{path} is no Hugging Face dataset and has no splits; leave --split out.")
    if is_folder(path):
        columns_named = target is not None or id_column or ignore or group_column or by
        if columns_named or missing != "error" or layout != Layout():
            raise InputError(
                f"{path} is a folder; the options of a table's columns belong to a file, and a "
                "folder of pictures has none."
            )
        return read_image_folder(path)
    table = read_table(path, layout)
    columns = [str(name) for name in table.columns]
    is_archive = path.suffix.lower() == ".npz"
    if target is None and is_archive and UNNAMED_TARGET in columns:
        target_given = UNNAMED_TARGET
    else:
        target_given = _required(target, columns, str(path))
    id_given = UNNAMED_ID if id_column is None and is_archive and UNNAMED_ID in columns else None
    # What pandas wrote as an index names the records, and is never a feature.
    index = [name for name in table.attrs.get(INDEX, ()) if name not in (target_given, *by)]
    if id_column is None and len(index) == 1 and bool(table[index[0]].is_unique):
        id_given = index[0]
    roles = _roles(
        columns,
        str(path),
        target_given,
        id_column or id_given,
        group_column,
        by,
        [*ignore, *(name for name in index if name not in (id_given, id_column, group_column))],
    )
    labels = {roles.id, roles.group}
    labels |= {roles.target} if source.task == "classification" else set()
    labels |= {name for name in roles.by if not many_numbers(table[name])}
    return _dataset(
        table,
        roles,
        _Reading(
            where=str(path),
            name=path.stem,
            read_from=path.name,
            task=source.task,
            missing=missing,
            source=source,
            picture=table.attrs.get(PICTURE),
            written=written_labels(
                table, path, sorted(name for name in labels if name is not None), layout
            ),
            na_values=layout.na_values,
        ),
    )


def _from_hugging_face(
    path: Path, source: Source, task: Task | None, by: tuple[str, ...]
) -> Dataset:
    """One split of a folder that ``save_to_disk`` wrote."""
    folder = open_hugging_face(path, source.split)
    columns, where = folder.columns, folder.where
    roles = _roles(
        columns,
        where,
        _required(source.target, columns, where),
        source.id_column,
        source.group_column,
        by,
        source.ignore,
    )
    task = task or ("classification" if folder.is_class(roles.target) else "regression")
    # Subgroups and groups may be ignored as features and are read all the same.
    unread = frozenset(roles.ignored) - {*roles.by, roles.group, roles.id}
    read = read_columns(folder, unread)
    return _dataset(
        read.frame,
        roles,
        _Reading(
            where=where,
            name=folder.name,
            read_from=folder.name,
            task=task,
            missing=source.missing,
            source=replace(source, task=task, split=folder.split),
            picture=read.picture,
            steps=read.steps,
        ),
    )


def from_frame(
    frame: Any,
    *,
    target: str,
    id_column: str | None = None,
    task: Task = "regression",
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
    roles = _roles(columns, where, target, id_column, group_column, by, ignore)
    return _dataset(
        table,
        roles,
        _Reading(
            where=where,
            name=name,
            read_from="a frame in memory",
            task=task,
            missing=missing,
            source=None,
            index=index,
            na_values=tuple(na_values),
        ),
    )


def _roles(
    columns: list[str],
    where: str,
    target: str,
    id_column: str | None,
    group_column: str | None,
    by: tuple[str, ...],
    ignore: Sequence[str],
) -> Roles:
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


@dataclass(frozen=True)
class _Reading:
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


def _dataset(table: pd.DataFrame, roles: Roles, reading: _Reading) -> Dataset:
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
        group_name=roles.group,
        by={name: subgroups(labelled(name)) for name in roles.by},
        picture=picture if picture and math.prod(picture) == encoded.features.shape[1] else None,
    )


def _required(target: str | None, columns: list[str], where: str) -> str:
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
