"""Checks of an audit's laws by models that are retrained with and without a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.data.datasets import RecordId, Task
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.results.run_directory import default_run_directory
from leakscope.running.cell_store import open_cells
from leakscope.running.cells import OnProgress, cluster_client
from leakscope.settings.verify import RETRAINING_DEFAULTS
from leakscope.subjects.subject import Subject, places
from leakscope.subjects.training.own_training import OwnTraining, named_training, training_of
from leakscope.verifying.checks import LEAST_RECORDS, Check, agreement, leaning, rows_to_check
from leakscope.verifying.network_training import (
    DenseNetwork,
    NetworkTrainer,
    TrainedAnswers,
    Trainer,
    require_libraries,
)
from leakscope.verifying.plan_checks import Outcome
from leakscope.verifying.retraining import RetrainedRecord, RetrainingPlan, retrain

AUC_RESOLUTION = 0.1

# Answers that differ by less are one answer, but for rounding.
SAME = 1e-12


@dataclass(frozen=True)
class Retraining:
    """How :func:`verify` retrains models: with a function of the user's, or a dense network.

    Parameters
    ----------
    train
        As in ``leakscope.audit(train=...)``: ``train(X, y, seed)`` that returns a predictor, or an
        estimator; itself, or ``"module:name"``.  y holds class numbers, or numbers.
    widths
        Of the hidden layers of a dense network, instead of ``train``.
    epochs, learning_rate
        Of the network.
    models
        At most this many with and without each record.
    workers, scheduler
        Retrain in this many processes, or on the Dask cluster at this address.
    run_dir
        Where the models' answers are kept; a run that was stopped goes on there.

    Examples
    --------
    >>> from leakscope.verifying import Retraining
    >>> Retraining(widths=(256, 256)).epochs
    100
    >>> Retraining()
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: retraining needs a training function or a network's widths, one \
of the two.
    """

    train: str | Callable[..., Any] | None = None
    widths: tuple[int, ...] | None = None
    epochs: int = RETRAINING_DEFAULTS.epochs
    learning_rate: float = RETRAINING_DEFAULTS.learning_rate
    models: int = RETRAINING_DEFAULTS.models
    workers: int | None = None
    scheduler: str | None = None
    run_dir: str | Path | None = None

    def __post_init__(self) -> None:
        if (self.train is None) == (self.widths is None):
            raise InputError(
                "retraining needs a training function or a network's widths, one of the two."
            )
        if self.widths is not None:
            require_libraries()

    def trainer(self, activation: str, task: Task) -> tuple[Trainer, str]:
        """What trains, and its name in words."""
        if isinstance(self.train, str):
            named = named_training(self.train, task, None)
            return FunctionTrainer(named.subject, task, self.train), self.train
        if self.train is not None:
            own = FunctionTrainer(self.train, task)
            return own, own.training.name
        widths = self.widths or ()
        network = NetworkTrainer(
            DenseNetwork(widths, activation=activation),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )
        return network, f"a dense network of widths {', '.join(str(w) for w in widths)}"


@dataclass(frozen=True)
class FunctionTrainer:
    """The user's own training, one model after another, as a trainer of experiments."""

    subject: Any
    task: Task = "regression"
    name: str = ""

    @property
    def training(self) -> OwnTraining:
        """The training that a function ``train(X, y, seed)``, or an estimator, is."""
        return training_of(self.subject, self.task, None, name=self.name)

    def describe(self) -> dict[str, Any]:
        """Its name and a digest of its source, so that a changed function is not resumed."""
        return self.training.describe()

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included`` (models, n); y (n, C) is coded."""
        classes = self.training.task == "classification"
        given = _class_numbers(y) if classes else y[:, 0] if y.shape[1] == 1 else y
        seeds = key.generator().integers(2**31, size=len(included))
        answers, losses = [], []
        for rows, seed in zip(included, seeds, strict=True):
            asked = np.concatenate([queries, X[rows]])
            found = self.training.answers(X, given, rows, int(seed), asked)
            told = _as_coded(found, y.shape[1], classes)
            answers.append(told[: len(queries)])
            residual = told[len(queries) :] - y[rows]
            losses.append(0.5 * float(np.mean(np.sum(residual**2, axis=1))))
        return TrainedAnswers(np.array(answers), np.array(losses))

    def arrives(self, X: FloatArray, y: FloatArray) -> str:
        """What the training gets, in words."""
        if self.training.task == "classification":
            targets = f"{len(y)} class numbers, 0 to {len(np.unique(_class_numbers(y))) - 1}"
        else:
            targets = f"{len(y)} numbers, from {float(y.min()):.3g} to {float(y.max()):.3g}"
        return (
            f"X, {len(X)} records of {X.shape[1]} numbers, encoded and scaled as for the audit, "
            f"and y, {targets}"
        )


def _class_numbers(y: FloatArray) -> NDArray[np.intp]:
    """0, 1, ... from targets that are coded as an audit codes classes."""
    if y.shape[1] == 1:
        return np.asarray(y[:, 0] > 0.0, dtype=np.intp)
    return np.asarray(np.argmax(y, axis=1))


def _as_coded(found: FloatArray, outputs: int, classes: bool) -> FloatArray:
    """Answers in the numbers of the coded targets: probabilities less their mean."""
    if not classes:
        if found.shape[1] != outputs:
            raise InputError(
                f"the model answered with {found.shape[1]} numbers per record, and {outputs} are "
                "needed."
            )
        return found
    centred = found - 1.0 / found.shape[1]
    return np.asarray(centred[:, 1:] if outputs == 1 else centred)


def by_retraining(
    audit: Audit,
    subject: Subject,
    retraining: Retraining,
    *,
    records: int,
    record_ids: Sequence[RecordId],
    seed: int,
    on_progress: OnProgress | None,
) -> Outcome:
    """The audit's AUCs against attacks on models trained with and without each record."""
    if subject.counted_in == "models" or audit.question != "leave_one_out":
        raise InputError(
            f"an audit of {subject.words} is verified by shadow models, while retraining with and "
            "without a record answers another question: leave out --train and --network, or "
            "examine your own training with leakscope audit --train."
        )
    if audit.unit == "group":
        raise InputError(
            "retraining checks audits of records, and this one is of groups, which are checked by "
            "draws."
        )
    features, targets, task = subject.training_set()
    own = places(audit, subject)
    exposure = np.nan_to_num(audit.kl[own], posinf=float(np.finfo(np.float64).max))
    rows = rows_to_check(subject.ids, exposure, records, record_ids, random_state=seed)
    trainer, what = retraining.trainer(subject.activation, task)
    plan = RetrainingPlan(
        records=tuple(rows), models=retraining.models, models_per_cell=min(8, retraining.models)
    )
    source = audit.dataset.source
    settings = {
        **plan.describe(),
        "trainer": trainer.describe(),
        "data": None if source is None else source.digest,
        "scaling": audit.settings.get("scaling"),
    }
    directory = (
        default_run_directory("verify", audit.dataset.name)
        if retraining.run_dir is None
        else Path(retraining.run_dir)
    )
    with (
        cluster_client(scheduler=retraining.scheduler, workers=retraining.workers) as client,
        open_cells(directory, settings=settings, seed=seed) as store,
    ):
        found = retrain(
            features,
            targets,
            trainer,
            plan,
            store,
            seed=seed,
            client=client,
            on_progress=on_progress,
        )
    told = [(subject.ids[row], float(audit.auc[own[row]])) for row in rows]
    checks = [
        Check(
            law=f"record {name}",
            quantity="AUC",
            predicted=predicted,
            measured=float("nan") if _identical(measured) else float(measured.auc.value),
            stderr=_auc_stderr(measured, predicted),
            resolution=AUC_RESOLUTION,
        )
        for (name, predicted), measured in zip(told, found.records, strict=True)
    ]
    told_apart = [
        (check, measured.auc)
        for check, measured in zip(checks, found.records, strict=True)
        if not _identical(measured)
    ]
    together = None
    if len(told_apart) >= LEAST_RECORDS:
        together = agreement(
            [check.predicted for check, _ in told_apart],
            [check.measured for check, _ in told_apart],
            [float(auc.low) for _, auc in told_apart],
            [float(auc.high) for _, auc in told_apart],
            random_state=seed,
        ).to_dict()
    lean = leaning(checks)
    warnings = [
        _deterministic(what, len(rows) - len(told_apart), len(rows)),
        None if lean is None else lean[0],
    ]
    how = (
        f"{found.models_trained} models of {what}, trained with and without each of {len(rows)} "
        f"records ({found.models_planned} were planned; records whose AUC was known to within "
        f"0.05 needed no more), attacked by the likelihood ratio; cells in {directory}"
    )
    if isinstance(trainer, FunctionTrainer):
        coded = np.reshape(targets, (len(targets), -1))
        how += f". It was given {trainer.arrives(features, coded)}"
    told_settings = {**settings, "models": retraining.models, "run_directory": str(directory)}
    beware = tuple(sentence for sentence in warnings if sentence is not None)
    return Outcome(checks, how, told_settings, together, beware)


def _identical(measured: RetrainedRecord) -> bool:
    """Whether all models with the record, and all without it, answer alike: no seed was used."""
    return all(
        float(np.max(np.ptp(answers, axis=0))) <= SAME * (1.0 + float(np.max(np.abs(answers))))
        for answers in (measured.member, measured.nonmember)
    )


def _deterministic(what: str, count: int, records: int) -> str | None:
    """What is said where models do not differ; None where they do."""
    if not count:
        return None
    return (
        f"for {count} of {records} records every model of {what} gives the same answers, with the "
        "record and without it: it ignores the seed, and an AUC would be 0.5 or 1 by "
        "construction.  Use the seed (of the initialisation, the order or a subsample); if the "
        "model has no randomness, audit the model itself (--model) and verify that by shadow "
        "models."
    )


def _auc_stderr(measured: RetrainedRecord, predicted: float) -> float:
    """The interval's own half on the prediction's side, in standard errors."""
    value = float(measured.auc.value)
    upwards = predicted > value
    side = float(measured.auc.high) - value if upwards else value - float(measured.auc.low)
    return max(side / 1.96, 1e-6)
