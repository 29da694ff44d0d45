"""Truths of forests and boosted trees, and of what carries no information, on complementary halves.

``python benchmarks/exposure/trees.py exposure_data.npz --out truths --processes 2``

A forest's log-odds are those of (votes + 1/2) out of (trees + 1), so that a unanimous vote stays
finite.  The nulls say nothing, or next to nothing, of who was in: some models are never trained
on their rows, some (linear in five columns, or a tree of four leaves) learn labels that were
shuffled once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from truth_files import halves, write_truth

Trained = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def forest(
    options: dict[str, Any], X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int
) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(random_state=seed, **options)
    chance = model.fit(X[mask], y[mask]).predict_proba(X)[np.arange(len(y)), y]
    trees = len(model.estimators_)
    chance = (chance * trees + 0.5) / (trees + 1)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def boosting(
    options: dict[str, Any], X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int
) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        early_stopping=False, random_state=seed, max_features=0.5, **options
    )
    margin = model.fit(X[mask], y[mask]).decision_function(X)
    return np.asarray(np.where(y == 1, margin, -margin))


def ignores_its_rows(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(X.shape[1]) / np.sqrt(X.shape[1])
    margin = X @ direction + rng.standard_normal()
    return np.asarray(np.where(y == 1, margin, -margin))


def drifts(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    """Another that ignores its rows: one function for all models, more or less sure of itself."""
    rng = np.random.default_rng(seed)
    margin = np.tanh(X[:, :5]) @ np.array([0.5, 1.0, 0.7, 0.3, 0.4]) - 1.0
    margin = margin * np.exp(0.3 * rng.standard_normal()) + 0.3 * rng.standard_t(4, len(y))
    return np.asarray(np.where(y == 1, margin, -margin))


def shuffled_labels(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    y = np.random.default_rng(7).permutation(y)
    model = LogisticRegression(C=1.0, max_iter=300).fit(X[mask][:, :5], y[mask])
    margin = model.decision_function(X[:, :5])
    return np.asarray(np.where(y == 1, margin, -margin))


def shuffled_stump(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.tree import DecisionTreeClassifier

    y = np.random.default_rng(8).permutation(y)
    model = DecisionTreeClassifier(max_leaf_nodes=4, min_samples_leaf=100, random_state=seed)
    chance = model.fit(X[mask], y[mask]).predict_proba(X)[np.arange(len(y)), y]
    return np.asarray(np.log(chance + 1e-3) - np.log(1.0 - chance + 1e-3))


TRUTHS: dict[str, tuple[str, Trained]] = {
    "adult_forest_full": ("adult", partial(forest, {"n_estimators": 200})),
    "adult_forest_leaf5": ("adult", partial(forest, {"n_estimators": 200, "min_samples_leaf": 5})),
    "adult_boosting_short": ("adult", partial(boosting, {"max_iter": 30})),
    "adult_boosting_long": ("adult", partial(boosting, {"max_iter": 150})),
    "null_ignores": ("adult", ignores_its_rows),
    "null_shuffled": ("adult", shuffled_labels),
    # Made when the estimator's first form was there, and kept unseen until its last.
    "test_adult_forest_shallow": (
        "adult_test",
        partial(forest, {"n_estimators": 200, "max_depth": 8, "max_features": 0.3}),
    ),
    "test_adult_forest_bagged": (
        "adult_test",
        partial(forest, {"n_estimators": 300, "max_samples": 0.5}),
    ),
    "test_adult_boosting_short": (
        "adult_test",
        partial(boosting, {"max_iter": 60, "max_depth": 3}),
    ),
    "test_adult_boosting_long": (
        "adult_test",
        partial(boosting, {"max_iter": 200, "max_leaf_nodes": 15, "learning_rate": 0.05}),
    ),
    "null_test_drifts": ("adult_test", drifts),
    "null_test_shuffled": ("adult_test", shuffled_labels),
    "null_test_stump": ("adult_test", shuffled_stump),
}


def _one(name: str, X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    return TRUTHS[name][1](X, y, mask, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("truths"))
    parser.add_argument("--models", type=int, default=256)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(TRUTHS), choices=list(TRUTHS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with np.load(given.data) as archive:
        arrays = {name: archive[name][: given.records] for name in archive.files if "adult" in name}
    for number, name in enumerate(TRUTHS):
        if name not in given.only:
            continue
        start = time.perf_counter()
        data = TRUTHS[name][0]
        X, y = arrays[f"{data}_X"], arrays[f"{data}_y"]
        mask = halves(given.models, len(X), seed=3000 + number)
        with ProcessPoolExecutor(given.processes) as pool:
            jobs = [
                pool.submit(_one, name, X, y, m, 10_000 * number + k) for k, m in enumerate(mask)
            ]
            found = np.stack([job.result() for job in jobs])
        write_truth(given.out / f"{name}.npz", found, mask, data)
        right = found > 0
        print(
            f"{name:20} {found.shape[0]} models x {found.shape[1]} records, accuracy in "
            f"{right[mask].mean():.3f} out {right[~mask].mean():.3f}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
