"""Checks of an audit's laws by models that are retrained with and without a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing import settings_of
from leakscope.data import Dataset
from leakscope.errors import InputError
from leakscope.results import AuditDocument, default_run_directory
from leakscope.running import OnProgress, cluster_client, open_cells
from leakscope.settings import RETRAINING_DEFAULTS, Labels
from leakscope.verifying.agreement import LEAST_RECORDS, agreement
from leakscope.verifying.checks import Check, leaning
from leakscope.verifying.experiments.network_training import DenseNetwork, NetworkTrainer, Trainer
from leakscope.verifying.experiments.retraining import RetrainedRecord, RetrainingPlan, retrain
from leakscope.verifying.own_training import FunctionTrainer, load_trainer
from leakscope.verifying.plan_checks import Outcome

AUC_RESOLUTION = 0.1

# Answers that differ by less are one answer, but for rounding.
SAME = 1e-12


@dataclass(frozen=True)
class Retraining:
    """How :func:`verify` retrains models: with a function of the user's, or a dense network.

    Parameters
    ----------
    train
        ``train(X, y, seed)`` that returns a predictor; the function, or ``"module:function"``.
    labels
        What ``train`` gets as y: ``"coded"``, numbers as the audit uses them, or ``"written"``.
    widths
        Of the hidden layers of a dense network, instead of ``train``.
    epochs, learning_rate
        Of the network.
    models
        At most this many with and without each record.
    workers, scheduler
        Retrain in so many processes, or on the Dask cluster at this address.
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
    labels: Labels = RETRAINING_DEFAULTS.labels
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

    def trainer(self, activation: str, labels: NDArray[Any] | None) -> tuple[Trainer, str]:
        """What trains, and its name in words."""
        if isinstance(self.train, str):
            return replace(load_trainer(self.train), labels=labels), self.train
        if self.train is not None:
            name = getattr(self.train, "__qualname__", "a function")
            return FunctionTrainer(self.train, labels=labels), name
        widths = self.widths or ()
        network = NetworkTrainer(
            DenseNetwork(widths, activation=activation),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )
        return network, f"a dense network of widths {', '.join(str(w) for w in widths)}"


def by_retraining(
    document: AuditDocument,
    prepared: Dataset,
    labels: NDArray[Any] | None,
    rows: Sequence[int],
    retraining: Retraining,
    seed: int,
    on_progress: OnProgress | None,
) -> Outcome:
    """The audit's AUCs against attacks on models trained with and without each record."""
    trainer, what = retraining.trainer(document.kernel.get("activation", "relu"), labels)
    plan = RetrainingPlan(
        records=tuple(rows), models=retraining.models, models_per_cell=min(8, retraining.models)
    )
    settings = {
        **plan.describe(),
        "trainer": trainer.describe(),
        "data": None if prepared.source is None else prepared.source.digest,
        "scaling": settings_of(document).scaling,
    }
    place = (
        default_run_directory("verify", prepared.name)
        if retraining.run_dir is None
        else Path(retraining.run_dir)
    )
    with (
        cluster_client(scheduler=retraining.scheduler, workers=retraining.workers) as client,
        open_cells(place, settings=settings, seed=seed) as store,
    ):
        found = retrain(
            prepared.features,
            prepared.target,
            trainer,
            plan,
            store,
            seed=seed,
            client=client,
            on_progress=on_progress,
        )
    by_id = {record.record_id: record for record in document.records}
    told = [by_id[prepared.record_ids[row]] for row in rows]
    checks = [
        Check(
            law=f"record {record.record_id}",
            quantity="AUC",
            predicted=float("nan") if record.auc is None else record.auc,
            measured=float("nan") if _identical(measured) else float(measured.auc.value),
            stderr=_auc_stderr(measured, record.auc),
            resolution=AUC_RESOLUTION,
        )
        for record, measured in zip(told, found.records, strict=True)
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
    warnings = [_deterministic(what, len(rows) - len(told_apart), len(rows)), leaning(checks)]
    how = (
        f"{found.models_trained} models of {what}, trained with and without each of {len(rows)} "
        f"records ({found.models_planned} were planned; records whose AUC was known to within "
        f"0.05 needed no more), attacked by the likelihood ratio; cells in {place}"
    )
    if isinstance(trainer, FunctionTrainer):
        targets = np.reshape(prepared.target, (len(prepared.target), -1))
        how += f". It was given {trainer.arrives(prepared.features, targets)}"
    told_settings = {**settings, "models": retraining.models, "run_directory": str(place)}
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
        f"for {count} of {records} records every model of {what} answers alike, with the record "
        "and without it: the seed is ignored, and an AUC would be 0.5 or 1 by construction.  Use "
        "the seed (of the initialisation, the order or a subsample); if the model has no "
        "randomness, audit the model itself (--model) and verify that by shadow models."
    )


def _auc_stderr(measured: RetrainedRecord, predicted: float | None) -> float:
    """The interval's own half on the prediction's side, in standard errors."""
    value = float(measured.auc.value)
    upwards = predicted is not None and predicted > value
    side = float(measured.auc.high) - value if upwards else value - float(measured.auc.low)
    return max(side / 1.96, 1e-6)
