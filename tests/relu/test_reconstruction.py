"""Reconstruction against the training sets, and the lemmas behind its guarantee."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_sets import optimum

from leakscope import relu
from leakscope.errors import InputError
from leakscope.relu.moments import NeuronMoments, Places, moment_bounds, neuron_moments

SEEDS = range(20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-3, 3)] * 3), min_size=1, max_size=8))
def test_pieces_are_the_function(neurons):
    w, b, v = np.array(neurons).T
    network = relu.TwoLayerNetwork(w, b, v)
    found = relu.pieces(network, tolerance=1e-13)
    x = np.linspace(-20.0, 20.0, 201)
    scale = 1.0 + float(np.abs(v) @ (20.0 * np.abs(w) + np.abs(b)))
    np.testing.assert_allclose(found(x), network(x), atol=1e-7 * scale)
    assert np.all(np.diff(found.breakpoints) > 0.0)
    assert len(found) == len(found.breakpoints) + 1


def test_pieces_merge_equal_breakpoints_and_drop_cancelled_ones():
    network = relu.TwoLayerNetwork(
        w=[1.0, 2.0, -1.0, 1.0, 1.0, 0.0], b=[-1.0, -2.0, 1.0, 0.0, 0.0, 3.0], v=[1, 1, 1, 2, -2, 1]
    )
    found = relu.pieces(network)
    assert found.breakpoints.tolist() == [1.0]
    assert found.slopes.tolist() == [-1.0, 3.0]


@pytest.mark.parametrize("scale", [None, 10.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_candidates_of_exact_networks(seed, scale):
    best = optimum(seed, scale)
    printed, every, moments = (
        relu.reconstruct(best, form=form) for form in ("printed", "pieces", "moments")
    )
    assert every.residual < 1e-8
    assert every.assumptions[0].holds is True
    for found in (printed, every, moments):
        for candidate in found.candidates:
            distance = np.abs(best.x - candidate.x).min()
            if candidate.certified:
                nearest = int(np.argmin(np.abs(best.x - candidate.x)))
                assert distance < 1e-8
                assert best.y[nearest] == candidate.label
        if found.candidates:
            assert found.precision >= found.guarantee > 0.0
    assert set(printed.x) <= set(every.x)
    assert moments.margin_recall >= every.margin_recall
    if moments.candidates:
        assert moments.precision == 1.0
    if printed.candidates:
        assert printed.guarantee >= 0.25
    # what every piece misses lies inside constant pieces
    missed = best.x[
        best.on_margin & (np.abs(best.x[:, None] - every.x).min(axis=1, initial=9) > 1e-8)
    ]
    for x in missed:
        assert any(flat.low < x < flat.high for flat in every.flats)


@pytest.mark.parametrize("seed", SEEDS)
def test_multipliers_of_the_optimum_are_within_the_bounds(seed):
    best = optimum(seed)
    for candidate in relu.reconstruct(best).candidates:
        own = best.multipliers[np.abs(best.x - candidate.x) < 1e-8].sum()
        slack = 1e-6 * best.multipliers.max()
        assert candidate.multiplier_low - slack <= own <= candidate.multiplier_high + slack


@pytest.mark.parametrize("scale", [None, 10.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_kinks_between_records_that_hold_the_network(seed, scale):
    """Lemma A.1, and ours: two gaps beside each other have three kinks between them at most."""
    best = optimum(seed, scale)
    held = np.sort(best.x[best.support])
    kinks = relu.pieces(best.network).breakpoints
    free = [t for t in kinks if np.abs(held - t).min() > 1e-9]
    ends = [-np.inf, *held, np.inf]
    count = [sum(a < t < b for t in free) for a, b in itertools.pairwise(ends)]
    assert max(count) <= 2
    for i, x in enumerate(held):
        touching = bool(np.any(np.abs(kinks - x) <= 1e-9))
        assert count[i] + count[i + 1] <= (2 if touching else 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lone_record_between_kinks_of_one_kind_is_at_their_mean_angle(seed):
    best = optimum(seed)
    neurons = neuron_moments(best.network)
    held = np.sort(best.x[best.support])
    np.testing.assert_allclose(np.linalg.norm(neurons.moments, axis=1), 1.0, atol=1e-12)
    assert neurons.imbalance < 1e-10
    for rising in (True, False):
        kinks = np.unique(neurons.kinks[(neurons.rising == rising) & np.isfinite(neurons.kinks)])
        for low, high in itertools.pairwise(kinks):
            inside = held[(held > low - 1e-9) & (held < high + 1e-9)]
            if len(inside) == 1 and low + 1e-9 < inside[0] < high - 1e-9:
                middle = np.tan(0.5 * (np.arctan(low) + np.arctan(high)))
                assert middle == pytest.approx(inside[0], abs=1e-8)


def test_a_lone_record_in_a_constant_piece_is_its_moments_ratio():
    """Masses chosen by hand; kinks at 0 and 1 see the records at 0.4 and 2, at 2, and all."""
    x, mass = np.array([-1.5, 0.4, 2.0]), np.array([-0.7, 0.9, -0.3])
    rows = np.column_stack([np.ones(3), x])
    kinks = np.array([0.0, 1.0, -3.0])
    rising = np.array([True, True, True])
    moments = np.array([(mass[x > t, None] * rows[x > t]).sum(axis=0) for t in kinks])
    neurons = NeuronMoments(kinks, rising, moments, 0.0)
    places = Places(
        np.array([-1.5, 2.0, 5.0]), np.array([-1.0, -1.0, 1.0]),
        np.array([0.0]), np.array([1.0]), np.array([1.0]),
    )  # fmt: skip
    found = moment_bounds(neurons, places)
    assert found.residual < 1e-9
    assert found.mean_low[0] == pytest.approx(0.4, abs=1e-7)
    assert found.mean_high[0] == pytest.approx(0.4, abs=1e-7)
    assert found.interval_low[0] == pytest.approx(0.9, abs=1e-7)
    # the crossing at 5 holds nothing
    np.testing.assert_allclose(found.low / np.sqrt([3.25, 5.0, 26.0]), [0.7, 0.3, 0.0], atol=1e-7)
    np.testing.assert_allclose(found.high / np.sqrt([3.25, 5.0, 26.0]), [0.7, 0.3, 0.0], atol=1e-7)


def test_two_records_in_a_constant_piece_give_their_mean_and_no_more():
    rows = np.array([[1.0, 0.2], [1.0, 0.8]])
    moments = np.array([0.5 * rows[0] + 1.5 * rows[1]])
    neurons = NeuronMoments(np.array([0.0]), np.array([True]), moments, 0.0)
    empty = np.zeros(0)
    places = Places(empty, empty, np.array([0.0]), np.array([1.0]), np.array([1.0]))
    found = moment_bounds(neurons, places)
    assert found.mean_low[0] == pytest.approx(0.65, abs=1e-7)


def test_thm_3_1_one_record_one_neuron():
    found = relu.reconstruct(relu.max_margin_network([0.7], [-1]))
    assert [c.theorem for c in found.candidates] == ["3.1"]
    assert found.x[0] == pytest.approx(0.7, abs=1e-12)
    assert found.candidates[0].label == -1


def test_thm_3_3_takes_the_two_ends_between_constant_pieces():
    # f = -1 up to -0.5, rises to 1 at 0.5, stays
    network = relu.TwoLayerNetwork(
        w=[1.0, 1.0, 1.0, 1.0, 1.0],
        b=[3.0, 2.0, 0.5, -0.5, -2.0],
        v=[-1.0, 1.0, 2.0, -2.0, 1.0],
    )
    printed = relu.reconstruct(network, form="printed")
    assert [(c.x, c.theorem) for c in printed.candidates] == [(-0.5, "3.3"), (0.5, "3.3")]
    assert [(flat.low, flat.high, flat.label) for flat in printed.flats] == [
        (-2.0, -0.5, -1),
        (0.5, 2.0, 1),
    ]
    every = relu.reconstruct(network)
    assert every.x.tolist() == [-2.0, -0.5, 0.5, 2.0]
    # these weights are no KKT point of anything with margin one, and the residual says so
    assert every.residual > 0.1


def test_theorem_31_at_zero_is_told_by_the_weights_alone():
    """One record: x = w/b by Eqs. (8) and (9); at 0 the function is constant, with no crossing."""
    for place in (0.0, 0.7, -2.0):
        best = relu.max_margin_network([place], [-1])
        network = best.network
        assert network.width == 1
        assert float(network.w[0, 0] / network.b[0]) == pytest.approx(place, abs=1e-9)
        assert len(relu.reconstruct(best).candidates) == (place != 0.0)


def test_constant_network_has_no_candidates_but_a_certified_piece():
    found = relu.reconstruct(relu.max_margin_network([-1.0, 0.5, 2.0], [1, 1, 1]))
    assert found.candidates == ()
    assert found.recall == found.margin_recall == 0.0
    assert found.precision is None
    assert found.guarantee is None
    assert found.flats[0].certified
    assert found.flats[0].mean == pytest.approx(0.0, abs=1e-7)


def test_no_guarantee_without_data_or_kkt():
    best = optimum(3)
    assert relu.reconstruct(best.network).guarantee is None
    other = relu.reconstruct(best.network, training=(best.x + 0.01, best.y))
    assert other.guarantee is None
    assert other.assumptions[0].holds is False
    assert relu.reconstruct(best.network).assumptions[2].holds is None
    assert relu.reconstruct(best).assumptions[2].holds is True


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_scaled_weights_and_margin(factor):
    best = optimum(6)
    network = best.network
    scaled = relu.TwoLayerNetwork(*(factor * part for part in (network.w, network.b, network.v)))
    found = relu.reconstruct(scaled, margin=factor**2)
    np.testing.assert_allclose(found.x, relu.reconstruct(best).x, atol=1e-9)
    assert all(candidate.certified for candidate in found.candidates)


def test_the_margin_is_found_from_the_weights():
    right = 0
    for seed in range(6):
        network = optimum(seed).network
        double = relu.TwoLayerNetwork(2.0 * network.w, 2.0 * network.b, 2.0 * network.v)
        scan = relu.scan_margin(double)
        assert np.all(np.diff(scan.residuals) >= -1e-9)
        right += abs(scan.best - 4.0) < 1e-6
    assert right >= 5


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_weights_that_are_nearly_right(seed):
    """As after training for a finite time: candidates as near as the weights, none certified."""
    best = optimum(seed)
    rng = np.random.default_rng(seed)
    # balanced changes of the neurons' sizes: kinks stay, answers move by 1e-6 of their parts
    size = 1.0 + 1e-6 * rng.uniform(-1.0, 1.0, best.network.width)
    moved = relu.TwoLayerNetwork(
        best.network.w * size[:, None], best.network.b * size, best.network.v * size
    )
    margin = float(moved.margins(best.x, best.y).min())
    found = relu.reconstruct(moved, margin=margin, tolerance=1e-3, training=(best.x, best.y))
    assert found.precision == 1.0
    assert found.margin_recall == 1.0
    assert not any(candidate.certified for candidate in found.candidates)
    assert found.guarantee in (None, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"margin": 0.0}, "margin must be a positive"),
        ({"margin": float("nan")}, "margin must be a positive"),
        ({"form": "some"}, "form must be"),
        ({"training": ([], [])}, "no records"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        relu.reconstruct(optimum(3).network, **options)


def test_several_inputs_are_refused():
    network = relu.TwoLayerNetwork(np.ones((2, 3)), np.ones(2), np.ones(2))
    with pytest.raises(InputError, match="one input, but this one has 3"):
        relu.reconstruct(network)


@pytest.mark.parametrize(
    ("w", "b", "v", "words"),
    [
        ([[1.0]], [0.0, 1.0], [1.0], "b must hold one number for each of the 1"),
        ([[1.0], [np.nan]], [0.0, 1.0], [1.0, 1.0], r"w\[1, 0\] is nan"),
        (np.zeros((0, 2)), [], [], "no neurons"),
        ("text", [0.0], [1.0], "w must be an array of numbers"),
        ([1e200, -1e200], [0.0, 0.0], [1.0, -1.0], "too large for float64"),
        ([1.0, 1.0], [0.0, 0.0], [1.0, -1e160], "too large for float64"),
    ],
)
def test_bad_networks(w, b, v, words):
    with pytest.raises(InputError, match=words):
        relu.TwoLayerNetwork(w, b, v)


@pytest.mark.parametrize("factor", [1e-100, 1e-30, 1e30, 1e100])
def test_the_scale_of_the_weights_scales_the_margin(factor):
    """f is homogeneous of degree two, also where its square is beyond float64."""
    network = optimum(3).network
    scaled = relu.TwoLayerNetwork(factor * network.w, factor * network.b, factor * network.v)
    margin = relu.scan_margin(network).best
    found = relu.scan_margin(scaled)
    assert found.best == pytest.approx(factor**2 * margin, rel=1e-9)
    here, there = relu.reconstruct(network), relu.reconstruct(scaled, margin=found.best)
    expected = [candidate.x for candidate in here.candidates]
    assert [candidate.x for candidate in there.candidates] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [0.0, 1e-200])
def test_weights_without_a_margin_are_refused(size):
    network = relu.TwoLayerNetwork([size, -size], [size, size], [size, size])
    with pytest.raises(InputError, match="no margin to look for"):
        relu.scan_margin(network)
