"""What an Arrow file unpacks to, read off its headers before anything is unpacked.

A buffer that is compressed says in its first eight bytes how long it is unpacked, and pyarrow
allocates that: 180 kilobytes of zstd can be 6 gigabytes.  The headers are FlatBuffers (Arrow
columnar format, "Encapsulated message format" and Message.fbs), of which five tables are needed:
Footer, Block, Message, RecordBatch and DictionaryBatch.  A header that leads out of the file ends
in an error of ``struct``, which the caller tells as a file that is none.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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

    Attributes
    ----------
    rows
        Of all record batches together.
    unpacked_bytes
        Of all buffers, once those that are compressed are unpacked.
    batches
        Rows and unpacked bytes of each record batch.
    has_footer
        True for the file format, whose batches can be read in any order; False for a stream.

    Examples
    --------
    >>> from leakscope.data import ArrowClaims
    >>> ArrowClaims(rows=3, unpacked_bytes=24, batches=((2, 16), (1, 8))).batches[1]
    (1, 8)
    """

    rows: int
    unpacked_bytes: int
    batches: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    has_footer: bool = field(default=True, repr=False)


def arrow_claims(path: Path) -> ArrowClaims:
    """Read the headers of an Arrow IPC file or stream.

    Raises
    ------
    ValueError, struct.error
        Where a header is none, or leads out of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from pyarrow import feather
    >>> from leakscope.data.arrow_claims import arrow_claims
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.arrow")
    ...     feather.write_feather(pa.table({"a": np.zeros(100_000)}), file, compression="zstd")
    ...     file.stat().st_size < 2_000, arrow_claims(file)
    (True, ArrowClaims(rows=100000, unpacked_bytes=800000))
    """
    with path.open("rb") as stream:
        # Closed with its last view: closing it before would be an error of its own, in place of
        # the one that says what is wrong with the file.
        view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    has_footer = view[: len(MAGIC)] == MAGIC
    messages = _of_file(view) if has_footer else _of_stream(view)
    found = [_claims_of(header, body) for header, body in messages]
    batches = tuple((one.rows, one.unpacked_bytes) for one in found if one.is_batch)
    return ArrowClaims(
        sum(rows for rows, _ in batches),
        sum(one.unpacked_bytes for one in found),
        batches,
        has_footer,
    )


class _Claim(NamedTuple):
    is_batch: bool
    rows: int
    unpacked_bytes: int


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


def _claims_of(header: memoryview, body: memoryview) -> _Claim:
    message = _indirect(header, 0)
    kind_at, table_at = _field(header, message, _HEADER_TYPE), _field(header, message, _HEADER)
    if kind_at is None or table_at is None:
        raise ValueError("a message has no header")
    (kind,), table = struct.unpack_from("<B", header, kind_at), _indirect(header, table_at)
    if kind == _DICTIONARY_BATCH:
        data = _field(header, table, _DICTIONARY_DATA)
        if data is None:
            raise ValueError("a dictionary has no data")
        return _Claim(False, 0, _unpacked(header, _indirect(header, data), body))
    if kind != _RECORD_BATCH:
        return _Claim(False, 0, 0)
    length_at = _field(header, table, _LENGTH)
    rows = 0 if length_at is None else struct.unpack_from("<q", header, length_at)[0]
    if rows < 0:
        raise ValueError(f"a batch claims {rows} rows")
    return _Claim(True, rows, _unpacked(header, table, body))


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
