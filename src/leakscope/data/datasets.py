"""A dataset as the instruments take it: numbers, a target, each record's own id; and samples."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.keys import as_key
from leakscope.data.columns import shown
from leakscope.errors import InputError
from leakscope.settings.data import DATA_DEFAULTS
from leakscope.settings.data import Task as Task

if TYPE_CHECKING:
    from leakscope.data.sources import Source

RecordId = int | str

# A column of more different numbers than this is cut into quarters where subgroups are wanted.
MOST_SUBGROUPS = 20


@dataclass(frozen=True)
class Dataset:
    """Records by features, a target, ids, and what was done to them.

    Attributes
    ----------
    name
        The file's or the example's name.
    features
        (n, d) numbers; a column of categories is one indicator a category.
    target
        (n,) numbers or class labels as read; (n,) or (n, C) numbers once prepared.
    record_ids
        One a record: the id column's values, or row numbers starting at 0.
    feature_names, target_name
        The columns' names; ``region=north`` for the indicator of a category.
    task
        Whether the target is a quantity or a class.
    steps
        What was done to the data, in order, in words.
    source
        Where it can be read again; None where it came from memory.
    indicators
        Positions of the features that indicate a category; they are never scaled.
    columns
        The table's column that each feature is of, ``region`` for ``region=north``; none where the
        data were no table.
    group
        Each record's group, such as the person, where the group is the unit.
    by
        Each record's subgroup, for every column that exposure is summed up by.
    picture
        Height, width and, in colour, 3, where records are known to be pictures, row by row and
        channels last; None where nothing says so.
    sampled_from
        How many records there were, where these are a sample; None where they are all.
    person_columns
        Features and ignored columns that look like a person's, where rows leave one by one.
    task_said
        Whether somebody said the task; False where it follows from the model that is examined.
    """

    name: str
    features: NDArray[np.float64]
    target: NDArray[Any]
    record_ids: tuple[RecordId, ...]
    feature_names: tuple[str, ...]
    target_name: str
    task: Task
    steps: tuple[str, ...] = ()
    source: Source | None = None
    indicators: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    group: tuple[RecordId, ...] | None = None
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    picture: tuple[int, ...] | None = None
    sampled_from: int | None = None
    person_columns: tuple[str, ...] = ()
    task_said: bool = True

    def table(self) -> pd.DataFrame | None:
        """The features under their columns' names, categories as text; None of data without.

        Examples
        --------
        >>> import pandas as pd
        >>> from leakscope import data
        >>> frame = pd.DataFrame({"age": [31, 45], "region": ["north", "south"], "cost": [1., 3.]})
        >>> data.from_frame(frame, target="cost").table().values.tolist()
        [[31.0, 'north'], [45.0, 'south']]
        """
        if not self.columns:
            return None
        places: dict[str, list[int]] = {}
        for place, name in enumerate(self.columns):
            places.setdefault(name, []).append(place)
        indicated = set(self.indicators)
        found: dict[str, NDArray[Any]] = {}
        for name, own in places.items():
            if own[0] in indicated:
                texts = [self.feature_names[place][len(name) + 1 :] for place in own]
                found[name] = np.array(texts, dtype=object)[self.features[:, own].argmax(axis=1)]
            else:
                found[name] = self.features[:, own[0]]
        return pd.DataFrame(found)


def subgroups(column: pd.Series[Any]) -> tuple[str, ...]:
    """Each record's subgroup: its value, or its quarter where there are many numbers."""
    if many_numbers(column):
        numbers = column.astype(float)
        if np.isinf(numbers).any():
            row = column.index[int(np.argmax(np.isinf(numbers)))]
            raise InputError(
                f"column {column.name!r} holds an infinite number in row {row} (rows count from "
                "0) and cannot be cut into subgroups; correct it."
            )
        # Named by the least and the largest number in each: these are what a person reads.
        quarters = pd.qcut(numbers, 4, duplicates="drop")
        ends = numbers.groupby(quarters, observed=True).agg(["min", "max"])
        called = {
            quarter: f"{subgroup_label(float(low))} to {subgroup_label(float(high))}"
            for quarter, low, high in ends.itertuples()
        }
        column = pd.Series([called.get(quarter) for quarter in quarters], index=column.index)
    return tuple("(empty)" if pd.isna(value) else subgroup_label(value) for value in column)


