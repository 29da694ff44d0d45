"""Networks that are really trained, many at once, each on its own subset of one dataset.

Initial weights are N(0, weight_variance / fan-in), so that a network of growing width tends to the
Gaussian process of :func:`leakscope.kernels.nngp` with the same depth, activation and variances.

A record is left out by giving it weight zero, so that all models share the data and one compiled
step.  On a GPU the models of a cell are trained side by side (vmap); on a CPU one after another
inside one compiled loop, because training is bound by arithmetic there and a batch of models only
spoils the caches (benchmarks/retraining.py measures both).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.x64 import require_jax
from leakscope.errors import InputError, required
from leakscope.settings.verify import RETRAINING_DEFAULTS

ACTIVATIONS = ("relu", "gelu", "erf", "tanh", "elu", "sin")


@dataclass(frozen=True)
class DenseNetwork:
    """Dense hidden layers and a linear read-out.

    Parameters
    ----------
    widths
        Neurons of each hidden layer.
    activation
        relu, gelu, erf, tanh, elu or sin.
    weight_variance
        Of every layer's weights at the start, times its fan-in.
    bias
        Whether layers have biases; they start at zero.
    """

    widths: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    weight_variance: float = 2.0
    bias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(int(width) for width in self.widths))
        _check(self.widths, "widths", self.activation, self.weight_variance)

    @property
    def depth(self) -> int:
        """Hidden layers."""
        return len(self.widths)

    def initial(self, key: Any, inputs: int, outputs: int) -> list[dict[str, Any]]:
        """Parameters to start from."""
        import jax

        sizes = (inputs, *self.widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            _dense_layer(k, into, out, self.weight_variance, bias=self.bias)
            for k, into, out in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]

    def apply(self, parameters: list[dict[str, Any]], x: Any) -> Any:
        """Answers, (m, outputs), to inputs (m, d)."""
        phi = _activation(self.activation)
        for layer in parameters[:-1]:
            x = phi(_affine(layer, x))
        return _affine(parameters[-1], x)


def _check(sizes: tuple[int, ...], what: str, activation: str, weight_variance: float) -> None:
    if not sizes or min(sizes) < 1:
        raise InputError(f"{what} must be positive and at least one, but they are {sizes}.")
    if activation not in ACTIVATIONS:
        raise InputError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, but it is {activation!r}."
        )
    if not weight_variance > 0.0:
        raise InputError(f"weight_variance must be positive, but it is {weight_variance}.")


def _dense_layer(key: Any, into: int, out: int, variance: float, *, bias: bool) -> dict[str, Any]:
    import jax

    layer = {"w": math.sqrt(variance / into) * jax.random.normal(key, (into, out))}
    if bias:
        layer["b"] = jax.numpy.zeros(out)
    return layer


def _affine(layer: dict[str, Any], x: Any) -> Any:
    return x @ layer["w"] + layer["b"] if "b" in layer else x @ layer["w"]


def _activation(name: str) -> Any:
    import jax

    if name == "gelu":
        return lambda x: jax.nn.gelu(x, approximate=False)
    return {
        "relu": jax.nn.relu,
        "elu": jax.nn.elu,
        "tanh": jax.numpy.tanh,
        "sin": jax.numpy.sin,
        "erf": jax.scipy.special.erf,
    }[name]


@dataclass(frozen=True)
class TrainedAnswers:
    """What trained models say."""

    answers: FloatArray  # (models, queries, outputs) at the queries
    losses: FloatArray  # (models,) each model's mean loss over its own training records at the end


class Trainer(Protocol):
    """Whatever trains models on subsets of a dataset and has them answer."""

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

    network: DenseNetwork
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
        require_libraries()
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
            (parameters,) = _path(trainer, X, y, *model, (trainer.epochs,))
            residual = trainer.network.apply(parameters, X) - y
            loss = _weighted(residual, model[0])
            return trainer.network.apply(parameters, queries), loss

        return jax.lax.map(one, (included, seeds), batch_size=together if together > 1 else None)

    return jax.jit(all_models)


def require_libraries() -> None:
    """Refuse to train networks where JAX or optax is not installed."""
    require_jax("Training networks")
    required("optax", "Training networks")


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
    """
    require_libraries()
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

    def loss_of_all(parameters: Any) -> Any:
        return _weighted(trainer.network.apply(parameters, X) - y, included)

    def moved(state: Any, slope: Any) -> Any:
        parameters, memory = state
        change, memory = optimiser.update(slope(parameters), memory, parameters)
        return (optax.apply_updates(parameters, change), memory), None

    def step(state: Any, batch: Any) -> Any:
        return moved(state, lambda parameters: jax.grad(loss)(parameters, *batch))

    def whole(state: Any, _: Any) -> Any:
        return moved(state, jax.grad(loss_of_all))

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
