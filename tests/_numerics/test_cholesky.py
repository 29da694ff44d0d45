from __future__ import annotations

import numpy as np
import pytest

from leakscope._numerics import cholesky


@pytest.fixture(params=[1, 7, 128, 129, 300])
def matrix(request):
    rng = np.random.default_rng(request.param)
    root = rng.normal(size=(request.param, request.param + 3))
    return root @ root.T + 0.5 * np.eye(request.param)


def test_everything_read_off_one_factor(matrix):
    inverse = np.linalg.inv(matrix)
    factor = cholesky.factorise(matrix)
    right = np.random.default_rng(0).normal(size=(len(matrix), 2))
    np.testing.assert_allclose(cholesky.solve(factor, right), inverse @ right, rtol=1e-7, atol=1e-9)
    assert cholesky.solve(factor, right[:, 0]).shape == (len(matrix),)
    half = cholesky.inverse_factor(factor)
    np.testing.assert_allclose(half.inverse_diagonal(), np.diagonal(inverse), rtol=1e-8)
    np.testing.assert_array_equal(np.triu(half.packed, 1), np.triu(matrix, 1))
    whole = cholesky.inverse(half).full()
    np.testing.assert_allclose(whole, inverse, rtol=1e-7, atol=1e-9)
    packed = cholesky.inverse(factor)
    np.testing.assert_allclose(packed.diagonal(), np.diagonal(inverse), rtol=1e-8)


def test_the_callers_matrix_is_kept(matrix):
    before = matrix.copy()
    factor = cholesky.factorise(matrix)
    packed = factor.packed.copy()
    cholesky.inverse(cholesky.inverse_factor(factor))
    cholesky.inverse(factor)
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_array_equal(factor.packed, packed)


def test_overwriting_uses_no_second_array():
    matrix = np.eye(50)
    factor = cholesky.factorise(matrix, overwrite=True)
    assert np.shares_memory(factor.packed, matrix)
    assert np.shares_memory(cholesky.inverse(factor, overwrite=True).packed, matrix)


def test_indefinite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="order 2"):
        cholesky.factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))
