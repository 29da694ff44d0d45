"""The private LASSO's solvers against celer, and an AMP iteration against its two products.

    python benchmarks/lasso_solvers.py            # n = 500 and 2500, lambda 1 and 0.1
    python benchmarks/lasso_solvers.py --small    # n = 500 only
    python benchmarks/lasso_solvers.py --weak     # adds lambda = 0.01 at n = 2500 (a minute)

X ~ N(0, 1/p), rho = 0.1, sigma_xi = 0.1, all in one process, the least of repeated fits taken in
turn, celer at tolerance 1e-10 on the same Fortran-ordered X.  `output` is the fit of
`OutputPerturbedLasso`, `objective` that of `ObjectivePerturbedLasso` with sigma_eta = 0.3 lambda,
checks of the input and drawing of the noise included; the ratios are to celer's plain LASSO.
Wanted: at most 1.2 and 2.
The AMP iteration is the slope between 10 and 40 iterations, against X beta and X'z with the same
arrays; wanted at n = 2500: at most 1.5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from celer import Lasso

from leakscope.lasso.amp import message_passing
from leakscope.lasso.estimators import ObjectivePerturbedLasso, OutputPerturbedLasso
from leakscope.lasso.objective import kkt_violation
from leakscope.lasso.solver import solve_lasso_many


def drawn(n: int, p: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((n, p)) / np.sqrt(p))
    beta = rng.standard_normal(p) * (rng.random(p) < 0.1)
    return X, X @ beta + 0.1 * rng.standard_normal(n), rng


def least_seconds(*works: Callable[[], object], repeats: int) -> list[float]:
    """The least time of each, taken in turn: other processes can only add to it."""
    times = np.empty((repeats, len(works)))
    for turn in range(repeats):
        for place, work in enumerate(works):
            start = time.perf_counter()
            work()
            times[turn, place] = time.perf_counter() - start
    return [float(value) for value in times.min(axis=0)]


def against_celer(n: int, p: int, lam: float, repeats: int) -> None:
    X, y, _ = drawn(n, p)
    celer = Lasso(alpha=lam / n, fit_intercept=False, tol=1e-10, max_iter=1000)
    output = OutputPerturbedLasso(lam, 0.1, random_state=0)
    objective = ObjectivePerturbedLasso(lam, 0.3 * lam, keep_noise=True, random_state=0)
    theirs, ours, inside = least_seconds(
        lambda: celer.fit(X, y),
        lambda: output.fit(X, y),
        lambda: objective.fit(X, y),
        repeats=repeats,
    )
    wrong = kkt_violation(X, y, lam, celer.coef_) / lam
    print(
        f"{n:5d} {p:5d} {lam:6g}  {theirs * 1e3:9.1f} {wrong:8.0e}  {ours * 1e3:9.1f} "
        f"{output.kkt_violation_ / lam:8.0e} {ours / theirs:6.2f}  {inside * 1e3:9.1f} "
        f"{objective.kkt_violation_ / lam:8.0e} {inside / theirs:6.2f}"
    )


def iteration(n: int, p: int) -> None:
    X, y, rng = drawn(n, p)
    for draws in (1, 16):
        eta = 0.3 * rng.standard_normal((draws, p))
        beta, z = rng.standard_normal((draws, p)), rng.standard_normal((draws, n))

        def passes(count: int, eta: np.ndarray = eta) -> object:
            # a tolerance below zero: exactly `count` iterations
            return message_passing(X, y, 1.0, eta, tol=-1.0, max_iterations=count)

        few, many, products = least_seconds(
            lambda: passes(10),
            lambda: passes(40),
            lambda: [(beta @ X.T, z @ X) for _ in range(10)],  # noqa: B023
            repeats=5,
        )
        slope, products = (many - few) / 30.0, products / 10.0
        print(
            f"AMP n = {n}, p = {p}, {draws:2d} draws: iteration {slope * 1e3:.2f} ms, two products "
            f"{products * 1e3:.2f} ms, ratio {slope / products:.2f}"
        )


def batch(n: int, p: int, draws: int) -> None:
    X, y, rng = drawn(n, p)
    eta = 0.5 * rng.standard_normal((draws, p))
    many, single = least_seconds(
        lambda: solve_lasso_many(X, y, 1.0, eta),
        lambda: [solve_lasso_many(X, y, 1.0, e[None]) for e in eta],
        repeats=3,
    )
    print(
        f"{draws} noise draws at n = {n}, p = {p}, lambda = 1, sigma_eta = 0.5: together "
        f"{many:.2f} s, one by one {single:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--weak", action="store_true")
    options = parser.parse_args()
    print("                        celer             output perturbation        objective")
    print(
        "    n     p lambda         ms      kkt  "
        "       ms      kkt  ratio         ms      kkt  ratio"
    )
    for lam in (1.0, 0.1):
        against_celer(500, 1000, lam, 7)
    if not options.small:
        for lam in (1.0, 0.1):
            against_celer(2500, 5000, lam, 3)
    if options.weak:
        against_celer(2500, 5000, 0.01, 1)
    if not options.small:
        iteration(2500, 5000)
    iteration(500, 1000)
    batch(500, 1000, 64)


if __name__ == "__main__":
    main()
