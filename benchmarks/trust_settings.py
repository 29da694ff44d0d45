"""Settings that were chosen to break trust, for `trust_audit.py`.

A setting makes its data from its own name, so that it is the same whenever it is made.  What is
examined and what is refitted is the whole recipe: an unfitted estimator or pipeline, a training
function, a Gaussian process, or files.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    TweedieRegressor,
    lars_path,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

FloatArray = NDArray[np.float64]
Kind = Literal["fit", "paired", "people", "training", "process"]


@dataclass(frozen=True, eq=False)
class Case:
    """The data of a setting, what is examined, and what `leakscope.audit` is told besides.

    ``fits`` fits many models at once, (models, records) of who is trained on, where there is a
    closed form or a loop of its own; otherwise the recipe is cloned and fitted each time.
    """

    X: Any
    y: NDArray[Any]
    recipe: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    shadows: int = 3000
    fraction: float = 0.5
    fits: Callable[[Any, Any, NDArray[np.bool_]], FloatArray] | None = None
    groups: NDArray[Any] | None = None
    # A training set has at least so many records of every class, or it is drawn again.
    least: int = 1
    # Of the question of a population: draws so many records anew.
    population: Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]] | None = None


@dataclass(frozen=True)
class Setting:
    """A name, a kind of subject, what it is to break, and its case.

    ``data`` names the setting whose data and truth it shares; its own where empty.  What is held
    out was not looked at, record by record, when rules of trust were chosen.
    """

    name: str
    kind: Kind
    breaks: str
    make: Callable[[np.random.Generator], Case]
    data: str = ""
    held_out: bool = False

    @property
    def origin(self) -> str:
        """The name from which data and truth follow."""
        return self.data or self.name

    def case(self) -> Case:
        """The same every time."""
        return self.make(np.random.default_rng(zlib.crc32(self.origin.encode())))


def ridge_fits(
    alpha: float, weights: FloatArray | float = 1.0
) -> Callable[[Any, Any, NDArray[np.bool_]], FloatArray]:
    """Ridge regressions with an intercept, by their normal equations, many at once."""

    def fits(X: FloatArray, y: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        design = np.column_stack([np.ones(len(X)), X])
        penalty = np.diag([0.0] + [alpha] * X.shape[1])
        kept = rows * weights
        gram = (kept @ np.einsum("ni,nj->nij", design, design).reshape(len(X), -1)).reshape(
            len(rows), *penalty.shape
        )
        right = kept @ (design * y[:, None])
        coefficients = np.linalg.solve(gram + penalty, right[:, :, None])[:, :, 0]
        return np.asarray(coefficients @ design.T)

    return fits


def logistic_fits(C: float, balanced: bool = False) -> Any:
    """Logistic regressions with an intercept, by Newton's method; the log-odds of the own label."""

    def fits(X: FloatArray, y: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        design = np.column_stack([np.ones(len(X)), X])
        penalty = np.array([0.0] + [1.0 / C] * X.shape[1])
        kept = rows.astype(float)
        if balanced:
            many = kept.sum(axis=1, keepdims=True)
            ones = kept @ (y == 1)[:, None]
            kept = kept * np.where(y == 1, many / (2 * ones), many / (2 * (many - ones)))
        outer = np.einsum("ni,nj->nij", design, design).reshape(len(X), -1)
        beta = np.zeros((len(rows), design.shape[1]))
        for _ in range(60):
            p = 1.0 / (1.0 + np.exp(-(beta @ design.T)))
            gradient = (kept * (p - y)) @ design + penalty * beta
            hessian = ((kept * p * (1 - p)) @ outer).reshape(len(rows), *(2 * (len(penalty),)))
            step = np.linalg.solve(hessian + np.diag(penalty + 1e-12), gradient[:, :, None])[..., 0]
            # A step is never so long that it leaves where the quadratic is near.
            beta -= (
                step
                * np.minimum(1.0, 4.0 / np.maximum(np.abs(step @ design.T).max(1), 1e-9))[:, None]
            )
            if np.abs(step).max() < 1e-10:
                break
        return np.asarray(np.where(y == 1, 1.0, -1.0) * (beta @ design.T))

    return fits


def regression(rng: np.random.Generator, n: int, p: int, noise: float = 1.0) -> Any:
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) / np.sqrt(p) + noise * rng.normal(size=n)


def classes(rng: np.random.Generator, n: int, p: int, count: int = 2, strength: float = 1.0) -> Any:
    X = rng.normal(size=(n, p))
    score = strength * X[:, : min(p, 5)] @ rng.normal(size=(min(p, 5), count))
    return X, np.argmax(score + rng.gumbel(size=(n, count)), axis=1)


def dummies(rng: np.random.Generator, n: int, size: int, rare: int) -> FloatArray:
    """``rare`` dummy columns of ``size`` records each, and three columns of noise."""
    X = np.zeros((n, rare))
    X[np.arange(rare * size), np.repeat(np.arange(rare), size)] = 1.0
    return np.column_stack([X, 0.3 * rng.normal(size=(n, 3))])


def categories(rng: np.random.Generator, n: int, levels: int) -> NDArray[Any]:
    """Two columns of words whose frequencies fall like 1/k, so that many are rare."""
    weights = 1.0 / np.arange(1, levels + 1)
    return np.stack(
        [
            np.array([f"c{k:03d}" for k in range(levels)])[
                rng.choice(levels, size=n, p=weights / weights.sum())
            ]
            for _ in range(2)
        ],
        axis=1,
    ).astype(object)


def _ridge(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 200, 10)
    return Case(X, y, Ridge(1.0), shadows=12000, fits=ridge_fits(1.0))


def _fours(rng: np.random.Generator) -> Case:
    X = dummies(rng, 200, 4, 10)
    y = 0.3 * rng.normal(size=200)
    y[:40] = np.tile([1.0, 1.0, -1.0, -1.0], 10)
    return Case(X, y, Ridge(1.0), shadows=12000, fits=ridge_fits(1.0))


