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
from leakscope.fitted.erasure import (
    both_published,
    erased,
    forces,
    gradient,
    one_step,
    part_of,
    without,
)

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


@pytest.mark.parametrize("kept", [True, False])
def test_another_penalty_is_found(kept: bool) -> None:
    X, y = data("cancer")
    problem = from_sklearn(LogisticRegression(**TIGHT).fit(X, y), X, y).problems[0]
    row = int(np.argmax(np.abs(forces(problem, np.asarray(problem.coefficients)))))
    rows = np.arange(len(y)) if kept else np.delete(np.arange(len(y)), row)
    after = theta(LogisticRegression(C=2.0, **TIGHT).fit(X[rows], y[rows]))
    found = erased(problem, np.array([row]), after)
    assert found.penalty_factor == pytest.approx(0.5, rel=1e-6)
    assert found.penalty_kept is kept


def test_one_step_stays_below_its_bound() -> None:
    """Guo et al. 2020, Corollary 1, against the gradient that is left."""
    X, y = data("cancer")
    problem = from_sklearn(LogisticRegression(C=0.1, **TIGHT).fit(X, y), X, y).problems[0]
    for row in range(0, len(y), 97):
        found, bound = one_step(problem, np.array([row]))
        rest = part_of(problem, np.delete(np.arange(len(y)), row))
        assert np.linalg.norm(gradient(rest, found)) <= bound


def test_two_published_fits_point_along_the_record() -> None:
    X, y = data("diabetes")
    model = Ridge(alpha=10.0).fit(X, y)
    problem = from_sklearn(model, X, y).problems[0]
    rest = np.delete(np.arange(len(y)), 7)
    after = Ridge(alpha=10.0).fit(X[rest], y[rest])
    found = both_published(problem, np.array([7]), theta(model), theta(after))
    assert found.cosine == pytest.approx(1.0, abs=1e-9)
    assert 0.9 < found.public_cosine < 1.0
    # with the noise that is named, an attacker's cosine is about a half
    rng = np.random.default_rng(0)
    grown = X[rest] - X[rest].mean(axis=0)
    hessian = grown.T @ grown + 10.0 * np.eye(X.shape[1])
    noisy = [
        hessian
        @ (model.coef_ - after.coef_ + found.noise * np.sqrt(2.0) * rng.normal(size=X.shape[1]))
        for _ in range(400)
    ]
    cosines = [abs(v @ X[7]) / np.linalg.norm(v) / np.linalg.norm(X[7]) for v in noisy]
    assert 0.35 < np.mean(cosines) < 0.7


def test_a_kernel_has_no_coefficients_that_tell() -> None:
    from leakscope.fitted import ConvexProblem

    problem = ConvexProblem(y=np.arange(4.0), loss="square", kernel=np.eye(4))
    with pytest.raises(InputError, match="keeps its training records"):
        without(problem, np.array([1]))
