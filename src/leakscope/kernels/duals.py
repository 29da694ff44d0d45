"""What an activation makes of a covariance: the expectation of phi(u) phi(v), as formulas.

u and v are jointly normal with mean zero, variances q1 and q2 and covariance k.  In the recursion
of the infinitely wide network (lood, Section 2 and App. G; Cho & Saul 2009; Lee et al. 2018) these
are the pre-activations of one unit at two inputs.  ``covariance`` is E[phi(u) phi(v)],
``derivative`` is E[phi'(u) phi'(v)] (the NTK's factor, and by Price's theorem the derivative of the
first with respect to k), and the two ``variance`` functions are the same at u = v.

All arguments are arrays that broadcast against each other.  The formulas are written so that
rounding cannot take a root of a negative number or divide by zero, and so that derivatives with
respect to the inputs are finite and right also where u = v.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from leakscope.errors import InputError
from leakscope.kernels import numerical_duals
from leakscope.kernels.activations import Activation
from leakscope.kernels.inverse_cosine import arccos, arcsin, floored


def covariance(phi: Activation, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi(u) phi(v)]."""
    match phi.name if phi.has_closed_form else None:
        case "identity":
            return k
        case "relu":
            return _piecewise_linear(0.0, k, q1, q2)
        case "leaky_relu":
            return _piecewise_linear(_alpha(phi), k, q1, q2)
        case "gelu":
            return _gelu(k, q1, q2)
        case "erf":
            return 2.0 / jnp.pi * arcsin(_erf_sine(k, q1, q2))
        case "sin":
            return _sin(k, q1, q2)
        case _:
            return numerical_duals.covariance(numerical_duals.function_of(phi), k, q1, q2)


def derivative(phi: Activation, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi'(u) phi'(v)]."""
    match phi.name if phi.has_closed_form else None:
        case "identity":
            return jnp.ones_like(k)
        case "relu":
            return _piecewise_constant(0.0, k, q1, q2)
        case "leaky_relu":
            return _piecewise_constant(_alpha(phi), k, q1, q2)
        case "gelu":
            return _gelu_derivative(k, q1, q2)
        case "erf":
            determinant = 1.0 + 2.0 * (q1 + q2) + 4.0 * _determinant(k, q1, q2)
            return 4.0 / jnp.pi / jnp.sqrt(determinant)
        case "sin":
            middle = 0.5 * (q1 + q2)
            return 0.5 * (jnp.exp(k - middle) + jnp.exp(-k - middle))
        case _:
            return numerical_duals.derivative(numerical_duals.function_of(phi), k, q1, q2)


def variance(phi: Activation, q: jax.Array) -> jax.Array:
    """E[phi(u)^2]."""
    match phi.name if phi.has_closed_form else None:
        case "identity":
            return q
        case "relu":
            return 0.5 * q
        case "leaky_relu":
            return 0.5 * (1.0 + _alpha(phi) ** 2) * q
        case "gelu":
            angle = arcsin(q / (1.0 + q))
            root = jnp.sqrt(1.0 + 2.0 * q)
            return q * (0.25 + (q / ((1.0 + q) * root) + 0.5 * angle) / jnp.pi)
        case "erf":
            return 2.0 / jnp.pi * arcsin(2.0 * q / (1.0 + 2.0 * q))
        case "sin":
            return -0.5 * jnp.expm1(-2.0 * q)
        case _:
            return numerical_duals.variance(numerical_duals.function_of(phi), q)


def derivative_variance(phi: Activation, q: jax.Array) -> jax.Array:
    """E[phi'(u)^2]."""
    match phi.name if phi.has_closed_form else None:
        case "identity":
            return jnp.ones_like(q)
        case "relu":
            return jnp.full_like(q, 0.5)
        case "leaky_relu":
            return jnp.full_like(q, 0.5 * (1.0 + _alpha(phi) ** 2))
        case "gelu" | "erf" | "sin":
            return derivative(phi, q, q, q)
        case _:
            return numerical_duals.derivative_variance(numerical_duals.function_of(phi), q)


def _alpha(phi: Activation) -> float:
    if phi.alpha is None:  # Activation fills it in
        raise InputError(f"{phi.name} needs a number for alpha.")
    return phi.alpha


def _determinant(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """q1 q2 - k^2, which rounding must not make negative."""
    value = q1 * q2 - k * k
    # Not maximum(), which would lose half the derivative at the tie u = v.
    return value + jax.lax.stop_gradient(jnp.where(value < 0.0, -value, 0.0))


def _inverse_root(q: jax.Array) -> jax.Array:
    """1/sqrt(q), and 0 at a row of zeros, whose correlation with anything is then 0."""
    positive = q > 0.0
    return jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, q, 1.0)), 0.0)


