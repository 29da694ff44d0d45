"""Which estimators are taken, and one clear sentence for each that is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_data import counts, regression, several_classes, two_classes

from leakscope import fitted
from leakscope.errors import InputError
from leakscope.fitted.problem import NoLawsError, NotOptimalError


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        pytest.param(Ridge(alpha=2.0, fit_intercept=False), regression(), id="no intercept"),
        pytest.param(RidgeCV(), regression(), id="ridge by cross-validation"),
        pytest.param(LinearRegression(), regression(), id="least squares"),
        pytest.param(KernelRidge(kernel="poly", degree=2, alpha=3.0), regression(), id="kernel"),
        pytest.param(RidgeClassifier(), several_classes(), id="ridge classifier"),
        pytest.param(LogisticRegression(C=0.3), two_classes(), id="logistic"),
        pytest.param(LogisticRegression(solver="liblinear"), two_classes(), id="liblinear"),
        pytest.param(LogisticRegression(class_weight={0: 2.0}), several_classes(), id="softmax"),
        pytest.param(PoissonRegressor(alpha=0.1), counts(), id="poisson"),
        pytest.param(
            make_pipeline(StandardScaler(), LogisticRegression()), two_classes(), id="pipeline"
        ),
        pytest.param(
            GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 10.0]}),
            regression(),
            id="search",
        ),
        pytest.param(
            CalibratedClassifierCV(LogisticRegression(), ensemble=False),
            two_classes(),
            id="calibrated",
        ),
    ],
)
def test_taken(estimator: Any, data: Any) -> None:
    X, y = data
    laws = fitted.laws_of(estimator.fit(X, y), X, y)
    assert laws.converged
    assert laws.law_pair().batch_shape == (len(y),)
    assert np.all(np.isfinite(laws.shift))


def test_logistic_by_cross_validation() -> None:
    X, y = two_classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(Cs=[0.1, 1.0]).fit(X, y)
    assert fitted.from_sklearn(model, X, y).problems[0].loss == "logistic"


def test_pipeline_is_said_in_the_assumptions() -> None:
    X, y = two_classes()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    statements = [a.statement for a in fitted.laws_of(model, X, y).provenance.assumptions]
    assert any("(StandardScaler) stays as fitted" in s for s in statements)


def refused(model: Any, X: Any, y: Any, match: str, **extra: Any) -> None:
    with pytest.raises(InputError, match=match):
        fitted.laws_of(model, X, y, **extra)


def test_what_cannot_be_taken() -> None:
    X, y = regression()
    _, labels = two_classes(len(y))
    for model, labelled in (
        (Lasso(), y),
        (GaussianNB(), labels),
        (SGDClassifier(loss="log_loss"), labels),
        (Ridge(positive=True), y),
    ):
        with pytest.raises(NoLawsError):
            fitted.laws_of(model.fit(X, labelled), X, labelled)
    folds = CalibratedClassifierCV(LogisticRegression(), cv=3).fit(X, labels)
    refused(folds, X, labels, "averages 3 models")


def test_bad_input() -> None:
    X, y = two_classes()
    model = LogisticRegression().fit(X, y)
    refused(LogisticRegression(), X, y, "is not fitted")
    refused(model, X, np.zeros(len(y)), "one class")
    refused(model, X, np.where(y == 1, 7, 0), "Row .* label 7.* does not know")
    refused(model, X, y[:-1], "one row for each of 199 labels")
    refused(model, X[:, :3], y, "fitted on 8 features, but X has 3")
    refused(model, X, y, "5 sample weights for 200", sample_weight=np.ones(5))
    refused(model, np.where(X[3, 0] == X, np.nan, X), y, "Row 3 of X")
    refused(model, X, y, "below 1 for the pool", fraction=1.0)
    refused(model, X, y, "between 0 and 1", fraction=0.0)
    refused(model, X, y, "question must be one of", question="nobody")
    refused(model, X, y, "observes must be one of log_odds", observes="residual")
    refused(model, None, None, "Pass X and y")


def test_not_the_optimum_here() -> None:
    X, y = two_classes(seed=0)
    X3, y3 = several_classes()
    for model, features, labels in (
        (LogisticRegression().fit(*two_classes(seed=1)), X, y),
        (LogisticRegression().fit(X3[::2], y3[::2]), X3, y3),
        (KernelRidge().fit(X[:50], y[:50]), X, y),
        (Ridge().fit(X, y, sample_weight=np.linspace(0.1, 5.0, len(y))), X, y),
    ):
        with pytest.raises(NotOptimalError):
            fitted.from_sklearn(model, features, labels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", [{"max_iter": 1}, {"solver": "saga", "tol": 1.0}])
def test_a_solver_that_stopped_here_is_no_fit_of_other_data(how: dict[str, Any]) -> None:
    X, y = two_classes(seed=0)
    with pytest.raises(NoLawsError):
        fitted.from_sklearn(LogisticRegression(**how).fit(X, y), X, y)


def test_interpolation_and_constant_columns() -> None:
    X, y = regression(30, 40)
    refused(LinearRegression().fit(X, y), X, y, "interpolates.*use Ridge")
    X, y = regression(60, 40)
    refused(LinearRegression().fit(X, y), X, y, "interpolates.*add a penalty")
    X, y = regression()
    X[:, 2] = 3.0
    refused(LinearRegression().fit(X, y), X, y, "constant column")
    assert np.isfinite(fitted.laws_of(Ridge().fit(X, y), X, y).shift).all()


def test_one_against_the_rest_of_two_classes_is_the_model_inside() -> None:
    from sklearn.datasets import load_iris
    from sklearn.multiclass import OneVsRestClassifier

    X, y = load_iris(return_X_y=True)
    names = np.array(["first", "second", "third"])[y]
    two = X[50:], names[50:]
    around = fitted.laws_of(OneVsRestClassifier(LogisticRegression()).fit(*two), *two)
    inside = fitted.laws_of(LogisticRegression().fit(*two), *two)
    np.testing.assert_allclose(around.member_mean, inside.member_mean, rtol=1e-12)
    np.testing.assert_allclose(around.nonmember_sd, inside.nonmember_sd, rtol=1e-12)
    with pytest.raises(NoLawsError, match="two classes"):
        fitted.laws_of(OneVsRestClassifier(LogisticRegression()).fit(X, names), X, names)
