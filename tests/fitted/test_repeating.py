"""Answers of few values: which records are told to have them, and which are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import comb, ndtri

from leakscope import measures
from leakscope.halves.counting import (
    FOLDS,
    GRID,
    MOST_EXCESS,
    Counted,
    best_said,
    count,
    counted,
    folds_of,
    log_likelihood,
    opposites,
    said_by_each,
)
from leakscope.halves.estimate import COUNTED, LAW, answer_doubts, few_models
from leakscope.laws import LawPair, Normal

RNG = np.random.default_rng(0)
RECORDS = 200


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Whatever other tests have drawn, on this worker or another."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def repeating(
    answers: np.ndarray, inside: np.ndarray, alike: np.ndarray | None = None
) -> np.ndarray:
    return answer_doubts(answers, inside, alike) > LAW


def halves(models: int) -> np.ndarray:
    found = np.zeros((models, RECORDS), dtype=bool)
    for pair in range(0, models, 2):
        found[pair, RNG.permutation(RECORDS)[: RECORDS // 2]] = True
        found[pair + 1] = ~found[pair]
    return found


@pytest.mark.parametrize("models", [4, 16])
@pytest.mark.parametrize("voters", [1, 5, 10])
def test_labels_neighbours_and_few_votes_repeat(models: int, voters: int) -> None:
    chance = RNG.uniform(0.05, 0.95, RECORDS)
    assert repeating(RNG.binomial(voters, chance, (models, RECORDS)) / voters, halves(models)).all()


@pytest.mark.parametrize("models", [2, 4, 16])
def test_continuous_answers_and_many_votes_do_not(models: int) -> None:
    level = RNG.normal(size=RECORDS)
    smooth = level + 0.1 * RNG.normal(size=(models, RECORDS))
    assert not repeating(smooth, halves(models)).any()
    votes = RNG.binomial(1000, 0.5, (models, RECORDS)) + np.arange(RECORDS) * 37
    assert repeating(votes.astype(float), halves(models)).mean() < 0.05


def test_records_with_the_same_features_have_the_same_answers_without_repeating() -> None:
    level = np.repeat(RNG.normal(size=10), RECORDS // 10)
    noise = np.repeat(RNG.normal(size=(8, 10)), RECORDS // 10, axis=1)
    alike = np.repeat(np.arange(10), RECORDS // 10)
    inside = halves(8)
    assert repeating(level + noise, inside).all()
    assert not repeating(level + noise, inside, alike).any()


def test_answers_that_are_exact_with_the_record_repeat() -> None:
    """A tree to the last record: every model with it has the same answer."""
    inside = halves(8)
    answers = np.where(inside, 0.0, RNG.normal(size=(8, RECORDS))) + np.arange(RECORDS)
    assert repeating(answers, inside).all()


def test_leaves_of_one_model_that_many_share_repeat() -> None:
    """Each model has values of its own, so that no record sees one twice."""
    leaves = RNG.integers(0, 4, RECORDS)
    answers = np.stack([RNG.normal(size=4)[leaves] for _ in range(6)])
    assert repeating(answers, halves(6)).all()


def test_a_wide_interval_is_not_trusted() -> None:
    inside = halves(8)
    hard = RNG.normal(0.0, 3.0, RECORDS)
    found = few_models(hard + RNG.normal(size=(8, RECORDS)) * 2.0 + 1.5 * inside, inside)
    value, low, high = found.advantage.value, found.advantage.low, found.advantage.high
    assert found.noise_seen
    assert (found.doubt < COUNTED).all()
    assert not found.trusted[np.maximum(high - value, value - low) > 0.1].any()


@pytest.mark.parametrize("models", [8, 32, 128])
def test_labels_are_counted_and_the_level_is_right(models: int) -> None:
    """A label is right with chance p where the record was trained on, and q where it was not."""
    rng = np.random.default_rng(models)
    q = rng.uniform(0.3, 0.9, RECORDS)
    gain = np.minimum(rng.exponential(0.2, RECORDS), 1.0 - q)
    inside = halves(models)
    right = rng.random((models, RECORDS)) < np.where(inside, q + gain, q)
    found = few_models(np.where(right, 20.0, -20.0), inside)
    assert (found.doubt == COUNTED).all()
    assert abs(found.advantage.value.mean() - gain.mean()) < 0.04 + 0.6 / models
    covered = (found.advantage.low <= gain) & (gain <= found.advantage.high)
    assert covered.mean() > 0.9
    level = found.tpr_at_fpr[0.01]
    assert (level.low == 0.01).all()
    assert np.allclose(level.high, np.minimum(found.advantage.high + 0.01, 1.0), atol=1e-12)
    # What is drawn for the table and what is drawn for a curve are the same.
    pairs = found.draws.pairs(np.arange(RECORDS))
    again = measures.advantage(pairs).mean(axis=1)
    assert np.allclose(again, found.advantage.value, atol=2e-3)


def test_nothing_learned_is_counted_as_nothing() -> None:
    rng = np.random.default_rng(3)
    q = rng.uniform(0.3, 0.9, RECORDS)
    inside = halves(64)
    found = few_models(np.where(rng.random((64, RECORDS)) < q, 20.0, -20.0), inside)
    assert not found.exposed.any()
    assert found.advantage.value.mean() < 0.06
    assert (found.advantage.low == 0.0).mean() > 0.97


def test_the_likelihood_is_that_of_two_binomial_counts() -> None:
    """By brute force: draws of both counts at one advantage, and how often each pair is seen."""
    rng = np.random.default_rng(6)
    place, draws = 30, 400_000
    q = rng.random(draws) * (1.0 - GRID[place])
    x, z = rng.binomial(5, q + GRID[place]), rng.binomial(4, q)
    seen = np.bincount(5 * x + z, minlength=30)
    each = np.arange(30)
    sides = [np.full(30, n) for n in (5, 4)]
    log_p = log_likelihood(each // 5, sides[0], each % 5, sides[1])[:, place]
    expected = np.exp(log_p) * comb(5, each // 5) * comb(4, each % 5) * draws
    assert expected.sum() == pytest.approx(draws, rel=1e-9)
    assert np.all(np.abs(seen - expected) < 4.0 * np.sqrt(expected) + 0.002 * expected)


def test_intervals_of_counts_hold() -> None:
    """Whatever the chance of a yes is without the record, at any number of models."""
    rng = np.random.default_rng(7)
    for models in (8, 32, 128):
        for p, q in ((0.9, 0.34), (0.6, 0.4), (0.75, 0.25)):
            x, z = rng.binomial(models, p, 2_000), rng.binomial(models, q, 2_000)
            of = np.full(2_000, models)
            log_p = log_likelihood(x, of, z, of)
            chance = np.exp(log_p - log_p.max(axis=1, keepdims=True))
            nothing = np.zeros(2_000)
            found = Counted(chance / chance.sum(axis=1, keepdims=True), *[nothing] * 3)
            low, high = found.quantiles(np.array([0.025, 0.975])).T
            assert np.mean((low <= p - q) & (p - q <= high)) > 0.94


def gains(answers: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(tests,) the mean over the records of what each test tells."""
    return np.array([count(said, inside).gain.mean() for said in said_by_each((answers,), inside)])


