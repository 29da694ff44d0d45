"""Parquet files as tables; what one would take in memory is known from its header first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leakscope._numerics.memory import require_memory
from leakscope.data.files import REMEDY, told_as
from leakscope.errors import InputError, required

# Where a table says which of its columns were a pandas index when it was written.
INDEX = "pandas_index"


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file as a table; a column that is nested holds empty lists, as no feature is."""
    required("pyarrow", "Reading Parquet")
    from pyarrow import parquet

    with told_as(f"{path} is not a Parquet file"):
        with parquet.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
        names = [str(name) for name in schema.names]
        require_distinct(names, path)
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
        pages = sum(one.column(i).total_uncompressed_size
                    for one in groups for i in range(one.num_columns))  # fmt: skip
        # A column of one value is a few bytes however many rows it claims.
        needed = max(8 * about.num_rows * about.num_columns, pages)
        require_memory(needed, f"the table {path}, of {about.num_rows} rows,", REMEDY)
        flat = [field.name for field in schema if not _is_nested(field.type)]
        if not flat:
            raise InputError(f"{path} holds lists or tables only, and no column of plain values.")
        # A text that stands in a million rows is one object to which they all point.
        texts = [field.name for field in schema if _is_text(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read(columns=flat).select(flat)
        frame = pd.DataFrame(table.to_pandas(ignore_metadata=True))
    frame.columns = pd.Index([str(name) for name in frame.columns])
    for name in texts:
        frame[name] = frame[name].astype(object)
    for place, name in enumerate(names):
        if name not in flat:
            frame.insert(place, name, pd.Series([[]] * len(frame), dtype=object))
    about_index = schema.pandas_metadata or {}
    # A counting index is described by an object, and is no column.
    frame.attrs[INDEX] = tuple(
        name
        for name in about_index.get("index_columns", [])
        if isinstance(name, str) and name in names
    )
    return frame


def require_distinct(names: Sequence[str], where: Path | str) -> None:
    """Refuse a table with two columns of one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where} has two columns called {name!r}; rename one of them.")
        seen.add(name)


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

    return bool(types.is_nested(getattr(kind, "value_type", kind)) or types.is_nested(kind))
