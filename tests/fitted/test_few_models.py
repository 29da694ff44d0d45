"""A few models of simulated records whose laws are known: calibration, nulls, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope import measures
from leakscope.attacking import lira, rmia
from leakscope.attacking.score_attacks import ensemble_loss
from leakscope.errors import InputError
from leakscope.fitted import FewModels, few_models
from leakscope.halves.estimate import model_effects, require_models, tabulated
from leakscope.halves.population import (
    COMPOSITION_SHARE,
    composition_share,
    falling,
    hats,
    line,
    log_s_spread,
    noise_directions,
    record_sums,
)
from leakscope.laws import LawPair, Normal

Array = NDArray[np.float64]
RECORDS = 1200


def halves(models: int, records: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Complementary halves."""
    mask = np.zeros((models, records), bool)
    for pair in range(models // 2):
        mask[2 * pair, rng.permutation(records)[: records // 2]] = True
        mask[2 * pair + 1] = ~mask[2 * pair]
    return mask


def simulated(
    models: int, seed: int, leak: float = 1.0, records: int = RECORDS
) -> tuple[Array, NDArray[np.bool_], Array, LawPair]:
    """Scores, masks, true advantages and true laws; hard records shift more."""
    rng = np.random.default_rng(seed)
    u = rng.normal(2.0, 2.5, records)
    s = np.exp(rng.normal(0.0, 0.2, records))
    shift = leak * s * np.maximum(1.2 - 0.25 * u + rng.normal(0.0, 0.15, records), 0.0)
    r = s * np.exp(-0.15 * leak * shift / s)
    mask = halves(models, records, rng)
    noise = rng.standard_normal(mask.shape)
    scores = np.where(mask, u + shift + r * noise, u + s * noise)
    pair = LawPair(Normal(u + shift, r), Normal(u, s))
    return scores, mask, np.asarray(measures.advantage(pair)), pair


@pytest.fixture(scope="module")
def found() -> tuple[FewModels, Array, LawPair]:
    scores, mask, true, pair = simulated(8, seed=1)
    return few_models(scores, mask), true, pair


def test_intervals_cover_the_known_advantages(found: tuple[FewModels, Array, LawPair]) -> None:
    answer, true, _ = found
    inside = (true >= answer.advantage.low) & (true <= answer.advantage.high)
    top = np.argsort(-true)[: RECORDS // 20]
    assert 0.92 <= inside.mean() <= 0.99
    assert inside[top].mean() >= 0.85


def test_levels_are_right_on_average(found: tuple[FewModels, Array, LawPair]) -> None:
    """The mean advantage of one data set, and the mean TPR over twenty, to a tenth.

    1,200 records and 8 models leave the standard deviations uncertain by a few per cent, and with
    them the TPR of one data set by 15%.
    """
    answer, true, pair = found
    assert answer.advantage.value.mean() == pytest.approx(true.mean(), rel=0.1)
    ratios = [_tpr_ratio(answer, pair)]
    for seed in range(2, 21):
        scores, mask, _, other = simulated(8, seed=seed)
        ratios.append(_tpr_ratio(few_models(scores, mask), other))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)
    assert max(np.abs(np.log(ratios))) < np.log(1.45)


def _tpr_ratio(answer: FewModels, pair: LawPair) -> float:
    true = np.asarray(measures.tpr_at_fpr(pair, 1e-2))
    return float(answer.tpr_at_fpr[1e-2].value.mean() / true.mean())


def test_false_positive_rates_hold_for_the_median_record(
    found: tuple[FewModels, Array, LawPair],
) -> None:
    answer, _, pair = found
    law, true = answer.pair.nonmember, pair.nonmember
    assert isinstance(law, Normal)
    assert isinstance(true, Normal)
    rate = 1.0 - true.cdf(law.mean + 2.3263 * law.sigma)
    assert 0.008 <= np.median(rate) <= 0.0125


def test_ranks_better_than_lira_with_four_times_the_models(
    found: tuple[FewModels, Array, LawPair],
) -> None:
    answer, true, _ = found
    scores, mask, _, _ = simulated(32, seed=1)
    # The same records: the draws of the records come before those of the models.
    theirs = np.asarray(measures.advantage(lira(scores, mask)))
    assert _rank(answer.advantage.value, true) > _rank(theirs, true)


@pytest.mark.parametrize("models", [2, 3, 4])
def test_so_few_models_still_rank(models: int) -> None:
    scores, mask, true, _ = simulated(4, seed=3, records=400)
    if models == 3:
        kept = ~(mask[:3].all(axis=0) | ~mask[:3].any(axis=0))
        scores, mask, true = scores[:3, kept], mask[:3, kept], true[kept]
    answer = few_models(scores[:models], mask[:models])
    assert _rank(answer.advantage.value, true) > 0.5
    assert (answer.advantage.low <= answer.advantage.value).all()
    assert (answer.advantage.value <= answer.advantage.high).all()


def test_models_that_ignore_their_rows_claim_nothing() -> None:
    claims = []
    for seed in range(4):
        scores, mask, _, _ = simulated(4, seed=100 + seed, leak=0.0, records=300)
        claims.append(int(few_models(scores, mask).exposed.sum()))
    assert claims == [0] * 4


def test_a_constant_and_a_scale_for_each_model_change_nothing() -> None:
    scores, mask, _, _ = simulated(4, seed=5, records=200)
    plain = few_models(scores, mask)
    # Effects whose means over the models are 0 and 1 leave the typical model where it was.
    shift = np.array([3.0, -1.0, 1.0, -3.0])[:, None]
    moved = few_models(scores + shift, mask)
    np.testing.assert_allclose(moved.advantage.value, plain.advantage.value, rtol=1e-6, atol=1e-9)
    assert model_effects(scores + shift).shift == pytest.approx(
        model_effects(scores).shift + shift[:, 0]
    )


def test_the_order_of_the_models_is_of_no_account() -> None:
    scores, mask, _, _ = simulated(4, seed=6, records=200)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(
        few_models(scores[order], mask[order]).advantage.value,
        few_models(scores, mask).advantage.value,
        rtol=1e-6,
        atol=1e-9,
    )


def test_the_table_agrees_with_the_measures() -> None:
    rng = np.random.default_rng(0)
    shift, ratio = rng.uniform(-6.0, 6.0, 300), np.exp(rng.normal(0.0, 0.5, 300))
    pair = LawPair(Normal(shift, ratio), Normal(0.0, 1.0))
    ones = np.ones(300)
    for level in (1e-2, 1e-3):
        exact = measures.tpr_at_fpr(pair, level)
        np.testing.assert_allclose(tabulated(shift, ones, ratio, level), exact, atol=2e-3)
    np.testing.assert_allclose(tabulated(shift, ones, ratio), measures.advantage(pair), atol=2e-3)


def test_complementary_halves_show_their_correlation() -> None:
    rng = np.random.default_rng(2)
    mask = halves(8, 3000, rng)
    overlap = np.corrcoef(mask)
    pairs = np.repeat(rng.standard_normal((4, 3000)), 2, axis=0)
    sign = np.where(np.arange(8) % 2 == 0, 1.0, -1.0)[:, None]
    share = 0.6
    noise = np.sqrt(share) * sign * pairs + np.sqrt(1 - share) * rng.standard_normal((8, 3000))
    u = rng.normal(0.0, 3.0, 3000)
    assert composition_share(u + noise, mask, overlap, 1e6) == pytest.approx(share, abs=0.05)
    # With few directions a belief is mixed in.
    mixed = composition_share(u + noise, mask, overlap, 20.0)
    assert min(share, COMPOSITION_SHARE) < mixed < max(share, COMPOSITION_SHARE)
    assert record_sums(u + noise, mask).correlation.mean() == pytest.approx(-share, abs=0.05)


@pytest.mark.parametrize("directions", [5, 40, 400])
def test_the_directions_of_the_models_noise_are_counted(directions: int) -> None:
    """Models whose noise is a random sum of so many functions of the record."""
    rng = np.random.default_rng(directions)
    functions = rng.standard_normal((directions, 3000))
    mask = halves(32, 3000, rng)
    scores = rng.standard_normal((32, directions)) @ functions + rng.normal(0.0, 3.0, 3000)
    found = noise_directions(scores, np.corrcoef(mask))
    assert found == pytest.approx(directions, rel=0.3)


def test_shared_noise_is_not_taken_for_exposure() -> None:
    """Models that vary in five directions only, and learn no record: no claim in any seed.

    Thousands of records with the same noise look like thousands of witnesses, and are five.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        functions = rng.standard_normal((5, 600))
        mask = halves(4, 600, rng)
        scores = rng.standard_normal((4, 5)) @ functions + rng.normal(2.0, 3.0, 600)
        answer = few_models(scores, mask)
        assert not answer.exposed.any()
        assert answer.tpr_at_fpr[1e-2].value.mean() < 0.05


def test_where_the_models_show_no_shift_hard_records_still_come_first() -> None:
    """A shift too small for two models, by chance below zero: ranks, and next to no level."""
    rng = np.random.default_rng(1)
    u = rng.normal(2.0, 2.5, 400)
    mask = halves(2, 400, rng)
    answer = few_models(u - 0.2 * mask + 0.3 * rng.standard_normal((2, 400)), mask)
    assert _rank(answer.advantage.value, -u) > 0.9
    assert answer.advantage.value.max() < 0.1


def test_where_nothing_is_learned_the_draws_say_nothing() -> None:
    """Between the nodes of the posterior's sum, m moves along with u and r with s."""
    scores, mask, _, _ = simulated(16, seed=8, leak=0.0, records=600)
    answer = few_models(scores, mask)
    assert answer.tpr_at_fpr[1e-2].value.mean() < 0.0125


@pytest.mark.parametrize("models", [4, 8])
@pytest.mark.parametrize("end", [13.8, 36.0, 700.0])
def test_trees_that_answer_yes_or_no(models: int, end: float) -> None:
    """Log-odds with two values, most of them the same: they overflowed, or divided by zero."""
    for seed, records in ((1, 569), (3, 569), (5, 569), (0, 40)):
        rng = np.random.default_rng(seed)
        right = np.where(rng.random(records) < 0.98, 1.0, 0.3)
        if seed < 4:
            right = rng.beta(8.0, 1.0, records)
        mask = halves(models, records, rng)
        scores = np.where(mask | (rng.random(mask.shape) < right), end, -end)
        answer = few_models(scores, mask)
        assert np.isfinite(answer.advantage.high).all()
        never = scores.min(axis=0) == end
        assert answer.advantage.value[never].mean() < answer.advantage.value[~never].mean()


def test_the_most_exposed_records_have_laws_of_their_own() -> None:
    """The hardest 2% have half the noise of the others: the line of s follows to its very end."""
    rng = np.random.default_rng(0)
    u = np.sort(rng.normal(2.0, 2.5, 2500))
    s = np.where(np.arange(2500) < 50, 0.5, 1.0)
    mask = halves(16, 2500, rng)
    scores = u + s * (rng.standard_normal(mask.shape) + mask)
    law = few_models(scores, mask).pair.nonmember
    assert isinstance(law, Normal)
    assert np.median(law.sigma[:25]) == pytest.approx(0.5, rel=0.2)
    assert np.median(law.sigma[200:]) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("models", "spread"), [(4, 0.1), (4, 0.3), (8, 0.25)])
def test_the_spread_of_the_noise_is_seen_in_how_unequal_the_squares_are(
    models: int, spread: float
) -> None:
    rng = np.random.default_rng(models)
    s = np.exp(rng.normal(0.0, spread, 2500))
    mask = halves(models, 2500, rng)
    scores = rng.normal(2.0, 3.0, 2500) + s * rng.standard_normal(mask.shape)
    found = log_s_spread(record_sums(scores, mask))
    assert found == pytest.approx(spread, abs=0.06)


def test_a_few_wild_records_do_not_raise_the_line_of_the_others() -> None:
    rng = np.random.default_rng(3)
    s = np.where(rng.random(2500) < 0.03, 5.0, 1.0)
    mask = halves(16, 2500, rng)
    law = few_models(rng.normal(2.0, 4.0, 2500) + s * rng.standard_normal(mask.shape), mask)
    assert isinstance(law.pair.nonmember, Normal)
    assert np.median(law.pair.nonmember.sigma[s == 1.0]) == pytest.approx(1.0, rel=0.05)


def test_broken_lines() -> None:
    knots, values = np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, 2.0])
    u = np.array([-1.0, 0.5, 2.0, 4.0])
    np.testing.assert_allclose(line(u, knots, values), [-1.0, 2.0, 2.5, 1.5])
    np.testing.assert_allclose(hats(u, knots) @ values, line(u, knots, values))
    np.testing.assert_allclose(falling(np.array([1.0, 3.0, 0.5]), np.ones(3)), [2.0, 2.0, 0.5])


