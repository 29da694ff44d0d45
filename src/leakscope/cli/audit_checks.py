"""Checks of an audit's laws: draws from the same Gaussian process, or models that are retrained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import running, verifying
from leakscope.auditing.checks import record_name
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.cli.plan_checks import Outcome, taken_from_result
from leakscope.data import Dataset
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.results import AuditDocument, QueryDocument
from leakscope.results.run_directory import default_run_directory
from leakscope.running.cell_store import open_cells
from leakscope.running.cells import OnProgress
from leakscope.settings import LARGEST, LEAST, AuditSettings, validated
from leakscope.verifying import Check, RecordLaws

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


def settings_of(document: AuditDocument | QueryDocument) -> AuditSettings:
    """The settings that a result says it was made with, checked again."""
    told = {k: v for k, v in document.settings.items() if k in AuditSettings.model_fields}
    with taken_from_result():
        if "scaling" not in told:
            raise KeyError("scaling")
        if not LEAST <= document.noise_variance <= LARGEST:
            raise ValueError(f"noise_variance is {document.noise_variance:g}")
        return validated(AuditSettings, **told)


def _kernel_matrix(
    document: AuditDocument | QueryDocument, prepared: Dataset
) -> NDArray[np.float64]:
    with taken_from_result():
        scale = float(document.kernel.get("fitted_scale", 1.0))
        if not (np.isfinite(scale) and scale > 0.0):
            raise ValueError(f"fitted_scale is {scale:g}")
    kernel = kernel_from_settings(settings_of(document)).resolved(prepared.features)
    matrix = np.asarray(kernel(prepared.features, prepared.features))
    return np.asarray(scale * matrix)


def require_same_records(document: AuditDocument, prepared: Dataset) -> None:
    """Refuse a result whose records are not those of its data."""
    told, there = [r.record_id for r in document.records], list(prepared.record_ids)
    strange = sorted(set(map(str, told)) ^ set(map(str, there)))
    if len(told) != len(there) or set(told) != set(there):
        which = f", such as {strange[0]!r}" if strange else ""
        raise InputError(
            f"the result has {len(told)} records and its data {len(there)}, and they are not the "
            f"same{which}."
        )
    outputs = 1 if prepared.target.ndim == 1 else prepared.target.shape[1]
    for record in document.records:
        for mean in (record.mean_with, record.mean_without):
            if len(mean if isinstance(mean, list) else [mean]) != outputs:
                raise InputError(
                    f"the result's record {record.record_id!r} has not one mean for each of "
                    f"{outputs} outputs."
                )


def by_draws_at_record(
    document: QueryDocument, prepared: Dataset, draws: int, seed: int
) -> Outcome:
    """The KL at the record itself, which no query may exceed, from draws with and without it."""
    if len(document.records) != 1:
        raise InputError("verify checks the search for one record, and this one is for a group.")
    if document.records[0] not in prepared.record_ids:
        raise InputError(f"the data have no record {document.records[0]!r}.")
    row = list(prepared.record_ids).index(document.records[0])
    _require_positive(document.noise_variance, "the result's noise_variance")
    value, stderr = verifying.kl_from_draws(
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
    _require_positive(document.noise_variance, "the result's noise_variance")
    by_id = {record.record_id: record for record in document.records}
    told = [by_id[prepared.record_ids[row]] for row in rows]
    for record in told:
        for variance in (record.variance_with, record.variance_without):
            _require_positive(variance, f"a variance of the result's record {record.record_id!r}")
    laws = RecordLaws(
        rows=np.asarray(rows, dtype=np.intp),
        mean_with=_matrix([r.mean_with for r in told]),
        variance_with=np.array([r.variance_with for r in told], dtype=np.float64),
        mean_without=_matrix([r.mean_without for r in told]),
        variance_without=np.array([r.variance_without for r in told], dtype=np.float64),
    )
    checks = verifying.check_records(
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


def by_draws_of_groups(
    document: AuditDocument, prepared: Dataset, count: int, draws: int, seed: int
) -> Outcome:
    """KL and mean distance of some groups against draws of the same process."""
    members: dict[RecordId, list[int]] = {}
    for row, value in enumerate(prepared.group or ()):
        members.setdefault(record_name(value), []).append(row)
    told = {record.record_id: record for record in document.records}
    if set(told) != set(members):
        raise InputError(
            f"the result has {len(told)} groups and its data {len(members)}, and they are not the "
            "same."
        )
    _require_positive(document.noise_variance, "the result's noise_variance")
    names = list(told)
    finite = np.array([np.nan if told[n].kl is None else told[n].kl for n in names], dtype=float)
    finite = np.where(np.isfinite(finite), finite, np.nanmax(finite, initial=0.0))
    chosen = [names[i] for i in verifying.choose_records(finite, count, random_state=seed)]
    checks = verifying.check_groups(
        _kernel_matrix(document, prepared),
        prepared.target,
        [members[name] for name in chosen],
        _matrix([told[name].kl for name in chosen])[:, 0],
        _matrix([told[name].mean_distance for name in chosen])[:, 0],
        noise_variance=document.noise_variance,
        draws=draws,
        names=chosen,
        random_state=seed,
    )
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each "
        f"of {len(chosen)} groups; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws, "groups": len(chosen)})


def _require_positive(value: float | None, what: str) -> None:
    if value is None or not value > 0.0:
        raise InputError(f"{what} must be above 0 to be verified, but it is {value}.")


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
    trainer: verifying.Trainer
    if retraining.train is not None:
        trainer, what = verifying.load_trainer(retraining.train), retraining.train
    else:
        widths = retraining.widths or ()
        trainer = verifying.NetworkTrainer(
            verifying.DenseNetwork(widths, activation=document.kernel.get("activation", "relu")),
            epochs=retraining.epochs,
            learning_rate=retraining.learning_rate,
        )
        what = f"a dense network of widths {', '.join(str(w) for w in widths)}"
    plan = verifying.RetrainingPlan(
        records=tuple(rows), models=retraining.models, models_per_cell=min(8, retraining.models)
    )
    settings = {
        **plan.describe(),
        "trainer": trainer.describe(),
        "data": None if prepared.source is None else prepared.source.digest,
        "scaling": settings_of(document).scaling,
    }
    place = retraining.run_dir or default_run_directory("verify", prepared.name)
    with (
        running.cluster_client(
            scheduler=retraining.scheduler, workers=retraining.workers
        ) as client,
        open_cells(place, settings=settings, seed=seed) as store,
    ):
        found = verifying.retrain(
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
    if len(rows) >= verifying.LEAST_RECORDS:
        agreement = verifying.agreement(
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


def _auc_stderr(measured: verifying.RetrainedRecord, predicted: float | None) -> float:
    """The interval's own half on the prediction's side, in standard errors."""
    value = float(measured.auc.value)
    upwards = predicted is not None and predicted > value
    side = float(measured.auc.high) - value if upwards else value - float(measured.auc.low)
    return max(side / 1.96, 1e-6)
