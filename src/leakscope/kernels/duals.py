"""What an activation makes of a covariance: the expectation of phi(u) phi(v).

u and v are jointly normal with mean zero, variances q1 and q2 and covariance k.  In the recursion
of the infinitely wide network (lood, Section 2 and App. G; Cho & Saul 2009; Lee et al. 2018) these
are the pre-activations of one unit at two inputs.  ``covariance`` is E[phi(u) phi(v)],
``derivative`` is E[phi'(u) phi'(v)] (the NTK's factor, and by Price's theorem the derivative of the
first with respect to k), and the two ``variance`` functions are the same at u = v.

**Formulas.**  All arguments are arrays that broadcast against each other.  The formulas are written
so that rounding cannot take a root of a negative number or divide by zero, and so that derivatives
with respect to the inputs are finite and right also where u = v.

**Quadrature**, for activations without a formula.  u = s1 r cos(psi), v = s2 r cos(psi - theta),
with s the standard deviations, cos(theta) the correlation and r e^{-r^2/2} dr dpsi/(2 pi) the law:
in these coordinates nothing degenerates as the correlation nears 1, and the lines u = 0 and v = 0,
where activations break, are the ends of arcs.  Each arc has Gauss-Legendre nodes, the radius Gauss
nodes for its own weight.  Accuracy, relative to sqrt(E phi(u)^2 E phi(v)^2), measured against four
times as many nodes for tanh, ELU, sigmoid, swish, softplus: 1e-13 up to standard deviation 1.5,
1e-10 up to 3, 1e-6 at 10 (tanh is then nearly a step).  Functions that break elsewhere than at zero
are less accurate.

**Tables**, instead of a quadrature for each entry of a matrix.  The expectation is a smooth
function of the two standard deviations and the angle.  Over the range that a dataset takes, it is a
sum of products of Chebyshev polynomials,

    E(s1, theta, s2) = sum_abc C[b, a, c] T_a(s1) T_b(theta) T_c(s2),

so that a matrix of n x m pairs costs, for each b, one product of thin matrices (rank a few) and one
multiplication.  The degrees grow until the table agrees with the quadrature at random points; where
they would have to grow too far the quadrature itself is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
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

# Nodes on each arc and along the radius: in derivatives and pairs, and for tables and variances.
NODES = (32, 40)
FINE_NODES = (64, 64)


def function_of(phi: Activation) -> Function:
    """The function itself, as JAX code."""
    if phi.function is not None:
        return phi.function
    match phi.name:
        case "tanh":
            return jnp.tanh
        case "elu":
            return _elu(1.0 if phi.alpha is None else phi.alpha)
        case _:
            raise InputError(
                f"the activation {phi.name} has a formula, so it is not computed by integration."
            )


@cache
def _elu(alpha: float) -> Function:
    def elu(x: jax.Array) -> jax.Array:
        # Not minimum(), whose derivative at zero would be one half.
        return jnp.where(x > 0.0, x, alpha * jnp.expm1(jnp.where(x > 0.0, 0.0, x)))

    return elu


@cache
def slope_of(function: Function) -> Function:
    """phi', by differentiation."""

    def slope(x: jax.Array) -> jax.Array:
        value: jax.Array = jax.jvp(function, (x,), (jnp.ones_like(x),))[1]
        return value

    return slope


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def integrated_covariance(
    function: Function, k: jax.Array, q1: jax.Array, q2: jax.Array
) -> jax.Array:
    """E[phi(u) phi(v)]."""
    return _expectation(function, function, k, q1, q2)