def _twos(rng: np.random.Generator) -> Case:
    X = dummies(rng, 200, 2, 20)
    return Case(X, rng.normal(size=200), Ridge(0.3), shadows=8000, fits=ridge_fits(0.3))


def _sixes(rng: np.random.Generator) -> Case:
    X, y = dummies(rng, 240, 6, 10), rng.integers(0, 2, 240)
    return Case(X, y, LogisticRegression(C=10.0), shadows=6000, fits=logistic_fits(10.0))


def _words(rng: np.random.Generator) -> Case:
    X = categories(rng, 250, 40)
    y = (rng.random(250) < 0.5).astype(int)
    recipe = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(C=3.0))
    return Case(X, y, recipe, shadows=2500)


def _softmax_rare(rng: np.random.Generator) -> Case:
    X = dummies(rng, 240, 2, 30)
    recipe = LogisticRegression(C=100.0, max_iter=300)
    return Case(X, rng.integers(0, 3, 240), recipe, shadows=1200)


def _lda(rng: np.random.Generator) -> Case:
    X, y = rng.normal(size=(200, 60)), rng.integers(0, 2, 200)
    return Case(X, y, make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()))


class MeanEncoder(TransformerMixin, BaseEstimator):
    """Every word becomes the mean target of its records, as people do by hand."""

    def fit(self, X: Any, y: Any) -> MeanEncoder:
        self.middle_ = float(np.mean(y))
        self.means_ = [
            {word: float(np.mean(y[column == word])) for word in np.unique(column)}
            for column in np.asarray(X).T
        ]
        return self

    def transform(self, X: Any) -> FloatArray:
        columns = zip(np.asarray(X).T, self.means_, strict=True)
        return np.array([[m.get(word, self.middle_) for word in c] for c, m in columns]).T


def _target(rng: np.random.Generator) -> Case:
    X = categories(rng, 200, 60)
    y = (rng.random(200) < 0.5).astype(int)
    return Case(X, y, make_pipeline(MeanEncoder(), LogisticRegression(C=10.0)), shadows=2000)


def _select_model(rng: np.random.Generator) -> Case:
    X, y = rng.normal(size=(150, 80)), rng.integers(0, 2, 150)
    chosen = SelectFromModel(LogisticRegression(C=0.3), max_features=10)
    return Case(X, y, make_pipeline(chosen, LogisticRegression()), shadows=2000)


def _select_best(rng: np.random.Generator) -> Case:
    X, y = rng.normal(size=(150, 60)), rng.integers(0, 2, 150)
    return Case(X, y, make_pipeline(SelectKBest(f_classif, k=8), LogisticRegression()))


def _select_regression(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 120, 60, 2.0)
    return Case(X, y, make_pipeline(SelectKBest(f_regression, k=8), Ridge(1.0)))


def _pca(rng: np.random.Generator) -> Case:
    X, y = rng.normal(size=(150, 200)), rng.integers(0, 2, 150)
    return Case(X, y, make_pipeline(PCA(15, random_state=0), LogisticRegression()), shadows=2000)


def _pca_low(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 30)) + 0.05 * rng.normal(size=(200, 30))
    y = X[:, 0] + rng.normal(size=200)
    return Case(X, y, make_pipeline(PCA(4, random_state=0), Ridge(1.0)))


def _scaled_tails(rng: np.random.Generator) -> Case:
    X = rng.standard_t(1.2, size=(150, 6))
    return Case(X, rng.normal(size=150), make_pipeline(StandardScaler(), Ridge(1.0)))


def _quantiles(rng: np.random.Generator) -> Case:
    X, y = rng.lognormal(size=(80, 6)), rng.normal(size=80)
    recipe = make_pipeline(
        QuantileTransformer(n_quantiles=20, output_distribution="normal"), Ridge(0.3)
    )
    return Case(X, y, recipe, shadows=1500)


def _missing(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 150, 5)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[4:, 4] = np.nan
    filled = SimpleImputer(keep_empty_features=True)
    return Case(X, y, make_pipeline(filled, StandardScaler(), Ridge(0.5)), shadows=2500)


def _near_interpolation(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 100, 46)
    return Case(X, y, LinearRegression())


def _small_part(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 80, 8)
    return Case(
        X, y, Ridge(0.5), {"fraction": 0.1}, shadows=12000, fraction=0.1, fits=ridge_fits(0.5)
    )


def _wide(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 80, 150)
    return Case(X, y, Ridge(1.0), shadows=3000)


def _exact(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(150, 6))
    return Case(X, X @ rng.normal(size=6), LinearRegression())


def _odd_scales(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 150, 8)
    return Case(X * 10.0 ** np.linspace(-7, 7, 8), y, Ridge(1e-3))


def _tiny_column(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 150, 5)
    X[:, 0] *= 1e-200
    return Case(X, y, make_pipeline(StandardScaler(), Ridge(1.0)))


def _twins(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 60, 3)
    return Case(np.repeat(X, 2, 0), np.repeat(y, 2), KernelRidge(alpha=0.05, kernel="rbf", gamma=1))


def _contradictions(rng: np.random.Generator) -> Case:
    X, y = classes(rng, 80, 4)
    X = np.repeat(X, 2, 0)
    y = np.ravel(np.column_stack([y, 1 - y]))
    return Case(X, y, LogisticRegression(C=100.0), shadows=6000, fits=logistic_fits(100.0))


def _imbalance(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(240, 6))
    y = (np.argsort(np.argsort(X[:, 0] + rng.normal(size=240))) >= 228).astype(int)
    return Case(X, y, LogisticRegression(C=1.0), shadows=6000, fits=logistic_fits(1.0))


def _balanced(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(240, 6))
    y = (np.argsort(np.argsort(X[:, 0] + rng.normal(size=240))) >= 228).astype(int)
    return Case(X, y, LogisticRegression(C=1.0, class_weight="balanced"), shadows=3000)


def _ten_classes(rng: np.random.Generator) -> Case:
    X, y = classes(rng, 200, 6, 10, 2.0)
    return Case(X, y, LogisticRegression(C=1.0, max_iter=300), shadows=1000)


