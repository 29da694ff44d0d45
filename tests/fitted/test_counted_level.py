"""Levels that are counted: laws that promise too much or too little, and laws that are right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope import measures
from leakscope.fitted import few_models
from leakscope.fitted.counted_level import Level, level_of, rows_for_level
from leakscope.fitted.few_models import tabulated

Array = NDArray[np.float64]
RECORDS = 500


def halves(models: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    mask = np.zeros((models, RECORDS), bool)
    for pair in range(0, models, 2):
        mask[pair, rng.permutation(RECORDS)[: RECORDS // 2]] = True
        mask[pair + 1] = ~mask[pair]
    return mask


def jumping(models: int, seed: int) -> tuple[Array, NDArray[np.bool_]]:
    """Answers that training moves in some models only, as a split of a tree does: TV is 0.3."""
    rng = np.random.default_rng(seed)
    mask = halves(models, rng)
    noise = rng.standard_normal(mask.shape)
    jumps = rng.random(mask.shape) < np.where(mask, 0.6, 0.3)
    return rng.normal(0.0, 1.0, RECORDS) + 1.5 * jumps + 0.3 * noise, mask


@pytest.mark.parametrize("models", [16, 64])
def test_laws_of_answers_that_jump_come_to_their_level(models: int) -> None:
    scores, mask = jumping(models, seed=models)
    found = few_models(scores, mask, level_models=False)
    draws = found.draws
    every = np.arange(RECORDS)
    u, s, m, r = draws.as_fitted(every)
    promised = float(tabulated(m - u, s, r).mean())
    assert draws.level is not None
    # Without the level the normal laws are further from what is true.
    said = float(found.advantage.value.mean())
    assert abs(said - 0.3) < 0.05
    assert abs(said - 0.3) <= abs(promised - 0.3) + 0.005


def drawn(models: int, seed: int, shift: Array | float) -> tuple[Array, NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    mask = halves(models, rng)
    hard = np.linspace(-3.0, 3.0, RECORDS)
    return hard + shift * mask + rng.standard_normal(mask.shape), mask


def level(
    scores: Array, mask: NDArray[np.bool_], said: Array, directions: float = RECORDS
) -> Level:
    """Of laws that say this shift, which is right where the scores have it."""
    rows = rows_for_level(scores, np.ones(RECORDS, bool))
    u = np.zeros((len(rows), 4))
    laws = u, u + 1.0, u + said[rows][:, None], u + 1.0
    rng = np.random.default_rng(5)
    return level_of(scores, mask, rows, laws, tabulated, directions, rng, 400)


def test_laws_that_are_right_stay_as_they_are() -> None:
    """Over many data sets the stretch is one, and its own error covers that."""
    said, centre, error = np.full(RECORDS, 0.8), [], []
    for seed in range(12):
        found = level(*drawn(16, seed, 0.8), said).stretch
        centre.append(found.mean(axis=1))
        error.append(found.std(axis=1))
    centres, errors = np.array(centre), np.array(error)
    assert centres.mean() == pytest.approx(1.0, abs=4.0 * centres.std() / np.sqrt(centres.size))
    assert np.mean(np.abs(centres - 1.0) < 2.0 * errors) > 0.85


def test_each_level_is_its_own() -> None:
    """Laws that promise too much of the hard records, and too little of the easy ones."""
    true = np.where(np.arange(RECORDS) < RECORDS // 2, 0.6, 1.2)
    scores, mask = drawn(64, 3, true)
    found = level(scores, mask, np.full(RECORDS, 0.9)).of(np.arange(RECORDS)).mean(axis=1)
    assert found[:150].mean() == pytest.approx(0.6 / 0.9, rel=0.15)
    assert found[-150:].mean() == pytest.approx(1.2 / 0.9, rel=0.15)
    # Between two levels it is a line.
    order = np.argsort(scores.mean(axis=0))
    assert np.abs(np.diff(found[order])).max() < 0.1


def test_noise_that_records_share_does_not_move_the_level() -> None:
    """Models vary in two directions only; but who is trained on is drawn for each record."""
    said, centre, error = np.full(RECORDS, 0.8), [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mask = halves(16, rng)
        loads = rng.standard_normal((2, RECORDS))
        noise = rng.standard_normal((16, 2)) @ (loads / np.linalg.norm(loads, axis=0))
        found = level(rng.normal(size=RECORDS) + 0.8 * mask + noise, mask, said, 2.0).stretch
        centre.append(found.mean(axis=1))
        error.append(found.std(axis=1))
    centres, errors = np.array(centre), np.array(error)
    assert centres.mean() == pytest.approx(1.0, abs=4.0 * centres.std() / np.sqrt(centres.size))
    assert np.mean(np.abs(centres - 1.0) < 2.0 * errors) > 0.85


def test_records_without_a_law_do_not_move_those_with_one() -> None:
    """Half of the records jump; the normal ones among them keep what is true of them."""
    rng = np.random.default_rng(8)
    mask = halves(128, rng)
    jumps = rng.permutation(RECORDS) < RECORDS // 2
    normal = mask + rng.standard_normal(mask.shape)
    jumped = 3.0 * (rng.random(mask.shape) < np.where(mask, 0.25, 0.02))
    scores = np.where(jumps, jumped + 0.3 * rng.standard_normal(mask.shape), normal)
    found = few_models(scores + rng.normal(size=RECORDS), mask, level_models=False)
    true = float(tabulated(np.array(1.0), np.array(1.0), np.array(1.0)))
    trusted = found.trusted & ~jumps
    assert trusted.mean() > 0.2
    assert not (found.trusted & jumps).any()
    low, high = found.advantage.low[trusted], found.advantage.high[trusted]
    assert np.mean((low <= true) & (true <= high)) > 0.93
    assert found.advantage.value[~jumps].mean() == pytest.approx(true, abs=0.02)


def test_nothing_is_claimed_where_nothing_is_counted() -> None:
    scores, mask = drawn(64, 6, 0.0)
    found = level(scores, mask, np.full(RECORDS, 0.25))
    assert found.stretch.mean() < 0.5


def test_the_draws_have_the_level_that_the_numbers_have() -> None:
    scores, mask = jumping(32, seed=2)
    found = few_models(scores, mask)
    some = np.flatnonzero(found.doubt == 0)[:50]
    pairs = found.draws.pairs(some)
    again = np.asarray(measures.advantage(pairs)).mean(axis=1)
    np.testing.assert_allclose(again, found.advantage.value[some], atol=0.01)


def test_many_records_are_looked_at_in_part() -> None:
    scores = np.random.default_rng(0).normal(size=(100, 20_000))
    every = np.ones(20_000, bool)
    rows = rows_for_level(scores, every)
    assert len(rows) == 5_000
    assert len(set(rows.tolist())) == 5_000
    every[:10_000] = False
    assert rows_for_level(scores, every).min() >= 10_000
