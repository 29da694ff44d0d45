"""Arrays that are given to an audit: what is wrong or odd about them, and what leaves together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import MIXED, RecordId, names_of, require_distinct_ids
from leakscope.errors import InputError
from leakscope.lood.inputs import require_real
from leakscope.results.shown import are

COUNTED = "(rows and columns count from 0)"


def checked_features(X: ArrayLike) -> FloatArray:
    """X as float64, records by features, every entry finite."""
    features = _numbers(X, "X")
    if features.ndim != 2:
        raise InputError(
            f"X must have two dimensions, records by features, but its shape is {features.shape}."
        )
    if len(features) < 2:
        raise InputError(
            f"an audit compares each record with the others and needs at least two; X has "
            f"{len(features)}."
        )
    if features.shape[1] == 0:
        raise InputError("X has no features.")
    return features


def checked_targets(y: ArrayLike, records: int) -> FloatArray:
    """Y as float64, (n,) or (n, C); a single column is one output."""
    targets = _numbers(y, "y")
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim not in (1, 2) or targets.size == 0:
        raise InputError(
            f"y must be one target per record, or a table of outputs, but its shape is "
            f"{targets.shape}."
        )
    if len(targets) != records:
        raise InputError(f"X has {records} records and y has {len(targets)}; they must agree.")
    return targets


def require_whole(X: Any, y: Any) -> None:
    """Refuse masks, which NumPy drops, and labels of text and numbers, which have no order."""
    for values, name in ((X, "X"), (y, "y")):
        if isinstance(values, np.ma.MaskedArray):
            require_real(values, name)
    if getattr(y, "dtype", None) != np.dtype(object):
        return
    first: dict[bool, int] = {}
    for row, value in enumerate(np.ravel(np.asarray(y))):
        if value is None or value != value:
            raise InputError(f"y has no label in row {row} (rows count from 0); leave it out.")
        first.setdefault(isinstance(value, str), row)
    if len(first) > 1:
        raise InputError(
            f"y holds text in row {first[True]} and something else in row {first[False]} (rows "
            "count from 0); make all labels text, or all numbers."
        )


def checked_ids(
    record_ids: Sequence[Any] | None, records: int, X: Any = None
) -> tuple[RecordId, ...]:
    """The ids given, or those of a data frame's index, or row numbers from 0.

    Examples
    --------
    >>> from leakscope.subjects import arrays
    >>> arrays.checked_ids(None, 3)
    (0, 1, 2)
    """
    given = ids_given(record_ids, X)
    if given is None:
        return tuple(range(records))
    ids = _names(given, "record_ids")
    if len(ids) != records:
        raise InputError(f"there are {records} records and {len(ids)} record_ids.")
    return require_distinct_ids(ids, "record_ids")


def ids_given(record_ids: Sequence[Any] | None, X: Any) -> Any:
    """The ids given, or a data frame's index where it can be one; None where there are none."""
    if record_ids is None and hasattr(X, "iloc") and X.index.is_unique and not X.index.hasnans:
        return X.index
    return record_ids


def _names(values: Sequence[Any], what: str) -> list[RecordId]:
    """One name a record, none missing."""
    names = list(names_of(values).names)
    if None in names:
        raise InputError(
            f"{what} has no name for {names.count(None)} records, first record "
            f"{names.index(None)} (counting from 0); give each a name of its own if nobody else's "
            "records are theirs."
        )
    return names


def mixed_names(**given: Any) -> tuple[str, ...]:
    """A warning for each list of names in which numbers and text are mixed."""
    return tuple(
        f"{name}: {MIXED}; give all as text to be sure."
        for name, values in given.items()
        if values is not None and not isinstance(values, str) and names_of(values).mixed
    )


