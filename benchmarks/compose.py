"""Several releases: is what the joint laws promise reached by an attacker against refits?

Run ``python benchmarks/compose.py``; it prints a markdown table in some minutes.  For each case a
first model is fitted on some of the people and a second on all.  Both are fitted again on random
halves; on them the likelihood ratio of the joint laws names members.  "Reached" is the mean of
TPR - FPR at the threshold where the two laws are equally likely.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import StandardScaler

from leakscope import fitted, measures
from leakscope.fitted.joint import Release, joint_laws


def score(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return (2 * y - 1) * model.decision_function(X)
    return X @ model.coef_ + model.intercept_


def log_ratio(laws: Any, i: int, z: np.ndarray) -> np.ndarray:
    def log_density(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        off = z - mean
        square = np.einsum("mk,kl,ml->m", off, np.linalg.inv(covariance), off)
        return -0.5 * (square + np.linalg.slogdet(covariance)[1])

    return log_density(laws.member_mean[i], laws.member_covariance[i]) - log_density(
        laws.nonmember_mean[i], laws.nonmember_covariance[i]
    )


def compared(
    name: str, X: np.ndarray, y: np.ndarray, makers: list[Any], kept: int, models: int
) -> None:
    size = len(y)
    everybody, before = np.ones(size, dtype=bool), np.arange(size) < kept
    parts = [before, everybody]
    releases = [
        Release(maker().fit(X[part], y[part]), X, y, part)
        for maker, part in zip(makers, parts, strict=True)
    ]
    laws = joint_laws(releases)
    promised = np.asarray(measures.advantage(laws.law_pair()))
    alone = np.zeros((2, size))
    for place, part in enumerate(parts):
        own = fitted.laws_of(releases[place].estimator, X[part], y[part])
        alone[place, part] = np.asarray(measures.advantage(own.law_pair()))
    coins = np.random.default_rng(0).random((models, size)) < 0.5
    scores = np.empty((models, 2, size))
    for number, drawn in enumerate(coins):
        for place, (maker, part) in enumerate(zip(makers, parts, strict=True)):
            inside = drawn & part
            scores[number, place] = score(maker().fit(X[inside], y[inside]), X, y)
    reached = np.empty(size)
    off = np.empty(size)
    for i in range(size):
        ratio = log_ratio(laws, i, scores[:, :, i])
        inside = coins[:, i]
        reached[i] = np.mean(ratio[inside] > 0) - np.mean(ratio[~inside] > 0)
        seen = np.corrcoef(scores[~inside, :, i].T)[0, 1]
        c = laws.nonmember_covariance[i]
        off[i] = seen - c[0, 1] / np.sqrt(c[0, 0] * c[1, 1])
    for who, some in (("in both", before), ("joined later", ~before)):
        if not some.any():
            continue
        error = float(np.std(reached[some] - promised[some]) / np.sqrt(some.sum()))
        print(
            f"| {name} | {who} | {some.sum()} | {alone.max(0)[some].mean():.4f} | "
            f"{promised[some].mean():.4f} | {reached[some].mean():.4f} ± {error:.4f} | "
            f"{np.mean(off[some]):+.4f} | {laws.trusted[some].mean():.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=2000)
    models = parser.parse_args().models
    warnings.simplefilter("ignore")
    print(
        "| model | who | records | by one release | promised together | reached | correlation, "
        "truth less ours | trusted |"
    )
    print("|---|---|---|---|---|---|---|---|")
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)

    def ridge(alpha: float) -> Any:
        return lambda: Ridge(alpha=alpha)

    compared("ridge, diabetes, 342 then 442", X, y, [ridge(5.0)] * 2, 342, models)
    compared("ridge, diabetes, 432 then 442", X, y, [ridge(5.0)] * 2, 432, models)
    compared("ridge, diabetes, penalty 5 and 500", X, y, [ridge(5.0), ridge(500.0)], 442, models)
    counts = np.rint(y / 25.0)
    poisson = lambda: PoissonRegressor(alpha=0.01, tol=1e-8, max_iter=1000)  # noqa: E731
    compared("Poisson, diabetes, 342 then 442", X, counts, [poisson] * 2, 342, models // 4)
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    X, y = StandardScaler().fit_transform(X)[order], y[order]
    logistic = lambda: LogisticRegression(C=0.1, tol=1e-8, max_iter=2000)  # noqa: E731
    compared("logistic, breast cancer, 469 then 569", X, y, [logistic] * 2, 469, models // 2)


if __name__ == "__main__":
    main()
