"""Networks that are really trained, many at once, with every record and without some.

Initial weights are N(0, weight_variance / fan-in), so that a network of growing width tends to the
Gaussian process of :func:`leakscope.kernels.nngp` with the same depth, activation and variance.

A record is left out by giving it weight zero, so that all models share the data and one compiled
step.  On a GPU the models are trained side by side (vmap); on a CPU one after another inside one
compiled loop, because training is bound by arithmetic there and a batch of models only spoils the
caches (benchmarks/retraining.py measures both).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.x64 import require_jax
from leakscope.attacking.score_attacks import LEAST_MODELS, likelihood_ratio
from leakscope.errors import InputError, required
from leakscope.measures.samples import Estimate

ACTIVATIONS = ("relu", "gelu", "erf", "tanh", "elu", "sin")


@dataclass(frozen=True)
class DenseNetwork:
    """Dense hidden layers without biases, and a linear read-out.

    Parameters
    ----------
    widths
        Neurons of each hidden layer.
    activation
        relu, gelu, erf, tanh, elu or sin.
    weight_variance
        Of every layer's weights at the start, times its fan-in.
    """

    widths: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    weight_variance: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(int(width) for width in self.widths))
        if not self.widths or min(self.widths) < 1 or not self.weight_variance > 0.0:
            raise InputError(
                f"widths and weight_variance must be positive, but they are {self.widths} and "
                f"{self.weight_variance}."
            )
        if self.activation not in ACTIVATIONS:
            raise InputError(
                f"activation must be one of {', '.join(ACTIVATIONS)}, but it is "
                f"{self.activation!r}."
            )

    def initial(self, key: Any, inputs: int, outputs: int) -> list[Any]:
        """Weights to start from, one array a layer."""
        import jax

        sizes = (inputs, *self.widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            math.sqrt(self.weight_variance / into) * jax.random.normal(k, (into, out))
            for k, (into, out) in zip(keys, pairwise(sizes), strict=True)
        ]

    def apply(self, parameters: list[Any], x: Any) -> Any:
        """Answers, (m, outputs), to inputs (m, d)."""
        import jax

        activation = {
            "relu": jax.nn.relu,
            "gelu": lambda z: jax.nn.gelu(z, approximate=False),
            "elu": jax.nn.elu,
            "tanh": jax.numpy.tanh,
            "sin": jax.numpy.sin,
            "erf": jax.scipy.special.erf,
        }[self.activation]
        for weights in parameters[:-1]:
            x = activation(x @ weights)
        return x @ parameters[-1]


@dataclass(frozen=True)
class TrainedAnswers:
    """What trained models say."""

    answers: FloatArray  # (models, queries, outputs) at the queries
    losses: FloatArray  # (models,) each model's mean loss over its own training records at the end


@dataclass(frozen=True)
class NetworkTrainer:
    """Trains networks by stochastic gradient descent or Adam on the squared loss.

    Parameters
    ----------
    network
        What is trained.
    optimiser, learning_rate, momentum
        ``"adam"`` or ``"sgd"``; momentum is sgd's.
    epochs, batch_size
        Passes over the data; ``None`` is the full batch.  Batches are drawn anew in every epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.verifying import DenseNetwork, NetworkTrainer
    >>> trainer = NetworkTrainer(
    ...     DenseNetwork((32,)), epochs=300, batch_size=None, learning_rate=0.01)
    >>> X, y = np.eye(3), np.array([[1.0], [0.0], [-1.0]])
    >>> trained = trainer.train(X, y, np.ones((2, 3), dtype=bool), X, Key(0))
    >>> trained.answers.shape, bool(trained.losses.max() < 0.05)
    ((2, 3, 1), True)
    """

    network: DenseNetwork
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    epochs: int = 50
    batch_size: int | None = 64

    def __post_init__(self) -> None:
        if self.optimiser not in ("adam", "sgd"):
            raise InputError(f"optimiser must be adam or sgd, but it is {self.optimiser!r}.")
        for name in ("learning_rate", "epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive, but it is {value}.")

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included``, in float32."""
        require_libraries()
        import jax

        together = 1 if jax.default_backend() == "cpu" else len(included)
        answers, losses = _compiled(self, together)(
            np.float32(X), np.float32(y), np.float32(included), np.float32(queries),
            _seeds(key, len(included)),
        )  # fmt: skip
        answers, losses = np.asarray(answers, np.float64), np.asarray(losses, np.float64)
        if not (np.isfinite(answers).all() and np.isfinite(losses).all()):
            raise InputError(
                f"training diverged with learning_rate {self.learning_rate:g}: lower it."
            )
        return TrainedAnswers(answers, losses)


