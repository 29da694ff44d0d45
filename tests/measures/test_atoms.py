"""Pairs of laws on few values against every test there is, and their samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from leakscope import measures
from leakscope.errors import InputError
from leakscope.laws import Discrete, Key, LawPair, concatenate

GENERATOR = np.random.default_rng(5)
VALUES = np.array([-1.0, -0.2, 0.3, 0.8, 2.0])
MEMBER, NONMEMBER = (GENERATOR.dirichlet(np.full(5, 0.7), size=20) for _ in range(2))
PAIR = LawPair(Discrete(VALUES, MEMBER), Discrete(VALUES, NONMEMBER))


def test_the_best_of_all_tests() -> None:
    """Every set of values is a test; no randomised one does better than the polygon."""
    sets = np.array(list(product((0.0, 1.0), repeat=5)))
    tpr, fpr = MEMBER @ sets.T, NONMEMBER @ sets.T
    np.testing.assert_allclose(measures.advantage(PAIR), (tpr - fpr).max(axis=1), atol=1e-14)
    said = measures.delta_at_epsilon(PAIR, 0.7, direction="member_to_nonmember")
    np.testing.assert_allclose(said, (tpr - np.exp(0.7) * fpr).max(axis=1), atol=1e-14)
    # At the FPR of a set, no set of this FPR or less has a larger TPR than the best test.
    for law in range(20):
        best = measures.tpr_at_fpr(PAIR.take(slice(law, law + 1)), np.minimum(fpr[law], 1.0))[0]
        assert np.all(best >= tpr[law] - 1e-12)
    epsilon = measures.epsilon_at_delta(PAIR, 0.05)
    reached = measures.delta_at_epsilon
    for law, value in enumerate(epsilon):
        if np.isfinite(value) and value > 0.0:
            found = reached(PAIR.take(slice(law, law + 1)), float(value))
            np.testing.assert_allclose(found, 0.05, atol=1e-12)


def test_auc_counts_every_pair_of_values() -> None:
    ratio = MEMBER / NONMEMBER
    wins = (ratio[:, :, None] > ratio[:, None, :]) + 0.5 * (ratio[:, :, None] == ratio[:, None, :])
    expected = np.einsum("bi,bij,bj->b", MEMBER, wins, NONMEMBER)
    np.testing.assert_allclose(measures.auc(PAIR), expected, atol=1e-14)


def test_values_in_any_order_and_of_one_law_only() -> None:
    """Equal values are one; a value that one law lacks is certain; two values are a yes or no."""
    turned = LawPair(
        Discrete(VALUES[::-1], MEMBER[:, ::-1]),
        Discrete(np.append(VALUES, 2.0), np.insert(NONMEMBER, 5, 0.0, axis=1)),
    )
    for measure in (measures.advantage, measures.kl, measures.auc):
        np.testing.assert_allclose(measure(turned), measure(PAIR), rtol=1e-12)
    apart = LawPair(Discrete([0.0, 1.0], [0.4, 0.6]), Discrete([0.0, 2.0], [0.9, 0.1]))
    np.testing.assert_allclose(measures.advantage(apart), 0.6)
    np.testing.assert_allclose(measures.tpr_at_fpr(apart, 0.0), 0.6)
    assert measures.kl(apart) == np.inf


def test_a_label_is_two_atoms() -> None:
    """One that nobody gives, and one that members alone give: their certainty, and no KL."""
    inside, outside = np.array([0.9, 0.4, 1.0, 0.0]), np.array([0.6, 0.0, 1.0, 0.0])
    pair = LawPair(Discrete.of_label(inside), Discrete.of_label(outside))
    np.testing.assert_allclose(measures.advantage(pair), np.abs(inside - outside), atol=1e-16)
    np.testing.assert_allclose(measures.tpr_at_fpr(pair, 0.0), [0.0, 0.4, 0.0, 0.0])
    np.testing.assert_allclose(measures.tpr_at_fpr(pair, 0.5), [0.75, 0.7, 0.5, 0.5])
    both = 0.6 * np.log(0.6 / 0.9) + 0.4 * np.log(0.4 / 0.1)
    np.testing.assert_allclose(measures.kl(pair), [both, -np.log(0.6), 0.0, 0.0])
    assert measures.kl(pair, "member_to_nonmember")[1] == np.inf
    assert measures.epsilon_at_delta(pair, 0.1)[1] == np.inf
    assert measures.renyi(pair, np.inf, "member_to_nonmember")[1] == np.inf
    order2 = 0.6**2 / 0.9 + 0.4**2 / 0.1
    np.testing.assert_allclose(measures.renyi(pair, 2.0)[0], np.log(order2))


def test_law() -> None:
    law = Discrete([0.0, 0.5, 1.0, 7.0], [[0.2, 0.3, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]])
    drawn = law.sample(Key(1), 20_000)
    assert drawn.shape == (2, 20_000)
    assert np.all(drawn[1] == 1.0)
    for value, chance in zip((0.0, 0.5, 1.0), (0.2, 0.3, 0.5), strict=True):
        error = np.sqrt(chance * (1.0 - chance) / 20_000)
        assert abs(np.mean(drawn[0] == value) - chance) < 4.0 * error
    assert 7.0 not in drawn
    np.testing.assert_allclose(np.exp(law.log_density([0.5, 0.5])), [0.3, 0.0])
    np.testing.assert_allclose(law.cdf([0.5, 2.0]), [0.5, 1.0])
    assert concatenate([PAIR, PAIR]).batch_shape == (40,)
    assert PAIR.reshape(4, 5).batch_shape == (4, 5)
    for wrong in ([0.5, 0.6], [-0.5, 1.5]):
        with pytest.raises(InputError):
            Discrete([0.0, 1.0], wrong)