@integrated_covariance.defjvp
def _covariance_jvp(
    function: Function,
    primals: tuple[jax.Array, jax.Array, jax.Array],
    tangents: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """Price: dE/dk = E[phi'(u) phi'(v)]; Stein: 2 q1 dE/dq1 = E[u phi'(u) phi(v)] - k dE/dk."""
    k, q1, q2 = primals
    dk, dq1, dq2 = tangents
    slope = slope_of(function)

    def scaled(x: jax.Array) -> jax.Array:
        value: jax.Array = x * slope(x)
        return value

    by_k = integrated_derivative(function, k, q1, q2)
    first = _expectation(scaled, function, k, q1, q2) - k * by_k
    second = _expectation(function, scaled, k, q1, q2) - k * by_k
    change = by_k * dk + 0.5 * _ratio(first, q1) * dq1 + 0.5 * _ratio(second, q2) * dq2
    return integrated_covariance(function, k, q1, q2), change


def integrated_derivative(
    function: Function, k: jax.Array, q1: jax.Array, q2: jax.Array
) -> jax.Array:
    """E[phi'(u) phi'(v)]."""
    slope = slope_of(function)
    return _expectation(slope, slope, k, q1, q2)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def integrated_variance(function: Function, q: jax.Array) -> jax.Array:
    """E[phi(u)^2]."""
    return _on_the_line(lambda x: function(x) ** 2, q)


@integrated_variance.defjvp
def _variance_jvp(
    function: Function, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """q dE/dq = E[u phi(u) phi'(u)]."""
    (q,), (dq,) = primals, tangents
    slope = slope_of(function)
    by_q = _ratio(_on_the_line(lambda x: x * function(x) * slope(x), q), q)
    return integrated_variance(function, q), by_q * dq


def integrated_derivative_variance(function: Function, q: jax.Array) -> jax.Array:
    """E[phi'(u)^2]."""
    slope = slope_of(function)
    return _on_the_line(lambda x: slope(x) ** 2, q)


def polar(
    first: Function,
    second: Function,
    s1: jax.Array,
    s2: jax.Array,
    theta: jax.Array,
    nodes: tuple[int, int] = NODES,
) -> jax.Array:
    """E[first(u) second(v)] at standard deviations s1 and s2 and angle theta."""
    across, along, weights = polar_rule(theta, nodes)
    u, v = s1[..., None, None] * across, s2[..., None, None] * along
    pairs = first(u) * second(v) + first(-u) * second(-v)
    total: jax.Array = jnp.sum(pairs * weights, axis=(-2, -1))
    return total


def polar_rule(theta: jax.Array, nodes: tuple[int, int]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """u/s1, v/s2 and weights at the nodes where v > 0; v < 0 is their mirror image."""
    ticks, widths = np.polynomial.legendre.leggauss(nodes[0])
    points, lengths = (jnp.asarray(a, theta.dtype) for a in (0.5 * (ticks + 1.0), 0.5 * widths))
    radius, radial_weights = (
        jnp.asarray(a, theta.dtype) for a in _half_line_rule(nodes[1], radial=True)
    )
    theta = theta[..., None]
    # u > 0 on the first arc, u < 0 on the second.
    psi = [theta - 0.5 * jnp.pi + (jnp.pi - theta) * points, 0.5 * jnp.pi + theta * points]
    psi_all = jnp.concatenate(psi, axis=-1)
    arc_weights = jnp.concatenate([(jnp.pi - theta) * lengths, theta * lengths], axis=-1)
    # Without the barrier the compiler would take the cosines anew at every radius.
    across, along = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call, unused-ignore]
        (jnp.cos(psi_all), jnp.cos(psi_all - theta))
    )
    weights = arc_weights[..., None] * radial_weights / (2.0 * jnp.pi)
    return across[..., None] * radius, along[..., None] * radius, weights


@cache
def _half_line_rule(count: int, *, radial: bool) -> tuple[FloatArray, FloatArray]:
    """Gauss nodes and weights on the half line, for r e^{-r^2/2} or for the normal density."""
    t, w = np.polynomial.legendre.leggauss(600)
    t = 8.0 * (t + 1.0)
    w = (
        8.0 * w * t * np.exp(-0.5 * t * t)
        if radial
        else 8.0 * w * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    )
    return _gauss_rule(t, w, count)


def _gauss_rule(t: FloatArray, w: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """By the Stieltjes procedure."""
    centre, side = np.zeros(count), np.zeros(count)
    before, now = np.zeros_like(t), np.full_like(t, w.sum() ** -0.5)
    for place in range(count):
        centre[place] = np.sum(w * t * now * now)
        following = (t - centre[place]) * now - (side[place - 1] if place else 0.0) * before
        side[place] = np.sqrt(np.sum(w * following * following))
        before, now = now, following / side[place]
    nodes, vectors = np.linalg.eigh(
        np.diag(centre) + np.diag(side[:-1], 1) + np.diag(side[:-1], -1)
    )
    return nodes, vectors[0] ** 2 * w.sum()


def _expectation(
    first: Function, second: Function, k: jax.Array, q1: jax.Array, q2: jax.Array
) -> jax.Array:
    s1, s2 = jnp.sqrt(q1), jnp.sqrt(q2)
    return polar(first, second, s1, s2, angle(k, s1, s2))


def angle(k: jax.Array, s1: jax.Array, s2: jax.Array) -> jax.Array:
    """The angle whose cosine is k/(s1 s2), a right one where a standard deviation is zero."""
    size = s1 * s2
    cosine = jnp.where(size > 0.0, k / jnp.where(size > 0.0, size, 1.0), 0.0)
    return arccos(jnp.clip(cosine, -1.0, 1.0))


def _on_the_line(function: Function, q: jax.Array) -> jax.Array:
    radius, weights = _half_line_rule(FINE_NODES[1], radial=False)
    x = jnp.sqrt(q)[..., None] * jnp.asarray(radius, q.dtype)
    total: jax.Array = jnp.sum(
        (function(x) + function(-x)) * jnp.asarray(weights, q.dtype), axis=-1
    )
    return total


def _ratio(value: jax.Array, q: jax.Array) -> jax.Array:
    """value / q, and 0 at a row of zeros, where what it multiplies is zero too."""
    return jnp.where(q > 0.0, value / jnp.where(q > 0.0, q, 1.0), 0.0)


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
            return integrated_covariance(function_of(phi), k, q1, q2)


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
            return integrated_derivative(function_of(phi), k, q1, q2)


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
            return integrated_variance(function_of(phi), q)


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
            return integrated_derivative_variance(function_of(phi), q)


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
    sine = _other_leg(cosine)
    bend = (1.0 - alpha) ** 2 / (2.0 * jnp.pi)
    root1, root2 = jnp.sqrt(q1), jnp.sqrt(q2)
    by_q1 = 0.5 * bend * sine * root2 * _inverse_root(q1)
    by_q2 = 0.5 * bend * sine * root1 * _inverse_root(q2)
    value = _piecewise_linear(alpha, k, q1, q2)
    return value, _piecewise_constant(alpha, k, q1, q2) * dk + by_q1 * dq1 + by_q2 * dq2


def _piecewise_constant(alpha: float, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    """E[phi' phi'] of the same: the arc-cosine kernel of order 0."""
    bend = (1.0 - alpha) ** 2 / (2.0 * jnp.pi)
    return 0.5 * (1.0 + alpha**2) - bend * arccos(_correlation(k, q1, q2))


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


# Agreement asked of a table, relative to sqrt(E phi(u)^2 E phi(v)^2).
TOLERANCE = 1e-10
DEGREES = ((6, 32), (16, 48), (24, 64), (32, 96))
TEST_POINTS = 96

# The polynomials are in log(s + BEND): activations change on a scale of one unit, so that large
# standard deviations differ by their ratio, and small ones (zero is allowed) by their difference.
BEND = 0.25


class DualTable(NamedTuple):
    """C of the formula above, and the range of the standard deviations."""

    coefficients: jax.Array
    low: jax.Array
    high: jax.Array

    def __call__(self, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
        """E[phi(u) phi(v)] at covariance k and variances q1, q2, which broadcast to k."""
        s1, s2 = jnp.sqrt(q1), jnp.sqrt(q2)
        x = 2.0 / jnp.pi * angle(k, s1, s2) - 1.0
        rank = self.coefficients.shape[1]
        first, second = self._polynomials(s1, rank), self._polynomials(s2, rank)
        shape = jnp.broadcast_shapes(k.shape, q1.shape, q2.shape)
        nothing = jnp.zeros(shape, k.dtype)

        def clenshaw(
            carry: tuple[jax.Array, jax.Array], coefficients: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            now, before = carry
            term = jnp.einsum("...c,...c->...", first @ coefficients, second)
            return (term + 2.0 * x * now - before, now), None

        (now, before), _ = jax.lax.scan(
            clenshaw, (nothing, nothing), self.coefficients.astype(k.dtype)[:0:-1]
        )
        last = jnp.einsum("...c,...c->...", first @ self.coefficients[0].astype(k.dtype), second)
        return last + x * now - before

    def _polynomials(self, s: jax.Array, count: int) -> jax.Array:
        """T_0 to T_{count-1} at s, along a new last axis."""
        low, high = jnp.log(self.low + BEND), jnp.log(self.high + BEND)
        t = (2.0 * jnp.log(s + BEND) - high - low) / (high - low)
        t = jnp.clip(t, -1.0, 1.0).astype(s.dtype)
        return jnp.cos(arccos(t)[..., None] * jnp.arange(count, dtype=s.dtype))


def dual_table(function: Function, low: float, high: float) -> DualTable | None:
    """A table for standard deviations in [low, high]; None where its degrees would be too high.

    To be called in 64 bits.
    """
    # Rounded outwards to steps of a fifth: layers and datasets that are alike share a table, and
    # equal standard deviations (normalised inputs) still have an interval to interpolate on.
    step = np.log(1.2)
    top = np.exp(step * (np.floor(np.log(max(high, 1e-6)) / step) + 1.0))
    bottom = np.exp(step * np.floor(np.log(low) / step - 1e-6)) if low > BEND else 0.0
    return _table(function, float(bottom), float(top))


@lru_cache(maxsize=128)
def _table(function: Function, low: float, high: float) -> DualTable | None:
    rng = np.random.default_rng(0)
    s1, s2 = rng.uniform(low, high, (2, TEST_POINTS))
    theta = np.pi * (0.5 - 0.5 * np.cos(np.pi * rng.uniform(size=TEST_POINTS)))
    s1[:2], s2[:2], theta[:2] = (low, high), (low, high), 0.0
    expected = np.asarray(_at_points(function, s1, s2, theta))
    scale = max(float(np.max(np.abs(expected[:2]))), np.finfo(float).tiny)
    for rank, degree in DEGREES:
        table = _fit(function, low, high, rank, degree)
        got = np.asarray(_looked_up(table, s1 * s2 * np.cos(theta), s1**2, s2**2))
        if np.max(np.abs(got - expected)) <= TOLERANCE * scale:
            return table
    return None


def _fit(function: Function, low: float, high: float, rank: int, degree: int) -> DualTable:
    nodes, transform = _chebyshev(rank)
    angles, angle_transform = _chebyshev(degree)
    ends = np.log(low + BEND), np.log(high + BEND)
    s = np.exp(0.5 * (ends[0] + ends[1]) + 0.5 * (ends[1] - ends[0]) * nodes) - BEND
    theta = 0.5 * np.pi * (angles + 1.0)
    values = _on_grid(function, s, theta)
    coefficients = np.einsum(
        "bB,aA,cC,BAC->bac", angle_transform, transform, transform, values, optimize=True
    )
    return DualTable(jnp.asarray(coefficients), jnp.asarray(low), jnp.asarray(high))


def _chebyshev(count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes and the matrix from values at them to coefficients."""
    phases = (np.arange(count) + 0.5) * np.pi / count
    transform = 2.0 / count * np.cos(np.arange(count)[:, None] * phases)
    transform[0] *= 0.5
    return np.cos(phases), transform


def _on_grid(function: Function, s: FloatArray, theta: FloatArray) -> FloatArray:
    """E at every angle and all pairs of standard deviations: the quadrature as matrix products."""
    rule = polar_rule(jnp.asarray(theta), FINE_NODES)
    across, along, weights = (np.asarray(a).reshape(len(theta), -1) for a in rule)
    values = np.empty((len(theta), len(s), len(s)))
    for place in range(len(theta)):
        u, v = s[:, None] * across[place], s[:, None] * along[place]
        at = [np.asarray(_applied(function, x)) for x in (u, v, -u, -v)]
        values[place] = (at[0] * weights[place]) @ at[1].T + (at[2] * weights[place]) @ at[3].T
    return values


@partial(jax.jit, static_argnums=0)
def _applied(function: Function, x: jax.Array) -> jax.Array:
    value: jax.Array = function(x)
    return value


@jax.jit
def _looked_up(table: DualTable, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    return table(k, q1, q2)


@partial(jax.jit, static_argnums=0)
def _at_points(function: Function, s1: jax.Array, s2: jax.Array, theta: jax.Array) -> jax.Array:
    return polar(function, function, s1, s2, theta, FINE_NODES)
