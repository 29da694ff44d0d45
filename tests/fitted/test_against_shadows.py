"""The laws against shadow models of the same estimator, within the shadow models' own noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from small_data import amounts, counts, regression, several_classes, two_classes

from leakscope import fitted, measures
from leakscope.fitted.shadow import ShadowScores
from leakscope.single_fit import cavity, structured

NEWTON = {"solver": "newton-cholesky", "tol": 1e-8}
SMOOTH = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.02)


def mean_square_error(shadows: ShadowScores) -> float:
    """The standard error of the mean square of all records' z-scores of the mean.

    The records share the shadow models, so that their errors are correlated as their scores are:
    the variance is 2 |R|^2 / N^2, R the correlation matrix, its own noise taken off.
    """
    out = np.where(shadows.trained_on, np.nan, shadows.scores)
    z = np.nan_to_num((out - np.nanmean(out, axis=0)) / np.nanstd(out, axis=0))
    share = float(np.mean(~shadows.trained_on))
    R = z.T @ z / (len(z) * share**2)
    np.fill_diagonal(R, 1.0)
    size = R.shape[0]
    noise = (size**2 - size) / (len(z) * share**2)
    return float(np.sqrt(2.0 * max(float((R**2).sum()) - noise, size)) / size)


def agrees(estimator: Any, X: Any, y: Any, models: int, fraction: float = 0.5, **extra: Any) -> Any:
    estimator.fit(X, y, **extra)
    laws = fitted.laws_of(estimator, X, y, fraction=fraction, **extra)
    shadows = fitted.shadow_models(
        estimator, X, y, models=models, fraction=fraction, random_state=3, **extra
    )
    found = fitted.check_against_shadows(laws, shadows)
    assert laws.converged
    assert abs(found.mean_z**2 - 1.0) < 4.0 * mean_square_error(shadows)
    return found


@pytest.mark.parametrize(
    ("estimator", "data", "models", "fraction"),
    [
        pytest.param(Ridge(alpha=3.0), regression(), 300, 0.5, id="ridge"),
        pytest.param(Ridge(alpha=3.0), regression(), 300, 0.8, id="ridge, f = 0.8"),
        pytest.param(Ridge(alpha=20.0), regression(80, 120), 300, 0.5, id="more columns"),
        pytest.param(
            KernelRidge(alpha=0.5, kernel="rbf", gamma=0.02), regression(), 300, 0.5, id="kernel"
        ),
        pytest.param(RidgeClassifier(alpha=2.0), two_classes(), 300, 0.5, id="ridge classifier"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(), 250, 0.5, id="logistic"),
        pytest.param(
            LogisticRegression(class_weight="balanced", **NEWTON),
            two_classes(),
            250,
            0.5,
            id="balanced",
        ),
        pytest.param(PoissonRegressor(alpha=0.02, **NEWTON), counts(), 250, 0.5, id="poisson"),
        pytest.param(GammaRegressor(alpha=0.02, **NEWTON), amounts(), 250, 0.5, id="gamma"),
        pytest.param(
            TweedieRegressor(power=1.5, alpha=0.02, **NEWTON), counts(), 250, 0.5, id="tweedie"
        ),
        pytest.param(LogisticRegression(tol=1e-6), several_classes(), 200, 0.5, id="softmax"),
    ],
)
def test_laws_agree_with_shadow_models(
    estimator: Any, data: Any, models: int, fraction: float
) -> None:
    found = agrees(estimator, *data, models, fraction)
    assert abs(found.shift_ratio - 1.0) < 0.08
    assert abs(found.sd_ratio - 1.0) < 0.06
    assert 0.8 < found.shift_z < 1.2


def test_sample_weights_count() -> None:
    X, y = two_classes()
    weights = np.random.default_rng(5).uniform(0.2, 3.0, len(y))
    found = agrees(LogisticRegression(**NEWTON), X, y, 250, sample_weight=weights)
    assert abs(found.shift_ratio - 1.0) < 0.08
    assert 0.8 < found.shift_z < 1.2


def test_structured_route_equals_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = several_classes()
    model = LogisticRegression(tol=1e-8).fit(X, y)
    dense = fitted.laws_of(model, X, y)
    monkeypatch.setattr(cavity, "DENSE", 0)
    monkeypatch.setattr(structured, "LAST_DRAWS", 8000)
    monkeypatch.setattr(structured, "ROUND_DRAWS", 1000)
    monkeypatch.setattr(structured, "LEVERAGE_DRAWS", 2000)
    drawn = fitted.laws_of(model, X, y)
    ratio = drawn.nonmember_sd / dense.nonmember_sd
    assert abs(np.median(ratio) - 1.0) < 0.02
    assert np.std(ratio) < 0.03
    np.testing.assert_allclose(drawn.nonmember_mean, dense.nonmember_mean, atol=0.02)
    slope = (drawn.shift @ dense.shift) / (dense.shift @ dense.shift)
    assert abs(slope - 1.0) < 0.02


def test_null_data() -> None:
    generator = np.random.default_rng(6)
    X, y = generator.normal(size=(150, 10)), generator.integers(0, 2, 150)
    model = LogisticRegression(**NEWTON).fit(X, y)
    laws = fitted.laws_of(model, X, y)
    shadows = fitted.shadow_models(model, X, y, models=300, random_state=1)
    predicted = float(np.mean(measures.advantage(laws.law_pair())))
    found = fitted.check_against_shadows(laws, shadows)
    assert 0.05 < predicted < 0.5
    assert abs(found.shift_ratio - 1.0) < 0.05


def test_population_against_fresh_data() -> None:
    """Fresh others: unbiased shift, a jackknife's spread, and a mean known to one draw."""
    generator = np.random.default_rng(7)

    def draw(size: int) -> tuple[Any, Any]:
        X = generator.normal(size=(size, 8))
        return X, X @ np.full(8, 0.4) + generator.normal(size=size)

    ratios, scores = [], []
    for _ in range(6):
        X, y = draw(100)
        laws = fitted.laws_of(Ridge(alpha=5.0).fit(X, y), X, y, question="population")
        fresh = [Ridge(alpha=5.0).fit(*draw(100)).predict(X) for _ in range(60)]
        spread = np.std(fresh, axis=0, ddof=1)
        ratios.append(np.median(laws.nonmember_sd / spread))
        scores.append((np.mean(fresh, axis=0) - laws.nonmember_mean) / laws.nonmember_sd)
    assert 0.93 < float(np.mean(ratios)) < 1.15
    assert 0.7 < float(np.sqrt(np.mean(np.square(scores)))) < 1.3


def test_every_shadow_training_set_has_all_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array([0] * 30 + [1] * 28 + [2] * 2)
    model = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
    shadows = fitted.shadow_models(model, X, y, models=40, random_state=0)
    assert all(len(np.unique(y[inside])) == 3 for inside in shadows.trained_on)