def test_the_peers_rank_hard_records_first() -> None:
    scores, mask, true, _ = simulated(8, seed=9, records=500)
    for predicted in (ensemble_loss(scores, mask), rmia(scores, mask)):
        assert _rank(predicted, true) > 0.3
    for variance in ("own", "bayes", "shared"):
        theirs = np.asarray(measures.advantage(lira(scores, mask, variance=variance)))
        assert _rank(theirs, true) > 0.3
    # The prior's variances lie between a record's own and the shared one.
    own, bayes, shared = (
        lira(scores, mask, variance=variance).member.sigma  # type: ignore[attr-defined]
        for variance in ("own", "bayes", "shared")
    )
    assert (np.minimum(own, shared) <= bayes + 1e-9).all()
    assert (bayes <= np.maximum(own, shared) + 1e-9).all()
    with pytest.raises(InputError, match="two models with each record"):
        lira(scores[:2], mask[:2])


GOOD = simulated(4, seed=7, records=40)


@pytest.mark.parametrize(
    ("scores", "mask", "words"),
    [
        (GOOD[0][:, :30], GOOD[1], "same shape"),
        (GOOD[0], GOOD[1].astype(int), "must be of type bool"),
        (GOOD[0][:1], GOOD[1][:1], "One model cannot show"),
        (GOOD[0][:, :5], GOOD[1][:, :5], "at least 20 records"),
        (np.where(np.arange(40) == 3, np.nan, GOOD[0]), GOOD[1], "model 0 for record 3 is nan"),
        (np.where(np.arange(40) == 3, np.inf, GOOD[0]), GOOD[1], "model 0 for record 3 is inf"),
        (np.where(np.arange(40) == 3, 1e200, GOOD[0]), GOOD[1], r"record 3 is 1e\+200"),
        (1 / (1 + np.exp(-GOOD[0])), GOOD[1], "as probabilities do"),
        (GOOD[0], GOOD[1] | (np.arange(40) == 7), "record 7"),
        (GOOD[0], GOOD[1] & (np.arange(40) != 7), "record 7"),
        (GOOD[0][0], GOOD[1][0], "one row per model"),
    ],
)
def test_bad_input_is_one_sentence(scores: Array, mask: NDArray[np.bool_], words: str) -> None:
    with pytest.raises(InputError, match=words):
        few_models(scores, mask)


