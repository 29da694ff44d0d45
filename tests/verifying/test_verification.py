from __future__ import annotations

import numpy as np
import pytest

import leakscope
from leakscope import InputError, kernels, lood
from leakscope._numerics.keys import as_key
from leakscope.results.columns import Table
from leakscope.subjects.process.draws import posterior_draws, prior_root
from leakscope.verifying.audits import check_audit
from leakscope.verifying.checks import NumberCheck, counted, mean_score, spread_score, threshold_for


@pytest.fixture(params=[1, 3])
def problem(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(15, 2))
    y = rng.normal(size=15 if request.param == 1 else (15, request.param))
    K = kernels.rbf(1.0)(X, X)
    audit = leakscope.audit(X, y, model=lood.Process(kernels.rbf(1.0), 0.2))
    return K, y, audit


def check(audit, draws=2000):
    found = check_audit(audit, audit.examined, records=2, record_ids=(0, 7), count=draws, seed=3)
    return found.checks


def test_draws_have_the_posterior_law(problem):
    """Against the textbook formulas, on a query that was not trained on."""
    K, y, audit = problem
    train = list(range(10))
    process = audit.examined.process
    found = posterior_draws(
        process, prior_root(K), np.array(train), np.array([12]), 40_000, as_key(1)
    )[:, :, 0].T
    M = K[:10, :10] + 0.2 * np.eye(10)
    mean = K[12, :10] @ np.linalg.solve(M, y[:10].reshape(10, -1))
    variance = K[12, 12] - K[12, :10] @ np.linalg.solve(M, K[:10, 12])
    stderr = np.sqrt(variance / 40_000)
    assert (np.abs(found.mean(axis=0) - mean) < 4 * stderr).all()
    spread = found.var(axis=0, ddof=1)
    assert (np.abs(spread - variance) < 4 * variance * np.sqrt(2 / 40_000)).all()


def test_right_laws_agree_and_wrong_ones_differ(problem):
    _, y, audit = problem
    right = check(audit)
    assert counted(right)["agrees"] == len(right) == 4 * (1 + (1 if y.ndim == 1 else 3))
    columns = audit.table.columns
    wrong = {
        **columns,
        "mean_without": columns["mean_with"],
        "sd_without": np.sqrt(1.5) * columns["sd_without"],
    }
    found = check(audit.model_copy(update={"table": Table(wrong, audit.order)}))
    differing = {c.law for c in found if c.verdict(threshold_for(len(found))) == "differs"}
    assert differing == {"record 0, without it", "record 7, without it"}


def test_false_alarms_are_as_rare_as_promised():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(1000):
        z = rng.normal(size=20)
        checks = [NumberCheck("a", "mean", 0.0, float(value), 1.0, 1.0) for value in z]
        alarms += counted(checks)["differs"] > 0
    # One in a hundred; the count is binomial.
    assert alarms <= 10 + 4 * np.sqrt(10)


def test_a_score_of_few_answers_has_the_tail_of_a_normal():
    """Beyond 2.576 lies one in a hundred, of means and spreads of six numbers too."""
    rng = np.random.default_rng(0)
    found = rng.normal(size=(3000, 6))
    mean, spread = found.mean(axis=1), found.std(axis=1, ddof=1)
    plain = np.mean(np.abs(mean / (spread / 6**0.5)) > 2.576)
    means = [mean_score(m, s / 6**0.5, 5.0) for m, s in zip(mean, spread, strict=True)]
    spreads = [spread_score(1.0, s, 5.0) for s in spread]
    assert plain > 0.03
    for scores in (np.array(means), np.array(spreads)):
        assert abs(np.mean(np.abs(scores) > 2.576) - 0.01) < 4 * np.sqrt(0.01 / 3000)
    assert (np.sign(means) == np.sign(mean)).all()
    assert spread_score(1.0, 0.0, 5.0) == -np.inf


def test_words():
    check = NumberCheck("law", "mean", predicted=0.0, measured=0.1, stderr=1.0, resolution=0.5)
    assert check.verdict() == "inconclusive"
    assert NumberCheck("law", "mean", 0.0, 9.0, 1.0, 0.5).verdict() == "differs"
    assert NumberCheck("law", "mean", float("nan"), 9.0, 1.0, 5.0).verdict() == "inconclusive"
    assert NumberCheck("law", "mean", 1.0, 1.0, 0.0, 0.0).verdict() == "agrees"
    assert NumberCheck("law", "mean", 1.0, 2.0, 0.0, 0.0).z == np.inf


def test_too_few_draws_are_refused(problem):
    with pytest.raises(InputError, match="at least 100 draws"):
        check(problem[2], draws=3)
