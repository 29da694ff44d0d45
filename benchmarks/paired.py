"""Laws of paired fits against shadow models, family by family.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/paired.py

Two data sets for each family, none of those on which the method was found; `--only` names some
rows, `--models` takes fewer or more shadow models.  Figures so far are kept in `--results`, from
which the page's rows of that name are written; its words are by hand.  Seconds are of one
processor.

Every number of the truth is counted on shadow models, each fitted on a random half: the advantage
and the TPR at 1% FPR of the laws' own likelihood ratio, and its ranks beside what exactly right
laws would reach with so many models.  A score nearer to a corner than 0.003 counts as lying on it,
1e-6 where the solver's tolerance is 1e-9.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_classification, make_friedman1
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR

from leakscope import fitted, measures
from leakscope.errors import InputError
from leakscope.fitted.shadow import ShadowScores, _counted

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "paired.md"
# So near to a corner a score lies on it; nearer where the solver is sharper.
NEAR_CORNER, NEAR_SHARP = 3e-3, 1e-6
FPR = 0.01
# An advantage that differs by more, beside three standard errors of the count, is surely off.
OFF = 0.1


def alcohol() -> tuple[Any, Any]:
    """Wine: how much alcohol, from the other twelve columns and their products (178 x 90)."""
    X = load_wine().data
    y = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    return PolynomialFeatures(2, include_bias=False).fit_transform(X[:, 1:]), y


def plain_alcohol() -> tuple[Any, Any]:
    """The same without products (178 x 12)."""
    X, y = alcohol()
    return X[:, :12], y


def friedman() -> tuple[Any, Any]:
    """Friedman's first function with twenty columns of noise (300 x 25)."""
    X, y = make_friedman1(300, 25, noise=2.0, random_state=3)
    return X, (y - y.mean()) / y.std()


def digits() -> tuple[Any, Any]:
    """Threes and eights, a tenth of the labels flipped (357 x 64)."""
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    return X[kept], flipped((y[kept] == 8).astype(int))


def clusters() -> tuple[Any, Any]:
    """Two classes of two clusters each, a tenth flipped (300 x 20)."""
    return make_classification(300, 20, n_informative=6, flip_y=0.2, random_state=5)


def wines() -> tuple[Any, Any]:
    """Wine: the three growers, a tenth of the labels moved on (178 x 13)."""
    X, y = load_wine(return_X_y=True)
    return X, np.where(np.random.default_rng(4).random(len(y)) < 0.1, (y + 1) % 3, y)


def plain_wines() -> tuple[Any, Any]:
    """The same with six columns: a half has more of each grower than columns (178 x 6)."""
    X, y = wines()
    return X[:, :6], y


def ten_digits() -> tuple[Any, Any]:
    """The first of the digits, all ten classes (400 x 64)."""
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def coarse_digits() -> tuple[Any, Any]:
    """The same in five shades of grey (400 x 64)."""
    X, y = ten_digits()
    return X // 4, y


def words() -> tuple[Any, Any]:
    """Counts of forty words in texts of three kinds, a tenth of these moved on (300 x 40)."""
    generator = np.random.default_rng(6)
    often = generator.gamma(0.5, 1.0, (3, 40))
    y = generator.integers(0, 3, 300)
    X = generator.poisson(often[y]).astype(float)
    return X, np.where(generator.random(300) < 0.1, (y + 1) % 3, y)


def word_or_none() -> tuple[Any, Any]:
    """The same, as none, one or more (300 x 40)."""
    X, y = words()
    return np.minimum(X, 2.0), y


def colours() -> tuple[Any, Any]:
    """Wine: how intense the colour is, above zero and skewed, from the other columns (178 x 12)."""
    X = load_wine().data
    return np.delete(X, 9, axis=1), X[:, 9]


def positive_friedman() -> tuple[Any, Any]:
    """Friedman's function as what a logarithm is (300 x 25)."""
    X, y = friedman()
    return X, np.exp(0.7 * y)