def many_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column of subgroups is of numbers, too many to be a subgroup each."""
    return pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_SUBGROUPS


def subgroup_label(value: object) -> str:
    """A subgroup's name: its value, a number in the fewest digits that are this number's alone."""
    if value is None or value != value:
        return "(empty)"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))
    return str(value)


# Before every digest of this form.
DIGEST_FORM = "2"


def digest(
    features: NDArray[np.float64],
    target: NDArray[Any],
    ids: Sequence[RecordId],
    group: Sequence[RecordId] | None = None,
    file: str | None = None,
) -> str:
    """Three digests in one text: of the values with ids and groups, of values only, of the file.

    Parsers of decimal numbers differ in the last digit from one version to the next, so that
    the same file need not give the same values everywhere; its bytes are the same.
    """
    numbers = hashlib.sha256(np.ascontiguousarray(features).reshape(-1).view(np.uint8).data)
    values = numbers.copy()
    for part in (target.tolist(), ids, group or ()):
        values.update(f"{len(part)};".encode())
        for entry in part:
            text = str(entry).encode(errors="surrogatepass")
            values.update(f"{len(text)};".encode())
            values.update(text)
    for place, entry in enumerate(target.tolist()):
        numbers.update(f"{chr(0) if place else ''}{entry}".encode(errors="surrogatepass"))
    held = "" if file is None else file_digest(file)
    return "-".join((DIGEST_FORM, values.hexdigest(), numbers.hexdigest(), held))


def file_digest(file: str) -> str:
    """SHA-256 of a file's bytes, or of the names and bytes of all files in a folder."""
    place = Path(file)
    if not place.is_dir():
        with place.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    found = hashlib.sha256()
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        name = path.relative_to(place).as_posix().encode(errors="surrogateescape")
        found.update(f"{len(name)};{path.stat().st_size};".encode())
        found.update(name)
        found.update(bytes.fromhex(file_digest(str(path))))
    return found.hexdigest()


def same_data(one: str, other: str, *, read_alike: bool = True) -> bool:
    """Whether two digests are of the same data.

    ``read_alike`` says that the same columns were asked of both: the same file is then the same
    data, and other ids make other data.  Otherwise features and targets are compared alone.
    """
    first, second = (text.split("-") for text in (one, other))
    if not len(first) == len(second) == 4:
        return one == other
    if read_alike:
        return first[1] == second[1] or (bool(first[3]) and first[3] == second[3])
    return first[2] == second[2]


# A whole number as pandas writes it where a column has gaps, and what is said of mixed names.
WRITTEN_WHOLE = re.compile(r"^([+-]?\d+)\.0+$")
MIXED = "numbers and text are mixed, and taken by their text (1, 1.0 and '1' are one name)"


class Names(NamedTuple):
    """Names of records or of groups, and whether numbers and text were mixed among them."""

    names: tuple[Any, ...]
    mixed: bool


def names_of(values: Iterable[Any]) -> Names:
    """What records or groups are called: all whole numbers, or all text.

    ``pandas.read_csv`` makes 1 of some rows and "1" of others by itself, and 1.0 of rows with a gap
    among them: each is one name.  What is missing stays None.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.data.datasets import names_of
    >>> names_of([np.int64(3), 4.0]).names, names_of([3, 2.5, True]).names
    ((3, 4), ('3', '2.5', 'True'))
    >>> names_of([1, "1", 1.0, "1.0", "01"])
    Names(names=('1', '1', '1', '1', '01'), mixed=True)
    """
    values = list(values)
    found = [_name(value) for value in values]
    if all(value is None or isinstance(value, int) for value in found):
        return Names(tuple(found), False)
    numbers = (isinstance(value, (int, float, np.number)) for value in values)
    mixed = any(numbers) and any(isinstance(value, str) for value in values)
    texts = [None if value is None else str(value) for value in found]
    if mixed:
        texts = [text and WRITTEN_WHOLE.sub(r"\1", text.strip()) for text in texts]
    return Names(tuple(texts), mixed)


