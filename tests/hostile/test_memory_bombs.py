"""Small Parquet, Arrow and Hugging Face files that unpack to gigabytes are refused before they do.

Each is made here in full kind and small size, and is refused in a process that says it has little
memory; the file's own claim, not the attempt, is what refuses it.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from leakscope import data
from leakscope._numerics import memory
from leakscope.data.arrow_tables import arrow_claims, row_bytes
from leakscope.errors import InputError
from leakscope.serving.inspection import inspect
from leakscope.serving.uploads import Upload
from leakscope.subjects.stream.costs import stream_cost

MB = 10**6
ROWS = 4 * MB


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: memory.HEADROOM_BYTES + 40 * MB)


def runs_of(value: float, rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([value]))


def stream(table: pa.Table, path: Path, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def run_ends(path: Path) -> None:
    stream(pa.table({f"x{i}": runs_of(1.0 + i, ROWS) for i in range(4)}), path)


def run_ends_in_a_file(path: Path) -> None:
    table = pa.table({f"x{i}": runs_of(1.0 + i, ROWS) for i in range(4)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def zstd_stream(path: Path) -> None:
    stream(pa.table({"x": np.zeros(ROWS), "y": np.zeros(ROWS)}), path, "zstd")


def zstd_file(path: Path) -> None:
    table = pa.table({"x": np.zeros(ROWS), "y": np.zeros(ROWS)})
    feather.write_feather(table, path, compression="zstd")


def arrow_dictionary(path: Path) -> None:
    codes = pa.array(np.zeros(MB, dtype=np.int8))
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["a" * 10_000]))
    stream(pa.table({"x": texts, "y": np.zeros(MB, dtype=np.int8)}), path, "zstd")


def arrow_runs_of_text(path: Path) -> None:
    texts = pa.RunEndEncodedArray.from_arrays(pa.array([MB], pa.int32()), pa.array(["a" * 10_000]))
    stream(pa.table({"x": texts}), path)


def parquet_dictionary(path: Path) -> None:
    texts = pa.array(["a" * 20_000]).take(pa.array(np.zeros(5000, dtype=np.int32)))
    pq.write_table(pa.table({"x": texts, "y": np.arange(5000)}), path)


def parquet_of_one_value(path: Path) -> None:
    pq.write_table(pa.table({f"x{i}": np.zeros(2 * MB) for i in range(4)}), path)


def parquet_zstd(path: Path) -> None:
    texts = pa.array([str(i) + "a" * 200_000 for i in range(300)])
    pq.write_table(pa.table({"x": texts}), path, compression="zstd", use_dictionary=False)


BOMBS: dict[str, tuple[str, Callable[[Path], None], int]] = {
    "runs": ("a.arrow", run_ends, 3_000),
    "runs in a file": ("a.arrow", run_ends_in_a_file, 3_000),
    "zstd stream": ("a.arrow", zstd_stream, 20_000),
    "zstd file": ("a.feather", zstd_file, 30_000),
    "arrow dictionary": ("a.arrow", arrow_dictionary, 3_000),
    "arrow runs of text": ("a.arrow", arrow_runs_of_text, 12_000),
    "parquet dictionary": ("a.parquet", parquet_dictionary, 60_000),
    "parquet of one value": ("a.parquet", parquet_of_one_value, 60_000),
    "parquet zstd": ("a.parquet", parquet_zstd, 20_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_of_many_bytes_is_refused(bomb: str, tmp_path: Path) -> None:
    name, write, most = BOMBS[bomb]
    path = tmp_path / name
    write(path)
    assert path.stat().st_size < most
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=r"needs .* of memory, but only 40 MB can be used here"):
        data.read_dataset(path, target="0")
    assert pa.total_allocated_bytes() - before < 10 * MB


@pytest.mark.parametrize("bomb", BOMBS)
def test_the_cost_of_streaming_is_told_without_unpacking(bomb: str, tmp_path: Path) -> None:
    """Counting the rows of a batch unpacked it."""
    name, write, _ = BOMBS[bomb]
    path = tmp_path / name
    write(path)
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    try:
        with contextlib.suppress(InputError):
            stream_cost(path)
    finally:
        pa.set_memory_pool(usual)
    assert (watched.max_memory() or 0) < 10 * MB


@pytest.mark.parametrize("bomb", ["runs", "zstd file", "parquet dictionary"])
def test_the_server_refuses_it_too(
    bomb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, write, _ = BOMBS[bomb]
    path = tmp_path / name
    write(path)
    monkeypatch.undo()
    with (
        memory.memory_ceiling(40 * MB),
        pytest.raises(InputError, match="but only 40 MB can be used here"),
    ):
        inspect(Upload("id", name, path))


def save_to_disk(folder: Path, table: pa.Table, indices: pa.Table | None = None) -> Path:
    folder.mkdir()
    stream(table, folder / "data.arrow", "zstd")
    state: dict[str, Any] = {"_data_files": [{"filename": "data.arrow"}]}
    if indices is not None:
        stream(indices, folder / "indices.arrow")
        state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    return folder


def hugging_face_runs(folder: Path) -> Path:
    return save_to_disk(folder, pa.table({f"x{i}": runs_of(1.0, ROWS) for i in range(4)}))


def hugging_face_zstd(folder: Path) -> Path:
    return save_to_disk(folder, pa.table({"x": np.zeros(2 * ROWS)}))


def hugging_face_dictionary(folder: Path) -> Path:
    codes = pa.array(np.zeros(10_000, dtype=np.int8))
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["a" * 10_000]))
    return save_to_disk(folder, pa.table({"y": np.arange(10_000), "x": texts}))


def hugging_face_indices(folder: Path) -> Path:
    table = pa.table({"x": pa.array(["a" * 100_000, "b"]), "y": [1.0, 2.0]})
    return save_to_disk(folder, table, pa.table({"indices": pa.array([0] * 1000)}))


@pytest.mark.parametrize(
    "write", [hugging_face_runs, hugging_face_zstd, hugging_face_dictionary, hugging_face_indices]
)
def test_a_hugging_face_folder_is_refused(write: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = write(tmp_path / "saved")
    with pytest.raises(InputError, match=r"needs .* of memory, but only 40 MB can be used here"):
        data.read_dataset(folder, target="0")


def test_what_fits_is_read_whole(tmp_path: Path) -> None:
    """The same encodings, small: every number and text comes out as it went in."""
    rows = 60
    numbers = np.arange(rows, dtype=float)
    kinds = pa.array(np.array(["north", "south", None] * 20, dtype=object))
    table = pa.table(
        {
            "runs": pa.RunEndEncodedArray.from_arrays(
                pa.array([20, 60], pa.int32()), pa.array([1.5, 2.5])
            ),
            "kind": kinds.fill_null("west").dictionary_encode(),
            "text": kinds.fill_null("west"),
            "numbers": numbers,
            "lists": pa.array([[1, 2]] * rows),
            "y": numbers % 7,
        }
    )
    stream(table, tmp_path / "a.arrow", "lz4")
    pq.write_table(table.drop_columns(["runs"]), tmp_path / "a.parquet", compression="zstd")
    read = data.read_dataset(tmp_path / "a.arrow", target="y", ignore=["lists"])
    assert read.features[:, 0].tolist() == [1.5] * 20 + [2.5] * 40
    again = data.read_dataset(tmp_path / "a.parquet", target="y", ignore=["lists"])
    np.testing.assert_array_equal(read.features[:, 1:], again.features)
    assert again.feature_names[:4] == ("kind=north", "kind=south", "kind=west", "text=north")
    with pytest.raises(InputError, match="column 'lists' holds lists or tables"):
        data.read_dataset(tmp_path / "a.parquet", target="y")


def test_sizes_in_full_are_those_of_the_values() -> None:
    texts = pa.array(["a", None, "abc", "", "abc"])
    for column in (
        texts,
        texts.dictionary_encode(),
        texts.cast(pa.large_string()),
        pa.array(texts.to_pylist(), pa.string_view()),
    ):
        assert row_bytes(column).tolist() == [1, 0, 3, 0, 3]
        assert row_bytes(column.slice(2, 2)).tolist() == [3, 0]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["x", "yy"]))
    assert row_bytes(runs).tolist() == [1, 1, 2, 2, 2]
    assert row_bytes(runs.slice(1, 2)).tolist() == [1, 2]
    lists = pa.array([["a", "bb"], [], ["ccc"]])
    assert row_bytes(lists).tolist() == [3, 0, 3]
    struct_array = pa.array([{"a": 1, "b": "xyz"}, {"a": 2, "b": ""}])
    assert row_bytes(struct_array).tolist() == [11, 8]


@pytest.mark.parametrize("cut", [4, 9, 40, 200])
def test_headers_that_lead_out_of_the_file(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    zstd_file(path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises((ValueError, struct.error)):
        arrow_claims(path)
    with pytest.raises(InputError, match="is not an Arrow file"):
        data.read_dataset(path, target="0")
