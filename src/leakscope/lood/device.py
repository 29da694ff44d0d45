"""All records on an accelerator: kernel, factorisation and inverse diagonal without leaving it.

Symbols as in `leakscope.lood.separation`; the linear algebra is
`leakscope._numerics.device_cholesky`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import not_positive_definite
from leakscope.lood.inputs import checked_targets, real_numbers, require_positive
from leakscope.lood.separation import Separation, record_laws


def device_records(
    X: FloatArray, y: FloatArray, *, kernel: Kernel, noise_variance: float
) -> Separation:
    """Every record's laws with and without it, computed where JAX computes.

    The answer of `all_records` for a network kernel, without ever holding its matrix on the
    host.  Meant for a GPU, where the matrix must fit about twice; on a CPU `all_records` is
    quicker.
    """
    require_jax("The device route")
    matrix_of: Any = getattr(kernel, "jax", None)
    if matrix_of is None:
        raise InputError(
            "the device route needs a kernel with JAX code, such as nngp or sequential; "
            f"{type(kernel).__name__} has none."
        )
    features = real_numbers(X, "X")
    targets = checked_targets(y, len(features), "the dataset")
    require_positive(noise_variance, "noise_variance")
    with double_precision():
        import jax.numpy as jnp

        from leakscope._numerics import device_cholesky as device

        matrix = device.upper_triangle(jnp.asarray(features), matrix_of)
        norm = float(device.one_norm(matrix) + noise_variance)
        factor = device.factorise(matrix, jnp.asarray(noise_variance))
        if not bool(jnp.isfinite(factor[-1, -1])):
            raise not_positive_definite(noise_variance, "on the device")
        a = np.asarray(device.solve(factor, jnp.asarray(targets.reshape(len(targets), -1))))
        m = np.asarray(device.inverse_diagonal(factor))
    return record_laws(
        m,
        a,
        targets,
        prior=np.asarray(kernel.diagonal(features)),
        noise_variance=noise_variance,
        norm=norm,
        route="device",
    )
