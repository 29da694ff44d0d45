"""Where a dataset comes from and how it is read: a file, a folder or an example, and its options.

Which reader belongs to it, the dataset itself, and the same dataset again for a result that is
about it, or refused where it has changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leakscope.data.columns import column_name, listed
from leakscope.data.datasets import (
    Dataset,
    RecordId,
    Task,
    digest,
    many_numbers,
    same_data,
    sampled,
    subgroups,
)
from leakscope.data.doubts import two_classes
from leakscope.data.files import is_folder
from leakscope.data.parquet import INDEX
from leakscope.data.pictures import open_image_folder
from leakscope.data.table_datasets import (
    OpenTable,
    id_labels,
    required_target,
    roles_of,
    usual_task,
)
from leakscope.data.tables import (
    PICTURE,
    UNNAMED_ID,
    UNNAMED_TARGET,
    Layout,
    read_table,
    written_labels,
)
from leakscope.errors import InputError
from leakscope.settings.data import DATA_DEFAULTS, DataSettings, Decimal, Missing

# Real datasets that scikit-learn ships, by name: nothing is downloaded.
EXAMPLES: dict[str, Task] = {
    "diabetes": "regression",
    "breast_cancer": "classification",
    "digits": "classification",
    "iris": "classification",
    "wine": "classification",
}


@dataclass(frozen=True)
class Source:
    """A file, a folder or an example, and how it is read; every other column is a feature.

    Numbers stay numbers, booleans become 0 and 1, categories are one-hot encoded, and each step
    is told in the dataset's ``steps``.

    Attributes
    ----------
    file
        CSV, TSV, Parquet, .npy or .npz; its suffix says what it is.  A folder is of pictures
        (``FOLDER/class/picture.png``).
    example
        One of ``EXAMPLES``, in place of a file; of the options it takes only ``by``, ``sample``
        and ``sample_seed``.
    target
        The target column's name, or its position (``0`` is the first, ``-1`` the last).  An
        .npz archive that holds ``y`` needs none.
    id_column
        The column with each record's own id.  Row numbers, from 0, where it is left out.
    task
        ``classification`` takes the target's values as class names.  Where left out it is
        regression, but classification for text.
    digest
        Of the features, the target, the ids and the groups, and of the file, once it was read:
        the same data, or not; see :func:`leakscope.data.same_data`.
    group_column
        The column with the unit that leaves as a whole, such as the person; never a feature.
    ignore
        Columns that are not features.
    missing
        ``error`` refuses an empty value; ``drop`` leaves out the records that have one (the
        others keep their ids); ``impute`` fills in a feature's median or most frequent value,
        never the target.
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
    by
        Columns of subgroups; each is a feature as well, unless it is ignored.  Results do not
        keep them.
    """

    file: str | None = None
    example: str | None = None
    target: str | None = None
    id_column: str | None = None
    task: Task | None = None
    digest: str = ""
    group_column: str | None = None
    ignore: tuple[str, ...] = ()
    missing: Missing = DATA_DEFAULTS.missing
    header: bool = DATA_DEFAULTS.header
    na_values: tuple[str, ...] = DATA_DEFAULTS.na_values
    decimal: Decimal = DATA_DEFAULTS.decimal
    sample: int | None = DATA_DEFAULTS.sample
    sample_seed: int = DATA_DEFAULTS.sample_seed
    by: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, settings: DataSettings, *, file: str | Path | None = None, example: str | None = None
    ) -> Source:
        """A file or an example with the options that settings hold."""
        return cls(file=None if file is None else str(file), example=example, **dict(settings))

    @property
    def layout(self) -> Layout:
        """How a table is written."""
        return Layout(self.header, self.na_values, self.decimal)

    def read(self, *, two_values_are_classes: bool = False, keep: tuple[str, ...] = ()) -> Dataset:
        """The dataset, whose ``source`` is this one with the digest, and the task that was taken.

        ``two_values_are_classes`` takes a target of two whole numbers, such as 0 and 1, for
        classes where no task is said.  A sample holds the records whose ids are in ``keep``.

        Raises
        ------
        InputError
            With the column and the row, where a value cannot be used.
        """
        if self.example is not None:
            whole = _example(self.example, self.by)
            return self._drawn(whole, Source(example=self.example, by=self.by), None, keep)
        if self.file is None:
            raise InputError("a dataset needs a file or an example, and there is neither.")
        path, place = Path(self.file), os.path.realpath(self.file)
        opened = self._opened(path)
        if isinstance(opened, Dataset):
            return self._drawn(opened, Source(file=place), place, keep)
        whole = opened.dataset()
        if two_values_are_classes and self.task is None:
            drawn = whole
            if self.sample is not None:
                drawn = sampled(whole, self.sample, seed=self.sample_seed)
            if two_classes(drawn):
                names = [opened.roles.target]
                written = written_labels(opened.table, path, names, self.layout)
                whole = opened.as_classes(whole, written)
        return self._drawn(whole, replace(self, file=place), place, keep)

    def read_again(self, file: str | Path | None = None) -> Dataset:
        """The dataset that a result is about, from another file where one is given.

        Raises
        ------
        InputError
            Where the data have changed since.
        """
        source = replace(self, by=())
        if file is not None:
            source = replace(source, file=str(file), example=None)
        if source.file is None and source.example is None:
            raise InputError("the result does not say where its data are; name the file.")
        found = source.read()
        assert found.source is not None
        if not same_data(found.source.digest, self.digest):
            raise InputError(
                f"{source.file or source.example} does not hold the data that the result is about; "
                "they have changed since."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """As a result keeps it: all but the subgroups."""
        return {name: value for name, value in asdict(self).items() if name != "by"}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Source:
        """The source that a result keeps, whose lists may be JSON's."""
        lists = {name: tuple(kept[name]) for name in ("ignore", "na_values") if name in kept}
        return cls(**{**kept, **lists})

    def _drawn(
        self, whole: Dataset, told: Source, held: str | None, keep: tuple[str, ...]
    ) -> Dataset:
        """All records or the sample, with what is told of where they are from.

        ``held`` is the file or folder whose bytes are part of the digest.
        """
        told = replace(
            told,
            task=whole.task,
            digest=digest(whole.features, whole.target, whole.record_ids, whole.group, held),
            sample=None,
            sample_seed=DATA_DEFAULTS.sample_seed,
        )
        found = replace(whole, source=told)
        if self.sample is None:
            return found
        return sampled(found, self.sample, seed=self.sample_seed, keep=keep)

    def _opened(self, path: Path) -> OpenTable | Dataset:
        """The table of a file or a folder, or the dataset of a folder of pictures."""
        layout = self.layout
        if is_folder(path):
            columns_named = self.target is not None or self.id_column or self.ignore
            columns_named = columns_named or self.group_column or self.by
            if columns_named or self.missing != "error" or layout != Layout():
                raise InputError(
                    f"{path} is a folder; the options of a table's columns belong to a file, and a "
                    "folder of pictures has none."
                )
            return open_image_folder(path)
        table = read_table(path, layout)
        columns = [str(name) for name in table.columns]
        is_archive = path.suffix.lower() == ".npz"
        if self.target is None and is_archive and UNNAMED_TARGET in columns:
            target = UNNAMED_TARGET
        else:
            target = required_target(self.target, columns, str(path))
        id_column = self.id_column
        if id_column is None and is_archive and UNNAMED_ID in columns:
            id_column = UNNAMED_ID
        # What pandas wrote as an index names the records, and is never a feature.
        index = [name for name in table.attrs.get(INDEX, ()) if name not in (target, *self.by)]
        if self.id_column is None and len(index) == 1 and bool(table[index[0]].is_unique):
            id_column = index[0]
        unused = [name for name in index if name not in (id_column, self.group_column)]
        roles = roles_of(
            columns,
            str(path),
            target,
            id_column,
            self.group_column,
            self.by,
            [*self.ignore, *unused],
        )
        task = self.task or usual_task(table[roles.target])
        labels = {roles.id, roles.group}
        labels |= {name for name in roles.by if not many_numbers(table[name])}
        labels |= {roles.target} if task == "classification" else set()
        return OpenTable(
            table=table,
            roles=roles,
            where=str(path),
            name=path.stem,
            read_from=path.name,
            task=task,
            missing=self.missing,
            picture=table.attrs.get(PICTURE),
            written=written_labels(
                table, path, sorted(name for name in labels if name is not None), layout
            ),
            na_values=layout.na_values,
        )


