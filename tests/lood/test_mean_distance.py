"""Prop. 5.1 against finite differences of the definition, Algorithm 1 and the three regimes."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels, lood
from leakscope.lood.mean_distance import kernel_gradient


def mean_distance(X, y, point, label, query, kernel, noise):
    """Def. C.1 by two refits."""
    means = []
    joined = (
        np.vstack([X, point]),
        np.concatenate([y, np.atleast_1d(label).reshape(1, *y.shape[1:])]),
    )
    for rows, targets in ((X, y), joined):
        matrix = kernel(rows) + noise * np.eye(len(rows))
        means.append(kernel(query[None, :], rows) @ np.linalg.solve(matrix, targets))
    return 0.5 * float(np.sum((means[0] - means[1]) ** 2))


class Growing:
    """A kernel that is neither normalised nor stationary where its arguments coincide."""

    def __call__(self, X, Z=None):
        X, Z = np.asarray(X), np.asarray(X if Z is None else Z)
        return (1.0 + X @ Z.T) * kernels.rbf(1.0)(X, Z)

    def diagonal(self, X):
        return 1.0 + np.sum(np.asarray(X) ** 2, axis=1)

    def resolved(self, X):
        return self

    def describe(self):
        return {"name": "growing"}


@pytest.mark.parametrize("kernel", [kernels.rbf(0.8), Growing()], ids=["rbf", "growing"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_gradient_is_that_of_the_definition(kernel, outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = rng.normal(size=12 if outputs == 1 else (12, outputs))
    for _ in range(5):
        point, label = rng.normal(size=3), rng.normal(size=outputs)
        found = lood.self_influence(X, y, point, label, kernel, 0.05)
        h = 1e-5
        numeric = [
            (
                mean_distance(X, y, point, label, point + h * e, kernel, 0.05)
                - mean_distance(X, y, point, label, point - h * e, kernel, 0.05)
            )
            / (2 * h)
            for e in np.eye(3)
        ]
        np.testing.assert_allclose(found.gradient, numeric, rtol=1e-6, atol=1e-8)
        here = mean_distance(X, y, point, label, point, kernel, 0.05)
        assert found.mean_distance == pytest.approx(here, rel=1e-9)
        assert found.best_mean_distance >= found.mean_distance * (1 - 1e-12)
        there = mean_distance(X, y, point, label, found.best_query, kernel, 0.05)
        assert found.best_mean_distance == pytest.approx(there, rel=1e-8)


def test_the_hessian_is_that_of_the_definition():
    """Lemma F.4's matrix against second differences of two refits."""
    kernel = kernels.rbf(0.8)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    point, label, h = rng.normal(size=3), 0.4, 3e-3
    found = lood.self_influence(X, y, point, label, kernel, 0.05)

    def at(*moves):
        query = point + h * sum(moves)
        return mean_distance(X, y, point, label, query, kernel, 0.05)

    numeric = [
        [(at(a, b) - at(a, -b) - at(-a, b) + at(-a, -b)) / (4 * h**2) for b in np.eye(3)]
        for a in np.eye(3)
    ]
    scale = np.abs(numeric).max()
    np.testing.assert_allclose(found.hessian, numeric, atol=2e-3 * scale)
    assert found.concave == (np.linalg.eigvalsh(numeric)[-1] < 0)


def test_lemma_f4():
    """Far from the others the Hessian is negative definite."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = np.sin(X[:, 0])
    assert lood.self_influence(X, y, [7.0, 0.0], 0.6, kernels.rbf(1.0), 0.01).concave is True
    pointed = kernels.matern(0.5, 1.0)
    found = lood.self_influence(X, y, [1.0, 0.0], 0.6, pointed, 0.01)
    assert found.hessian is found.concave is None


@pytest.mark.parametrize(
    "kernel", [kernels.nngp(depth=2), kernels.linear()], ids=["nngp", "linear"]
)
def test_a_kernel_that_grows_has_no_best_query(kernel):
    """M grows with the square of the query's size (App. C.3): the climb ran to 1e147."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    found = lood.self_influence(X, y, [1.0, -0.5, 0.3], 2.0, kernel, 0.1)
    assert found.at_edge
    every = np.vstack([X, [1.0, -0.5, 0.3]])
    reach = np.ptp(every, axis=0)
    assert (np.abs(found.best_query - every.mean(axis=0)) <= 2.0 * reach).all()
    assert np.isfinite(found.best_mean_distance)
    large = mean_distance(X, y, [1.0, -0.5, 0.3], 2.0, 2.0 * found.best_query, kernel, 0.1)
    assert large == pytest.approx(4.0 * found.best_mean_distance, rel=1e-6)
    inside = lood.self_influence(X, y, [1.0, -0.5, 0.3], 2.0, kernel, 0.1, bounds=[(-2.0, 2.0)] * 3)
    assert np.abs(inside.best_query).max() == pytest.approx(2.0)
    with pytest.raises(InputError, match="hold the point itself"):
        lood.self_influence(X, y, [1.0, -0.5, 0.3], 2.0, kernel, 0.1, bounds=[(-2.0, 0.5)] * 3)


