"""The truth for a few records: the target model retrained with everything and without the record.

A record's exposure is how far apart the model's log-odds for its own label are, with and without
it: difference of means over the pooled standard deviation of single models (Cohen's d).
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from answers import read_question, write_answer
from targets import logit, target

STATE: dict = {}


def start(name: str, X: np.ndarray, y: np.ndarray) -> None:
    STATE.update(name=name, X=X, y=y)


def with_everything(seed: int) -> np.ndarray:
    X, y = STATE["X"], STATE["y"]
    fitted = target(STATE["name"], 10_000 + seed).fit(X, y)
    return logit(fitted.predict_proba(X)[np.arange(len(y)), y])


def without(task: tuple[int, int]) -> float:
    row, seed = task
    X, y = STATE["X"], STATE["y"]
    fitted = target(STATE["name"], 20_000 + 1000 * row + seed)
    fitted.fit(np.delete(X, row, 0), np.delete(y, row))
    return float(logit(fitted.predict_proba(X[row : row + 1])[:, y[row]])[0])


def main() -> None:
    question, data = read_question()
    X, y, rows = data["X"], data["y"], data["rows"].tolist()
    models = question["models"]
    begun = time.perf_counter()
    arguments = (question["target"], X, y)
    with ProcessPoolExecutor(question["workers"], initializer=start, initargs=arguments) as pool:
        inside = np.array(list(pool.map(with_everything, range(2 * models))))[:, rows]
        tasks = [(row, seed) for row in rows for seed in range(models)]
        outside = np.array(list(pool.map(without, tasks, chunksize=4))).reshape(len(rows), models).T
    spread = np.sqrt(0.5 * (inside.var(axis=0, ddof=1) + outside.var(axis=0, ddof=1)))
    difference = inside.mean(axis=0) - outside.mean(axis=0)
    write_answer(
        {
            "seconds": time.perf_counter() - begun,
            "exposure": (difference / np.maximum(spread, 1e-9)).tolist(),
            "shift": difference.tolist(),
            "spread": spread.tolist(),
            "fits": 2 * models + len(tasks),
        }
    )


if __name__ == "__main__":
    main()
