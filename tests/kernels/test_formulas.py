"""Matérn and linear kernels."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leakscope import InputError, kernels
from leakscope.kernels.formulas import median_length_scale

ROWS = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.floats(-20, 20, allow_nan=False, width=32),
)


def matern_by_definition(distance, nu, length_scale):
    if distance == 0:
        return 1.0
    t = mpmath.sqrt(2 * nu) * distance / length_scale
    return float(2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * t**nu * mpmath.besselk(nu, t))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.3, 3.7, 20.0])
def test_matern_equals_its_definition(nu):
    X = np.array([[0.0], [1e-9], [1e-3], [0.4], [1.0], [3.0], [20.0]])
    got = kernels.matern(nu, 1.7, 2.0)(X)
    expected = [
        [2.0 * matern_by_definition(float(abs(a - b)), nu, 1.7) for b in X[:, 0]] for a in X[:, 0]
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@settings(deadline=None)
@given(X=ROWS, nu=st.sampled_from((0.5, 1.5, 2.5, 1.1)))
def test_matern_symmetric_with_an_exact_diagonal(X, nu):
    k = kernels.matern(nu, 1.3, 0.7)
    matrix = k(X)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diagonal(matrix), k.diagonal(X))
    np.testing.assert_allclose(k(X, X), matrix, rtol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9


def test_matern_far_from_the_origin():
    X = np.random.default_rng(1).normal(size=(300, 3))
    near, far = kernels.matern(0.5, 1.0)(X), kernels.matern(0.5, 1.0)(X + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-8)


def test_a_smooth_matern_is_nearly_squared_exponential():
    X = np.random.default_rng(2).normal(size=(6, 2))
    np.testing.assert_allclose(kernels.matern(20.0, 2.0)(X), kernels.rbf(2.0)(X), atol=2e-2)


def test_matern_resolves_as_rbf_does():
    X = np.random.default_rng(3).normal(size=(20, 2))
    assert kernels.matern().resolved(X).length_scale == median_length_scale(X)
    assert kernels.matern(length_scale=1.0).resolved(X).length_scale == 1.0
    assert kernels.matern(2.5, 1.0).describe()["nu"] == 2.5


@settings(deadline=None)
@given(X=ROWS, bias=st.floats(0, 2))
def test_linear_equals_its_definition(X, bias):
    k = kernels.linear(1.5, bias)
    np.testing.assert_allclose(k(X), 1.5 * X @ X.T + bias, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.diagonal(k(X)), k.diagonal(X))
    divided = kernels.linear(1.5, bias, divide_by_features=True)
    identity = kernels.sequential(kernels.dense(1.5, bias))
    np.testing.assert_allclose(divided(X, X), identity(X, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kernels.matern(-1.0), "nu must be positive"),
        (lambda: kernels.matern(30.0), "at most 20"),
        (lambda: kernels.matern(1.5, 0.0), "length_scale must be positive"),
        (lambda: kernels.matern()([[1.0]]), "length_scale is not set"),
        (lambda: kernels.matern(1.5, 1.0)([[1.0]], [[1.0, 2.0]]), "must have the same"),
        (lambda: kernels.linear(0.0), "weight_variance must be positive"),
        (lambda: kernels.linear(1.0, -1.0), "bias_variance must be zero or more"),
        (lambda: kernels.linear()([[np.nan]]), "not finite in row 0"),
        (lambda: kernels.linear()(np.ones((2, 2, 2))), "two dimensions"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
