"""The solver against other packages, brute force over signs, and its own certificate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, Lasso

from leakscope.errors import InputError
from leakscope.lasso.solver import kkt_violation, solve_lasso, solve_lasso_many
from leakscope.lasso.stability import stability_programme


def paper_data(n: int, p: int, seed: int, rho: float = 0.1, sigma_xi: float = 0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) / np.sqrt(p)
    beta = rng.standard_normal(p) * (rng.random(p) < rho)
    return X, X @ beta + sigma_xi * rng.standard_normal(n), rng


def objective(X, y, lam, eta, coef, l2=0.0):
    rest = y - X @ coef
    return 0.5 * rest @ rest + lam * np.abs(coef).sum() + eta @ coef + 0.5 * l2 * coef @ coef


@pytest.mark.parametrize("lam", [1.0, 0.3, 0.1, 0.03])
def test_agrees_with_scikit_learn_at_alpha_lam_over_n(lam: float) -> None:
    X, y, _ = paper_data(150, 300, 0)
    theirs = Lasso(alpha=lam / 150, fit_intercept=False, tol=1e-14, max_iter=200_000).fit(X, y)
    ours = solve_lasso(X, y, lam)
    assert ours.status == "optimal"
    assert ours.kkt_violation < 1e-10 * lam
    np.testing.assert_allclose(ours.coef, theirs.coef_, atol=1e-6)
    assert set(ours.support) == set(np.flatnonzero(theirs.coef_))


def test_l2_agrees_with_elastic_net() -> None:
    X, y, _ = paper_data(60, 120, 1)
    lam, l2 = 0.2, 0.3
    alpha = (lam + l2) / 60
    theirs = ElasticNet(
        alpha=alpha, l1_ratio=lam / (lam + l2), fit_intercept=False, tol=1e-14, max_iter=100_000
    ).fit(X, y)
    np.testing.assert_allclose(solve_lasso(X, y, lam, l2=l2).coef, theirs.coef_, atol=1e-7)


@given(st.integers(0, 10_000))
def test_brute_force_over_all_sign_patterns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = 4, 3
    X, y, eta = rng.standard_normal((n, p)), rng.standard_normal(n), rng.standard_normal(p)
    lam = float(rng.uniform(0.05, 1.5))
    best = np.inf
    for signs in itertools.product((-1, 0, 1), repeat=p):
        s = np.array(signs)
        on = np.flatnonzero(s)
        coef = np.zeros(p)
        if on.size:
            part = X[:, on]
            coef[on] = np.linalg.solve(part.T @ part, part.T @ y - eta[on] - lam * s[on])
        best = min(best, objective(X, y, lam, eta, coef))
    found = solve_lasso(X, y, lam, eta)
    assert found.status == "optimal"
    # every candidate is a feasible point, so the least of them is the minimum
    assert objective(X, y, lam, eta, found.coef) == pytest.approx(best, abs=1e-12)


def awkward(kind: int, rng: np.random.Generator):
    n, p = (int(v) for v in rng.integers(2, 20, 2))
    X = rng.standard_normal((n, p))
    if kind == 1:
        X = rng.integers(-2, 3, (n, p)).astype(float)
    if kind == 2:
        X = np.hstack([X, X[:, : max(1, p // 2)]])
    if kind == 3:
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
    y = np.round(3.0 * rng.standard_normal(n))
    eta = rng.choice([0.0, 0.3, 1.0]) * rng.standard_normal(X.shape[1])
    return X, y, eta, float(rng.choice([0.01, 0.1, 1.0, 3.0]))


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_dependent_columns_are_solved_or_proved_unbounded(kind: int) -> None:
    seen = set()
    for seed in range(80):
        X, y, eta, lam = awkward(kind, np.random.default_rng([kind, seed]))
        found = solve_lasso(X, y, lam, eta)
        seen.add(found.status)
        if found.status == "unbounded":
            v = found.direction
            assert v is not None
            size = np.abs(X).max() * np.abs(v).sum()
            assert np.abs(X @ v).max() < 1e-8 * size
            assert lam * np.abs(v).sum() + eta @ v < 0.0
        else:
            assert found.status == "optimal"
            assert stability_programme(X, eta).edge <= lam * (1.0 + 1e-9)
            assert kkt_violation(X, y, lam, found.coef, eta) < 1e-8
    assert "optimal" in seen


def test_beyond_the_edge_is_recognised_and_just_above_it_is_solved() -> None:
    X, y, rng = paper_data(100, 200, 3)
    eta = 0.3 * rng.standard_normal(200)
    edge = stability_programme(X, eta).edge
    assert solve_lasso(X, y, 0.97 * edge, eta).status == "unbounded"
    assert solve_lasso(X, y, 1.05 * edge, eta).status == "optimal"
    # an l2 term always gives a minimiser
    assert solve_lasso(X, y, 0.5 * edge, eta, l2=0.01).status == "optimal"


def test_many_draws_and_many_lambdas_are_the_single_solutions() -> None:
    X, y, rng = paper_data(100, 200, 4)
    etas = 0.3 * rng.standard_normal((6, 200))
    for found, eta in zip(solve_lasso_many(X, y, 0.6, etas), etas, strict=True):
        np.testing.assert_allclose(found.coef, solve_lasso(X, y, 0.6, eta).coef, atol=1e-11)
    lams = [1.0, 0.5, 0.2]
    for found, lam in zip(solve_lasso_many(X, y, lams), lams, strict=True):
        np.testing.assert_allclose(found.coef, solve_lasso(X, y, lam).coef, atol=1e-11)


def test_a_start_changes_nothing() -> None:
    X, y, rng = paper_data(200, 400, 5)
    eta = 0.1 * rng.standard_normal(400)
    cold = solve_lasso(X, y, 0.2, eta)
    y[0] += 0.5
    warm, fresh = solve_lasso(X, y, 0.2, eta, start=cold.coef), solve_lasso(X, y, 0.2, eta)
    np.testing.assert_allclose(warm.coef, fresh.coef, atol=1e-11)


def test_nearly_as_many_active_as_records() -> None:
    X, y, _ = paper_data(200, 400, 6)
    found = solve_lasso(X, y, 0.01)
    assert found.support.size > 0.8 * 200
    assert found.status == "optimal"
    assert kkt_violation(X, y, 0.01, found.coef) < 1e-12


def test_a_large_lambda_gives_zero() -> None:
    X, y, _ = paper_data(30, 50, 8)
    found = solve_lasso(X, y, 100.0)
    assert found.support.size == 0
    assert found.status == "optimal"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lam": 0.0}, "lam must be positive"),
        ({"lam": -1.0}, "lam must be positive"),
        ({"y": np.zeros(4)}, "y must be 5 labels"),
        ({"linear_term": np.zeros(2)}, "linear term"),
        ({"l2": -1.0}, "l2 must be"),
        ({"start": np.zeros(1)}, "start must be 3"),
        ({"X": np.full((5, 3), np.nan)}, "row 0"),
        ({"X": np.diag([1.0, np.inf, -np.inf, 0.0, 0.0])[:, :3]}, "row 1"),
        ({"X": np.zeros(5)}, "table"),
    ],
)
def test_bad_input_is_one_sentence(change: dict, words: str) -> None:
    given_values = {"X": np.ones((5, 3)), "y": np.ones(5), "lam": 1.0, **change}
    with pytest.raises(InputError, match=words):
        solve_lasso(**given_values)
