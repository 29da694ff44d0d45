"""Scaling laws: time and memory against sizes, as slopes of log against log.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/scaling.py [--repeats 5]

Each line varies one size over a factor of 2.25 to 8 and fits the slope by least squares on the
logarithms; the exponent that the algorithm has on paper stands beside it, and a slope more than 0.2
off is marked.  Time is the least of the repeats; memory is the peak that tracemalloc sees, beyond
what was there before the call (NumPy reports its arrays to it; JAX does not, and its memory is left
out).  The audit in features reads its rows in blocks of a fixed size, so that its memory is that of
the answers; measures work in blocks too, and their memory is left out.  Exponents are of large
sizes: a matrix that is read again and again is larger than the cache at the smallest (256 MB and
more), and where the work is cubic the matrix products are near their full speed there.  Depth stops
at 128: a compiled pass of 160 layers takes four times as long for each (XLA on a CPU).
One thread: two threads that wait for each other measure the neighbours.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakscope import kernels, lasso, linear, lood, measures
from leakscope.lasso.amp import message_passing
from leakscope.laws import LawPair, Normal

Action = Callable[[], object]

# Calls of so many seconds are repeated once, or not at all with --repeats 1.
LONG = 4.0


@dataclass(frozen=True)
class Law:
    """One line: ``make(size)`` prepares the inputs and gives the action that is measured."""

    what: str
    size: str
    sizes: tuple[int, ...]
    make: Callable[[int], Action]
    time_exponent: float
    memory_exponent: float | None = None


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def dense_audit(n: int) -> Action:
    X, y = rng().normal(size=(n, 20)), rng().normal(size=n)
    kernel = kernels.rbf(4.0)(X)

    def action() -> object:
        laws = lood.all_records(kernel, y, noise_variance=0.01)
        return measures.kl(laws.law_pair())

    return action


def feature_audit(n: int, d: int) -> Action:
    phi, y = rng().normal(size=(n, d)), rng().normal(size=n)
    return lambda: lood.audit_features(phi, y, noise_variance=0.01)


def kernel_matrix(n: int, d: int) -> Action:
    X = rng().normal(size=(n, d))
    return lambda: kernels.rbf(4.0)(X)


def network_kernel(n: int, depth: int) -> Action:
    X, kernel = rng().normal(size=(n, 16)), kernels.nngp(depth, "relu")
    kernel(X)  # compiles
    return lambda: np.asarray(kernel(X))


def influences(q: int) -> Action:
    X, y = rng().normal(size=(1000, 20)), rng().normal(size=1000)
    queries = rng().normal(size=(q, 20))
    return lambda: lood.influence(X, y, queries, kernels.rbf(4.0), 0.01)


def groups(n: int) -> Action:
    X, y = rng().normal(size=(n, 20)), rng().normal(size=n)
    names = np.repeat(np.arange(n // 4), 4)
    kernel = kernels.rbf(4.0)(X)
    return lambda: lood.all_groups(kernel, y, names, noise_variance=0.01)


def designs(draws: int) -> Action:
    design = linear.GaussianDesign(100, 400, 3000, 1.0)
    return lambda: linear.law_pair(design, draws=draws, random_state=0)


def normal_pairs(count: int) -> Action:
    shift, scale = rng().normal(size=count), np.exp(0.2 * rng().normal(size=count))
    pair = LawPair(Normal(shift, scale), Normal(np.zeros(count), 1.0))
    return lambda: (measures.advantage(pair), measures.auc(pair), measures.kl(pair))


def passes(n: int, p: int) -> Action:
    X = rng().normal(size=(n, p)) / np.sqrt(p)
    y = rng().normal(size=n)
    # A tolerance below zero: exactly 20 iterations.
    return lambda: message_passing(X, y, 1.0, tol=-1.0, max_iterations=20)


def states(count: int) -> Action:
    noise = np.geomspace(0.1, 0.5, count)
    setting = lasso.LassoSetting(0.5, 0.1, 0.1, 1.0, noise)
    return lambda: lasso.state_evolution(setting)


LAWS = (
    Law("audit of every record, dense", "n", (6000, 9000, 13_500), dense_audit, 3, 2),
    Law("audit in 64 features", "n", (200_000, 400_000, 800_000, 1_600_000),
        lambda n: feature_audit(n, 64), 1, 1),
    Law("audit in d features, n = 10,000", "d", (1024, 2048, 4096),
        lambda d: feature_audit(10_000, d), 2),
    Law("RBF kernel matrix, d = 20", "n", (6000, 9000, 13_500),
        lambda n: kernel_matrix(n, 20), 2, 2),
    Law("RBF kernel matrix, n = 1500", "d", (2048, 4096, 8192, 16_384),
        lambda d: kernel_matrix(1500, d), 1),
    Law("network kernel, n = 1500", "depth", (32, 64, 128),
        lambda depth: network_kernel(1500, depth), 1),
    Law("network kernel, depth 5", "n", (6000, 9000, 13_500), lambda n: network_kernel(n, 5), 2),
    Law("influence on q queries, n = 1000", "q", (1000, 2000, 4000, 8000), influences, 1, 1),
    Law("audit of groups of 4", "n", (6000, 9000, 13_500), groups, 3, 2),
    Law("exact law of least squares", "draws", (200_000, 400_000, 800_000), designs, 1, 1),
    Law("measures of normal pairs", "pairs", (100_000, 200_000, 400_000, 800_000),
        normal_pairs, 1),
    Law("message passing, 20 iterations, p = 4000", "n", (8000, 16_000, 32_000),
        lambda n: passes(n, 4000), 1),
    Law("message passing, 20 iterations, n = 4000", "p", (8000, 16_000, 32_000),
        lambda p: passes(4000, p), 1),
    Law("LASSO state evolution", "settings", (160_000, 320_000, 640_000), states, 1, 1),
)  # fmt: skip


def seconds(action: Action, repeats: int) -> float:
    start = time.perf_counter()
    action()
    first = time.perf_counter() - start
    # The first call also warms up; a long call hardly notices that, nor a short one beside it.
    best = first if first > LONG else float("inf")
    for _ in range(repeats if first <= LONG else repeats > 1):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def peak(action: Action) -> int:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    action()
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest - before


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="lines whose name holds this")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, one thread, Python "
        f"{platform.python_version()}, NumPy {np.__version__}; load {os.getloadavg()[0]:.1f}\n"
    )
    print("| what | size | from | to | s at the largest | time slope | expected | ", end="")
    print("MB at the largest | memory slope | expected |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    off = 0
    for law in (law for law in LAWS if options.only in law.what):
        times, memory = [], []
        for size in law.sizes:
            action = law.make(size)
            times.append(seconds(action, options.repeats))
            if law.memory_exponent is not None:
                memory.append(float(peak(action)))
        found = slope(law.sizes, times)
        cells = [f"{times[-1]:.3g}", marked(found, law.time_exponent), f"{law.time_exponent:g}"]
        off += abs(found - law.time_exponent) > 0.2
        if law.memory_exponent is None:
            cells += ["–", "–", "–"]
        else:
            grown = slope(law.sizes, memory)
            off += abs(grown - law.memory_exponent) > 0.2
            cells += [f"{memory[-1] / 1e6:.0f}", marked(grown, law.memory_exponent)]
            cells += [f"{law.memory_exponent:g}"]
        ends = f"{law.sizes[0]} | {law.sizes[-1]}"
        print(f"| {law.what} | {law.size} | {ends} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{off} slopes more than 0.2 off.")


def marked(found: float, expected: float) -> str:
    return f"{found:.2f}" + (" (off)" if abs(found - expected) > 0.2 else "")


if __name__ == "__main__":
    main()
