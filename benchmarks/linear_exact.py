"""The exact finite-n advantage against the paper's route, for the same standard error.

    python benchmarks/linear_exact.py

First n = 400, D = 20,000 at gamma = 2.5, 5, 10, 25: exact to a standard error of 1e-4; beside it
the paper's route (sample X, lstsq, histogram of 150 bins), timed on a few trials and scaled to the
trials that the same standard error takes, (TPR(1-TPR) + FPR(1-FPR))/1e-8.  Then Fig. 2(b) in full.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import special

from leakscope import linear
from leakscope.linear import GaussianDesign, RecordNorms
from leakscope.measures import scored_advantage

WANTED = 1e-4
FIG_2B = [110, 120, 130, 150, 160, 170, 180, 190, 200, 210, 230, 275, 300, 350, 500, 800, 1500]
FIG_2B += [2000]


def exact(design: GaussianDesign) -> tuple[float, float, int, float]:
    start = time.perf_counter()
    draws = 4000
    while True:
        found = scored_advantage(linear.law_pair(design, draws=draws, random_state=1))
        if found.stderr <= WANTED:
            return found.value, found.stderr, draws, time.perf_counter() - start
        draws = int(draws * 1.2 * (found.stderr / WANTED) ** 2) + 1


def paper_seconds(design: GaussianDesign, trials: int = 3) -> float:
    """Seconds of one member and one non-member training run, as the authors do them."""
    rng = np.random.default_rng(0)
    x0 = rng.standard_normal(design.dim)
    start = time.perf_counter()
    for _ in range(trials):
        for own in (0, 1):
            X = rng.standard_normal((design.n, design.dim))
            beta = rng.standard_normal(design.dim) / np.sqrt(design.dim)
            y = X @ beta + design.sigma * rng.standard_normal(design.n)
            if own:
                X[0], y[0] = x0, x0 @ beta + design.sigma * rng.standard_normal()
            fit = np.linalg.lstsq(X[:, : design.p], y, rcond=None)[0]
            x0[: design.p] @ fit
    return (time.perf_counter() - start) / trials


def trials_needed(design: GaussianDesign) -> float:
    pair = linear.law_pair(design, method="asymptotic")
    one, zero = float(pair.member.sigma[0]), float(pair.nonmember.sigma[0])
    edge = one * zero * np.sqrt(2.0 * np.log(one / zero) / (one**2 - zero**2))
    tpr, fpr = (2.0 * special.ndtr(-edge / s) for s in (one, zero))
    return float((tpr * (1.0 - tpr) + fpr * (1.0 - fpr)) / WANTED**2)


def main() -> None:
    print("gamma  advantage  std. error  designs  seconds  paper's trials  hours  times faster")
    for gamma in (2.5, 5, 10, 25):
        design = GaussianDesign(400, int(400 * gamma), 20_000, 1.0)
        value, error, draws, seconds = exact(design)
        route = paper_seconds(design) * trials_needed(design)
        print(
            f"{gamma:5g}  {value:9.4f}  {error:10.1e}  {draws:7d}  {seconds:7.2f}  "
            f"{trials_needed(design):14.2e}  {route / 3600:5.0f}  {route / seconds:.1e}"
        )
    start = time.perf_counter()
    means = []
    for p in FIG_2B:
        design = GaussianDesign(100, p, 3000, 1.0)
        norms = RecordNorms.sample(design, 20, random_state=p)
        pair = linear.law_pair(design, norms, draws=4000, random_state=p)
        means.append(scored_advantage(pair, norms.weight).value)
    print(f"Fig. 2(b), {len(FIG_2B)} gammas, 20 records: {time.perf_counter() - start:.2f} s")
    print(" ".join(f"{p}:{m:.3f}" for p, m in zip(FIG_2B, means, strict=True)))


if __name__ == "__main__":
    main()
