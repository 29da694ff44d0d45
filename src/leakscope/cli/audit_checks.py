"""Checks of an audit's laws: draws from the same Gaussian process, or models that are retrained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import experiments
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.cli.plan_checks import Outcome
from leakscope.errors import InputError
from leakscope.experiments import Check, RecordLaws
from leakscope.experiments.cells import OnProgress
from leakscope.io import AuditDocument, AuditSettings, Dataset, QueryDocument
from leakscope.io.cells import open_cells
from leakscope.io.runs import default_run_directory

AUC_RESOLUTION = 0.1


@dataclass(frozen=True)
class Retraining:
    """How models are retrained: with a function of the user's, or a dense network."""

    train: str | None
    widths: tuple[int, ...] | None
    epochs: int
    learning_rate: float
    models: int
    workers: int | None
    scheduler: str | None
    run_dir: Path | None


def _kernel_matrix(
    document: AuditDocument | QueryDocument, prepared: Dataset
) -> NDArray[np.float64]:
    told = {k: v for k, v in document.settings.items() if k in AuditSettings.model_fields}
    kernel = kernel_from_settings(AuditSettings(**told)).resolved(prepared.features)
    matrix = np.asarray(kernel(prepared.features, prepared.features))
    return np.asarray(float(document.kernel.get("fitted_scale", 1.0)) * matrix)


def by_draws_at_record(
    document: QueryDocument, prepared: Dataset, draws: int, seed: int
) -> Outcome:
    """The KL at the record itself, which no query may exceed, from draws with and without it."""
    if len(document.records) != 1:
        raise InputError("verify checks the search for one record, and this one is for a group.")
    row = list(prepared.record_ids).index(document.records[0])
    value, stderr = experiments.kl_from_draws(
        _kernel_matrix(document, prepared),
        prepared.target,
        row,
        noise_variance=document.noise_variance,
        draws=draws,
        random_state=seed,
    )
    own = float("nan") if document.kl_at_record is None else document.kl_at_record
    law = f"record {document.records[0]}"
    checks = [Check(law, "KL at the record", own, value, stderr, resolution=0.1 * abs(own))]
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without the "
        "record; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws})


def by_draws(
    document: AuditDocument, prepared: Dataset, rows: Sequence[int], draws: int, seed: int
) -> Outcome:
    """Means and deviations of the audit's laws against draws of the same process."""
    matrix = _kernel_matrix(document, prepared)
    by_id = {record.record_id: record for record in document.records}
    told = [by_id[prepared.record_ids[row]] for row in rows]
    laws = RecordLaws(
        rows=np.asarray(rows, dtype=np.intp),
        mean_with=_matrix([r.mean_with for r in told]),
        variance_with=np.array([r.variance_with for r in told], dtype=np.float64),
        mean_without=_matrix([r.mean_without for r in told]),
        variance_without=np.array([r.variance_without for r in told], dtype=np.float64),
    )
    checks = experiments.check_records(
        matrix,
        prepared.target,
        laws,
        noise_variance=document.noise_variance,
        draws=draws,
        names=prepared.record_ids,
        random_state=seed,
    )
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each "
        f"of {len(rows)} records; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws, "records": len(rows)})


def _matrix(values: list[Any]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64).reshape(len(values), -1)


def by_retraining(
    document: AuditDocument,
    prepared: Dataset,
    rows: Sequence[int],
    retraining: Retraining,
    seed: int,
    on_progress: OnProgress | None,
) -> Outcome:
    """The audit's AUCs against attacks on models trained with and without each record."""
    trainer: experiments.Trainer
    if retraining.train is not None:
        trainer, what = experiments.load_trainer(retraining.train), retraining.train
    else:
        widths = retraining.widths or ()
        trainer = experiments.NetworkTrainer(
            experiments.DenseNetwork(widths, activation=document.kernel.get("activation", "relu")),
            epochs=retraining.epochs,
            learning_rate=retraining.learning_rate,
        )
        what = f"a dense network of widths {', '.join(str(w) for w in widths)}"
    plan = experiments.RetrainingPlan(
        records=tuple(rows), models=retraining.models, models_per_cell=min(8, retraining.models)
    )
    settings = {
        **plan.describe(),
        "trainer": trainer.describe(),
        "data": None if prepared.source is None else prepared.source.digest,
        "scaling": document.settings["scaling"],
    }
    place = retraining.run_dir or default_run_directory("verify", prepared.name)
    with (
        experiments.cluster_client(
            scheduler=retraining.scheduler, workers=retraining.workers
        ) as client,
        open_cells(place, settings=settings, seed=seed) as store,
    ):
        found = experiments.retrain(
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
            measured=float(measured.auc.value),
            stderr=_auc_stderr(measured, record.auc),
            resolution=AUC_RESOLUTION,
        )
        for record, measured in zip(told, found.records, strict=True)
    ]
    agreement = None
    if len(rows) >= experiments.LEAST_RECORDS:
        agreement = experiments.agreement(
            [check.predicted for check in checks],
            [check.measured for check in checks],
            [float(r.auc.low) for r in found.records],
            [float(r.auc.high) for r in found.records],
            random_state=seed,
        ).to_dict()
    how = (
        f"{found.models_trained} models of {what}, trained with and without each of {len(rows)} "
        f"records ({found.models_planned} were planned; records whose AUC was known to within "
        f"0.05 needed no more), attacked by the likelihood ratio; cells in {place}"
    )
    told_settings = {**settings, "models": retraining.models, "run_directory": str(place)}
    return Outcome(checks, how, told_settings, agreement)


def _auc_stderr(measured: experiments.RetrainedRecord, predicted: float | None) -> float:
    """The interval's own half on the prediction's side, in standard errors."""
    value = float(measured.auc.value)
    upwards = predicted is not None and predicted > value
    side = float(measured.auc.high) - value if upwards else value - float(measured.auc.low)
    return max(side / 1.96, 1e-6)
