from __future__ import annotations

import numpy as np
import pytest

from leakscope import relu
from leakscope.errors import InputError
from leakscope.relu.kkt_reconstruction import difference_candidates, distinct_neurons

X = np.array([[-1.7, -0.2], [1.0, -1.7], [2.0, 2.0]])
Y = np.array([1.0, -1.0, 1.0])


def exact_network(copies: int = 1) -> relu.TwoLayerNetwork:
    """A KKT point of X, Y with margin 1, by hand.

    Neuron A is active on record 0 alone and is m_0 z_0.  B is active on records 0 and 2: it is A
    reflected in the plane of z_2, which keeps its length one.  C is active on record 1 alone.  The
    masses of the three make y f(x) = 1 on every record.
    """
    z = np.column_stack([X, np.ones(3)])
    a = z[0] / np.linalg.norm(z[0])
    b = a - 2.0 * (a @ z[2]) / (z[2] @ z[2]) * z[2]
    c = z[1] / np.linalg.norm(z[1])
    mass_b = 1.0 / (b @ z[2])
    mass_a = (1.0 - mass_b * (b @ z[0])) / (a @ z[0])
    mass = np.array([mass_a, mass_b, 1.0 / (c @ z[1])])
    assert (mass > 0.0).all()
    w = np.sqrt(mass)[:, None] * np.stack([a, b, c])
    v = np.sqrt(mass) * np.array([1.0, 1.0, -1.0])
    # k copies at 1/sqrt(k) each are the same function and the same KKT point
    w, v = (np.repeat(one, copies, axis=0) / np.sqrt(copies) for one in (w, v))
    return relu.TwoLayerNetwork(w[:, :2], w[:, 2], v)


def test_the_network_by_hand_is_a_kkt_point():
    network = exact_network()
    found = relu.kkt_residual(network, X, Y)
    assert found.residual < 1e-12
    np.testing.assert_allclose(network.margins(X, Y), 1.0, rtol=1e-12)


@pytest.mark.parametrize("copies", [1, 7])
def test_differences_recover_an_exact_network_exactly(copies):
    network = exact_network(copies)
    neurons = distinct_neurons(network)
    assert len(neurons) == 3
    assert 2.0 * neurons.mass.sum() == pytest.approx(
        (network.w**2).sum() + (network.b**2).sum() + (network.v**2).sum()
    )
    every = difference_candidates(network, neurons, radius=1e-6)
    recovery = relu.point_recovery(every.points, X, tolerance=1e-9)
    assert recovery.recall == 1.0
    found = relu.reconstruct_points(network, points=3, method="differences", margin=1.0)
    recovery = relu.point_recovery(found.x, X, tolerance=1e-9)
    assert recovery.recall == recovery.precision == 1.0
    multipliers = relu.kkt_residual(network, X, Y).multipliers
    for one in found.candidates:
        row = int(np.argmin(np.linalg.norm(X - one.x, axis=1)))
        assert one.label == Y[row]
        assert one.multiplier == pytest.approx(multipliers[row], rel=1e-6)
        assert abs(one.margin_gap) < 1e-9
    assert found.residual is None
    assert found.guarantee is None


def test_descent_finds_a_kkt_set_of_an_exact_network():
    network = exact_network()
    found = relu.reconstruct_points(network, points=3, random_state=0)
    assert found.residual < 1e-3
    assert found.margin == pytest.approx(1.0, rel=1e-3)
    assert found.determined is True
    assert relu.point_recovery(found.x, X, tolerance=0.01).recall == 1.0
    # what the descent calls a solution is one: the residual measured independently agrees
    labels = np.array([one.label for one in found.candidates], dtype=float)
    assert relu.kkt_residual(network, found.x, labels, margin=found.margin).residual < 1e-2
    again = relu.reconstruct_points(network, points=3, random_state=0)
    np.testing.assert_array_equal(found.x, again.x)


