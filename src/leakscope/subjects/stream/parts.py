"""Records of Parquet files, some of a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.files import is_folder, is_there, require_file
from leakscope.data.parquet import require_distinct
from leakscope.data.person_columns import is_person_name
from leakscope.errors import InputError, required
from leakscope.subjects.stream.coding import ColumnCoding, is_text, present, subgroup_codes

# What a reader buffers of a file at once.
BUFFER_BYTES = 2**20

SUFFIX = ".parquet"

# By column of subgroups: (b,) which value each record has, and the values.
Labels = Mapping[str, tuple[NDArray[np.intp], Sequence[str]]]


class StoppedError(InputError):
    """Something outside the run's own question failed; what was computed stays, to go on from."""


@dataclass(frozen=True)
class RecordBlock:
    """Some records: ``features`` (b, d), ``outputs`` (b, C), ``record_ids`` (b,), subgroups."""

    first_row: int
    record_ids: NDArray[Any]
    features: FloatArray
    outputs: FloatArray
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class FilePart:
    """One row group of a Parquet file.

    ``stamp`` is the file's size and time when the parts were listed: a file that changed since is
    refused.  ``coding`` says how columns become numbers; without it they are taken as they are.
    """

    path: str
    stamp: tuple[int, int]
    piece: int
    first_row: int
    records: int
    features: tuple[str, ...]
    target: tuple[str, ...]
    record_id: str | None
    by: tuple[str, ...] = ()
    coding: ColumnCoding | None = None

    def blocks(self, block_bytes: int) -> Iterator[RecordBlock]:
        """Its records in blocks; a row group of any size is never whole in memory."""
        first = self.first_row
        for batch in self.batches(block_bytes):
            rows = np.arange(first, first + batch.num_rows)
            first += batch.num_rows
            if self.coding is not None and self.coding.drop_missing:
                kept = present(batch, (*self.features, *self.target))
                batch, rows = batch.filter(kept), rows[np.asarray(kept)]
                if not len(rows):
                    continue
            ids = rows
            if self.record_id is not None:
                column = batch.column(self.record_id)
                self.refuse_nulls(column, self.record_id, int(rows[0]))
                ids = np.asarray(column.to_numpy(zero_copy_only=False))
            features = self._matrix(batch, self.features, int(rows[0]))
            if self.coding is None:
                outputs = self._matrix(batch, self.target, int(rows[0]))
            else:
                features = self.coding.scaled(features)
                outputs = self.coding.outputs(batch.column(self.target[0]), self, int(rows[0]))
            labels = {name: subgroup_codes(batch.column(name), name) for name in self.by}
            yield checked(RecordBlock(int(rows[0]), ids, features, outputs, labels), self.path)

    def batches(self, block_bytes: int) -> Iterator[Any]:
        """Its columns as Arrow batches, or a sentence where the file is not what it was."""
        import pyarrow as pa

        ids = [] if self.record_id is None else [self.record_id]
        wanted = list(dict.fromkeys([*self.features, *self.target, *ids, *self.by]))
        try:
            self._require_unchanged()
            for batch in self._read(wanted, block_bytes):
                self._require_unchanged()
                yield batch
        except (pa.ArrowException, OSError) as error:
            self._require_unchanged()
            raise StoppedError(
                f"{self.path} can no longer be read ({_first_line(error)})."
            ) from error

    def _require_unchanged(self) -> None:
        try:
            unchanged = _stamp(Path(self.path)) == self.stamp
        except OSError as error:
            raise StoppedError(
                f"{self.path} is no longer there ({_first_line(error)}); what was computed is "
                "kept: put it back and ask again."
            ) from error
        if not unchanged:
            raise InputError(
                f"{self.path} was changed while it was read: what was computed from it may not "
                "hold; start again in a new run directory."
            )

    def _read(self, wanted: list[str], block_bytes: int) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            size = max(1, block_bytes // (8 * self._width(file.schema_arrow)))
            yield from file.iter_batches(
                size, row_groups=[self.piece], columns=wanted, use_threads=False
            )

    def _width(self, schema: Any) -> int:
        if self.coding is not None:
            return max(1, len(self.coding.shift))
        kinds = [schema.field(name).type for name in self.features]
        # Lists of varying length do not say how long they are; embeddings seldom exceed this.
        return sum(getattr(kind, "list_size", 1024 if _is_list(kind) else 1) for kind in kinds)

    def _matrix(self, batch: Any, names: Sequence[str], first: int) -> FloatArray:
        columns = [self.numbers(batch.column(name), name, first) for name in names]
        widths = [1 if column.ndim == 1 else column.shape[1] for column in columns]
        # Column after column, as the file has them: row after row would take thrice the time.
        found, start = np.empty((sum(widths), batch.num_rows)), 0
        for column, width in zip(columns, widths, strict=True):
            found[start : start + width] = column.T
            start += width
        return found.T

    def numbers(self, column: Any, name: str, first: int) -> FloatArray:
        """A column as numbers: (b,), or (b, k) where it holds lists or categories."""
        self.refuse_nulls(column, name, first)
        if self.coding is not None and name in self.coding.categories:
            return self.coding.indicators(column, name, self.path)
        if not _is_list(column.type):
            return plain_numbers(column.to_numpy(zero_copy_only=False), f"column {name!r}")
        lengths = column.value_lengths().unique()
        if len(lengths) != 1:
            raise InputError(f"{self.path}: the lists of column {name!r} differ in length.")
        flat = column.flatten()
        self.refuse_nulls(flat, name, first)
        found = plain_numbers(flat.to_numpy(zero_copy_only=False), f"column {name!r}")
        return found.reshape(len(column), -1)

    def refuse_nulls(self, column: Any, name: str, first: int) -> None:
        """Refuse a column with missing values."""
        if column.null_count:
            raise InputError(
                f"{self.path}: column {name!r} has {column.null_count} missing values among the "
                f"records from row {first} on; fill them or drop those records."
            )


def record_files(place: Path) -> list[Path]:
    """The Parquet files at a place, by name: the file itself, or those of a folder."""
    if not is_folder(place):
        return [place]
    return sorted(file for file in place.rglob("*") if file.suffix.lower() == SUFFIX)


def columns_of(source: Path) -> list[str]:
    """The columns of a file, or of the first file of a folder."""
    if not is_there(source):
        raise InputError(f"There is no file or folder {source}.")
    files = record_files(source)
    if not files:
        raise InputError(f"{source} holds no file that ends in {SUFFIX}.")
    return list(file_pieces(files[0])[0].names)


def file_parts(
    source: str | Path,
    target: str | Sequence[str],
    *,
    features: Sequence[str] | None = None,
    record_id: str | None = None,
    ignore: Sequence[str] = (),
    by: Sequence[str] = (),
    texts: bool = False,
) -> list[FilePart]:
    """The row groups of a file, or of all the files of a folder, by name.

    ``by`` names columns of subgroups.  Without ``texts`` features and targets must be numbers.
    """
    place = Path(source)
    if not is_there(place):
        raise InputError(f"There is no file or folder {place}.")
    files = record_files(place)
    if not files:
        raise InputError(f"{place} holds no file that ends in {SUFFIX}.")
    targets = (target,) if isinstance(target, str) else tuple(target)
    parts: list[FilePart] = []
    first, names = 0, None if features is None else tuple(features)
    ids = () if record_id is None else (record_id,)
    for path in files:
        schema, pieces = file_pieces(path)
        if names is None:
            left_out = {*targets, record_id, *ignore}
            names = tuple(name for name in schema.names if name not in left_out)
        _require_columns(path, schema, names, targets, (*ids, *by), texts)
        stamp = _stamp(path)
        for piece, records in enumerate(pieces):
            if records:
                parts.append(
                    FilePart(
                        str(path),
                        stamp,
                        piece,
                        first,
                        records,
                        names,
                        targets,
                        record_id,
                        tuple(by),
                    )
                )
            first += records
    if not parts:
        raise InputError(f"{place} holds no records.")
    return parts


def file_pieces(path: Path) -> tuple[Any, list[int]]:
    """A file's schema, and the records of each of its row groups."""
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


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _require_columns(
    path: Path,
    schema: Any,
    names: Sequence[str],
    targets: Sequence[str],
    others: Sequence[str],
    texts: bool,
) -> None:
    import pyarrow as pa

    require_distinct(list(schema.names), str(path))
    if not names:
        raise InputError(f"{path} has no column of features beside the target.")
    for name in (*others, *names, *targets):
        if name not in schema.names:
            raise InputError(f"{path} has no column {name!r}; it has {', '.join(schema.names)}.")
        kind = schema.field(name).type
        inner = kind.value_type if _is_list(kind) else kind
        numeric = pa.types.is_integer(inner) or pa.types.is_floating(inner)
        usable = numeric or pa.types.is_boolean(inner) or (texts and is_text(kind))
        if name in (*names, *targets) and not usable:
            raise InputError(
                f"{path}: column {name!r} holds {kind}; features and targets must be numbers"
                f"{' or categories; leave the column out with --ignore' if texts else ''}."
            )
        # Whether values repeat is not known before all are read.
        if texts and name in names and not pa.types.is_boolean(inner) and is_person_name(name):
            raise InputError(
                f"{path}: column {name!r} is named like a person's or an id, and is no feature; "
                "name it with --id if it is each record's own id, leave it out with --ignore, or, "
                "where a person has several rows, audit a sample with --group."
            )


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    )


def plain_numbers(values: ArrayLike, what: str) -> FloatArray:
    """Float64, or a sentence that names what holds something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must hold numbers only.") from None


def checked(block: RecordBlock, path: str | None = None) -> RecordBlock:
    """The block itself, unless a number in it is not finite."""
    for values, what in ((block.features, "a feature"), (block.outputs, "the target")):
        if not np.isfinite(values).all():
            finite = np.isfinite(values).all(axis=1)
            row = block.first_row + int(np.argmin(finite))
            where = "" if path is None else f" of {path}"
            raise InputError(f"{what} is not finite in row {row}{where} (rows count from 0).")
    return block
