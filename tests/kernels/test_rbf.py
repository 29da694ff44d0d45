from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leakscope import InputError, kernels
from leakscope.kernels.formulas import median_length_scale

ROWS = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 4)),
    elements=st.floats(-50, 50, allow_nan=False, width=32),
)


def by_definition(X, Z, length_scale, variance):
    squared = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(-1)
    return variance * np.exp(-squared / (2 * length_scale**2))


@given(X=ROWS, length_scale=st.floats(0.1, 30), variance=st.floats(0.1, 10))
def test_equals_its_definition(X, length_scale, variance):
    kernel = kernels.rbf(length_scale, variance)
    # What is lost is lost in ||x||^2 + ||z||^2 - 2 x.z.
    tolerance = 20 * np.finfo(float).eps * variance * (1 + np.ptp(X) ** 2 / length_scale**2)
    np.testing.assert_allclose(
        kernel(X), by_definition(X, X, length_scale, variance), rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        kernel(X, X[::-1]),
        by_definition(X, X[::-1], length_scale, variance),
        rtol=0,
        atol=tolerance,
    )


@given(X=ROWS, variance=st.floats(0.1, 10))
def test_symmetric_with_an_exact_diagonal(X, variance):
    matrix = kernels.rbf(2.0, variance)(X)
    assert np.array_equal(matrix, matrix.T)
    assert np.all(np.diagonal(matrix) == variance)
    assert np.array_equal(kernels.rbf(2.0, variance).diagonal(X), np.diagonal(matrix))


def test_symmetric_beyond_one_block():
    matrix = kernels.rbf(3.0)(np.random.default_rng(0).normal(size=(700, 5)))
    assert np.array_equal(matrix, matrix.T)


def test_far_from_the_origin_nothing_cancels():
    X = np.random.default_rng(1).normal(size=(30, 3))
    near, far = kernels.rbf(1.0)(X), kernels.rbf(1.0)(X + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-8)


def test_median_heuristic_is_the_median_distance_and_is_recorded():
    X = [[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]
    resolved = kernels.rbf().resolved(X)
    assert resolved.length_scale == pytest.approx(np.median([5.0, 1.0, np.hypot(3, 3)]))
    assert resolved.describe()["length_scale"] == resolved.length_scale
    assert kernels.rbf(2.0).resolved(X) == kernels.rbf(2.0)


def test_median_heuristic_on_a_subsample_is_close_and_repeats():
    X = np.random.default_rng(2).normal(size=(3000, 4))
    whole = median_length_scale(X, max_rows=3000)
    part = median_length_scale(X, max_rows=500)
    assert part == median_length_scale(X, max_rows=500)
    assert part == pytest.approx(whole, rel=0.02)


def test_duplicates_do_not_make_the_length_scale_zero():
    X = np.zeros((50, 2))
    X[0] = [3.0, 4.0]
    assert median_length_scale(X) == 5.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kernels.rbf(-1.0), "length_scale must be positive and finite, but it is -1.0"),
        # a result whose variance was taken out says so when it is opened
        (lambda: kernels.rbf(1.0, None), "variance must be positive and finite, but it is None"),
        (lambda: kernels.matern(None), "nu must be positive"),  # type: ignore[arg-type]
        (lambda: kernels.rbf(float("nan")), "length_scale must be positive"),
        (lambda: kernels.rbf(1.0, 0.0), "variance must be positive"),
        (lambda: kernels.rbf()([[0.0]]), "length_scale is not set"),
        (lambda: kernels.rbf(1.0)([1.0, 2.0]), "two dimensions"),
        (lambda: kernels.rbf(1.0)([[1.0]], [[1.0, 2.0]]), "must have the same"),
        (lambda: median_length_scale(np.ones((5, 2))), "all equal"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_length_scale_whose_square_is_beyond_float64() -> None:
    """Found by fuzzing: an OverflowError."""
    matrix = kernels.rbf(1e200)(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(matrix, np.ones((2, 2)))
