"""Answers of few values: which records are told to have them, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.fitted.few_models import few_models, repeating

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


def test_an_interval_that_tells_nothing_is_told() -> None:
    inside = halves(4)
    hard = RNG.normal(0.0, 3.0, RECORDS)
    found = few_models(hard + RNG.normal(size=(4, RECORDS)) * 2.0 + 1.5 * inside, inside)
    width = found.advantage.high - found.advantage.low
    assert np.array_equal(found.informative, width <= 0.5)
    assert found.noise_seen
