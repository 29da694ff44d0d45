"""Networks trained with and without a record, beside their Gaussian process (lood Fig. 1, 4, 5).

The paper trains 10 dense layers of 1,024 without bias by SGD for 50 epochs, 50 models with and 50
without each of 90 records.  Labels are -1 and 1 here, inputs are standardised, and the learning
rate is a share of what the steepest direction of the loss at the start allows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels, lood, measures
from leakscope.laws import Key
from leakscope.verifying import (
    DenseNetwork,
    NetworkTrainer,
    choose_records,
    retrain,
    tangent_products,
)
from papers.arrays import FloatArray
from papers.figure import Order, Size
from papers.lood_images import load_images

# The authors' code has 0.05 on the kernel's diagonal; n, width and depth of the networks, and
# epochs of SGD.
KNOBS = {"noise_variance": 0.05, "n": 1000, "width": 1024, "depth": 10, "epochs": 50}
QUICK = {"n": 64, "width": 64, "depth": 2, "epochs": 40}

# Few records of digits that are harder to tell apart: with many of easy ones nothing leaks.
DIGITS = (3, 8)

# Where retraining is not at the paper's size.
SMALL = (
    "Small networks and few models in place of 10 layers of 1,024 and 50 models on either side.  "
    "This size was chosen among five after a look at how well predictions and networks agreed; the "
    "full size was not."
)


@dataclass(frozen=True)
class Scale:
    """How much is trained.

    Parameters
    ----------
    n, pool
        Records, and the side of the squares of pixels that are averaged.
    width, depth
        Of the networks.
    records, models
        How many are left out in turn, and how many models are trained with and without each.
    epochs, batch
        Of SGD.
    baseline_models
        How many serve influence functions and TracIn.
    share
        Of the largest stable learning rate.
    """

    n: int
    pool: int
    width: int
    depth: int
    records: int
    models: int
    epochs: int
    batch: int
    baseline_models: int
    share: float = 0.3


SCALES: dict[Size, Scale] = {
    "quick": Scale(64, 2, 64, 2, 28, 20, 40, 32, 2),
    "full": Scale(1000, 1, 1024, 10, 90, 50, 50, 128, 2),
}


def scale_of(size: Size, knobs: Mapping[str, float]) -> Scale:
    """The scale of this size, with the parameters that were asked for."""
    return replace(SCALES[size], **{name: int(knobs[name]) for name in QUICK})


@dataclass(frozen=True)
class Problem:
    """What is trained on: standardised pixels, labels -1 and 1."""

    name: str
    X: FloatArray
    y: FloatArray
    grey_level: float
    notes: tuple[str, ...]


def problem(data: Path | None, scale: Scale, key: Key) -> Problem:
    """The pictures as networks see them; ``grey_level`` is one 255th of the pixels' range."""
    images = load_images(data, scale.n, key, digits=DIGITS)
    X, pool = images.X, 1
    if data is not None and scale.pool > 1:
        pool = scale.pool
        side, channels = images.shape[0] // pool, images.channels
        X = X.reshape(len(X), side, pool, side, pool, channels).mean(axis=(2, 4))
        X = X.reshape(len(X), -1)
    size = f"Pictures are averaged over {pool} x {pool} pixels."
    return Problem(
        images.name,
        (X - X.mean()) / X.std(),
        2.0 * images.y,
        1.0 / (255.0 * float(X.std())),
        (*images.notes, *((size,) if pool > 1 else ())),
    )


@dataclass(frozen=True)
class Predicted:
    """What a Gaussian process or an ensemble says of every record at its own point."""

    auc: FloatArray
    kl: FloatArray
    shift: FloatArray
    sigma_with: FloatArray
    sigma_without: FloatArray


def by_process(K: FloatArray, y: FloatArray, noise: float) -> Predicted:
    """From a kernel matrix and a noise variance."""
    laws = lood.all_records(K, y, noise_variance=noise)
    auc = np.asarray(measures.auc(laws.law_pair()))
    return Predicted(
        auc, laws.kl, laws.mean_shift, laws.variance_with**0.5, laws.variance_without**0.5
    )


