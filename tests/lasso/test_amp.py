"""Message passing against the solver, refits without a record, and the printed Eq. (22)."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.lasso.amp import message_passing, soft
from leakscope.lasso.solver import solve_lasso


def paper_data(n: int, p: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) / np.sqrt(p)
    beta = rng.standard_normal(p) * (rng.random(p) < 0.1)
    return X, X @ beta + 0.1 * rng.standard_normal(n), rng


@pytest.mark.parametrize(
    ("lam", "sigma_eta"), [(1.0, 0.0), (1.0, 0.3), (1.0, 0.6), (0.3, 0.1), (0.1, 0.0), (1.5, 1.0)]
)
def test_ends_at_the_lasso(lam: float, sigma_eta: float) -> None:
    X, y, rng = paper_data(500, 1000, 0)
    eta = sigma_eta * rng.standard_normal(1000)
    found = message_passing(X, y, lam, eta)
    assert found.status.tolist() == ["converged"]
    exact = solve_lasso(X, y, lam, eta)
    assert np.abs(found.coef[0] - exact.coef).max() < 1e-6
    assert found.active_fraction[0] == exact.active_fraction
    assert found.kkt_violation[0] < 1e-9


def test_a_batch_is_its_members() -> None:
    X, y, rng = paper_data(100, 200, 1)
    etas = 0.3 * rng.standard_normal((5, 200))
    batch = message_passing(X, y, 0.7, etas)
    for k, eta in enumerate(etas):
        one = message_passing(X, y, 0.7, eta)
        np.testing.assert_allclose(batch.coef[k], one.coef[0], atol=1e-12)
        assert batch.iterations[k] == one.iterations[0]
        np.testing.assert_allclose(batch.loo_residuals[k], one.loo_residuals[0], atol=1e-10)


def test_leave_one_out_quantities_are_close_to_refits() -> None:
    X, y, rng = paper_data(600, 1200, 3)
    eta = 0.2 * rng.standard_normal(1200)
    found = message_passing(X, y, 0.5, eta)
    records = np.arange(0, 600, 30)
    estimates = found.leave_one_out(records)
    printed = found.leave_one_out(records, form="printed")
    spreads = found.leave_one_out_spread(records)
    full = solve_lasso(X, y, 0.5, eta)
    moved, left, left_printed, residuals = [], [], [], []
    for place, record in enumerate(records):
        keep = np.delete(np.arange(600), record)
        refit = solve_lasso(X[keep], y[keep], 0.5, eta, start=full.coef).coef
        moved.append(np.sum((refit - full.coef) ** 2))
        left.append(np.sum((refit - estimates[place]) ** 2))
        left_printed.append(np.sum((refit - printed[place]) ** 2))
        residuals.append(y[record] - X[record] @ refit)
    # The refit itself but for supports that change; Eq. (32) misses the others' response for good.
    assert np.sum(left) < 0.06 * np.sum(moved)
    v = found.susceptibility[0]
    assert np.sum(left_printed) / np.sum(moved) == pytest.approx(v / (1.0 + v), rel=0.35)
    own = found.loo_residuals[0, records]
    np.testing.assert_allclose(own, residuals, atol=0.12 * np.std(residuals))
    plain = (y - X @ full.coef)[records]
    assert np.sum((own - residuals) ** 2) < 0.05 * np.sum((plain - residuals) ** 2)
    np.testing.assert_array_equal(spreads != 0.0, printed != 0.0)
    assert np.all(spreads[spreads != 0.0] == found.spread[0])


def test_leave_one_out_is_the_refit_while_the_support_stays() -> None:
    X, y, rng = paper_data(150, 300, 2)
    eta = 0.2 * rng.standard_normal(300)
    found = message_passing(X, y, 1.2, eta)
    same = 0
    for record in (7, 20, 33, 46, 59, 72):
        keep = np.delete(np.arange(150), record)
        refit = solve_lasso(X[keep], y[keep], 1.2, eta).coef
        if np.array_equal(np.sign(refit), np.sign(found.coef[0])):
            np.testing.assert_allclose(found.leave_one_out(record)[0], refit, atol=1e-8)
            same += 1
    assert same


def test_the_onsager_scale_is_eq_43() -> None:
    X, y, _ = paper_data(300, 600, 4)
    found = message_passing(X, y, 0.3)
    share = found.active_fraction[0]
    # exact but for the mean squared row length, which Setting D has at 1
    scale = np.mean(np.sum(X**2, axis=1))
    assert found.susceptibility[0] == pytest.approx(share / (0.5 - share), rel=1e-8)
    assert found.spread[0] == pytest.approx((1 + found.susceptibility[0]) / 0.5 / scale, rel=1e-12)
    np.testing.assert_allclose(
        found.loo_residuals[0], (1 + found.susceptibility[0]) * (y - X @ found.coef[0]), atol=1e-8
    )


def test_any_scale_of_the_features_will_do() -> None:
    X, y, rng = paper_data(200, 400, 5)
    eta = 0.2 * rng.standard_normal(400)
    one = message_passing(X, y, 0.6, eta)
    ten = message_passing(10.0 * X, y, 6.0, 10.0 * eta)
    np.testing.assert_allclose(10.0 * ten.coef, one.coef, atol=1e-9)
    np.testing.assert_allclose(ten.leave_one_out([3]) * 10.0, one.leave_one_out([3]), atol=1e-9)


def test_beyond_the_edge_it_diverges_and_says_so() -> None:
    X, y, rng = paper_data(200, 400, 6)
    found = message_passing(X, y, 0.2, 0.3 * rng.standard_normal((3, 400)))
    assert found.status.tolist() == ["diverged"] * 3
    assert np.all(np.isnan(found.coef))


def test_a_few_iterations_are_not_convergence() -> None:
    X, y, _ = paper_data(100, 200, 7)
    assert message_passing(X, y, 0.1, max_iterations=6).status.tolist() == ["not_converged"]


def test_eq_22_as_printed_does_not_solve_the_lasso() -> None:
    X, y, _ = paper_data(500, 1000, 8)
    lam, alpha = 0.3, 0.5
    column = np.sum(X**2, axis=0) / alpha
    beta, v, z = np.zeros(1000), 0.0, y.copy()
    for _ in range(300):
        sigma = (1.0 + v) / alpha
        beta = soft(column * beta + X.T @ z / alpha, lam * sigma)
        v_new = sigma * np.count_nonzero(beta) / 1000
        z, v = y - X @ beta + v_new / (1.0 + v) * z, v_new
    printed = np.abs(beta - solve_lasso(X, y, lam).coef).max()
    corrected = np.abs(message_passing(X, y, lam).coef[0] - solve_lasso(X, y, lam).coef).max()
    assert corrected < 1e-8
    assert not printed < 0.05


@pytest.mark.parametrize(
    ("change", "token"),
    [
        ({"lam": 0.0}, "lam"),
        ({"linear_terms": np.zeros((2, 3))}, "linear_terms"),
        ({"X": np.zeros((10, 4))}, "all zero"),
    ],
)
def test_bad_input(change: dict, token: str) -> None:
    X, y, _ = paper_data(10, 20, 9)
    with pytest.raises(InputError, match=token):
        message_passing(**{"X": X, "y": y, "lam": 1.0, **change})
