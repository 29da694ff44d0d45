"""Brute-force moments of predictions at n = 100, D = 3000: whole matrices, one solve a trial.

    python tests/linear/reference/make_brute_force.py     # writes brute_force.json, some minutes

Imports nothing of leakscope.  For a fixed record x0 with ||x_{0,p}||^2 = 1.1 p and
||x_{0,pbar}||^2 = 0.95 (D - p): X is n x D normal; weights w = (X_p X_p' + n lambda I)^{-1} X_p x0
(lstsq at lambda = 0); given X, Var yhat0 = ||X'w||^2/D + sigma^2 ||w||^2 and
Cov(y0, yhat0) = x0'X'w/D (+ sigma^2 w_0 for a member).  Trials were fixed beforehand so that the
standard error of the mean standard deviation is 1% or less.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

N, DIM, SIGMA = 100, 3000, 1.0
RIDGES = (0.0, 0.01, 0.1, 1.0, 5.0)
TRIALS = {110: 2500, 150: 600, 200: 500, 400: 400, 1000: 300, 3000: 250}
QUANTILES = (0.1, 0.5, 0.9)


def moments(X: np.ndarray, x0: np.ndarray, p: int, ridge: float, own: bool) -> tuple[float, float]:
    features = X[:, :p]
    if ridge == 0.0:
        w = np.linalg.lstsq(features.T, x0[:p], rcond=None)[0]
    else:
        w = np.linalg.solve(features @ features.T + N * ridge * np.eye(N), features @ x0[:p])
    through = X.T @ w
    variance = through @ through / DIM + SIGMA**2 * (w @ w)
    covariance = x0 @ through / DIM + (SIGMA**2 * w[0] if own else 0.0)
    return float(variance), float(covariance)


def main() -> None:
    cells = []
    for p, trials in TRIALS.items():
        rng = np.random.default_rng([2024, p])
        x0 = rng.standard_normal(DIM)
        x0[:p] *= np.sqrt(1.1 * p / (x0[:p] @ x0[:p]))
        if p < DIM:
            x0[p:] *= np.sqrt(0.95 * (DIM - p) / (x0[p:] @ x0[p:]))
        found = np.empty((len(RIDGES), 2, 2, trials))
        for trial in range(trials):
            X = rng.standard_normal((N, DIM))
            for own in (0, 1):
                if own:
                    X[0] = x0
                for k, ridge in enumerate(RIDGES):
                    found[k, own, :, trial] = moments(X, x0, p, ridge, bool(own))
        for k, ridge in enumerate(RIDGES):
            for own, who in ((0, "nonmember"), (1, "member")):
                sd, covariance = np.sqrt(found[k, own, 0]), found[k, own, 1]
                cells.append(
                    {
                        "p": p,
                        "ridge": ridge,
                        "who": who,
                        "trials": trials,
                        "sd": float(sd.mean()),
                        "sd_stderr": float(sd.std(ddof=1) / np.sqrt(trials)),
                        "variance": float((sd**2).mean()),
                        "variance_stderr": float((sd**2).std(ddof=1) / np.sqrt(trials)),
                        "covariance": float(covariance.mean()),
                        "covariance_stderr": float(covariance.std(ddof=1) / np.sqrt(trials)),
                        "sd_quantiles": [float(q) for q in np.quantile(sd, QUANTILES)],
                    }
                )
    path = Path(__file__).with_name("brute_force.json")
    path.write_text(json.dumps({"n": N, "dim": DIM, "sigma": SIGMA, "cells": cells}, indent=1))


if __name__ == "__main__":
    main()
