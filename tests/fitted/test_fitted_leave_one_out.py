"""Leave-one-out values against refits, for every record."""

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
    TweedieRegressor,
)
from small_data import amounts, counts, refit_without, regression, several_classes, two_classes

from leakscope import fitted
from leakscope.errors import InputError
from leakscope.single_fit import cavity
from leakscope.single_fit.leave_one_out import one_step_out

LOG_LINK = (GammaRegressor, PoissonRegressor, TweedieRegressor)
NEWTON = {"solver": "newton-cholesky", "tol": 1e-13, "max_iter": 500}


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        pytest.param(Ridge(alpha=2.0), regression(60), id="ridge"),
        pytest.param(KernelRidge(alpha=0.3, kernel="rbf", gamma=0.02), regression(60), id="kernel"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(80), id="logistic"),
        pytest.param(LogisticRegression(C=300.0, **NEWTON), two_classes(80), id="small penalty"),
        pytest.param(PoissonRegressor(alpha=0.05, **NEWTON), counts(70), id="poisson"),
        pytest.param(GammaRegressor(alpha=0.05, **NEWTON), amounts(70), id="gamma"),
        pytest.param(
            TweedieRegressor(power=1.5, alpha=0.05, **NEWTON), counts(70), id="tweedie 1.5"
        ),
        pytest.param(
            TweedieRegressor(power=0.0, alpha=0.05, **NEWTON), regression(60), id="tweedie 0"
        ),
        pytest.param(LogisticRegression(**NEWTON), several_classes(60, 4), id="softmax"),
    ],
)
def test_within_a_millionth_of_refits(estimator: Any, data: Any) -> None:
    X, y = data
    model = fitted.from_sklearn(estimator.fit(X, y), X, y)
    found = fitted.leave_one_out(model.problems[0])
    assert found.last_step <= 1e-9
    for record in range(len(y)):
        again = refit_without(estimator, X, y, record)
        row = X[record : record + 1]
        if hasattr(again, "decision_function"):
            truth = again.decision_function(row)[0]
        elif isinstance(again, LOG_LINK) and getattr(again, "power", 1.0) > 0.0:
            truth = np.log(again.predict(row)[0])
        else:
            truth = again.predict(row)[0]
        value = found.without[record]
        if np.ndim(truth):
            truth, value = truth - truth.mean(), value - value.mean()
        np.testing.assert_allclose(value, truth, atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "data", "near"),
    [
        pytest.param(Ridge(alpha=2.0), regression(60), 1e-9, id="ridge"),
        pytest.param(Ridge(alpha=2.0), regression(30, 40), 1e-6, id="wide ridge"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(80), 0.05, id="logistic"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(30, 40), 0.05, id="wide logistic"),
        pytest.param(PoissonRegressor(alpha=0.05, **NEWTON), counts(70), 0.05, id="poisson"),
        pytest.param(LogisticRegression(**NEWTON), several_classes(60, 4), 0.1, id="softmax"),
    ],
)
def test_one_step_is_near_refits(estimator: Any, data: Any, near: float) -> None:
    """As a share of how far leaving records out moves the predictions, root mean square."""
    X, y = data
    problem = fitted.from_sklearn(estimator.fit(X, y), X, y).problems[0]
    found = one_step_out(problem)

    def answers(model: Any, rows: Any) -> Any:
        if hasattr(model, "decision_function"):
            return model.decision_function(rows)
        said = model.predict(rows)
        return np.log(said) if isinstance(model, PoissonRegressor) else said

    truth = np.array(
        [answers(refit_without(estimator, X, y, i), X[i : i + 1])[0] for i in range(len(y))]
    )
    inside = answers(estimator.fit(X, y), X)
    if np.ndim(truth) == 2:
        found = found - found.mean(axis=1, keepdims=True)
    assert np.linalg.norm(found - truth) <= near * np.linalg.norm(inside - truth)


def test_one_step_of_many_coefficients_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = several_classes(200)
    problem = fitted.from_sklearn(LogisticRegression(**NEWTON).fit(X, y), X, y).problems[0]
    dense = one_step_out(problem)
    monkeypatch.setattr(cavity, "DENSE", 0)
    moved = np.linalg.norm(dense - problem.X @ problem.coefficients)
    # What couples the classes comes from 64 draws, each off by its own size.
    assert np.linalg.norm(one_step_out(problem) - dense) <= moved / np.sqrt(64)


def test_known_others_are_certain() -> None:
    X, y = two_classes(80)
    model = LogisticRegression(**NEWTON).fit(X, y)
    laws = fitted.laws_of(model, X, y, question="known_others")
    assert "certainty" in laws.warnings[0]
    with pytest.raises(InputError, match="certainty"):
        laws.law_pair()
    assert laws.law_pair(answer_noise=0.5).batch_shape == (80,)
    assert np.all(laws.shift > 0.0)
