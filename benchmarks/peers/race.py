"""One table: the same question put to leakscope and to a peer, same machine, same run.

    python benchmarks/peers/race.py --data adult.data --environments DIR

Each peer is installed from the package index into an environment of its own under DIR, made the
first time.  ``--only`` names parts: exposure, measures, kernels, refits, lasso, linear.
``--markdown FILE`` writes what is printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

PARTS = ("measures", "kernels", "refits", "lasso", "linear", "exposure")


def machine() -> str:
    import numpy
    import scipy

    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = found[0].split(":", 1)[1].strip() if found else model
    return (
        f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy "
        f"{numpy.__version__}, SciPy {scipy.__version__}; load {os.getloadavg()[0]:.1f} at the "
        "start"
    )


def linear_rows() -> list:
    from linear_exact import exact, paper_seconds, trials_needed
    from rows import Row

    from leakscope.linear import GaussianDesign

    design = GaussianDesign(400, 1000, 20_000, 1.0)
    value, error, _, seconds = exact(design)
    route = paper_seconds(design) * trials_needed(design)
    return [
        Row(
            "advantage at n = 400, p = 1000, D = 20,000 to a standard error of 1e-4",
            "NumPy, a least-squares fit a trial (the paper's route; scaled from 3)",
            route,
            seconds,
            f"ours {value:.4f} with standard error {error:.0e}",
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="adult.data of UCI Adult, for the exposure part")
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="for the truth")
    parser.add_argument("--targets", default="forest,network")
    parser.add_argument("--shadows", type=int, default=100)
    parser.add_argument("--shapr-tests", type=int, default=1000)
    parser.add_argument("--records", type=int, default=72, help="retrained for the truth")
    parser.add_argument("--models", type=int, default=16, help="without each of them")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    only = options.only.split(",")
    # Before NumPy is loaded: the peers get the same number of threads.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(options.threads))
    folder, threads = options.environments.resolve(), options.threads
    folder.mkdir(parents=True, exist_ok=True)
    import rows as table_rows

    text = [f"Machine: {machine()}.", ""]
    found: list[table_rows.Row] = []
    longer = ""
    if "measures" in only:
        import measures as part_measures

        found += part_measures.compare(folder, threads)
    if "kernels" in only:
        import network_kernels

        found += network_kernels.compare(folder, threads)
    if "refits" in only:
        import refits

        found += refits.compare()
    if "lasso" in only:
        import lasso_fits

        found += lasso_fits.compare(folder, threads)
    if "linear" in only:
        found += linear_rows()
    if "exposure" in only:
        if options.data is None:
            parser.error("--data is needed for the exposure part: adult.data of UCI Adult")
        import exposure

        more, longer = exposure.compare(
            options.data,
            folder,
            threads=threads,
            workers=options.workers,
            targets=tuple(options.targets.split(",")),
            shadows=options.shadows,
            tests=options.shapr_tests,
            records=options.records,
            models=options.models,
        )
        found += more
    text += [table_rows.table(found), "", longer]
    print("\n".join(text))
    if options.markdown is not None:
        options.markdown.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
