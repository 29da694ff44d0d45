"""Records of Parquet files, some of a row group at a time, as numbers.

The numbers are those that :func:`leakscope.data.prepare` makes of a table in memory: categories
become indicators, which are not scaled; other features, and a quantity as the target, get mean 0
and variance 1; two classes become 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.columns import MOST_CATEGORIES, column_name
from leakscope.data.files import is_folder, is_there, require_file
from leakscope.data.parquet import require_distinct
from leakscope.data.person_columns import is_person_name
from leakscope.errors import InputError, required
from leakscope.settings.data import DataSettings

SUFFIX = ".parquet"
# What a reader buffers of a file at once.
BUFFER_BYTES = 2**20
EPS = float(np.finfo(np.float64).eps)


class StoppedError(InputError):
    """The run stops here; what was computed is kept."""


@dataclass(frozen=True)
class RowGroup:
    """One row group of a Parquet file, with the file's size and time when it was listed."""

    path: str
    stamp: tuple[int, int]
    number: int
    first_row: int
    records: int


@dataclass(frozen=True)
class Columns:
    """Which columns are read; ``texts`` are those of them that hold categories or classes."""

    features: tuple[str, ...]
    target: str
    record_id: str | None
    subgroups: tuple[str, ...]
    texts: frozenset[str]
    drop_missing: bool

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers, features first."""
        return [name for name in (*self.features, self.target) if name not in self.texts]

    @property
    def read(self) -> list[str]:
        """Every column, once."""
        ids = () if self.record_id is None else (self.record_id,)
        return list(dict.fromkeys([*self.features, self.target, *ids, *self.subgroups]))


def record_files(source: Path) -> list[Path]:
    """The Parquet files at a place, by name: the file itself, or those of a folder."""
    if not is_there(source):
        raise InputError(f"There is no file or folder {source}.")
    files = [source]
    if is_folder(source):
        files = sorted(file for file in source.rglob("*") if file.suffix.lower() == SUFFIX)
    if not files:
        raise InputError(f"{source} holds no file that ends in {SUFFIX}.")
    return files


def schema_and_sizes(path: Path) -> tuple[Any, list[int]]:
    """A file's schema, and how many records each of its row groups has."""
    required("pyarrow", "Reading records in blocks")
    import pyarrow as pa
    import pyarrow.parquet as pq

    require_file(path)
    try:
        with pq.ParquetFile(path) as file:
            about = file.metadata
            groups = range(about.num_row_groups)
            return file.schema_arrow, [about.row_group(group).num_rows for group in groups]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is not a Parquet file ({_first_line(error)}).") from error


def listed(source: Path, data: DataSettings) -> tuple[list[RowGroup], Columns]:
    """The row groups of a file or a folder, and their columns, the same in every file."""
    files = record_files(source)
    names = list(schema_and_sizes(files[0])[0].names)

    def named(given: str, role: str) -> str:
        return column_name(names, given, role, str(source))

    if data.target is None:
        raise InputError("which column is the target?  Name it with --target.")
    target = named(data.target, "target")
    record_id = None if data.id_column is None else named(data.id_column, "id")
    left_out = {target, record_id, *(named(name, "column to ignore") for name in data.ignore)}
    features = tuple(name for name in names if name not in left_out)
    subgroups = tuple(dict.fromkeys(named(name, "subgroups") for name in data.by))
    if not features:
        raise InputError(f"{files[0]} has no column of features beside the target.")
    groups: list[RowGroup] = []
    kinds: dict[str, str] = {}
    first = 0
    for path in files:
        schema, sizes = schema_and_sizes(path)
        require_distinct(list(schema.names), str(path))
        for name in (*features, target, *subgroups, *(() if record_id is None else (record_id,))):
            if name not in schema.names:
                raise InputError(
                    f"{path} has no column {name!r}; it has {', '.join(schema.names)}."
                )
        for name in (*features, target):
            kind = _kind(schema.field(name), name in features, str(path))
            if kinds.setdefault(name, kind) != kind:
                raise InputError(
                    f"column {name!r} is not the same in all files: {kinds[name]} in some, {kind} "
                    "in others; write the files anew with one schema, or leave it out with "
                    "--ignore."
                )
        for number, records in enumerate(sizes):
            if records:
                groups.append(RowGroup(str(path), _stamp(path), number, first, records))
            first += records
    if not groups:
        raise InputError(f"{source} holds no records.")
    texts = {name for name, kind in kinds.items() if kind == "categories"}
    if data.task == "classification":
        texts.add(target)
    elif target in texts:
        raise InputError(f"the target {target!r} holds texts, and a quantity is predicted.")
    columns = Columns(
        features, target, record_id, subgroups, frozenset(texts), data.missing == "drop"
    )
    return groups, columns


