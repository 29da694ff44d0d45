"""A population of pairs: the contract of every measure, brute force, and what one pair gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import (
    Empirical,
    LawPair,
    MultivariateNormal,
    Normal,
    NormalMixture,
    SpikeAndSlab,
)
from leakscope.measures.population import gathered, population_ratio

FPR = (0.1, 0.01, 0.001, 1e-5)
SINGLE = {
    "wider": LawPair(Normal([0.0], 1.4), Normal([0.0], 0.7)),
    "narrower": LawPair(Normal([0.0], 0.7), Normal([0.0], 1.4)),
    "shifted": LawPair(Normal([1.0], 1.0), Normal([0.0], 1.0)),
    "far": LawPair(Normal([8.0], 1.0), Normal([0.0], 1.0)),
    "near": LawPair(Normal([1e-3], 1.0), Normal([0.0], 1.0)),
    "mixture": LawPair(
        NormalMixture([[0.3, 0.7]], [[0.0, 0.0]], [[0.5, 2.0]]),
        NormalMixture([[0.5, 0.5]], [[0.0, 0.5]], [[1.0, 1.2]]),
    ),
    "atom": LawPair(SpikeAndSlab([0.3], 1.0, 1.0), SpikeAndSlab([0.0], 1.2, 1.0)),
    "vector": LawPair(
        MultivariateNormal(np.zeros((1, 2)), np.eye(2)[None]),
        MultivariateNormal(np.ones((1, 2)), 2.0 * np.eye(2)[None]),
    ),
}
MANY = LawPair(Normal([0.0, 0.0, 0.4], [1.0, 3.0, 1.0]), Normal([0.0, 0.0, 0.0], [0.9, 0.5, 1.0]))
WEIGHTS = np.array([0.5, 0.2, 0.3])


@pytest.mark.parametrize("name", SINGLE)
def test_population_of_one_has_the_measures_of_one(name: str) -> None:
    pair = SINGLE[name]
    found = measures.population_measures(pair, fpr=FPR)
    assert found.advantage == pytest.approx(float(np.asarray(measures.advantage(pair))[0]))
    assert found.kl == pytest.approx(float(np.asarray(measures.kl(pair))[0]), rel=1e-12)
    back = np.asarray(measures.kl(pair, "member_to_nonmember"))
    assert found.kl_reverse == pytest.approx(float(back[0]), rel=1e-12)
    assert found.auc == pytest.approx(float(np.asarray(measures.auc(pair))[0]), abs=1e-7)
    tpr = np.asarray(measures.tpr_at_fpr(pair, FPR))[0]
    np.testing.assert_allclose(list(found.tpr_at_fpr.values()), tpr, rtol=1e-8)


def test_the_kink_is_no_longer_inside_a_panel() -> None:
    """0.3226446 stood here; erf gives 0.32267457."""
    found = measures.population_measures(SINGLE["wider"], fpr=(0.1,))
    edge = np.sqrt(2.0 * np.log(2.0) / (1.0 / 0.7**2 - 1.0 / 1.4**2))
    exact = 2.0 * (stats.norm.sf(edge / 1.4) - stats.norm.sf(edge / 0.7))
    assert exact == pytest.approx(0.32267457, abs=5e-9)
    assert found.advantage == pytest.approx(exact, rel=1e-12)


def test_eighty_pairs_of_normals_against_closed_forms() -> None:
    """The fault was up to 7e-5 in advantage and 1.8e-4 in TPR over such pairs."""
    rng = np.random.default_rng(3)
    sigma = np.exp(rng.normal(0.0, 0.6, (2, 80)))
    for member, nonmember in sigma.T:
        pair = LawPair(Normal([0.0], member), Normal([0.0], nonmember))
        found = measures.population_measures(pair, fpr=(0.01,))
        assert found.advantage == pytest.approx(
            float(np.asarray(measures.advantage(pair))[0]), rel=1e-12
        )
        tpr = float(np.asarray(measures.tpr_at_fpr(pair, 0.01))[0])
        assert found.tpr_at_fpr[0.01] == pytest.approx(tpr, rel=1e-9)


def region(pair: LawPair, row: int, threshold: float) -> tuple[FloatArray, FloatArray]:
    """Both laws' densities on a fine grid where the ratio is above the threshold."""
    x = np.linspace(-30.0, 30.0, 600_001)
    member = stats.norm(pair.member.mean[row], pair.member.sigma[row])  # type: ignore[attr-defined]
    nonmember = stats.norm(pair.nonmember.mean[row], pair.nonmember.sigma[row])  # type: ignore[attr-defined]
    inside = member.logpdf(x) - nonmember.logpdf(x) > threshold
    return x, np.where(inside, [member.pdf(x), nonmember.pdf(x)], 0.0)


