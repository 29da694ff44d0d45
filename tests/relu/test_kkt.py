"""The KKT residual against a conic program, finite differences and exact networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from leakscope import relu
from leakscope.errors import InputError
from leakscope.relu import TwoLayerNetwork, kkt_residual


def two_orthogonal_points(
    *squared: float,
) -> tuple[TwoLayerNetwork, np.ndarray, np.ndarray]:
    """An exact KKT network, both neurons on a kink: w_+ is orthogonal to (x_2, 1)."""
    x = np.diag(np.sqrt(np.broadcast_to(squared, 2)))
    z = np.column_stack([x, np.ones(2)])
    own, other = z, z[::-1]
    hidden = own - other / (other**2).sum(axis=1, keepdims=True)
    hidden /= np.sqrt(np.linalg.norm(hidden, axis=1) * (hidden * own).sum(axis=1))[:, None]
    y = np.array([1.0, -1.0])
    return TwoLayerNetwork(hidden[:, :2], hidden[:, 2], y * np.linalg.norm(hidden, axis=1)), x, y


def test_a_network_on_kinks_is_a_kkt_point() -> None:
    network, x, y = two_orthogonal_points(4.0)
    found = kkt_residual(network, x, y)
    assert found.margins == pytest.approx([1.0, 1.0], rel=1e-12)
    assert found.kinks == 2
    assert found.residual < 1e-6
    # Without the freedom at the kinks it would not be one.
    moved = TwoLayerNetwork(network.w, network.b + 1e-7, network.v)
    assert kkt_residual(moved, x, y, kink_tolerance=0.0).stationarity > 0.05


@pytest.mark.parametrize("seed", range(3))
def test_exact_maximum_margin_networks_are_kkt_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-3, 3, 6), rng.choice([-1.0, 1.0], 6)
    y[:2] = 1.0, -1.0
    network = relu.max_margin_network(x, y).network
    assert kkt_residual(network, x[:, None], y, kink_tolerance=1e-6).residual < 1e-5


def test_multipliers_are_those_of_the_explicit_gradients() -> None:
    rng = np.random.default_rng(0)
    w, b, v = rng.standard_normal((5, 30)), rng.standard_normal(5), rng.standard_normal(5)
    x, y = rng.standard_normal((7, 30)), rng.choice([-1.0, 1.0], 7)
    theta = np.concatenate([w.ravel(), b, v])

    def values(t: np.ndarray) -> np.ndarray:
        net = TwoLayerNetwork(t[:150].reshape(5, 30), t[150:155], t[155:])
        return y * net(x)

    step = 1e-6
    jacobian = np.stack(
        [
            (values(theta + step * e) - values(theta - step * e)) / (2 * step)
            for e in np.eye(len(theta))
        ],
        axis=0,
    )
    multipliers, rest = nnls(jacobian, theta)
    found = kkt_residual(TwoLayerNetwork(w, b, v), x, y, kink_tolerance=0.0)
    assert found.multipliers == pytest.approx(multipliers, abs=1e-6)
    assert found.stationarity == pytest.approx(rest / np.linalg.norm(theta), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_freedom_at_kinks_is_used_fully(seed: int) -> None:
    """The same convex problem, in lambda and lambda sigma', by a conic solver."""
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    k, n, d = 4, 5, 6
    x, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
    z = np.column_stack([x, np.ones(n)])
    hidden = rng.standard_normal((k, d + 1))
    for j in range(k):  # put each neuron on the kinks of two points
        on = z[rng.choice(n, 2, replace=False)]
        hidden[j] -= on.T @ np.linalg.lstsq(on.T, hidden[j], rcond=None)[0]
    v = rng.standard_normal(k)
    network = TwoLayerNetwork(hidden[:, :-1], hidden[:, -1], v)
    before = hidden @ z.T
    kink = np.abs(before) < 1e-9
    multipliers, products = cp.Variable(n, nonneg=True), cp.Variable((k, n), nonneg=True)
    limits = [
        products[j, i] <= multipliers[i]
        if kink[j, i]
        else products[j, i] == (multipliers[i] if before[j, i] > 0 else 0.0)
        for j in range(k)
        for i in range(n)
    ]
    rest_w = hidden - cp.multiply(np.repeat(v[:, None], d + 1, 1), products @ (y[:, None] * z))
    rest_v = v - np.maximum(before, 0.0) @ cp.multiply(y, multipliers)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(rest_w) + cp.sum_squares(rest_v)), limits)
    best = float(problem.solve(solver="CLARABEL"))
    norm = (hidden**2).sum() + (v**2).sum()
    found = kkt_residual(network, x, y, kink_tolerance=1e-9)
    assert found.kinks == 2 * k
    assert found.stationarity >= np.sqrt(best / norm) - 1e-7
    assert found.stationarity <= np.sqrt(best / norm) * 1.02


def test_the_residual_does_not_change_with_the_networks_scale() -> None:
    network, x, y = two_orthogonal_points(9.0)
    larger = TwoLayerNetwork(3.0 * network.w, 3.0 * network.b, 3.0 * network.v)
    first, second = kkt_residual(network, x, y), kkt_residual(larger, x, y)
    assert second.margin == pytest.approx(9.0 * first.margin)
    assert second.multipliers == pytest.approx(first.multipliers, rel=1e-6)


def test_a_given_margin_counts_as_infeasible() -> None:
    network, x, y = two_orthogonal_points(4.0)
    assert kkt_residual(network, x, y, margin=2.0).feasibility == pytest.approx(0.5)
    assert kkt_residual(network, x, -y).feasibility == np.inf
    with pytest.raises(InputError, match="margin must be positive"):
        kkt_residual(network, x, y, margin=-1.0)