def names_classes(source: Path, target: str) -> bool:
    """Whether the target is text, or yes and no, by the first file's own types."""
    import pyarrow as pa

    schema, _ = schema_and_sizes(record_files(source)[0])
    if target not in schema.names:
        return False
    kind = schema.field(target).type
    return _is_text(kind) or bool(pa.types.is_boolean(kind))


def frames(
    group: RowGroup, columns: Columns, block_bytes: int, width: int = 0
) -> Iterator[tuple[NDArray[np.intp], pd.DataFrame]]:
    """Row numbers and records of a row group, so many bytes of numbers at a time.

    ``width`` is how many numbers a record becomes, where that is known.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = max(1, block_bytes // (8 * max(width, len(columns.read))))
    first, used = group.first_row, [*columns.features, columns.target]
    try:
        _require_unchanged(group)
        with pq.ParquetFile(group.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            for batch in file.iter_batches(
                size, row_groups=[group.number], columns=columns.read, use_threads=False
            ):
                _require_unchanged(group)
                frame = batch.to_pandas()
                rows = np.arange(first, first + len(frame))
                first += len(frame)
                if columns.drop_missing:
                    present = frame[used].notna().all(axis=1).to_numpy()
                    frame, rows = frame[present], rows[present]
                if len(frame):
                    _require_whole(frame, columns, group.path, int(rows[0]))
                    yield rows, frame
    except (pa.ArrowException, OSError) as error:
        _require_unchanged(group)
        raise StoppedError(f"{group.path} can no longer be read ({_first_line(error)}).") from error


def _require_whole(frame: pd.DataFrame, columns: Columns, path: str, first: int) -> None:
    ids = [] if columns.record_id is None else [columns.record_id]
    for name in (*columns.features, columns.target, *ids):
        missing = int(frame[name].isna().sum())
        if missing:
            raise InputError(
                f"{path}: column {name!r} has {missing} missing values among the records from row "
                f"{first} on; fill them or drop those records."
            )


def _require_unchanged(group: RowGroup) -> None:
    try:
        unchanged = _stamp(Path(group.path)) == group.stamp
    except OSError as error:
        raise StoppedError(
            f"{group.path} is no longer there ({_first_line(error)}); what was computed is kept: "
            "put it back and ask again."
        ) from error
    if not unchanged:
        raise InputError(
            f"{group.path} was changed while it was read: what was computed from it may not hold; "
            "start again in a new run directory."
        )


def _kind(field: Any, feature: bool, path: str) -> str:
    """What a column holds, "numbers" or "categories"; anything else is refused."""
    import pyarrow as pa

    kind, name = field.type, field.name
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not numeric and not _is_text(kind):
        raise InputError(
            f"{path}: column {name!r} holds {kind}; features and targets must be numbers or "
            "categories; leave the column out with --ignore."
        )
    # Whether values repeat is not known before all are read.
    if feature and not pa.types.is_boolean(kind) and is_person_name(name):
        raise InputError(
            f"{path}: column {name!r} is named like a person's or an id, and is no feature; name "
            "it with --id if it is each record's own id, leave it out with --ignore, or, where a "
            "person has several rows, audit a sample with --group."
        )
    return "numbers" if numeric else "categories"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of some records' columns.

    Attributes
    ----------
    records
        How many.
    mean, length
        (k,) of every column of numbers: the mean, and the root of the sum of squares around it,
        whose square may be beyond float64.
    values
        The values that occur, by column of texts.
    """

    records: int
    mean: FloatArray
    length: FloatArray
    values: dict[str, tuple[str, ...]]

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        """Of both (Chan, Golub and LeVeque 1979)."""
        total = self.records + other.records
        apart = other.mean - self.mean
        between = np.abs(apart) * np.sqrt(self.records * other.records / total)
        return ColumnFacts(
            total,
            self.mean + apart * (other.records / total),
            np.hypot(np.hypot(self.length, other.length), between),
            {
                name: tuple(sorted({*values, *other.values[name]}))
                for name, values in self.values.items()
            },
        )

    @property
    def scale(self) -> FloatArray:
        """Standard deviations, and 1 of what varies by no more than rounding (as scikit-learn)."""
        sd = self.length / np.sqrt(self.records)
        rounding = np.hypot(np.sqrt(self.records * EPS) * sd, self.records * self.mean * EPS)
        return np.where(sd <= rounding, 1.0, sd)