def test_trained_networks_give_back_more_than_chance():
    x, y = relu.normal_data(np.zeros(2)).training_sets(6, 5, random_state=1)
    plan = relu.TrainingPlan(width=60, initial_scale=0.1, steps=6000)
    trained = relu.train(x, y, plan, random_state=1)
    back = chance = 0.0
    for i in np.flatnonzero(trained.correct):
        network, margin = trained.network(int(i)), float(trained.margin[i])
        found = relu.reconstruct_points(network, points=5, margin=margin, random_state=0)
        recovery = relu.point_recovery(found.x, x[i])
        back += recovery.recovered.sum()
        chance += 5.0 * recovery.baseline_recall
    # at most a Poisson count by chance
    assert back > chance + 4.0 * np.sqrt(chance)


def test_points_left_out_are_as_many_as_the_equations_determine():
    found = relu.reconstruct_points(exact_network(), starts=8, steps=100)
    assert found.distinct == 3
    assert len(found.candidates) == 4  # 3 neurons, (d + 1) / d = 3 / 2: four points


def test_a_box_keeps_points_inside():
    found = relu.reconstruct_points(
        exact_network(), points=6, box=(-2.0, [2.0, 1.0]), starts=16, steps=1000
    )
    assert (found.x[:, 1] < 1.05).all()
    assert (found.x > -2.05).all()


def test_many_neurons_are_grouped_more_coarsely():
    rng = np.random.default_rng(0)
    network = relu.TwoLayerNetwork(
        rng.standard_normal((400, 3)), rng.standard_normal(400), rng.standard_normal(400)
    )
    neurons = distinct_neurons(network)
    assert len(neurons) <= 64
    assert neurons.tolerance > 1e-2
    assert neurons.mass.sum() == pytest.approx(
        (np.abs(network.v) * np.hypot(np.linalg.norm(network.w, axis=1), network.b)).sum(),
        rel=1e-3,
    )


def test_frames_and_dicts():
    found = relu.reconstruct_points(exact_network(), points=3, starts=8, steps=200)
    frame = found.to_frame()
    assert list(frame.columns[:2]) == ["x0", "x1"]
    assert len(frame) == len(found.candidates)
    assert len(found.to_dict()["candidates"][0]["x"]) == 2
    assert found.to_dict()["guarantee"] is None


def test_recovery_against_counting_by_hand():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    found = relu.point_recovery([[0.05, 0.0], [5.39, 0.0], [2.0, 0.0], [0.0, 0.02]], x)
    np.testing.assert_allclose(found.distances, [0.02, 0.95, 0.39 / 4.0])
    assert found.recovered.tolist() == [True, False, True]
    assert found.precision == 0.75
    none = relu.point_recovery([], x)
    assert none.recall == 0.0
    assert none.precision is None
    assert np.isinf(none.distances).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"points": 0}, "points must be 1 or more"),
        ({"points": 2, "method": "guess"}, "method must be one of"),
        ({"points": 2, "margin": -1.0}, "margin must be a positive"),
        ({"points": 2, "scale": 0.0}, "scale must be a positive"),
        ({"points": 2, "box": (1.0, -1.0)}, "lower one below"),
        ({"points": 2, "box": (0.0, [1.0, 1.0, 1.0])}, "box must be two ends"),
        ({"points": 2, "tolerance": 2.0}, "tolerance must be between"),
    ],
)
def test_bad_input(options, sentence):
    with pytest.raises(InputError, match=sentence):
        relu.reconstruct_points(exact_network(), **options)


@pytest.mark.parametrize(
    ("candidates", "x", "sentence"),
    [
        ([[0.0]], [[0.0, 1.0], [1.0, 1.0]], "2 columns"),
        ([[0.0]], [[1.0]], "two rows or more"),
        ([[0.0]], [[1.0], [1.0]], "row 0 is there twice"),
    ],
)
def test_bad_recovery(candidates, x, sentence):
    with pytest.raises(InputError, match=sentence):
        relu.point_recovery(candidates, x)


def test_a_network_of_zeros_is_refused():
    with pytest.raises(InputError, match="zero everywhere"):
        relu.reconstruct_points(relu.TwoLayerNetwork([[0.0, 0.0]], [0.0], [1.0]), points=1)