def _example(name: str, by: Sequence[str]) -> Dataset:
    """One of scikit-learn's own datasets; ``record_ids`` are row numbers, starting at 0."""
    if name not in EXAMPLES:
        raise InputError(f"There is no example {name!r}; there are {', '.join(EXAMPLES)}.")
    from sklearn import datasets

    loader: Any = getattr(datasets, f"load_{name}")
    # scikit-learn's own scaling of diabetes is undone, so that the steps below tell all of it.
    bunch = loader(scaled=False) if name == "diabetes" else loader()
    features = np.asarray(bunch.data, dtype=np.float64)
    target = np.asarray(bunch.target)
    names = [str(feature) for feature in bunch.feature_names]
    chosen = [column_name([*names, "target"], one, "subgroups", name) for one in by]
    return Dataset(
        name=name,
        features=features,
        target=target,
        record_ids=tuple(range(len(features))),
        feature_names=tuple(names),
        columns=tuple(names),
        target_name="target",
        task=EXAMPLES[name],
        steps=(
            f"read {features.shape[0]} records of {features.shape[1]} features from "
            f"scikit-learn's {name}",
            "record_id: row numbers, starting at 0",
        ),
        by={
            one: subgroups(pd.Series(target if one == "target" else features[:, names.index(one)]))
            for one in chosen
        },
    )