@pytest.mark.parametrize("threshold", [-0.4, 0.0, 0.3, 2.0])
def test_tests_against_brute_force(threshold: float) -> None:
    ratio = population_ratio(MANY, WEIGHTS)
    at = ratio.tails(np.array([[threshold]]))
    tpr = fpr = 0.0
    for row, weight in enumerate(WEIGHTS):
        x, (up, down) = region(MANY, row, threshold)
        tpr += weight * integrate.trapezoid(up, x)
        fpr += weight * integrate.trapezoid(down, x)
    assert float(np.exp(at.log_tpr[0, 0])) == pytest.approx(tpr, abs=2e-4)
    assert float(np.exp(at.log_fpr[0, 0])) == pytest.approx(fpr, abs=2e-4)
    excess = float(np.exp(ratio.log_excess(np.array([[threshold]])))[0, 0])
    assert excess == pytest.approx(tpr - np.exp(threshold) * fpr, abs=1e-5)
    # and the best test of that size has that power
    again = ratio.tpr_at(at.log_fpr)
    np.testing.assert_allclose(again[0], at.log_tpr, rtol=1e-8)


def test_auc_against_draws() -> None:
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
    wins = scores[0] > scores[1]
    stderr = np.sqrt(wins.mean() * (1.0 - wins.mean()) / wins.size)
    found = measures.population_measures(MANY, WEIGHTS).auc
    assert abs(found - wins.mean()) < 4.0 * stderr


def test_ratio_of_a_population_keeps_the_contract() -> None:
    """Pinsker, symmetry, inverse epsilon and delta, a concave ROC, orders of Rényi."""
    ratio = population_ratio(MANY, WEIGHTS)
    back = ratio.reversed()
    adv = float(ratio.advantage()[0])
    assert adv == pytest.approx(float(back.advantage()[0]), rel=1e-9)
    assert adv + float(np.exp(ratio.log_overlap()[0])) == pytest.approx(1.0, rel=1e-12)
    for one in (ratio, back):
        assert float(np.exp(one.log_excess(np.zeros((1, 1))))[0, 0]) == pytest.approx(adv)
        assert adv <= np.sqrt(float(one.renyi(1.0)[0]) / 2.0)
        delta = adv * np.array([[1e-8, 1e-4, 0.3]])
        epsilon = one.epsilon_at(np.log(delta))
        np.testing.assert_allclose(np.exp(one.log_excess(epsilon)), delta, rtol=1e-8)
    orders = (0.5, 0.999999, 1.0, 1.000001, 1.05)
    values = [float(ratio.renyi(order)[0]) for order in orders]
    assert values == sorted(values)
    fpr = np.linspace(0.01, 0.99, 50)
    tpr = np.exp(ratio.tpr_at(np.log(fpr)[None, :])[0][0])
    assert np.all(np.diff(np.diff(tpr)) <= 1e-9)
    assert np.max(tpr - fpr) <= adv + 1e-12
    auc = float(ratio.auc()[0])
    assert auc == pytest.approx(float(back.auc()[0]), abs=1e-7)
    assert 0.5 * (1.0 + adv) <= auc <= 1.0 - 0.5 * (1.0 - adv) ** 2


def test_equal_laws_and_equal_rows() -> None:
    same = LawPair(Normal([0.0, 1.0], 1.0), Normal([0.0, 1.0], 1.0))
    found = measures.population_measures(same, fpr=(0.1,))
    assert (found.advantage, found.kl, found.kl_reverse, found.auc) == (0.0, 0.0, 0.0, 0.5)
    assert found.tpr_at_fpr[0.1] == pytest.approx(0.1, rel=1e-12)
    twice = LawPair(Normal([0.0, 0.0], 1.4), Normal([0.0, 0.0], 0.7))
    assert measures.population_measures(twice).auc == pytest.approx(
        measures.population_measures(SINGLE["wider"]).auc, abs=1e-8
    )


def test_gathered_components_change_nothing() -> None:
    rng = np.random.default_rng(0)
    sigmas = np.sqrt(rng.chisquare(20, (2, 700)) / 20.0)
    many = NormalMixture.scale(sigmas)
    few = gathered(many)
    assert few.components == 24
    x = np.linspace(-8.0, 8.0, 41)[:, None]
    np.testing.assert_allclose(few.log_density(x), many.log_density(x), rtol=0.0, atol=1e-9)
    # heavy tails: the sigmas of a design at p = n + 2
    wild = NormalMixture.scale(np.sqrt(1.0 / rng.chisquare(3, (1, 2000))))
    x = np.linspace(-20.0, 20.0, 41)[:, None]
    np.testing.assert_allclose(
        gathered(wild).log_density(x), wild.log_density(x), rtol=0.0, atol=1e-6
    )
    spread = NormalMixture(np.ones(30), np.arange(30.0), 1.0)
    assert gathered(spread.reshape(1)).components == 30
    equal = NormalMixture.scale(np.full((1, 40), 1.7))
    assert float(gathered(equal).cdf(1.7)[0]) == pytest.approx(float(stats.norm.cdf(1.0)))


def test_bad_weights_and_samples_are_refused() -> None:
    with pytest.raises(InputError, match="one for each pair: 3, not 2"):
        measures.population_measures(MANY, [0.5, 0.5])
    with pytest.raises(InputError, match="zero or above"):
        measures.population_measures(MANY, [0.5, 0.7, -0.2])
    with pytest.raises(InputError, match="not for samples"):
        measures.population_measures(LawPair(Empirical([0.0, 1.0]), Empirical([0.0, 2.0])))
