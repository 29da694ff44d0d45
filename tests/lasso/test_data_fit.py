"""The data model from the data, on data whose model is known, and on data without one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from sklearn.datasets import load_diabetes

from leakscope import planning
from leakscope.errors import InputError
from leakscope.lasso import ObjectivePerturbedLasso, OutputPerturbedLasso
from leakscope.lasso.data_fit import check_design, fit_data_model, marchenko_pastur_distance


def drawn(n, p, rho, sigma_xi, signal_variance, scale, seed):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, p)) / np.sqrt(p)
    beta = rng.standard_normal(p) * (rng.random(p) < rho) * np.sqrt(signal_variance) / scale
    return X, X @ beta + sigma_xi * rng.standard_normal(n), beta * scale


@pytest.mark.parametrize(
    ("n", "p", "rho", "sigma_xi", "variance", "scale"),
    [(500, 1000, 0.1, 0.1, 1.0, 1.0), (400, 400, 0.1, 0.3, 4.0, 30.0), (600, 300, 0.2, 0.5, 1, 1)],
)
def test_finds_the_model_behind_the_data(n, p, rho, sigma_xi, variance, scale) -> None:
    found = []
    for seed in range(4):
        X, y, _ = drawn(n, p, rho, sigma_xi, variance, scale, seed)
        found.append(fit_data_model(X, y, folds=3))
    assert {f.alpha for f in found} == {n / p}
    assert np.mean([f.scale for f in found]) == pytest.approx(scale, rel=0.02)

    def compare(values, truth, room):
        error = np.std(values, ddof=1) / 2.0
        assert abs(np.mean(values) - truth) < max(room * truth, 4.0 * error)

    compare([f.sigma_xi for f in found], sigma_xi, 0.1)
    compare([f.rho for f in found], rho, 0.2)
    compare([f.rho * f.signal_variance for f in found], rho * variance, 0.15)
    assert all(f.trusted for f in found)


def test_its_error_is_the_error_on_new_records() -> None:
    errors, fresh = [], []
    for seed in range(6):
        X, y, beta = drawn(400, 800, 0.1, 0.2, 1.0, 1.0, seed)
        found = fit_data_model(X, y, folds=2)
        from leakscope.lasso.solver import solve_lasso

        fit = solve_lasso(X, y, found.lam).coef
        errors.append(found.error)
        # rows have covariance I/p, so this is exact
        fresh.append(0.2**2 + np.sum((fit - beta) ** 2) / 800)
    apart = np.array(errors) - fresh
    # the lambda of least estimated error is chosen by the estimate: a slight optimism is allowed
    assert abs(apart.mean()) < 4.0 * apart.std(ddof=1) / np.sqrt(6) + 0.03 * np.mean(fresh)


def test_a_real_design_is_not_i_i_d_and_this_is_said() -> None:
    X, y = load_diabetes(return_X_y=True)
    found = fit_data_model(X, y - y.mean())
    assert not found.trusted
    failed = [a.statement for a in found.assumptions if a.holds is False]
    assert any("coherence" in statement for statement in failed)
    assert found.assumptions[0].evidence
    # the residuals do not need the design to be Gaussian where n is 44 times p
    assert found.error == pytest.approx(found.cross_validated_error, rel=0.1)


@pytest.mark.parametrize(("n", "p"), [(200, 400), (400, 200), (300, 300), (1000, 50)])
def test_gaussian_and_sign_designs_pass(n: int, p: int) -> None:
    rng = np.random.default_rng(n + p)
    for X in (rng.standard_normal((n, p)), rng.choice([-2.0, 2.0], (n, p))):
        assert [a.holds for a in check_design(X)] == [True] * 3


def test_what_breaks_a_design_is_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 200))
    correlated = X @ np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(range(200), range(200)))).T
    assert check_design(correlated)[0].holds is False
    twin = X.copy()
    twin[:, 1] = twin[:, 0] + 0.1 * twin[:, 1]
    assert [a.holds for a in check_design(twin)] == [True, False, True]
    assert [a.holds for a in check_design(X + 0.5)][2] is False
    assert check_design(X * np.linspace(0.5, 2.0, 200))[2].holds is False


@pytest.mark.parametrize("ratio", [0.2, 1.0, 3.0])
def test_marchenko_pastur_by_quadrature(ratio: float) -> None:
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2

    def density(x: float) -> float:
        inside = max((high - x) * (x - low), 0.0)
        return inside**0.5 / (2 * np.pi * x * min(ratio, 1.0))

    at = low + 0.3 * (high - low)
    mass = integrate.quad(density, low, at, limit=200)[0]
    # one value at `at`: the distance is the larger of its two steps
    expected = max(mass, 1.0 - mass)
    assert marchenko_pastur_distance(np.array([at]), ratio) == pytest.approx(expected, abs=1e-5)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="10 or more"):
        fit_data_model(np.ones((5, 2)), np.ones(5))
    with pytest.raises(InputError, match="Every label is zero"):
        fit_data_model(np.ones((20, 2)), np.zeros(20))


def test_a_plan_from_data_is_what_private_fits_of_them_show() -> None:
    """Generalisation error and sparsity against fits of the same data with fresh noise."""
    rng = np.random.default_rng(5)
    n, p = 450, 300
    truth = np.where(rng.random(p) < 0.1, rng.normal(size=p), 0.0)
    X, fresh = rng.normal(size=(n, p)), rng.normal(size=(4000, p))
    y, seen = X @ truth + rng.normal(size=n), fresh @ truth + rng.normal(size=4000)
    found = fit_data_model(X, y, random_state=0)
    for mechanism, sigma, kind in (
        ("objective", 4.0, ObjectivePerturbedLasso),
        ("output", 0.05, OutputPerturbedLasso),
    ):
        plan = planning.plan_lasso(found.setting(sigma, mechanism=mechanism), data=found)
        fits = [kind(found.lam, sigma, random_state=seed).fit(X, y) for seed in range(20)]
        errors = [float(np.mean((one.predict(fresh) - seen) ** 2)) for one in fits]
        # What 450 records leave uncertain is told by cross-validation's own standard error.
        apart = abs(plan.generalization_error - np.mean(errors))
        assert apart < 4.0 * found.cross_validated_stderr
        assert apart < 0.25 * np.mean(errors)
        if mechanism == "objective":
            active = np.mean([np.count_nonzero(one.coef_) / p for one in fits])
            assert plan.active_fraction == pytest.approx(active, rel=0.15)
        assert any("independent" in str(one) for one in plan.assumptions)
        assert not any("do not fit the theory" in sentence for sentence in plan.warnings)


def test_what_does_not_fit_the_theory_is_told() -> None:
    X, y = load_diabetes(return_X_y=True)
    found = fit_data_model(X, y - y.mean())
    plan = planning.plan_lasso(found.setting(1.0), data=found)
    assert sum("do not fit the theory" in one for one in plan.warnings) == 2
    assert any("Estimated from your table" in one for one in plan.in_short().sentences)
