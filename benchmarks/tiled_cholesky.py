"""Tiles against LAPACK: factor, inverse factor and inverse, in one run, as ratios.

    python benchmarks/tiled_cholesky.py --sizes 4000 8000 13000 --threads 1 2

Sizes stay below 16,000, from where LAPACK crashes on some machines (docs/linear_algebra.md), unless
`--tiles-only` leaves it out.  The two take turns, the least of their times counts, and CPU seconds
stand beside them for a machine that does other work too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from leakscope._numerics import cholesky, probes
from leakscope._numerics.products import row_products

ROUTINES: tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (
        "Cholesky",
        lambda a: lapack.dpotrf(a, lower=1, clean=0, overwrite_a=1),
        cholesky.cholesky_in_place,
    ),
    (
        "inverse of the factor",
        lambda a: lapack.dtrtri(a, lower=1, overwrite_c=1),
        cholesky.triangular_inverse_in_place,
    ),
    (
        "inverse",
        lambda a: lapack.dlauum(a, lower=1, overwrite_c=1),
        cholesky.gram_in_place,
    ),
)


def seconds(work: Callable[[Any], Any], start: np.ndarray) -> np.ndarray:
    """Seconds by the clock, and of CPU."""
    array = start.copy(order="F")
    begun = np.array([time.perf_counter(), time.process_time()])
    work(array)
    return np.array([time.perf_counter(), time.process_time()]) - begun


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, 8000, 13000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--tiles-only", action="store_true")
    given = parser.parse_args()
    print(probes.blas_in_use())
    print("| n | threads | step | LAPACK, s (CPU) | tiles, s (CPU) | ratio (CPU) |")
    print("|---|---|---|---|---|---|")
    for size in given.sizes:
        root = np.random.default_rng(0).normal(size=(size, 30))
        matrix = np.asfortranarray(row_products(root))
        matrix[np.diag_indices(size)] += 5.0
        for name, plain, tiled in ROUTINES:
            for threads in given.threads:
                with threadpool_limits(threads, user_api="blas"):
                    turns = [
                        [
                            np.full(2, np.nan) if given.tiles_only else seconds(plain, matrix),
                            seconds(tiled, matrix),
                        ]
                        for _ in range(given.repeats)
                    ]
                one, other = np.min(turns, axis=0)
                ratio = other / one
                cells = [f"{pair[0]:.2f} ({pair[1]:.2f})" for pair in (one, other, ratio)]
                print(f"| {size} | {threads} | {name} | {' | '.join(cells)} |", flush=True)
            tiled(matrix)


if __name__ == "__main__":
    main()
