"""From a training of the user's own to every record's leakage, by a few models of it."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.checks import checked_ids
from leakscope.auditing.half_models import HalfModels, digest_of, train_halves
from leakscope.auditing.model_facts import measured_fit, one_threshold_of
from leakscope.auditing.model_result import Examined, ModelAuditResult
from leakscope.auditing.own_training import (
    OwnTraining,
    named_training,
    predicts_classes,
    require_own_rows,
    training_of,
)
from leakscope.auditing.subgroups import exposure_by
from leakscope.data import Dataset, RecordId, Task, prepare
from leakscope.data import doubts as doubts_of
from leakscope.errors import InputError
from leakscope.fitted import Diagnostics, FewModels, FittedLaws, few_models
from leakscope.laws import Normal
from leakscope.results import DatasetEntry, ExaminedModel, default_run_directory
from leakscope.running import OnProgress, cluster_client, open_cells
from leakscope.settings import (
    AUDIT_DEFAULTS,
    TRAINING_DEFAULTS,
    AuditSettings,
    TrainingSettings,
    validated,
)

# Whole numbers are classes where there are no more different ones than this.
MOST_WHOLE_CLASSES = 20


def audit_trained(
    X: Any,
    y: Any,
    train: Any,
    *,
    models: int = TRAINING_DEFAULTS.models,
    task: Task | None = None,
    seed: int = AUDIT_DEFAULTS.seed,
    time_limit: float | None = None,
    keep: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    record_ids: Sequence[Any] | None = None,
    on_progress: OnProgress | None = None,
) -> ModelAuditResult:
    """How much models of a training give away about each record, from a few of them.

    It is what :func:`leakscope.audit` does with ``train``.  The models are trained on
    complementary halves, each record in exactly half of them, and
    :func:`leakscope.fitted.few_models` turns their answers into laws.

    Parameters
    ----------
    X, y
        The records; anything whose rows the training takes.
    train
        A scikit-learn estimator, or a function ``train(X, y, seed)`` that returns a predictor:
        for classes one column of probabilities, or of scores before the softmax, for each sorted
        class, or one probability of the second of two; for quantities one number per record.
    models
        An even number.  Four, then eight with the same ``keep``, trains four more.
    task
        ``"classification"`` or ``"regression"``; by the estimator, or by y, where left out.
    seed
        Of the halves, the models and the draws from the posterior.
    time_limit
        Seconds that one model may take.
    keep
        A directory that keeps each model's answers as soon as it is trained; where left out
        nothing is kept.
    workers, scheduler
        Train in so many processes, or on the Dask cluster at this address.
    record_ids, on_progress
        As in :func:`leakscope.audit`; called after every model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope import auditing
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = auditing.audit_trained(X, y, DecisionTreeClassifier(max_depth=4))
    >>> result.models, bool((result.few.advantage.low <= result.advantage).all())
    (4, True)
    """
    how = validated(
        TrainingSettings,
        models=models,
        time_limit=time_limit,
        keep=None if keep is None else str(keep),
        workers=workers,
        scheduler=scheduler,
    )
    shape = tuple(getattr(X, "shape", None) or np.shape(X))
    labels = np.ravel(np.asarray(y))
    if not shape or shape[0] != len(labels):
        raise InputError(
            f"X has {shape[0] if shape else 0} records and y has {len(labels)}; they must agree."
        )
    records = X if hasattr(X, "shape") else np.asarray(X)
    training = training_of(train, task or _task(train, labels), how.time_limit)
    dataset = DatasetEntry(
        name="arrays",
        records=len(labels),
        features=int(np.prod(shape[1:])),
        outputs=1,
        target_name="y",
        steps=[],
    )
    return audited_training(
        records,
        labels,
        training,
        how,
        seed=seed,
        ids=checked_ids(record_ids, len(labels), X),
        dataset=dataset,
        on_progress=on_progress,
    )


def audit_trained_dataset(
    dataset: Dataset,
    how: TrainingSettings,
    settings: AuditSettings = AUDIT_DEFAULTS,
    *,
    on_progress: OnProgress | None = None,
) -> ModelAuditResult:
    """Audit the training that the settings name, on a dataset as read; scaled and coded first.

    The training function sees numbers: features as prepared, classes as 0, 1, 2 and so on in the
    order of their names.

    Examples
    --------
    >>> import tempfile
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import TrainingSettings
    >>> name = "sklearn.tree:DecisionTreeClassifier"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     how = TrainingSettings(train=name, models=2, keep=folder + "/models")
    ...     result = auditing.audit_trained_dataset(data.read_example("wine"), how)
    >>> result.model.name, result.models
    ('DecisionTreeClassifier()', 2)
    """
    if dataset.group is not None:
        raise InputError(
            "With --train single records leave, and what a whole group changes is not known; leave "
            "out --group."
        )
    prepared = prepare(dataset, scaling=settings.scaling)
    training, y, steps = training_and_target(dataset, prepared, how)
    result = audited_training(
        prepared.features,
        y,
        training,
        how,
        seed=settings.seed,
        ids=prepared.record_ids,
        dataset=DatasetEntry.of(prepared).model_copy(update={"steps": steps, "outputs": 1}),
        scaling=settings.scaling,
        on_progress=on_progress,
    )
    return replace(
        result,
        warnings=(*doubts_of(dataset), *result.warnings),
        subgroups=exposure_by(prepared.by, result.advantage),
    )


def training_and_target(
    dataset: Dataset, prepared: Dataset, how: TrainingSettings
) -> tuple[OwnTraining, NDArray[Any], list[str]]:
    """What is trained, the target as it sees it, and what was done to the data."""
    if how.train is None:
        raise InputError("name a training: --train module:function.")
    training = named_training(how.train, dataset.task, how.time_limit)
    if predicts_classes(training.subject) not in (None, dataset.task == "classification"):
        raise InputError(
            f"{training.name} does not suit the target {dataset.target_name!r}, which is taken for "
            f"{dataset.task}; give --task, or another estimator."
        )
    y: NDArray[Any] = np.asarray(prepared.target, dtype=np.float64)
    steps = list(prepared.steps)
    if dataset.task == "classification":
        classes, y = np.unique(dataset.target.astype(str), return_inverse=True)
        steps = [text for text in steps if not text.startswith("target ")]
        steps.append(f"target taken as {len(classes)} classes, 0 to {len(classes) - 1}")
    elif y.ndim > 1:
        raise InputError("With --train the target must be one column.")
    return training, y, steps


def audited_training(
    X: Any,
    y: NDArray[Any],
    training: OwnTraining,
    how: TrainingSettings,
    *,
    seed: int,
    ids: tuple[RecordId, ...],
    dataset: DatasetEntry,
    scaling: str = "none",
    on_progress: OnProgress | None = None,
) -> ModelAuditResult:
    """Train the models that are not kept yet, and audit the training by all of them."""
    _require_fit_target(training, y)
    about = {"data": digest_of(X, y), "training": training.describe()}
    start = time.perf_counter()
    odd = require_own_rows(training, X, y, seed)
    with ExitStack() as stack:
        place = how.keep
        if place is None and dataset.source is None:
            place = stack.enter_context(tempfile.TemporaryDirectory()) + "/models"
        elif place is None:
            digest = hashlib.sha256(repr((about, seed)).encode()).hexdigest()[:12]
            proposed = default_run_directory("models", dataset.name)
            place = str(proposed.with_name(f"{proposed.name.partition('-')[2]}-{digest}"))
        client = stack.enter_context(cluster_client(scheduler=how.scheduler, workers=how.workers))
        store = stack.enter_context(open_cells(place, settings=about, seed=seed))
        models = train_halves(
            X, y, training, how.models, store, seed=seed, client=client, on_progress=on_progress
        )
    timing = {"train": time.perf_counter() - start, "train_all_models": models.seconds}
    start = time.perf_counter()
    found, sign = _few(models, training, seed)
    laws = _laws(found, sign, training)
    pair = laws.law_pair()
    return ModelAuditResult(
        record_ids=ids,
        kl=np.asarray(measures.kl(pair)),
        kl_reverse=np.asarray(measures.kl(pair, "member_to_nonmember")),
        advantage=found.advantage.value,
        auc=np.asarray(measures.auc(pair)),
        tpr_at_fpr={level: each.value for level, each in found.tpr_at_fpr.items()},
        laws=laws,
        model=ExaminedModel(
            type=type(training.subject).__name__,
            name=training.name,
            origin=f"{how.models} models of halves of the records",
            parameters={},
        ),
        examined=Examined(training.subject, X, y),
        dataset=dataset,
        settings={
            **how.model_dump(),
            "train": how.train or training.name,
            "task": training.task,
            "scaling": scaling,
            "seed": seed,
        },
        created=datetime.now(UTC),
        timing={**timing, "measure": time.perf_counter() - start},
        warnings=(*odd, *models.warnings),
        few=found,
        half_models=models,
        fit=measured_fit(models.scores, models.trained_on, y, training.task),
        one_threshold=one_threshold_of(laws),
    )


def _few(models: HalfModels, training: OwnTraining, seed: int) -> tuple[FewModels, FloatArray]:
    """The estimator's answer, and the sign by which each record's scores were turned.

    Training on a record raises its log-odds, and draws a residual towards zero from whichever
    side: residuals are turned so that it raises them too.  The side is that of the mean over all
    models, with the record and without, so that it does not favour either.
    """
    scores = models.scores
    sign = np.ones(scores.shape[1])
    if training.task == "regression":
        sign = np.where(scores.mean(axis=0) > 0.0, -1.0, 1.0)
    if float(np.ptp(scores)) == 0.0:
        raise InputError(
            f"every model of {training.name} has the same score for every record, so there is "
            "nothing to tell records apart by."
        )
    return few_models(sign * scores, models.trained_on, random_state=seed), sign


def _laws(found: FewModels, sign: FloatArray, training: OwnTraining) -> FittedLaws:
    member, nonmember = found.pair.member, found.pair.nonmember
    assert isinstance(member, Normal)
    assert isinstance(nonmember, Normal)
    observes: Literal["log_odds", "residual"] = (
        "log_odds" if training.task == "classification" else "residual"
    )
    seen = all(entry.holds is not False for entry in found.pair.provenance.assumptions)
    return FittedLaws(
        member_mean=sign * member.mean,
        member_sd=np.asarray(member.sigma),
        nonmember_mean=sign * nonmember.mean,
        nonmember_sd=np.asarray(nonmember.sigma),
        question="pool",
        fraction=0.5,
        observes=observes,
        trusted=np.full(found.records, seen),
        largest_share=np.full(found.records, np.nan),
        warnings=(),
        diagnostics=Diagnostics(0, 0.0, converged=True, smoothing_gap=0.0, lumpy=0.0, led=0.0),
        provenance=replace(found.pair.provenance, question="pool", observes=observes),
    )


def _require_fit_target(training: OwnTraining, y: NDArray[Any]) -> None:
    values = np.unique(y)
    if len(values) < 2:
        raise InputError("the target is the same for every record.")
    if training.task == "regression":
        if y.dtype.kind not in "fiub" or not np.isfinite(y.astype(np.float64)).all():
            raise InputError("a quantity to predict must be a finite number for every record.")
        return
    rare = values[[int(np.count_nonzero(y == value)) < 2 for value in values]]
    if rare.size:
        raise InputError(
            f"the class {rare[0]} has one record only, and no model of the half without it would "
            "know the class; leave the record out."
        )


def _task(train: Any, y: NDArray[Any]) -> Task:
    says = predicts_classes(train)
    if says is not None:
        return "classification" if says else "regression"
    if y.dtype.kind in "fc":
        return "regression"
    many = y.dtype.kind in "iu" and len(np.unique(y)) > MOST_WHOLE_CLASSES
    return "regression" if many else "classification"
