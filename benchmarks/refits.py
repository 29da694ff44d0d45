"""Does the limit on what refits move protect the numbers?  ``python benchmarks/refits.py``

For each pipeline: the whole and the held fits on 400 random halves (complementary pairs).  Truth is
what the 400 say of the whole; the laws' side is what they say of the held fit, which the laws
describe.  A record is off where its advantage differs by more than 0.1 or its TPR at 1% FPR by more
than a factor of two.  The rule sees 12 of the halves at a time, twenty times over.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from leakscope import fitted, measures
from leakscope.fitted.fitted_laws import MOST_MOVED
from leakscope.fitted.record_population import means_and_squares
from leakscope.fitted.refits import REFITS, WholeFit, _parts
from leakscope.laws import LawPair, Normal

HALVES, LIMITS = 400, (0.2, 0.3, 0.4, 0.5)


def pair(scores: np.ndarray, inside: np.ndarray) -> LawPair:
    """Normals with the moments of these scores, in and out."""
    laws = []
    for mask in (inside, ~inside):
        count, mean, squares = means_and_squares(scores, mask)
        laws.append(Normal(mean, np.sqrt(squares / (count - 1))))
    return LawPair(*laws)


def study(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """One pipeline, one row for each limit."""
    model.fit(X, y)
    whole = WholeFit.of(model, X, y)
    sd = fitted.laws_of(model, X, y).nonmember_sd
    parts = _parts(whole.y, 0.5, HALVES, classes=hasattr(whole.found.inner, "classes_"))
    inside = np.array([np.isin(np.arange(len(y)), rows) for rows in parts])
    refitted = np.array([whole.scores(rows) for rows in parts])
    held = np.array([whole.held(rows) for rows in parts])
    true, said = pair(refitted, inside), pair(held, inside)
    error = np.abs(measures.advantage(true) - measures.advantage(said))
    ratio = np.log(measures.tpr_at_fpr(true, 0.01) / measures.tpr_at_fpr(said, 0.01))
    off = (error > 0.1) | (np.abs(ratio) > np.log(2.0))
    gap = ((refitted - held) / sd).reshape(HALVES // 2, 2, -1) ** 2
    generator = np.random.default_rng(5)
    sizes = np.array(
        [
            np.sqrt(gap[generator.choice(HALVES // 2, REFITS // 2, replace=False)].mean((0, 1)))
            for _ in range(20)
        ]
    )
    cells = []
    for limit in LIMITS:
        passed = (sizes <= limit) & (np.median(sizes, axis=1, keepdims=True) <= 1.25 * limit)
        wrong = np.count_nonzero(passed & off) / max(np.count_nonzero(passed), 1)
        cells.append(f"{passed.mean():6.1%} pass, {wrong:5.2%} off")
    print(f"{name:28s} {off.mean():5.1%} off | " + " | ".join(cells), flush=True)


def main() -> None:
    """Every pipeline."""
    warnings.simplefilter("ignore")
    X, y = load_breast_cancer(return_X_y=True)
    Z, t = load_diabetes(return_X_y=True)
    print(f"limits {LIMITS}, in use {MOST_MOVED}; {REFITS} refits")
    logistic = LogisticRegression
    study("scaler, C=1", make_pipeline(StandardScaler(), logistic()), X, y)
    study("scaler, C=0.01", make_pipeline(StandardScaler(), logistic(C=0.01)), X, y)
    study("min and max", make_pipeline(MinMaxScaler(), logistic()), X, y)
    study("quantiles", make_pipeline(QuantileTransformer(n_quantiles=100), logistic()), X, y)
    study("PCA(5)", make_pipeline(StandardScaler(), PCA(5), logistic()), X, y)
    study("10 best", make_pipeline(StandardScaler(), SelectKBest(k=10), logistic()), X, y)
    degree = PolynomialFeatures(2)
    study("scaler, ridge", make_pipeline(degree, StandardScaler(), Ridge(10.0)), Z, t)
    best = SelectKBest(f_regression, k=20)
    study("20 best, ridge", make_pipeline(degree, StandardScaler(), best, Ridge(10.0)), Z, t)


if __name__ == "__main__":
    main()
