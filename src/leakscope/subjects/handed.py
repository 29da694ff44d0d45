"""The records of a dataset as a model of the user's own takes them, one way after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.datasets import Dataset
from leakscope.data.preparation import prepare
from leakscope.data.sources import raw_features
from leakscope.errors import InputError
from leakscope.settings.audit import Scaling

# What a model hears of its records, in the list of what was done to them.
HANDED = "handed to the training: "
# Names of columns that a sentence lists.
MOST_LISTED = 4


@dataclass(frozen=True, eq=False)
class Handed:
    """The records as a training takes them.

    ``table``: the columns as they stand, under their names, and the target as it is written;
    ``numbers``: an array, categories as columns of 0 and 1, classes as 0, 1 and so on; ``arrays``:
    what a caller in Python gave.
    """

    form: str
    X: Any
    y: NDArray[Any]

    def words(self, dataset: Dataset, scaling: Scaling) -> str:
        """What the training gets, in words."""
        classes = len(np.unique(self.y))
        if self.form == "table":
            names = [str(name) for name in self.X.columns]
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            features = f"columns {', '.join(names[:MOST_LISTED])}{more} as they stand"
            target = f"{classes} classes as written"
        else:
            ones = ", categories as 0 and 1" if dataset.indicators else ""
            how = "standardised, as asked" if scaling == "standard" else "not scaled"
            features = f"an array of {self.X.shape[1]} columns, {how}{ones}"
            target = f"{classes} classes, 0 to {classes - 1}"
        if dataset.task == "regression":
            target = "a quantity, " + ("standardised" if scaling == "standard" else "not scaled")
        return f"{HANDED}{features}; target {dataset.target_name}, {target}"


def forms_of(dataset: Dataset, scaling: Scaling, names: Sequence[str] = ()) -> list[Handed]:
    """The ways in which the records can be handed over, the most natural first.

    ``names`` are the columns that the model was fitted on before, where it says so.
    """
    forms = [_as_numbers(dataset, prepare(dataset, scaling=scaling))]
    table = dataset.table() if scaling == "none" else None
    if table is not None and names:
        known = set(names) <= set(map(str, table.columns))
        table = table[list(names)] if known else raw_features(dataset, names)
    if table is not None:
        forms.insert(0, Handed("table", table, _as_written(dataset)))
    return forms


def _as_numbers(dataset: Dataset, prepared: Dataset) -> Handed:
    """An array, and classes as 0, 1 and so on."""
    y: NDArray[Any] = np.asarray(prepared.target, dtype=np.float64)
    if dataset.task == "classification":
        y = np.unique(dataset.target.astype(str), return_inverse=True)[1].reshape(-1)
    elif y.ndim > 1:
        raise InputError("With a model of your own the target must be one column.")
    return Handed("numbers", prepared.features, y)


def _as_written(dataset: Dataset) -> NDArray[Any]:
    """The target as the file has it: numbers, or the classes' own names."""
    if dataset.task == "regression":
        return np.asarray(dataset.target, dtype=np.float64)
    values = dataset.target.tolist()
    alike = len({type(value) for value in values}) == 1 and isinstance(values[0], (bool, int))
    return np.array(values) if alike else np.array([str(value) for value in values])