def test_what_is_learnt_on_other_models_tells_nothing_of_nothing() -> None:
    """In sample the best cut of 16 answers tells 0.3 of nothing; on other models it must not."""
    inside = halves(16)
    found = gains(RNG.normal(size=inside.shape), inside)
    assert np.abs(found).max() < 4.0 * np.sqrt(1.0 / inside.size)


def test_the_luck_of_a_choice_is_not_counted() -> None:
    """The best of twelve tests in a part of 20 records tells something of nothing; what it says of
    models on which it was not chosen does not."""
    inside = halves(16)
    parts = np.array_split(np.arange(RECORDS), 10)
    chosen, lucky = [], []
    for _ in range(20):
        forms = RNG.normal(size=inside.shape), RNG.normal(size=inside.shape)
        chosen.append(count(best_said(forms, inside, parts), inside).gain.mean())
        each = [count(said, inside).gain for said in said_by_each(forms, inside)]
        lucky.append(np.mean([max(gain[part].mean() for gain in each) for part in parts]))
    assert abs(np.mean(chosen)) < 4.0 * np.std(chosen) / np.sqrt(20.0)
    assert np.mean(lucky) > 0.05


def test_models_of_complementary_halves_vary_more_than_two_counts() -> None:
    """What one half moves up the other moves down: the variance is seen, over many data sets."""
    slopes, told, gains_seen = RNG.normal(size=(RECORDS, RECORDS)), [], []
    for _ in range(200):
        inside = halves(16)
        answers = (2.0 * inside - 1.0) @ slopes - (2.0 * inside - 1.0) * np.diag(slopes)
        hits = count(answers > 0.0, inside)
        told.append(hits.variance.mean())
        gains_seen.append(hits.gain)
        assert hits.excess <= MOST_EXCESS
    seen = np.var(gains_seen, axis=0).mean()
    assert np.mean(told) == pytest.approx(seen, rel=0.05)
    # Two binomial counts would vary by half of that.
    assert seen > 1.8 * 2.0 * 0.25 / 8.0


def test_models_that_are_not_paired_are_counted_alone() -> None:
    inside = RNG.random((40, RECORDS)) < 0.5
    hits = count(RNG.random(inside.shape) < 0.5, inside)
    assert not opposites(inside)[0].size
    assert hits.excess == 1.0


