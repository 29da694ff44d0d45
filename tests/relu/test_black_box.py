"""Reconstruction from answers alone: the same candidates, with a counted number of queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_sets import optimum

from leakscope import relu
from leakscope.errors import InputError
from leakscope.relu.pieces import find_pieces


@pytest.mark.parametrize("scale", [None, 10.0])
@pytest.mark.parametrize("seed", range(20))
def test_same_candidates_as_from_the_weights(seed, scale):
    network = optimum(seed, scale).network
    asked = []

    def ask(x):
        asked.append(len(x))
        return network(x)

    for form in ("pieces", "printed"):
        asked.clear()
        found = relu.reconstruct_from_queries(ask, form=form)
        own = relu.reconstruct(network, form=form)
        assert found.queries == sum(asked)
        assert found.queries <= 150
        assert [c.theorem for c in found.candidates] == [c.theorem for c in own.candidates]
        np.testing.assert_allclose(found.x, own.x, atol=1e-8)
        assert found.guarantee is None
        assert not any(candidate.certified for candidate in found.candidates)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=8, unique=True),
    st.integers(0, 10_000),
)
def test_kinks_of_random_functions(kinks, seed):
    kinks = np.sort(kinks)
    gap = np.diff(np.arctan(kinks)).min(initial=1.0)
    if gap < 1e-4:
        return
    rng = np.random.default_rng(seed)
    bends = rng.choice([-1.0, 1.0], len(kinks)) * rng.uniform(0.5, 2.0, len(kinks))
    slope, level = rng.standard_normal(2)

    def ask(x):
        return level + slope * x + np.maximum(np.subtract.outer(x, kinks), 0.0) @ bends

    found = find_pieces(ask)
    assert found.complete
    np.testing.assert_allclose(found.pieces.breakpoints, kinks, atol=1e-8)


def test_two_kinks_hidden_between_samples_whose_lines_meet_outside_them():
    """The meeting point of the outer lines lies on both, and is no kink."""
    kinks, bends = np.array([0.3300, 0.3301]), np.array([50.0, -49.0])

    def ask(x):
        return -2.0 * x + np.maximum(np.subtract.outer(x, kinks), 0.0) @ bends

    found = find_pieces(ask)
    np.testing.assert_allclose(found.pieces.breakpoints, kinks, atol=1e-9)


def test_precision_and_recall_with_the_training_set():
    best = optimum(3)
    found = relu.reconstruct_from_queries(best.network, training=(best.x, best.y))
    assert found.precision == 1.0
    assert found.margin_recall == 1.0
    assert 0.0 < found.recall < 1.0


def test_what_cannot_be_done_is_said():
    network = optimum(3).network
    with pytest.raises(InputError, match="not 'moments'"):
        relu.reconstruct_from_queries(network, form="moments")
    with pytest.raises(InputError, match="did not resolve the kinks"):
        relu.reconstruct_from_queries(lambda x: np.sin(50.0 * x), max_queries=500)
    with pytest.raises(InputError, match="one number for each query"):
        find_pieces(lambda x: np.zeros(3))
    with pytest.raises(InputError, match="not finite"):
        find_pieces(lambda x: np.full(len(x), np.nan))
    with pytest.raises(InputError, match="100 or more"):
        find_pieces(network, max_queries=10)
