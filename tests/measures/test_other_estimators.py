"""Jeffreys divergence, and measures from draws, against exact measures."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import measures
from leakscope.errors import InputError
from leakscope.laws import Empirical, LawPair, MultivariateNormal, Normal, SpikeAndSlab


@pytest.mark.parametrize("shift", [1e-3, 0.1, 1.0, 6.0])
def test_jeffreys_is_the_sum_of_both_directions(shift: float) -> None:
    location = np.array([0.0, 0.7, 2.5, -4.0])
    for threshold in (0.0, 1.3):
        for other in (threshold, threshold + 0.2):
            pair = LawPair(
                SpikeAndSlab(location + shift, 0.8, threshold), SpikeAndSlab(location, 0.8, other)
            )
            both = np.asarray(measures.kl(pair)) + np.asarray(
                measures.kl(pair, "member_to_nonmember")
            )
            np.testing.assert_allclose(measures.jeffreys(pair), both, rtol=1e-8)
    pair = LawPair(Normal(shift, 2.0), Normal(0.0, 1.0))
    both = measures.kl(pair) + measures.kl(pair, "member_to_nonmember")  # type: ignore[operator]
    assert float(measures.jeffreys(pair)) == pytest.approx(float(both), rel=1e-13)
    with pytest.raises(InputError):
        measures.jeffreys(LawPair(Empirical([0.0, 1.0]), Empirical([0.0, 2.0])))


def test_advantage_of_log_ratios_has_no_bias() -> None:
    pair = LawPair(Normal(0.3, 1.4), Normal(0.0, 0.7))
    x = np.random.default_rng(0).normal(0.3, 1.4, 400_000)
    ratios = pair.member.log_density(x) - pair.nonmember.log_density(x)
    draws = -np.expm1(-np.maximum(ratios, 0.0))
    stderr = draws.std() / np.sqrt(draws.size)
    exact = float(np.asarray(measures.advantage(pair)))
    assert abs(measures.advantage_of_log_ratios(ratios) - exact) < 4.0 * stderr


def test_kl_of_normal_draws_within_its_error() -> None:
    first = MultivariateNormal([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
    second = MultivariateNormal([0.4, -0.2], [[0.6, 0.0], [0.0, 0.9]])
    exact = float(np.asarray(measures.kl(LawPair(first, second), "member_to_nonmember")))
    rng = np.random.default_rng(1)
    scores = []
    for _ in range(200):
        one, two = (
            (law.mean + rng.standard_normal((300, 2)) @ law.cholesky.T)[None]
            for law in (first, second)
        )
        value, stderr = measures.normal_kl_of_draws(one, two)
        scores.append((value - exact) / stderr)
    assert abs(np.mean(scores)) < 4.0 / np.sqrt(200)
    assert np.std(scores) == pytest.approx(1.0, abs=0.25)


def test_binned_advantage_refuses_empty_bins() -> None:
    assert measures.binned_advantage([0, 0, 1, 1], [0, 1, 1, 1], [-0.5, 0.5, 1.5]) == 0.25
    with pytest.raises(InputError, match="no score"):
        measures.binned_advantage([5.0], [0.0], [-1.0, 1.0])
