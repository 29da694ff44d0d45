"""How network kernels behave: exact where they can be, block by block, and never a NaN."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leakscope import InputError, kernels
from leakscope.kernels import network_matrix

conv, dense, flatten = kernels.conv, kernels.dense, kernels.flatten
relu = kernels.activation("relu")


def small_conv(end=None, **options):
    return kernels.sequential(conv(2), relu, end or flatten(), dense(), **options)


def test_the_recursion_written_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 9))
    weight, bias = 1.4, 0.3
    K = weight * X @ X.T / 9 + bias
    for _ in range(3):
        d = np.sqrt(np.diagonal(K))
        c = np.clip(K / np.outer(d, d), -1, 1)
        t = np.arccos(c)
        K = weight * np.outer(d, d) * (np.sin(t) + (np.pi - t) * c) / (2 * np.pi) + bias
    np.testing.assert_allclose(kernels.nngp(3, "relu", weight, bias)(X), K, rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(
    X=arrays(np.float64, (5, 3), elements=st.floats(-20, 20, width=32)),
    name=st.sampled_from(("relu", "gelu", "erf", "sin", "identity")),
    bias=st.sampled_from((0.0, 0.3)),
)
def test_symmetric_finite_exact_diagonal_and_positive(X, name, bias):
    X[1], X[2] = X[0], 0.0
    k = kernels.nngp(2, name, 1.5, bias)
    K = k(X)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), k.diagonal(X))
    scale = np.abs(K).max()
    np.testing.assert_allclose(K[0], K[1], rtol=1e-12, atol=1e-13 * scale)
    np.testing.assert_allclose(k(X, X), K, rtol=1e-12, atol=1e-13 * scale)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * scale * len(K)


@pytest.mark.parametrize("name", ["tanh", "elu"])
def test_integrated_activations_at_zero_equal_and_constant_rows(name):
    X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [3.0, 0.0]])
    k = kernels.nngp(2, name)
    K = k(X)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K[1], K[2], rtol=1e-8)
    np.testing.assert_allclose(K[1, 2], k.diagonal(X)[1], rtol=1e-8)
    assert abs(K[0]).max() == pytest.approx(0.0, abs=1e-8 * K.max())


def test_a_function_of_ones_own_is_integrated():
    import jax.numpy as jnp

    X = np.random.default_rng(1).normal(size=(4, 3))
    same = kernels.nngp(2, lambda x: jnp.maximum(x, 0.0))
    # a kink: five digits, also beside correlations of one
    np.testing.assert_allclose(same(X), kernels.nngp(2, "relu")(X), rtol=1e-5)
    assert kernels.nngp(1, jnp.cos).describe()["activation"] == "cos"


def test_images_of_zeros_and_equal_images():
    images = np.zeros((3, 4, 4, 2))
    images[1:] = 1.0
    for end in (flatten(), kernels.global_average_pool()):
        k = small_conv(end)
        K = k(images)
        assert np.isfinite(K).all()
        np.testing.assert_allclose(K[1], K[2], rtol=1e-14)
        np.testing.assert_array_equal(np.diagonal(K), k.diagonal(images))


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(2)
    X, images = rng.normal(size=(45, 4)), rng.normal(size=(11, 3, 3, 2))
    cases = [
        (kernels.nngp(2), X),
        (small_conv(), images),
        (small_conv(kernels.global_average_pool()), images),
    ]
    whole = [(k(A), k(A, A[:7]), k.diagonal(A)) for k, A in cases]
    monkeypatch.setattr(network_matrix, "DENSE_BLOCK", 16)
    monkeypatch.setattr(network_matrix, "IMAGE_BLOCK_BYTES", 9 * 8 * 16)
    monkeypatch.setattr(network_matrix, "PAIRS_BLOCK_BYTES", 81 * 8 * 9)
    for (k, A), (square, across, own) in zip(cases, whole, strict=True):
        K = k(A)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, square, rtol=1e-13)
        np.testing.assert_allclose(k(A, A[:7]), across, rtol=1e-13)
        np.testing.assert_allclose(k.diagonal(A), own, rtol=1e-13)


def test_the_users_configuration_is_left_alone():
    before = jax.config.jax_enable_x64
    X = np.random.default_rng(7).normal(size=(30, 4))
    k = kernels.nngp(2)
    expected = k(X)
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.zeros(1).dtype == (np.float64 if before else np.float32)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: (k(X), jax.numpy.zeros(1).dtype), range(12)))
    for matrix, dtype in results:
        np.testing.assert_array_equal(matrix, expected)
        assert dtype == (np.float64 if before else np.float32)
    with pytest.raises(InputError):
        k(np.full((2, 2), np.nan))
    assert jax.config.jax_enable_x64 == before


def test_jax_waits_until_it_is_needed():
    program = (
        "import json, sys; from leakscope import kernels;"
        "k = kernels.nngp(); first = 'jax' in sys.modules; k([[1.0]]);"
        "print(json.dumps([first, 'jax' in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [False, True]


def test_rows_and_images_are_the_same_records():
    images = np.random.default_rng(8).normal(size=(3, 4, 5, 2))
    expected = small_conv()(images)
    np.testing.assert_array_equal(
        small_conv(input_shape=(4, 5, 2))(images.reshape(3, -1)), expected
    )


def test_flattened_at_once_is_a_dense_network():
    images = np.random.default_rng(9).normal(size=(3, 4, 5, 2))
    k = kernels.sequential(flatten(), dense(), relu, dense())
    expected = kernels.nngp(1)(images.reshape(3, -1))
    np.testing.assert_allclose(k(images), expected, rtol=1e-15)
    np.testing.assert_allclose(k(images.reshape(3, -1)), expected, rtol=1e-15)


def test_a_whole_image_filter_is_a_dense_layer():
    images = np.random.default_rng(10).normal(size=(3, 4, 4, 2))
    k = kernels.sequential(conv(4, padding="valid"), relu, flatten(), dense())
    np.testing.assert_allclose(k(images), kernels.nngp(1)(images.reshape(3, -1)), rtol=1e-13)


def test_descriptions_are_ready_for_json():
    assert kernels.nngp(5, "gelu", 1.5, 0.1).describe() == {
        "name": "nngp",
        "depth": 5,
        "activation": "gelu",
        "weight_variance": 1.5,
        "bias_variance": 0.1,
    }
    norm = kernels.sequential(dense(), kernels.layer_norm(), kernels.residual(relu, dense()))
    text = json.dumps([norm.describe(), small_conv().describe()])
    assert '"layer": "LayerNorm"' in text
    assert isinstance(norm, kernels.Kernel)
    assert norm.resolved(np.ones((2, 2))) is norm


def test_what_does_not_fit_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 2**29)
    with pytest.raises(InputError, match=r"matrix of 2 by 2 records needs .* of memory"):
        small_conv(kernels.global_average_pool())(np.zeros((2, 256, 256, 1)))
    with pytest.raises(InputError, match="40000 by 40000"):
        kernels.nngp()(np.zeros((40000, 1)))


REFUSED = {
    "depth": lambda: kernels.nngp(0),
    "rulu": lambda: kernels.nngp(2, "rulu"),
    "a name or a function": lambda: kernels.nngp(2, 3),
    "weight_variance": lambda: kernels.nngp(2, weight_variance=-1.0),
    "bias_variance": lambda: kernels.nngp(2, bias_variance=-1.0),
    "row 0": lambda: kernels.nngp()([[1.0, np.inf], [1.0, 2.0]]),
    "array of numbers": lambda: kernels.nngp()([["a"]]),
    "two dimensions": lambda: kernels.nngp()([1.0]),
    "2 dimensions": lambda: kernels.nngp()(np.ones((2, 2, 2))),
    "empty": lambda: kernels.nngp()(np.ones((0, 2))),
    "the same": lambda: kernels.nngp()([[1.0]], [[1.0, 2.0]]),
    "4 dimensions": lambda: small_conv()(np.ones((2, 3))),
    "4 features": lambda: small_conv(input_shape=(2, 2, 1))(np.ones((2, 3))),
    "at least one layer": kernels.sequential,
    "needs weights": lambda: kernels.sequential(relu, dense()),
    "end with weights": lambda: kernels.sequential(dense(), relu),
    "has pixels": lambda: kernels.sequential(conv(2), relu, dense()),
    "no pixels left": lambda: kernels.sequential(flatten(), dense(), conv(2)),
    "directly before": lambda: kernels.sequential(dense(), relu, kernels.layer_norm(), dense()),
    "branch": lambda: kernels.sequential(dense(), kernels.residual(dense(), relu), dense()),
    "not a layer": lambda: kernels.sequential(dense(), "relu"),
    "whole numbers": lambda: conv(0),
    "padding": lambda: conv(2, padding="some"),
    "epsilon": lambda: kernels.layer_norm(0.0),
    "does not fit": lambda: kernels.sequential(
        conv(3), kernels.average_pool(9), flatten(), dense()
    )(np.ones((2, 3, 3, 1))),
    "different sizes": lambda: kernels.sequential(
        conv(1), kernels.residual(conv(3, strides=2)), flatten(), dense()
    )(np.ones((2, 4, 4, 1))),
}


@pytest.mark.parametrize("token", REFUSED)
def test_refusals(token):
    with pytest.raises(InputError, match=token):
        REFUSED[token]()
