"""The default audit, without options, of six data sets and four models, against the truth.

    python benchmarks/default_audits.py [--only NAME] [--models 200] >> docs/benchmarks/defaults.md

For each: the processor time to the answer, what the answer says, and what is counted from shadow
models of halves of the records (a test fitted on one half of the shadow models, tried on the
other, both ways).  Adult and Location-30 are samples of 600 records, digits every third, so that
shadow models can be had.
"""

from __future__ import annotations

import argparse
import os
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

import leakscope

DATA = Path(os.environ.get("LEAKSCOPE_DATA", "../shared/data"))
SAMPLE = 600

Arrays = tuple[np.ndarray, np.ndarray]


def _some(X: np.ndarray, y: np.ndarray) -> Arrays:
    rows = np.random.default_rng(0).permutation(len(X))[:SAMPLE]
    return X[rows], y[rows]


def adult() -> Arrays:
    frame = pd.read_csv(DATA / "adult.data", header=None, skipinitialspace=True)
    X = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float)
    return _some(X, (frame.iloc[:, -1] == ">50K").to_numpy(int))


def location() -> Arrays:
    with np.load(DATA / "location30.npz") as held:
        return _some(held["X"].astype(float), held["y"])


SETS: dict[str, Callable[[], Arrays]] = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "Adult, 600": adult,
    "digits, 599": lambda: tuple(part[::3] for part in datasets.load_digits(return_X_y=True)),
    "Location-30, 600": location,
}  # type: ignore[dict-item]


def models(quantity: bool, two: bool, few: bool) -> dict[str, Any]:
    if quantity:
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
    if few:
        saga = LogisticRegression(l1_ratio=1.0, solver="saga", C=0.3, max_iter=300)
        found["L1 logistic"] = make_pipeline(StandardScaler(), saga)
    elif two:
        l1 = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=0.3, tol=1e-8, max_iter=5000)
        found["L1 logistic"] = make_pipeline(StandardScaler(), l1)
    return found


def scores_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-odds or decision value of the own label, or the residual."""
    if not is_classifier(model):
        return np.asarray(model.predict(X) - y)
    rows, own = np.arange(len(y)), np.searchsorted(model.classes_, y)
    if hasattr(model, "predict_proba"):
        chance = np.clip(model.predict_proba(X)[rows, own], 1e-12, 1 - 1e-12)
        return np.asarray(np.log(chance / (1 - chance)))
    value = model.decision_function(X)
    if value.ndim == 1:
        return np.where(own == 1, value, -value)
    rest = value.copy()
    rest[rows, own] = -np.inf
    return np.asarray(value[rows, own] - rest.max(axis=1))


def shadows(model: Any, X: np.ndarray, y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    scores, inside = np.empty((count, len(y))), np.empty((count, len(y)), dtype=np.bool_)
    for number in range(count):
        rng = np.random.default_rng(number)
        while True:
            chosen = rng.random(len(y)) < 0.5
            if not is_classifier(model) or len(np.unique(y[chosen])) == len(np.unique(y)):
                break
        scores[number] = scores_of(clone(model).fit(X[chosen], y[chosen]), X, y)
        inside[number] = chosen
    return scores, inside


def counted(scores: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Each record's advantage, by two normals of one half of the models, counted on the other."""
    found = []
    for first in (0, 1):
        fit, test = np.arange(len(scores)) % 2 == first, np.arange(len(scores)) % 2 != first
        value = np.empty(scores.shape[1])
        for record in range(scores.shape[1]):
            z, member = scores[:, record], inside[:, record]
            sides = [z[fit & member], z[fit & ~member]]
            means, sds = [s.mean() for s in sides], [max(s.std(ddof=1), 1e-9) for s in sides]
            ratio = stats.norm.logpdf(z[test], means[0], sds[0]) - stats.norm.logpdf(
                z[test], means[1], sds[1]
            )
            own = member[test]
            value[record] = np.mean(ratio[own] > 0) - np.mean(ratio[~own] > 0)
        found.append(value)
    return np.asarray(np.mean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=int, default=200, help="shadow models, at most")
    parser.add_argument("--minutes", type=float, help="of the audit; left out, its default")
    parser.add_argument("--seconds", type=float, default=90.0, help="of shadow models, at most")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, make in SETS.items():
        if given.only not in name:
            continue
        X, y = make()
        for title, model in models(
            name == "diabetes", len(np.unique(y)) == 2, len(y) < 200
        ).items():
            begin = time.process_time()
            found = leakscope.audit(X, y, model=model, minutes=given.minutes)
            seconds = time.process_time() - begin
            begin = time.process_time()
            clone(model).fit(X[::2], y[::2])
            each = max(time.process_time() - begin, 1e-3)
            count = int(np.clip(given.seconds / each, 20, given.models)) // 2 * 2
            truth = counted(*shadows(model, X, y, count))
            rank = stats.spearmanr(truth, found.advantage).statistic
            known, ends = found.trusted, ""
            if "advantage_low" in found.table:
                low, high = (found.table.of(f"advantage_{end}") for end in ("low", "high"))
                # What so few shadow models count has noise of its own.
                noise = 2.0 * np.sqrt(0.5 / count)
                ends = f"{100 * np.mean((truth >= low - noise) & (truth <= high + noise)):.0f}%"
            how = found.sentences[0].partition(";")[2].rpartition(";")[2].strip(" .")
            if found.details.models is not None:
                how = f"{found.details.models} fits or models"
            print(
                f"| {name} | {title} | {how or 'laws of one fit'} | {seconds:.1f} | "
                f"{found.advantage.mean():.3f} | {truth.mean():.3f} | {rank:.2f} | "
                f"{100 * np.mean(known):.0f}% | {ends or '–'} | {count} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
