"""What the scikit-learn face costs: fitting and predicting beside the audit and scikit-learn.

    python benchmarks/estimators.py [RECORDS ...]

Prints a table; ratios are within one run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import leakscope
from leakscope import kernels


def best_of(call: Callable[[], Any], repeats: int = 3) -> float:
    """The least of a few times, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def compare(n: int) -> None:
    """One block of the table."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 10)), rng.standard_normal(n)
    queries = rng.standard_normal((1000, 10))
    model = leakscope.AuditedRegressor(kernels.rbf(3.0), noise_variance=0.1)
    theirs = GaussianProcessRegressor(RBF(3.0), alpha=0.1, optimizer=None)
    audit = best_of(
        lambda: leakscope.audit(
            X, y, kernel=kernels.rbf(3.0), noise_variance=0.1, sensitivity=False
        )
    )
    fits = {
        "leakscope.audit, no sensitivity": audit,
        "AuditedRegressor.fit": best_of(lambda: model.fit(X, y)),
        "GaussianProcessRegressor.fit": best_of(lambda: theirs.fit(X, y)),
    }
    print(f"\n{n} records, 10 features; 1000 queries")
    for name, seconds in fits.items():
        print(f"  {name:42s} {seconds:8.3f} s  {seconds / audit:6.2f} of the audit")
    asked = {
        "predict": (lambda: model.predict(queries), lambda: theirs.predict(queries)),
        "with deviations": (
            lambda: model.posterior_.at(queries),
            lambda: theirs.predict(queries, return_std=True),
        ),
    }
    for name, (ours, other) in asked.items():
        a, b = best_of(ours), best_of(other)
        print(f"  {name:42s} {a:8.3f} s  {a / b:6.2f} of scikit-learn's")
    gap = np.max(np.abs(model.predict(queries) - theirs.predict(queries)))
    print(f"  largest difference of predictions          {gap:8.1e}")


if __name__ == "__main__":
    for size in [int(word) for word in sys.argv[1:]] or [500, 2000]:
        compare(size)
