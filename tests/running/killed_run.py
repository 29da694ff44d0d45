"""A run of small random cells in a process of its own, for the tests that kill it."""

from __future__ import annotations

import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

from leakscope.running.cell_store import open_cells
from leakscope.running.cells import Cell, Found, run_cells

SETTINGS = {"what": "killed"}
SEED = 5
CELLS = [Cell(f"cell={i:03d}", {"number": i}) for i in range(60)]


def compute(parameters, key):
    generator = key.generator()
    time.sleep(0.004)
    log = parameters.get("log")
    if log:
        with open(log, "a") as stream:
            stream.write(f"{parameters['number']}\n")
    return Found(
        {"number": parameters["number"], "value": float(generator.normal())},
        {"array": generator.normal(size=40)},
    )


def table(directory) -> list[tuple[str, float, bytes]]:
    with open_cells(directory, settings=SETTINGS, seed=SEED) as store:
        return [(c.name, c.numbers["value"], c.arrays["array"].tobytes()) for c in store.cells()]


def main(directory: Path, limit: int) -> None:
    if limit:
        # Beyond the limit a write fails as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with open_cells(directory, settings=SETTINGS, seed=SEED) as store:
        run_cells(store, CELLS, compute, seed=SEED)


if __name__ == "__main__":
    np.seterr(all="raise")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