def counts() -> tuple[Any, Any]:
    """Counts with that mean (300 x 25)."""
    X, y = positive_friedman()
    return X, np.random.default_rng(7).poisson(3.0 * y).astype(float)


def flipped(y: Any) -> Any:
    return np.where(np.random.default_rng(4).random(len(y)) < 0.1, 1 - y, y)


SAGA = {"solver": "saga", "max_iter": 3000, "tol": 1e-4}
ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Lasso, alcohol": (alcohol, Lasso(alpha=0.02, max_iter=10_000)),
    "Lasso, friedman": (friedman, Lasso(alpha=0.02)),
    "ElasticNet, alcohol": (alcohol, ElasticNet(alpha=0.05, l1_ratio=0.5, max_iter=10_000)),
    "ElasticNet, friedman": (friedman, ElasticNet(alpha=0.1, l1_ratio=0.5)),
    "LassoCV, alcohol": (plain_alcohol, LassoCV(alphas=20)),
    "LassoCV, friedman": (friedman, LassoCV(alphas=20)),
    "L1 logistic, digits": (digits, LogisticRegression(l1_ratio=1, C=0.1, solver="liblinear")),
    "L1 logistic, clusters": (clusters, LogisticRegression(l1_ratio=1, C=0.2, solver="liblinear")),
    "elastic-net logistic, clusters": (clusters, LogisticRegression(l1_ratio=0.5, C=0.2, **SAGA)),
    "L1 softmax, wines": (wines, LogisticRegression(l1_ratio=1, C=0.5, **SAGA)),
    "LinearSVC, digits": (digits, LinearSVC(C=0.01, dual=False)),
    "LinearSVC, clusters": (clusters, LinearSVC(C=0.1, dual=False)),
    "LinearSVC L1, clusters": (clusters, LinearSVC(C=0.1, penalty="l1", dual=False)),
    "LinearSVR squared, friedman": (
        friedman,
        LinearSVR(C=0.1, epsilon=0.2, loss="squared_epsilon_insensitive", dual=False),
    ),
    "HuberRegressor, friedman": (friedman, HuberRegressor(alpha=1.0, max_iter=1000)),
    "HuberRegressor, alcohol": (alcohol, HuberRegressor(alpha=10.0, max_iter=3000)),
    "SVC, digits": (digits, SVC(C=1.0)),
    "SVC, clusters": (clusters, SVC(C=1.0)),
    "SVC to 1e-9, clusters": (clusters, SVC(C=1.0, tol=1e-9)),
    "LinearSVC hinge, clusters": (clusters, LinearSVC(C=0.1, loss="hinge", max_iter=10_000)),
    "SVR, friedman": (friedman, SVR(C=1.0, epsilon=0.2)),
    "SVR, alcohol": (alcohol, SVR(C=1.0, epsilon=0.2)),
    "SVC of ten classes, digits": (ten_digits, SVC(C=1.0)),
    "SVC of three classes, wines": (wines, SVC(C=1.0)),
    "SVC linear of three classes, wines": (wines, SVC(kernel="linear", C=0.1)),
    "NuSVC, clusters": (clusters, NuSVC(nu=0.5)),
    "NuSVC of three classes, wines": (wines, NuSVC(nu=0.4)),
    "NuSVR, friedman": (friedman, NuSVR(nu=0.5, C=1.0)),
    "NuSVR, alcohol": (alcohol, NuSVR(nu=0.5, C=1.0)),
    "QuantileRegressor, friedman": (friedman, QuantileRegressor(alpha=0.01)),
    "QuantileRegressor, alcohol": (plain_alcohol, QuantileRegressor(quantile=0.8, alpha=0.01)),
    "MultinomialNB, digits": (ten_digits, MultinomialNB()),
    "MultinomialNB, words": (words, MultinomialNB()),
    "ComplementNB, digits": (ten_digits, ComplementNB()),
    "ComplementNB, words": (words, ComplementNB()),
    "BernoulliNB, digits": (ten_digits, BernoulliNB(binarize=7.5)),
    "BernoulliNB, words": (words, BernoulliNB()),
    "CategoricalNB, digits": (coarse_digits, CategoricalNB(min_categories=5)),
    "CategoricalNB, words": (word_or_none, CategoricalNB(min_categories=3)),
    "KNeighbors, digits": (digits, KNeighborsClassifier()),
    "KNeighbors, wines": (wines, KNeighborsClassifier(10)),
    "KNeighbors by distance, clusters": (clusters, KNeighborsClassifier(weights="distance")),
    "GaussianNB, wines": (wines, GaussianNB()),
    "GaussianNB, clusters": (clusters, GaussianNB()),
    "linear discriminant, wines": (wines, LinearDiscriminantAnalysis()),
    "linear discriminant, clusters": (clusters, LinearDiscriminantAnalysis()),
    "quadratic discriminant, wines": (
        plain_wines,
        QuadraticDiscriminantAnalysis(reg_param=0.1),
    ),
    "quadratic discriminant, clusters": (clusters, QuadraticDiscriminantAnalysis(reg_param=0.1)),
    "NearestCentroid, wines": (wines, NearestCentroid()),
    "NearestCentroid, digits": (digits, NearestCentroid()),
    "GammaRegressor, colours": (colours, GammaRegressor(alpha=0.1)),
    "GammaRegressor, friedman": (positive_friedman, GammaRegressor(alpha=0.1)),
    "TweedieRegressor, colours": (colours, TweedieRegressor(power=1.5, alpha=0.1)),
    "TweedieRegressor, friedman": (positive_friedman, TweedieRegressor(power=1.5, alpha=0.1)),
    "PoissonRegressor, colours": (colours, PoissonRegressor(alpha=0.1)),
    "PoissonRegressor, counts": (counts, PoissonRegressor(alpha=0.1)),
    "BayesianRidge, alcohol": (plain_alcohol, BayesianRidge()),
    "BayesianRidge, friedman": (friedman, BayesianRidge()),
    "ARDRegression, friedman": (friedman, ARDRegression()),
    "ARDRegression, alcohol": (plain_alcohol, ARDRegression()),
}


