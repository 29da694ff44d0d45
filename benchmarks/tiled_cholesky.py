"""Tiles against LAPACK: factor, inverse factor and inverse, in one run, as ratios.

    OPENBLAS_NUM_THREADS=2 python benchmarks/tiled_cholesky.py --sizes 4000 8000 13000

Sizes stay below 16,000, from where LAPACK crashes on some machines (docs/linear_algebra.md).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from leakscope._numerics import probes, tiled_cholesky

ROUTINES: tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (
        "Cholesky",
        lambda a: lapack.dpotrf(a, lower=1, clean=0, overwrite_a=1),
        tiled_cholesky.cholesky_in_place,
    ),
    (
        "inverse of the factor",
        lambda a: lapack.dtrtri(a, lower=1, overwrite_c=1),
        tiled_cholesky.triangular_inverse_in_place,
    ),
    (
        "inverse",
        lambda a: lapack.dlauum(a, lower=1, overwrite_c=1),
        tiled_cholesky.gram_in_place,
    ),
)


def seconds(work: Callable[[Any], Any], start: np.ndarray, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        array = start.copy(order="F")
        begun = time.perf_counter()
        work(array)
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, 8000, 13000])
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    print(probes.blas_in_use())
    print("| n | step | LAPACK, s | tiles, s | ratio |")
    print("|---|---|---|---|---|")
    for size in given.sizes:
        root = np.random.default_rng(0).normal(size=(size, 30))
        matrix = np.asfortranarray(root @ np.ascontiguousarray(root.T))
        matrix[np.diag_indices(size)] += 5.0
        for name, plain, tiled in ROUTINES:
            one, other = (seconds(work, matrix, given.repeats) for work in (plain, tiled))
            print(f"| {size} | {name} | {one:.2f} | {other:.2f} | {other / one:.2f} |", flush=True)
            tiled(matrix)


if __name__ == "__main__":
    main()