def _correlation(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """k / sqrt(q1 q2); a few units of rounding from the ends is at the end.

    Equal records then have angle zero, not the root of a rounding error.
    """
    cosine = k * _inverse_root(q1) * _inverse_root(q2)
    end = jnp.abs(cosine) > 1.0 - 8.0 * float(np.finfo(cosine.dtype).eps)
    return jnp.where(end, jnp.sign(cosine), cosine)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _piecewise_linear(alpha: float, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """phi(x) = x above zero, alpha x below: the arc-cosine kernel of order 1 (Cho & Saul 2009).

    With theta the angle between the inputs, E = ((1 + alpha^2)/2 - c theta) k + c r sin(theta),
    c = (1 - alpha)^2/(2 pi), r = sqrt(q1 q2).  Angle and sine come from one rounded cosine, so
    that near theta = 0 their errors cancel as theta^3 instead of showing as sqrt(eps).
    """
    r = jnp.sqrt(q1) * jnp.sqrt(q2)
    cosine = _correlation(k, q1, q2)
    sine = jnp.sqrt((1.0 - cosine) * (1.0 + cosine))
    bend = (1.0 - alpha) ** 2 / (2.0 * jnp.pi)
    slope = 0.5 * (1.0 + alpha**2) - bend * arccos(cosine)
    return r * (bend * sine + slope * cosine)


@_piecewise_linear.defjvp
def _piecewise_linear_jvp(
    alpha: float,
    primals: tuple[jax.Array, jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """dE/dk = E[phi' phi'] (Price); dE/dq1 = (E - k dE/dk)/(2 q1), phi being homogeneous."""
    k, q1, q2 = primals
    dk, dq1, dq2 = tangents
    cosine = _correlation(k, q1, q2)
    sine = jnp.sqrt(floored((1.0 - cosine) * (1.0 + cosine)))
    bend = (1.0 - alpha) ** 2 / (2.0 * jnp.pi)
    root1, root2 = jnp.sqrt(q1), jnp.sqrt(q2)
    by_q1 = 0.5 * bend * sine * root2 * _inverse_root(q1)
    by_q2 = 0.5 * bend * sine * root1 * _inverse_root(q2)
    value = _piecewise_linear(alpha, k, q1, q2)
    return value, _piecewise_constant(alpha, k, q1, q2) * dk + by_q1 * dq1 + by_q2 * dq2


def _piecewise_constant(alpha: float, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi' phi'] of the same: the arc-cosine kernel of order 0."""
    bend = (1.0 - alpha) ** 2 / (2.0 * jnp.pi)
    return 0.5 * (1.0 + alpha**2) - bend * _angle(_correlation(k, q1, q2))


@jax.custom_jvp
def _angle(cosine: jax.Array) -> jax.Array:
    return arccos(cosine)


@_angle.defjvp
def _angle_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (cosine,), (tangent,) = primals, tangents
    sine = jnp.sqrt(floored((1.0 - cosine) * (1.0 + cosine)))
    return _angle(cosine), -tangent / sine


def _gelu(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """phi(x) = x Phi(x) (Tsuchida, Pearce, van der Heide, Roosta & Gallagher 2021).

    With p = (1 + q1)(1 + q2) and D = sqrt(p - k^2): E = k/4 + (k arcsin(k/sqrt p)
    + (k^2 + q1 q2 D^2)/(p D))/(2 pi).  D is at least 1.
    """
    product = (1.0 + q1) * (1.0 + q2)
    squared = 1.0 + q1 + q2 + _determinant(k, q1, q2)
    angle = arcsin(k * jax.lax.rsqrt(product))
    outer = (k * k + q1 * q2 * squared) / (product * jnp.sqrt(squared))
    return 0.25 * k + (k * angle + outer) / (2.0 * jnp.pi)


def _gelu_derivative(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """d/dk of the above, which by Price's theorem is E[phi' phi']."""
    product = (1.0 + q1) * (1.0 + q2)
    squared = 1.0 + q1 + q2 + _determinant(k, q1, q2)
    angle = arcsin(k * jax.lax.rsqrt(product))
    inner = 1.0 / squared + (1.0 - q1 * q2) / product + 1.0
    return 0.25 + (angle + inner * k / jnp.sqrt(squared)) / (2.0 * jnp.pi)


def _erf_sine(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[erf(u) erf(v)] = (2/pi) arcsin(2k/sqrt((1 + 2 q1)(1 + 2 q2))) (Williams 1997)."""
    return 2.0 * k * jax.lax.rsqrt(1.0 + 2.0 * q1) * jax.lax.rsqrt(1.0 + 2.0 * q2)


def _sin(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """exp(-(q1 + q2)/2) sinh(k), without overflow at large k and without loss at small."""
    middle = 0.5 * (q1 + q2)
    small = jnp.exp(-middle) * jnp.sinh(jnp.clip(k, -1.0, 1.0))
    large = 0.5 * (jnp.exp(k - middle) - jnp.exp(-k - middle))
    return jnp.where(jnp.abs(k) < 1.0, small, large)
