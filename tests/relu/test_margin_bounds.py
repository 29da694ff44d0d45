"""Bounds on KKT networks against trained and exact networks; Assumption 4.1 against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from test_kkt import two_orthogonal_points

from leakscope.relu import (
    MixtureData,
    SphereData,
    TrainingPlan,
    coverage,
    kkt_residual,
    margin_bounds,
    near_orthogonality,
    normal_data,
    train,
)
from leakscope.relu.margin_bounds import TheoremConstants
from leakscope.relu.near_orthogonality import Population


def test_lemma_b1_as_printed_fails_for_two_orthogonal_points() -> None:
    """delta = 0, so the printed bound is m/(Delta + 1); with the bias they are not orthogonal."""
    network, x, y = two_orthogonal_points(4.0)
    found = kkt_residual(network, x, y)
    # The positive neuron is active at x_1 alone or on its kink at x_2: A_1^+ = lambda_1 v^2.
    value = found.multipliers[0] * network.v[0] ** 2
    exact = 1.0 / (5.0 - 1.0 / 5.0)
    assert value == pytest.approx(exact, rel=1e-6)
    printed = TheoremConstants.of(2, 0.0, 4.0, 4.0, as_printed=True)
    assert value > printed.upper * 1.01
    assert value <= TheoremConstants.of(2, 0.0, 4.0, 4.0).upper
    # Ours is attained here.
    assert value <= margin_bounds(x, y).upper[0, 1] * (1.0 + 1e-9)


def test_lemma_b2_needs_the_largest_norm() -> None:
    """Records (2, 0) and (0, 10): the least squared norm gives 0.133, the network has 0.0099."""
    network, x, y = two_orthogonal_points(4.0, 100.0)
    found = kkt_residual(network, x, y)
    assert found.residual < 1e-9
    # Each neuron is active at its own record and on its kink at the other.
    sums = found.multipliers * network.v**2
    assert sums == pytest.approx([1.0 / (5.0 - 1.0 / 101.0), 1.0 / (101.0 - 1.0 / 5.0)], rel=1e-9)
    bounds = margin_bounds(x, y)
    assert (bounds.corrected.lower <= sums).all()
    assert (sums <= bounds.corrected.upper).all()
    assert bounds.corrected.lower == pytest.approx((1.0 - 1.0 / 3.0) / 101.0)
    assert bounds.printed.lower > sums.min() * 10


@pytest.mark.parametrize("population", [SphereData(400), normal_data(np.zeros(500))])
def test_bounds_hold_for_trained_networks(population: Population) -> None:
    x, y = population.training_sets(2, 12, random_state=0)
    trained = train(x, y, TrainingPlan(width=80, steps=6000, flow_steps=2000), random_state=0)
    fresh = population.sample(300, random_state=1)
    answers = np.abs(trained.outputs(fresh))
    for i in range(2):
        bounds = margin_bounds(x[i], y[i])
        assert bounds.covered
        assert trained.margins[i].max() <= 1.02 * trained.margin[i]
        ratio = answers[i] / trained.margin[i] / bounds.query_bound(fresh)
        assert 0.1 < ratio.max() <= 1.02
        assert (bounds.query_bound(x[i]) >= 1.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_multipliers_lie_between_the_bounds(seed: int) -> None:
    x, y = SphereData(300).training_sets(1, 8, random_state=seed)
    trained = train(x, y, TrainingPlan(width=60, steps=8000, flow_steps=3000), random_state=0)
    found = kkt_residual(trained.network(0), x[0], y[0])
    bounds = margin_bounds(x[0], y[0])
    w, v = trained.w[0], trained.v[0]
    z = np.column_stack([trained.span.coordinates[0], np.ones(8)])
    # Pairs on a kink have a derivative below one, so only the others are surely counted whole.
    sizes = np.linalg.norm(w, axis=1)[:, None] * np.linalg.norm(z, axis=1)
    active = w @ z.T > 1e-3 * sizes
    for sign, column in ((-1.0, 0), (1.0, 1)):
        sums = found.multipliers * ((v**2 * (v * sign > 0)) @ active) / trained.margin[0]
        assert (sums <= bounds.upper[:, column] * 1.05 + 1e-6).all()


def test_ours_cover_whatever_the_papers_constants_cover() -> None:
    for d in (2_000, 100_000):
        x, y = SphereData(d).training_sets(1, 8, random_state=d)
        found = margin_bounds(x[0], y[0])
        assert found.covered >= found.corrected.covered
        assert found.printed.upper <= found.corrected.upper
        assert found.upper.max() <= found.corrected.upper * (1.0 + 1e-12)
    assert found.corrected.covered


def test_points_that_are_not_nearly_orthogonal_are_not_covered() -> None:
    x, y = SphereData(3).training_sets(1, 10, random_state=0)
    found = margin_bounds(x[0], y[0])
    assert not found.covered
    assert found.query_bound(x[0]).min() == np.inf


MIXTURE = MixtureData([np.r_[3.0, np.zeros(29)], np.r_[-1.0, 2.0, np.zeros(28)]], [1.0, 2.0])


@pytest.mark.parametrize(
    "population",
    [SphereData(30), normal_data(np.zeros(30)), normal_data([0.3, 0.4]), MIXTURE],
    ids=["sphere", "normal", "plane", "mixture"],
)
@pytest.mark.parametrize("n", [2, 5])
def test_assumption_41_against_simulation(population: Population, n: int) -> None:
    found = near_orthogonality(population, n, inner_share=0.8, norm_share=0.7)
    rng = np.random.default_rng(0)
    draws, d = 100_000, population.features
    x, y = population.draw((draws,), rng), population.draw((draws,), rng)
    for probability, event in (
        (found.inner_failure, n * np.abs((x * y).sum(axis=1)) > 0.8 * d),
        (found.norm_failure, (x**2).sum(axis=1) < 0.7 * d),
    ):
        error = np.sqrt(max(probability * (1 - probability), 1e-6) / draws)
        assert abs(event.mean() - probability) < 4 * error


def test_lemma_d5_needs_n_squared() -> None:
    """Assumption 4.1 asks for failures of at most tau/n^2, so tau = n^2 k and not n k."""
    found = near_orthogonality(normal_data(np.zeros(5000)), 20)
    assert found.inner_failure == pytest.approx(0.0771, abs=1e-4)
    assert found.tau == pytest.approx(400 * found.inner_failure)


def test_assumption_41_on_a_line_against_quadrature() -> None:
    found = near_orthogonality(normal_data([1.0]), 5, inner_share=0.8).inner_failure

    def tail(y: float) -> float:
        return float(
            stats.norm.pdf(y, 1.0)
            * (stats.norm.sf(0.16 / abs(y), 1.0) + stats.norm.cdf(-0.16 / abs(y), 1.0))
        )

    exact = sum(
        integrate.quad(tail, low, high, epsabs=1e-12)[0]
        for low, high in ((-9.0, -1.0), (-1.0, 0.0), (0.0, 1.0), (1.0, 11.0))
    )
    assert found == pytest.approx(exact, rel=1e-6)


def test_coverage_counts_what_margin_bounds_say() -> None:
    found = coverage(SphereData(400), 20, trials=20, random_state=0)
    assert 0.5 < found.gram <= 1.0
    assert found.corrected == found.printed == 0.0
    assert 0.0 < found.stderr(found.gram) < 0.15
