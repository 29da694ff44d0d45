"""Erasure against refits: the exact fit without records, and what is told apart.

    cd benchmarks && PYTHONPATH=../src python erasure.py

Prints the tables of docs/erase.md.  Refits are scikit-learn's own, to a tolerance of 1e-12.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import leakscope
from leakscope.fitted import from_sklearn
from leakscope.fitted.erasure import without

TIGHT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


def theta_of(model: Any) -> np.ndarray:
    rows = np.atleast_2d(model.coef_)
    return np.column_stack([rows, np.ravel(model.intercept_)]).T


def exact_fits() -> None:
    print(
        "| model | records | erased | largest difference from a refit, of the largest coefficient |"
    )
    print("|---|---|---|---|")
    diabetes = load_diabetes(return_X_y=True)
    sets = {
        "Ridge(alpha=1), diabetes": (scale(diabetes[0]), diabetes[1], Ridge()),
        "LogisticRegression(C=1), breast cancer": (
            *_scaled(load_breast_cancer), LogisticRegression(**TIGHT)),
        "LogisticRegression(C=1), wine, 3 classes": (
            *_scaled(load_wine), LogisticRegression(**TIGHT)),
        "PoissonRegressor(alpha=1), diabetes": (
            scale(diabetes[0]), diabetes[1], PoissonRegressor(**TIGHT)),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    for name, (X, y, model) in sets.items():
        problem = from_sklearn(model.fit(X, y), X, y).problems[0]
        for count in (1, 5, 50):
            rows = rng.choice(len(y), count, replace=False)
            rest = np.setdiff1d(np.arange(len(y)), rows)
            found = without(problem, rows)
            refit = theta_of(type(model)(**model.get_params()).fit(X[rest], y[rest]))
            found = found.reshape(refit.shape)
            if refit.shape[1] > 1:  # a constant over all classes changes nothing
                found, refit = (each - each.mean(axis=1, keepdims=True) for each in (found, refit))
            gap = np.abs(found - refit).max() / np.abs(refit).max()
            print(f"| {name} | {count} | {gap:.1e} |")


def told_apart() -> None:
    X, y = load_breast_cancer(return_X_y=True)

    def fitted(rows: np.ndarray, C: float = 1.0, **more: Any) -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(C=C, **(more or TIGHT))).fit(
            X[rows], y[rows]
        )

    everyone = np.arange(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(X, y, model=fitted(everyone))
    rng = np.random.default_rng(1)
    counts: dict[str, dict[str, int]] = {}
    for record in rng.choice(len(y), 30, replace=False).tolist():
        rest = np.delete(everyone, record)
        other = np.delete(everyone, int(rng.integers(len(y))))
        scaler = StandardScaler().fit(X)
        inner = LogisticRegression(**TIGHT).fit(scaler.transform(X[rest]), y[rest])
        files = {
            "the fit without it": fitted(rest),
            "kept the record": fitted(everyone),
            "dropped another": fitted(other),
            "another penalty (C = 2)": fitted(rest, C=2.0),
            "a scaler that saw it": Pipeline([("a", scaler), ("b", inner)]),
            "lbfgs, tol 1e-4, without it": fitted(rest, max_iter=2000),
            "lbfgs, tol 1e-4, with it": fitted(everyone, max_iter=2000),
        }
        for name, after in files.items():
            found = leakscope.erase(audit, records=[record], after=after).found
            counts.setdefault(name, {}).setdefault(found, 0)
            counts[name][found] += 1
    print("\n| the file after | what is said, of 30 records |")
    print("|---|---|")
    for name, told in counts.items():
        print(f"| {name} | {', '.join(f'{what} {count}' for what, count in told.items())} |")


def _scaled(load: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    return scale(X), y


if __name__ == "__main__":
    exact_fits()
    told_apart()
