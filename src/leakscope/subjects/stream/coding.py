"""Columns of files too large for memory as numbers: what a first pass learns, and what it leads to.

The same as :func:`leakscope.data.prepare` makes of a table in memory: categories become indicators,
which are not scaled; other features, and a quantity as the target, get mean 0 and variance 1; two
classes become -1/2 and +1/2, and more become as many outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.columns import MOST_CATEGORIES
from leakscope.data.datasets import subgroup_label
from leakscope.data.preparation import MOST_CLASSES
from leakscope.errors import InputError
from leakscope.subjects.subgroups import require_few_subgroups

if TYPE_CHECKING:
    from leakscope.subjects.stream.parts import FilePart

EPS = float(np.finfo(np.float64).eps)

# The sum of the squares of as many such numbers as any file has stays within float64.
LARGEST = 1e140


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of some records' columns, features first, then the target.

    Attributes
    ----------
    records
        How many.
    mean, length
        (k,) of every number, in the order of the columns: the mean, and the root of the sum of
        squares around it, whose square may be beyond float64.
    widths
        How many numbers a record has in each column of numbers: one, or as many as its lists hold.
    values
        The values that occur, by column of categories; the target's classes under its own name.
    """

    records: int
    mean: FloatArray
    length: FloatArray
    widths: dict[str, int]
    values: dict[str, tuple[str, ...]]

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        """Of both (Chan, Golub and LeVeque 1979)."""
        if not self.records or not other.records:
            return self if self.records else other
        for name in {**self.widths, **self.values}:
            if self.widths.get(name) != other.widths.get(name):
                raise InputError(
                    f"column {name!r} is not the same in all row groups and files: "
                    f"{_kind(self.widths.get(name))} in some, {_kind(other.widths.get(name))} in "
                    "others; write the files anew with one schema, or leave it out with --ignore."
                )
        total = self.records + other.records
        apart = other.mean - self.mean
        shared = self.records * other.records / total
        return ColumnFacts(
            total,
            self.mean + apart * (other.records / total),
            np.hypot(np.hypot(self.length, other.length), np.abs(apart) * np.sqrt(shared)),
            self.widths,
            {
                name: tuple(sorted({*seen, *other.values[name]}))
                for name, seen in self.values.items()
            },
        )

    @property
    def scale(self) -> FloatArray:
        """Standard deviations, and 1 of what varies by no more than rounding (as scikit-learn)."""
        sd = self.length / np.sqrt(self.records)
        rounding = np.hypot(np.sqrt(self.records * EPS) * sd, self.records * self.mean * EPS)
        return np.where(sd <= rounding, 1.0, sd)


@dataclass(frozen=True)
class ColumnCoding:
    """How columns become numbers.

    Attributes
    ----------
    categories
        The values of each column of categories, each an indicator.
    shift, scale
        (d,) what is taken from every feature, and what it is divided by.
    classes
        Of the target; none where it is a quantity.
    target_shift, target_scale
        Of a quantity.
    drop_missing
        Whether records with an empty value are left out.
    """

    categories: dict[str, tuple[str, ...]]
    shift: FloatArray
    scale: FloatArray
    classes: tuple[str, ...]
    target_shift: float
    target_scale: float
    drop_missing: bool

    def scaled(self, features: FloatArray) -> FloatArray:
        """The features as used."""
        features -= self.shift
        features /= self.scale
        return features

    def indicators(self, column: Any, name: str, path: str) -> FloatArray:
        """(b, k) 1 where a record has the k-th value of a column of categories."""
        values = self.categories[name]
        return np.asarray(np.eye(len(values))[_places(column, name, values, path)])

    def outputs(self, column: Any, part: FilePart, first: int) -> FloatArray:
        """(b, C) the target as used."""
        name = part.target[0]
        if not self.classes:
            raw = part.numbers(column, name, first)
            return np.asarray((raw.reshape(-1, 1) - self.target_shift) / self.target_scale)
        part.refuse_nulls(column, name, first)
        codes = _places(column, name, self.classes, part.path)
        if len(self.classes) == 2:
            return np.asarray(codes[:, None] - 0.5)
        return np.asarray(np.eye(len(self.classes))[codes] - 1.0 / len(self.classes))