def test_proposition_5_1_as_printed():
    """Eq. (23), written out here and nowhere in the package."""
    rng = np.random.default_rng(1)
    X, y, s2, scale = rng.normal(size=(10, 2)), rng.normal(size=10), 0.01, 0.9
    kernel = kernels.rbf(scale)
    S, y_S = rng.normal(size=2), 0.7
    K_SD = kernel(S[None, :], X)[0]
    slope = -(S - X) / scale**2 * K_SD[:, None]
    inverse = np.linalg.inv(kernel(X) + s2 * np.eye(10))
    alpha = 1 - K_SD @ inverse @ K_SD + s2
    printed = (
        -(alpha**-2)
        * (1 - K_SD @ inverse @ K_SD)
        * (y_S - K_SD @ inverse @ y) ** 2
        * (slope.T @ inverse @ K_SD)
    )
    found = lood.self_influence(X, y, S, y_S, kernel, s2)
    np.testing.assert_allclose(found.gradient, printed, rtol=1e-8)


def test_the_closed_form_slope_of_rbf_is_the_numeric_one():
    class Plain:
        def __call__(self, X, Z):
            return kernels.rbf(0.7, 2.0)(X, Z)

    rng = np.random.default_rng(2)
    q, X = rng.normal(size=3), rng.normal(size=(6, 3))
    exact = kernel_gradient(kernels.rbf(0.7, 2.0), q, X)
    np.testing.assert_allclose(exact, kernel_gradient(Plain(), q, X), rtol=1e-6, atol=1e-8)


@pytest.fixture(scope="module")
def toy():
    """The example of App. F: ten points, the sine, noise 0.01, a unit RBF."""
    X = np.random.default_rng(0).normal(size=(10, 1))
    return X, np.sin(X[:, 0]), kernels.rbf(1.0), 0.01


def test_algorithm_1_finds_the_longest_gradient(toy):
    X, y, kernel, noise = toy
    found = lood.find_non_optimal_point(
        X, y, lambda s: float(np.sin(s[0])), kernel, noise, bounds=[(-5.0, 5.0)]
    )
    grid = np.linspace(-5, 5, 1001)
    lengths = [
        abs(lood.self_influence(X, y, [s], np.sin(s), kernel, noise).gradient[0])
        for s in grid[::10]
    ]
    longest = float(np.linalg.norm(found.influence.gradient))
    assert longest >= max(lengths) * (1 - 1e-9)
    # The differing point is not its own most influenced query, which brute force confirms.
    values = [
        mean_distance(X, y, found.point, found.label, np.array([q]), kernel, noise) for q in grid
    ]
    assert max(values) > 1.05 * found.influence.mean_distance
    assert found.influence.best_mean_distance == pytest.approx(max(values), rel=1e-3)
    assert found.influence.regime == "between"


def test_three_regimes(toy):
    X, y, kernel, noise = toy
    far, close = (lood.self_influence(X, y, [s], np.sin(s), kernel, noise) for s in (6.0, 0.1))
    assert far.regime == "far"
    assert far.best_mean_distance == pytest.approx(far.mean_distance, rel=1e-6)
    assert not far.at_edge
    assert float(np.linalg.norm(far.gradient)) < 1e-4
    assert close.regime == "close"
    assert close.mean_distance < 1e-6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"point": [1.0, 2.0]}, "must have 1 features"),
        ({"label": [1.0, 2.0]}, "must have 1 outputs"),
        ({"noise_variance": -1.0}, "noise_variance must be positive"),
        ({"X": np.zeros(10)}, "records by features"),
    ],
)
def test_refusals(toy, change, sentence):
    X, y, kernel, noise = toy
    options = {
        "X": X,
        "y": y,
        "point": [1.0],
        "label": 0.0,
        "kernel": kernel,
        "noise_variance": noise,
    }
    with pytest.raises(InputError, match=sentence):
        lood.self_influence(**(options | change))
    with pytest.raises(InputError, match="1 pairs"):
        lood.find_non_optimal_point(X, y, lambda s: 0.0, kernel, noise, bounds=[(1.0, 0.0)])
