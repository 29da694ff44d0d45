"""The penalty by leave-one-out of one fit beside five-fold cross-validation: choice and cost.

    python benchmarks/penalty.py
    python benchmarks/penalty.py --adult adult.data

Both choose among the same penalties (`settings.audit.PENALTIES`) on standardised features, in one
process with one thread; seconds are of the processor.  Five folds are scikit-learn's GridSearchCV
with the solver that leakscope itself uses, so that the ratio is of the method and not of a solver.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.settings.audit import PENALTIES

warnings.simplefilter("ignore")


def sets(adult: str | None) -> list[tuple[str, str, Any, Any]]:
    """Name, model, features and target."""
    rng = np.random.default_rng(11)
    rows = [
        ("diabetes", "ridge", *datasets.load_diabetes(return_X_y=True)),
        ("friedman", "ridge", *datasets.make_friedman1(400, 10, noise=2.0, random_state=1)),
        ("wide", "ridge", *datasets.make_regression(80, 120, noise=40.0, random_state=2)),
        ("breast cancer", "logistic", *datasets.load_breast_cancer(return_X_y=True)),
        ("wine", "logistic", *datasets.load_wine(return_X_y=True)),
        ("iris", "logistic", *datasets.load_iris(return_X_y=True)),
        ("digits", "logistic", *datasets.load_digits(return_X_y=True)),
        (
            "made, a tenth flipped",
            "logistic",
            *datasets.make_classification(1000, 50, n_informative=5, flip_y=0.1, random_state=3),
        ),
        (
            "made, rare class",
            "logistic",
            *datasets.make_classification(
                800, 20, n_informative=4, weights=[0.95], class_sep=0.7, random_state=4
            ),
        ),
    ]
    X = rng.normal(size=(500, 8))
    rows.append(("counts", "poisson", X, rng.poisson(np.exp(0.3 * X[:, 0] + 0.2)).astype(float)))
    if adult:
        import pandas as pd

        table = pd.read_csv(adult, header=None, skipinitialspace=True)
        y = (table[14] == table[14].iloc[-1]).to_numpy().astype(int)
        X = pd.get_dummies(table.drop(columns=14)).to_numpy(dtype=float)
        rows.append(("Adult", "logistic", X, y))
    return rows


def by_folds(model: str, X: Any, y: Any) -> float:
    """Five folds of scikit-learn's search."""
    newton = {"solver": "newton-cholesky", "max_iter": 1000}
    estimator, key, scoring, folds = {
        "ridge": (Ridge(), "alpha", "neg_mean_squared_error", KFold),
        "poisson": (
            PoissonRegressor(tol=1e-8, **newton), "alpha", "neg_mean_poisson_deviance", KFold
        ),
        "logistic": (LogisticRegression(tol=1e-7, **newton), "C", "neg_log_loss", StratifiedKFold),
    }[model]  # fmt: skip
    search = GridSearchCV(
        estimator,
        {key: list(PENALTIES[model])},
        scoring=scoring,
        cv=folds(5, shuffle=True, random_state=0),
    )
    return float(search.fit(X, y).best_params_[key])


def main() -> None:
    """Print one row for each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", help="adult.data of the UCI repository")
    asked = parser.parse_args()
    from leakscope.subjects.fit.models import _by_leave_one_out

    print(
        "| data | records x features | leave-one-out | five folds | steps apart | s | s of folds |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, model, X, y in sets(asked.adult):
        X = StandardScaler().fit_transform(X)
        y = (y - y.mean()) / y.std() if model == "ridge" else y
        start = time.process_time()
        ours = _by_leave_one_out(model, "C" if model == "logistic" else "alpha", X, y, {})
        middle = time.process_time()
        theirs = by_folds(model, X, y)
        end = time.process_time()
        grid = np.log10(PENALTIES[model])
        apart = abs(np.log10(ours) - np.log10(theirs)) / (grid[1] - grid[0])
        print(
            f"| {name} | {X.shape[0]} x {X.shape[1]} | {ours:.3g} | {theirs:.3g} | {apart:.0f} "
            f"| {middle - start:.2f} | {end - middle:.2f} |",
            flush=True,
        )
    print(f"leakscope {leakscope.__version__}, NumPy {np.__version__}, one thread")


if __name__ == "__main__":
    main()
