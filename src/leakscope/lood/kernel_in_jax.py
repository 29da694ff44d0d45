"""A kernel as JAX code, to be differentiated: the one place where kernels are translated.

Network kernels bring their own; the formulas of the others are short.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from leakscope.errors import InputError
from leakscope.kernels import RBF, Kernel, Linear, Matern

# Rows x and rows z in, the matrix of k(x, z) out.
JaxKernel = Callable[[jax.Array, jax.Array], jax.Array]


@runtime_checkable
class Differentiable(Protocol):
    """A kernel that comes with JAX code of its own."""

    def jax(self, x: jax.Array, z: jax.Array) -> jax.Array:
        """k(x, z) for rows x and z."""
        ...


def as_jax(kernel: Kernel) -> JaxKernel:
    """The kernel as a function of two arrays of rows, differentiable in both."""
    match kernel:
        case Differentiable():
            return kernel.jax
        case RBF():
            return partial(_rbf, _number(kernel.length_scale), kernel.variance)
        case Matern(nu=0.5 | 1.5 | 2.5):
            scale = _number(kernel.length_scale)
            return partial(_matern, kernel.nu, scale, kernel.variance)
        case Linear():
            return partial(_linear, kernel)
        case _:
            raise InputError(
                f"the kernel {kernel.describe()['name']} cannot be differentiated: use rbf, "
                "linear, matern with nu 0.5, 1.5 or 2.5, a network, or a kernel with a method "
                "jax(x, z)."
            )


def _number(length_scale: float | None) -> float:
    if length_scale is None:
        raise InputError("the kernel's length_scale is not set; call resolved(X) first.")
    return length_scale


def _squared_distances(x: jax.Array, z: jax.Array) -> jax.Array:
    # Centring keeps ||x||^2 + ||z||^2 - 2 x.z from cancelling; the centre changes no distance, so
    # that it needs no derivative.
    centre = jax.lax.stop_gradient(z.mean(axis=0))
    x, z = x - centre, z - centre
    return (x * x).sum(1)[:, None] + (z * z).sum(1)[None, :] - 2.0 * (x @ z.T)


def _rbf(length_scale: float, variance: float, x: jax.Array, z: jax.Array) -> jax.Array:
    return variance * jnp.exp(-0.5 / length_scale**2 * _squared_distances(x, z))


def _matern(
    nu: float, length_scale: float, variance: float, x: jax.Array, z: jax.Array
) -> jax.Array:
    squared = 2.0 * nu / length_scale**2 * _squared_distances(x, z)
    # The root has no slope at zero; the inner where() keeps its infinity out of the derivative.
    apart = squared > 1e-24
    t = jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)
    shape = {0.5: jnp.ones_like(t), 1.5: 1.0 + t, 2.5: 1.0 + t * (1.0 + t / 3.0)}[nu]
    return variance * shape * jnp.exp(-t)


def _linear(kernel: Linear, x: jax.Array, z: jax.Array) -> jax.Array:
    scale = kernel.weight_variance / (x.shape[1] if kernel.divide_by_features else 1)
    return scale * (x @ z.T) + kernel.bias_variance
