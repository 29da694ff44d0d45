"""Each law against itself: samples, density and distribution function agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from leakscope import InputError
from leakscope._numerics.keys import Key
from leakscope.laws import (
    Empirical,
    Law,
    LawPair,
    MultivariateNormal,
    Normal,
    NormalMixture,
    Provenance,
    SpikeAndSlab,
    concatenate,
)
from leakscope.laws.distributions import ScalarLaw

KEY = Key(7)
SCALAR: dict[str, ScalarLaw] = {
    "normal": Normal([0.5, -2.0], [1.5, 0.2]),
    "mixture": NormalMixture([[0.2, 0.8], [1.0, 3.0]], [[0.0, 3.0], [1.0, 1.0]], [1.0, 0.3]),
    "scale mixture": NormalMixture.scale([[0.5, 2.0], [1.0, 9.0]]),
    "spike": SpikeAndSlab([0.3, -1.0], [1.0, 0.4], [0.5, 0.7]),
}
ALL: dict[str, Law] = {
    **SCALAR,
    "multivariate": MultivariateNormal(
        [[0.0, 1.0], [2.0, 0.0]], [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 4.0]]]
    ),
    "empirical": Empirical([[1.0, 2.0, 3.0, 2.0], [0.0, 0.0, 1.0, 5.0]]),
}


@pytest.mark.parametrize("name", SCALAR)
def test_samples_follow_the_distribution_function(name: str) -> None:
    law = SCALAR[name]
    drawn = law.sample(KEY, 4000)
    assert drawn.shape == (2, 4000)
    for row in range(2):
        one = law.take(slice(row, row + 1))
        if isinstance(law, SpikeAndSlab):
            atom = float(law.atom[row])
            share = np.mean(drawn[row] == 0.0)
            assert abs(share - atom) < 4.0 * np.sqrt(atom * (1.0 - atom) / 4000)
            points = np.linspace(-2.0, 2.0, 9)
            for point in points:
                p = float(one.cdf([point])[0])
                error = 4.0 * np.sqrt(p * (1.0 - p) / 4000) + 1e-12
                assert abs(np.mean(drawn[row] <= point) - p) < error
        else:
            result = stats.kstest(drawn[row], lambda x, one=one: one.broadcast_to((1,)).cdf(x))
            assert result.pvalue > 1e-4


@pytest.mark.parametrize("name", SCALAR)
def test_density_is_the_derivative_of_the_distribution_function(name: str) -> None:
    law = SCALAR[name].take(0)
    for low, high in ((-3.0, -0.2), (0.1, 0.9), (1.0, 4.0)):
        mass, _ = integrate.quad(lambda x: float(np.exp(law.log_density(x))), low, high)
        assert float(law.cdf(high) - law.cdf(low)) == pytest.approx(mass, abs=1e-9)


def test_spike_and_slab_atom_has_the_rest_of_the_mass() -> None:
    law = SpikeAndSlab(0.3, 1.0, 0.5)
    left, _ = integrate.quad(lambda x: float(np.exp(law.log_density(x))), -12.0, -1e-300)
    right, _ = integrate.quad(lambda x: float(np.exp(law.log_density(x))), 1e-300, 12.0)
    assert left + right + float(law.atom) == pytest.approx(1.0, abs=1e-9)
    assert float(np.exp(law.log_density(0.0))) == pytest.approx(float(law.atom), rel=1e-14)
    assert float(SpikeAndSlab(0.0, 1.0, 0.0).atom) == 0.0


def test_multivariate_samples_have_the_moments() -> None:
    law = ALL["multivariate"]
    drawn = law.sample(KEY, 20_000)
    assert drawn.shape == (2, 20_000, 2)
    assert isinstance(law, MultivariateNormal)
    for row in range(2):
        np.testing.assert_allclose(drawn[row].mean(axis=0), law.mean[row], atol=0.06)
        np.testing.assert_allclose(np.cov(drawn[row].T), law.covariance[row], atol=0.15)
        expected = stats.multivariate_normal(law.mean[row], law.covariance[row])
        point = np.array([0.3, -0.4])
        np.testing.assert_allclose(law.log_density(point)[row], expected.logpdf(point))


@pytest.mark.parametrize("name", ALL)
def test_batches_can_be_reshaped_taken_and_repeated(name: str) -> None:
    law = ALL[name]
    assert law.batch_shape == (2,)
    assert law.reshape(2, 1).batch_shape == (2, 1)
    assert law.take(1).batch_shape == ()
    assert law.broadcast_to((3, 2)).batch_shape == (3, 2)
    np.testing.assert_array_equal(law.sample(KEY, 5), law.sample(KEY, 5))
    x = np.full(law.event_shape, 0.7)
    np.testing.assert_allclose(law.take(1).log_density(x), law.log_density(x)[1])


def test_empirical_distribution_function_counts() -> None:
    law = Empirical([3.0, 1.0, 2.0, 2.0])
    assert float(law.cdf(2.0)) == 0.75
    assert float(np.exp(law.log_density(2.0))) == 0.5
    assert set(np.unique(law.sample(KEY, 200))) == {1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Normal(0.0, [1.0, 0.0]),
            "sigma must be positive and finite, but it is 0.0 at position 1",
        ),
        (lambda: Normal(float("nan"), 1.0), "mean must be finite, but it is nan"),
        (lambda: Normal("a", 1.0), "mean must be a number"),
        (lambda: Normal([0.0, 1.0], [1.0, 1.0, 1.0]), "shapes do not fit together"),
        (lambda: NormalMixture([1.0, -1.0], 0.0, 1.0), "weights must be zero or above"),
        (lambda: NormalMixture([0.0, 0.0], 0.0, 1.0), "must not all be zero"),
        (lambda: NormalMixture(1.0, 0.0, 1.0), "the last axis"),
        (lambda: SpikeAndSlab(0.0, 1.0, -0.1), "threshold must be zero or above"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0]]), "needs a d x d covariance"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: Empirical([1.0]), "at least two"),
        (lambda: LawPair(Normal(0.0, 1.0), SpikeAndSlab(0.0, 1.0, 1.0)), "cannot be compared"),
        (lambda: LawPair(Normal([0.0, 1.0], 1.0), Normal([0.0] * 3, 1.0)), "do not fit together"),
        (lambda: Provenance(question="why"), "question must be one of"),
    ],
)
def test_bad_parameters_get_one_sentence(make, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_normal_beside_a_mixture_is_a_pair_of_mixtures() -> None:
    pair = LawPair(Normal(0.0, 1.0), NormalMixture.scale([0.5, 2.0]))
    assert isinstance(pair.member, NormalMixture)
    assert pair.batch_shape == ()


def test_pairs_that_answer_different_questions_are_not_ranked_together() -> None:
    left = LawPair(Normal([0.0], 1.0), Normal(0.0, 1.0), Provenance(attacker_knows_label=True))
    right = LawPair(Normal([0.0], 1.0), Normal(0.0, 1.0), Provenance(attacker_knows_label=False))
    with pytest.raises(InputError, match="attacker knows the label: True against False"):
        concatenate([left, right])
    assert concatenate([left, left]).batch_shape == (2,)


@pytest.mark.parametrize("name", ALL)
def test_concatenation_keeps_every_law(name: str) -> None:
    law = ALL[name]
    both = concatenate([LawPair(law, law), LawPair(law.take(slice(1, 2)), law.take(slice(0, 1)))])
    assert both.batch_shape == (3,)
    x = np.full(law.event_shape, 0.7)
    np.testing.assert_allclose(both.member.log_density(x)[2], law.log_density(x)[1])
    np.testing.assert_allclose(both.nonmember.log_density(x)[2], law.log_density(x)[0])