def require_libraries() -> None:
    """Refuse to train networks where JAX or optax is not installed."""
    require_jax("Training networks")
    required("optax", "Training networks")


def _seeds(key: Key, models: int) -> NDArray[np.uint32]:
    return key.generator().integers(2**32, size=models, dtype=np.uint32)


@lru_cache(maxsize=16)
def _compiled(trainer: NetworkTrainer, together: int) -> Any:
    import jax

    def all_models(X: Any, y: Any, included: Any, queries: Any, seeds: Any) -> Any:
        def model_answers(model: tuple[Any, Any]) -> Any:
            (parameters,) = _path(trainer, X, y, *model, (trainer.epochs,))
            residual = trainer.network.apply(parameters, X) - y
            return trainer.network.apply(parameters, queries), _weighted(residual, model[0])

        batch = together if together > 1 else None
        return jax.lax.map(model_answers, (included, seeds), batch_size=batch)

    return jax.jit(all_models)


def parameters_at(
    trainer: NetworkTrainer,
    X: FloatArray,
    y: FloatArray,
    included: NDArray[np.bool_],
    key: Key,
    checkpoints: Sequence[int] | None = None,
) -> list[list[Any]]:
    """The parameters of the models of :meth:`NetworkTrainer.train` after some of their epochs.

    Parameters
    ----------
    trainer, X, y, included, key
        As for :meth:`NetworkTrainer.train`; the same key trains the same models.
    checkpoints
        Epochs, rising, from 0 (the start) to the trainer's; by default the end only.

    Returns
    -------
    list of list
        For each checkpoint, the parameters of each model.
    """
    require_libraries()
    import jax

    stops = (trainer.epochs,) if checkpoints is None else tuple(int(stop) for stop in checkpoints)
    if not stops or list(stops) != sorted({*stops}) or stops[0] < 0 or stops[-1] > trainer.epochs:
        raise InputError(
            f"checkpoints must be epochs that rise from 0 to {trainer.epochs}, but they are "
            f"{stops}."
        )
    follow = jax.jit(lambda X, y, rows, seed: _path(trainer, X, y, rows, seed, stops))
    inputs, targets = np.float32(X), np.float32(y)
    models = [
        jax.device_get(follow(inputs, targets, np.float32(rows), seed))
        for rows, seed in zip(included, _seeds(key, len(included)), strict=True)
    ]
    return [[model[place] for model in models] for place in range(len(stops))]


def _weighted(residual: Any, weight: Any) -> Any:
    """Half the mean squared residual over the records that count."""
    import jax.numpy as jnp

    return 0.5 * jnp.sum(weight[:, None] * residual**2) / jnp.maximum(jnp.sum(weight), 1.0)