@pytest.mark.parametrize("paired", [True, False])
def test_the_chance_of_a_fixed_test_is_exact(paired: bool) -> None:
    """Of nothing, no more records are as certain as chance has it, also where halves oppose."""
    found = []
    for _ in range(100):
        inside = halves(24) if paired else RNG.random((24, RECORDS)) < 0.5
        inside[:, 0] = ~inside[:, 0] if paired else np.arange(24) % 2 == 0
        answers = RNG.normal(size=inside.shape)
        if paired:
            answers[1::2] = -answers[0::2]
        found.append(count(answers > 0.0, inside).chance)
    for chance in (0.05, 0.01):
        share = np.mean(np.array(found) < chance)
        assert share < chance + 4.0 * np.sqrt(chance / np.size(found))


def test_certainty_allows_for_tests_that_were_learnt() -> None:
    """Of records of which nothing is known, among others whose spread tells."""
    records, nothing, sure = 60, 25, []
    for _ in range(100):
        half = RNG.random((64, records)).argsort(axis=1) < records // 2
        inside = np.repeat(half, 2, axis=0)
        inside[1::2] = ~inside[1::2]
        answers = np.where(inside, 4.0, 0.5) * RNG.normal(size=inside.shape)
        answers[:, :nothing] = 2.0 * RNG.normal(size=(128, nothing))
        sure.append(counted((answers,), inside).certainty[:nothing])
    for chance in (0.05, 0.01):
        share = np.mean(np.array(sure) > -ndtri(chance))
        assert share < chance + 3.0 * np.sqrt(chance / np.size(sure))


def test_one_rare_record_takes_no_doubt_from_the_others() -> None:
    """It was in one model alone, and votes of five were taken for normal laws."""
    inside = halves(40)
    inside[:, 0] = np.arange(40) == 3
    answers = RNG.binomial(5, np.where(inside, 0.8, 0.6)) / 5.0
    found = few_models(3.0 * answers - 1.0, inside)
    assert (found.doubt[1:] == COUNTED).all()
    assert found.doubt[0] == LAW
    assert not found.trusted.any()


def test_shifts_that_fall_below_nothing_at_both_ends_are_taken() -> None:
    """A line through records of unlike spread gave no shift to anybody, by which it was divided."""
    generator = np.random.default_rng(16)
    half = generator.random((8, 40)).argsort(axis=1) < 20
    inside = np.repeat(half, 2, axis=0)
    inside[1::2] = ~inside[1::2]
    spread = np.where(inside, 5.0, 0.4)
    answers = np.where(
        np.arange(40) < 22,
        2.0 * generator.normal(size=inside.shape),
        spread * generator.normal(size=inside.shape) + 0.2 * inside,
    )
    assert np.isfinite(few_models(answers, inside, level_models=False).advantage.value).all()


def test_folds_hold_opposites_whatever_their_order() -> None:
    inside = halves(32)
    folds = folds_of(inside)
    np.testing.assert_array_equal(folds[0::2], folds[1::2])
    np.testing.assert_array_equal(np.bincount(folds), np.full(FOLDS, 4))
    order = RNG.permutation(32)
    np.testing.assert_array_equal(folds_of(inside[order]), folds[order])


def test_spreads_that_differ_are_counted() -> None:
    """A perceptron's answers: a record changes their spread and not their middle."""
    inside = halves(64)
    answers = RNG.normal(size=inside.shape) * np.where(inside, 1.0, 4.0)
    truth = float(measures.advantage(LawPair(Normal(0.0, 1.0), Normal(0.0, 4.0))))
    *blind, _, ratio, _ = gains(answers, inside)
    assert max(blind) < 0.3 * truth
    # Two normals learnt from 28 answers each are nearly the right ones.
    assert truth - 0.05 < ratio < truth + 4.0 * np.sqrt(0.5 / inside.size)
    found = counted((answers,), inside)
    low, high = found.quantiles(np.array([0.025, 0.975])).T
    # Of this test's own advantage: what is learnt from few models falls short of the best test.
    assert np.mean((low <= ratio) & (ratio <= high)) > 0.9


def test_a_law_that_the_count_does_not_bear_out_is_not_trusted() -> None:
    """Half of each side's answers are far away: two normals take that for spread."""
    inside = halves(256)
    near = np.where(inside, 2.5, 0.0) + RNG.normal(size=inside.shape)
    answers = np.where(RNG.random(inside.shape) < 0.4, near + 12.0, near) + np.arange(RECORDS) % 7
    few = few_models(answers, inside)
    truth = float(measures.advantage(LawPair(Normal(2.5, 1.0), Normal(0.0, 1.0))))
    # No cut and no two normals tell more than 0.6.
    assert abs(few.advantage.value.mean() - truth) < 0.05
    assert np.mean((few.advantage.low <= truth) & (truth <= few.advantage.high)) > 0.85