@pytest.mark.parametrize("same_answers", [True, False])
def test_a_training_set_that_repeats_is_refused(same_answers: bool) -> None:
    """One model asked twice, or another seed on the same half: neither is another witness."""
    scores, mask, _, _ = simulated(6, seed=11, records=150)
    scores[4], mask[4] = (
        scores[1] + (0.0 if same_answers else scores[4] - scores[4].mean()),
        mask[1],
    )
    with pytest.raises(InputError, match="Models 1 and 4"):
        few_models(scores, mask)
    # What leakscope trained itself may repeat by chance, of few people.
    few_models(scores, mask, refuse_mistakes=False)


@pytest.mark.parametrize(("models", "records"), [(6, 150), (90, 40)])
def test_records_by_models_are_refused(models: int, records: int) -> None:
    scores, mask, _, _ = simulated(models, seed=12, records=records)
    with pytest.raises(InputError, match="transpose"):
        require_models(scores.T, mask.T)
    require_models(scores, mask)


@pytest.mark.parametrize("models", [4, 12])
def test_a_mask_upside_down_is_refused(models: int) -> None:
    """Four models said 0.04 then, and 0.29 the right way up."""
    scores, mask, _, _ = simulated(models, seed=13, records=150)
    for turned, which in ((scores, ~mask), (-scores, mask)):
        with pytest.raises(InputError, match="lower log-odds"):
            few_models(turned, which)


