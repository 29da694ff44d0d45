"""Streamed audits of many records: memory, speed beside plain reading, kills, and a cluster.

    python benchmarks/streamed.py FOLDER [--records 1000000 10000000 100000000] [--cores 2]
                                  [--kills 10] [--cluster] [--checked 1000]

Records of 20 float32 features and a target are written to FOLDER, one Parquet file for each size,
in row groups of a million (8.4 GB for 100 million; the answers take 8 GB a run).  Every audit is
`leakscope audit FILE --stream` in a process of its own, whose CPU seconds and peak memory the
kernel tells.  Beside it, on as many cores: the same file read by pyarrow, with one matrix product
for each block.

`--kills` ends the audit of the largest file that often, each time after a random while, and goes on
with it; `--cluster` runs it on a Dask cluster of two workers of one thread, of which one is killed
halfway.  Both answers are compared with the unbroken run's by a checksum over every number; where
that run is in FOLDER already it is not done again.  Some records' KL is computed again by plain
NumPy, from a sum and an inverse of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

WIDTH, GROUP, NOISE, BATCH = 20, 1_000_000, 0.01, 2**24 // (8 * 20)


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds by the clock, CPU seconds, and GB at most."""

    wall: float
    cpu: float
    peak: float


def group(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Records with a few heavy ones among them, so that leverages differ."""
    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((WIDTH, rows), dtype=np.float32)
    X *= rng.standard_gamma(2.0, rows).astype(np.float32)
    return X, X[:8].sum(axis=0) + rng.standard_normal(rows, dtype=np.float32)


def written(folder: Path, records: int) -> Path:
    path = folder / f"{records}.parquet"
    if path.exists():
        return path
    partial, writer = path.with_suffix(".partial"), None
    for number, start in enumerate(range(0, records, GROUP)):
        X, y = group(number, min(GROUP, records - start))
        table = pa.table({**{f"x{i:02d}": column for i, column in enumerate(X)}, "y": y})
        if writer is None:
            writer = pq.ParquetWriter(
                partial, table.schema, compression="none", use_dictionary=False
            )
        writer.write_table(table, row_group_size=GROUP)
    writer.close()
    partial.rename(path)
    return path


def command(path: Path, run: Path, *more: str) -> list[str]:
    asked = ["audit", str(path), "--stream", "--target", "y", "--kernel", "linear"]
    asked += ["--noise-variance", str(NOISE), "--run-dir", str(run), *more]
    return [sys.executable, "-m", "leakscope", *asked]


def environment(cores: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(cores), "OPENBLAS_NUM_THREADS": str(cores)}


def waited(process: subprocess.Popen[bytes], start: float) -> Cost:
    """Until it ends; a status other than 0 ends the benchmark."""
    peak, ended = 0.0, 0
    while not ended:
        # Not ru_maxrss, which begins at the peak of the process that started this one.
        peak = max(peak, peak_of(process.pid))
        time.sleep(0.05)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"status {process.returncode}")
    return Cost(time.perf_counter() - start, used.ru_utime + used.ru_stime, peak)


def audited(path: Path, run: Path, cores: int, *more: str) -> Cost:
    shutil.rmtree(run, ignore_errors=True)
    start = time.perf_counter()
    quiet = subprocess.DEVNULL
    return waited(
        subprocess.Popen(
            command(path, run, *more), env=environment(cores), stdout=quiet, stderr=quiet
        ),
        start,
    )


def plainly_read(path: Path, cores: int) -> Cost:
    """The same file through pyarrow, and X X^T of every block; in this process."""

    def one(number: int) -> np.ndarray:
        total = np.zeros((WIDTH, WIDTH))
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH, row_groups=[number], use_threads=False):
                X = np.empty((WIDTH, batch.num_rows))
                for i in range(WIDTH):
                    X[i] = batch.column(i)
                total += X @ X.T
        return total

    used = resource.getrusage(resource.RUSAGE_SELF)
    start, before = time.perf_counter(), used.ru_utime + used.ru_stime
    with threadpool_limits(1), ThreadPoolExecutor(cores) as pool:
        list(pool.map(one, range(pq.ParquetFile(path).num_row_groups)))
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(time.perf_counter() - start, used.ru_utime + used.ru_stime - before, np.nan)


def checksum(run: Path) -> str:
    """Over every number of every answer, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted((run / "answers").glob("*.parquet")):
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(GROUP):
                for column in batch.columns:
                    digest.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)))
    return digest.hexdigest()


