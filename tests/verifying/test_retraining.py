from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from leakscope import InputError, measures
from leakscope.attacking import likelihood_ratio
from leakscope.verifying import choose_records, correlation, retrain
from leakscope.verifying.networks import TrainedAnswers


def noisy_mean(X, y, seed):
    """Answers with the mean target plus noise of its own."""
    value = y.mean(axis=0) + 0.1 * np.random.default_rng(seed).normal(size=y.shape[1:])
    return lambda Q: np.broadcast_to(value, (len(Q), *np.shape(value)))


def ignores(X, y, seed):
    value = np.random.default_rng(seed).normal()
    return lambda Q: np.full(len(Q), value) + 0.3 * Q[:, 0]


@dataclass
class Trainer:
    """Trains by a function of the records, their targets and a seed."""

    function: Any

    def train(self, X, y, included, queries, key):
        seeds = key.generator().integers(2**31, size=len(included))
        models = [self.function(X[r], y[r, 0], s) for r, s in zip(included, seeds, strict=True)]
        answers = np.array([np.reshape(model(queries), (len(queries), -1)) for model in models])
        return TrainedAnswers(answers, np.zeros(len(models)))


def test_means_and_auc_of_a_known_law():
    """Leaving record i out moves the mean by (y_i - mean)/(n - 1); the noise is normal."""
    X, y = np.arange(10.0)[:, None], np.linspace(-1.0, 1.0, 10)
    found = retrain(
        X, y, Trainer(noisy_mean), (0, 5, 9), models=200,
    )  # fmt: skip
    for record in found.records:
        shift = (y[record.row] - y.mean()) / 9
        assert abs(record.shift[0] - shift) < 4 * record.shift_stderr[0]
        np.testing.assert_allclose(record.shift_stderr, 0.1 * np.sqrt(2 / 200), rtol=0.25)
        truth = stats.norm.cdf(abs(shift) / (0.1 * np.sqrt(2)))
        # The attack learns its laws from 100 models, so it may fall a little short.
        assert record.auc.low - 0.03 < truth < record.auc.high + 0.06
    with pytest.raises(InputError, match="distinct rows"):
        retrain(X, y, Trainer(noisy_mean), (1, 1), models=8)


def test_null_retraining_reports_nothing():
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9.0)
    reported = 0
    for seed in range(20):
        found = retrain(X, y, Trainer(ignores), (0, 4, 8), models=16, seed=seed)
        reported += sum(record.auc.low > 0.5 for record in found.records)
    assert reported <= 60 * 0.09 + 3


def test_the_likelihood_ratio_tends_to_the_best_test():
    rng = np.random.default_rng(3)
    member, nonmember = rng.normal(1.0, 0.5, 4000), rng.normal(0.0, 1.0, 4000)
    found = measures.auc(likelihood_ratio(member, nonmember))
    from leakscope.laws import LawPair, Normal

    best = float(measures.auc(LawPair(Normal(1.0, 0.5), Normal(0.0, 1.0))))
    assert found.low - 0.005 < best < found.high + 0.005


def test_attacks_refuse_what_they_cannot_use():
    with pytest.raises(InputError, match="at least 4 member models"):
        likelihood_ratio([0.0, 1.0], [0.0, 1.0, 2.0, 3.0])


def test_correlations_have_fishers_interval():
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=60)
    measured = truth + 0.05 * rng.normal(size=60)
    plain, ranked = (correlation(truth, measured, ranks=ranks) for ranks in (False, True))
    assert plain.value == pytest.approx(stats.pearsonr(truth, measured).statistic)
    assert ranked.value == pytest.approx(stats.spearmanr(truth, measured).statistic)
    fisher = np.tanh(np.arctanh(plain.value) + np.array([-1.96, 1.96]) / np.sqrt(57))
    np.testing.assert_allclose([plain.low, plain.high], fisher, atol=0.03)
    assert correlation(truth[:9], truth[:9] ** 3, ranks=True).low < 0.7
    bad = correlation(truth, rng.permutation(measured))
    assert bad.low < 0.0 < bad.high
    flat = correlation(np.ones(9), np.arange(9.0))
    assert (flat.low, flat.high) == (-1.0, 1.0)
    with pytest.raises(InputError, match="8 records or more"):
        correlation([1.0], [1.0])


def test_every_stratum_is_chosen_from():
    predicted = np.random.default_rng(0).exponential(size=100)
    chosen = choose_records(predicted, 10, random_state=1)
    ranks = stats.rankdata(predicted)[chosen]
    assert sorted(int((rank - 1) // 10) for rank in ranks) == list(range(10))
    assert (choose_records(predicted, 500) == np.arange(100)).all()
    assert (choose_records(predicted, 10, random_state=2) != chosen).any()
    with pytest.raises(InputError, match="row 1 is nan"):
        choose_records([1.0, np.nan], 1)
    with pytest.raises(InputError, match="1 or more"):
        choose_records([1.0], 0)
