"""A numerical activation over a whole matrix: Chebyshev tables instead of a quadrature an entry.

The expectation is a smooth function of the two standard deviations and the angle.  Over the range
that a dataset takes, it is a sum of products of Chebyshev polynomials,

    E(s1, theta, s2) = sum_abc C[b, a, c] T_a(s1) T_b(theta) T_c(s2),

so that a matrix of n x m pairs costs, for each b, one product of thin matrices (rank a few) and one
multiplication.  The degrees grow until the table agrees with the quadrature at random points; where
they would have to grow too far the quadrature itself is used.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from leakscope.kernels.numerical_duals import FINE_NODES, Function, angle, polar

FloatArray = NDArray[np.float64]

# Agreement asked of a table, relative to sqrt(E phi(u)^2 E phi(v)^2).
TOLERANCE = 1e-10
DEGREES = ((4, 24), (8, 32), (16, 48), (24, 64), (32, 96))
TEST_POINTS = 96
CHUNK = 64


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
        last = jnp.einsum(
            "...c,...c->...", first @ self.coefficients[0].astype(k.dtype), second
        )
        return last + x * now - before

    def _polynomials(self, s: jax.Array, count: int) -> jax.Array:
        """T_0 to T_{count-1} at s, along a new last axis."""
        t = jnp.clip((2.0 * s - self.high - self.low) / (self.high - self.low), -1.0, 1.0)
        t = t.astype(s.dtype)
        return jnp.cos(jnp.arccos(t)[..., None] * jnp.arange(count, dtype=s.dtype))


def dual_table(function: Function, low: float, high: float) -> DualTable | None:
    """A table for standard deviations in [low, high]; None where its degrees would be too high.

    To be called in 64 bits.
    """
    # Equal standard deviations (normalised inputs) still need an interval to interpolate on.
    width = max(high - low, 1e-3 * high, 1e-12)
    low, high = max(low - 1e-3 * width, 0.0), high + 1e-3 * width
    rng = np.random.default_rng(0)
    s1, s2 = rng.uniform(low, high, (2, TEST_POINTS))
    theta = np.pi * (0.5 - 0.5 * np.cos(np.pi * rng.uniform(size=TEST_POINTS)))
    expected = _values(function, s1, s2, theta)
    ends = _values(function, *np.array([[low, high], [low, high], [0.0, 0.0]]))
    scale = np.maximum(np.max(np.abs(ends)), np.finfo(float).tiny)
    for rank, degree in DEGREES:
        table = _fit(function, low, high, rank, degree)
        got = np.asarray(
            table(
                jnp.asarray(s1 * s2 * np.cos(theta)), jnp.asarray(s1**2), jnp.asarray(s2**2)
            )
        )
        if np.max(np.abs(got - expected)) <= TOLERANCE * scale:
            return table
    return None


def _fit(function: Function, low: float, high: float, rank: int, degree: int) -> DualTable:
    nodes, transform = _chebyshev(rank)
    angles, angle_transform = _chebyshev(degree)
    s = 0.5 * (low + high) + 0.5 * (high - low) * nodes
    theta = 0.5 * np.pi * (angles + 1.0)
    upper = np.triu_indices(rank)
    s1, s2 = s[upper[0]], s[upper[1]]
    flat = _values(
        function,
        np.repeat(s1, degree),
        np.repeat(s2, degree),
        np.tile(theta, len(s1)),
    ).reshape(len(s1), degree)
    values = np.empty((degree, rank, rank))
    values[:, upper[0], upper[1]] = flat.T
    values[:, upper[1], upper[0]] = flat.T
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


def _values(
    function: Function, s1: FloatArray, s2: FloatArray, theta: FloatArray
) -> FloatArray:
    padding = -len(theta) % CHUNK
    parts = [
        jnp.asarray(np.pad(a, (0, padding), mode="edge").reshape(-1, CHUNK))
        for a in (s1, s2, theta)
    ]
    return np.asarray(_in_chunks(function, *parts)).ravel()[: len(theta)]


def _in_chunks_of(
    function: Function, s1: jax.Array, s2: jax.Array, theta: jax.Array
) -> jax.Array:
    result: jax.Array = jax.lax.map(
        lambda a: polar(function, function, *a, FINE_NODES), (s1, s2, theta)
    )
    return result


_in_chunks = jax.jit(_in_chunks_of, static_argnums=0)
