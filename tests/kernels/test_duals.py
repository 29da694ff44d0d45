"""Expectations over two normal variables, against an independent quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.special import erf, ndtr

from leakscope._numerics.x64 import double_precision
from leakscope.kernels import duals
from leakscope.kernels.duals import arccos, arcsin
from leakscope.kernels.layers import Activation

FUNCTIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: x * ndtr(x),
    "erf": erf,
    "sin": np.sin,
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
}
SLOPES = {
    "identity": np.ones_like,
    "relu": lambda x: (x > 0) * 1.0,
    "gelu": lambda x: ndtr(x) + x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi),
    "erf": lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x),
    "sin": np.cos,
    "tanh": lambda x: 1 / np.cosh(x) ** 2,
    "elu": lambda x: np.where(x > 0, 1.0, np.exp(np.minimum(x, 0.0))),
}
POINTS = [
    (1.0, 1.0, 0.3),
    (0.4, 2.5, 0.9),
    (2.0, 0.7, -0.8),
    (4.0, 4.0, 0.999),
    (1e-4, 3.0, 0.5),
    (6.0, 1e-3, -0.2),
]


# ELU has a kink in its slope, whose expectation is known to fewer digits near a correlation of one.
DIGITS = {"elu": 3e-5}


def half_lines(breaks, reach=9.5, count=160):
    """Gauss-Legendre nodes on [-reach, breaks] and [breaks, reach], many at once."""
    x, w = np.polynomial.legendre.leggauss(count)
    inside = np.clip(breaks, -reach, reach)[..., None]
    left = 0.5 * (inside + reach)
    right = 0.5 * (reach - inside)
    nodes = np.concatenate([inside - left * (1 - x), inside + right * (1 + x)], axis=-1)
    return nodes, np.concatenate([left * w, right * w], axis=-1)


def by_quadrature(f, q1, q2, rho):
    """E f(u) f(v) in the coordinates of a Cholesky factor, cut where u and where v change sign."""
    z, w = half_lines(np.array(0.0))
    s = np.sqrt(1.0 - rho**2)
    y, wy = half_lines(-rho * z / s)
    inner = (f(np.sqrt(q2) * (rho * z[:, None] + s * y)) * np.exp(-0.5 * y * y) * wy).sum(-1)
    return (f(np.sqrt(q1) * z) * inner * np.exp(-0.5 * z * z) * w).sum() / (2 * np.pi)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_formulas_and_integrals(name):
    with double_precision():
        for q1, q2, rho in POINTS:
            k = rho * np.sqrt(q1 * q2)
            arguments = [jnp.asarray(a) for a in (k, q1, q2)]
            for function, ours in ((FUNCTIONS, duals.covariance), (SLOPES, duals.derivative)):
                expected = by_quadrature(function[name], q1, q2, rho)
                got = float(ours(Activation(name), *arguments))
                assert got == pytest.approx(expected, rel=DIGITS.get(name, 1e-9), abs=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_variances_are_covariances_at_equal_inputs(name):
    q = np.array([1e-6, 0.1, 1.0, 7.0])
    with double_precision():
        for whole, own in (
            (duals.covariance, duals.variance),
            (duals.derivative, duals.derivative_variance),
        ):
            np.testing.assert_allclose(
                own(Activation(name), jnp.asarray(q)),
                whole(Activation(name), q, q, q),
                rtol=DIGITS.get(name, 1e-9),
            )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_price_and_derivatives_by_the_variances(name):
    phi, step = Activation(name), 1e-5
    with double_precision():
        gradient = jax.grad(lambda *a: duals.covariance(phi, *a), argnums=(0, 1, 2))
        for q1, q2, rho in POINTS[:4]:
            point = np.array([rho * np.sqrt(q1 * q2), q1, q2])
            got = np.array(gradient(*point))
            assert got[0] == pytest.approx(
                float(duals.derivative(phi, *point)), rel=DIGITS.get(name, 1e-9)
            )
            if rho > 0.99:
                continue  # a step in k would leave the cone
            for place in range(3):
                up, down = point.copy(), point.copy()
                up[place] += step
                down[place] -= step
                difference = duals.covariance(phi, *up) - duals.covariance(phi, *down)
                assert got[place] == pytest.approx(float(difference) / (2 * step), abs=2e-8)


def test_a_step_and_a_smooth_law():
    """tanh of an input of deviation 104, against an average over a fine grid."""
    z = np.linspace(-9.0, 9.0, 4001)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    q1, q2, rho = 10769.7, 2.3347, 0.4
    inner = np.tanh(np.sqrt(q2) * (rho * z[:, None] + np.sqrt(1 - rho**2) * z)) @ weight
    expected = (np.tanh(np.sqrt(q1) * z) * inner) @ weight
    with double_precision():
        arguments = (jnp.asarray(a) for a in (rho * np.sqrt(q1 * q2), q1, q2))
        assert float(duals.covariance(Activation("tanh"), *arguments)) == pytest.approx(
            expected, abs=1e-11
        )


def test_inverse_cosine_and_sine_to_the_last_digits():
    ends = [1.0, -1.0, 0.0, 0.5, -0.5, 1 - 1e-16, 1e-300]
    x = np.concatenate(
        [np.random.default_rng(0).uniform(-1, 1, 400), 1 - 10.0 ** -np.arange(16), ends]
    )
    with double_precision():
        for ours, exact in ((arccos, mpmath.acos), (arcsin, mpmath.asin)):
            expected = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
            np.testing.assert_allclose(ours(jnp.asarray(x)), expected, rtol=5e-16, atol=0)


def test_no_overflow_and_no_nan_anywhere():
    q = np.array([0.0, 1e-300, 1e-12, 1.0, 1e3, 1e12])
    q1, q2 = (a.ravel() for a in np.meshgrid(q, q))
    with double_precision():
        for name in FUNCTIONS:
            for rho in (-1.0, 0.0, 1.0, 1.0 + 1e-15):
                k = rho * np.sqrt(q1) * np.sqrt(q2)
                for function in (duals.covariance, duals.derivative):
                    values = np.asarray(function(Activation(name), *map(jnp.asarray, (k, q1, q2))))
                    assert np.isfinite(values).all(), (name, rho)