def _name(value: Any) -> RecordId | None:
    """A whole number that 64 bits hold, or text; None for what is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (float, np.floating)):
        if value != value:
            return None
        return int(value) if value.is_integer() and -(2**53) < value < 2**53 else str(value)
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return int(value) if whole and -(2**63) <= int(value) < 2**63 else str(value)


def require_distinct_ids(
    ids: list[RecordId], what: str, rows: Sequence[int] | None = None
) -> tuple[RecordId, ...]:
    """The ids as a tuple, or a sentence that names the first one that stands twice."""
    first_row: dict[RecordId, int] = {}
    for row, value in zip(rows if rows is not None else range(len(ids)), ids, strict=True):
        if value in first_row:
            raise InputError(
                f"{what} holds {shown(value)} twice, in rows {first_row[value]} and {row} (rows "
                "count from 0); ids must be distinct."
            )
        first_row[value] = row
    return tuple(ids)


# A target of numbers is cut into so many parts of equal size.
PARTS = 10


def sampled(
    dataset: Dataset,
    count: int,
    *,
    seed: int = DATA_DEFAULTS.sample_seed,
    keep: tuple[str, ...] = (),
) -> Dataset:
    """``count`` records of a dataset as read, drawn at random by class or by tenths of the target.

    Groups stay whole: of a dataset with groups so many are drawn that about ``count`` records
    come.  A category that no record of the sample has is no feature of it.  Records whose ids are
    in ``keep`` are among them; such a sample has no source from which it could be read again.
    """
    records = len(dataset.record_ids)
    if not 2 <= count <= records:
        raise InputError(
            f"--read sample must be from 2 to {records}, the number of records, but it is {count}.",
            option="sample",
        )
    units = np.arange(records)
    if dataset.group is not None:
        units = np.unique([str(value) for value in dataset.group], return_inverse=True)[1]
        units = units.reshape(-1)
    members = int(units.max()) + 1
    wanted = count if members == records else max(2, round(members * count / records))
    strata = _strata(dataset)[np.unique(units, return_index=True)[1]]
    kept = np.unique(units[[str(name) in keep for name in dataset.record_ids]])
    if len(kept) > wanted:
        raise InputError(
            f"--read sample is {count}, but {len(keep)} records are to be in it; raise it.",
            option="sample",
        )
    rows = np.flatnonzero(np.isin(units, _drawn(strata, wanted, seed, kept)))
    what = "class" if dataset.task == "classification" else "tenth of the target"
    step = (
        f"sampled {len(rows)} of {records} records at random, the same share of each {what} "
        f"(seed {seed}" + (f"; {', '.join(keep)} among them)" if keep else ")")
    )
    found = _taken(dataset, rows, step, count, seed)
    return replace(found, source=None) if keep else found


def _strata(dataset: Dataset) -> NDArray[np.intp]:
    """Each record's class, or which tenth of the target it is in."""
    if dataset.task == "classification":
        texts = [str(value) for value in dataset.target.tolist()]
        return np.unique(texts, return_inverse=True)[1].reshape(-1)
    ranks = np.argsort(np.argsort(dataset.target, kind="stable"), kind="stable")
    return ranks * PARTS // len(ranks)


def _drawn(
    strata: NDArray[np.intp], count: int, seed: int, kept: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Units, by strata in proportion: evenly spaced ones of a random order within each stratum.

    A stratum without one gets its own while there is room, and the units ``kept`` are among them.
    """
    order = as_key(seed).generator().permutation(len(strata))
    # in the order of strata, every so many-th unit, from the middle of the first share on
    ranked = order[np.argsort(strata[order], kind="stable")]
    places = (np.arange(count) + 0.5) * len(strata) / count
    spaced = ranked[places.astype(np.intp)]
    missed = ranked[np.unique(strata[ranked], return_index=True)[1]]
    missed = missed[~np.isin(strata[missed], strata[spaced])]
    needed = np.union1d(kept, missed) if len(kept) + len(missed) <= count else kept
    rest = as_key(seed).child(1).generator().permutation(np.setdiff1d(spaced, needed))
    return np.sort(np.concatenate([needed, rest[: count - len(needed)]]))


def _taken(dataset: Dataset, rows: NDArray[np.intp], step: str, count: int, seed: int) -> Dataset:
    features = dataset.features[rows]
    gone = [place for place in dataset.indicators if not features[:, place].any()]
    kept = np.setdiff1d(np.arange(features.shape[1]), gone)
    features = np.ascontiguousarray(features[:, kept])
    steps = [*dataset.steps, step]
    if gone:
        steps.append(f"{len(gone)} categories left out that no record of the sample has")

    def of(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple(values[row] for row in rows)

    target, ids, group = dataset.target[rows], of(dataset.record_ids) or (), of(dataset.group)
    source = dataset.source
    if source is not None:
        parts = digest(features, target, ids, group).split("-")
        file = source.digest.split("-")[-1]
        if file:
            # Another sample of the same file is other data.
            parts[-1] = hashlib.sha256(f"{file};{count};{seed}".encode()).hexdigest()
        source = replace(source, sample=count, sample_seed=seed, digest="-".join(parts))
    place = {int(before): now for now, before in enumerate(kept)}
    return replace(
        dataset,
        features=features,
        target=target,
        record_ids=ids,
        feature_names=tuple(dataset.feature_names[column] for column in kept),
        indicators=tuple(place[column] for column in dataset.indicators if column in place),
        columns=tuple(dataset.columns[column] for column in kept) if dataset.columns else (),
        group=group,
        by={name: of(values) or () for name, values in dataset.by.items()},
        steps=tuple(steps),
        source=source,
        sampled_from=len(dataset.record_ids),
    )
