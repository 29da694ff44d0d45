"""The exact network against another formulation, finite differences and a grid."""

from __future__ import annotations

import numpy as np
import pytest
from margin_sets import optimum, training_set

from leakscope import relu
from leakscope.errors import InputError
from leakscope.relu.max_margin import largest_response


@pytest.mark.parametrize("seed", range(25))
def test_certificate_and_stationarity_at_machine_precision(seed):
    found = optimum(seed)
    assert abs(found.gap) < 1e-10
    assert found.stationarity < 1e-10
    assert found.network.margins(found.x, found.y).min() > 1.0 - 1e-10
    # complementarity
    assert np.all(found.on_margin[found.support])


@pytest.mark.parametrize("seed", [0, 3, 7, 12])
def test_the_optimum_of_cvxpy_with_every_sign_constraint(seed):
    cp = pytest.importorskip("cvxpy")
    x, y = training_set(seed)
    rows = np.column_stack([x, np.ones_like(x)])
    # patterns by brute force over directions, not by the theory of prefixes and suffixes
    angles = np.linspace(0.0, 2.0 * np.pi, 200_001)
    active = np.outer(np.cos(angles), x) + np.sin(angles)[:, None] > 0.0
    patterns = np.unique(active, axis=0).astype(float)
    plus, minus = (cp.Variable((len(patterns), 2)) for _ in range(2))
    conditions, answer = [], 0.0
    for p, pattern in enumerate(patterns):
        for u, sign in ((plus, 1.0), (minus, -1.0)):
            conditions.append(cp.multiply(2.0 * pattern - 1.0, rows @ u[p]) >= 0.0)
            answer = answer + sign * cp.multiply(pattern, rows @ u[p])
    conditions.append(cp.multiply(y, answer) >= 1.0)
    objective = cp.sum(cp.norm(plus, axis=1)) + cp.sum(cp.norm(minus, axis=1))
    value = cp.Problem(cp.Minimize(objective), conditions).solve(solver="CLARABEL")
    assert optimum(seed).primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_no_neighbouring_feasible_network_is_smaller(seed):
    """Random changes of all weights, scaled back to margin one, never have a smaller norm."""
    found = optimum(seed)
    rng = np.random.default_rng(seed)
    network = found.network
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            w, b, v = (
                part + size * np.abs(part).max() * rng.standard_normal(part.shape)
                for part in (network.w, network.b, network.v)
            )
            moved = relu.TwoLayerNetwork(w, b, v)
            least = moved.margins(found.x, found.y).min()
            if least > 0.0:
                norm = 0.5 * (np.sum(w**2) + np.sum(b**2) + np.sum(v**2))
                assert norm / least >= found.primal * (1.0 - 1e-12)


def test_theta_is_the_weighted_sum_of_gradients():
    """Eq. (2) by central differences, on a set whose kinks lie on no record."""
    found = next(
        best
        for best in map(optimum, range(40))
        if len(best.x) > 4
        and np.abs(np.subtract.outer(relu.pieces(best.network).breakpoints, best.x)).min() > 1e-3
    )
    w, b, v = (np.array(p) for p in (found.network.w[:, 0], found.network.b, found.network.v))
    theta = np.concatenate([w, b, v])
    k = len(w)

    def answers(t):
        return relu.TwoLayerNetwork(t[:k], t[k : 2 * k], t[2 * k :])(found.x)

    h = 1e-6
    gradient = np.array(
        [(answers(theta + h * e) - answers(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    )
    np.testing.assert_allclose(gradient @ (found.multipliers * found.y), theta, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_largest_response_against_a_grid(seed):
    rng = np.random.default_rng(seed)
    x, masses = rng.standard_normal(7), rng.standard_normal(7)
    angles = np.linspace(0.0, 2.0 * np.pi, 100_001)
    response = np.maximum(np.outer(np.cos(angles), x) + np.sin(angles)[:, None], 0.0) @ masses
    exact = largest_response(x, masses)
    assert np.abs(response).max() <= exact + 1e-12
    assert exact == pytest.approx(np.abs(response).max(), rel=1e-4)


def test_mirrored_and_repeated_records():
    x, y = training_set(4)
    found = optimum(4)
    mirrored = relu.max_margin_network(-x, y)
    twice = relu.max_margin_network(np.concatenate([x, x]), np.concatenate([y, y]))
    grid = np.linspace(-3.0, 3.0, 31)
    assert mirrored.primal == pytest.approx(found.primal, rel=1e-10)
    np.testing.assert_allclose(mirrored.network(-grid), found.network(grid), atol=1e-8)
    np.testing.assert_allclose(twice.network(grid), found.network(grid), atol=1e-8)


def test_one_label_around_zero_gives_one_network_whatever_the_records():
    """So nothing but the label, and that zero is between records, can be read from it."""
    for x in ([-1.0, 0.5, 2.0], [-7.0, -6.5, 0.1, 3.0]):
        found = relu.max_margin_network(x, np.ones(len(x)))
        assert found.primal == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(found.network([-5.0, 0.0, 9.0]), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([0.0, 1.0, 0.0], [1, 1, -1], "row 0 has a twin"),
        ([0.0, np.nan], [1, -1], "row 1 is not a finite"),
        ([0.0, 1.0], [1, 0], "Labels must be -1 or 1"),
        ([[0.0, 1.0]], [1], "one-dimensional records"),
        ([], [], "no records"),
    ],
)
def test_bad_training_sets(x, y, words):
    with pytest.raises(InputError, match=words):
        relu.max_margin_network(x, y)
