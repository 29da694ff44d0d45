"""The exact fit without records against refits, and what other coefficients are told to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import scale

from leakscope.errors import InputError
from leakscope.fitted import from_sklearn
from leakscope.fitted.erasure import erased, forces, without

TIGHT: dict[str, Any] = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    load = {"cancer": load_breast_cancer, "wine": load_wine, "diabetes": load_diabetes}[name]
    X, y = load(return_X_y=True)
    return scale(X), y


def theta(model: Any) -> np.ndarray:
    rows = np.column_stack([np.atleast_2d(model.coef_), np.ravel(model.intercept_)]).T
    return rows[:, 0] if rows.shape[1] == 1 else rows - rows.mean(axis=1, keepdims=True)


CASES = [
    ("diabetes", Ridge(alpha=2.0)),
    ("cancer", LogisticRegression(C=0.5, **TIGHT)),
    ("wine", LogisticRegression(C=0.5, **TIGHT)),
    ("diabetes", PoissonRegressor(alpha=0.3, **TIGHT)),
]


@pytest.mark.parametrize("count", [1, 5, 50])
@pytest.mark.parametrize(("name", "model"), CASES, ids=["ridge", "logistic", "softmax", "poisson"])
def test_the_fit_without_records_is_the_refit(name: str, model: Any, count: int) -> None:
    X, y = data(name)
    problem = from_sklearn(model.fit(X, y), X, y).problems[0]
    rows = np.random.default_rng(count).choice(len(y), count, replace=False)
    rest = np.setdiff1d(np.arange(len(y)), rows)
    refit = theta(type(model)(**model.get_params()).fit(X[rest], y[rest]))
    found = without(problem, rows)
    found = found if found.ndim == 1 else found - found.mean(axis=1, keepdims=True)
    assert np.abs(found - refit).max() <= 1e-8 * np.abs(refit).max()


@pytest.mark.parametrize(("name", "model"), CASES, ids=["ridge", "logistic", "softmax", "poisson"])
def test_who_is_missing_is_found(name: str, model: Any) -> None:
    """A fit without some records, asked about others, names those it lacks."""
    X, y = data(name)
    problem = from_sklearn(model.fit(X, y), X, y).problems[0]
    sizes = np.abs(forces(problem, np.asarray(problem.coefficients)))
    sizes = sizes if sizes.ndim == 1 else sizes.max(axis=1)
    first, second, third = np.argsort(-sizes)[:3]
    rest = np.setdiff1d(np.arange(len(y)), [second, third])
    after = theta(type(model)(**model.get_params()).fit(X[rest], y[rest]))
    found = erased(problem, np.array([first, second]), after)
    assert found.lacking is not None
    assert sorted(found.lacking.tolist()) == sorted([second, third])
    right = erased(problem, np.array([second, third]), after)
    assert right.left <= 1e-6 * right.effect
    assert abs(right.trace) < 1e-6
    assert erased(problem, np.array([first]), theta(model)).trace == pytest.approx(1.0, abs=1e-5)


def test_a_kernel_has_no_coefficients_that_tell() -> None:
    from leakscope.fitted import ConvexProblem

    problem = ConvexProblem(y=np.arange(4.0), loss="square", kernel=np.eye(4))
    with pytest.raises(InputError, match="keeps its training records"):
        without(problem, np.array([1]))
