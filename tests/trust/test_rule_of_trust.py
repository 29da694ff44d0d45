"""The rule of trust on laws whose truth is known: right ones pass, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.laws.distributions import Discrete, MultivariateNormal, Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import tpr_at_fpr
from leakscope.trust import (
    best_tests,
    check_laws,
    gains_little,
    hardly_led,
    refits_needed,
    resolved,
    rounding_status,
    stratum_size,
)

UNITS = 400
MANY, NONE = np.full(UNITS, 100.0), np.zeros(UNITS)


@pytest.fixture(scope="module")
def truth() -> LawPair:
    """Shifts from 0 to 3 sds, members' spread from 0.6 to 1.1 times."""
    generator = np.random.default_rng(3)
    sd = generator.lognormal(size=UNITS)
    mean = 3.0 * generator.normal(size=UNITS)
    shift = 3.0 * generator.random(UNITS) ** 3 * sd
    return LawPair(Normal(mean + shift, sd * generator.uniform(0.6, 1.1, UNITS)), Normal(mean, sd))


def refits_of(pair: LawPair, seed: int, common: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """As many refits as the rule asks for; ``common`` is a share that all units have in common."""
    generator = np.random.default_rng(seed)
    count = refits_needed(UNITS)
    inside = generator.random((count, UNITS)) < 0.5
    noise = np.sqrt(common) * generator.normal(size=(count, 1))
    noise = noise + np.sqrt(1.0 - common) * generator.normal(size=inside.shape)
    member, other = pair.member, pair.nonmember
    return np.where(
        inside, member.mean + member.sigma * noise, other.mean + other.sigma * noise
    ), inside


def check_of(said: LawPair, truth: LawPair, seed: int = 0, common: float = 0.0):
    scores, inside = refits_of(truth, seed, common)
    return check_laws(said, scores, inside, effective=MANY, heavy=NONE)


@pytest.mark.parametrize("common", [0.0, 0.3])
def test_right_laws_are_confirmed(truth, common):
    shares = []
    for seed in range(6):
        check = check_of(truth, truth, seed, common)
        assert check.law_holds
        shares.append(check.confirmed.mean())
    assert np.mean(shares) > 0.95
    assert set(check.status) <= {"confirmed", "unknown"}
    assert "refits" in check.sentence
    assert check.reason(int(np.argmax(check.confirmed))).startswith("refits agree")


@pytest.mark.parametrize(
    ("shift", "sd_in", "sd_out"),
    [(2.0, 1.0, 1.0), (0.3, 1.0, 1.0), (1.0, 0.4, 0.4), (1.0, 2.5, 2.5), (1.0, 1.0, 2.5)],
    ids=["half the shift said", "thrice the shift", "wide", "narrow", "nonmembers vary more"],
)
def test_wrong_laws_are_refused(truth, shift, sd_in, sd_out):
    member, other = truth.member, truth.nonmember
    really = LawPair(
        Normal(other.mean + shift * (member.mean - other.mean), sd_in * member.sigma),
        Normal(other.mean, sd_out * other.sigma),
    )
    check = check_of(truth, really)
    from leakscope.measures.pair_measures import advantage

    off = np.abs(np.asarray(advantage(truth)) - np.asarray(advantage(really))) > 0.1
    off |= np.abs(np.log2(tpr_at_fpr(truth, 0.01) / tpr_at_fpr(really, 0.01))) > 1.0
    assert off.sum() > 50
    assert not check.law_holds or (check.confirmed & off).sum() <= 0.02 * off.sum()


def test_a_wrong_stratum_is_refused_alone(truth):
    """The most exposed tenth really tells hardly anything."""
    from leakscope.measures.pair_measures import advantage

    said = np.asarray(advantage(truth))
    top = np.argsort(said)[-40:]
    member, other = truth.member, truth.nonmember
    mean = np.array(member.mean)
    mean[top] = other.mean[top]
    check = check_of(truth, LawPair(Normal(mean, member.sigma), other))
    assert check.law_holds
    assert not check.confirmed[top].any()
    assert check.confirmed.mean() > 0.8
    assert "contradict" in check.reason(int(top[0]))


def test_one_unit_is_contradicted_by_its_own_refits(truth):
    scores, inside = refits_of(truth, 1)
    scores[:, 0] -= 3.0 * truth.nonmember.sigma[0] * inside[:, 0]
    check = check_laws(truth, scores, inside, effective=MANY, heavy=NONE)
    assert not check.confirmed[0]
    assert not check.agrees[0]


def test_who_is_led_by_few_is_not_confirmed_unless_knowing_them_changes_little():
    sds = np.ones(4)
    # Hardly exposed; exposed; the same with unequal spreads; nobody looked.
    pair = LawPair(Normal([0.01, 1.5, 0.01, 0.01], [1.0, 1.0, 0.5, 1.0]), Normal(np.zeros(4), sds))
    effective, heavy = np.array([2.0, 2.0, 2.0, np.nan]), np.array([0.5, 0.5, 0.5, np.nan])
    assert hardly_led(pair, effective, heavy).tolist() == [True, False, False, False]
    assert hardly_led(pair, np.full(4, 7.0), heavy)[:3].all()


def test_rounding_is_told_from_spread():
    mean, sd = np.array([1e3, 1.0, 0.0, 1.0]), np.array([1e-3, 1e-10, 0.0, np.inf])
    assert resolved(mean, sd).tolist() == [True, False, False, False]
    assert rounding_status(mean, sd)[:2].tolist() == ["confirmed", "unknown"]
    assert resolved(np.zeros(1), np.ones(1)).all()


def test_the_test_at_one_percent_is_the_best_of_its_size(truth):
    """Its FPR is 1% and its TPR the measure's, by draws; with the two spreads equal too."""
    member, other = truth.member, truth.nonmember
    sigma = np.where(np.arange(UNITS) < 20, other.sigma, member.sigma)
    pair = LawPair(Normal(member.mean, sigma), other)
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(20_000, UNITS))
    inside, outside = (law.mean + law.sigma * noise for law in (pair.member, pair.nonmember))
    for side, expected in ((inside, np.asarray(tpr_at_fpr(pair, 0.01))), (outside, 0.01)):
        counted = (best_tests(pair, side)[1] <= 0.01).mean(axis=0)
        np.testing.assert_allclose(counted, expected, atol=0.015)


