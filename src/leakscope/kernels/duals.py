"""What an activation makes of a covariance: the expectation of phi(u) phi(v).

u and v are jointly normal with mean zero, variances q1 and q2 and covariance k.  In the recursion
of the infinitely wide network (lood, Section 2 and App. G; Cho & Saul 2009; Lee et al. 2018) these
are the pre-activations of one unit at two inputs.  ``covariance`` is E[phi(u) phi(v)],
``derivative`` is E[phi'(u) phi'(v)] (by Price's theorem the derivative of the first with respect to
k), and the two ``variance`` functions are the same at u = v.

All arguments are arrays that broadcast against each other.  The formulas are written so that
rounding cannot take a root of a negative number or divide by zero, and so that derivatives with
respect to the inputs are finite and right also where u = v.

An activation without a formula is expanded in Hermite polynomials h_j (Mehler's formula): with
c_j(s) = E[phi(s Z) h_j(Z)] of a standard normal Z,

    E[phi(u) phi(v)] = sum_j c_j(sqrt(q1)) c_j(sqrt(q2)) rho^j,   rho = k / sqrt(q1 q2).

The orders that are left out are put at the first of them, so that the sum is right at rho = 1 and
positive definite.  Of tanh up to standard deviations of 2 it has eleven digits; where the function
has a kink, or is nearly a step, it loses digits at correlations near one only (docs/kernels.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope.kernels.layers import Activation

# The inverse cosine and sine as a few multiplications.  XLA's own in 64 bits is a call for each
# number: 27 ns on the machine where this was measured, against 1 ns for the rational function
# below, which becomes vector instructions.  The time of a ReLU kernel is made of this.
#
# arcsin(w) = w + w z p(z) / q(z), z = w^2 <= 1/4: coefficients of FreeBSD's msun, e_asin.c.
NUMERATOR = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
DENOMINATOR = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)


@jax.custom_jvp
def arccos(cosine: jax.Array) -> jax.Array:
    """arccos for arguments in [-1, 1], to 2 units in the last place, also near the ends."""
    outer, signed = _reduced(cosine)
    beyond = jnp.where(cosine < 0.0, jnp.pi, 0.0) + 2.0 * signed
    return jnp.where(outer, beyond, 0.5 * jnp.pi - signed)


@jax.custom_jvp
def arcsin(sine: jax.Array) -> jax.Array:
    """arcsin for arguments in [-1, 1]; small ones keep their digits."""
    outer, signed = _reduced(sine)
    beyond = jnp.where(sine < 0.0, -0.5 * jnp.pi, 0.5 * jnp.pi) - 2.0 * signed
    return jnp.where(outer, beyond, signed)


def _other_leg(c: jax.Array) -> jax.Array:
    """sqrt(1 - c^2), kept away from zero by less than rounding, so that a quotient is finite."""
    squared = (1.0 - c) * (1.0 + c)
    return jnp.sqrt(jnp.maximum(squared, float(np.finfo(squared.dtype).eps) ** 2))


arccos.defjvps(lambda tangent, answer, cosine: -tangent / _other_leg(cosine))
arcsin.defjvps(lambda tangent, answer, sine: tangent / _other_leg(sine))


def _reduced(c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Whether |c| > 1/2, and arcsin(c), or there sign(c) arcsin(sqrt((1 - |c|)/2))."""
    size = jnp.abs(c)
    outer = size > 0.5
    # Beyond 1/2: arccos(c) = 2 arcsin(sqrt((1 - c)/2)), where 1 - c is exact.
    z = jnp.where(outer, 0.5 * (1.0 - size), size * size)
    w = jnp.where(outer, jnp.sqrt(z), size)
    arcsine = w + w * (z * _polynomial(NUMERATOR, z) / _polynomial(DENOMINATOR, z))
    return outer, jnp.where(c < 0.0, -arcsine, arcsine)


