"""What ``fit`` learns beside the coefficients: laws are counted on refits of the whole recipe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from small_data import checked_laws, regression, two_classes

import leakscope
from leakscope import fitted, measures
from leakscope.errors import InputError
from leakscope.fitted.problem import NoLawsError, NotOptimalError
from leakscope.fitted.refits import (
    WholeFit,
)
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
        (SelectKBest(k=5), NOISE),
        (MeanOfLabels(), CODES),
    ],
)
def test_laws_of_one_fit_are_not_confirmed_where_steps_learn(step: Any, X: Any) -> None:
    model = make_pipeline(step, LogisticRegression()).fit(X, LABELS)
    laws = checked_laws(model, X, LABELS)
    assert laws.warnings
    assert np.mean(laws.confirmed) < 0.1


def test_steps_that_see_the_labels_are_answered_by_models_of_halves() -> None:
    model = make_pipeline(SelectKBest(k=5), LogisticRegression()).fit(NOISE, LABELS)
    result = leakscope.audit(NOISE, LABELS, model=model, models=64)
    assert result.subject == "training"
    # What other models of halves show: features that are chosen by the labels give them away.
    shadows = fitted.shadow_models(model, NOISE, LABELS, models=400, random_state=1)
    scores, inside = shadows.scores, shadows.trained_on
    share = np.where(inside, 1.0 / inside.sum(0), -1.0 / (~inside).sum(0))
    gains = [np.mean(((scores > cut) * share).sum(0)) for cut in np.linspace(-1.0, 2.0, 13)]
    held = fitted.laws_of(model, NOISE, LABELS)
    held_mean = measures.advantage(held.law_pair()).mean()
    assert result.advantage.mean() > max(gains) - 0.02
    assert abs(result.advantage.mean() - max(gains)) < abs(held_mean - max(gains))


def test_steps_that_learn_next_to_nothing_are_trusted_by_refits() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge(10.0)).fit(X, y)
    result = leakscope.audit(X, y, model=model)
    assert np.mean(result.confirmed) > 0.95
    assert "refits" in result.trust.why(0)


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
    laws = checked_laws(model, X, np.arange(120.0) % 7)
    assert laws.check is not None


class Refuses(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """A step that takes whole tables only."""

    def fit(self, X: Any, y: Any = None) -> Refuses:
        if len(X) < 100:
            raise RuntimeError("too few rows for me")
        self.seen_ = len(X)
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_what_could_not_be_fitted_again_is_not_confirmed() -> None:
    model = make_pipeline(Refuses(), Ridge(1.0)).fit(NOISE, NOISE[:, 0])
    result = leakscope.audit(NOISE, NOISE[:, 0], model=model)
    assert "RuntimeError: too few rows for me" in " ".join(result.warnings)
    assert not result.confirmed.any()
    calibrated = CalibratedClassifierCV(LogisticRegression(C=0.01), ensemble=False)
    result = leakscope.audit(NOISE, LABELS, model=calibrated.fit(NOISE, LABELS), models=4)
    assert result.subject == "training"


def test_a_target_encoder_is_answered_where_it_is_fitted_on_these_records() -> None:
    model = make_pipeline(TargetEncoder(cv=KFold(3)), LogisticRegression()).fit(CODES, LABELS)
    result = leakscope.audit(CODES, LABELS, model=model, models=8)
    assert result.subject == "training"
    with pytest.raises(NotOptimalError):
        leakscope.audit(CODES[::-1], LABELS, model=model)


def test_a_step_is_blamed_only_where_it_codes_its_own_records_otherwise() -> None:
    X, y = load_diabetes(return_X_y=True)
    fewer = make_pipeline(StandardScaler(), Ridge(1.0)).fit(X[:-5], y[:-5])
    for how in (fitted.from_sklearn, fitted.laws_of):
        with pytest.raises(NotOptimalError, match="without some of these records"):
            how(fewer, X, y)
    with pytest.raises(InputError, match="without some of these records"):
        leakscope.audit(X, y, model=fewer, models=4)
    # A target encoder with other folds each time: by its means it was fitted on these records.
    model = make_pipeline(TargetEncoder(cv=KFold(3, shuffle=True)), StandardScaler(), Ridge(1.0))
    with pytest.raises(NoLawsError, match="codes the records"):
        fitted.from_sklearn(clone(model).fit(CODES, LABELS), CODES, LABELS)
    # With folds of its own it makes the same again, and other coefficients are seen.
    model = make_pipeline(TargetEncoder(cv=KFold(3)), Ridge(1.0)).fit(CODES, LABELS)
    model[-1].coef_ *= 1.01
    with pytest.raises(NotOptimalError):
        fitted.from_sklearn(model, CODES, LABELS)


def test_a_solver_for_sparse_features_may_stop_by_its_own_rule() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(KBinsDiscretizer(5, strategy="uniform"), RidgeClassifier(0.1))
    assert fitted.from_sklearn(clone(model).fit(X, y), X, y).records == len(y)
    with pytest.raises(NotOptimalError):
        fitted.from_sklearn(clone(model).fit(X[:-1], y[:-1]), X, y)
    model = make_pipeline(OneHotEncoder(), RidgeClassifier(0.01)).fit(X, y)
    with pytest.raises(NoLawsError, match="stopped"):
        fitted.from_sklearn(model, X, y)


@pytest.mark.parametrize("first", [Ridge(1.0), Lasso(0.1)])
def test_a_search_over_several_kinds_goes_to_models_of_halves(first: Any) -> None:
    X, y = load_diabetes(return_X_y=True)
    kinds = {"kind": [first, KNeighborsRegressor(5)]}
    search = GridSearchCV(Pipeline([("kind", first)]), kinds, cv=3).fit(X[:120], y[:120])
    result = leakscope.audit(X[:120], y[:120], model=search, models=4)
    assert result.subject == "training"


def test_what_is_frozen_is_not_answered_by_models_that_keep_it() -> None:
    plain = LogisticRegression().fit(NOISE, LABELS)
    calibrated = CalibratedClassifierCV(FrozenEstimator(plain)).fit(NOISE, LABELS)
    expected = leakscope.audit(NOISE, LABELS, model=plain)
    result = leakscope.audit(NOISE, LABELS, model=calibrated, models=4)
    assert result.subject == "fit"
    assert result.advantage.mean() == pytest.approx(expected.advantage.mean())
    assert not result.confirmed.any()
    forest = FrozenEstimator(RandomForestClassifier(5).fit(NOISE, LABELS))
    with pytest.raises(InputError, match=r"frozen \(RandomForestClassifier\) as it was fitted"):
        leakscope.audit(NOISE, LABELS, model=forest, models=4)
    stepped = make_pipeline(FrozenEstimator(PCA(4).fit(NOISE)), RandomForestClassifier(5))
    result = leakscope.audit(NOISE, LABELS, model=stepped.fit(NOISE, LABELS), models=4)
    assert "What is frozen (PCA) stays as it was fitted" in " ".join(result.warnings)


def test_advice_prices_and_checks_the_whole() -> None:
    X, y = two_classes(100)
    frame_like = make_column_transformer((StandardScaler(), [0, 1, 2]), remainder="passthrough")
    model = make_pipeline(frame_like, PolynomialFeatures(1), LogisticRegression()).fit(X, y)
    subject = opened(leakscope.audit(X, y, model=model))
    changed = advised(subject).again(columns=np.array([0, 2]), penalty=0.1)
    rows = np.arange(50)
    by_hand = clone(model[:-1]).fit(X[rows], y[rows])
    alone = LogisticRegression(C=0.1).fit(by_hand.transform(X[rows])[:, [0, 2]], y[rows])
    sign = np.where(y == 1, 1.0, -1.0)
    wanted = sign * alone.decision_function(by_hand.transform(X)[:, [0, 2]])
    assert changed.whole.scores(rows) == pytest.approx(wanted, abs=0.02)
    assert changed.described.whole is changed.whole


@pytest.mark.parametrize("make", [Ridge(1.0), LogisticRegression(), LogisticRegression(tol=1e-6)])
def test_a_fit_that_lacks_a_few_rows_is_not_the_optimum(make: Any) -> None:
    X, y = two_classes(5000)
    assert fitted.from_sklearn(clone(make).fit(X, y), X, y).records == 5000
    fewer = clone(make).fit(X[10:], y[10:])
    with pytest.raises(InputError, match="without some of these records"):
        fitted.from_sklearn(fewer, X, y)
