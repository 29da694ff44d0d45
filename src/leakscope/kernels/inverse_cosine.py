"""The inverse cosine and sine as a few multiplications.

XLA's own in 64 bits is a call for each number: 27 ns on the machine where this was measured,
against 1 ns for the rational function below, which the compiler turns into vector instructions.
This is what the time of a ReLU kernel is made of.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

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


def arccos(cosine: jax.Array) -> jax.Array:
    """arccos for arguments in [-1, 1], to 2 units in the last place, also near the ends.

    Not to be differentiated: the slope at the ends is infinite, and callers know better.
    """
    outer, signed = _reduced(cosine)
    beyond = jnp.where(cosine < 0.0, jnp.pi, 0.0) + 2.0 * signed
    return jnp.where(outer, beyond, 0.5 * jnp.pi - signed)


@jax.custom_jvp
def arcsin(sine: jax.Array) -> jax.Array:
    """arcsin for arguments in [-1, 1]; small ones keep their digits."""
    outer, signed = _reduced(sine)
    beyond = jnp.where(sine < 0.0, -0.5 * jnp.pi, 0.5 * jnp.pi) - 2.0 * signed
    return jnp.where(outer, beyond, signed)


@arcsin.defjvp
def _arcsin_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (sine,), (tangent,) = primals, tangents
    cosine = jnp.sqrt(floored((1.0 - sine) * (1.0 + sine)))
    return arcsin(sine), tangent / cosine


def floored(squared_sine: jax.Array) -> jax.Array:
    """Kept away from zero by less than rounding, so that what divides by its root is finite."""
    return jnp.maximum(squared_sine, float(np.finfo(squared_sine.dtype).eps) ** 2)


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