def _polynomial(coefficients: tuple[float, ...], z: jax.Array) -> jax.Array:
    total = jnp.full_like(z, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + z * total
    return total


Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Dual:
    """The two expectations of an activation at (k, q1, q2), and at (q,) the same for u = v."""

    covariance: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    derivative: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    variance: Callable[[jax.Array], jax.Array]
    derivative_variance: Callable[[jax.Array], jax.Array]


def covariance(phi: Activation, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi(u) phi(v)]."""
    return dual_of(phi).covariance(k, q1, q2)


def derivative(phi: Activation, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi'(u) phi'(v)]."""
    return dual_of(phi).derivative(k, q1, q2)


def variance(phi: Activation, q: jax.Array) -> jax.Array:
    """E[phi(u)^2]."""
    return dual_of(phi).variance(q)


def derivative_variance(phi: Activation, q: jax.Array) -> jax.Array:
    """E[phi'(u)^2]."""
    return dual_of(phi).derivative_variance(q)


def dual_of(phi: Activation) -> Dual:
    """The expectations of an activation: formulas, or those of its expansion."""
    if phi.function is not None:
        return _expanded(phi.function)
    return FORMULAS.get(phi.name) or _expanded(FUNCTIONS[phi.name])


# ---- formulas ----


def _determinant(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """q1 q2 - k^2, which rounding must not make negative."""
    value = q1 * q2 - k * k
    # Not maximum(), which would lose half the derivative at the tie u = v.
    return value + jax.lax.stop_gradient(jnp.where(value < 0.0, -value, 0.0))


def _root(q: jax.Array) -> jax.Array:
    """sqrt(q), with a derivative of zero at a row of zeros."""
    return jnp.where(q > 0.0, jnp.sqrt(jnp.where(q > 0.0, q, 1.0)), 0.0)


def _inverse_root(q: jax.Array) -> jax.Array:
    """1/sqrt(q), and 0 at a row of zeros, whose correlation with anything is then 0."""
    return jnp.where(q > 0.0, jax.lax.rsqrt(jnp.where(q > 0.0, q, 1.0)), 0.0)


def _correlation(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """k / sqrt(q1 q2); a few units of rounding from the ends is at the end.

    Equal records then have angle zero, not the root of a rounding error.
    """
    cosine = k * _inverse_root(q1) * _inverse_root(q2)
    end = jnp.abs(cosine) > 1.0 - 8.0 * float(np.finfo(cosine.dtype).eps)
    return cosine + jax.lax.stop_gradient(jnp.where(end, jnp.sign(cosine) - cosine, 0.0))


@jax.custom_jvp
def _relu(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """The arc-cosine kernel of order 1 (Cho & Saul 2009).

    With theta the angle between the inputs, E = (r sin(theta) + (pi - theta) k)/(2 pi),
    r = sqrt(q1 q2).  Angle and sine come from one rounded cosine, so that near theta = 0 their
    errors cancel as theta^3 instead of showing as sqrt(eps).
    """
    r = jnp.sqrt(q1) * jnp.sqrt(q2)
    cosine = _correlation(k, q1, q2)
    sine = jnp.sqrt((1.0 - cosine) * (1.0 + cosine))
    return r * (sine + (jnp.pi - arccos(cosine)) * cosine) / (2.0 * jnp.pi)


@_relu.defjvp
def _relu_jvp(
    primals: tuple[jax.Array, jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """dE/dk = E[phi' phi'] (Price); dE/dq1 = (E - k dE/dk)/(2 q1), phi being homogeneous."""
    k, q1, q2 = primals
    dk, dq1, dq2 = tangents
    sine = _other_leg(_correlation(k, q1, q2)) / (4.0 * jnp.pi)
    by_q1 = sine * jnp.sqrt(q2) * _inverse_root(q1)
    by_q2 = sine * jnp.sqrt(q1) * _inverse_root(q2)
    return _relu(k, q1, q2), _step(k, q1, q2) * dk + by_q1 * dq1 + by_q2 * dq2


def _step(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """The arc-cosine kernel of order 0: E[phi' phi'] of relu."""
    return 0.5 - arccos(_correlation(k, q1, q2)) / (2.0 * jnp.pi)


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


def _gelu_variance(q: jax.Array) -> jax.Array:
    root = jnp.sqrt(1.0 + 2.0 * q)
    return q * (0.25 + (q / ((1.0 + q) * root) + 0.5 * arcsin(q / (1.0 + q))) / jnp.pi)


def _erf(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """(2/pi) arcsin(2k/sqrt((1 + 2 q1)(1 + 2 q2))) (Williams 1997)."""
    sine = 2.0 * k * jax.lax.rsqrt(1.0 + 2.0 * q1) * jax.lax.rsqrt(1.0 + 2.0 * q2)
    return 2.0 / jnp.pi * arcsin(sine)


def _erf_derivative(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    determinant = 1.0 + 2.0 * (q1 + q2) + 4.0 * _determinant(k, q1, q2)
    return 4.0 / jnp.pi / jnp.sqrt(determinant)


def _sin(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """exp(-(q1 + q2)/2) sinh(k), without overflow at large k and without loss at small."""
    middle = 0.5 * (q1 + q2)
    small = jnp.exp(-middle) * jnp.sinh(jnp.clip(k, -1.0, 1.0))
    large = 0.5 * (jnp.exp(k - middle) - jnp.exp(-k - middle))
    return jnp.where(jnp.abs(k) < 1.0, small, large)


def _sin_derivative(k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    middle = 0.5 * (q1 + q2)
    return 0.5 * (jnp.exp(k - middle) + jnp.exp(-k - middle))


# Activations with a formula.  A new one is a line here and its name in `layers.NAMES`.
FORMULAS: dict[str, Dual] = {
    "identity": Dual(
        lambda k, q1, q2: k, lambda k, q1, q2: jnp.ones_like(k), lambda q: q, jnp.ones_like
    ),
    "relu": Dual(_relu, _step, lambda q: 0.5 * q, lambda q: jnp.full_like(q, 0.5)),
    "gelu": Dual(_gelu, _gelu_derivative, _gelu_variance, lambda q: _gelu_derivative(q, q, q)),
    "erf": Dual(
        _erf,
        _erf_derivative,
        lambda q: 2.0 / jnp.pi * arcsin(2.0 * q / (1.0 + 2.0 * q)),
        lambda q: _erf_derivative(q, q, q),
    ),
    "sin": Dual(
        _sin,
        _sin_derivative,
        lambda q: -0.5 * jnp.expm1(-2.0 * q),
        lambda q: _sin_derivative(q, q, q),
    ),
}


def _elu(x: jax.Array) -> jax.Array:
    # Not minimum(), whose derivative at zero would be one half.
    return jnp.where(x > 0.0, x, jnp.expm1(jnp.where(x > 0.0, 0.0, x)))


FUNCTIONS: dict[str, Function] = {"tanh": jnp.tanh, "elu": _elu}


# ---- expansions ----

# Orders of Hermite polynomials.  At order j and standard deviation s the coefficients of tanh fall
# as exp(-pi sqrt(2 j)/(2 s)), and those of a kink in the slope as j^(-7/4).
ORDERS = 256
# Ends of panels for the standard normal, and Gauss nodes in each: narrow ones at zero, where
# activations break, and as many as a polynomial of order 256 needs where its law has mass.
PANELS = np.array([0.0, 0.004, 0.012, 0.035, 0.1, 0.3, *np.arange(0.8, 12.5, 0.8)])
NODES = 16


@cache
def _hermite_rule() -> tuple[FloatArray, FloatArray]:
    """Nodes z, (N,), and (N, `ORDERS`) h_j(z) times the node's weight under the normal law."""
    half, width = panels(PANELS, NODES)
    z, weight = np.concatenate([-half[::-1], half]), np.concatenate([width[::-1], width])
    # times the root of the density, so that high orders do not overflow
    root = np.exp(-0.25 * z * z) * (2.0 * np.pi) ** -0.25
    basis = [root, z * root]
    for j in range(1, ORDERS - 1):
        basis.append((z * basis[j] - np.sqrt(j) * basis[j - 1]) / np.sqrt(j + 1.0))
    return z, np.stack(basis, axis=-1) * (weight * root)[:, None]


def _coefficients(function: Function, s: jax.Array) -> tuple[jax.Array, jax.Array]:
    """c_j(s), orders first, and E[phi(s Z)^2]."""
    z, basis = (jnp.asarray(array, s.dtype) for array in _hermite_rule())
    values = function(s[..., None] * z)
    return jnp.moveaxis(values @ basis, -1, 0), values**2 @ basis[:, 0]


def _expectation(function: Function, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi(u) phi(v)] by Mehler's formula."""
    rho = _correlation(k, q1, q2)
    rho = rho + jax.lax.stop_gradient(jnp.clip(rho, -1.0, 1.0) - rho)
    (first, square1), (second, square2) = (_coefficients(function, _root(q)) for q in (q1, q2))
    # What the orders beyond the last leave of both variances; no more than rounding where smooth.
    rest1, rest2 = (
        _root(jax.lax.stop_gradient(square - (c * c).sum(axis=0)))
        for square, c in ((square1, first), (square2, second))
    )

    def horner(total: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return pair[0] * pair[1] + rho * total, None

    total, _ = jax.lax.scan(horner, rest1 * rest2 + 0.0 * rho, (first[::-1], second[::-1]))
    return total


@cache
def _expanded(function: Function) -> Dual:
    """The expectations of any function."""

    def slope(x: jax.Array) -> jax.Array:
        value: jax.Array = jax.jvp(function, (x,), (jnp.ones_like(x),))[1]
        return value

    return Dual(
        partial(_expectation, function),
        partial(_expectation, slope),
        lambda q: _coefficients(function, _root(q))[1],
        lambda q: _coefficients(slope, _root(q))[1],
    )
