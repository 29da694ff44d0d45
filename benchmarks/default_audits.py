"""The default audit, without options, of six data sets and four models, against the truth.

    python benchmarks/default_audits.py FOLDER --truths [--full] [--seconds 1800]
    python benchmarks/default_audits.py FOLDER [--only NAME] [--full]

The first trains shadow models on random halves of the records and keeps their scores in FOLDER; the
second audits as a user without options does, and prints a row for each: seconds to the answer, what
it says, and what the attack of `trust_audit.py` gets, which learns on some of the shadow models and
is counted on others.  "Count if right" is what that attack would count on as many models if what
is said were so: the fewer they are, the more it loses.  "Within" is the share of the records that
have what was counted inside their interval, widened by two standard errors of the count (where laws
come without an interval: around the number itself).  Adult and Location-30 are samples of 600
records, digits every third, so that hundreds of shadow models can be had; with ``--full`` they are
whole, and 2,000 records of theirs are counted.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from trust_audit import attacked, count_if_right, levelled

import leakscope
from leakscope.fitted.refits import answers_of

DATA = Path(os.environ.get("LEAKSCOPE_DATA", "../shared/data"))
SAMPLE = 600
# So many records, drawn at random, are counted at most.
MOST_COUNTED = 2000

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


@cache
def arrays_of(name: str) -> Arrays:
    return {**SETS, **FULL}[name]()


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
        return answers_of(model[-1], model[:-1].transform(X), y)
    own = np.searchsorted(model.classes_, y)
    chance = np.clip(model.predict_proba(X)[np.arange(len(y)), own], 1e-12, 1 - 1e-12)
    return np.asarray(np.log(chance / (1 - chance)))


def counted_rows(records: int) -> np.ndarray:
    """Of large sets a sample."""
    return np.sort(np.random.default_rng(1).permutation(records)[:MOST_COUNTED])


def shadow(task: tuple[str, str, int, float]) -> np.ndarray | None:
    """Scores of records by a model of a random half, and who was in it; None if it is too late."""
    name, title, number, end = task
    if time.time() > end:
        return None
    warnings.simplefilter("ignore")
    X, y = arrays_of(name)
    model, rng = models(name, y)[title], np.random.default_rng([number, 5])
    while True:
        chosen = rng.random(len(y)) < 0.5
        if not is_classifier(model) or len(np.unique(y[chosen])) == len(np.unique(y)):
            break
    if "random_state" in model.get_params():
        model.set_params(random_state=number)
    model.fit(X[chosen], y[chosen])
    rows = counted_rows(len(y))
    return np.stack([scores_of(model, X[rows], y[rows]), chosen[rows]]).astype(np.float32)


def train_shadows(wanted: dict[tuple[str, str], Path], most: int, seconds: float) -> None:
    """One shadow model of each in turn, on all cores, until the time is up."""
    end = time.time() + seconds
    tasks = [(*which, number, end) for number in range(most) for which in wanted]
    with Pool() as workers:
        found = list(workers.imap(shadow, tasks))
    for nth, (which, kept) in enumerate(wanted.items()):
        own = [each for each in found[nth :: len(wanted)] if each is not None]
        print(*which, len(own), flush=True)
        if own:
            scores, inside = np.stack(own, axis=1)
            np.savez_compressed(kept, scores=scores, inside=inside > 0.0)


def counted(scores: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(2, records) the attack's advantage, and its standard error."""
    both = np.stack([scores, levelled(scores)], axis=2)
    return np.array([
        attacked(both[own, row], both[~own, row])[:2] for row, own in enumerate(inside.T)
    ]).T  # fmt: skip


def audited(name: str, title: str, kept: Path) -> dict[str, np.ndarray]:
    """What an audit without options says, and what it took; kept beside the truth."""
    place = kept.with_name(f"audit_{kept.name}")
    if not place.exists():
        X, y = arrays_of(name)
        begin, process = time.perf_counter(), time.process_time()
        found = leakscope.audit(X, y, model=models(name, y)[title])
        seconds = time.perf_counter() - begin, time.process_time() - process
        trained = found.details.models
        kind = "models of halves" if found.subject == "training" else "fits of parts"
        ends = [
            found.table.of(f"advantage_{end}")
            if "advantage_low" in found.table
            else found.advantage
            for end in ("low", "high")
        ]
        np.savez(
            place,
            how=f"{trained} {kind}" if trained else "one fit",
            seconds=seconds,
            numbers=np.stack([found.advantage, *ends, found.confirmed]),
        )
    with np.load(place) as held:
        return dict(held)


def row_of(name: str, title: str, kept: Path) -> str:
    """One line: the audit, beside what was counted."""
    found = audited(name, title, kept)
    advantage, low, high, known = found["numbers"]
    cells = [name, title, str(found["how"]), *(f"{each:.0f}" for each in found["seconds"])]
    cells += [f"{advantage.mean():.3f}", f"{known.mean():.0%}"]
    if not kept.exists():
        return f"| {' | '.join([*cells, *['–'] * 6])} |"
    with np.load(kept) as held:
        scores, inside = held["scores"], held["inside"]
    rows = counted_rows(len(advantage))
    (truth, error), said = counted(scores, inside), advantage[rows]
    within = (truth >= low[rows] - 2.0 * error) & (truth <= high[rows] + 2.0 * error)
    most = np.argsort(-truth)[: min(30, len(rows) // 5)]
    off, trusted = np.abs(truth - said) - 3.0 * error > 0.1, known[rows] > 0.0
    cells += [
        f"{truth.mean():.3f}",
        f"{count_if_right(said, inside):.3f}",
        f"{stats.spearmanr(truth, said).statistic:.2f}",
        f"{within.mean():.0%}, {within[most].mean():.0%}",
        f"{int(np.sum(off & trusted))} of {int(trusted.sum())}",
        str(len(scores)),
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "data", "model", "answered by", "seconds", "of processor", "mean advantage", "trusted",
    "counted", "count if right", "rank", "within: all, top 30", "trusted, off", "shadow models",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="data sets with this in their name")
    parser.add_argument("--model", default="", help="models with this in their name")
    parser.add_argument("--full", action="store_true", help="Adult, Location-30 and digits whole")
    parser.add_argument("--truths", action="store_true", help="train the shadow models")
    parser.add_argument("--models", type=int, default=800, help="shadow models of each, at most")
    parser.add_argument("--seconds", type=float, default=1800.0, help="for all shadow models")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    wanted = {
        (name, title): given.folder / f"{name}_{title}.npz".replace(" ", "_").replace(",", "")
        for name in (FULL if given.full else SETS)
        if given.only in name
        for title in models(name, arrays_of(name)[1])
        if given.model in title
    }
    if given.truths:
        left = {which: kept for which, kept in wanted.items() if not kept.exists()}
        train_shadows(left, given.models, given.seconds)
        return
    print(f"| {' | '.join(HEAD)} |\n|---|---|---{'|--:' * (len(HEAD) - 3)}|")
    for (name, title), kept in wanted.items():
        print(row_of(name, title, kept), flush=True)


if __name__ == "__main__":
    main()
