"""Answers of few values: which records are told to have them, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import measures
from leakscope.fitted.counted_models import GRID, log_likelihood
from leakscope.fitted.few_models import COUNTED, SOUND, few_models, not_normal, repeating

RNG = np.random.default_rng(0)
RECORDS = 200


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
    assert (found.doubt == SOUND).all()
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


def test_answers_that_jump_are_not_taken_for_normal() -> None:
    """Nine answers in ten lie close together with or without the record; some jump without it."""
    rng = np.random.default_rng(4)
    inside = halves(64)
    jump = (rng.random(inside.shape) < 0.1) & ~inside
    scores = rng.normal(0.0, 3.0, RECORDS) + 0.1 * rng.normal(size=inside.shape) - 5.0 * jump
    found = few_models(scores, inside)
    assert (found.doubt > SOUND).mean() > 0.9
    assert ((found.advantage.low <= 0.1) & (found.advantage.high >= 0.1)).mean() > 0.9


def test_normal_answers_are_seldom_called_anything_else() -> None:
    inside = halves(128)
    named = not_normal(np.random.default_rng(5).normal(size=inside.shape), inside)
    assert 0 < named.sum() <= 8


def test_the_likelihood_is_that_of_two_binomial_counts_given_their_sum() -> None:
    """By brute force: draws of both counts, those with the same sum, how often each is seen."""
    rng = np.random.default_rng(6)
    place = 30
    share = (9 + 0.5) / 25
    p, q = share + 0.5 * GRID[place], share - 0.5 * GRID[place]
    x, z = rng.binomial(12, p, 400_000), rng.binomial(12, q, 400_000)
    seen = np.bincount(x[x + z == 9], minlength=13)[:10]
    log_p = log_likelihood(np.arange(10), *(np.full(10, n) for n in (12, 9, 24)))[:, place]
    expected = np.exp(log_p - log_p.max())
    expected *= seen.sum() / expected.sum()
    assert np.all(np.abs(seen - expected) < 4.0 * np.sqrt(expected) + 4.0)