def _separable(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(120, 10))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return Case(X, y, LogisticRegression(C=1e3), shadows=6000, fits=logistic_fits(1e3))


def _poisson(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(150, 5))
    y = rng.poisson(np.exp(0.6 * X[:, 0] + rng.standard_t(2, size=150).clip(-2, 4)))
    return Case(X, y.astype(float), PoissonRegressor(alpha=0.01, max_iter=500), shadows=2500)


def _cauchy(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(200, 6))
    return Case(X, rng.standard_cauchy(200), Ridge(1.0), shadows=12000, fits=ridge_fits(1.0))


def _leverage(rng: np.random.Generator) -> Case:
    X = rng.lognormal(sigma=2.0, size=(200, 5))
    return Case(X, rng.normal(size=200), Ridge(1.0), shadows=12000, fits=ridge_fits(1.0))


def _label(rng: np.random.Generator) -> Case:
    X, y = classes(rng, 150, 8)
    return Case(X, y, LogisticRegression(C=1.0), {"observes": "label"}, shadows=2500)


def _probabilities(rng: np.random.Generator) -> Case:
    X, y = classes(rng, 150, 5, 3)
    recipe = LogisticRegression(C=1.0, max_iter=300)
    return Case(X, y, recipe, {"observes": "probabilities"}, shadows=2000)


def _narrow(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 120, 4, 0.5)
    return Case(X, y, KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3))


def _thirty(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 30, 4)
    return Case(X, y, Ridge(1.0), shadows=12000, fits=ridge_fits(1.0))


def _ridge_classes(rng: np.random.Generator) -> Case:
    X, y = classes(rng, 200, 8, 4)
    return Case(X, y, RidgeClassifier(1.0), shadows=2500)


def _cubes(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 150, 3, 0.5)
    recipe = make_pipeline(PolynomialFeatures(4), StandardScaler(), Ridge(1e-3))
    return Case(X, y, recipe, shadows=2500)


def _chosen_penalty(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 100, 20, 2.0)
    recipe = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 11)))
    return Case(X, y, recipe, shadows=2500)


def _bins(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 150, 3, 0.5)
    coder = KBinsDiscretizer(12, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    return Case(X, y, make_pipeline(coder, Ridge(0.5)), shadows=2000)


def _columns(rng: np.random.Generator) -> Case:
    words, (X, y) = categories(rng, 150, 12), regression(rng, 150, 4)
    table = np.column_stack([words, X]).astype(object)
    coder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [0, 1]), (StandardScaler(), [2, 3, 4, 5])
    )
    return Case(table, y, make_pipeline(coder, Ridge(1.0)), shadows=1200)


