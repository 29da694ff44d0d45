"""All records on an accelerator: kernel, factorisation and inverse diagonal without leaving it.

Symbols as in `leakscope.lood.separation`; the linear algebra is
`leakscope._numerics.device_cholesky`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import laws_by_difference, not_positive_definite, probes
from leakscope.lood.inputs import checked_targets, real_numbers, require_positive
from leakscope.lood.separation import Separation


def device_records(
    X: FloatArray, y: FloatArray, *, kernel: Kernel, noise_variance: float
) -> Separation:
    """Every record's laws with and without it, computed where JAX computes.

    The answer of `all_records` for a network kernel, without ever holding its matrix on the
    host.  Meant for a GPU, where the matrix must fit about twice; on a CPU `all_records` is
    quicker.  Leverages far below one have fewer digits than there, which the trust flag counts
    in.
    """
    function = _jax_code(kernel)
    features = real_numbers(X, "X")
    targets = checked_targets(y, len(features), "the dataset")
    require_positive(noise_variance, "noise_variance")
    outputs = targets.reshape(len(targets), -1)
    prior = np.asarray(kernel.diagonal(features))
    with double_precision():
        solved, m, norm, inverse_norm = _linear_algebra(
            features, np.column_stack([outputs, probes(len(targets))]), function, noise_variance
        )
    return laws_by_difference(
        m,
        solved,
        prior,
        targets,
        noise_variance=noise_variance,
        norm=norm,
        condition_number=norm * inverse_norm,
        route="device",
    )


def device_columns(
    X: FloatArray, rows: ArrayLike, *, kernel: Kernel, noise_variance: float
) -> FloatArray:
    """(n, t) the columns of M^{-1} at some rows, without ever holding a matrix on the host."""
    function, features = _jax_code(kernel), real_numbers(X, "X")
    require_positive(noise_variance, "noise_variance")
    places = np.asarray(rows, dtype=np.intp)
    units = np.zeros((len(features), len(places)))
    units[places, np.arange(len(places))] = 1.0
    with double_precision():
        import jax.numpy as jnp

        from leakscope._numerics import device_cholesky as device

        factor, _ = _factorised(features, function, noise_variance)
        return np.asarray(device.solve(factor, jnp.asarray(units)))


def _jax_code(kernel: Kernel) -> Any:
    require_jax("The device route")
    function: Any = getattr(kernel, "jax", None)
    if function is None:
        raise InputError(
            "the device route needs a kernel with JAX code, such as nngp or sequential; "
            f"{type(kernel).__name__} has none."
        )
    return function


def _factorised(features: FloatArray, function: Any, noise_variance: float) -> tuple[Any, float]:
    """The factor of M, on the device, and the 1-norm of M."""
    import jax.numpy as jnp

    from leakscope._numerics import device_cholesky as device

    matrix = device.upper_triangle(jnp.asarray(features), function)
    norm = device.one_norm(matrix) + noise_variance
    factor = device.factorise(matrix, jnp.asarray(noise_variance))
    if not bool(jnp.isfinite(factor[-1, -1])):
        raise not_positive_definite(noise_variance, "on the device")
    return factor, float(norm)


def _linear_algebra(
    features: FloatArray, right: FloatArray, function: Any, noise_variance: float
) -> tuple[FloatArray, FloatArray, float, float]:
    """M^{-1} times ``right``, the diagonal of M^{-1}, the 1-norm of M and the norm of M^{-1}."""
    import jax.numpy as jnp

    from leakscope._numerics import device_cholesky as device

    factor, norm = _factorised(features, function, noise_variance)
    solved = np.asarray(device.solve(factor, jnp.asarray(right)))
    inverse_norm = device.largest_of_inverse(factor)
    return solved, np.asarray(device.inverse_diagonal(factor)), norm, inverse_norm
