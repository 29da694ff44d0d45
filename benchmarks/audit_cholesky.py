"""Auditing all n records against one Cholesky factorisation, and against refitting each.

Everything is timed in this one run and printed as ratios.  The kernel matrix is given.  Refitting
is timed on a few records and multiplied: two fits a record, on the cached kernel matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from leakscope import kernels, lood

SIZES = (500, 1000, 2000, 4000)
NOISE = 0.01
REFITS = 3


def best_of_each(actions: list[Callable[[], object]], repeats: int = 5) -> list[float]:
    """The least time of each action in seconds, taken in turn so that a busy spell hits all."""
    least = [float("inf")] * len(actions)
    for _ in range(repeats):
        for place, action in enumerate(actions):
            start = time.perf_counter()
            action()
            least[place] = min(least[place], time.perf_counter() - start)
    return least


def factorise(kernel: np.ndarray) -> None:
    matrix = kernel.copy()
    matrix.flat[:: len(matrix) + 1] += NOISE
    lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)


def refit(kernel: np.ndarray, y: np.ndarray, record: int) -> None:
    """Mean and variance at the record, with it and without it."""
    everyone = np.arange(len(y))
    for train in (everyone, np.delete(everyone, record)):
        matrix = kernel[np.ix_(train, train)]
        matrix.flat[:: len(matrix) + 1] += NOISE
        cross = kernel[train, record]
        factor = cho_factor(matrix, lower=True, overwrite_a=True)
        _ = cross @ cho_solve(factor, y[train]), cross @ cho_solve(factor, cross)


def main() -> None:
    rng = np.random.default_rng(0)
    print("| n | Cholesky, s | audit, s | audit / Cholesky | refit all / audit |")
    print("|---|---|---|---|---|")
    for n in SIZES:
        X, y = rng.normal(size=(n, 20)), rng.normal(size=n)
        kernel = kernels.rbf(4.0)(X)
        cholesky, audit = best_of_each(
            [
                lambda k=kernel: factorise(k),
                lambda k=kernel, t=y: lood.all_records(k, t, noise_variance=NOISE),
            ]
        )
        (refits,) = best_of_each(
            [lambda k=kernel, t=y: [refit(k, t, i) for i in range(REFITS)]], repeats=1
        )
        each = refits / REFITS
        print(
            f"| {n} | {cholesky:.3f} | {audit:.3f} | {audit / cholesky:.1f} | "
            f"{each * n / audit:.0f} |"
        )


if __name__ == "__main__":
    main()
