"""Parquet and Arrow files to tables; what they would take is known before it is taken.

Three things make a small file large: compression, dictionaries (a text once, and a million times
its number) and run-end encoding (a value once, and how often).  Compressed sizes stand in the
headers; dictionaries and runs are read as they are and measured row by row before they are written
out in full.  Nested columns are never written out: no feature is nested.

A buffer of an Arrow file that is compressed says in its first eight bytes how long it is unpacked,
and pyarrow allocates that: 180 kilobytes of zstd can be 6 gigabytes.  pyarrow does not tell these
sizes, so the headers are read here.  They are FlatBuffers (Arrow columnar format, "Encapsulated
message format" and Message.fbs), of which five tables are needed: Footer, Block, Message,
RecordBatch and DictionaryBatch.  A header that leads out of the file ends in an error of
``struct``, which is told as a file that is none.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.files import REMEDY, require_file, told_as
from leakscope.errors import InputError, required

# Where a table says which of its columns were a pandas index when it was written.
INDEX = "pandas_index"


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file as a table."""
    required("pyarrow", "Reading Parquet")
    from pyarrow import parquet

    with told_as(f"{path} is not a Parquet file"):
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            # A column of one value is a few bytes however many rows it claims.
            needed = max(8 * about.num_rows * about.num_columns, _unpacked_pages(about))
            require_memory(needed, f"the table {path}, of {about.num_rows} rows,", REMEDY)
            schema = file.schema_arrow
        texts = [field.name for field in schema if _is_text(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            return _frame(_row_groups(file, schema, path), path)


def read_arrow(path: Path) -> pd.DataFrame:
    """An Arrow IPC file (Feather) or stream as a table."""
    with told_as(f"{path} is not an Arrow file"):
        return _frame(open_arrow(path), path)


def open_arrow(path: Path, *, mapped: bool = False) -> Any:
    """The ``pyarrow.Table`` of an IPC file or stream, found whole; dictionaries stay as they are.

    Whatever pyarrow raises goes on to the caller, who knows what the file should have been.
    """
    pyarrow = required("pyarrow", "Reading Arrow files")

    if require_file(path) == 0:
        raise ValueError("it is empty")
    claims = arrow_claims(path)
    require_memory(claims.unpacked_bytes, f"what {path} unpacks to", REMEDY)
    source = pyarrow.memory_map(str(path), "r") if mapped else pyarrow.OSFile(str(path), "rb")
    is_file = source.read(len(MAGIC)) == MAGIC
    source.seek(0)
    opened = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    reader = opened(source)
    needed = 8 * claims.rows * max(len(reader.schema), 1)
    require_memory(needed, f"the table {path}, of {claims.rows} rows,", REMEDY)
    table = reader.read_all()
    # Offsets that lead out of a buffer would be followed without a question.
    table.validate(full=True)
    return table


def require_memory_in_full(column: Any, what: str) -> None:
    """Refuse a column whose dictionary or runs, written out in full, do not fit."""
    total = sum(int(row_bytes(chunk).sum()) for chunk in column.chunks)
    require_memory(total, what, REMEDY)


def row_bytes(array: Any) -> NDArray[np.int64]:
    """How many bytes each value of an Arrow array takes, written out in full."""
    from pyarrow import compute, types

    kind, count = array.type, len(array)
    if types.is_dictionary(kind):
        lengths = row_bytes(array.dictionary)
        codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        present = array.is_valid().to_numpy(zero_copy_only=False)
        found = lengths[codes] if len(lengths) else np.zeros(count, dtype=np.int64)
        return np.where(present, found, 0)
    if types.is_run_end_encoded(kind):
        start, runs = array.find_physical_offset(), array.find_physical_length()
        ends = array.run_ends.to_numpy()[start : start + runs].astype(np.int64) - array.offset
        ends = np.minimum(ends, count)
        return np.repeat(row_bytes(array.values.slice(start, runs)), np.diff(ends, prepend=0))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], dtype=np.int32)[::4]
        return views[array.offset : array.offset + count].astype(np.int64)
    if _is_text(kind):
        known = compute.binary_length(array).fill_null(0)
        return np.asarray(known.to_numpy(zero_copy_only=False)).astype(np.int64)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        inside = np.concatenate([[0], np.cumsum(row_bytes(array.values))])
        return np.asarray(np.diff(inside[array.offsets.to_numpy()]))
    if types.is_fixed_size_list(kind):
        inside = np.concatenate([[0], np.cumsum(row_bytes(array.flatten()))])
        return np.full(count, -(-int(inside[-1]) // max(count, 1)), dtype=np.int64)
    if types.is_struct(kind):
        parts = [row_bytes(array.field(place)) for place in range(kind.num_fields)]
        return np.sum(parts, axis=0) if parts else np.zeros(count, dtype=np.int64)
    return np.full(count, -(-_bit_width(kind) // 8), dtype=np.int64)


def _bit_width(kind: Any) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # a null, a union
        return 64


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _is_nested(kind: Any) -> bool:
    from pyarrow import types

    # A dictionary or a run is of values, which may be nested themselves.
    inner = getattr(kind, "value_type", kind)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _is_nested(inner)
    return bool(types.is_nested(kind))


def _unpacked_pages(about: Any) -> int:
    """The bytes of all pages of a Parquet file, unpacked."""
    total = 0
    for group in range(about.num_row_groups):
        held = about.row_group(group)
        total += sum(held.column(i).total_uncompressed_size for i in range(held.num_columns))
    return total


def _row_groups(file: Any, schema: Any, path: Path) -> Any:
    """The columns that are not nested, texts as dictionaries, one row group after another."""
    import pyarrow

    flat = [field.name for field in schema if not _is_nested(field.type)]
    parts, held = [], 0
    for group in range(file.metadata.num_row_groups):
        part = file.read_row_group(group, columns=flat).select(flat)
        held += part.nbytes
        # Headers may claim less than pages hold.
        require_memory(part.nbytes, f"the table {path}, {held} bytes of which are read,", REMEDY)
        parts.append(part)
    rows = file.metadata.num_rows
    table = pyarrow.concat_tables(parts) if parts else schema.empty_table().select(flat)
    if table.num_rows != (rows if flat else 0):
        raise ValueError(f"it claims {rows} rows, but holds {table.num_rows}")
    table.validate(full=True)
    columns, fields = [], []
    for field in schema:
        if field.name in flat:
            column = table.column(field.name)
            if column.type != field.type:
                require_memory_in_full(column, f"column {field.name!r} of {path}, written out,")
                column = column.cast(field.type)
            columns.append(column)
            fields.append(field)
        else:
            columns.append(pyarrow.nulls(rows))
            fields.append(pyarrow.field(field.name, pyarrow.null(), metadata=_NESTED))
    return pyarrow.table(columns, schema=pyarrow.schema(fields, metadata=schema.metadata))


_NESTED = {b"leakscope": b"nested"}


def _frame(table: Any, path: Path) -> pd.DataFrame:
    """An Arrow table as a pandas one; a list stands in every row of a column that is nested."""
    names = [str(name) for name in table.column_names]
    require_distinct(names, path)
    index = _index_columns(table.schema, names)
    nested = [
        place
        for place, field in enumerate(table.schema)
        if _is_nested(field.type) or field.metadata == _NESTED
    ]
    if len(nested) == len(names):
        raise InputError(f"{path} holds lists or tables only, and no column of plain values.")
    for place in reversed(nested):
        table = table.remove_column(place)
    for name, column in zip(table.column_names, table.columns, strict=True):
        require_memory_in_full(column, f"column {str(name)!r} of {path}, written out,")
    # An index that pandas wrote is a column here, and is told of by its name.
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    frame.columns = names_left = [str(name) for name in frame.columns]
    assert names_left == [name for place, name in enumerate(names) if place not in nested]
    for place in nested:
        frame.insert(place, names[place], pd.Series([[]] * len(frame), dtype=object))
    frame.attrs[INDEX] = index
    return frame


def _index_columns(schema: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that were the index of the pandas table that was written."""
    about = schema.pandas_metadata or {}
    found = about.get("index_columns", []) if isinstance(about, dict) else []
    # A counting index is described by an object, and is no column.
    return tuple(name for name in found if isinstance(name, str) and name in names)


def require_distinct(names: Sequence[str], where: Path | str) -> None:
    """Refuse a table with two columns of one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where} has two columns called {name!r}; rename one of them.")
        seen.add(name)


MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF

# Message.fbs: what a message's header is, and the places of fields in their tables.
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_DICTIONARY_DATA = 1
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")


@dataclass(frozen=True)
class ArrowClaims:
    """What a file says that it holds.

    ``unpacked_bytes`` is of all buffers, once those that are compressed are unpacked; ``batches``
    are rows and unpacked bytes of each record batch.  A file with a footer can be read in any
    order; one without is a stream.
    """

    rows: int
    unpacked_bytes: int
    batches: tuple[tuple[int, int], ...]
    has_footer: bool


def arrow_claims(path: Path) -> ArrowClaims:
    """Read the headers of an Arrow IPC file or stream.

    A header that is none, or leads out of the file, is a ValueError or a struct.error.
    """
    with path.open("rb") as stream:
        # Closed with its last view: closing it before would be an error of its own, in place of
        # the one that says what is wrong with the file.
        view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    has_footer = view[: len(MAGIC)] == MAGIC
    messages = _of_file(view) if has_footer else _of_stream(view)
    found = [_claims_of(header, body) for header, body in messages]
    batches = tuple((rows, size) for rows, size in found if rows is not None)
    unpacked = sum(size for _, size in found)
    return ArrowClaims(sum(rows for rows, _ in batches), unpacked, batches, has_footer)


def _of_file(view: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """The messages that a file's footer names: those that are read, wherever they lie."""
    (size,) = struct.unpack_from("<i", view, len(view) - len(MAGIC) - 4)
    end = len(view) - len(MAGIC) - 4
    if not 0 < size <= end:
        raise ValueError("its footer is longer than the file")
    with view[end - size : end] as footer:
        root = _indirect(footer, 0)
        blocks = [
            block
            for field in (_FOOTER_DICTIONARIES, _FOOTER_BATCHES)
            for block in _structs(footer, root, field, _BLOCK)
        ]
    for offset, header_length, body_length in blocks:
        if min(offset, header_length, body_length) < 0 or offset + header_length > len(view):
            raise ValueError("its footer leads out of the file")
        (first,) = struct.unpack_from("<I", view, offset)
        prefix = 8 if first == _CONTINUATION else 4
        start = offset + header_length
        yield view[offset + prefix : start], view[start : start + body_length]


def _of_stream(view: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    place = 0
    while place + 4 <= len(view):
        (length,) = struct.unpack_from("<I", view, place)
        place += 4
        if length == _CONTINUATION:
            (length,) = struct.unpack_from("<I", view, place)
            place += 4
        if length == 0:
            return
        header = view[place : place + length]
        place += length
        field = _field(header, _indirect(header, 0), _BODY_LENGTH)
        body_length = 0 if field is None else struct.unpack_from("<q", header, field)[0]
        if body_length < 0 or place + body_length > len(view):
            raise ValueError("it was cut, or a header is wrong")
        yield header, view[place : place + body_length]
        place += body_length


def _claims_of(header: memoryview, body: memoryview) -> tuple[int | None, int]:
    """The rows of a record batch, None of any other message; and its unpacked bytes."""
    message = _indirect(header, 0)
    kind_at, table_at = _field(header, message, _HEADER_TYPE), _field(header, message, _HEADER)
    if kind_at is None or table_at is None:
        raise ValueError("a message has no header")
    (kind,), table = struct.unpack_from("<B", header, kind_at), _indirect(header, table_at)
    if kind == _DICTIONARY_BATCH:
        data = _field(header, table, _DICTIONARY_DATA)
        if data is None:
            raise ValueError("a dictionary has no data")
        return None, _unpacked(header, _indirect(header, data), body)
    if kind != _RECORD_BATCH:
        return None, 0
    length_at = _field(header, table, _LENGTH)
    rows = 0 if length_at is None else struct.unpack_from("<q", header, length_at)[0]
    if rows < 0:
        raise ValueError(f"a batch claims {rows} rows")
    return rows, _unpacked(header, table, body)


def _unpacked(header: memoryview, batch: int, body: memoryview) -> int:
    """How long the buffers of a batch are once they are unpacked."""
    if _field(header, batch, _COMPRESSION) is None:
        return len(body)
    total = 0
    for offset, length in _structs(header, batch, _BUFFERS, _BUFFER):
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("a buffer leads out of the file")
        if length < 8:
            continue
        (claimed,) = struct.unpack_from("<q", body, offset)
        # -1 stands before a buffer that is left as it is.
        if claimed < -1:
            raise ValueError(f"a buffer claims {claimed} bytes")
        total += length - 8 if claimed == -1 else claimed
    return total


def _indirect(view: memoryview, place: int) -> int:
    """Where the offset that stands at a place leads."""
    found: int = place + struct.unpack_from("<I", view, place)[0]
    return found


def _field(view: memoryview, table: int, number: int) -> int | None:
    """Where a field of a table stands; None where it is left out."""
    vtable = table - struct.unpack_from("<i", view, table)[0]
    if vtable < 0:
        raise ValueError("a header leads out of the file")
    (size,) = struct.unpack_from("<H", view, vtable)
    entry = 4 + 2 * number
    if entry + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", view, vtable + entry)
    return table + offset if offset else None


def _structs(
    view: memoryview, table: int, number: int, form: struct.Struct
) -> Iterator[tuple[int, ...]]:
    """The entries of a field that is a vector of structs."""
    field = _field(view, table, number)
    if field is None:
        return
    vector = _indirect(view, field)
    (count,) = struct.unpack_from("<I", view, vector)
    if vector + 4 + count * form.size > len(view):
        raise ValueError("a header leads out of the file")
    for place in range(count):
        yield form.unpack_from(view, vector + 4 + place * form.size)
