from __future__ import annotations

import numpy as np
import pytest

from leakscope import kernels, lood
from leakscope.errors import InputError


def nearly_constant(rng, n):
    level, share = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-4, 0)
    X = 10.0 ** rng.uniform(-2, 0.5) * rng.normal(size=(n, 2))
    return level * (1.0 - share + share * kernels.rbf(1.0)(X))


def test_the_constant_is_half_way_and_nothing_is_nearer():
    rng = np.random.default_rng(0)
    matrix = nearly_constant(rng, 8)
    near = lood.constant_approximation(matrix)
    for alpha in np.linspace(matrix.min(), matrix.max(), 50):
        assert np.abs(matrix - alpha).max() >= near.distance - 1e-15
    assert np.abs(matrix - near.alpha).max() == pytest.approx(near.distance)


def test_our_bounds_hold_and_are_nearly_reached():
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(300):
        n, noise = int(rng.integers(2, 12)), 10.0 ** rng.uniform(-3, 1)
        matrix, y = nearly_constant(rng, n), 10.0 ** rng.uniform(-1, 2) * rng.normal(size=n)
        near = lood.constant_approximation(matrix)
        laws = lood.all_records(matrix, y, noise_variance=noise)
        for i in range(n):
            residual = abs(float(y[i] - laws.mean_without[i]))
            kl = near.kl_bound(noise_variance=noise, residual=residual)
            distance = near.mean_distance_bound(noise_variance=noise, residual=residual)
            assert laws.kl[i] <= kl * (1.0 + 1e-9)
            assert laws.mean_distance[i] <= distance * (1.0 + 1e-9)
            closest = max(closest, laws.kl[i] / kl)
    assert closest > 0.99


def test_the_printed_bound_fails_for_large_labels():
    """Prop. 6.1 is linear in the labels, Def. C.1 quadratic: two records, K all ones, noise 1."""
    matrix = np.ones((2, 2))
    near = lood.constant_approximation(matrix)
    assert near.distance == 0.0
    for size, holds in ((1.0, True), (20.0, False)):
        laws = lood.all_records(matrix, size * np.array([-1.0, 1.0]), noise_variance=1.0)
        assert laws.mean_distance[1] == pytest.approx(size**2 / 8.0)
        printed = near.printed_bound(noise_variance=1.0, label_bound=size)
        assert printed == pytest.approx(2.0 * size)
        assert (laws.mean_distance[1] <= printed) == holds


@pytest.mark.parametrize("name", ["relu", "gelu", "erf"])
def test_edge_of_chaos_keeps_the_variance(name):
    start = lood.edge_of_chaos(name)
    through = lood.depth_decay(name, 5, initialisation=start)
    np.testing.assert_allclose(through.variances, 1.0, rtol=1e-6)


@pytest.mark.parametrize(("name", "rate"), [("relu", -2.0), ("gelu", -1.0), ("erf", -1.0)])
def test_depth_rates_of_proposition_g1(name, rate):
    assert lood.depth_decay(name, 2000).exponent == pytest.approx(rate, abs=0.06)


def test_relu_reaches_its_known_constant():
    """1 - c_L ~ 9 pi^2/(2 L^2) (Hayou et al. 2019)."""
    found = lood.depth_decay("relu", 3000)
    assert found.gaps[-1] * 3000**2 == pytest.approx(4.5 * np.pi**2, rel=0.02)


def test_depth_decay_is_the_network_kernel():
    start = lood.edge_of_chaos("gelu")
    length = (1.0 - start.bias_variance) / start.weight_variance
    X = np.sqrt(2.0 * length) * np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    k = kernels.nngp(4, "gelu", start.weight_variance, start.bias_variance)(X)
    found = lood.depth_decay("gelu", 4)
    assert found.variances[-1] == pytest.approx(k[0, 0], rel=1e-9)
    assert found.gaps[-1] == pytest.approx(1.0 - k[0, 1] / k[0, 0], rel=1e-7)


def test_scale_decides_between_relu_and_gelu():
    """At the paper's variances GELU's kernel shrinks with depth; at equal scale it says more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 20))
    X *= np.sqrt(20.0) / np.linalg.norm(X, axis=1, keepdims=True)
    settings = {"activations": ("relu", "gelu"), "depths": (6,), "noise_variance": 0.1}
    relu, gelu = lood.lood_by_activation(0.5 * X, X[:, 0], **settings)
    assert gelu.mean_variance < 0.2 * relu.mean_variance
    assert np.median(relu.kl / gelu.kl) > 1.1
    relu, gelu = lood.lood_by_activation(0.5 * X, X[:, 0], unit_scale=True, **settings)
    assert np.median(relu.kl / gelu.kl) < 0.9


def test_bad_input_is_one_sentence():
    with pytest.raises(InputError, match="must be square, of two records or more"):
        lood.constant_approximation(np.ones((2, 3)))
    with pytest.raises(InputError, match="depth must be at least 2"):
        lood.depth_decay("relu", 1)
    with pytest.raises(InputError, match="variance must be positive"):
        lood.edge_of_chaos("identity", variance=-1.0)
    with pytest.raises(InputError, match="noise_variance must be positive"):
        lood.constant_approximation(np.eye(2)).excess_bound(0.0)
