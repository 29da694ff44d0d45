"""Inner products of a network's gradients at its present parameters.

With f(x) the answer of a network with parameters theta, and J(x) its derivative by theta,

    Theta(x, z) = J(x) J(z)^T,

which is the tangent kernel of this very network, not of an infinitely wide one.  Influence
functions and TracIn are both made of it.  J has as many columns as the network has weights; it is
never held for more than a block of records.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError

# Memory for the derivatives of one block of records, and how many records they meet at a time.
BLOCK_BYTES, ON_A_GPU = 512 * 2**20, 4
RIGHT_BLOCK = 1024


def tangent_products(
    network: Any, parameters: Any, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Theta between two sets of inputs, in float64.

    Parameters
    ----------
    network
        A description from :mod:`leakscope.verifying.networks`, or anything with its ``apply``.
    parameters
        Of one model.
    left, right
        (l, d) and (r, d) inputs.

    Returns
    -------
    array
        (l, outputs, r, outputs).

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> from leakscope.verifying import DenseNetwork, tangent_products
    >>> network = DenseNetwork((16,))
    >>> inputs = np.random.default_rng(0).normal(size=(5, 3))
    >>> parameters = network.initial(jax.random.key(0), 3, 1)
    >>> theta = tangent_products(network, parameters, inputs, inputs)[:, 0, :, 0]
    >>> theta.shape, bool(np.linalg.eigvalsh(theta)[0] > -1e-9)
    ((5, 5), True)
    """
    import jax

    outputs = answers(network, parameters, left[:1]).size
    room = BLOCK_BYTES if jax.default_backend() == "cpu" else ON_A_GPU * BLOCK_BYTES
    found = np.empty((len(left), outputs, len(right), outputs))
    with double_precision():
        # On the device once, not with every block.
        weights = jax.device_put(as_double(parameters))
        for start in range(0, len(right), RIGHT_BLOCK):
            others = jax.device_put(np.asarray(right[start : start + RIGHT_BLOCK], np.float64))
            held = count(weights) + 3 * len(others) * _activity(weights, left)
            block = max(1, room // (8 * outputs * held))
            for begin in range(0, len(left), block):
                found[begin : begin + block, :, start : start + RIGHT_BLOCK] = _compiled(network)(
                    weights, np.asarray(left[begin : begin + block], np.float64), others
                )
    return found


def answers(network: Any, parameters: Any, inputs: FloatArray) -> FloatArray:
    """(m, outputs) what the network says, in float64."""
    with double_precision():
        return np.asarray(network.apply(as_double(parameters), np.asarray(inputs, np.float64)))


def as_double(parameters: Any) -> Any:
    """The parameters in float64."""
    import jax

    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), parameters)


def count(parameters: Any) -> int:
    """How many numbers they are."""
    import jax

    return int(sum(np.size(leaf) for leaf in jax.tree.leaves(parameters)))


def _activity(parameters: Any, inputs: FloatArray) -> int:
    """About how many numbers a network holds while it answers one query."""
    import jax

    leaves = [leaf for leaf in jax.tree.leaves(parameters) if leaf.ndim > 1]
    # A convolution has its channels at every pixel.
    return int(sum(x.shape[-1] * (inputs.shape[1] if x.ndim == 4 else 1) for x in leaves))


def checked_records(
    X: ArrayLike, y: ArrayLike, queries: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Records (n, d), targets (n, outputs) and queries (q, d); the records where none are given."""
    rows, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or targets.ndim not in (1, 2) or len(targets) != len(rows) or not len(rows):
        raise InputError(
            f"records must be rows of features with a target each, but the shapes are "
            f"{rows.shape} and {targets.shape}."
        )
    asked = rows if queries is None else np.asarray(queries, dtype=np.float64)
    if asked.ndim != 2 or asked.shape[1] != rows.shape[1]:
        raise InputError(
            f"queries must be rows of {rows.shape[1]} features, but their shape is {asked.shape}."
        )
    return rows, targets.reshape(len(targets), -1), asked


@lru_cache(maxsize=16)
def _compiled(network: Any) -> Any:
    import jax

    def products(parameters: Any, left: Any, right: Any) -> Any:
        def answer(weights: Any, x: Any) -> Any:
            return network.apply(weights, x[None])[0]

        def against_all(direction: Any) -> Any:
            return jax.jvp(lambda w: network.apply(w, right), (parameters,), (direction,))[1]

        derivative = jax.vmap(lambda x: jax.jacrev(answer)(parameters, x))(left)
        return jax.vmap(jax.vmap(against_all))(derivative)

    return jax.jit(products)