def oddities(
    features: FloatArray,
    targets: FloatArray,
    ids: tuple[RecordId, ...],
    names: tuple[str, ...] | None = None,
) -> tuple[str, ...]:
    """What deserves a warning but not a refusal."""
    found: list[str] = []
    constant = np.flatnonzero(np.ptp(features, axis=0) == 0.0)
    if constant.size:
        called = [names[column] if names else str(column) for column in constant[:5]]
        more = f" and {constant.size - 5} more" if constant.size > 5 else ""
        found.append(
            f"{constant.size} of {features.shape[1]} columns of X {are(constant.size)} constant "
            f"and {'says' if constant.size == 1 else 'say'} nothing: "
            f"{', '.join(called)}{more}."
        )
    if np.all(np.ptp(targets, axis=0) == 0.0):
        found.append("the target is the same for every record.")
    pair = _contradiction(features, targets)
    if pair is not None:
        first, second, count = pair
        found.append(
            f"{count} {'records repeat' if count > 1 else 'record repeats'} another record's "
            f"features with a different target, first {ids[second]!r} after {ids[first]!r}."
        )
    return tuple(found)


def without_intercept(features: FloatArray, kernel: dict[str, Any]) -> tuple[str, ...]:
    """A warning where centring has told the model of every record, from the kernel's description.

    The rows of centred features add up to zero.  Where they depend on each other in no other way,
    a linear kernel without an intercept knows a left-out row as minus the sum of the others.
    """
    count, width = features.shape
    if kernel.get("name") != "linear" or float(kernel.get("bias_variance", 0.0)) > 0.0:
        return ()
    if (
        count > width + 1
        or (np.abs(features.sum(axis=0)) > 1e-8 * np.abs(features).sum(axis=0)).any()
    ):
        return ()
    return (
        f"the features are centred over all {count} records, of {width} columns, and this linear "
        "kernel has no intercept: each record is minus the sum of the others, so leaving it out "
        "hides nothing, and these numbers are far too low (give bias_variance 1).",
    )


def _contradiction(features: FloatArray, targets: FloatArray) -> tuple[int, int, int] | None:
    """The first two rows with equal features and different targets, and how many there are."""
    first_row: dict[bytes, int] = {}
    found: tuple[int, int] | None = None
    count = 0
    # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bytes.
    for row, values in enumerate(np.ascontiguousarray(features + 0.0)):
        earlier = first_row.setdefault(values.tobytes(), row)
        if earlier != row and not np.array_equal(targets[earlier], targets[row]):
            count += 1
            found = found or (earlier, row)
    return None if found is None else (*found, count)


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    require_real(values, name)
    raw = np.asarray(values)
    try:
        numbers = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(_not_a_number(raw, name)) from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        where = np.unravel_index(int(np.argmax(bad)), numbers.shape)
        raise InputError(
            f"{name} holds {numbers[where]} {_place(where)}; every entry must be a finite number."
        )
    return numbers


def _not_a_number(raw: NDArray[Any], name: str) -> str:
    for where in np.ndindex(raw.shape):
        try:
            float(raw[where])
        except (TypeError, ValueError):
            return (
                f"{name} holds {str(raw[where])[:40]!r} {_place(where)}, which is not a number; "
                "audit takes numbers only."
            )
    return f"{name} cannot be read as an array of numbers."


def _place(where: Sequence[Any]) -> str:
    parts = [f"{axis} {int(i)}" for axis, i in zip(("row", "column"), where, strict=False)]
    return f"in {', '.join(parts)} {COUNTED}" if parts else "as its only entry"


def leaving_units(
    ids: tuple[RecordId, ...], groups: Sequence[Any] | None
) -> tuple[tuple[RecordId, ...], NDArray[np.intp] | None]:
    """The ids of what leaves, and each record's number among them where those are groups.

    Examples
    --------
    >>> from leakscope.subjects import arrays
    >>> names, numbers = arrays.leaving_units((0, 1, 2), ["ann", "bob", "ann"])
    >>> names, numbers.tolist()
    (('ann', 'bob'), [0, 1, 0])
    """
    if groups is None:
        return tuple(ids), None
    if isinstance(groups, str):
        raise InputError(
            f"groups is the text {groups!r}; give the name of a person for each of {len(ids)} "
            "records."
        )
    if len(groups) != len(ids):
        raise InputError(f"there are {len(ids)} records and {len(groups)} groups.")
    place: dict[RecordId, int] = {}
    numbers = [place.setdefault(name, len(place)) for name in _names(groups, "groups")]
    if len(place) < 2:
        raise InputError("all records belong to one group; an audit needs at least two.")
    return tuple(place), np.array(numbers, dtype=np.intp)
