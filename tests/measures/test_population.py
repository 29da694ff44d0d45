"""A population of pairs: draws, brute force, and what one pair gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from leakscope import measures
from leakscope.errors import InputError
from leakscope.laws import (
    Empirical,
    LawPair,
    MultivariateNormal,
    Normal,
    NormalMixture,
    SpikeAndSlab,
)
from leakscope.measures.population import gathered, population_threshold

FPR = (0.1, 0.01, 0.001, 1e-5)
SINGLE = {
    "wider": LawPair(Normal([0.0], 1.4), Normal([0.0], 0.7)),
    "far": LawPair(Normal([8.0], 1.0), Normal([0.0], 1.0)),
    "near": LawPair(Normal([1e-3], 1.0), Normal([0.0], 1.0)),
    "mixture": LawPair(
        NormalMixture([[0.3, 0.7]], [[0.0, 0.0]], [[0.5, 2.0]]),
        NormalMixture([[0.5, 0.5]], [[0.0, 0.5]], [[1.0, 1.2]]),
    ),
    "atom": LawPair(SpikeAndSlab([0.3], 1.0, 1.0), SpikeAndSlab([0.0], 1.2, 1.0)),
}
MANY = LawPair(Normal([0.0, 0.0, 0.4], [1.0, 3.0, 1.0]), Normal([0.0, 0.0, 0.0], [0.9, 0.5, 1.0]))
WEIGHTS = np.array([0.5, 0.2, 0.3])


@pytest.mark.parametrize("name", SINGLE)
def test_population_of_one_has_the_measures_of_one(name: str) -> None:
    pair = SINGLE[name]
    found = measures.population_measures(pair, fpr=FPR)
    assert found.advantage == float(np.asarray(measures.advantage(pair))[0])
    assert found.kl == float(np.asarray(measures.kl(pair))[0])
    assert found.kl_reverse == float(np.asarray(measures.kl(pair, "member_to_nonmember"))[0])
    assert found.auc == pytest.approx(float(np.asarray(measures.auc(pair))[0]), abs=4e-5)
    tpr = np.asarray(measures.tpr_at_fpr(pair, FPR))[0]
    np.testing.assert_allclose(list(found.tpr_at_fpr.values()), tpr, rtol=2.5e-3)


def test_against_draws() -> None:
    """The likelihood ratios of a million members and nonmembers, each with a record of its own."""
    rng = np.random.default_rng(8)
    rows = rng.choice(3, size=(2, 1_000_000), p=WEIGHTS)
    laws = (MANY.member, MANY.nonmember)
    scores = []
    for row, law in zip(rows, laws, strict=True):
        x = law.mean[row] + law.sigma[row] * rng.standard_normal(row.size)  # type: ignore[attr-defined]
        up, down = (
            stats.norm.logpdf(x, other.mean[row], other.sigma[row])  # type: ignore[attr-defined]
            for other in laws
        )
        scores.append(up - down)
    found = measures.population_measures(MANY, WEIGHTS, fpr=(0.2, 0.01))
    wins = scores[0] > scores[1]
    assert abs(found.auc - wins.mean()) < 4.0 * wins.std() / 1e3
    advantage = -np.expm1(-np.maximum(scores[0], 0.0))
    assert abs(found.advantage - advantage.mean()) < 4.0 * advantage.std() / 1e3
    assert abs(found.kl_reverse - scores[0].mean()) < 4.0 * scores[0].std() / 1e3
    for level, tpr in found.tpr_at_fpr.items():
        threshold = np.quantile(scores[1], 1.0 - level)
        # the threshold's own error moves the rate by the slope of the ROC
        error = np.exp(threshold) * np.sqrt(level) + np.sqrt(tpr)
        assert abs(float(np.mean(scores[0] > threshold)) - tpr) < 4.0 * error / 1e3


def test_the_threshold_is_exceeded_as_often_as_asked() -> None:
    rng = np.random.default_rng(2)
    mean = rng.normal(size=3000)
    pair = LawPair(Normal(mean + 1.0, 1.0), Normal(mean, 1.0))
    # each record's log ratio is normal with mean -1/2 and variance 1
    for fpr in (0.1, 0.01):
        assert population_threshold(pair, fpr) == pytest.approx(stats.norm.isf(fpr) - 0.5, abs=2e-3)


def test_equal_laws_and_equal_rows() -> None:
    same = LawPair(Normal([0.0, 1.0], 1.0), Normal([0.0, 1.0], 1.0))
    found = measures.population_measures(same, fpr=(0.1,))
    assert (found.advantage, found.kl, found.kl_reverse, found.auc) == (0.0, 0.0, 0.0, 0.5)
    assert found.tpr_at_fpr[0.1] == pytest.approx(0.1, rel=1e-12)
    twice = LawPair(Normal([0.0, 0.0], 1.4), Normal([0.0, 0.0], 0.7))
    once = measures.population_measures(SINGLE["wider"])
    assert measures.population_measures(twice).auc == pytest.approx(once.auc, abs=4e-5)


def test_gathered_components_change_nothing() -> None:
    rng = np.random.default_rng(0)
    many = NormalMixture.scale(np.sqrt(rng.chisquare(20, (2, 700)) / 20.0))
    few = gathered(many)
    assert few.components <= 150
    x = np.linspace(-8.0, 8.0, 41)[:, None]
    np.testing.assert_allclose(few.log_density(x), many.log_density(x), rtol=0.0, atol=1e-3)
    # heavy tails: the sigmas of a design at p = n + 2
    wild = NormalMixture.scale(np.sqrt(1.0 / rng.chisquare(3, (1, 2000))))
    x = np.linspace(-20.0, 20.0, 41)[:, None]
    np.testing.assert_allclose(
        gathered(wild).log_density(x), wild.log_density(x), rtol=0.0, atol=1e-3
    )
    spread = NormalMixture(np.ones(30), np.arange(30.0), 1.0)
    assert gathered(spread.reshape(1)).components == 30
    equal = NormalMixture.scale(np.full((1, 400), 1.7))
    assert float(gathered(equal).cdf(1.7)[0]) == pytest.approx(float(stats.norm.cdf(1.0)))


def test_bad_weights_samples_and_vectors_are_refused() -> None:
    vectors = MultivariateNormal(np.zeros((1, 2)), np.eye(2)[None])
    for pair, weights in (
        (MANY, [0.5, 0.5]),
        (MANY, [0.5, 0.7, -0.2]),
        (LawPair(Empirical([0.0, 1.0]), Empirical([0.0, 2.0])), None),
        (LawPair(vectors, vectors), None),
    ):
        with pytest.raises(InputError):
            measures.population_measures(pair, weights)