def _path(
    trainer: NetworkTrainer, X: Any, y: Any, included: Any, seed: Any, stops: tuple[int, ...]
) -> list[Any]:
    """The parameters of one model after each of these numbers of epochs."""
    import jax
    import jax.numpy as jnp
    import optax

    n = len(X)
    size = min(trainer.batch_size or n, n)
    batches = -(-n // size)
    start, order = jax.random.split(jax.random.key(seed))
    parameters = trainer.network.initial(start, X.shape[1], y.shape[1])
    optimiser = (
        optax.adam(trainer.learning_rate)
        if trainer.optimiser == "adam"
        else optax.sgd(trainer.learning_rate, momentum=trainer.momentum or None)
    )

    def loss(parameters: Any, rows: Any, weight: Any) -> Any:
        return _weighted(trainer.network.apply(parameters, X[rows]) - y[rows], weight)

    def step(state: Any, batch: Any) -> Any:
        parameters, memory = state
        slope = jax.grad(loss)(parameters, *batch)
        change, memory = optimiser.update(slope, memory, parameters)
        return (optax.apply_updates(parameters, change), memory), None

    def epoch(state: Any, key: Any) -> Any:
        if batches == 1:
            return step(state, (slice(None), included))
        # The last batch is filled up with records of weight zero.
        drawn = jax.random.permutation(key, n)
        filled = jnp.concatenate([drawn, jnp.zeros(batches * size - n, drawn.dtype)])
        counts = jnp.concatenate([included[drawn], jnp.zeros(batches * size - n)])
        shape = batches, size
        return jax.lax.scan(step, state, (filled.reshape(shape), counts.reshape(shape)))

    keys = jax.random.split(order, trainer.epochs)
    state = (parameters, optimiser.init(parameters))
    seen = []
    for begin, end in pairwise((0, *stops)):
        if end > begin:
            state, _ = jax.lax.scan(epoch, state, keys[begin:end])
        seen.append(state[0])
    return seen


def checked_records(
    X: ArrayLike, y: ArrayLike, queries: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Records (n, d), targets (n, outputs) and queries (q, d), none where none are given."""
    rows, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or targets.ndim not in (1, 2) or len(targets) != len(rows) or not len(rows):
        raise InputError(
            f"records must be rows of features with a target each, but the shapes are "
            f"{rows.shape} and {targets.shape}."
        )
    asked = rows[:0] if queries is None else np.asarray(queries, dtype=np.float64)
    if asked.ndim != 2 or asked.shape[1] != rows.shape[1]:
        raise InputError(
            f"queries must be rows of {rows.shape[1]} features, but their shape is {asked.shape}."
        )
    return rows, targets.reshape(len(targets), -1), asked


@dataclass(frozen=True)
class RetrainedRecord:
    """One record's answers under models with it and without it."""

    row: int  # the record
    member: FloatArray  # (models, outputs) answers at the record
    nonmember: FloatArray
    auc: Estimate  # of the likelihood-ratio attack, with its 95% interval

    @property
    def shift(self) -> FloatArray:
        """(outputs,) the mean answer with the record less that without it."""
        return np.asarray(self.member.mean(axis=0) - self.nonmember.mean(axis=0))

    @property
    def shift_stderr(self) -> FloatArray:
        """(outputs,) standard errors of the shift."""
        parts = (np.var(a, axis=0, ddof=1) / len(a) for a in (self.member, self.nonmember))
        return np.asarray(np.sqrt(sum(parts)))


@dataclass(frozen=True)
class Retrained:
    """The records that were checked, and the final training losses of all models."""

    records: tuple[RetrainedRecord, ...]
    losses: FloatArray


def retrain(
    X: ArrayLike,
    y: ArrayLike,
    trainer: NetworkTrainer,
    records: Sequence[int],
    *,
    models: int,
    seed: int = 0,
) -> Retrained:
    """Train models with all records and without each of some, and compare what they say there.

    The difference of their mean answers at the record is memorisation by its definition (Feldman
    2020) with the answer in the place of correctness, and lood's ground truth of Fig. 1(c).

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, outputs); used as they are.
    trainer
        What trains, and answers for every record.
    records
        Rows to leave out, one at a time.
    models
        How many models with everything, and as many without each record.
    seed
        Of the run.
    """
    rows, targets, _ = checked_records(X, y, None)
    asked = [int(row) for row in records]
    if not asked or len({*asked}) != len(asked) or not all(0 <= row < len(rows) for row in asked):
        raise InputError(f"the records to check must be distinct rows of {len(rows)}.")
    if models < LEAST_MODELS:
        raise InputError(f"models must be at least {LEAST_MODELS}, but they are {models}.")
    lots = []
    for row in (None, *asked):
        included = np.ones((models, len(rows)), dtype=np.bool_)
        if row is not None:
            included[:, row] = False
        key = Key(seed).child(0) if row is None else Key(seed).child(1, row)
        queries = rows[asked] if row is None else rows[[row]]
        lots.append(trainer.train(rows, targets, included, queries, key))
    everything = lots[0]
    checked = []
    for place, (row, without) in enumerate(zip(asked, lots[1:], strict=True)):
        member, nonmember = everything.answers[:, place], without.answers[:, 0]
        auc = measures.auc(likelihood_ratio(member, nonmember))
        assert isinstance(auc, Estimate)
        checked.append(RetrainedRecord(row, member, nonmember, auc))
    return Retrained(tuple(checked), np.concatenate([lot.losses for lot in lots]))
