"""Training many networks at once, each on its own subset of one dataset.

A record is left out by giving it weight zero, so that all models share the data and one compiled
step.  On a GPU the models of a cell are trained side by side (vmap); on a CPU one after another
inside one compiled loop, because training is bound by arithmetic there and a batch of models only
spoils the caches (benchmarks/retraining.py measures both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.settings import RETRAINING_DEFAULTS
from leakscope.verifying.networks import Network


@dataclass(frozen=True)
class TrainedAnswers:
    """What trained models say.

    Attributes
    ----------
    answers
        (models, queries, outputs) at the queries.
    losses
        (models,) each model's mean loss over its own training records at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import TrainedAnswers
    >>> TrainedAnswers(np.zeros((4, 2, 1)), np.zeros(4)).answers.shape
    (4, 2, 1)
    """

    answers: FloatArray
    losses: FloatArray


class Trainer(Protocol):
    """Whatever trains models on subsets of a dataset and has them answer.

    Examples
    --------
    >>> from leakscope.verifying import DenseNetwork, NetworkTrainer
    >>> NetworkTrainer(DenseNetwork((8,))).describe()["family"]
    'DenseNetwork'
    """

    def describe(self) -> dict[str, Any]:
        """Its settings, as plain JSON; a run is resumed only with the same."""

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included`` (models, n); y is (n, outputs)."""


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
    weight_decay
        Added to the gradient, times the weights.
    side_by_side
        How many models are trained side by side; by default all on a GPU and one on a CPU.

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

    network: Network
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: float = RETRAINING_DEFAULTS.learning_rate
    momentum: float = 0.9
    epochs: int = 50
    batch_size: int | None = 64
    weight_decay: float = 0.0
    side_by_side: int | None = None

    def __post_init__(self) -> None:
        if self.optimiser not in ("adam", "sgd"):
            raise InputError(f"optimiser must be adam or sgd, but it is {self.optimiser!r}.")
        if not self.learning_rate > 0.0:
            raise InputError(f"learning_rate must be positive, but it is {self.learning_rate}.")
        if self.epochs < 1:
            raise InputError(f"epochs must be 1 or more, but it is {self.epochs}.")
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch_size must be 1 or more, but it is {self.batch_size}.")

    def describe(self) -> dict[str, Any]:
        """The settings, as plain JSON."""
        settings = asdict(self)
        settings.pop("side_by_side")
        return {"kind": "network", "family": type(self.network).__name__, **settings}

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included``, in float32."""
        import jax

        seeds = key.generator().integers(2**32, size=len(included), dtype=np.uint32)
        together = self.side_by_side
        if together is None:
            together = 1 if jax.default_backend() == "cpu" else len(included)
        answers, losses = _compiled(self, min(together, len(included)))(
            np.float32(X), np.float32(y), np.float32(included), np.float32(queries), seeds
        )
        answers, losses = np.asarray(answers, np.float64), np.asarray(losses, np.float64)
        if not (np.isfinite(answers).all() and np.isfinite(losses).all()):
            raise InputError(
                f"training diverged with learning_rate {self.learning_rate:g}: lower it."
            )
        return TrainedAnswers(answers, losses)


@lru_cache(maxsize=16)
def _compiled(trainer: NetworkTrainer, together: int) -> Any:
    import jax

    def all_models(X: Any, y: Any, included: Any, queries: Any, seeds: Any) -> Any:
        def one(model: tuple[Any, Any]) -> Any:
            parameters = _trained(trainer, X, y, *model)
            residual = trainer.network.apply(parameters, X) - y
            loss = _weighted(residual, model[0])
            return trainer.network.apply(parameters, queries), loss

        return jax.lax.map(one, (included, seeds), batch_size=together if together > 1 else None)

    return jax.jit(all_models)


def _weighted(residual: Any, weight: Any) -> Any:
    """Half the mean squared residual over the records that count."""
    import jax.numpy as jnp

    return 0.5 * jnp.sum(weight[:, None] * residual**2) / jnp.maximum(jnp.sum(weight), 1.0)


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

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.verifying import DenseNetwork, NetworkTrainer, parameters_at
    >>> trainer = NetworkTrainer(DenseNetwork((8,)), epochs=4)
    >>> X, y, everything = np.eye(3), np.ones((3, 1)), np.ones((2, 3), dtype=bool)
    >>> start, end = parameters_at(trainer, X, y, everything, Key(0), (0, 4))
    >>> len(start), start[1][0]["w"].shape
    (2, (3, 8))
    """
    import jax

    stops = (trainer.epochs,) if checkpoints is None else tuple(int(stop) for stop in checkpoints)
    if not stops or list(stops) != sorted({*stops}) or stops[0] < 0 or stops[-1] > trainer.epochs:
        raise InputError(
            f"checkpoints must be epochs that rise from 0 to {trainer.epochs}, but they are "
            f"{stops}."
        )
    seeds = key.generator().integers(2**32, size=len(included), dtype=np.uint32)
    follow, inputs, targets = _compiled_path(trainer, stops), np.float32(X), np.float32(y)
    models = [
        jax.device_get(follow(inputs, targets, np.float32(rows), seed))
        for rows, seed in zip(included, seeds, strict=True)
    ]
    return [[model[place] for model in models] for place in range(len(stops))]


