"""Fitted models on files of any size: time and memory of the passes, beside the audit in memory.

    python benchmarks/streamed_fits.py make ROWS FILE.parquet
    python benchmarks/streamed_fits.py run FILE.parquet ridge|logistic [--memory] [--C 1]

``make`` writes rows of 20 columns, a quantity ``y`` and two classes ``label``.  ``run`` is one
``leakscope audit``, streamed, or in memory with --memory: its processor and wall time, and the most
memory that it held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

COLUMNS, GROUP = 20, 250_000


def make(rows: int, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, weights = None, np.linspace(1.0, -1.0, COLUMNS)
    for start in range(0, rows, GROUP):
        rng = np.random.default_rng(start)
        X = rng.normal(size=(min(GROUP, rows - start), COLUMNS))
        score = X @ weights
        columns = {f"x{i:02d}": X[:, i] for i in range(COLUMNS)}
        columns["y"] = score + rng.normal(size=len(X)) * 2.0
        columns["label"] = np.where(score + rng.logistic(size=len(X)) > 0.0, "yes", "no")
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def run(path: str, model: str, in_memory: bool, given: list[str]) -> None:
    target, other = ("label", "y") if model == "logistic" else ("y", "label")
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "leakscope", "audit", path, "--target", target]
        command += ["--ignore", other, "--model", model, *given, "--run-dir", f"{place}/run"]
        command += ["--no-stream" if in_memory else "--stream"]
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        told = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
    print("\n".join(told.splitlines()[:4]))
    print(
        f"{path} {model} {' '.join(given)} {'in memory' if in_memory else 'streamed'}: status "
        f"{status}, {time.perf_counter() - begin:.0f} s, processor "
        f"{used.ru_utime + used.ru_stime:.0f} s, {used.ru_maxrss / 2**20:.2f} GiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "run"))
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--memory", action="store_true")
    given, more = parser.parse_known_args()
    if given.what == "make":
        make(int(given.first), given.second)
    else:
        run(given.first, given.second, given.memory, more)


if __name__ == "__main__":
    main()
