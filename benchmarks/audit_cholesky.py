"""Auditing all n records against one Cholesky factorisation, and against refitting each.

Everything is timed in this one run and printed as ratios.  The kernel matrix is given; the audit
includes the measures (KL in both directions, advantage, AUC).  Refitting is timed on a few records
and multiplied: two fits per record, on the cached matrix.  The noise sweep (four more levels)
and one eigendecomposition, which could serve all levels instead, are set apart.  A second table
has the n x q influence matrix against q.  Arguments: the sizes n, by default 500 to 10000.

On a machine that others use too, set OPENBLAS_NUM_THREADS=1: two threads that wait for each other
measure the neighbours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, lapack

from leakscope import kernels, lood, measures
from leakscope.lood.noise import sweep_noise

SIZES = tuple(int(n) for n in sys.argv[1:]) or (500, 1000, 2000, 5000, 10_000)
QUERIES = (1, 10, 100, 1000, 4000)
EIGEN_UP_TO = 2000
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


def audit(kernel: np.ndarray, y: np.ndarray) -> None:
    pair = lood.all_records(kernel, y, noise_variance=NOISE).law_pair()
    measures.kl(pair)
    measures.kl(pair, "member_to_nonmember")
    measures.advantage(pair)
    measures.auc(pair)


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
    print("| n | Cholesky C, s | audit / C | refit all / audit | sweep / C | eigh / C |")
    print("|---|---|---|---|---|---|")
    for n in SIZES:
        X, y = rng.normal(size=(n, 20)), rng.normal(size=n)
        kernel = kernels.rbf(4.0)(X)
        cholesky, audited = best_of_each(
            [lambda k=kernel: factorise(k), lambda k=kernel, t=y: audit(k, t)],
            repeats=5 if n <= 5000 else 2,
        )
        (refits,) = best_of_each(
            [lambda k=kernel, t=y: [refit(k, t, i) for i in range(REFITS)]], repeats=1
        )
        known = lood.all_records(kernel, y, noise_variance=NOISE)
        (swept,) = best_of_each(
            [
                lambda k=kernel, t=y, w=known: sweep_noise(
                    lambda s2: lood.all_records(k, t, noise_variance=s2), NOISE, w
                )
            ],
            repeats=1,
        )
        eigen = "-"
        if n <= EIGEN_UP_TO:
            (seconds,) = best_of_each([lambda k=kernel: eigh(k)], repeats=1)
            eigen = f"{seconds / cholesky:.1f}"
        print(
            f"| {n} | {cholesky:.3f} | {audited / cholesky:.2f} | "
            f"{refits / REFITS * n / audited:.0f} | {swept / cholesky:.1f} | {eigen} |",
            flush=True,
        )
    n = 2000
    X, y = rng.normal(size=(n, 20)), rng.normal(size=n)
    print("\n| q queries of n = 2000 | influence matrix, s |\n|---|---|")
    for q in QUERIES:
        Q = rng.normal(size=(q, 20))
        (seconds,) = best_of_each(
            [lambda a=Q: lood.influence(X, y, a, kernels.rbf(4.0), NOISE)], repeats=2
        )
        print(f"| {q} | {seconds:.3f} |", flush=True)


if __name__ == "__main__":
    main()
