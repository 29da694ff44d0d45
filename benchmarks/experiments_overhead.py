"""What a cell costs beside its own work: 10,000 tiny cells here, and some on a local Dask cluster.

    python benchmarks/experiments_overhead.py [CELLS]

The alternative in the same run is the bare loop over the same function without a store.  A second
start, which finds everything finished, shows what resuming costs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from leakscope.running.cell_store import open_cells
from leakscope.running.cells import Cell, Found, cluster_client, run_cells


def tiny(parameters, key):
    return Found({"x": parameters["x"], "value": float(key.generator().random())})


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    cells = [Cell(f"x={x}", {"x": x}) for x in range(count)]
    start = time.perf_counter()
    for cell in cells:
        tiny(cell.parameters, cell.key(0))
    bare = time.perf_counter() - start
    print("| where | cells | seconds | overhead a cell, ms |")
    print("|---|---|---|---|")
    print(f"| bare loop | {count} | {bare:.2f} | 0 |")
    with tempfile.TemporaryDirectory() as folder:
        with open_cells(Path(folder, "here"), settings={}, seed=0) as store:
            for name in ("this process", "started again"):
                start = time.perf_counter()
                run_cells(store, cells, tiny, seed=0)
                took = time.perf_counter() - start
                overhead = took - (bare if name == "this process" else 0.0)
                print(f"| {name} | {count} | {took:.2f} | {1e3 * overhead / count:.3f} |")
        some = cells[: max(1, count // 5)]
        with (
            cluster_client(workers=2) as client,
            open_cells(Path(folder, "cluster"), settings={}, seed=0) as store,
        ):
            start = time.perf_counter()
            run_cells(store, some, tiny, seed=0, client=client)
            took = time.perf_counter() - start
        work = bare * len(some) / count
        print(
            f"| Dask, 2 workers | {len(some)} | {took:.2f} | "
            f"{1e3 * (took - work) / len(some):.3f} |"
        )


if __name__ == "__main__":
    main()
