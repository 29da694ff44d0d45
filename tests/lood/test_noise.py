"""The noise sweep and the choice of the noise, against recomputation and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, rankdata

from leakscope import InputError, kernels, lood
from leakscope.lood.features import feature_sums
from leakscope.lood.noise import choose_noise, choose_noise_of_sums, sweep_noise


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
    sweep = sweep_noise(K, y, noise_variance=0.02)
    np.testing.assert_allclose(sweep.noise_variances, 0.02 * 10.0 ** np.linspace(-1, 1, 5))
    for level, kl, ranks in zip(sweep.noise_variances, sweep.kl, sweep.ranks, strict=True):
        alone = lood.all_records(K, y, noise_variance=float(level)).kl
        np.testing.assert_allclose(kl, alone, rtol=1e-12)
        np.testing.assert_array_equal(ranks, rankdata(-alone, method="ordinal"))
    np.testing.assert_array_equal(sweep.rank_low, sweep.ranks.min(axis=0))
    np.testing.assert_array_equal(sweep.rank_high, sweep.ranks.max(axis=0))
    assert (sweep.rank_high > sweep.rank_low).any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_sweep_goes_on_in_the_memory_of_the_audit(problem, order):
    K, y = problem
    expected = sweep_noise(K, y, noise_variance=0.02)
    matrix = np.array(K, order=order)
    known = lood.all_records(matrix, y, noise_variance=0.02, overwrite=True)
    assert not np.array_equal(matrix, K)
    found = sweep_noise(
        matrix, y, noise_variance=0.02, known=known, prior=np.ones(len(K)), overwrite=True
    )
    np.testing.assert_array_equal(found.ranks, expected.ranks)
    np.testing.assert_allclose(found.kl, expected.kl, rtol=1e-12)


def test_a_level_that_cannot_be_factorised_is_left_out():
    K = np.ones((3, 3))
    sweep = sweep_noise(K, np.array([1.0, 2.0, 3.0]), noise_variance=1e-15)
    assert sweep.refused
    assert len(sweep.noise_variances) + len(sweep.refused) == 5
    with pytest.raises(InputError, match="not positive definite"):
        sweep_noise(K, np.zeros(3), noise_variance=1e-17)


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
@pytest.mark.parametrize("fit_scale", [False, True])
def test_the_choice_is_a_maximum_of_its_own_score(problem, criterion, fit_scale):
    K, y = problem
    choice = choose_noise(K, y, criterion=criterion, fit_scale=fit_scale)
    score = SCORES[criterion]
    best = score(K, y, choice.noise_variance, choice.kernel_scale)
    assert choice.score == pytest.approx(best, rel=1e-8)
    assert not choice.at_bound
    for factor in (0.9, 1.1):
        assert score(K, y, factor * choice.noise_variance, choice.kernel_scale) < best
        if fit_scale:
            assert score(K, y, choice.noise_variance, factor * choice.kernel_scale) < best
    assert (choice.kernel_scale == 1.0) == (not fit_scale)


def test_against_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, size=(80, 1))
    y = 2.0 * np.sin(X[:, 0]) + 0.2 * rng.normal(size=80)
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(1.0, "fixed") + WhiteKernel(1.0, (1e-6, 1e2))
    fitted = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0).fit(X, y)
    choice = choose_noise(kernels.rbf(1.0)(X), y, fit_scale=True)
    assert choice.noise_variance == pytest.approx(fitted.kernel_.k2.noise_level, rel=1e-3)
    assert choice.kernel_scale == pytest.approx(fitted.kernel_.k1.k1.constant_value, rel=1e-2)


@pytest.mark.parametrize("outputs", [1, 3])
def test_of_sums_it_is_the_choice_of_the_whole_matrix(outputs):
    rng = np.random.default_rng(4)
    phi = rng.normal(size=(300, 6)) * [1.0, 3.0, 0.1, 1.0, 1.0, 0.0]
    y = phi @ rng.normal(size=(6, outputs)) + 0.4 * rng.normal(size=(300, outputs))
    sums = feature_sums(phi[:100], y[:100]) + feature_sums(phi[100:], y[100:])
    found = choose_noise_of_sums(sums)
    known = choose_noise(phi @ phi.T, y, criterion="marginal_likelihood")
    assert found.noise_variance == pytest.approx(known.noise_variance, rel=1e-5)
    assert found.score == pytest.approx(known.score, rel=1e-10)
    assert found.criterion == known.criterion


def test_pure_noise_is_at_the_end_of_the_range():
    y = 1e6 * np.random.default_rng(0).normal(size=30)
    choice = choose_noise(np.eye(30) + 0.5, y)
    assert choice.at_bound
    assert "at the end of the range" in choice.sentence()


def test_refusals():
    with pytest.raises(InputError, match="must be one of marginal_likelihood, leave_one_out"):
        choose_noise(np.eye(3), np.zeros(3), criterion="guess")
    with pytest.raises(InputError, match="all zero"):
        choose_noise(np.eye(3), np.zeros(3), fit_scale=True)
