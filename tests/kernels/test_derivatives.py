"""Derivatives by the inputs against differences in forty digits, also where inputs coincide."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from mpmath import acos, asin, exp, mp, mpf, pi, sin, sinh, sqrt

from leakscope import kernels
from leakscope._numerics.x64 import double_precision

DEPTH, WEIGHT, BIAS = 3, mpf("1.5"), mpf("0.25")


@pytest.fixture(autouse=True)
def _forty_digits():
    with mp.workdps(40):
        yield


def relu(k, q1, q2):
    r = sqrt(q1 * q2)
    c = k / r
    theta = acos(c if abs(c) < 1 else mpf(int(mp.sign(c))))
    return r * (sin(theta) + (pi - theta) * c) / (2 * pi)


def erf(k, q1, q2):
    return 2 / pi * asin(2 * k / sqrt((1 + 2 * q1) * (1 + 2 * q2)))


def gelu(k, q1, q2):
    p = (1 + q1) * (1 + q2)
    d = sqrt(p - k * k)
    return k / 4 + (k * asin(k / sqrt(p)) + (k * k + q1 * q2 * d * d) / (p * d)) / (2 * pi)


def sine(k, q1, q2):
    return exp(-(q1 + q2) / 2) * sinh(k)


FORMULAS = {"relu": relu, "erf": erf, "gelu": gelu, "sin": sine}


def in_many_digits(formula, x, z):
    def layer(value):
        return WEIGHT * value + BIAS

    k, q1, q2 = (
        layer(sum(a * b for a, b in zip(u, v, strict=True)) / len(x))
        for u, v in ((x, z), (x, x), (z, z))
    )
    for _ in range(DEPTH):
        k, q1, q2 = (
            layer(formula(*arguments)) for arguments in ((k, q1, q2), (q1, q1, q1), (q2, q2, q2))
        )
    return k


def gradient_in_many_digits(formula, x, z):
    step = mpf(10) ** -12
    result = []
    for place in range(len(x)):
        up, down = list(x), list(x)
        up[place] += step
        down[place] -= step
        difference = in_many_digits(formula, up, z) - in_many_digits(formula, down, z)
        result.append(float(difference / (2 * step)))
    return np.array(result)


X = np.array([0.3, -1.2, 0.7, 2.0])
OTHERS = {
    "far": np.array([1.0, 0.4, -0.5, 0.1]),
    "opposite": -X,
    "near": X + 1e-4 * np.array([1.0, -2.0, 0.5, 1.0]),
    "very near": X + 1e-9 * np.array([1.0, -2.0, 0.5, 1.0]),
    "equal": X.copy(),
    "parallel": 2.0 * X,
}


# Compiled once for each activation.
GRADIENTS = {
    name: jax.jit(
        jax.value_and_grad(
            kernels.nngp(DEPTH, name, float(WEIGHT), float(BIAS)).jax, argnums=(0, 1)
        )
    )
    for name in FORMULAS
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("where", OTHERS)
def test_gradient(name, where):
    z = OTHERS[where]
    with double_precision():
        value, (got, _) = GRADIENTS[name](X, z)
        _, (_, by_second) = GRADIENTS[name](z, X)
    exact = [[mpf(float(v)) for v in a] for a in (X, z)]
    assert float(value) == pytest.approx(float(in_many_digits(FORMULAS[name], *exact)), rel=1e-13)
    expected = gradient_in_many_digits(FORMULAS[name], *exact)
    # The angle of nearly equal inputs is only known to the root of the rounding.
    tolerance = 1e-7 if where in ("very near", "equal", "parallel") else 1e-10
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    np.testing.assert_allclose(by_second, got, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_without_bias_equal_inputs_have_half_the_gradient_of_the_diagonal():
    k = kernels.nngp(5)
    with double_precision():
        got = np.asarray(jax.grad(k.jax)(X, X))
        own = np.asarray(jax.grad(lambda x: k.jax(x, x))(X))
    # k(x, x) = 2 |x|^2 / d for ReLU with weight variance 2.
    np.testing.assert_allclose(own, 4.0 * X / 4, rtol=1e-7)
    np.testing.assert_allclose(got, 0.5 * own, rtol=1e-7)


@pytest.mark.parametrize("name", ["tanh", "elu"])
@pytest.mark.parametrize("where", ["far", "near", "equal"])
def test_integrated_activations_by_differences(name, where):
    k, z, step = kernels.nngp(2, name, 1.5, 0.25), OTHERS[where], 1e-4
    with double_precision():
        value = jax.jit(k.jax)
        got = jax.jit(jax.grad(k.jax))(X, z)
        expected = [
            float(value(X + step * e, z) - value(X - step * e, z)) / (2 * step) for e in np.eye(4)
        ]
    np.testing.assert_allclose(got, expected, atol=1e-5 if name == "elu" else 1e-7)


def test_gradients_are_finite_at_zero_and_constant_inputs():
    zero, one = np.zeros(4), np.ones(4)
    with double_precision():
        for name in ("relu", "gelu", "erf", "sin"):
            for x, z in ((zero, zero), (zero, one), (one, zero), (one, one)):
                for bias in (0.0, 0.1):
                    k = kernels.nngp(2, name, 2.0, bias)
                    assert np.isfinite(jax.grad(k.jax)(x, z)).all()


def test_convolutions_can_be_differentiated():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 4, 4, 2))
    act = kernels.activation("relu")
    for end in (kernels.flatten(), kernels.global_average_pool()):
        k = kernels.sequential(kernels.conv(3), act, kernels.conv(2), act, end, kernels.dense())
        with double_precision():
            value, gradient = jax.jit(k.jax), jax.jit(jax.grad(k.jax))
            for other in (z, x):
                direction = rng.normal(size=x.shape)
                slope = (
                    float(value(x + 1e-5 * direction, other) - value(x - 1e-5 * direction, other))
                    / 2e-5
                )
                assert float((gradient(x, other) * direction).sum()) == pytest.approx(
                    slope, rel=1e-6
                )


def test_the_same_numbers_as_the_matrix_and_batches():
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    k = kernels.nngp(2, "gelu", 1.3, 0.1)
    with double_precision():
        function = jax.jit(k.jax)
        whole = np.asarray(function(A, B))
        np.testing.assert_allclose(whole, k(A, B), rtol=1e-13)
        np.testing.assert_allclose(function(A[0], B), whole[0], rtol=1e-13)
        np.testing.assert_allclose(function(A, B[1]), whole[:, 1], rtol=1e-13)
        np.testing.assert_allclose(
            jax.jit(jax.vmap(k.jax))(A[:3], B), np.diagonal(whole), rtol=1e-13
        )
