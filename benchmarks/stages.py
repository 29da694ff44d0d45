"""What each stage costs as records grow: audit, report, advise, verify and decide.

Each stage is a process of its own, as a person runs it, and its processor seconds (user and system,
children included) are taken from the system.  A stage that passes the limit is ended, and reads so.

    python benchmarks/stages.py made 1000 10000 100000
    python benchmarks/stages.py file adult.csv --target income
    python benchmarks/stages.py arrays location30.npz --target y --stages audit

``--source DIR`` times another checkout's ``src`` with the same commands.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 100
STAGES = ("audit", "report", "advise", "verify", "decide")


def made(path: Path, records: int) -> None:
    """A logistic world of 100 columns, ten of which matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(records, COLUMNS))
    y = X[:, :10].sum(axis=1) + 3.0 * rng.normal(size=records) > 0.0
    names = ",".join([f"x{k}" for k in range(COLUMNS)] + ["y"])
    rows = np.column_stack([X.round(4), y])
    np.savetxt(
        path, rows, delimiter=",", header=names, comments="", fmt=["%.4f"] * COLUMNS + ["%d"]
    )


def commands(data: Path, target: str, run: Path, model: list[str]) -> dict[str, list[str]]:
    """What a person types, stage by stage."""
    return {
        "audit": ["audit", str(data), "--target", target, *model, "--run-dir", str(run)],
        "report": ["report", str(run)],
        "advise": ["advise", str(run), "--target-advantage", "0.02"],
        "verify": ["verify", str(run), "--models", "50"],
        "decide": ["decide", str(run), "--threshold-advantage", "0.9", "--output", f"{run}-form"],
    }


def seconds(words: list[str], source: Path, limit: int) -> str:
    """Processor seconds of one stage; what passes the limit, or is refused, in words."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "leakscope", *words],
        env={**os.environ, "PYTHONPATH": str(source)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode < 0:
        return f">{limit}"
    if done.returncode not in (0, 3, 4):
        return done.stderr.decode(errors="replace").strip().splitlines()[-1][:60]
    return f"{spent:.1f} ({time.perf_counter() - start:.1f} by the clock)"


def main() -> None:
    """A line for each stage of each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("made", "file", "arrays"))
    parser.add_argument("what", nargs="+")
    parser.add_argument("--target", default="y")
    parser.add_argument("--model", default="")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for what in asked.what:
            data = Path(place, f"made{what}.csv") if asked.kind == "made" else Path(what)
            if asked.kind == "made":
                made(data, int(what))
            model = asked.model.split()
            if asked.kind == "made":
                model = ["--model", "logistic", "--C", "0.1"]
            told = commands(data, asked.target, Path(place, f"run-{data.stem}"), model)
            for stage in asked.stages.split(","):
                found = seconds(told[stage], asked.source, asked.limit)
                print(f"{data.stem} {stage}: {found}", flush=True)


if __name__ == "__main__":
    main()