def facts_of(part: FilePart, classes: bool, drop_missing: bool, block_bytes: int) -> ColumnFacts:
    """What a pass over one part learns; ``classes`` is whether the target names classes."""
    total, first = None, part.first_row
    for batch in part.batches(block_bytes):
        names = (*part.features, *part.target)
        kept = batch.filter(present(batch, names)) if drop_missing else batch
        if not kept.num_rows:
            first += batch.num_rows
            continue
        means, lengths, widths, values = [], [], {}, {}
        for name in names:
            column = kept.column(name)
            part.refuse_nulls(column, name, first)
            if is_text(column.type) or (classes and name == part.target[0]):
                values[name] = tuple(sorted(map(str, _texts(column).unique().to_pylist())))
                _require_few(values[name], name, part, is_target=name == part.target[0])
                continue
            numbers = part.numbers(column, name, first).reshape(len(column), -1)
            if not np.isfinite(numbers).all():
                row = first + int(np.argmin(np.isfinite(numbers).all(axis=1)))
                raise InputError(f"column {name!r} is not finite in row {row} of {part.path}.")
            largest = float(np.max(np.abs(numbers), initial=0.0))
            if largest > LARGEST:
                raise InputError(
                    f"column {name!r} of {part.path} holds numbers as large as {largest:.3g}, too "
                    "large for their variance in float64; divide the column by a power of ten."
                )
            mean = numbers.mean(axis=0)
            means.append(mean)
            widths[name] = numbers.shape[1]
            centred = numbers - mean
            # Squares of what is tiny would be zero.
            most = np.max(np.abs(centred), axis=0, initial=0.0)
            centred /= np.where(most > 0.0, most, 1.0)
            lengths.append(most * np.sqrt(np.einsum("ij,ij->j", centred, centred)))
        found = ColumnFacts(
            kept.num_rows,
            np.concatenate([*means, np.zeros(0)]),
            np.concatenate([*lengths, np.zeros(0)]),
            widths,
            values,
        )
        total = found if total is None else total + found
        first += batch.num_rows
    return ColumnFacts(0, np.zeros(0), np.zeros(0), {}, {}) if total is None else total


def present(batch: Any, names: Sequence[str]) -> Any:
    """Which rows of a batch have a value in each of these columns, as an Arrow array."""
    import pyarrow.compute as pc

    kept = pc.is_valid(batch.column(names[0]))
    for name in names[1:]:
        kept = pc.and_(kept, pc.is_valid(batch.column(name)))
    return kept


def subgroup_codes(column: Any, name: str) -> tuple[NDArray[np.intp], list[str]]:
    """(b,) which subgroup each record of a column is of, and the subgroups."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    coded = column.dictionary_encode("encode")
    require_few_subgroups(name, len(coded.dictionary))
    values = [subgroup_label(value) for value in coded.dictionary.to_pylist()]
    return np.asarray(coded.indices).astype(np.intp), values


def _kind(width: int | None) -> str:
    if width is None:
        return "categories"
    return "numbers" if width == 1 else f"lists of {width} numbers"


def coding_of(
    facts: ColumnFacts, part: FilePart, *, standard: bool, classes: bool, drop_missing: bool
) -> ColumnCoding:
    """From what the whole source holds to how its columns become numbers."""
    if not facts.records:
        raise InputError(f"{part.path}: every record has an empty value.")
    name = part.target[0]
    for key, seen in facts.values.items():
        _require_few(seen, key, part, is_target=key == name)
    labels = facts.values.get(name, ()) if classes else ()
    if classes and len(labels) < 2:
        raise InputError(f"The target {name!r} holds one class only, {labels[0]!r}.")
    numbers = len(facts.mean) - (0 if classes else 1)
    shift = facts.mean[:numbers] if standard else np.zeros(numbers)
    scale = facts.scale[:numbers] if standard else np.ones(numbers)
    categories = {key: seen for key, seen in facts.values.items() if key != name}
    widths = [len(categories.get(key, ())) or facts.widths[key] for key in part.features]
    starts, width = np.cumsum([0, *widths[:-1]]), sum(widths)
    places = [
        int(start) + step
        for key, start, count in zip(part.features, starts, widths, strict=True)
        if key not in categories
        for step in range(count)
    ]
    return ColumnCoding(
        categories=categories,
        shift=_placed(shift, places, width, 0.0),
        scale=_placed(scale, places, width, 1.0),
        classes=labels,
        target_shift=0.0 if classes or not standard else float(facts.mean[-1]),
        target_scale=1.0 if classes or not standard else float(facts.scale[-1]),
        drop_missing=drop_missing,
    )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds categories: texts, or a dictionary of them."""
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def _placed(values: FloatArray, places: list[int], width: int, otherwise: float) -> FloatArray:
    found = np.full(width, otherwise)
    found[places] = values
    return found


def _texts(column: Any) -> Any:
    """A column of categories as plain texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string())


def _places(column: Any, name: str, values: tuple[str, ...], path: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(_texts(column), value_set=pa.array(values, pa.string()))
    if places.null_count:
        raise InputError(f"{path}: column {name!r} holds a value that the first pass did not see.")
    return np.asarray(places)


def _require_few(values: tuple[str, ...], name: str, part: FilePart, *, is_target: bool) -> None:
    most = MOST_CLASSES if is_target else MOST_CATEGORIES
    if len(values) > most:
        what = "classes" if is_target else "categories: they look like ids, names or free text"
        raise InputError(
            f"{part.path}: column {name!r} holds more than {most} values, too many for {what}; "
            f"{'name another target' if is_target else 'leave the column out with --ignore'}."
        )
