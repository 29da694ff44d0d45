"""Leave-one-out values against refits, for every record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from small_data import counts, refit_without, regression, several_classes, two_classes

from leakscope import fitted
from leakscope.errors import InputError

NEWTON = {"solver": "newton-cholesky", "tol": 1e-13, "max_iter": 500}


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        pytest.param(Ridge(alpha=2.0), regression(60), id="ridge"),
        pytest.param(KernelRidge(alpha=0.3, kernel="rbf", gamma=0.02), regression(60), id="kernel"),
        pytest.param(LogisticRegression(**NEWTON), two_classes(80), id="logistic"),
        pytest.param(LogisticRegression(C=300.0, **NEWTON), two_classes(80), id="small penalty"),
        pytest.param(PoissonRegressor(alpha=0.05, **NEWTON), counts(70), id="poisson"),
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
        elif isinstance(again, PoissonRegressor):
            truth = np.log(again.predict(row)[0])
        else:
            truth = again.predict(row)[0]
        value = found.without[record]
        if np.ndim(truth):
            truth, value = truth - truth.mean(), value - value.mean()
        np.testing.assert_allclose(value, truth, atol=1e-6)


def test_known_others_are_certain() -> None:
    X, y = two_classes(80)
    model = LogisticRegression(**NEWTON).fit(X, y)
    laws = fitted.laws_of(model, X, y, question="known_others")
    assert "certainty" in laws.warnings[0]
    with pytest.raises(InputError, match="certainty"):
        laws.law_pair()
    assert laws.law_pair(answer_noise=0.5).batch_shape == (80,)
    assert np.all(laws.shift > 0.0)
