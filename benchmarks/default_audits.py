"""The default audit, without options, of six data sets and four models, against the truth.

    python benchmarks/default_audits.py FOLDER --truths [--seconds 150]
    python benchmarks/default_audits.py FOLDER [--only NAME] [--full]

The first trains shadow models on random halves of the records and keeps their scores in FOLDER; the
second audits as a user without options does, and prints a row for each: seconds to the answer, what
it says, and what the attack of `trust_audit.py` gets, which learns on some of the shadow models and
is counted on others.  Adult and Location-30 are samples of 600 records, digits every third, so that
hundreds of shadow models can be had; with ``--full`` they are whole.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn import datasets
from sklearn.base import clone, is_classifier
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from trust_audit import attacked, levelled

import leakscope
from leakscope.fitted.refits import score_records

DATA = Path(os.environ.get("LEAKSCOPE_DATA", "../shared/data"))
SAMPLE = 600
# So many shadow models are counted at least, and so many records at most.
LEAST_COUNTED, MOST_COUNTED = 60, 2000

Arrays = tuple[np.ndarray, np.ndarray]


def some(arrays: Arrays) -> Arrays:
    rows = np.random.default_rng(0).permutation(len(arrays[0]))[:SAMPLE]
    return arrays[0][rows], arrays[1][rows]


def adult() -> Arrays:
    frame = pd.read_csv(DATA / "adult.data", header=None, skipinitialspace=True)
    X = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float)
    return X, (frame.iloc[:, -1] == ">50K").to_numpy(int)


def location() -> Arrays:
    with np.load(DATA / "location30.npz") as held:
        return held["X"].astype(float), held["y"]


SETS: dict[str, Callable[[], Arrays]] = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "Adult, 600": lambda: some(adult()),
    "digits, 599": lambda: tuple(part[::3] for part in datasets.load_digits(return_X_y=True)),
    "Location-30, 600": lambda: some(location()),
}  # type: ignore[dict-item]
FULL: dict[str, Callable[[], Arrays]] = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "Adult": adult,
    "Location-30": location,
}


def models(name: str, y: np.ndarray) -> dict[str, Any]:
    if name == "diabetes":
        return {
            "GradientBoosting": GradientBoostingRegressor(random_state=0),
            "Lasso": make_pipeline(StandardScaler(), Lasso(alpha=1.0)),
            "SVR": make_pipeline(StandardScaler(), SVR(C=10.0)),
            "MLP": make_pipeline(
                StandardScaler(), MLPRegressor(hidden_layer_sizes=(30,), max_iter=500)
            ),
        }
    found: dict[str, Any] = {
        "SVC": make_pipeline(StandardScaler(), SVC()),
        "MLP": make_pipeline(StandardScaler(), MLPClassifier((30,), max_iter=200)),
        "GradientBoosting": GradientBoostingClassifier(n_estimators=30, random_state=0),
    }
    l1 = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=0.3)
    if len(np.unique(y)) > 2:
        l1 = LogisticRegression(l1_ratio=1.0, solver="saga", C=0.3, max_iter=300)
    found["L1 logistic"] = make_pipeline(StandardScaler(), l1)
    return found


def scores_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-odds or margin of the own label, or the prediction."""
    if not is_classifier(model):
        return np.asarray(model.predict(X))
    if not hasattr(model, "predict_proba"):
        return score_records(model[-1], model[:-1].transform(X), y)
    own = np.searchsorted(model.classes_, y)
    chance = np.clip(model.predict_proba(X)[np.arange(len(y)), own], 1e-12, 1 - 1e-12)
    return np.asarray(np.log(chance / (1 - chance)))


def shadows(
    model: Any, X: np.ndarray, y: np.ndarray, kept: Path, seconds: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and who was trained on (models x records), kept in a file as far as they are there."""
    if kept.exists():
        with np.load(kept) as held:
            return held["scores"], held["inside"]
    scores, inside, begin = [], [], time.process_time()
    while len(scores) < 20 or (len(scores) < most and time.process_time() - begin < seconds):
        rng = np.random.default_rng([len(scores), 5])
        while True:
            chosen = rng.random(len(y)) < 0.5
            if not is_classifier(model) or len(np.unique(y[chosen])) == len(np.unique(y)):
                break
        fresh = clone(model)
        if "random_state" in fresh.get_params():
            fresh.set_params(random_state=len(scores))
        scores.append(scores_of(fresh.fit(X[chosen], y[chosen]), X, y))
        inside.append(chosen)
    np.savez_compressed(kept, scores=np.stack(scores), inside=np.stack(inside))
    return np.stack(scores), np.stack(inside)


def counted(scores: np.ndarray, inside: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(2, rows) the attack's advantage, and its standard error."""
    both = np.stack([scores, levelled(scores)], axis=2)
    return np.array([
        attacked(both[inside[:, row], row], both[~inside[:, row], row])[:2] for row in rows
    ]).T  # fmt: skip


def row_of(name: str, title: str, model: Any, X: np.ndarray, y: np.ndarray, kept: Path) -> str:
    """Audit, beside what was counted."""
    begin, process = time.perf_counter(), time.process_time()
    found = leakscope.audit(X, y, model=model)
    seconds, process = time.perf_counter() - begin, time.process_time() - process
    how = found.sentences[0].rpartition(";")[2].strip(" .")
    cells = [name, title, how, f"{seconds:.0f}", f"{process:.0f}", f"{found.advantage.mean():.3f}"]
    trusted, cells_of_truth = np.asarray(found.trusted), ["–"] * 6
    if kept.exists():
        with np.load(kept) as held:
            scores, inside = held["scores"], held["inside"]
        if len(scores) >= LEAST_COUNTED:
            rng = np.random.default_rng(1)
            rows = np.sort(rng.permutation(len(y))[:MOST_COUNTED])
            truth, error = counted(scores, inside, rows)
            said, known = found.advantage[rows], trusted[rows]
            low = high = said
            if "advantage_low" in found.table:
                low, high = (found.table.of(f"advantage_{end}")[rows] for end in ("low", "high"))
            within = (truth >= low - 2.0 * error) & (truth <= high + 2.0 * error)
            most = np.argsort(-truth)[: min(30, len(rows) // 5)]
            off = np.abs(truth - said) - 3.0 * error > 0.1
            cells_of_truth = [
                f"{truth.mean():.3f}",
                f"{stats.spearmanr(truth, said).statistic:.2f}",
                f"{within.mean():.0%}, {within[most].mean():.0%}",
                f"{trusted.mean():.0%}",
                f"{int(np.sum(off & known))} of {int(known.sum())}",
                str(len(scores)),
            ]
    cells_of_truth[3] = f"{trusted.mean():.0%}"
    return f"| {' | '.join([*cells, *cells_of_truth])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="data sets with this in their name")
    parser.add_argument("--model", default="", help="models with this in their name")
    parser.add_argument("--full", action="store_true", help="Adult, Location-30 and digits whole")
    parser.add_argument("--truths", action="store_true", help="train the shadow models")
    parser.add_argument("--models", type=int, default=800, help="shadow models, at most")
    parser.add_argument("--seconds", type=float, default=150.0, help="of shadow models, at most")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name, make in (FULL if given.full else SETS).items():
        if given.only not in name:
            continue
        X, y = make()
        for title, model in models(name, y).items():
            if given.model not in title:
                continue
            kept = given.folder / f"{name}_{title}.npz".replace(" ", "_").replace(",", "")
            if given.truths:
                print(name, title, len(shadows(model, X, y, kept, given.seconds, given.models)[0]))
            else:
                print(row_of(name, title, model, X, y, kept))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
