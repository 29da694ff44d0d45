"""The noise sweep and the choice of the noise, against recomputation and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, rankdata

from leakscope import InputError, kernels, lood
from leakscope.lood.noise import choose_noise, sweep_noise


@pytest.fixture(params=[1, 3])
def problem(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(150, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=150)
    if request.param > 1:
        y = np.column_stack([y, rng.normal(size=(150, 2))])
    return kernels.rbf(1.0)(X), y


def test_the_sweep_is_five_audits(problem):
    K, y = problem
    sweep = sweep_noise(lambda s2: lood.all_records(K, y, noise_variance=s2), 0.02)
    np.testing.assert_allclose(sweep.noise_variances, 0.02 * 10.0 ** np.linspace(-1, 1, 5))
    for level, kl, ranks in zip(sweep.noise_variances, sweep.kl, sweep.ranks, strict=True):
        alone = lood.all_records(K, y, noise_variance=float(level)).kl
        np.testing.assert_allclose(kl, alone, rtol=1e-12)
        np.testing.assert_array_equal(ranks, rankdata(-alone, method="ordinal"))


def test_a_level_that_cannot_be_factorised_is_left_out():
    def laws_at(level):
        return lood.all_records(np.ones((3, 3)), np.array([1.0, 2.0, 3.0]), noise_variance=level)

    assert 1 <= len(sweep_noise(laws_at, 1e-15).noise_variances) < 5
    with pytest.raises(InputError, match="not positive definite"):
        sweep_noise(laws_at, 1e-17)


def log_marginal(K, y, noise, scale=1.0):
    matrix = scale * K + noise * np.eye(len(K))
    columns = y.reshape(len(y), -1).T
    return sum(multivariate_normal(np.zeros(len(K)), matrix).logpdf(c) for c in columns) / y.size


def log_leave_one_out(K, y, noise, scale=1.0):
    laws = lood.all_records(scale * K, y, noise_variance=noise)
    spread = np.sqrt(laws.variance_without + noise)
    spread = spread if y.ndim == 1 else spread[:, None]
    return float(np.mean(norm.logpdf(y, laws.mean_without, spread)))


SCORES = {"marginal_likelihood": log_marginal, "leave_one_out": log_leave_one_out}


@pytest.mark.parametrize("criterion", SCORES)
def test_the_choice_is_a_maximum_of_its_own_score(problem, criterion):
    K, y = problem
    choice = choose_noise(K, y, criterion=criterion)
    score = SCORES[criterion]
    best = score(K, y, choice.noise_variance)
    assert choice.score == pytest.approx(best, rel=1e-8)
    assert not choice.at_bound
    for factor in (0.9, 1.1):
        assert score(K, y, factor * choice.noise_variance) < best


def test_pure_noise_is_at_the_end_of_the_range():
    y = 1e6 * np.random.default_rng(0).normal(size=30)
    choice = choose_noise(np.eye(30) + 0.5, y)
    assert choice.at_bound


def test_refusals():
    with pytest.raises(InputError, match="must be one of marginal_likelihood, leave_one_out"):
        choose_noise(np.eye(3), np.zeros(3), criterion="guess")
