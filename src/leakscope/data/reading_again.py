"""The dataset that a result is about, read again, or refused where it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from leakscope.data.columns import listed
from leakscope.data.dataset_reader import read_dataset
from leakscope.data.datasets import Dataset, Source, same_data
from leakscope.data.examples import read_example
from leakscope.data.tables import read_table
from leakscope.errors import InputError


def read_again(source: Source, file: str | Path | None = None) -> Dataset:
    """The dataset that a source names, from another file where one is given; the same, or refused.

    Examples
    --------
    >>> from leakscope import data
    >>> wine = data.read_example("wine")
    >>> data.read_again(wine.source).name
    'wine'
    """
    if source.example is not None and file is None:
        found = read_example(source.example, sample=source.sample, sample_seed=source.sample_seed)
    else:
        place = file or source.file
        if place is None:
            raise InputError("the result does not say where its data are; name the file.")
        found = read_dataset(
            place,
            target=source.target,
            id_column=source.id_column,
            task=source.task,
            missing=source.missing,
            ignore=source.ignore,
            group_column=source.group_column,
            split=source.split,
            header=source.header,
            na_values=source.na_values,
            decimal=source.decimal,
            sample=source.sample,
            sample_seed=source.sample_seed,
        )
    assert found.source is not None
    if not same_data(found.source.digest, source.digest):
        raise InputError(
            f"{file or source.file or source.example} does not hold the data that the result is "
            "about; they have changed since."
        )
    return found


def raw_features(dataset: Dataset, names: Sequence[str]) -> pd.DataFrame:
    """The named columns of a dataset's table before any encoding, one row per record.

    Examples
    --------
    >>> from leakscope import data
    >>> data.raw_features(data.read_example("wine"), ["ash", "alcohol"]).shape
    (178, 2)
    """
    if set(names) <= set(dataset.feature_names):
        return pd.DataFrame(dataset.features, columns=list(dataset.feature_names))[list(names)]
    source = dataset.source
    if source is None or source.file is None or Path(source.file).is_dir():
        columns = list(dataset.feature_names)
    else:
        table = read_table(Path(source.file))
        if len(table) != len(dataset.record_ids):
            if source.id_column is not None:
                raise InputError(
                    f"{source.file} has records that were dropped, and the model takes the table's "
                    "own columns; write the table without them."
                )
            table = table.iloc[[int(row) for row in dataset.record_ids]]
        columns = [str(name) for name in table.columns]
        if set(names) <= set(columns):
            return table[list(names)]
    missing = [name for name in names if name not in columns]
    raise InputError(
        f"the model was fitted on a column {missing[0]!r}, and the table has {listed(columns)}."
    )
