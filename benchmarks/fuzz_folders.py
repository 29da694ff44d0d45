"""What is fuzzed beside single files: filed records and streamed files."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

from fuzz_inputs import SEEDS, Write, furnish

STREAMED = ("--target", "y", "--kernel", "linear", "--stream")


def folder_targets() -> dict[str, tuple[Write, list[bytes]]]:
    """Each with how its bytes are used, and valid bytes to begin with."""
    import malformed_tables as tables

    table = tables.good_table()
    streams = {
        "data.parquet": [tables.parquet(table)],
    }
    found: dict[str, tuple[Write, list[bytes]]] = {
        f"stream {name}": (_streamed(name), seeds) for name, seeds in streams.items()
    }
    found["stream fit"] = (_streamed_fit, [SEEDS["parquet"], tables.parquet(table)])
    SEEDS["signed"] = _signed()
    for name, held in SEEDS["signed"].items():
        found[f"decide check {name}"] = (_filed(name), [held])
    return found


def _streamed(name: str) -> Write:
    """The bytes as a file that is streamed; begun again, it goes on or says why not."""

    def write(folder: Path, data: bytes) -> list[list[str]]:
        (folder / name).write_bytes(data)
        line = ["audit", name, *STREAMED, "--run-dir", "streamed"]
        return [line, line, ["report", "streamed"]]

    return write


def _streamed_fit(folder: Path, data: bytes) -> list[list[str]]:
    """The same of a fitted model, with numbers or classes as its target."""
    (folder / "data.parquet").write_bytes(data)
    line = ["audit", "data.parquet", "--stream", "--run-dir", "streamed"]
    kind = ["--target", "y", "--model", "ridge", "--alpha", "1"]
    if len(data) % 3 == 0:
        kind = ["--target", "z", "--model", "logistic", "--C", "1", "--task", "classification"]
    return [[*line, *kind], [*line, *kind], ["report", "streamed"]]


def _filed(name: str) -> Write:
    """The bytes as one file of a record that was filed: checked, and reported."""

    def write(folder: Path, data: bytes) -> list[list[str]]:
        (folder / "signed").mkdir()
        for other, held in SEEDS["signed"].items():
            (folder / "signed" / other).write_bytes(data if other == name else held)
        return [["decide", "--check", "signed"], ["decide", "--check", f"signed/{name}"],
                ["report", "signed/decision.json", "--output", "a.html"]]  # fmt: skip

    return write


def _signed() -> dict[str, Any]:
    """A record as decide writes it, file by file."""
    from leakscope.cli import main

    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        furnish(Path(place))
        line = ["decide", "model", "--threshold-advantage", "0.5", "--output", "signed"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(line) in (0, 3, 4)
        return {file.name: file.read_bytes() for file in Path("signed").iterdir()}