def _population(rng: np.random.Generator) -> Case:
    beta = rng.normal(size=6) / np.sqrt(6)

    def draw(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        X = rng.normal(size=(n, 6))
        return X, X @ beta + rng.standard_t(3, size=n)

    X, y = draw(150, rng)
    return Case(X, y, Ridge(1.0), {"question": "population"}, shadows=4000, population=draw)


# Trainings.


def hard_labels(X: Any, y: Any, seed: int) -> Any:
    """A classifier that answers with a label only."""
    model = LogisticRegression(C=1.0).fit(X, y)
    return lambda rows: np.eye(2)[model.predict(rows)]


def rounded(X: Any, y: Any, seed: int) -> Any:
    """A ridge regression whose answers are rounded."""
    model = Ridge(1.0).fit(X, y)
    return lambda rows: np.round(model.predict(rows), 1)


def centroids(X: Any, y: Any, seed: int) -> Any:
    """A softmax of distances to the classes' means."""
    labels = np.unique(y)
    middle = np.stack([X[y == k].mean(axis=0) for k in labels])

    class Model:
        classes_ = labels

        def predict_proba(self, rows: FloatArray) -> FloatArray:
            away = np.sum((rows[:, None, :] - middle[None]) ** 2, axis=2)
            table = np.exp(-0.5 * (away - away.min(axis=1, keepdims=True)))
            return np.asarray(table / table.sum(axis=1, keepdims=True))

    return Model()


def networks(X: FloatArray, y: Any, seed: int) -> Any:
    """A network of eight tanh units, 150 full-batch steps."""
    W, v = _networks(X, y, np.ones((1, len(X)), dtype=np.bool_), [seed])
    return lambda asked: _answer((W[0], v[0]), asked)


def _networks(X: FloatArray, y: Any, rows: NDArray[np.bool_], seeds: Any) -> tuple[FloatArray, ...]:
    start = [np.random.default_rng(seed) for seed in seeds]
    W = np.stack([rng.normal(size=(X.shape[1] + 1, 8)) for rng in start])
    v = np.stack([0.3 * rng.normal(size=9) for rng in start])
    design, kept = np.column_stack([X, np.ones(len(X))]), rows / rows.sum(axis=1, keepdims=True)
    for _ in range(150):
        hidden = np.tanh(design @ W)
        slope = kept * (1 / (1 + np.exp(-(hidden @ v[:, :8, None])[..., 0] - v[:, 8:])) - y)
        back = slope[:, :, None] * v[:, None, :8] * (1 - hidden**2)
        v = v - 2.0 * np.column_stack(
            [(slope[:, None] @ hidden)[:, 0], slope.sum(axis=1, keepdims=True)]
        )
        W = W - 2.0 * (design.T @ back)
    return W, v


def _answer(weights: Any, asked: FloatArray) -> FloatArray:
    W, v = weights
    score = np.tanh(np.column_stack([asked, np.ones(len(asked))]) @ W) @ v[:8] + v[8]
    return np.asarray(1 / (1 + np.exp(-score)))


def network_fits(X: FloatArray, y: Any, rows: NDArray[np.bool_]) -> FloatArray:
    W, v = _networks(X, y, rows, range(10_000, 10_000 + len(rows)))
    score = (np.tanh(np.column_stack([X, np.ones(len(X))]) @ W) @ v[:, :8, None])[..., 0] + v[:, 8:]
    return np.asarray(np.where(y == 1, score, -score))


def _training(
    recipe: Any, data: Callable[[np.random.Generator], Any], models: int = 8, **more: Any
) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        X, y = data(rng)
        return Case(X, y, recipe, {"models": models}, **more)

    return make


def _rare_class(rng: np.random.Generator) -> Any:
    X = rng.normal(size=(200, 5))
    return X, (np.argsort(np.argsort(X[:, 0] + rng.normal(size=200))) >= 188).astype(int)


def _twin_classes(rng: np.random.Generator) -> Any:
    X, y = classes(rng, 70, 4)
    return np.repeat(X, 2, 0), np.repeat(y, 2)


def _heavy(rng: np.random.Generator) -> Any:
    return rng.standard_t(2, size=(150, 4)), rng.standard_t(1.5, size=150)


def _fifteen(rng: np.random.Generator) -> Any:
    y = np.arange(180) % 15
    return 1.5 * rng.normal(size=(15, 4))[y] + rng.normal(size=(180, 4)), y


def _noise_words(rng: np.random.Generator) -> Any:
    return dummies(rng, 200, 3, 15), rng.integers(0, 2, 200)


# Paired fits, and classifiers whose answers are exact.


def friedman(rng: np.random.Generator, n: int, p: int, noise: float = 2.0) -> Any:
    X, y = make_friedman1(n, p, noise=noise, random_state=int(rng.integers(1 << 30)))
    return X, (y - y.mean()) / y.std()


def flipped(rng: np.random.Generator, y: NDArray[Any], share: float = 0.1) -> NDArray[Any]:
    return np.where(rng.random(len(y)) < share, 1 - y, y)


def digits(rng: np.random.Generator, pair: tuple[int, int], n: int) -> Any:
    """Two digits, whose outer pixels are hardly ever inked."""
    X, y = load_digits(return_X_y=True)
    kept = rng.permutation(np.flatnonzero(np.isin(y, pair)))[:n]
    return X[kept], flipped(rng, (y[kept] == pair[1]).astype(int))


def cancer(rng: np.random.Generator, n: int, columns: int, share: float = 0.05) -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    kept = rng.permutation(len(y))[:n]
    return X[kept][:, :columns], flipped(rng, y[kept], share)


def tiny_class(rng: np.random.Generator, n: int, p: int, rare: int) -> Any:
    """Three classes, one of a few records."""
    y = np.r_[np.zeros(rare, int), 1 + np.arange(n - rare) % 2]
    return rng.normal(size=(3, p))[y] + rng.normal(size=(n, p)), y


def _plain(
    recipe: Any, data: Callable[[np.random.Generator], Any], shadows: int = 4000, **more: Any
) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        X, y = data(rng)
        return Case(X, y, recipe, shadows=shadows, **more)

    return make


def _scaled(recipe: Any) -> Any:
    return make_pipeline(StandardScaler(), recipe)


def _threes(rng: np.random.Generator) -> Any:
    return dummies(rng, 180, 3, 20), rng.standard_t(3, size=180)


def _rare_fours(rng: np.random.Generator) -> Any:
    X, y = dummies(rng, 200, 4, 12), 0.3 * rng.normal(size=200)
    y[:48] = np.tile([1.0, 1.0, -1.0, -1.0], 12)
    return X, y


def _tails(rng: np.random.Generator, n: int, p: int) -> Any:
    X = rng.standard_t(3, size=(n, p))
    return X, X[:, 0] + rng.standard_t(1.5, size=n)


def _near_separable(rng: np.random.Generator, n: int, p: int) -> Any:
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def _positive(rng: np.random.Generator, n: int) -> Any:
    X = rng.normal(size=(n, 6))
    return X, np.exp(0.5 * X[:, 0]) * rng.gamma(0.7, size=n) + 1e-3


def _zeros(rng: np.random.Generator) -> Any:
    X = rng.normal(size=(150, 5))
    many = rng.poisson(np.exp(0.4 * X[:, 0]))
    return X, np.array([rng.gamma(0.8, size=k).sum() for k in many])


# People.


def persons(rng: np.random.Generator, X: Any, alike: float = 0.7) -> tuple[Any, NDArray[Any]]:
    """Rows of people of one to six, which are alike; and who each row is of."""
    who = np.repeat(np.arange(len(X)), rng.integers(1, 7, size=len(X)))[: len(X)]
    first = np.unique(who, return_index=True)[1]
    return alike * X[first][who] + np.sqrt(1.0 - alike**2) * X, who


def _of_people(
    recipe: Any,
    data: Callable[[np.random.Generator], Any],
    *,
    alike: float = 0.7,
    shadows: int = 3000,
    **more: Any,
) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        X, y = data(rng)
        X, who = persons(rng, X, alike)
        return Case(X, y, recipe, shadows=shadows, groups=who, **more)

    return make


def _clashing_people(rng: np.random.Generator) -> Case:
    """People whose rows are copies of one another with opposite labels."""
    X, y = regression(rng, 60, 5)
    who = np.repeat(np.arange(60), 3)
    y = np.repeat(y, 3) + np.tile([2.0, -2.0, 0.0], 60)
    X = np.repeat(X, 3, 0) + 0.05 * rng.normal(size=(180, 5))
    return Case(X, y, Ridge(1.0), shadows=6000, groups=who, fits=ridge_fits(1.0))


# Twelve that no rule was chosen by: made, and run, after the rules stood.


class Projected(TransformerMixin, BaseEstimator):
    """The first two components of partial least squares, which look at the target."""

    def fit(self, X: Any, y: Any) -> Projected:
        self.inner_ = PLSRegression(2).fit(X, y)
        return self

    def transform(self, X: Any) -> FloatArray:
        return np.asarray(self.inner_.transform(X))


def _few_positives(rng: np.random.Generator, n: int, p: int, count: int) -> Any:
    X = rng.normal(size=(n, p))
    place = np.argsort(np.argsort(X[:, 0] + rng.normal(size=n)))
    return X, (place >= n - count).astype(int)


def _several_sizes(rng: np.random.Generator) -> Any:
    """Categories of three, four and five records each, and a hundred others."""
    own = np.repeat(np.arange(24), np.tile([3, 4, 5], 8))
    X = np.zeros((len(own) + 100, 24))
    X[np.arange(len(own)), own] = 1.0
    return np.column_stack([X, rng.normal(size=(len(X), 2))]), rng.integers(0, 2, len(X))


def _thrice(rng: np.random.Generator) -> Any:
    X, y = regression(rng, 60, 12)
    return np.repeat(X, 3, 0), np.repeat(y, 3)


def _collinear(rng: np.random.Generator) -> Any:
    X, y = regression(rng, 150, 5)
    return np.column_stack([X, X + 1e-3 * rng.normal(size=X.shape)]), y


def _function(rng: np.random.Generator) -> Any:
    """A target without noise, of which a linear model sees a part."""
    X = rng.uniform(-1.0, 1.0, size=(150, 3))
    return X, X[:, 0] ** 2 - X[:, 1] + np.where(X[:, 2] > 0.9, 3.0, 0.0)


def _weighted(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 180, 6)
    weights = rng.lognormal(sigma=1.5, size=180)
    return Case(
        X, y, Ridge(1.0), {"sample_weight": weights}, shadows=6000, fits=ridge_fits(1.0, weights)
    )


def _huge_count(rng: np.random.Generator) -> Any:
    X = rng.normal(size=(120, 4))
    y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0])).astype(float)
    y[7] = 5000.0
    return X, y