def read_dataset(path: str | Path, **options: Any) -> Dataset:
    """Read a file or a folder; the options are those of :class:`leakscope.data.Source`.

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
    for name in ("ignore", "na_values", "by"):
        given = options.get(name, ())
        options[name] = (given,) if isinstance(given, str) else tuple(given)
    return Source(file=str(path), **options).read()


def read_example(
    name: str,
    *,
    by: str | Sequence[str] = (),
    sample: int | None = DATA_DEFAULTS.sample,
    sample_seed: int = DATA_DEFAULTS.sample_seed,
) -> Dataset:
    """One of scikit-learn's own datasets; ``record_ids`` are row numbers, starting at 0.

    ``by`` names features, or ``target``, to take subgroups from.

    Examples
    --------
    >>> from leakscope import data
    >>> data.read_example("wine").task
    'classification'
    >>> sorted(data.EXAMPLES)
    ['breast_cancer', 'diabetes', 'digits', 'iris', 'wine']
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    return Source(example=name, by=by, sample=sample, sample_seed=sample_seed).read()


def _rows_left(table: pd.DataFrame, source: Source, ids: Sequence[RecordId]) -> list[int]:
    """The rows of the table that became records."""
    name = source.id_column
    if name is None:
        return [int(row) for row in ids]
    own = column_name([str(column) for column in table.columns], name, "id", source.file or "")
    empty = table[own].isna().to_numpy()
    written = written_labels(table, Path(source.file or ""), [own], source.layout)
    labels = id_labels(written.get(own, table[own])[~empty], own, source.file or "").names
    rows = dict(zip(labels, np.flatnonzero(~empty).tolist(), strict=True))
    return [rows[record] for record in ids]


def raw_features(dataset: Dataset, names: Sequence[str]) -> pd.DataFrame:
    """The named columns of a dataset's table before any encoding, one row per record."""
    if set(names) <= set(dataset.feature_names):
        return pd.DataFrame(dataset.features, columns=list(dataset.feature_names))[list(names)]
    source = dataset.source
    if source is None or source.file is None or Path(source.file).is_dir():
        own = dataset.table()
        columns = list(dataset.feature_names) if own is None else [str(c) for c in own.columns]
        if own is not None and set(names) <= set(columns):
            return own[list(names)]
    else:
        table = read_table(Path(source.file), source.layout)
        if len(table) != len(dataset.record_ids):
            # Some were dropped, or not drawn: the ids say which are left.
            table = table.iloc[_rows_left(table, source, dataset.record_ids)]
        columns = [str(name) for name in table.columns]
        if set(names) <= set(columns):
            return table[list(names)]
    missing = [name for name in names if name not in columns]
    raise InputError(
        f"the model was fitted on a column {missing[0]!r}, and the table has {listed(columns)}."
    )
