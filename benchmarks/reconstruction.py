"""A record from a fit and everybody else: by the solver's tolerance, and beside ART.

    cd benchmarks && PYTHONPATH=../src python reconstruction.py

Prints the tables of docs/attack.md.  ART's DatabaseReconstruction, which refits for every numerical
gradient, is raced on the two small sets where adversarial-robustness-toolbox is installed.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from leakscope.fitted import from_sklearn
from leakscope.fitted.reconstruction import every_record, reconstruct

SETS = {"breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}
RACED = 3


def by_tolerance() -> None:
    print("| data | solver | tolerance | found to within 1% | labels right | half needs |")
    print("|---|---|---|---|---|---|")
    for name, load in SETS.items():
        X, y = load(return_X_y=True)
        X = scale(X)
        for solver in ("lbfgs", "newton-cholesky"):
            for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
                model = LogisticRegression(solver=solver, tol=tolerance, max_iter=20_000).fit(X, y)
                found = every_record(from_sklearn(model, X, y, at_optimum=False).problems[0])
                print(
                    f"| {name} | {solver} | {tolerance:.0e} | {found.found:.1%} | "
                    f"{found.right.mean():.1%} | {found.needed / len(y):.1e} |"
                )


def beside_art() -> None:
    try:
        from art.attacks.inference.reconstruction import DatabaseReconstruction
        from art.estimators.classification.scikitlearn import SklearnClassifier
    except ImportError:
        print("\nART is not installed; no race.")
        return
    print(
        f"\n| data | attack | median error of {RACED} records | labels right | seconds a record |"
    )
    print("|---|---|---|---|---|")
    for name, load in SETS.items():
        X, y = load(return_X_y=True)
        X = scale(X)
        model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
        rows = np.random.default_rng(0).choice(len(y), RACED, replace=False)

        def ours(rest: Any, X: Any = X, y: Any = y, model: Any = model) -> tuple[Any, float]:
            known = from_sklearn(model, X[rest], y[rest], at_optimum=False)
            found = reconstruct(known.problems[0])
            return found.x, found.label

        def theirs(rest: Any, X: Any = X, y: Any = y, model: Any = model) -> tuple[Any, float]:
            attack = DatabaseReconstruction(SklearnClassifier(model=model))
            x, label = attack.reconstruct(X[rest], np.eye(len(np.unique(y)))[y[rest]])
            return x[0], float(np.argmax(label))

        for who, attack in (("leakscope", ours), ("ART DatabaseReconstruction", theirs)):
            errors, right = [], 0
            start = time.process_time()
            for row in rows:
                rest = np.delete(np.arange(len(y)), row)
                x, label = attack(rest)
                errors.append(np.linalg.norm(x - X[row]) / np.linalg.norm(X[row]))
                right += int(label == y[row])
            took = (time.process_time() - start) / RACED
            print(
                f"| {name} | {who} | {np.median(errors):.1e} | {right} of {RACED} | {took:.2g} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    by_tolerance()
    beside_art()