def _knot(rng: np.random.Generator) -> Case:
    """The penalty is where a coefficient of the fit on all records enters."""
    X, y = regression(rng, 140, 12, 2.0)
    knots = lars_path(X - X.mean(axis=0), y - y.mean(), method="lasso")[0]
    return Case(X, y, Lasso(float(knots[5])), shadows=4000)


# Gaussian processes and files: X, y and the options of the process.


def _process(
    data: Callable[[np.random.Generator], Any], **options: Any
) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        X, y = data(rng)
        return Case(X, y, None, options)

    return make


def _smooth(rng: np.random.Generator, n: int = 60) -> Any:
    X = np.sort(rng.uniform(0, 6, size=(n, 1)), axis=0)
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def _clash(rng: np.random.Generator) -> Any:
    X, y = _smooth(rng, 30)
    return np.repeat(X, 2, 0), np.ravel(np.column_stack([y, -y]))


def _linear_scales(rng: np.random.Generator) -> Any:
    X, y = regression(rng, 60, 5)
    return X * np.array([1e-200, 1e-8, 1.0, 1e4, 1e8]), y


def _offset(rng: np.random.Generator) -> Any:
    X, y = _smooth(rng)
    return X, y + 1e8


def _no_noise(rng: np.random.Generator) -> Any:
    X = rng.normal(size=(60, 5))
    return X, X @ rng.normal(size=5)


def _far(rng: np.random.Generator) -> Any:
    return rng.standard_cauchy(size=(60, 3)), rng.standard_cauchy(60)


def _people(rng: np.random.Generator) -> Case:
    X, y = regression(rng, 60, 3, 0.3)
    groups = np.repeat(np.arange(20), rng.multinomial(40, np.ones(20) / 20) + 1)[:60]
    options = {"kernel": ("rbf", 1.0), "noise_variance": 0.05}
    return Case(X, y, None, options, groups=np.sort(groups))


def _tiny(rng: np.random.Generator) -> Any:
    X, y = regression(rng, 100, 4)
    X[:, 0] *= 1e-200
    return X, y


def _rare_columns(rng: np.random.Generator) -> Any:
    return dummies(rng, 120, 2, 20), rng.normal(size=120)


def _twin_rows(rng: np.random.Generator) -> Any:
    X, y = regression(rng, 60, 4)
    return np.repeat(X, 2, 0), np.repeat(y, 2)


# Each training is also asked with so many models, where intervals are narrow and more is trusted.
MANY = 128


def many(setting: Setting) -> Setting:
    """The same training with many models."""

    def make(rng: np.random.Generator) -> Case:
        case = setting.make(rng)
        return replace(case, options={**case.options, "models": MANY})

    name = f"{setting.name}, {MANY} models"
    return replace(setting, name=name, make=make, data=setting.name)


