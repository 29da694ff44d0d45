"""What a record changes in a network's answers, to first order: influence functions and TracIn.

Both are made of the tangent kernel of this very network, Theta(x, z) = J(x) J(z)^T with J(x) the
derivative of its answer by its parameters, which is never held for more than a block of records.

**Influence functions** (Koh and Liang, ICML 2017, Eq. 1): the answer at a query q with record i
less that without it is -(1/n) J(q) H^{-1} l_i'(theta), l_i half the squared residual.  Here the
curvature H is (1/n) sum_j J_j^T J_j (Gauss-Newton) + damping I, so that
J(q) H^{-1} J_i^T/n = [Theta_qX (Theta_XX + n damping I)^{-1}]_i takes one factorisation.  That
smoother A also has the exact leave-one-out shift of the linearised network, (I - A_ii)^{-1} in
place of I before the residual (Cook, Technometrics 1977), which no first-order formula sees.

**TracIn** (Pruthi et al., NeurIPS 2020, Eq. 1, with the query's answer in the place of its loss):
a step of gradient descent on a batch of B records moves the answer at q by
-(eta/B) Theta_t(q, x_i) (f_t(x_i) - y_i) on behalf of record i.  Each checkpoint stands for the
epochs from it to the next, in each of which a record is met once.  Momentum counts as the rate that
it comes to, eta/(1 - momentum).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.verifying.networks import NetworkTrainer, checked_records, parameters_at

# Memory for the derivatives of one block of records.
BLOCK_BYTES = 512 * 2**20


def tangent_products(
    network: Any, parameters: Any, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Theta between two sets of inputs, in float64.

    Parameters
    ----------
    network
        A :class:`DenseNetwork`, or anything with its ``apply``.
    parameters
        Of one model.
    left, right
        (l, d) and (r, d) inputs.

    Returns
    -------
    array
        (l, outputs, r, outputs).
    """
    require_jax("The tangent kernel of a trained network")
    import jax

    outputs = _answers(network, parameters, left[:1]).size
    products = np.empty((len(left), outputs, len(right), outputs))
    with double_precision():
        weights = jax.device_put(_as_double(parameters))
        others = jax.device_put(np.asarray(right, np.float64))
        held = sum(np.size(leaf) + 3 * len(right) * leaf.shape[-1] for leaf in weights)
        block = max(1, BLOCK_BYTES // (8 * outputs * held))
        for start in range(0, len(left), block):
            some = np.asarray(left[start : start + block], np.float64)
            products[start : start + block] = _compiled_products(network)(weights, some, others)
    return products


def _answers(network: Any, parameters: Any, inputs: FloatArray) -> FloatArray:
    """(m, outputs) what the network says, in float64."""
    with double_precision():
        return np.asarray(network.apply(_as_double(parameters), np.asarray(inputs, np.float64)))


def _as_double(parameters: Any) -> list[FloatArray]:
    return [np.asarray(weights, dtype=np.float64) for weights in parameters]


@lru_cache(maxsize=16)
def _compiled_products(network: Any) -> Any:
    import jax

    def products(parameters: Any, left: Any, right: Any) -> Any:
        def answer(weights: Any, x: Any) -> Any:
            return network.apply(weights, x[None])[0]

        def against_all(direction: Any) -> Any:
            return jax.jvp(lambda w: network.apply(w, right), (parameters,), (direction,))[1]

        derivative = jax.vmap(lambda x: jax.jacrev(answer)(parameters, x))(left)
        return jax.vmap(jax.vmap(against_all))(derivative)

    return jax.jit(products)


@dataclass(frozen=True)
class InfluenceEstimate:
    """Predicted shifts of a network's answers, with the record less without it."""

    shift: FloatArray  # (n, q, outputs) by the influence function, averaged over models
    leave_one_out: FloatArray  # (n, q, outputs) of the linearised network, exact in it

    def self_shift(self) -> FloatArray:
        """(n, outputs) each record's influence on its own answer, where the queries are records."""
        if self.shift.shape[0] != self.shift.shape[1]:
            raise InputError(
                f"there are {self.shift.shape[0]} records and {self.shift.shape[1]} queries: the "
                "influence of records on themselves needs the records as queries."
            )
        return np.asarray(np.einsum("iio->io", self.shift))


def influence_functions(
    network: Any,
    parameters: Sequence[Any],
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    damping: float,
) -> InfluenceEstimate:
    """What each record changes in the answers at the queries, by influence functions.

    Parameters
    ----------
    network
        A :class:`DenseNetwork`.
    parameters
        Of one trained model or more, a list as :func:`parameters_at` gives for a checkpoint; the
        shifts are averaged over them.
    X, y
        The n records that all models were trained on, and their targets.
    queries
        (q, d); the records themselves where left out.
    damping
        Added to the curvature; the weight decay of training, where there was one.
    """
    rows, targets, asked = checked_records(X, y, queries)
    asked = rows if queries is None else asked
    if not (np.isfinite(damping) and damping > 0.0):
        raise InputError(f"damping must be positive and finite, but it is {damping}.")
    if not len(parameters):
        raise InputError("influence functions need the parameters of at least one model.")
    size = targets.shape[1]
    require_memory(
        8 * size**2 * len(rows) * (3 * len(rows) + 2 * len(asked)),
        f"the influence of {len(rows)} records on {len(asked)} queries",
        "ask for fewer of them",
    )
    shifts, exact = zip(
        *(_gauss_newton(network, model, rows, targets, asked, damping) for model in parameters),
        strict=True,
    )
    return InfluenceEstimate(
        shift=np.mean(shifts, axis=0),
        leave_one_out=np.mean(exact, axis=0),
    )


def _gauss_newton(
    network: Any,
    parameters: Any,
    rows: FloatArray,
    targets: FloatArray,
    asked: FloatArray,
    damping: float,
) -> tuple[FloatArray, FloatArray]:
    n, size = targets.shape
    everything = rows if asked is rows else np.vstack([rows, asked])
    products = tangent_products(network, parameters, rows, everything)
    matrix = products[:, :, :n].reshape(n * size, n * size)
    cross = products[:, :, -len(asked) :].reshape(n * size, len(asked) * size)
    factor = cholesky.factorise(matrix + n * damping * np.eye(n * size), overwrite=True)
    smoother = cholesky.solve(factor, cross).reshape(n, size, len(asked), size)
    residual = targets - _answers(network, parameters, rows)
    # The block A_ii of the records' own smoother, for I - A_ii.
    own = cholesky.solve(factor, matrix).reshape(n, size, n, size)
    blocks = np.eye(size) - np.einsum("iaib->iab", own)
    freed = np.linalg.solve(np.swapaxes(blocks, 1, 2), residual[:, :, None])[:, :, 0]
    first, whole = (np.einsum("iaqb,ia->iqb", smoother, r) for r in (residual, freed))
    return first, whole


def trac_in(
    trainer: NetworkTrainer,
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    checkpoints: Sequence[int] | None = None,
    models: int = 1,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray:
    """Train models on all records, and trace each record's influence on the queries.

    Parameters
    ----------
    trainer
        With sgd; Adam's steps are not multiples of gradients, and are refused.
    X, y
        The n records and their targets.
    queries
        (q, d); the records themselves where left out.
    checkpoints
        Epochs, rising, from 0 to the last but one; by default 0 and then ever sparser, about
        eight.
    models
        How many models to average over.
    random_state
        Of the models.

    Returns
    -------
    array
        (n, q, outputs): what training on each record did to the answers, averaged over models.
    """
    rows, targets, asked = checked_records(X, y, queries)
    asked = rows if queries is None else asked
    if trainer.optimiser != "sgd":
        raise InputError(
            f"TracIn follows steps along the gradient, but the optimiser is {trainer.optimiser}: "
            "use sgd."
        )
    stops = _spread(trainer.epochs) if checkpoints is None else tuple(int(c) for c in checkpoints)
    if stops and stops[-1] >= trainer.epochs:
        raise InputError(
            f"no epoch follows the checkpoint {stops[-1]}, for which it would stand: there are "
            f"{trainer.epochs}."
        )
    size = targets.shape[1]
    require_memory(
        8 * len(rows) * len(asked) * (size**2 + 2 * size + 1),
        f"TracIn of {len(rows)} records on {len(asked)} queries",
        "ask for fewer of them",
    )
    included = np.ones((models, len(rows)), dtype=bool)
    trained = parameters_at(trainer, rows, targets, included, as_key(random_state), stops)
    # In an epoch a record is met once, with this weight.
    rate = trainer.learning_rate / (1.0 - trainer.momentum)
    rate /= min(trainer.batch_size or len(rows), len(rows))
    shift = np.zeros((len(rows), len(asked), size))
    for stop, following, at_stop in zip(stops, (*stops[1:], trainer.epochs), trained, strict=True):
        weight = rate * (following - stop) / models
        for parameters in at_stop:
            residual = targets - _answers(trainer.network, parameters, rows)
            products = tangent_products(trainer.network, parameters, rows, asked)
            shift += weight * np.einsum("iaqb,ia->iqb", products, residual)
    return shift


def _spread(epochs: int) -> tuple[int, ...]:
    """0 and then ever sparser: most of what training does, it does early."""
    stops, step = [0], 1.0
    while stops[-1] + round(step) < epochs:
        stops.append(stops[-1] + round(step))
        step *= max(1.35, epochs**0.15)
    return tuple(stops)
