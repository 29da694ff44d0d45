"""Records in blocks: from Parquet files, Dask arrays or arrays on disk, never all in memory.

A source is cut into parts (a row group of a file, a chunk of a Dask array), each of which can be
sent to a worker and read there, block by block.  Row numbers count through the whole source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data import is_there
from leakscope.errors import InputError

# What a reader buffers of a file at once.
BUFFER_BYTES = 2**20


@dataclass(frozen=True)
class RecordBlock:
    """Some records: ``features`` (b, d), ``outputs`` (b, C), ``record_ids`` (b,)."""

    first_row: int
    record_ids: NDArray[Any]
    features: FloatArray
    outputs: FloatArray


class Part(Protocol):
    """A part of a source that is read where it is needed."""

    @property
    def records(self) -> int:
        """How many records it holds."""
        ...

    def blocks(self, block_bytes: int) -> Iterator[RecordBlock]:
        """Its records, checked, in blocks of about ``block_bytes`` as float64."""
        ...

    def submit(self, client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future of ``function(part, *arguments)`` on a Dask cluster."""
        ...


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """Records in memory or in a memory-mapped file."""

    first_row: int
    features: NDArray[Any]
    outputs: NDArray[Any]

    @property
    def records(self) -> int:
        """How many records it holds."""
        return len(self.features)

    def blocks(self, block_bytes: int) -> Iterator[RecordBlock]:
        """Its records in blocks."""
        size = max(1, block_bytes // (8 * max(1, self.features.shape[1])))
        for start in range(0, self.records, size):
            features = _numbers(self.features[start : start + size], "the features")
            outputs = _numbers(self.outputs[start : start + size], "the targets")
            first = self.first_row + start
            ids = np.arange(first, first + len(features))
            yield _checked(RecordBlock(first, ids, features, outputs.reshape(len(features), -1)))

    def submit(self, client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future on a Dask cluster; the records travel with the task."""
        return client.submit(function, self, *arguments, pure=False)


@dataclass(frozen=True, eq=False)
class DaskPart:
    """One chunk of a Dask array, not computed yet."""

    first_row: int
    records: int
    features: Any
    outputs: Any

    def blocks(self, block_bytes: int) -> Iterator[RecordBlock]:
        """Its records in blocks; the chunk is computed here."""
        from dask.base import compute

        features, outputs = compute(  # type: ignore[no-untyped-call]
            self.features, self.outputs, scheduler="synchronous"
        )
        yield from ArrayPart(self.first_row, features, outputs).blocks(block_bytes)

    def submit(self, client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future on a Dask cluster; the chunk is computed there."""
        from dask.delayed import delayed

        task = delayed(_with_arrays, pure=False)(
            function, self.first_row, self.features, self.outputs, *arguments
        )
        return client.compute(task)


@dataclass(frozen=True)
class ParquetPart:
    """One row group of a Parquet file."""

    path: str
    row_group: int
    first_row: int
    records: int
    features: tuple[str, ...]
    target: tuple[str, ...]
    record_id: str | None

    def blocks(self, block_bytes: int) -> Iterator[RecordBlock]:
        """Its records in blocks; a row group of any size is never whole in memory."""
        import pyarrow.parquet as pq

        wanted = [*self.features, *self.target, *([self.record_id] if self.record_id else [])]
        first = self.first_row
        with pq.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            width = self._width(file.schema_arrow)
            size = max(1, block_bytes // (8 * width))
            batches = file.iter_batches(
                size, row_groups=[self.row_group], columns=wanted, use_threads=False
            )
            for batch in batches:
                features = self._matrix(batch, self.features, first)
                outputs = self._matrix(batch, self.target, first)
                ids = (
                    np.arange(first, first + len(features))
                    if self.record_id is None
                    else self._ids(batch.column(self.record_id), first)
                )
                yield _checked(RecordBlock(first, ids, features, outputs), self.path)
                first += len(features)

    def submit(self, client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future on a Dask cluster, whose workers must see the file under the same path."""
        return client.submit(function, self, *arguments, pure=False)

    def _width(self, schema: Any) -> int:
        kinds = [schema.field(name).type for name in self.features]
        # Lists of varying length do not say how long they are; embeddings seldom exceed this.
        return sum(getattr(kind, "list_size", 1024 if _is_list(kind) else 1) for kind in kinds)

    def _matrix(self, batch: Any, names: Sequence[str], first: int) -> FloatArray:
        columns = []
        for name in names:
            column = batch.column(name)
            self._refuse_nulls(column, name, first)
            if not _is_list(column.type):
                columns.append(_numbers(column.to_numpy(zero_copy_only=False), f"column {name!r}"))
                continue
            lengths = set(column.value_lengths().to_pylist())
            if len(lengths) != 1:
                raise InputError(f"{self.path}: the lists of column {name!r} differ in length.")
            flat = column.flatten()
            self._refuse_nulls(flat, name, first)
            numbers = _numbers(flat.to_numpy(zero_copy_only=False), f"column {name!r}")
            columns.append(numbers.reshape(len(column), -1))
        return np.column_stack(columns)

    def _refuse_nulls(self, column: Any, name: str, first: int) -> None:
        if column.null_count:
            raise InputError(
                f"{self.path}: column {name!r} has {column.null_count} missing values among the "
                f"records from row {first} on; fill them or drop those records."
            )

    def _ids(self, column: Any, first: int) -> NDArray[Any]:
        self._refuse_nulls(column, str(self.record_id), first)
        return np.asarray(column.to_numpy(zero_copy_only=False))


def parquet_parts(
    source: str | Path,
    target: str | Sequence[str],
    *,
    features: Sequence[str] | None = None,
    record_id: str | None = None,
) -> list[ParquetPart]:
    """The row groups of a Parquet file, or of all the files of a folder, by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = Path(source)
    if not is_there(place):
        raise InputError(f"There is no file or folder {place}.")
    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
    if not files:
        raise InputError(f"{place} holds no file that ends in .parquet.")
    targets = (target,) if isinstance(target, str) else tuple(target)
    parts: list[ParquetPart] = []
    first, names = 0, None if features is None else tuple(features)
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError) as error:
            text = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise InputError(f"{path} is not a Parquet file ({text}).") from error
        if names is None:
            names = tuple(n for n in schema.names if n not in targets and n != record_id)
        _require_columns(path, schema, names, targets, record_id)
        for group in range(metadata.num_row_groups):
            records = metadata.row_group(group).num_rows
            if records:
                parts.append(
                    ParquetPart(str(path), group, first, records, names, targets, record_id)
                )
            first += records
    if not parts:
        raise InputError(f"{place} holds no records.")
    return parts


def array_parts(X: Any, y: Any, block_bytes: int) -> list[Any]:
    """The chunks of a Dask array, or slices of an array (a ``numpy.memmap`` is not read here)."""
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"the source must be records by features, but its shape is {X.shape}.")
    if not hasattr(X, "dask"):
        outputs = np.asarray(y) if not hasattr(y, "dask") else y.compute()
        _require_targets(outputs.shape, len(X))
        size = max(1, block_bytes // (8 * X.shape[1]))
        return [
            ArrayPart(start, X[start : start + size], outputs[start : start + size])
            for start in range(0, len(X), size)
        ]
    if any(np.isnan(size) for size in X.chunks[0]):
        raise InputError(
            "the Dask array does not know how long its chunks are: call compute_chunk_sizes() "
            "first."
        )
    import dask.array as da

    X = X.rechunk({1: -1})
    outputs = y if hasattr(y, "dask") else da.from_array(np.asarray(y), chunks=-1)  # type: ignore[no-untyped-call]
    _require_targets(outputs.shape, len(X))
    outputs = outputs.rechunk({0: X.chunks[0], **({1: -1} if outputs.ndim == 2 else {})})
    starts = np.concatenate([[0], np.cumsum(X.chunks[0])])
    return [
        DaskPart(int(starts[i]), int(size), X.blocks[i, 0], outputs.blocks[i])
        for i, size in enumerate(X.chunks[0])
        if size
    ]


def _with_arrays(
    function: Callable[..., Any],
    first_row: int,
    features: NDArray[Any],
    outputs: NDArray[Any],
    *arguments: Any,
) -> Any:
    return function(ArrayPart(first_row, features, outputs), *arguments)


def _require_columns(
    path: Path, schema: Any, names: Sequence[str], targets: Sequence[str], record_id: str | None
) -> None:
    import pyarrow as pa

    if not names:
        raise InputError(f"{path} has no column of features beside the target.")
    for name in (*names, *targets, *([record_id] if record_id else [])):
        if name not in schema.names:
            raise InputError(f"{path} has no column {name!r}; it has {', '.join(schema.names)}.")
        kind = schema.field(name).type
        inner = kind.value_type if _is_list(kind) else kind
        numeric = pa.types.is_integer(inner) or pa.types.is_floating(inner)
        if name != record_id and not (numeric or pa.types.is_boolean(inner)):
            raise InputError(
                f"{path}: column {name!r} holds {kind}; features and targets must be numbers."
            )


def _require_targets(shape: tuple[int, ...], records: int) -> None:
    if len(shape) not in (1, 2) or shape[0] != records or 0 in shape:
        raise InputError(
            f"there are {records} records, but the targets' shape is {shape}; it must be "
            f"({records},) or ({records}, outputs)."
        )


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    )


def _numbers(values: ArrayLike, what: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must hold numbers only.") from None


def _checked(block: RecordBlock, path: str | None = None) -> RecordBlock:
    for values, what in ((block.features, "a feature"), (block.outputs, "the target")):
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            row = block.first_row + int(np.argmin(finite))
            where = "" if path is None else f" of {path}"
            raise InputError(f"{what} is not finite in row {row}{where} (rows count from 0).")
    return block