SETTINGS: tuple[Setting, ...] = (
    Setting("ridge, nothing odd", "fit", "none", _ridge),
    Setting("ridge, categories of four", "fit", "rare categories", _fours),
    Setting("ridge, categories of two", "fit", "rare categories", _twos),
    Setting("logistic, categories of six", "fit", "rare categories", _sixes),
    Setting("one-hot words, logistic", "fit", "rare categories", _words),
    Setting("softmax, categories of two, C = 100", "fit", "rare categories", _softmax_rare),
    Setting("LDA step, logistic, noise", "fit", "supervised step", _lda),
    Setting("target encoder, logistic", "fit", "supervised step", _target),
    Setting("select from model, logistic", "fit", "supervised step", _select_model),
    Setting("select k best, logistic", "fit", "supervised step", _select_best),
    Setting("select k best, ridge", "fit", "supervised step", _select_regression),
    Setting("PCA 15 of 200, logistic", "fit", "PCA", _pca),
    Setting("PCA of four true directions, ridge", "fit", "PCA", _pca_low),
    Setting("scaler of heavy tails, ridge", "fit", "heavy tails", _scaled_tails),
    Setting("quantile transformer, ridge", "fit", "unsupervised step", _quantiles),
    Setting("imputed column of four, ridge", "fit", "unsupervised step", _missing),
    Setting("least squares, 100 x 46", "fit", "interpolation", _near_interpolation),
    Setting("ridge, a tenth of 80", "fit", "few records", _small_part),
    Setting("ridge, 80 x 150", "fit", "interpolation", _wide),
    Setting("least squares, y exactly linear", "fit", "rounding", _exact),
    Setting("ridge, scales of 1e-7 to 1e7", "fit", "odd scales", _odd_scales),
    Setting("scaler of a column of 1e-200, ridge", "fit", "odd scales", _tiny_column),
    Setting("kernel ridge, every record twice", "fit", "duplicates", _twins),
    Setting("logistic, twins of opposite label", "fit", "duplicates", _contradictions),
    Setting("logistic, 5% positive", "fit", "imbalance", _imbalance),
    Setting("logistic, 5% positive, balanced weights", "fit", "imbalance", _balanced),
    Setting("softmax, ten classes", "fit", "many classes", _ten_classes),
    Setting("logistic, separable, C = 1,000", "fit", "separable", _separable),
    Setting("Poisson, heavy tails", "fit", "heavy tails", _poisson),
    Setting("ridge, Cauchy targets", "fit", "heavy tails", _cauchy),
    Setting("ridge, lognormal features", "fit", "heavy tails", _leverage),
    Setting("logistic, label only", "fit", "hard labels", _label),
    Setting("softmax, all probabilities", "fit", "vector answers", _probabilities),
    Setting("kernel ridge, narrow", "fit", "interpolation", _narrow),
    Setting("ridge, 30 records", "fit", "few records", _thirty),
    Setting("ridge classifier, four classes", "fit", "many classes", _ridge_classes),
    Setting("quartic features, small penalty", "fit", "interpolation", _cubes),
    Setting("penalty chosen by cross-validation", "fit", "supervised step", _chosen_penalty),
    Setting("bins of quantiles, ridge", "fit", "unsupervised step", _bins),
    Setting("words and numbers, ridge", "fit", "rare categories", _columns),
    Setting("ridge, population", "fit", "question", _population),
    Setting("gamma, heavy tails", "fit", "heavy tails", _plain(
        GammaRegressor(alpha=0.01, max_iter=500), lambda rng: _positive(rng, 150), 2500)),
    Setting("Tweedie 1.5, many zeros", "fit", "heavy tails", _plain(
        TweedieRegressor(power=1.5, alpha=0.1, max_iter=500), _zeros, 2500)),
    Setting("Bayesian ridge, 80 x 15", "fit", "supervised step", _plain(
        BayesianRidge(), lambda rng: regression(rng, 80, 15, 2.0), 2500)),
    Setting("logistic with a searched penalty", "fit", "supervised step", _plain(
        _scaled(LogisticRegressionCV(Cs=5, cv=3, l1_ratios=(0,), use_legacy_attributes=False)),
        lambda rng: cancer(rng, 150, 10), 1000)),
    Setting("Lasso, nothing odd", "paired", "none", _plain(
        Lasso(0.05), lambda rng: regression(rng, 200, 20))),
    Setting("Lasso, categories of four", "paired", "rare categories", _plain(
        Lasso(0.003), _rare_fours)),
    Setting("Lasso, strong penalty", "paired", "strong penalty", _plain(
        Lasso(0.3), lambda rng: friedman(rng, 200, 10))),
    Setting("Lasso with a searched penalty", "paired", "supervised step", _plain(
        _scaled(LassoCV(alphas=20, cv=3)), lambda rng: friedman(rng, 200, 20), 1500)),
    Setting("L1 logistic, digits 3 and 8", "paired", "rare columns", _plain(
        _scaled(LogisticRegression(l1_ratio=1, C=0.1, solver="liblinear")),
        lambda rng: digits(rng, (3, 8), 350))),
    Setting("L1 logistic, nearly separable", "paired", "separable", _plain(
        LogisticRegression(l1_ratio=1, C=10, solver="liblinear"),
        lambda rng: _near_separable(rng, 120, 8))),
    Setting("squared hinge, 60 records", "paired", "few records", _plain(
        LinearSVC(C=0.1, dual=False), lambda rng: classes(rng, 60, 5))),
    Setting("Huber, heavy tails", "paired", "heavy tails", _plain(
        HuberRegressor(alpha=1.0, max_iter=1000), lambda rng: _tails(rng, 150, 6), 2000)),
    Setting("SVC, breast cancer", "paired", "corners", _plain(
        _scaled(SVC()), lambda rng: cancer(rng, 285, 10))),
    Setting("SVC, digits 3 and 8", "paired", "corners", _plain(
        _scaled(SVC()), lambda rng: digits(rng, (3, 8), 200))),
    Setting("SVR, friedman", "paired", "corners", _plain(
        _scaled(SVR(C=1.0, epsilon=0.2)), lambda rng: friedman(rng, 200, 10))),
    Setting("naive Bayes, a class of six", "paired", "rare class", _plain(
        GaussianNB(), lambda rng: tiny_class(rng, 150, 4, 6), least=2)),
    Setting("quadratic discriminant, a class of thirty", "paired", "rare class", _plain(
        QuadraticDiscriminantAnalysis(reg_param=0.1),
        lambda rng: tiny_class(rng, 150, 3, 30), least=5)),
    Setting("Lasso, wide", "paired", "interpolation", _plain(
        Lasso(0.05), lambda rng: regression(rng, 100, 150), 3000)),
    Setting("elastic net, categories of three, heavy tails", "paired", "rare categories", _plain(
        ElasticNet(0.01, l1_ratio=0.5), _threes), held_out=True),
    Setting("Lasso, penalty by an information criterion", "paired", "supervised step", _plain(
        _scaled(LassoLarsIC("bic")), lambda rng: friedman(rng, 150, 12), 2000), held_out=True),
    Setting("elastic net with a searched penalty", "paired", "supervised step", _plain(
        _scaled(ElasticNetCV(alphas=10, cv=3)), lambda rng: regression(rng, 150, 15, 2.0), 1500),
        held_out=True),
    Setting("L1 logistic, one-hot words", "paired", "rare categories", _plain(
        make_pipeline(OneHotEncoder(handle_unknown="ignore"),
                      LogisticRegression(l1_ratio=1, C=1.0, solver="liblinear")),
        lambda rng: (categories(rng, 250, 20), rng.integers(0, 2, 250)), 3000), held_out=True),
    Setting("L1 softmax, a class of ten", "paired", "rare class", _plain(
        LogisticRegression(l1_ratio=1, C=0.5, solver="saga", max_iter=2000),
        lambda rng: tiny_class(rng, 150, 4, 10), 2000), held_out=True),
    Setting("L1 logistic, digits 1 and 7", "paired", "rare columns", _plain(
        _scaled(LogisticRegression(l1_ratio=1, C=0.3, solver="liblinear")),
        lambda rng: digits(rng, (1, 7), 300)), held_out=True),
    Setting("squared hinge with L1, clusters", "paired", "none", _plain(
        LinearSVC(C=0.1, penalty="l1", dual=False), lambda rng: classes(rng, 200, 10)),
        held_out=True),
    Setting("squared tube, heavy tails", "paired", "heavy tails", _plain(
        LinearSVR(C=0.1, epsilon=0.2, loss="squared_epsilon_insensitive", dual=False),
        lambda rng: _tails(rng, 150, 5)), held_out=True),
    Setting("hinge, nearly separable", "paired", "corners", _plain(
        LinearSVC(C=0.1, loss="hinge", max_iter=20_000),
        lambda rng: _near_separable(rng, 120, 6)), held_out=True),
    Setting("SVC, linear kernel", "paired", "corners", _plain(
        SVC(kernel="linear", C=0.3), lambda rng: classes(rng, 200, 5)), held_out=True),
    Setting("SVC, every record twice", "paired", "duplicates", _plain(
        SVC(C=1.0), _twin_classes), held_out=True),
    Setting("SVR, narrow tube", "paired", "corners", _plain(
        SVR(C=0.5, epsilon=0.05), lambda rng: regression(rng, 150, 6)), held_out=True),
    Setting("linear discriminant, a class of eight", "paired", "rare class", _plain(
        LinearDiscriminantAnalysis(), lambda rng: tiny_class(rng, 150, 5, 8), least=1),
        held_out=True),
    Setting("nearest centroid, a class of five", "paired", "rare class", _plain(
        NearestCentroid(), lambda rng: tiny_class(rng, 150, 4, 5)), held_out=True),
    Setting("naive Bayes, heavy tails", "paired", "heavy tails", _plain(
        GaussianNB(), lambda rng: (rng.standard_t(2, size=(150, 4)), rng.integers(0, 2, 150))),
        held_out=True),
    Setting("Huber, categories of three", "paired", "rare categories", _plain(
        HuberRegressor(alpha=0.1, max_iter=1000), _threes, 1500), held_out=True),
    Setting("people, ridge", "people", "none", _of_people(
        Ridge(1.0), lambda rng: regression(rng, 240, 8), shadows=8000, fits=ridge_fits(1.0))),
    Setting("people, logistic", "people", "none", _of_people(
        LogisticRegression(C=1.0), lambda rng: classes(rng, 240, 6), shadows=6000,
        fits=logistic_fits(1.0))),
    Setting("people, kernel ridge", "people", "interpolation", _of_people(
        KernelRidge(alpha=0.3, kernel="rbf", gamma=0.1), lambda rng: regression(rng, 200, 4))),
    Setting("people, rows of opposite targets", "people", "clashing rows", _clashing_people),
    Setting("people, softmax", "people", "many classes", _of_people(
        LogisticRegression(C=1.0, max_iter=300), lambda rng: classes(rng, 200, 5, 3),
        shadows=1500), held_out=True),
    Setting("people, ridge classifier", "people", "many classes", _of_people(
        RidgeClassifier(1.0), lambda rng: classes(rng, 200, 6, 3)), held_out=True),
    Setting("people, rows unlike, ridge 200 x 40", "people", "interpolation", _of_people(
        Ridge(3.0), lambda rng: regression(rng, 200, 40), alike=0.0, shadows=6000,
        fits=ridge_fits(3.0))),
    Setting("people, rows unlike, logistic 240 x 15", "people", "unlike rows", _of_people(
        LogisticRegression(C=0.3), lambda rng: classes(rng, 240, 15), alike=0.0, shadows=5000,
        fits=logistic_fits(0.3)), held_out=True),
    Setting("people, heavy tails, ridge 150 x 20", "people", "heavy tails", _of_people(
        Ridge(2.0), lambda rng: _tails(rng, 150, 20), alike=0.4, shadows=6000,
        fits=ridge_fits(2.0)), held_out=True),
    Setting("people, categories of four", "people", "rare categories", _of_people(
        Ridge(1.0), _rare_fours, alike=0.3, shadows=8000, fits=ridge_fits(1.0)), held_out=True),
    Setting("5 nearest neighbours", "training", "discrete answers", _training(
        KNeighborsClassifier(5), lambda rng: classes(rng, 150, 4), shadows=1500)),
    Setting("tree, leaves of 5", "training", "discrete answers", _training(
        DecisionTreeClassifier(min_samples_leaf=5), lambda rng: classes(rng, 150, 4))),
    Setting("stump", "training", "discrete answers", _training(
        DecisionTreeClassifier(max_depth=1), lambda rng: classes(rng, 150, 4))),
    Setting("five boosted stumps", "training", "discrete answers", _training(
        GradientBoostingClassifier(n_estimators=5, max_depth=1),
        lambda rng: classes(rng, 150, 4), shadows=1500)),
    Setting("hard labels", "training", "hard labels", _training(
        hard_labels, lambda rng: classes(rng, 150, 6), shadows=2000)),
    Setting("rounded answers", "training", "discrete answers", _training(
        rounded, lambda rng: regression(rng, 150, 6))),
    Setting("forest of ten", "training", "discrete answers", _training(
        RandomForestClassifier(10), lambda rng: classes(rng, 120, 4), shadows=1000)),
    Setting("3 nearest neighbours, quantity", "training", "discrete answers", _training(
        KNeighborsRegressor(3), lambda rng: regression(rng, 150, 3), shadows=1500)),
    Setting("naive Bayes, every record twice", "training", "duplicates", _training(
        GaussianNB(), _twin_classes, shadows=2000)),
    Setting("centroids, 15 classes", "training", "many classes", _training(
        centroids, _fifteen, shadows=2000)),
    Setting("tree, 6% positive", "training", "imbalance", _training(
        DecisionTreeClassifier(min_samples_leaf=3), _rare_class)),
    Setting("tree of heavy tails", "training", "heavy tails", _training(
        DecisionTreeRegressor(min_samples_leaf=5), _heavy)),
    Setting("logistic, categories of three", "training", "rare categories", _training(
        LogisticRegression(C=10.0), _noise_words, shadows=6000, fits=logistic_fits(10.0))),
    Setting("LDA step, logistic, four models", "training", "supervised step", _training(
        make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
        lambda rng: (rng.normal(size=(150, 40)), rng.integers(0, 2, 150)), models=4)),
    Setting("small networks", "training", "few records", _training(
        networks, lambda rng: classes(rng, 80, 4), shadows=1500, fits=network_fits)),
    Setting("ridge by 16 models", "training", "none", _training(
        Ridge(1.0), lambda rng: regression(rng, 200, 8), models=16, shadows=8000,
        fits=ridge_fits(1.0))),
    Setting("rbf, noise 0.01", "process", "none", _process(
        _smooth, kernel=("rbf", 1.0), noise_variance=0.01)),
    Setting("rbf, noise 1e-9", "process", "interpolation", _process(
        _smooth, kernel=("rbf", 1.0), noise_variance=1e-9)),
    Setting("rbf, twins of opposite target", "process", "duplicates", _process(
        _clash, kernel=("rbf", 0.5), noise_variance=1e-4)),
    Setting("linear, scales of 1e-200 to 1e8", "process", "odd scales", _process(
        _linear_scales, kernel=("linear", 1.0), noise_variance=0.1)),
    Setting("rbf, targets off by 1e8", "process", "odd scales", _process(
        _offset, kernel=("rbf", 1.0), noise_variance=0.01)),
    Setting("linear, y exactly linear, noise 1e-10", "process", "rounding", _process(
        _no_noise, kernel=("linear", 1.0), noise_variance=1e-10)),
    Setting("rbf, Cauchy features and targets", "process", "heavy tails", _process(
        _far, kernel=("rbf", 1.0), noise_variance=0.1)),
    Setting("rbf, people of several records", "process", "groups", _people),
    Setting("nystrom, ten inducing", "process", "approximation", _process(
        lambda rng: _smooth(rng, 120), kernel=("rbf", 1.0), noise_variance=0.01, route="nystrom",
        inducing=10)),
    Setting("standardised column of 1e-200", "process", "odd scales", _process(
        _tiny, kernel=("linear", 1.0), noise_variance=0.1, standardised=True)),
    Setting("files, nothing odd", "process", "none", _process(
        lambda rng: regression(rng, 120, 5), kernel=("linear", 1.0), noise_variance=0.1,
        standardised=True)),
    Setting("files, categories of two", "process", "rare categories", _process(
        _rare_columns, kernel=("linear", 1.0), noise_variance=0.01, standardised=True)),
    Setting("files, a column of 1e-200", "process", "odd scales", _process(
        _tiny, kernel=("linear", 1.0), noise_variance=0.1, standardised=True)),
    Setting("files, heavy tails", "process", "heavy tails", _process(
        _far, kernel=("linear", 1.0), noise_variance=0.1, standardised=True)),
    Setting("files, every record twice, noise 1e-9", "process", "duplicates", _process(
        _twin_rows, kernel=("linear", 1.0), noise_variance=1e-9, standardised=True)),
    Setting("people, one label in thirty, logistic", "people", "imbalance", _of_people(
        LogisticRegression(C=1.0), lambda rng: _few_positives(rng, 240, 4, 8), shadows=4000,
        fits=logistic_fits(1.0)), held_out=True),
    Setting("partial least squares, ridge", "fit", "supervised step", _plain(
        make_pipeline(Projected(), Ridge(1.0)), lambda rng: regression(rng, 150, 30), 1500),
        held_out=True),
    Setting("logistic, categories of three to five", "fit", "rare categories", _plain(
        LogisticRegression(C=3.0), _several_sizes, fits=logistic_fits(3.0)), held_out=True),
    Setting("logistic, one label in 200", "fit", "imbalance", _plain(
        LogisticRegression(C=1.0), lambda rng: _few_positives(rng, 600, 3, 3), 3000,
        fits=logistic_fits(1.0)), held_out=True),
    Setting("scaler of Cauchy features, logistic", "fit", "heavy tails", _plain(
        _scaled(LogisticRegression(C=1.0)),
        lambda rng: (rng.standard_cauchy(size=(150, 5)), rng.integers(0, 2, 150)), 1500),
        held_out=True),
    Setting("ridge, every record three times", "fit", "duplicates", _plain(
        Ridge(1.0), _thrice, 6000, fits=ridge_fits(1.0)), held_out=True),
    Setting("ridge, columns nearly twice", "fit", "collinear", _plain(
        Ridge(1e-4), _collinear, fits=ridge_fits(1e-4)), held_out=True),
    Setting("ridge, a function without noise", "fit", "no noise", _plain(
        Ridge(0.1), _function, 6000, fits=ridge_fits(0.1)), held_out=True),
    Setting("ridge, weights of heavy tails", "fit", "weights", _weighted, held_out=True),
    Setting("softmax, a class of five", "fit", "rare class", _plain(
        LogisticRegression(C=1.0), lambda rng: tiny_class(rng, 150, 4, 5), 1500), held_out=True),
    Setting("Poisson, one count of 5,000", "fit", "heavy tails", _plain(
        PoissonRegressor(alpha=0.1, max_iter=500), _huge_count, 1500), held_out=True),
    Setting("Lasso at a knot of its path", "paired", "corners", _knot, held_out=True),
)  # fmt: skip
SETTINGS += tuple(many(setting) for setting in SETTINGS if setting.kind == "training")