def facts_of(group: RowGroup, columns: Columns, block_bytes: int) -> ColumnFacts | None:
    """What one row group's columns hold; None where every record was dropped."""
    total: ColumnFacts | None = None
    for rows, frame in frames(group, columns, block_bytes):
        numbers = frame[columns.numbers].to_numpy(np.float64)
        bad = ~np.isfinite(numbers)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"column {columns.numbers[column]!r} is not finite in row {rows[row]} of "
                f"{group.path}."
            )
        mean = numbers.mean(axis=0)
        centred = numbers - mean
        # Squares of what is tiny would be zero.
        most = np.max(np.abs(centred), axis=0, initial=0.0)
        centred /= np.where(most > 0.0, most, 1.0)
        values = {
            name: tuple(sorted(frame[name].astype(str).unique())) for name in sorted(columns.texts)
        }
        for name, seen in values.items():
            _require_few(seen, name, columns.target)
        facts = ColumnFacts(
            len(frame), mean, most * np.sqrt(np.einsum("ij,ij->j", centred, centred)), values
        )
        total = facts if total is None else total + facts
    return total


def _require_few(values: tuple[str, ...], name: str, target: str) -> None:
    if name == target and len(values) > 2:
        raise InputError(
            f"the target {name!r} has more than two classes, and two are streamed: more are "
            "examined in memory; audit a sample."
        )
    if len(values) > MOST_CATEGORIES:
        raise InputError(
            f"column {name!r} holds more than {MOST_CATEGORIES} values, too many for categories: "
            "they look like ids, names or free text; leave the column out with --ignore."
        )


@dataclass(frozen=True, eq=False)
class Block:
    """Some records: X (b, d + 1), the last column ones; y (b,); row numbers, ids, subgroups."""

    X: FloatArray
    y: FloatArray
    rows: NDArray[np.intp]
    record_ids: NDArray[Any]
    subgroups: pd.DataFrame


@dataclass(frozen=True)
class ColumnCoding:
    """How columns become numbers.

    Attributes
    ----------
    columns, categories
        What is read, and the values of each column of categories, each an indicator.
    shift, scale
        (d,) what is taken from every feature, and what it is divided by.
    classes
        The target's two classes, the second the one that is 1; none where it is a quantity.
    target_shift, target_scale
        Of a quantity.
    """

    columns: Columns
    categories: dict[str, tuple[str, ...]]
    shift: FloatArray
    scale: FloatArray
    classes: tuple[str, ...]
    target_shift: float = 0.0
    target_scale: float = 1.0

    @classmethod
    def of(cls, facts: ColumnFacts, columns: Columns, *, standard: bool) -> ColumnCoding:
        """From what the whole source holds."""
        for name, values in facts.values.items():
            _require_few(values, name, columns.target)
        classes = facts.values.get(columns.target, ())
        if columns.target in columns.texts and len(classes) < 2:
            raise InputError(f"The target {columns.target!r} holds one class only, {classes[0]!r}.")
        scales = dict(zip(columns.numbers, zip(facts.mean, facts.scale, strict=True), strict=True))
        usual = (0.0, 1.0)
        pairs = []
        for name in columns.features:
            if name in columns.texts:
                pairs += [usual] * len(facts.values[name])
            else:
                pairs.append(scales[name] if standard else usual)
        shift, scale = np.array(pairs, dtype=np.float64).T
        target = usual if classes or not standard else scales[columns.target]
        categories = {k: v for k, v in facts.values.items() if k != columns.target}
        return cls(columns, categories, shift, scale, classes, float(target[0]), float(target[1]))

    def blocks(self, group: RowGroup, block_bytes: int) -> Iterator[Block]:
        """The records of a row group as numbers."""
        columns, width = self.columns, len(self.shift) + 1
        for rows, frame in frames(group, columns, block_bytes, width):
            # Column after column, as the file has them: row after row takes thrice the time.
            X = np.empty((len(frame), width), order="F")
            start = 0
            for name in columns.features:
                if name in columns.texts:
                    places = _places(frame[name], self.categories[name], group.path)
                    count = len(self.categories[name])
                    X[:, start : start + count] = places[:, None] == np.arange(count)
                else:
                    count = 1
                    X[:, start] = frame[name].to_numpy(np.float64)
                start += count
            X[:, :-1] -= self.shift
            X[:, :-1] /= self.scale
            X[:, -1] = 1.0
            target = frame[columns.target]
            if self.classes:
                y = _places(target, self.classes, group.path).astype(np.float64)
            else:
                y = (target.to_numpy(np.float64) - self.target_shift) / self.target_scale
            ids = rows if columns.record_id is None else frame[columns.record_id].to_numpy()
            yield Block(X, y, rows, ids, frame[list(columns.subgroups)])


def _places(column: pd.Series[Any], values: tuple[str, ...], path: str) -> NDArray[np.intp]:
    """(b,) which of the values each record has."""
    places = pd.Index(values).get_indexer(pd.Index(column.astype(str)))
    if (places < 0).any():
        raise InputError(
            f"{path}: column {column.name!r} holds a value that the first pass did not see."
        )
    return np.asarray(places)