def ratios(laws: fitted.FittedLaws, shadows: ShadowScores, near: float) -> Any:
    """The laws' log-likelihood ratio at every shadow model's score, models x records."""
    pair, scores = laws.law_pair(), shadows.scores
    if laws.corner is not None:
        scores = laws.corner.side * (scores - laws.corner.place)
    with np.errstate(invalid="ignore"):
        found = pair.member.log_density(scores) - pair.nonmember.log_density(scores)
    if laws.atoms is not None:
        # Scores of few values tie, and the best test of a size is a draw between them.
        drawn = np.random.default_rng(2).random(found.shape)
        return np.clip(np.nan_to_num(found, nan=0.0), -1e6, 1e6) + 1e-7 * (drawn - 0.5)
    if laws.corner is None:
        return found
    return np.where(np.abs(scores) < near, 1e6, found)


def row(name: str, models: int) -> dict[str, Any]:
    """One family on one data set."""
    data, estimator = ROWS[name]
    X, y = data()
    start = time.process_time()
    # Counts and categories are not scaled.
    bare = type(estimator).__name__.endswith("NB")
    whole = (clone(estimator) if bare else make_pipeline(StandardScaler(), estimator)).fit(X, y)
    laws = fitted.laws_of(whole, X, y)
    took = time.process_time() - start
    start = time.process_time()
    shadows = fitted.shadow_models(whole, X, y, models=models, random_state=1)
    took_shadows = time.process_time() - start
    try:
        checked = fitted.check_against_shadows(laws, shadows, random_state=0)
    except InputError:  # a member's score may be the same in every training set
        checked = None
    near = NEAR_SHARP if "1e-9" in name else NEAR_CORNER
    likelihood, kept = ratios(laws, shadows, near), laws.trusted
    said = np.asarray(measures.advantage(laws.law_pair()))
    hits = [
        np.array([np.mean(r[s] > 0.0) for r, s in zip(likelihood.T, side.T, strict=True)])
        for side in (shadows.trained_on, ~shadows.trained_on)
    ]
    counted = hits[0] - hits[1]
    # What such a count would show if the laws were right: each share is binomial.
    generator = np.random.default_rng(0)
    spread = np.sqrt(sum(h * (1.0 - h) / (0.5 * models) for h in hits))
    again = said + spread * generator.standard_normal(len(said))
    top = np.argsort(-np.where(kept, said, -1.0))[: max(10, len(said) // 20)]
    return {
        "data": f"{X.shape[0]} x {X.shape[1]}",
        "seconds": round(took, 1),
        "seconds_shadows": round(took_shadows, 1),
        "models": models,
        "trusted": float(kept.mean()),
        "surely_off": int(
            np.count_nonzero(kept & (np.abs(said - counted) > OFF + 3.0 * np.maximum(spread, 0.01)))
        ),
        "shift_ratio": np.nan if checked is None else checked.shift_ratio,
        "sd_ratio": np.nan if checked is None else checked.sd_ratio,
        "rank": float(stats.spearmanr(said, counted).statistic),
        "ceiling": float(stats.spearmanr(said, again).statistic),
        "advantage": float(said[kept].mean()),
        "advantage_counted": float(counted[kept].mean()),
        "top": float(said[top].mean()),
        "top_counted": float(counted[top].mean()),
        "tpr": float(np.mean(measures.tpr_at_fpr(laws.law_pair(), FPR)[kept])),
        "tpr_counted": _counted(likelihood[:, kept], shadows.trained_on[:, kept], FPR),
    }


HEAD = (
    "| | records | trusted | shift | sd | rank (ceiling) | advantage, counted | "
    "most exposed, counted | TPR at 1%, counted | seconds, shadows |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def table(results: dict[str, dict[str, Any]], before: str) -> str:
    """The page's table: rows that were made now, and those that it had before."""
    had = {line.split("|")[1].strip(): line for line in before.splitlines()[2:] if "|" in line}
    made = {
        name: f"| {name} | {r['data']} | {r['trusted']:.0%} | {r['shift_ratio']:.2f} | "
        f"{r['sd_ratio']:.2f} | {r['rank']:.2f} ({r['ceiling']:.2f}) | "
        f"{r['advantage']:.3f}, {r['advantage_counted']:.3f} | {r['top']:.2f}, "
        f"{r['top_counted']:.2f} | {r['tpr']:.3f}, {r['tpr_counted']:.3f} | "
        f"{r['seconds']:.0f}, {r['seconds_shadows']:.0f} |"
        for name, r in results.items()
    }
    lines = [(had | made)[name] for name in ROWS if name in had | made]
    return HEAD + "\n".join(lines).replace(" nan ", " – ") + "\n"


def main() -> None:
    """Make the rows that are not there yet, and the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(ROWS))
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--results", type=Path, default=Path("paired-results.json"))
    asked = parser.parse_args()
    kept = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    for name in asked.only:
        if name in kept:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept[name] = row(name, asked.models)
        asked.results.write_text(json.dumps(kept, indent=1))
        print(name, {k: round(v, 3) if isinstance(v, float) else v for k, v in kept[name].items()})
    page = PAGE.read_text(encoding="utf-8")
    first, _, rest = page.partition("<!-- table -->\n")
    before, _, last = rest.partition("<!-- end -->")
    text = table(kept, before)
    PAGE.write_text(f"{first}<!-- table -->\n{text}<!-- end -->{last}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
