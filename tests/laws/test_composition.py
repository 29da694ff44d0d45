"""Several noised releases together: independent given the records, so that divergences add."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope import InputError, fitted, kernels, lood, measures
from leakscope.laws import LawPair, Normal, Provenance

RNG = np.random.default_rng(2)
X = RNG.normal(size=(30, 4))
Y = X[:, 0] + RNG.normal(size=30)


def test_draws_of_processes_multiply() -> None:
    pairs = [
        lood.all_records(kernels.rbf(1.0)(X), Y, noise_variance=noise).law_pair()
        for noise in (0.5, 2.0)
    ]
    alone = [np.asarray(measures.kl(pair)) for pair in pairs]
    together = leakscope.compose(*pairs)
    assert np.asarray(measures.kl(together)) == pytest.approx(sum(alone), rel=1e-6)
    best = np.maximum(*(np.asarray(measures.advantage(pair)) for pair in pairs))
    assert (np.asarray(measures.advantage(together)) >= best - 1e-9).all()


def test_noised_coefficients_add_in_squares() -> None:
    known = [
        fitted.laws_of(Ridge(alpha=alpha).fit(X, Y), X, Y, question="known_others")
        for alpha in (1.0, 5.0)
    ]
    pairs = [
        laws.law_pair(coefficient_noise=noise)
        for laws, noise in zip(known, (0.1, 0.3), strict=True)
    ]
    distance = np.sqrt(
        sum(((p.member.mean - p.nonmember.mean) / p.member.sigma) ** 2 for p in pairs)
    )
    alone = LawPair(Normal(distance, 1.0), Normal(0.0 * distance, 1.0))
    for measure in (measures.advantage, lambda pair: measures.tpr_at_fpr(pair, 1e-3)):
        both = [np.asarray(measure(pair)) for pair in (leakscope.compose(*pairs), alone)]
        assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_equal_normals_have_the_epsilon_of_the_root_of_their_squares() -> None:
    """4.57361399 at 1e-6 is by dp-accounting's composed privacy losses."""
    pairs = [LawPair(Normal(mu, 1.0), Normal(0.0, 1.0)) for mu in (0.3, 0.8, 0.4)]
    together = leakscope.compose(*pairs)
    assert float(np.asarray(measures.epsilon_at_delta(together, 1e-6))) == pytest.approx(
        4.57361399, abs=1e-7
    )


def test_what_cannot_be_composed() -> None:
    pair = LawPair(Normal([0.3, 0.2], 1.0), Normal([0.0, 0.0], 1.0))
    shorter = LawPair(Normal([0.3], 1.0), Normal([0.0], 1.0))
    other = LawPair(pair.member, pair.nonmember, Provenance(question="population"))
    shared = fitted.laws_of(Ridge().fit(X, Y), X, Y).law_pair()
    for given in ([pair], [pair, shorter], [pair, other], [shared, shared]):
        with pytest.raises(InputError):
            leakscope.compose(*given)
