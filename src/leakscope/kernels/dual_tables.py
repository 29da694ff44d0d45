"""A numerical activation over a whole matrix: Chebyshev tables instead of a quadrature an entry.

The expectation is a smooth function of the two standard deviations and the angle.  Over the range
that a dataset takes, it is a sum of products of Chebyshev polynomials,

    E(s1, theta, s2) = sum_abc C[b, a, c] T_a(s1) T_b(theta) T_c(s2),

so that a matrix of n x m pairs costs, for each b, one product of thin matrices (rank a few) and one
multiplication.  The degrees grow until the table agrees with the quadrature at random points; where
they would have to grow too far the quadrature itself is used.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.kernels.inverse_cosine import arccos
from leakscope.kernels.numerical_duals import FINE_NODES, Function, angle, polar, polar_rule

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


def _apply(function: Function, x: jax.Array) -> jax.Array:
    value: jax.Array = function(x)
    return value


def _look_up(table: DualTable, k: jax.Array, q1: jax.Array, q2: jax.Array) -> jax.Array:
    return table(k, q1, q2)


def _fine(function: Function, s1: jax.Array, s2: jax.Array, theta: jax.Array) -> jax.Array:
    return polar(function, function, s1, s2, theta, FINE_NODES)


_applied = jax.jit(_apply, static_argnums=0)
_at_points = jax.jit(_fine, static_argnums=0)
_looked_up = jax.jit(_look_up)
