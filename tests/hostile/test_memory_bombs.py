"""Small Parquet files that unpack to gigabytes are refused by what their headers claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope import data
from leakscope._numerics import memory
from leakscope.errors import InputError

MB = 10**6


def of_one_value(path: Path) -> None:
    pq.write_table(pa.table({f"x{i}": np.zeros(2 * MB) for i in range(4)}), path)


def packed(path: Path) -> None:
    texts = pa.array([str(i) + "a" * 200_000 for i in range(300)])
    pq.write_table(pa.table({"x": texts}), path, compression="zstd", use_dictionary=False)


@pytest.mark.parametrize("write", [of_one_value, packed])
def test_a_small_file_of_many_bytes_is_refused(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: memory.HEADROOM_BYTES + 40 * MB)
    path = tmp_path / "a.parquet"
    write(path)
    assert path.stat().st_size < 60_000
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="40 MB can be used here"):
        data.read_dataset(path, target="0")
    assert pa.total_allocated_bytes() - before < 10 * MB


def test_a_text_of_many_rows_is_one_object(tmp_path: Path) -> None:
    """20 kB in 5,000 rows would be 100 MB, were each row a text of its own."""
    texts = pa.array(["a" * 20_000]).take(pa.array(np.zeros(5000, dtype=np.int32)))
    pq.write_table(pa.table({"x": texts, "y": np.arange(5000)}), tmp_path / "a.parquet")
    column = data.read_table(tmp_path / "a.parquet")["x"]
    assert len({id(value) for value in column}) == 1


def test_what_is_nested_is_told_of(tmp_path: Path) -> None:
    rows = 60
    kinds = pa.array(["north", "south", "west"] * 20)
    table = pa.table(
        {
            "kind": kinds.dictionary_encode(),
            "text": kinds,
            "numbers": np.arange(rows, dtype=float),
            "lists": pa.array([[1, 2]] * rows),
            "y": np.arange(rows) % 7,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    read = data.read_dataset(tmp_path / "a.parquet", target="y", ignore=["lists"])
    assert read.feature_names[:4] == ("kind=north", "kind=south", "kind=west", "text=north")
    assert read.features[:, -1].tolist() == list(range(rows))
    with pytest.raises(InputError, match="column 'lists'"):
        data.read_dataset(tmp_path / "a.parquet", target="y")
