"""What an audit says it needs against what it takes, route by route and size by size.

    python benchmarks/memory_ceilings.py

Each line is a process of its own.  The estimate is the largest that was asked of
``_numerics/memory.require_memory`` while it ran, which refuses what does not fit; the peak is the
growth of the resident set (VmHWM) over what it was before the audit, with everything imported and
compiled by a small audit first.  The promise: peak below the estimate and the 256 MB that are kept
free beside it, and the estimate not far above what is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """An audit of random data: which kernel, by which route, how large."""

    route: str
    kernel: str
    records: int
    features: int
    outputs: int = 1
    groups: int = 0


JOBS = (
    Job("dense", "rbf", 3000, 20),
    Job("dense", "rbf", 5000, 20),
    Job("dense", "rbf", 3000, 2000),
    Job("dense", "matern", 4000, 20),
    Job("dense", "linear", 4000, 6000),
    Job("dense", "nngp", 3000, 20),
    Job("dense", "rbf", 3000, 20, outputs=10),
    Job("dense", "rbf", 3000, 20, groups=300),
    Job("features", "linear", 100_000, 100),
    Job("features", "linear", 400_000, 30),
    Job("nystrom", "rbf", 50_000, 20),
    Job("nystrom", "rbf", 20_000, 200),
)
RESIDENT = "VmRSS"
PEAK = "VmHWM"


def status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(name)


def measure(job: Job) -> dict[str, Any]:
    """In this process: the largest estimate, and by how much the resident set grew."""
    from leakscope._numerics import memory

    asked = [0]
    original = memory.require_memory

    def recording(needed: int, what: str, remedy: str) -> None:
        asked.append(needed)
        original(needed, what, remedy)

    # Before anyone has taken it by its name.
    memory.require_memory = recording
    import numpy as np

    import leakscope
    from leakscope import kernels

    kernel = {
        "rbf": kernels.rbf(1.0),
        "matern": kernels.matern(1.0),
        "linear": kernels.linear(),
        "nngp": kernels.nngp(depth=2),
    }[job.kernel]

    def audit(records: int) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(records, job.features))
        shape = (records,) if job.outputs == 1 else (records, job.outputs)
        y = rng.normal(size=shape)
        groups = None if not job.groups else rng.integers(0, job.groups, records)
        before, _ = status(RESIDENT), asked.clear()
        Path("/proc/self/clear_refs").write_text("5")
        leakscope.audit(X, y, kernel=kernel, noise_variance=0.1, route=job.route, groups=groups)
        found.update(estimate=max(asked, default=0), peak=status(PEAK) - before)

    found: dict[str, Any] = {}
    audit(200 if job.route != "features" else max(200, 2 * job.features))
    audit(job.records)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measure(Job(**json.loads(given.one)))))
        return
    print(
        "| route | kernel | records | features | outputs | groups | estimate, MB | peak, MB | "
        "ratio |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for job in JOBS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", json.dumps(asdict(job))],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"},
        )
        cells = [job.route, job.kernel, job.records, job.features, job.outputs, job.groups or "-"]
        if done.returncode != 0:
            print("| " + " | ".join(map(str, cells)) + f" | {done.stderr.splitlines()[-1:]} |")
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        cells += [f"{found['estimate'] / 1e6:.0f}", f"{found['peak'] / 1e6:.0f}"]
        cells.append(f"{found['estimate'] / max(found['peak'], 1):.2f}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
