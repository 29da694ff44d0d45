"""A pair of Bernoulli laws against two narrow needles a hundred widths apart, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import measures
from leakscope.errors import InputError
from leakscope.laws import Bernoulli, Key, LawPair, NormalMixture, concatenate

MEMBER = np.array([0.9, 0.2, 0.5, 0.999, 0.3])
NONMEMBER = np.array([0.6, 0.7, 0.5, 0.99, 0.31])
PAIR = LawPair(Bernoulli(MEMBER), Bernoulli(NONMEMBER))


@pytest.fixture(scope="module")
def needles() -> LawPair:
    def law(p: np.ndarray) -> NormalMixture:
        return NormalMixture(np.stack([p, 1.0 - p], axis=-1), np.array([1.0, 0.0]), 0.01)

    return LawPair(law(MEMBER), law(NONMEMBER))


@pytest.mark.parametrize(
    "measure",
    [
        measures.advantage,
        measures.auc,
        measures.kl,
        lambda pair: measures.kl(pair, "member_to_nonmember"),
        lambda pair: measures.renyi(pair, 2.5),
        lambda pair: measures.tpr_at_fpr(pair, 0.01),
        lambda pair: measures.tpr_at_fpr(pair, 0.7),
        lambda pair: measures.tpr_at_fpr(pair, [0.0, 0.001, 0.5, 1.0]),
        lambda pair: measures.delta_at_epsilon(pair, 0.1),
        lambda pair: measures.epsilon_at_delta(pair, 0.05),
    ],
)
def test_equals_needles(measure, needles: LawPair) -> None:
    np.testing.assert_allclose(measure(PAIR), measure(needles), rtol=1e-6, atol=1e-9)


def test_certainty() -> None:
    """An answer that only members give, and one that nobody gives."""
    pair = LawPair(Bernoulli([0.4, 1.0, 0.0]), Bernoulli([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(measures.advantage(pair), [0.4, 0.0, 0.0])
    np.testing.assert_allclose(measures.tpr_at_fpr(pair, 0.0), [0.4, 0.0, 0.0])
    np.testing.assert_allclose(measures.tpr_at_fpr(pair, 0.5), [0.7, 0.5, 0.5])
    np.testing.assert_allclose(measures.kl(pair), [-np.log(0.6), 0.0, 0.0])
    assert measures.kl(pair, "member_to_nonmember").tolist() == [np.inf, 0.0, 0.0]
    assert measures.epsilon_at_delta(pair, 0.1).tolist() == [np.inf, 0.0, 0.0]


def test_law() -> None:
    law = Bernoulli([0.25, 0.75])
    drawn = law.sample(Key(1), 20_000)
    assert np.all(np.abs(drawn.mean(axis=1) - [0.25, 0.75]) < 4 * 0.433 / np.sqrt(20_000))
    np.testing.assert_allclose(np.exp(law.log_density(1.0)), [0.25, 0.75])
    np.testing.assert_allclose(law.cdf([-1.0, 2.0]), [0.0, 1.0])
    both = concatenate([PAIR, PAIR])
    assert both.batch_shape == (10,)
    with pytest.raises(InputError, match="between 0 and 1"):
        Bernoulli(1.2)
