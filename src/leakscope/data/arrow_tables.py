"""Parquet and Arrow files to tables; what they would take is known before it is taken.

Three things make a small file large: compression, dictionaries (a text once, and a million times
its number) and run-end encoding (a value once, and how often).  Compressed sizes stand in the
headers; dictionaries and runs are read as they are and measured row by row before they are written
out in full.  Nested columns are never written out: no feature is nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.arrow_claims import MAGIC, arrow_claims
from leakscope.data.reasons import reason
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError

REMEDY = "use fewer records, or a machine with more memory"

# Where a table says which of its columns were a pandas index when it was written.
INDEX = "pandas_index"


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file as a table."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            # A column of one value is a few bytes however many rows it claims.
            needed = max(8 * about.num_rows * about.num_columns, _unpacked(about))
            require_memory(needed, f"the table {path}, of {about.num_rows} rows,", REMEDY)
            schema = file.schema_arrow
        texts = [field.name for field in schema if _is_text(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            return _frame(_row_groups(file, schema, path), path)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a Parquet file ({reason(error)}).") from error


def read_arrow(path: Path) -> pd.DataFrame:
    """An Arrow IPC file (Feather) or stream as a table."""
    try:
        table = open_arrow(path)
        return _frame(table, path)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not an Arrow file ({reason(error)}).") from error


def open_arrow(path: Path, *, mapped: bool = False) -> Any:
    """The ``pyarrow.Table`` of an IPC file or stream, found whole; dictionaries stay as they are.

    Whatever pyarrow raises goes on to the caller, who knows what the file should have been.
    """
    import pyarrow

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
    """How many bytes each value of an Arrow array takes, written out in full.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from leakscope.data.arrow_tables import row_bytes
    >>> row_bytes(pa.array(["a", "abc", "a"]).dictionary_encode()).tolist()
    [1, 3, 1]
    """
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
    if kind in _views():
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


def _views() -> tuple[Any, ...]:
    import pyarrow

    if not hasattr(pyarrow, "string_view"):
        return ()
    return (pyarrow.string_view(), pyarrow.binary_view())


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


def _unpacked(about: Any) -> int:
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