def _rank(a: Array, b: Array) -> float:
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1])


@pytest.mark.parametrize("step", [0.0, 1.5])
def test_models_that_differ_by_a_constant_are_refused(step):
    """Found by fuzzing: no spread at all was the logarithm of zero."""
    odds = np.linspace(-3.0, 3.0, 20) + step * np.arange(4)[:, None]
    mask = halves(4, 20, np.random.default_rng(0))
    with pytest.raises(InputError, match="differ by a constant at most"):
        few_models(odds, mask, random_state=0)


@pytest.mark.parametrize("models", [4, 16])
def test_models_that_know_their_records_by_heart_are_answered(models: int) -> None:
    """Each answer says who was in, and nothing else varies: it was refused for lack of spread."""
    drawn = np.random.default_rng(0).random((models // 2, 40)).argsort(axis=1) < 20
    mask = np.concatenate([np.stack([rows, ~rows]) for rows in drawn])
    found = few_models(np.where(mask, -0.75, -1.1), mask, random_state=0)
    assert (found.advantage.value > 0.9).all()
    assert (found.advantage.high == 1.0).all()
    assert not found.trusted.any()
    # Of half of the records it knows nothing.
    half = np.arange(40) < 20
    found = few_models(np.where(mask & half, -0.75, -1.1), mask, random_state=0)
    assert found.advantage.value[half].min() > 0.7
    assert found.advantage.value[~half].mean() < 0.4