@lru_cache(maxsize=16)
def _compiled_path(trainer: NetworkTrainer, stops: tuple[int, ...]) -> Any:
    import jax

    def follow(X: Any, y: Any, included: Any, seed: Any) -> Any:
        return _path(trainer, X, y, included, seed, stops)

    return jax.jit(follow)


def _trained(trainer: NetworkTrainer, X: Any, y: Any, included: Any, seed: Any) -> Any:
    """The parameters of one model after all its steps."""
    return _path(trainer, X, y, included, seed, (trainer.epochs,))[-1]


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
    chain = [optax.add_decayed_weights(trainer.weight_decay)] if trainer.weight_decay else []
    chain.append(
        optax.adam(trainer.learning_rate)
        if trainer.optimiser == "adam"
        else optax.sgd(trainer.learning_rate, momentum=trainer.momentum or None)
    )
    optimiser = optax.chain(*chain)

    def loss(parameters: Any, rows: Any, weight: Any) -> Any:
        return _weighted(trainer.network.apply(parameters, X[rows]) - y[rows], weight)

    def step(state: Any, batch: Any) -> Any:
        parameters, memory = state
        gradient = jax.grad(loss)(parameters, *batch)
        change, memory = optimiser.update(gradient, memory, parameters)
        return (optax.apply_updates(parameters, change), memory), None

    def whole(state: Any, _: Any) -> Any:
        parameters, memory = state
        gradient = jax.grad(lambda p: _weighted(trainer.network.apply(p, X) - y, included))(
            parameters
        )
        change, memory = optimiser.update(gradient, memory, parameters)
        return (optax.apply_updates(parameters, change), memory), None

    def epoch(state: Any, key: Any) -> Any:
        # The last batch is filled up with records of weight zero.
        drawn = jax.random.permutation(key, n)
        filled = jnp.concatenate([drawn, jnp.zeros(batches * size - n, drawn.dtype)])
        counts = jnp.concatenate([included[drawn], jnp.zeros(batches * size - n)])
        return jax.lax.scan(
            step, state, (filled.reshape(batches, size), counts.reshape(batches, size))
        )

    keys = jax.random.split(order, trainer.epochs)
    state = (parameters, optimiser.init(parameters))
    seen = []
    for begin, end in pairwise((0, *stops)):
        if end > begin:
            state, _ = jax.lax.scan(whole if batches == 1 else epoch, state, keys[begin:end])
        seen.append(state[0])
    return seen
