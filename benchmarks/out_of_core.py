"""The feature-space audit of many records on a local Dask cluster with 4 GB of memory in all.

    python benchmarks/out_of_core.py [RECORDS] [--source parquet|dask] [--folder FOLDER] [--here]

Records of 256 float32 numbers, 10 million by default: 10 GB, written as Parquet files under FOLDER
(a temporary one by default, removed at the end), or made on the fly, chunk by chunk, as a Dask
array.  Two workers of one thread and 1.5 GB each leave 1 GB to the process that writes the answers;
peak memory is the kernel's own high-water mark of every process.  `--here` uses no cluster.

Two checks.  The laws of 1,000 records spread over the whole run against plain NumPy: A summed in
another process's way and inverted, the KL of two normals by its textbook formula.  And the first
100,000 records alone, out of core, against the in-memory `lood.audit_features`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leakscope import lood
from leakscope.auditing import audit_out_of_core

WIDTH, CHUNK, NOISE, SUBSAMPLE = 256, 50_000, 1.0, 100_000


def chunk(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Records with a few heavy ones among them, so that leverages differ."""
    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((rows, WIDTH), dtype=np.float32)
    X *= rng.standard_gamma(2.0, (rows, 1)).astype(np.float32)
    y = X[:, :8].sum(axis=1, dtype=np.float64) + rng.standard_normal(rows)
    return X, y


def sizes(records: int) -> list[int]:
    return [min(CHUNK, records - start) for start in range(0, records, CHUNK)]


def write_parquet(folder: Path, records: int) -> None:
    for number, rows in enumerate(sizes(records)):
        X, y = chunk(number, rows)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), WIDTH)
        table = pa.table({"x": vectors, "y": y})
        pq.write_table(
            table, folder / f"{number:05d}.parquet", compression="none", use_dictionary=False
        )


def dask_arrays(records: int):
    import dask
    import dask.array as da

    X, y = [], []
    for number, rows in enumerate(sizes(records)):
        made = dask.delayed(chunk, pure=True)(number, rows)
        X.append(da.from_delayed(made[0], (rows, WIDTH), np.float32))
        y.append(da.from_delayed(made[1], (rows,), np.float64))
    return da.concatenate(X), da.concatenate(y)


def peak_of(process: int | str) -> float:
    """GB, the high-water mark of resident memory."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    return float("nan")


def plain_numpy(records: int, wanted: np.ndarray) -> np.ndarray:
    """KL(without || with) of the wanted rows, from A^{-1} and the formula for two normals."""
    gram, product, kept = np.zeros((WIDTH, WIDTH)), np.zeros(WIDTH), []
    for number, rows in enumerate(sizes(records)):
        X, y = chunk(number, rows)
        X = X.astype(np.float64)
        gram, product = gram + X.T @ X, product + y @ X
        own = wanted[(wanted >= number * CHUNK) & (wanted < number * CHUNK + rows)]
        own = own - number * CHUNK
        kept.append((X[own], y[own]))
    inverse = np.linalg.inv(gram + NOISE * np.eye(WIDTH))
    X, y = np.concatenate([k[0] for k in kept]), np.concatenate([k[1] for k in kept])
    h = np.einsum("ij,jk,ik->i", X, inverse, X)
    mean_with = X @ (inverse @ product)
    mean_without = (mean_with - h * y) / (1.0 - h)
    with_, without = NOISE * h, NOISE * h / (1.0 - h)
    shift = mean_with - mean_without
    return 0.5 * (without / with_ - 1.0 - np.log(without / with_) + shift**2 / with_)


def compared(records: int, folder: Path) -> None:
    """The first records alone: out of core and in memory."""
    parts = [chunk(number, rows) for number, rows in enumerate(sizes(min(records, SUBSAMPLE)))]
    X, y = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    output = folder / "subsample.parquet"
    found = audit_out_of_core(X, y, noise_variance=NOISE, output=output).to_frame()
    known = lood.audit_features(X, y, NOISE)
    worst = max(
        float(np.max(np.abs(found["kl"] / known.kl - 1.0))),
        float(np.max(np.abs(found["leverage"] / known.leverage - 1.0))),
    )
    print(f"| first {len(X)} records alone against lood.audit_features | {worst:.1e} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--source", choices=("parquet", "dask"), default="parquet")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    try:
        measured(asked, folder)
    finally:
        shutil.rmtree(folder)


def measured(asked: argparse.Namespace, folder: Path) -> None:
    data = folder / "records"
    if asked.source == "parquet":
        data.mkdir()
        start = time.perf_counter()
        write_parquet(data, asked.records)
        print(f"records written in {time.perf_counter() - start:.0f} s")
        source, target = data, "y"
    else:
        source, target = dask_arrays(asked.records)
    # Writing the records is not part of the audit's memory.
    Path("/proc/self/clear_refs").write_text("5")
    start, output = time.perf_counter(), folder / "laws.parquet"
    if asked.here:
        found = audit_out_of_core(source, target, noise_variance=NOISE, output=output)
        peaks = {}
    else:
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=asked.workers,
                threads_per_worker=1,
                memory_limit="1.5GB",
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            found = audit_out_of_core(
                source, target, noise_variance=NOISE, output=output, client=client
            )
            processes = client.run(os.getpid)
            peaks = {f"worker {i}": peak_of(p) for i, p in enumerate(processes.values())}
    took = time.perf_counter() - start
    peaks["driver"] = peak_of("self")
    cpu = sum(
        resource.getrusage(w).ru_utime for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print("\n| records | seconds | sums | laws | records a second | CPU seconds, with writing |")
    print("|---|---|---|---|---|---|")
    stages = found.seconds
    print(
        f"| {found.records} | {took:.0f} | {stages['sums']:.0f} | {stages['laws']:.0f} | "
        f"{found.records / took:.0f} | {cpu:.0f} |"
    )
    print("\n| process | peak memory, GB |\n|---|---|")
    for name, peak in peaks.items():
        print(f"| {name} | {peak:.2f} |")
    print(f"| together | {sum(peaks.values()):.2f} |")
    wanted = np.unique(np.linspace(0, asked.records - 1, 1000).astype(np.int64))
    table = pq.read_table(output, columns=["record_id", "kl"])
    kl = table["kl"].to_numpy()[wanted]
    assert np.array_equal(table["record_id"].to_numpy()[wanted], wanted)
    print(f"\n{found.untrusted} records not trusted; condition number {found.condition_number:.2g}")
    print("\n| check | largest relative difference |\n|---|---|")
    known = plain_numpy(asked.records, wanted)
    print(f"| KL of 1,000 records, plain NumPy | {np.max(np.abs(kl / known - 1.0)):.1e} |")
    compared(asked.records, folder)


if __name__ == "__main__":
    main()
