"""The missing record from the optimum's own equation, against the record itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import scale

from leakscope.errors import InputError
from leakscope.fitted import from_sklearn
from leakscope.fitted.reconstruction import every_record, reconstruct, rero_bound
from leakscope.single_fit.problem import ConvexProblem

TIGHT: dict[str, Any] = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


def problem(model: Any, X: np.ndarray, y: np.ndarray) -> ConvexProblem:
    return from_sklearn(model, X, y, at_optimum=False).problems[0]


@pytest.mark.parametrize(
    ("load", "model"),
    [
        (load_diabetes, Ridge(alpha=0.3)),
        (load_breast_cancer, LogisticRegression(C=0.3, **TIGHT)),
        (load_wine, LogisticRegression(C=0.3, **TIGHT)),
        (load_diabetes, PoissonRegressor(alpha=0.3, **TIGHT)),
    ],
    ids=["ridge", "logistic", "softmax", "poisson"],
)
def test_the_missing_record_comes_back(load: Any, model: Any) -> None:
    X, y = load(return_X_y=True)
    X = scale(X)
    model.fit(X, y)
    every = every_record(problem(model, X, y))
    for row in (1, 50, 120):
        rest = np.delete(np.arange(len(y)), row)
        found = reconstruct(problem(model, X[rest], y[rest]))
        assert found.determined == "record"
        assert found.label == pytest.approx(float(y[row]), rel=1e-6)
        off = np.linalg.norm(found.x - X[row]) / np.linalg.norm(X[row])
        assert off < 1e-4
        # the one pass over everybody says the same
        assert every.error[row] == pytest.approx(off, rel=0.05, abs=1e-9)
    assert every.found > 0.9
    assert every.right.mean() > 0.9


def test_a_solver_that_stops_early_hides_records_and_protects_nobody() -> None:
    """Balle et al. 2022: newton-cholesky gives nearly all away, lbfgs by default nobody."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    exact = every_record(problem(LogisticRegression(**TIGHT).fit(X, y), X, y))
    early = every_record(problem(LogisticRegression().fit(X, y), X, y))
    assert exact.found > 0.9 > 0.01 > early.found
    assert exact.gradient < exact.needed < early.gradient
    # fitted to what is said to be needed, about half of them are found
    weight = len(y)
    half = LogisticRegression(tol=exact.needed / weight, max_iter=100_000, solver="newton-cg")
    assert every_record(problem(half.fit(X, y), X, y)).found > 0.3


def test_noise_on_the_coefficients_gives_the_stated_spread() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    known = problem(Ridge(alpha=1.0).fit(X, y), X[1:], y[1:])
    assert known.coefficients is not None
    rng, noise = np.random.default_rng(0), 1e-4
    stated = reconstruct(known, noise=noise).sd
    drawn = [
        reconstruct(
            replace(
                known, coefficients=known.coefficients + noise * rng.normal(size=X.shape[1] + 1)
            )
        ).x
        for _ in range(600)
    ]
    # of 600 draws a standard deviation is known to 2.9%
    assert np.allclose(np.std(drawn, axis=0) / stated, 1.0, atol=4 * 0.029)


def test_what_cannot_be_determined_is_said() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    plain = Ridge(fit_intercept=False).fit(X, y)
    direction = reconstruct(problem(plain, X[1:], y[1:]))
    assert direction.determined == "direction"
    assert abs(direction.x @ X[0]) / np.linalg.norm(X[0]) == pytest.approx(1.0)
    model = Ridge().fit(X, y)
    both = reconstruct(problem(model, X[2:], y[2:]), missing=2)
    force = y[:2] - model.predict(X[:2])
    assert both.determined == "sum"
    assert np.allclose(both.x, force @ X[:2] / force.sum())
    assert reconstruct(problem(model, X, y)).determined == "nothing"
    with pytest.raises(InputError, match="up to a factor"):
        every_record(problem(plain, X, y))
    with pytest.raises(InputError, match="without an attack"):
        reconstruct(ConvexProblem(y=np.arange(3.0), loss="square", kernel=np.eye(3)))


def test_the_bound_on_every_reconstruction() -> None:
    """Two normals at a distance mu: the best test of level kappa has this power."""
    assert rero_bound(0.01, 2.0, 1.0) == pytest.approx(norm.cdf(norm.ppf(0.01) + 2.0), rel=1e-12)
    assert rero_bound(0.01, 2.0, 0.0) == 1.0
    with pytest.raises(InputError, match="between 0 and 1"):
        rero_bound(1.5, 1.0, 1.0)
