"""From a result to the checks of its laws: which simulation or retraining belongs to which kind."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__, experiments
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.cli.output import table
from leakscope.errors import InputError
from leakscope.experiments import Check, RecordLaws, counted, threshold_for
from leakscope.experiments.cells import OnProgress
from leakscope.io import (
    AuditDocument,
    AuditSettings,
    Dataset,
    QueryDocument,
    Source,
    prepare,
    read_again,
)
from leakscope.io.cells import open_cells
from leakscope.io.plan_results import LassoPlanDocument, LinearPlanDocument
from leakscope.io.results import AssumptionEntry, ResultDocument
from leakscope.io.runs import default_run_directory
from leakscope.io.verify_results import CheckEntry, VerifyDocument

VERIFIABLE = ("audit", "plan_linear", "plan_lasso", "attack_query")
AUC_RESOLUTION = 0.1
LASSO_COEFFICIENTS = 1000


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


@dataclass(frozen=True)
class _Outcome:
    checks: list[Check]
    how: str
    settings: dict[str, Any]
    agreement: dict[str, Any] | None = None


def verified(
    document: ResultDocument,
    *,
    data: Path | None,
    records: int,
    draws: int | None,
    retraining: Retraining | None,
    seed: int,
    on_progress: OnProgress | None,
) -> VerifyDocument:
    """Check the laws behind a result."""
    start = time.perf_counter()
    if isinstance(document, QueryDocument) and retraining is None:
        outcome = _by_draws_at_record(document, _data(document, data), draws or 20_000, seed)
    elif isinstance(document, AuditDocument):
        prepared = _data(document, data)
        rows = _chosen(document, prepared, records, seed)
        if retraining is None:
            outcome = _by_draws(document, prepared, rows, draws or 4000, seed)
        else:
            outcome = _by_retraining(document, prepared, rows, retraining, seed, on_progress)
    elif retraining is not None or data is not None:
        raise InputError("--train, --network and --data belong to the result of an audit.")
    elif isinstance(document, LinearPlanDocument):
        outcome = _by_matrices(document, draws or 200, seed)
    elif isinstance(document, LassoPlanDocument):
        outcome = _by_refits(document, draws or 20, seed)
    else:
        raise InputError(
            f"there is nothing to simulate in a result of the kind {document.kind!r}; verify takes "
            f"{', '.join(VERIFIABLE)}."
        )
    return _document(document, outcome, time.perf_counter() - start, seed)


def _data(document: AuditDocument | QueryDocument, data: Path | None) -> Dataset:
    entry = document.dataset.source
    if entry is None:
        raise InputError("the audit was of arrays in memory, and its result has no data to read.")
    source = Source(**entry.model_dump())
    return prepare(read_again(source, data), scaling=document.settings["scaling"])


def _chosen(document: AuditDocument, prepared: Dataset, count: int, seed: int) -> list[int]:
    """Rows of records, one from each stratum of predicted leakage."""
    place = {name: row for row, name in enumerate(prepared.record_ids)}
    kl = np.zeros(len(place))
    for record in document.records:
        kl[place[record.record_id]] = np.inf if record.kl is None else record.kl
    finite = np.where(np.isfinite(kl), kl, np.max(kl[np.isfinite(kl)], initial=0.0))
    return [int(r) for r in experiments.choose_records(finite, count, random_state=seed)]


def _kernel_matrix(
    document: AuditDocument | QueryDocument, prepared: Dataset
) -> NDArray[np.float64]:
    told = {k: v for k, v in document.settings.items() if k in AuditSettings.model_fields}
    kernel = kernel_from_settings(AuditSettings(**told)).resolved(prepared.features)
    matrix = np.asarray(kernel(prepared.features, prepared.features))
    return np.asarray(float(document.kernel.get("fitted_scale", 1.0)) * matrix)


def _by_draws_at_record(
    document: QueryDocument, prepared: Dataset, draws: int, seed: int
) -> _Outcome:
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
    return _Outcome(checks, how, {"draws": draws})


def _by_draws(
    document: AuditDocument, prepared: Dataset, rows: Sequence[int], draws: int, seed: int
) -> _Outcome:
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
    return _Outcome(checks, how, {"draws": draws, "records": len(rows)})


def _matrix(values: list[Any]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64).reshape(len(values), -1)


def _by_retraining(
    document: AuditDocument,
    prepared: Dataset,
    rows: Sequence[int],
    retraining: Retraining,
    seed: int,
    on_progress: OnProgress | None,
) -> _Outcome:
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
    return _Outcome(checks, how, told_settings, agreement)


def _auc_stderr(measured: experiments.RetrainedRecord, predicted: float | None) -> float:
    """The interval's own half on the prediction's side, in standard errors."""
    value = float(measured.auc.value)
    upwards = predicted is not None and predicted > value
    side = float(measured.auc.high) - value if upwards else value - float(measured.auc.low)
    return max(side / 1.96, 1e-6)


def _by_matrices(document: LinearPlanDocument, draws: int, seed: int) -> _Outcome:
    from leakscope.defences import plan_linear
    from leakscope.linear import GaussianDesign, OutputNoise

    told = document.settings
    design = GaussianDesign(**{k: told[k] for k in ("n", "p", "dim", "sigma", "ridge")})
    noise = OutputNoise(**told["noise"]) if told["noise"]["sigma"] > 0.0 else None
    # Another key than the plan's own simulation, which would agree with itself.
    found = plan_linear(
        design,
        method="simulated",
        noise=noise,
        draws=draws,
        random_state=experiments.Cell("verify", {}).key(seed),
    )
    checks = []
    for name in ("advantage", "advantage_label_known", "generalization_error"):
        predicted = getattr(document, name)
        own = getattr(document, f"{name}_stderr") or 0.0
        measured, stderr = getattr(found, name), getattr(found, f"{name}_stderr")
        value = float("nan") if predicted is None else float(predicted)
        checks.append(
            Check(
                law="typical record",
                quantity=name.replace("_", " "),
                predicted=value,
                measured=measured,
                stderr=float(np.hypot(own, stderr)),
                resolution=max(0.02, 0.1 * abs(value)),
            )
        )
    how = f"{draws} whole matrices drawn and solved, one by one"
    return _Outcome(checks, how, {"draws": draws})


def _by_refits(document: LassoPlanDocument, datasets: int, seed: int) -> _Outcome:
    from leakscope.lasso import LassoSetting, simulate

    if not document.stable:
        raise InputError("the plan is of an unstable setting, which has no law to verify.")
    told = {name: value for name, value in document.settings.items() if name != "seed"}
    found = simulate(
        LassoSetting(**told),
        coefficients=LASSO_COEFFICIENTS,
        datasets=datasets,
        random_state=experiments.Cell("verify", {}).key(seed),
    )
    pairs = {
        "generalization error": (document.generalization_error, found.generalization_error),
        "training error": (document.training_error, found.training_error),
        "active fraction": (document.active_fraction, found.active_fraction),
        "overlap error": (document.overlap_error, found.overlap_error),
        "joint on-average KL": (document.joint_onavg_kl_limit, found.joint_kl),
    }
    checks = [
        Check(
            law="typical record",
            quantity=name,
            predicted=float("nan") if predicted is None else float(predicted),
            measured=measured.value,
            stderr=measured.stderr,
            resolution=0.1 * abs(predicted or 0.0),
        )
        for name, (predicted, measured) in pairs.items()
    ]
    how = (
        f"{datasets} datasets of {LASSO_COEFFICIENTS} coefficients, refitted under noise and with "
        "records replaced; the plan is the limit of many coefficients, from which finite ones "
        "differ a little"
    )
    return _Outcome(checks, how, {"datasets": datasets, "coefficients": LASSO_COEFFICIENTS})


def _document(
    document: ResultDocument, outcome: _Outcome, seconds: float, seed: int
) -> VerifyDocument:
    threshold = threshold_for(len(outcome.checks))
    counts = counted(outcome.checks)
    return VerifyDocument(
        leakscope_version=__version__,
        settings={**outcome.settings, "seed": seed},
        provenance=document.provenance,
        assumptions=[AssumptionEntry(**a.model_dump()) for a in document.assumptions],
        timing={"verify": seconds},
        warnings=[],
        verified_kind=document.kind,
        how=outcome.how,
        threshold=threshold,
        agrees=counts["agrees"],
        differs=counts["differs"],
        could_not_be_told=counts["could not be told"],
        checks=[CheckEntry(**check.to_dict(threshold)) for check in outcome.checks],
        agreement=outcome.agreement,
        verdict=_verdict(counts, threshold, outcome),
    )


def _verdict(counts: dict[Any, int], threshold: float, outcome: _Outcome) -> str:
    total = sum(counts.values())
    words = (
        f"{counts['agrees']} of {total} checks agree, {counts['differs']} differ, "
        f"{counts['could not be told']} could not be told (a check differs beyond |z| = "
        f"{threshold:.2f}, where one false alarm is expected in a hundred such verifications). "
        f"Compared with {outcome.how}."
    )
    if outcome.agreement is not None:
        rank = outcome.agreement["spearman"]
        words += (
            f" Rank correlation of predicted and measured AUC: {rank['value']:.2f} "
            f"[{rank['low']:.2f}, {rank['high']:.2f}]; the audit's levels depend on its noise "
            "variance, its ranks less."
        )
    return words


def page(found: VerifyDocument) -> str:
    """What a person sees."""
    rows = [
        [
            check.law,
            check.quantity,
            _number(check.predicted),
            _number(check.measured),
            _number(check.stderr, 2),
            "-" if check.z is None else f"{check.z:+.2f}",
            check.verdict,
        ]
        for check in found.checks
    ]
    headings = ["law", "quantity", "predicted", "measured", "std. error", "z", "verdict"]
    words = textwrap.wrap(found.verdict, width=92, break_on_hyphens=False)
    return "\n".join([table(headings, rows), "", *words])


def _number(value: float | None, digits: int = 5) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