def killed(path: Path, run: Path, cores: int, kills: int, wall: float) -> tuple[float, int]:
    """Killed so often, at random, and then left to end: seconds in all, and kills that struck."""
    shutil.rmtree(run, ignore_errors=True)
    rng, struck, begun = np.random.default_rng(3), 0, time.perf_counter()
    while True:
        process = subprocess.Popen(
            command(path, run),
            env=environment(cores),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if struck == kills:
            waited(process, 0.0)
            return time.perf_counter() - begun, struck
        time.sleep(2.0 + rng.random() * 1.7 * wall / (kills + 1))
        if process.poll() is not None:
            return time.perf_counter() - begun, struck
        process.send_signal(signal.SIGKILL)
        process.wait()
        struck += 1


def on_cluster(path: Path, run: Path, wall: float) -> tuple[Cost, float]:
    """With two workers, one of them killed halfway: the client's cost, and the workers' peak."""
    import distributed

    shutil.rmtree(run, ignore_errors=True)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        start = time.perf_counter()
        process = subprocess.Popen(
            command(path, run, "--cluster", cluster.scheduler_address),
            env=environment(1),
            stdout=subprocess.DEVNULL,
        )
        time.sleep(0.5 * wall)
        victim, survivor = client.run(os.getpid).values()
        os.kill(victim, signal.SIGKILL)
        return waited(process, start), peak_of(survivor)


def peak_of(process: int) -> float:
    """GB, the high-water mark of resident memory."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    return 0.0


def largest_error(path: Path, run: Path, records: int, count: int) -> float:
    """Of the KL of some records, against A^{-1} and the textbook formula for two normals."""
    wanted = np.unique(np.linspace(0, records - 1, count).astype(np.int64))
    gram, sums, kept = np.zeros((WIDTH + 1, WIDTH + 1)), np.zeros(WIDTH + 1), []
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            rows = np.column_stack(file.read_row_group(number).columns).astype(np.float64)
            gram, sums = gram + rows.T @ rows, sums + rows.sum(axis=0)
            own = wanted[wanted // GROUP == number] - number * GROUP
            kept.append(rows[own])
    mean = sums / records
    centred = gram / records - np.outer(mean, mean)
    scale = np.sqrt(np.diagonal(centred))
    moments = records * centred / np.outer(scale, scale)
    # The linear kernel as the command has it: products of features, and a bias of 1.
    A = np.eye(WIDTH + 1) * NOISE
    A[:WIDTH, :WIDTH] += moments[:WIDTH, :WIDTH]
    A[WIDTH, WIDTH] += records
    inverse = np.linalg.inv(A)
    beta = inverse[:, :WIDTH] @ moments[:WIDTH, WIDTH]
    scaled = (np.concatenate(kept) - mean) / scale
    X = np.column_stack([scaled[:, :WIDTH], np.ones(len(scaled))])
    h, y = np.einsum("ij,jk,ik->i", X, inverse, X), scaled[:, WIDTH]
    shift = h * (y - X @ beta) / (1.0 - h)
    x = h / (1.0 - h)
    known = 0.5 * (x - np.log1p(x) + shift**2 / (NOISE * h))
    found = pq.read_table(run / "answers", columns=["record_id", "kl"])
    assert np.array_equal(found["record_id"].to_numpy()[wanted], wanted)
    return float(np.max(np.abs(found["kl"].to_numpy()[wanted] / known - 1.0)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--checked", type=int, default=1000)
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    records = asked.records[-1]
    path, run = asked.folder / f"{records}.parquet", asked.folder / f"run-{records}"
    if not (run / "result.json").exists():
        measure(asked, path, run)
    wall = json.loads((run / "result.json").read_text())["timing"]["audit"]
    known, other = checksum(run), asked.folder / "run-again"
    if asked.kills:
        seconds, struck = killed(path, other, asked.cores, asked.kills, wall)
        same = checksum(other) == known
        left = [file.name for file in (other / "answers").iterdir() if file.name[0] == "."]
        print(f"killed {struck} times: {seconds:.0f} s in all, the same bits: {same}, {left}")
    if asked.cluster:
        there, peak = on_cluster(path, other, wall)
        same = checksum(other) == known
        print(
            f"two workers, one killed: {there.wall:.0f} s, client {there.cpu:.1f} s of CPU and "
            f"{there.peak:.2f} GB, worker {peak:.2f} GB, the same bits: {same}"
        )
    shutil.rmtree(other, ignore_errors=True)


def measure(asked: argparse.Namespace, path: Path, run: Path) -> None:
    """Every size, unbroken, beside plain reading; the largest run stays."""
    print("| records | cores | seconds | CPU µs a record | peak GB | reading and product: seconds,")
    print("CPU µs | ratio of CPU |\n|---|---|---|---|---|---|---|", flush=True)
    for records in asked.records:
        source = written(asked.folder, records)
        plain = plainly_read(source, asked.cores)
        cost = audited(source, run, asked.cores)
        each, plain_each = cost.cpu / records * 1e6, plain.cpu / records * 1e6
        print(
            f"| {records:,} | {asked.cores} | {cost.wall:.1f} | {each:.2f} | {cost.peak:.2f} | "
            f"{plain.wall:.1f}, {plain_each:.3f} | {each / plain_each:.1f} |",
            flush=True,
        )
    size = sum(file.stat().st_size for file in (run / "answers").iterdir())
    print(f"\nanswers: {size / records:.1f} bytes a record; checksum {checksum(run)}", flush=True)
    if asked.checked:
        error = largest_error(path, run, records, asked.checked)
        print(f"KL of {asked.checked} records against plain NumPy: {error:.1e}", flush=True)
    print(f"10^9 records: {each / 3.6:.2f} core hours, {size / records:.0f} GB of answers")


if __name__ == "__main__":
    main()
