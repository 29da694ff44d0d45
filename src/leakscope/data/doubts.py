"""What a dataset may be hiding: copies of rows, the answer among the features, a count, classes.

Each of these makes an audit reassuring, or meaningless, without an error: a record whose copy stays
gives nothing away when it leaves; a model that is handed the target has nothing to learn; an id
separates every record from every other.  None is wrong for certain, so each is a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset

# A correlation of one, but for rounding.
CERTAIN = 1.0 - 1e-9

# A target of whole numbers of at most this many values, each this often, may be classes; and so may
# be more of them where they count from 0 or 1 without a gap.
MOST_CLASSES = 10
MOST_COUNTED = 100
LEAST_OF_EACH = 3

# Two whole numbers up to here, such as 0 and 1, are taken as classes; larger ones are quantities.
LARGEST_CLASS = 1000

# A count of few records may well be a measurement.
LEAST_COUNTED = 20

# Of the features, this many numbers are compared with the target at once.
BLOCK = 2**24

# What a command's option says, where the data are in memory.
IN_MEMORY = {
    "name it with --id, or leave it out with --ignore": "make it the record's id, or leave it out",
    "leave it out with --ignore": "leave it out",
    "name the person's column with --group": "say whose each record is",
    "give --task classification": "give them as text, or fit a classifier",
}


def doubts(dataset: Dataset) -> tuple[str, ...]:
    """Sentences about a dataset as read, for the user to settle.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from leakscope import data
    >>> from leakscope.data.doubts import doubts
    >>> wine = data.read_example("wine")
    >>> doubts(wine)
    ()
    >>> told = np.column_stack([wine.features, wine.target])
    >>> hidden = replace(wine, features=told, feature_names=(*wine.feature_names, "grower"))
    >>> print(doubts(hidden)[0])
    the feature 'grower' repeats the target (they are perfectly correlated), so the model has
    nothing to learn; leave it out with --ignore.
    """
    found = [
        _sample(dataset),
        _copies(dataset),
        _answer(dataset),
        *_counts(dataset),
        _classes(dataset),
        _numbered_classes(dataset),
    ]
    return tuple(sentence for sentence in found if sentence is not None)


def _remedy(dataset: Dataset, of_a_file: str) -> str:
    """What to do, as an option of a command; where the data are in memory, in other words."""
    return of_a_file if dataset.source is not None else IN_MEMORY[of_a_file]


def array_doubts(
    X: Any, y: Any, *, classes: bool = False, groups: Sequence[Any] | None = None
) -> tuple[str, ...]:
    """The same of arrays as they are given; nothing is said of what is no table of numbers."""
    target = np.asarray(y)
    features: NDArray[Any] = np.asarray(X) if getattr(X, "ndim", 2) == 2 else np.empty(0)
    numbers = features.dtype.kind in "fiub" and (classes or target.dtype.kind in "fiub")
    if features.ndim != 2 or target.shape != features.shape[:1] or not numbers:
        return ()
    return doubts(
        Dataset(
            name="arrays",
            features=features.astype(np.float64),
            target=target,
            record_ids=tuple(range(len(target))),
            feature_names=tuple(map(str, getattr(X, "columns", range(features.shape[1])))),
            target_name="y",
            task="classification" if classes else "regression",
            group=None if groups is None else tuple(groups),
        )
    )


def _sample(dataset: Dataset) -> str | None:
    """Not all records were taken."""
    if dataset.sampled_from is None:
        return None
    return (
        f"a sample of {len(dataset.record_ids)} of {dataset.sampled_from} records was taken: the "
        "numbers are for a model trained on the sample alone, and more records usually hide each "
        "other better."
    )


def copied_records(X: Any, y: Any, groups: Sequence[Any] | None = None) -> int | None:
    """How many records repeat another one, features and target; None where that is not known.

    Within a group copies leave together, and do not count.
    """
    import pandas as pd

    if not isinstance(X, pd.DataFrame) and (hasattr(X, "toarray") or np.ndim(X) != 2):
        return None
    table = pd.DataFrame(X).copy()
    table.columns = pd.RangeIndex(table.shape[1])
    for place, target in enumerate(np.asarray(y).reshape(len(table), -1).T):
        table[f"target {place}"] = target
    if groups is not None:
        # One row of each kind for a group: what is left twice belongs to two of them.
        table["group"] = np.asarray(groups, dtype=object)
        first = table.drop_duplicates()
        return int(first.drop(columns="group").duplicated(keep=False).sum())
    return int(table.duplicated(keep=False).sum())


def _copies(dataset: Dataset) -> str | None:
    """Records that are there more than once; within a group they leave together."""
    copied = copied_records(dataset.features, dataset.target, dataset.group) or 0
    count = len(dataset.record_ids)
    if not copied:
        return None
    unit = "record" if dataset.group is None else "group"
    remedy = _remedy(dataset, "name the person's column with --group")
    return (
        f"{copied} of {count} records are exact copies of another {unit}'s: leaving one out "
        "changes little, because its copy stays; if the copies are of one person, remove them, or "
        f"{remedy}."
    )


def _answer(dataset: Dataset) -> str | None:
    """A feature that is the target, up to scale: it correlates perfectly with it."""
    features, outputs = dataset.features, _outputs(dataset)
    if len(features) < 4:
        return None
    outputs = _standardised(outputs)
    width = max(1, BLOCK // len(features))
    for start in range(0, features.shape[1], width):
        block = _standardised(features[:, start : start + width])
        hits = np.flatnonzero((np.abs(block.T @ outputs) >= CERTAIN).any(axis=1))
        if hits.size:
            name = dataset.feature_names[start + int(hits[0])]
            return (
                f"the feature {name!r} repeats the target (they are perfectly correlated), so the "
                f"model has nothing to learn; {_remedy(dataset, 'leave it out with --ignore')}."
            )
    return None


def _outputs(dataset: Dataset) -> FloatArray:
    """The target as columns: itself, or each class's indicator and the classes' order."""
    if dataset.task == "regression":
        return np.asarray(dataset.target, dtype=np.float64).reshape(-1, 1)
    texts = np.array([str(value) for value in dataset.target.tolist()])
    classes, codes = np.unique(texts, return_inverse=True)
    if len(classes) > 100:
        return codes.reshape(-1, 1).astype(np.float64)
    return np.column_stack([codes.reshape(-1), np.eye(len(classes))[codes.reshape(-1)]])


def _standardised(columns: FloatArray) -> FloatArray:
    """Columns of mean zero and length one; zeros where a column is constant or out of range."""
    with np.errstate(all="ignore"):
        centred = columns - columns.mean(axis=0)
        lengths = np.sqrt((centred**2).sum(axis=0))
        scaled = centred / lengths
    usable = np.isfinite(scaled).all(axis=0) & (lengths > 1e-12 * np.abs(columns).max(axis=0))
    return np.where(usable, scaled, 0.0)


def _counts(dataset: Dataset) -> list[str]:
    """Features that number the records: whole, all different, without a gap."""
    features, n = dataset.features, len(dataset.features)
    if n < LEAST_COUNTED:
        return []
    with np.errstate(invalid="ignore"):
        spans = np.ptp(features, axis=0)
    found = []
    for column in np.flatnonzero(spans == n - 1):
        values = features[:, column]
        if np.array_equal(np.sort(values), values.min() + np.arange(n)):
            found.append(dataset.feature_names[column])
    remedy = _remedy(dataset, "name it with --id, or leave it out with --ignore")
    return [
        f"the feature {name!r} numbers the records, as an id does, so it singles out every record; "
        f"{remedy}."
        for name in found[:3]
    ]


def two_classes(dataset: Dataset) -> bool:
    """Whether the target of a regression is two whole numbers, such as 0 and 1."""
    values = _whole_values(dataset)
    return len(values) == 2 and float(np.abs(values).max()) <= LARGEST_CLASS


def _whole_values(dataset: Dataset) -> FloatArray:
    """The target's values where it is a quantity of a few whole numbers; empty otherwise."""
    if dataset.task != "regression" or dataset.target.ndim != 1:
        return np.empty(0)
    values, often = np.unique(np.asarray(dataset.target, dtype=np.float64), return_counts=True)
    if not np.array_equal(values, np.rint(values)) or often.min() < LEAST_OF_EACH:
        return np.empty(0)
    counted = values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1
    return (
        values if 2 <= len(values) <= (MOST_COUNTED if counted else MOST_CLASSES) else np.empty(0)
    )


def _numbered_classes(dataset: Dataset) -> str | None:
    """Several numbers that are taken as classes, and nobody said that they are."""
    if dataset.task_said or dataset.task != "classification":
        return None
    kinds = {str(label) for label in dataset.target.tolist()}
    if len(kinds) <= 2 or not all(kind.replace(".", "", 1).isdigit() for kind in kinds):
        return None
    return (
        f"the target {dataset.target_name!r} holds numbers, and is taken as {len(kinds)} classes, "
        "because the model predicts classes; if it is a quantity, give --task regression and a "
        "model that predicts numbers; if these are the classes, give --task classification."
    )


def _classes(dataset: Dataset) -> str | None:
    """A regression on a few whole numbers, which may be classes."""
    values = _whole_values(dataset)
    if not values.size:
        return None
    several = len(values) > MOST_CLASSES
    told = f"{values[0]:g} to {values[-1]:g}" if several else ", ".join(f"{v:g}" for v in values)
    return (
        f"the target {dataset.target_name!r} holds {len(values)} whole numbers only ({told}) and "
        "is taken as a quantity; if they are classes, "
        f"{_remedy(dataset, 'give --task classification')}."
    )
