"""What ``fit`` learns beside the coefficients: measured by refits of the whole, and trusted so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder
from small_data import regression, two_classes

import leakscope
from leakscope import fitted
from leakscope.errors import InputError
from leakscope.fitted.refits import WholeFit, fit_again, fresh_copy
from leakscope.subjects import opened
from leakscope.subjects.fit.changes import advised

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NOISE = np.random.default_rng(0).normal(size=(120, 40))
LABELS = np.random.default_rng(1).integers(0, 2, 120)


class MeanOfLabels(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """A target encoder without folds: every category by the mean label of its records."""

    def fit(self, X: Any, y: Any) -> MeanOfLabels:
        self.mean_ = {value: float(np.mean(y[X[:, 0] == value])) for value in np.unique(X[:, 0])}
        return self

    def transform(self, X: Any) -> Any:
        return np.array([[self.mean_.get(value, 0.5)] for value in X[:, 0]])


CODES = np.random.default_rng(2).integers(0, 40, (120, 1)).astype(float)


@pytest.mark.parametrize(
    ("step", "X"),
    [
        (LinearDiscriminantAnalysis(), NOISE),
        (SelectFromModel(LogisticRegression()), NOISE),
        (SelectKBest(k=5), NOISE),
        (PCA(10), NOISE),
        (MeanOfLabels(), CODES),
    ],
)
def test_steps_that_learn_from_the_records_are_not_trusted(step: Any, X: Any) -> None:
    model = make_pipeline(step, LogisticRegression()).fit(X, LABELS)
    result = leakscope.audit(X, LABELS, model=model)
    told = " ".join(result.warnings)
    assert f"beside its coefficients ({type(step).__name__}) depends on the records" in told
    assert np.mean(result.trusted) < 0.1
    assert result.model.name == f"{type(step).__name__} → LogisticRegression(C=1)"


def test_steps_that_learn_next_to_nothing_are_trusted_by_refits() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge(10.0)).fit(X, y)
    result = leakscope.audit(X, y, model=model)
    assert np.mean(result.trusted) > 0.98
    moved = fitted.laws_of(model, X, y).moved_by_refits
    assert moved is not None
    assert moved.max() < 0.1
    assert "refits of the whole" in result.trust.why(0)
    plain = leakscope.audit(X, y, model=Ridge(1.0).fit(X, y))
    assert "refits" not in plain.trust.why(0)


def test_how_far_scores_move_is_what_refits_by_hand_move() -> None:
    X, y = two_classes(120)
    model = make_pipeline(StandardScaler(), SelectKBest(k=4), LogisticRegression(tol=1e-9))
    whole = WholeFit.of(model.fit(X, y), X, y)
    rows = np.arange(0, 120, 2)
    sign = np.where(y == 1, 1.0, -1.0)
    alone = clone(model).fit(X[rows], y[rows])
    assert whole.scores(rows) == pytest.approx(sign * alone.decision_function(X), abs=1e-5)
    design = model[:-1].transform(X)
    inner = LogisticRegression(tol=1e-9).fit(design[rows], y[rows])
    assert whole.held(rows) == pytest.approx(sign * inner.decision_function(design), abs=1e-5)


def test_shadow_models_fit_everything_again() -> None:
    X, y = two_classes(100)
    model = make_pipeline(StandardScaler(), SelectKBest(k=3), LogisticRegression()).fit(X, y)
    shadows = fitted.shadow_models(model, X, y, models=2, random_state=4)
    sign = np.where(y == 1, 1.0, -1.0)
    for scores, inside in zip(shadows.scores, shadows.trained_on, strict=True):
        alone = clone(model).fit(X[inside], y[inside])
        assert scores == pytest.approx(sign * alone.decision_function(X), abs=0.02)


def test_searches_and_penalties_that_are_chosen_are_chosen_again() -> None:
    X, y = regression(80, 6)
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.01, 300.0]})
    rows = np.arange(12)
    for model in (search.fit(X, y), RidgeCV([0.01, 300.0]).fit(X, y)):
        whole = WholeFit.of(model, X, y, np.ones(len(y)))
        assert whole.scores(rows) == pytest.approx(clone(model).fit(X[rows], y[rows]).predict(X))
        assert whole.chosen


def test_categories_that_a_half_lacks_are_no_error() -> None:
    X = np.repeat(np.arange(30.0), 4)[:, None]
    model = make_pipeline(OneHotEncoder(), Ridge(1.0)).fit(X, np.arange(120.0) % 7)
    laws = fitted.laws_of(model, X, np.arange(120.0) % 7)
    assert laws.moved_by_refits == pytest.approx(np.zeros(120), abs=1e-6)


class Refuses(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """A step that takes whole tables only."""

    def fit(self, X: Any, y: Any = None) -> Refuses:
        if len(X) < 100:
            raise RuntimeError("too few rows for me")
        self.seen_ = len(X)
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_what_could_not_be_measured_is_not_trusted() -> None:
    model = make_pipeline(Refuses(), Ridge(1.0)).fit(NOISE, NOISE[:, 0])
    result = leakscope.audit(NOISE, NOISE[:, 0], model=model)
    assert "(RuntimeError: too few rows for me). No record's numbers" in " ".join(result.warnings)
    assert not result.trusted.any()
    assert result.trust.why(0) == "not checked"
    calibrated = CalibratedClassifierCV(LogisticRegression(C=0.01), ensemble=False)
    result = leakscope.audit(NOISE, LABELS, model=calibrated.fit(NOISE, LABELS))
    assert "(the calibration map), and how much could not be" in " ".join(result.warnings)
    assert not result.trusted.any()
    with pytest.raises(InputError, match="a target encoder"):
        leakscope.audit(
            CODES,
            LABELS,
            model=make_pipeline(TargetEncoder(), LogisticRegression()).fit(CODES, LABELS),
        )


def test_advice_prices_and_checks_the_whole() -> None:
    X, y = two_classes(100)
    frame_like = make_column_transformer((StandardScaler(), [0, 1, 2]), remainder="passthrough")
    model = make_pipeline(frame_like, SelectKBest(k=4), LogisticRegression()).fit(X, y)
    subject = opened(leakscope.audit(X, y, model=model))
    changed = advised(subject).again(columns=np.array([0, 2]), penalty=0.1)
    rows = np.arange(50)
    by_hand = clone(model[:-1]).fit(X[rows], y[rows])
    alone = LogisticRegression(C=0.1).fit(by_hand.transform(X[rows])[:, [0, 2]], y[rows])
    sign = np.where(y == 1, 1.0, -1.0)
    wanted = sign * alone.decision_function(by_hand.transform(X)[:, [0, 2]])
    assert changed.whole.scores(rows) == pytest.approx(wanted, abs=0.02)
    assert changed.described.whole is changed.whole


def test_a_gaussian_process_on_other_labels_is_refused() -> None:
    X, y = regression(60, 3)
    kernel = RBF(2.0) + WhiteKernel(0.5)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(X, y)
    assert fitted.from_sklearn(model, X, y).problems[0].loss == "square"
    with pytest.raises(InputError, match="fitted on other labels"):
        fitted.from_sklearn(model, X, y[::-1])
    # the scores of refits are in the units of the laws, whose target is scaled
    shadows = fitted.shadow_models(model, X, y, models=60, random_state=0)
    found = fitted.check_against_shadows(fitted.laws_of(model, X, y), shadows)
    assert 0.8 < found.sd_ratio < 1.25
    assert 0.7 < found.mean_z < 1.5


@pytest.mark.parametrize("make", [Ridge(1.0), LogisticRegression(), LogisticRegression(tol=1e-6)])
def test_a_fit_that_lacks_a_few_rows_is_not_the_optimum(make: Any) -> None:
    X, y = two_classes(5000)
    assert fitted.from_sklearn(clone(make).fit(X, y), X, y).records == 5000
    fewer = clone(make).fit(X[10:], y[10:])
    with pytest.raises(InputError, match="without some of these records"):
        fitted.from_sklearn(fewer, X, y)


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("solver", ["newton-cholesky", "lbfgs"])
def test_a_fit_from_a_start_is_the_one_from_zero(solver: str, C: float) -> None:
    """scikit-learn 1.6 ended at other intercepts with a start of several classes."""
    X, y = load_iris(return_X_y=True)
    X = np.c_[X[:, :2] - X[:, :2].mean(axis=0)]
    settings = {"solver": solver, "C": C, "tol": 1e-9, "max_iter": 10_000}
    # Flipped labels, so that an optimum without a penalty exists.
    y = np.where(np.arange(len(y)) % 7 == 0, (y + 1) % 3, y)
    released = LogisticRegression(**settings).fit(X, y)
    found = fit_again(fresh_copy(released), released, X[20:], y[20:], None)
    plain = LogisticRegression(**settings).fit(X[20:], y[20:])
    np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), rtol=1e-3, atol=1e-5)
