"""Truths of forests and boosted trees, and of what carries no information, on complementary halves.

``python benchmarks/exposure/trees.py exposure_data.npz --out truths --processes 2``

A forest's log-odds are those of (votes + 1/2) out of (trees + 1), so that a unanimous vote stays
finite.  The two nulls say nothing, or next to nothing, of who was in: one model is never trained
on its rows, one (linear in five columns) learns labels that were shuffled once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

Trained = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def halves(models: int, records: int, seed: int) -> np.ndarray:
    """Complementary halves: models x records, true where the model is trained on the record."""
    rng = np.random.default_rng(seed)
    trained_on = np.zeros((models, records), bool)
    for pair in range(models // 2):
        chosen = rng.permutation(records)[: records // 2]
        trained_on[2 * pair, chosen] = True
        trained_on[2 * pair + 1] = ~trained_on[2 * pair]
    return trained_on


def forest(
    leaf: int, trees: int, X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int
) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(trees, min_samples_leaf=leaf, random_state=seed)
    chance = model.fit(X[mask], y[mask]).predict_proba(X)[np.arange(len(y)), y]
    chance = (chance * trees + 0.5) / (trees + 1)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def boosting(rounds: int, X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=rounds, early_stopping=False, random_state=seed, max_features=0.5
    )
    margin = model.fit(X[mask], y[mask]).decision_function(X)
    return np.asarray(np.where(y == 1, margin, -margin))


def ignores_its_rows(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(X.shape[1]) / np.sqrt(X.shape[1])
    margin = X @ direction + rng.standard_normal()
    return np.asarray(np.where(y == 1, margin, -margin))


def shuffled_labels(X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    y = np.random.default_rng(7).permutation(y)
    model = LogisticRegression(C=1.0, max_iter=300).fit(X[mask][:, :5], y[mask])
    margin = model.decision_function(X[:, :5])
    return np.asarray(np.where(y == 1, margin, -margin))


TRUTHS: dict[str, Trained] = {
    "adult_forest_full": partial(forest, 1, 200),
    "adult_forest_leaf5": partial(forest, 5, 200),
    "adult_boosting_short": partial(boosting, 30),
    "adult_boosting_long": partial(boosting, 150),
    "null_ignores": ignores_its_rows,
    "null_shuffled": shuffled_labels,
}


def _one(name: str, X: np.ndarray, y: np.ndarray, mask: np.ndarray, seed: int) -> np.ndarray:
    return TRUTHS[name](X, y, mask, seed)


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
        X, y = archive["adult_X"][: given.records], archive["adult_y"][: given.records]
    for number, name in enumerate(TRUTHS):
        if name not in given.only:
            continue
        start = time.perf_counter()
        mask = halves(given.models, len(X), seed=3000 + number)
        with ProcessPoolExecutor(given.processes) as pool:
            jobs = [
                pool.submit(_one, name, X, y, m, 10_000 * number + k) for k, m in enumerate(mask)
            ]
            found = np.stack([job.result() for job in jobs])
        np.savez_compressed(
            given.out / f"{name}.npz",
            log_odds=found.astype(np.float16),
            trained_on=np.packbits(mask, axis=1),
        )
        right = found > 0
        print(
            f"{name:20} {found.shape[0]} models x {found.shape[1]} records, accuracy in "
            f"{right[mask].mean():.3f} out {right[~mask].mean():.3f}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
