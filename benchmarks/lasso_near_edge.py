"""How far the limit is off near the stability edge: mean errors of refits over p and the noise.

    python benchmarks/lasso_near_edge.py

alpha = 0.5, rho = 0.1, sigma_xi = 0.1, lambda = 1.  Each dataset is drawn and fitted by message
passing with one noise of its own; signals are drawn too.  A dataset's own edge is random at finite
p, and the error is convex in how near it is, so that the mean lies above the limit by an amount
that falls with p, with a heavy upper tail.
"""

from __future__ import annotations

import sys

import numpy as np

from leakscope.lasso import (
    LassoSetting,
    message_passing,
    prediction_errors,
    stability_edge,
    state_evolution,
)

SIZES = {200: 1200, 400: 600, 800: 240, 1600: 80}


def errors(share: float, p: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count,) generalisation errors of refits; infinite where there is no minimiser."""
    noise = share / float(stability_edge(0.5))
    n, found = p // 2, []
    for _ in range(count):
        X = rng.standard_normal((n, p)) / np.sqrt(p)
        beta = rng.standard_normal(p) * (rng.random(p) < 0.1)
        y = X @ beta + 0.1 * rng.standard_normal(n)
        fit = message_passing(
            X, y, 1.0, noise * rng.standard_normal(p), tol=1e-6, max_iterations=3000
        )
        if fit.status[0] == "diverged":
            found.append(np.inf)
        else:
            found.append(float(np.mean((fit.coef[0] - beta) ** 2)) + 0.01)
    return np.array(found)


def main() -> None:
    rng = np.random.default_rng(31)
    print("share  p  limit  mean ± se  mean/limit - 1  times p  median  largest  no minimum")
    for share in (0.5, 0.6, 0.7, 0.8, 0.83, 0.9):
        setting = LassoSetting(0.5, 0.1, 0.1, 1.0, share / float(stability_edge(0.5)))
        limit = float(prediction_errors(state_evolution(setting)).generalization_error)
        for p, count in SIZES.items():
            drawn = errors(share, p, count, rng)
            some = drawn[np.isfinite(drawn)]
            mean, se = some.mean(), some.std() / np.sqrt(some.size)
            print(
                f"{share:.2f} {p:5d} {limit:8.4f} {mean:8.4f} ± {se:6.4f} "
                f"{mean / limit - 1:+10.3f} ± {se / limit:.3f} {(mean / limit - 1) * p:8.1f} "
                f"{np.median(some) / limit:8.3f} "
                f"{some.max() / limit:8.2f} {drawn.size - some.size:4d}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
