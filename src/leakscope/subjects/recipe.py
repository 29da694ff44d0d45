"""A finished audit's data and settings again: read, and checked by digest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakscope.data.datasets import Dataset
from leakscope.data.files import reason
from leakscope.data.sources import Source
from leakscope.errors import InputError
from leakscope.results.document import DatasetEntry


@contextmanager
def taken_from_result() -> Iterator[None]:
    """What a result's free-form parts hold, taken over; a sentence where it is not what it was."""
    try:
        yield
    except InputError as error:
        raise InputError(f"the result's settings cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else reason(error)
        raise InputError(f"the result's settings cannot be used: {what}.") from error


def data_again(entry: DatasetEntry, data: str | Path | Dataset | None = None) -> Dataset:
    """The data of a result as they were read: from where they were, from a file, or as given."""
    source = entry.source
    if isinstance(data, Dataset):
        if source is not None and data.source is not None and data.source.digest != source.digest:
            raise InputError("these are not the data that the result is about.")
        return data
    if source is None:
        raise InputError("the audit was of arrays in memory, and its result has no data to read.")
    return Source(**source.model_dump()).read_again(data)
