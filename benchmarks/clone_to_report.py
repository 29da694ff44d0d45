"""From a fresh clone to the report: `git clone`, `make audit`, nothing else; the time of each.

    python benchmarks/clone_to_report.py [REPOSITORY]

REPOSITORY is a path or an address; this checkout where left out.  The audit's own time is what the
run directory says, and the rest is setting up: an environment and what pip installs into it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
WANTED = 180.0


def main() -> None:
    repository = sys.argv[1] if len(sys.argv) > 1 else str(HERE)
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place, "leakscope")
        begun = time.perf_counter()
        subprocess.run(["git", "clone", "--quiet", repository, str(clone)], check=True)
        cloned = time.perf_counter()
        done = subprocess.run(
            ["make", "audit"], cwd=clone, capture_output=True, text=True, check=False
        )
        finished = time.perf_counter()
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        (report,) = clone.glob("leakscope-runs/*/report.html")
        result = json.loads((report.parent / "result.json").read_text())
        audit = sum(result["timing"].values())
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
        print(f"clone                      {cloned - begun:6.1f} s")
        print(f"make audit, set-up and all {finished - cloned:6.1f} s")
        print(f"of which the audit itself  {audit:6.1f} s")
        print(f"report                     {report.stat().st_size / 1e6:6.1f} MB")
        total = finished - begun
        print(f"from clone to report       {total:6.1f} s (at most {WANTED:.0f} wanted)")
    sys.exit(total > WANTED)


if __name__ == "__main__":
    main()