def learning_rate(network: DenseNetwork, X: FloatArray, share: float) -> float:
    """A share of what the steepest direction of the loss at the start allows."""
    import jax

    some = X[:128]
    start = network.initial(jax.random.key(0), X.shape[1], 1)
    steepest = np.linalg.eigvalsh(tangent_products(network, start, some, some)[:, 0, :, 0])[-1]
    return float(f"{share * len(some) / steepest:.2g}")


def trainer_of(X: FloatArray, scale: Scale, activation: str) -> NetworkTrainer:
    """SGD with momentum 0.9, as the paper's networks are trained."""
    network = DenseNetwork((scale.width,) * scale.depth, activation=activation)
    return NetworkTrainer(
        network,
        optimiser="sgd",
        learning_rate=learning_rate(network, X, scale.share),
        momentum=0.9,
        epochs=scale.epochs,
        batch_size=scale.batch,
    )


@dataclass(frozen=True)
class Trained:
    """What retraining found for some records, beside what their process predicts.

    Parameters
    ----------
    problem, scale, trainer
        What was trained.
    records
        (m,) rows that were left out in turn.
    auc, low, high
        (m,) of the likelihood-ratio attack, with its 95% interval.
    shift, stderr
        (m,) mean answer with the record less without it, towards its own label.
    predicted
        Of all n records, under the process of the network's own depth and activation.
    noise_variance
        Of that process.
    seconds, analytic_seconds
        Of retraining, and of the process for all records once compiled.
    """

    problem: Problem
    scale: Scale
    trainer: NetworkTrainer
    records: NDArray[np.intp]
    auc: FloatArray
    low: FloatArray
    high: FloatArray
    shift: FloatArray
    stderr: FloatArray
    predicted: Predicted
    noise_variance: float
    seconds: float
    analytic_seconds: float
    loss: float

    @property
    def towards(self) -> FloatArray:
        """The labels of the records: a shift times these is one towards the label."""
        return self.problem.y[self.records]

    @property
    def notes(self) -> tuple[str, ...]:
        """How this differs from the paper's."""
        small = (SMALL,) if self.scale.models < SCALES["full"].models else ()
        return (*self.problem.notes, *small)

    @property
    def settings(self) -> dict[str, object]:
        """What a reader needs to train the same."""
        return {
            "data": self.problem.name,
            **vars(self.scale),
            "noise_variance": self.noise_variance,
            "learning_rate": self.trainer.learning_rate,
            "median final loss": float(f"{self.loss:.2g}"),
        }


def trained(order: Order, activation: str = "relu") -> Trained:
    """Train networks with and without records of every stratum of predicted leakage.

    Figures that share the networks share one run in a process.
    """
    order.step(f"networks with {activation}, with and without records")
    scale = scale_of(order.size, order.knobs)
    noise = order.knobs["noise_variance"]
    return _trained(scale, noise, order.key.child(1), order.data, activation)


@lru_cache(maxsize=4)
def _trained(scale: Scale, noise: float, key: Key, data: Path | None, activation: str) -> Trained:
    found = problem(data, scale, key.child(0))
    X, y = found.X, found.y
    # The records are those that ReLU's process strings out, whatever is trained.
    chosen = choose_records(
        by_process(kernels.nngp(scale.depth)(X), y, noise).auc,
        scale.records,
        random_state=key.child(1),
    )
    kernel = kernels.nngp(scale.depth, activation)
    by_process(kernel(X), y, noise)
    start = time.perf_counter()
    predicted = by_process(kernel(X), y, noise)
    analytic = time.perf_counter() - start
    trainer = trainer_of(X, scale, activation)
    seed = int(key.child(2).generator().integers(2**31))
    start = time.perf_counter()
    run = retrain(X, y, trainer, chosen.tolist(), models=scale.models, seed=seed)
    seconds = time.perf_counter() - start
    return Trained(
        problem=found,
        scale=scale,
        trainer=trainer,
        records=chosen,
        auc=np.array([float(r.auc.value) for r in run.records]),
        low=np.array([float(r.auc.low) for r in run.records]),
        high=np.array([float(r.auc.high) for r in run.records]),
        shift=y[chosen] * np.array([r.shift[0] for r in run.records]),
        stderr=np.array([r.shift_stderr[0] for r in run.records]),
        predicted=predicted,
        noise_variance=noise,
        seconds=seconds,
        analytic_seconds=analytic,
        loss=float(np.median(run.losses)),
    )
