"""The dataset that a result is about, read again, or refused where it has changed."""

from __future__ import annotations

from pathlib import Path

from leakscope.data.dataset_reader import read_dataset
from leakscope.data.datasets import Dataset, Source, same_data
from leakscope.data.examples import read_example
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
        found = read_example(source.example)
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
        )
    assert found.source is not None
    if not same_data(found.source.digest, source.digest):
        raise InputError(
            f"{file or source.file or source.example} does not hold the data that the result is "
            "about; they have changed since."
        )
    return found
