"""Records in blocks: from Parquet files, Dask arrays or arrays on disk, never all in memory.

A source is cut into parts (a row group or batch of a file, a chunk of a Dask array), each of which
can be sent to a worker and read there, block by block.  Row numbers count through the whole source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

# By column of subgroups: (b,) which value each record has, and the values.
Labels = Mapping[str, tuple[NDArray[np.intp], Sequence[str]]]


@dataclass(frozen=True)
class RecordBlock:
    """Some records: ``features`` (b, d), ``outputs`` (b, C), ``record_ids`` (b,), subgroups."""

    first_row: int
    record_ids: NDArray[Any]
    features: FloatArray
    outputs: FloatArray
    labels: Labels = field(default_factory=dict)


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
            features = plain_numbers(self.features[start : start + size], "the features")
            outputs = plain_numbers(self.outputs[start : start + size], "the targets")
            first = self.first_row + start
            ids = np.arange(first, first + len(features))
            yield checked(RecordBlock(first, ids, features, outputs.reshape(len(features), -1)))

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


def _require_targets(shape: tuple[int, ...], records: int) -> None:
    if len(shape) not in (1, 2) or shape[0] != records or 0 in shape:
        raise InputError(
            f"there are {records} records, but the targets' shape is {shape}; it must be "
            f"({records},) or ({records}, outputs)."
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