def test_labels_and_vectors_are_counted_too():
    generator = np.random.default_rng(2)
    inside = generator.random((200, 60)) < 0.5
    many = np.full(60, 30.0)
    chance = np.stack([np.linspace(0.5, 0.9, 60), np.full(60, 0.4)])
    labels = LawPair(*(Discrete.of_label(each) for each in chance))
    scores = (generator.random(inside.shape) < np.where(inside, *chance)).astype(float)
    check = check_laws(labels, scores, inside, effective=many, heavy=0.0 * many)
    assert check.law_holds
    assert check.confirmed.mean() > 0.9
    wrong = check_laws(labels, scores[:, ::-1], inside, effective=many, heavy=0.0 * many)
    assert not wrong.law_holds
    means = np.stack([np.ones((60, 3)), np.zeros((60, 3))])
    laws = LawPair(*(MultivariateNormal(mean, np.stack([np.eye(3)] * 60)) for mean in means))
    answers = generator.normal(size=(200, 60, 3)) + inside[..., None]
    check = check_laws(laws, answers, inside, effective=many, heavy=0.0 * many)
    assert check.law_holds
    assert check.confirmed.mean() > 0.9
    check = check_laws(laws, 0.5 * answers, inside, effective=many, heavy=0.0 * many)
    assert not check.law_holds


def test_a_better_informed_test_that_gains_much_is_found():
    pair = LawPair(Normal([1.0, 1.0], 1.0), Normal([0.0, 0.0], 1.0))
    better = LawPair(Normal([1.05, 1.5], 1.0), Normal([0.0, 0.0], 1.0))
    assert gains_little(pair, better).tolist() == [True, False]


def test_how_many_are_counted_together_and_how_often():
    assert [stratum_size(n) for n in (5, 500, 5000)] == [20, 20, 200]
    assert refits_needed(5) > refits_needed(50)
    assert refits_needed(100_000) == 16
    assert refits_needed(500, 0.2) > refits_needed(500)
    for units in (20, 220, 500, 5000, 100_000):
        assert refits_needed(units) * min(stratum_size(units), units) >= 640
