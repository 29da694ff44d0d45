"""Many noise levels from one eigendecomposition, against audits at each and against refitting."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import refit

from leakscope import InputError, kernels, lood

LEVELS = 10.0 ** np.linspace(-4, 3, 8)


@pytest.fixture(params=[1, 3])
def problem(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(120, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=120)
    if request.param > 1:
        y = np.column_stack([y, rng.normal(size=(120, 2))])
    return kernels.rbf(1.5)(X), y


def test_every_level_is_an_audit(problem):
    K, y = problem
    for level, laws in zip(LEVELS, lood.noise_path(K, y, noise_variances=LEVELS), strict=True):
        alone = lood.all_records(K, y, noise_variance=float(level))
        np.testing.assert_allclose(laws.kl, alone.kl, rtol=1e-6)
        for name in ("mean_without", "mean_with", "variance_without", "variance_with", "leverage"):
            np.testing.assert_allclose(
                getattr(laws, name), getattr(alone, name), rtol=1e-7, atol=1e-10
            )
        assert laws.noise_variance == level


def test_against_refitting(problem):
    K, y = problem
    records = [0, 17, 119]
    for level in (1e-3, 0.1, 30.0):
        (laws,) = lood.noise_path(K, y, noise_variances=[level])
        expected = refit(K, y, level, np.longdouble, records)
        np.testing.assert_allclose(
            laws.mean_without[records], expected.mean_without.astype(float), rtol=1e-9, atol=1e-11
        )
        np.testing.assert_allclose(
            laws.variance_without[records], expected.variance_without.astype(float), rtol=1e-9
        )
        np.testing.assert_allclose(laws.kl[records], expected.kl().astype(float), rtol=1e-8)


def test_repeated_records_and_a_kernel_of_low_rank():
    X = np.array([[1.0], [1.0], [2.0], [-1.0]])
    (laws,) = lood.noise_path(X @ X.T, np.ones(4), noise_variances=[0.5])
    alone = lood.all_records(X @ X.T, np.ones(4), noise_variance=0.5)
    np.testing.assert_allclose(laws.kl, alone.kl, rtol=1e-12)


@pytest.mark.parametrize(
    ("levels", "told"), [([0.1, 0.0], "positive"), ([], "list"), ([[1.0]], "list")]
)
def test_bad_levels_are_refused_before_anything_is_computed(levels, told):
    with pytest.raises(InputError, match=told):
        lood.noise_path(np.eye(2), np.ones(2), noise_variances=levels)
