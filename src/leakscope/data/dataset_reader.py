"""From a file or a folder to a dataset: which reader belongs to it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leakscope.data.arrow_tables import INDEX
from leakscope.data.datasets import Dataset, Source, Task, many_numbers
from leakscope.data.delimited import Layout, written_labels
from leakscope.data.hugging_face import is_hugging_face, open_hugging_face, read_columns
from leakscope.data.image_folder import read_image_folder
from leakscope.data.regular_files import is_folder
from leakscope.data.sacro_target import is_sacro_target, read_sacro_target
from leakscope.data.sampling import sampled
from leakscope.data.table_datasets import (
    Reading,
    dataset_of,
    required_target,
    roles_of,
    usual_task,
)
from leakscope.data.tables import PICTURE, UNNAMED_ID, UNNAMED_TARGET, read_table
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
        :func:`read_image_folder`, or the folder of a SACRO-ML target (its training records).
    target
        The target column's name, or its position (``0`` is the first, ``-1`` the last).  An
        .npz archive that holds ``y`` needs none.
    id_column
        The column with each record's own id.  Row numbers, from 0, where it is left out.
    task
        ``classification`` takes the target's values as class names.  Where left out it is
        regression, but classification for text and for a Hugging Face ``ClassLabel``.
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
    is_target = is_folder(path) and is_sacro_target(path)
    if is_folder(path) and not is_target:
        columns_named = target is not None or id_column or ignore or group_column or by
        if columns_named or missing != "error" or layout != Layout():
            raise InputError(
                f"{path} is a folder; the options of a table's columns belong to a file, and a "
                "folder of pictures has none."
            )
        return read_image_folder(path)
    table = read_sacro_target(path) if is_target else read_table(path, layout)
    columns = [str(name) for name in table.columns]
    is_archive = is_target or path.suffix.lower() == ".npz"
    if target is None and is_archive and UNNAMED_TARGET in columns:
        target_given = UNNAMED_TARGET
    else:
        target_given = required_target(target, columns, str(path))
    id_given = UNNAMED_ID if id_column is None and is_archive and UNNAMED_ID in columns else None
    # What pandas wrote as an index names the records, and is never a feature.
    index = [name for name in table.attrs.get(INDEX, ()) if name not in (target_given, *by)]
    if id_column is None and len(index) == 1 and bool(table[index[0]].is_unique):
        id_given = index[0]
    roles = roles_of(
        columns,
        str(path),
        target_given,
        id_column or id_given,
        group_column,
        by,
        [*ignore, *(name for name in index if name not in (id_given, id_column, group_column))],
    )
    if task is None:
        source = replace(source, task=usual_task(table[roles.target]))
    labels = {roles.id, roles.group}
    labels |= {roles.target} if source.task == "classification" else set()
    labels |= {name for name in roles.by if not many_numbers(table[name])}
    return dataset_of(
        table,
        roles,
        Reading(
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
    roles = roles_of(
        columns,
        where,
        required_target(source.target, columns, where),
        source.id_column,
        source.group_column,
        by,
        source.ignore,
    )
    task = task or ("classification" if folder.is_class(roles.target) else "regression")
    # Subgroups and groups may be ignored as features and are read all the same.
    unread = frozenset(roles.ignored) - {*roles.by, roles.group, roles.id}
    read = read_columns(folder, unread)
    return dataset_of(
        read.frame,
        roles,
        Reading(
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
