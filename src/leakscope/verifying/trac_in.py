"""TracIn: a record's influence traced along the steps of training.

A step of gradient descent on a batch of B records moves the answer at a query q, to first order, by

    -(eta/B) Theta_t(q, x_i) (f_t(x_i) - y_i)

on behalf of record i, where Theta_t is the tangent kernel at the parameters of that moment.  Pruthi
et al. sum this over checkpoints, with the query's loss in the place of its answer:

    TracIn(i, q) = sum over checkpoints of eta l_i'(theta_t) . l_q'(theta_t)      (Eq. 1, TracInCP)

Here each checkpoint stands for the epochs from it to the next, in each of which a record is met
once.  With a checkpoint at every epoch and full batches this is the sum over all steps.  Momentum
counts as the rate that it comes to, eta/(1 - momentum).

References
----------
G. Pruthi, F. Liu, S. Kale, M. Sundararajan, "Estimating training data influence by tracing gradient
descent", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.verifying.network_training import NetworkTrainer, parameters_at
from leakscope.verifying.prediction_difference import on_themselves
from leakscope.verifying.tangents import answers, checked_records, tangent_products


@dataclass(frozen=True)
class TracIn:
    """What training on each record did to the answers, to first order, averaged over models.

    Attributes
    ----------
    shift
        (n, q, outputs) of the answers at the queries.
    loss_drop
        (n, q) of the losses at the queries, the paper's score; None without query targets.
    checkpoints
        The epochs that were looked at.
    models
        How many models were averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import TracIn
    >>> shift = np.arange(4.0).reshape(2, 2, 1)
    >>> TracIn(shift, None, checkpoints=(0, 1), models=1).self_shift()[:, 0].tolist()
    [0.0, 3.0]
    """

    shift: FloatArray
    loss_drop: FloatArray | None
    checkpoints: tuple[int, ...]
    models: int

    def self_shift(self) -> FloatArray:
        """(n, outputs) each record's influence on its own answer, where the queries are records."""
        return on_themselves(self.shift)


def trac_in(
    trainer: NetworkTrainer,
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike | None = None,
    query_targets: ArrayLike | None = None,
    *,
    checkpoints: Sequence[int] | None = None,
    models: int = 1,
    random_state: int | np.random.Generator | Key | None = None,
) -> TracIn:
    """Train models on all records, and trace each record's influence on the queries.

    Parameters
    ----------
    trainer
        With sgd; Adam's steps are not multiples of gradients, and are refused.
    X, y
        The n records and their targets.
    queries, query_targets
        (q, d) and (q,) or (q, outputs); the records themselves where left out.
    checkpoints
        Epochs, rising, from 0 to the last but one; by default 0 and then ever sparser, about
        eight.
    models
        How many models to average over.
    random_state
        Of the models.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import DenseNetwork, NetworkTrainer, trac_in
    >>> X, y = np.eye(4), np.array([1.0, 1.0, 1.0, -1.0])
    >>> trainer = NetworkTrainer(
    ...     DenseNetwork((16,)), optimiser="sgd", learning_rate=0.1, epochs=20, batch_size=None)
    >>> found = trac_in(trainer, X, y, models=2)
    >>> found.checkpoints, found.loss_drop.shape
    ((0, 1, 3, 5, 9, 15), (4, 4))
    >>> bool((np.diag(found.loss_drop) > 0).all())
    True
    """
    rows, targets, asked = checked_records(X, y, queries)
    if trainer.optimiser != "sgd":
        raise InputError(
            f"TracIn follows steps along the gradient, but the optimiser is {trainer.optimiser}: "
            "use sgd."
        )
    wanted = targets if queries is None else None
    if query_targets is not None:
        wanted = np.asarray(query_targets, dtype=np.float64).reshape(len(query_targets), -1)  # type: ignore[arg-type]
        if wanted.shape != (len(asked), targets.shape[1]):
            raise InputError(
                f"there are {len(asked)} queries of {targets.shape[1]} outputs, but the shape of "
                f"their targets is {wanted.shape}."
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
    drop = None if wanted is None else np.zeros((len(rows), len(asked)))
    for stop, following, at_stop in zip(stops, (*stops[1:], trainer.epochs), trained, strict=True):
        weight = rate * (following - stop) / models
        for parameters in at_stop:
            residual = targets - answers(trainer.network, parameters, rows)
            products = tangent_products(trainer.network, parameters, rows, asked)
            moved = np.einsum("iaqb,ia->iqb", products, residual)
            shift += weight * moved
            if drop is not None and wanted is not None:
                missing = wanted - answers(trainer.network, parameters, asked)
                drop += weight * np.einsum("iqb,qb->iq", moved, missing)
    return TracIn(shift=shift, loss_drop=drop, checkpoints=stops, models=models)


def _spread(epochs: int) -> tuple[int, ...]:
    """0 and then ever sparser: most of what training does, it does early."""
    stops, step = [0], 1.0
    while stops[-1] + round(step) < epochs:
        stops.append(stops[-1] + round(step))
        step *= max(1.35, epochs**0.15)
    return tuple(stops)
