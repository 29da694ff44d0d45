"""An audited training taken up again: its models, the laws of its result, other options of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from leakscope.auditing.half_models import train_halves
from leakscope.auditing.model_result import Examined, ModelAuditResult
from leakscope.auditing.own_training import training_of
from leakscope.auditing.reopened import taken_from_result
from leakscope.auditing.trained_audit import audited_training
from leakscope.auditing.training_options import with_options
from leakscope.data import Task
from leakscope.fitted import Diagnostics, FittedLaws, Observed, ShadowScores
from leakscope.laws import Provenance
from leakscope.results import ModelAuditDocument, ModelAuditRecord
from leakscope.running import OnProgress, open_cells
from leakscope.settings import AuditSettings, TrainingSettings, validated


def models_of_halves(examined: Examined, task: Task, models: int, *, seed: int) -> ShadowScores:
    """The scores of an even number of models, each trained on half of the records.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope.auditing import Examined, models_of_halves
    >>> X, y = load_wine(return_X_y=True)
    >>> examined = Examined(DecisionTreeClassifier(), X, y)
    >>> models_of_halves(examined, "classification", 4, seed=1).scores.shape
    (4, 178)
    """
    training = training_of(examined.estimator, task, None)
    about = {"training": training.describe()}
    with (
        tempfile.TemporaryDirectory() as folder,
        open_cells(f"{folder}/models", settings=about, seed=seed) as store,
    ):
        found = train_halves(examined.X, examined.y, training, models, store, seed=seed)
    return ShadowScores(found.scores, found.trained_on)


def audit_training_with(
    examined: Examined,
    document: ModelAuditDocument,
    options: Mapping[str, Any],
    *,
    on_progress: OnProgress | None = None,
) -> ModelAuditResult:
    """The audit of a training once more, with other options of it: the same halves and seeds.

    Parameters
    ----------
    examined
        What was trained, and its records: of the result in memory, or by
        :func:`leakscope.auditing.examined_again`.
    document
        What is stored of the audit.
    options
        Values by name (:func:`leakscope.auditing.with_options`).  With none, models that the audit
        has kept are not trained again.
    on_progress
        Called after every model.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope import auditing
    >>> X, y = load_wine(return_X_y=True)
    >>> own = auditing.audit_trained(X, y, DecisionTreeClassifier())
    >>> again = auditing.audit_training_with(own.examined, own.to_document(), {"max_depth": 1})
    >>> again.model.name, again.fit.left_out < own.fit.left_out
    ('DecisionTreeClassifier(max_depth=1)', True)
    """
    told = document.settings
    with taken_from_result():
        fields = TrainingSettings.model_fields
        how = validated(TrainingSettings, **{name: told[name] for name in fields})
        usual = validated(AuditSettings, scaling=told["scaling"], seed=told["seed"])
        task: Task = "regression" if told["task"] == "regression" else "classification"
    training = training_of(examined.estimator, task, how.time_limit, name=str(how.train))
    if options and how.keep is not None:
        # Other models than the audit's own, which stay where they are.
        words = "-".join(f"{name}={value}" for name, value in options.items())
        how = how.model_copy(update={"keep": f"{how.keep}-{words}"})
    return audited_training(
        examined.X,
        np.asarray(examined.y),
        with_options(training, options),
        how,
        seed=usual.seed,
        ids=tuple(range(len(examined.y))),
        dataset=document.dataset,
        scaling=usual.scaling,
        on_progress=on_progress,
    )


def stored_laws(document: ModelAuditDocument, records: Sequence[ModelAuditRecord]) -> FittedLaws:
    """The laws of the given records of a result, in their order.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope.auditing import stored_laws
    >>> X, y = load_diabetes(return_X_y=True)
    >>> document = leakscope.audit(X, y, model=Ridge().fit(X, y)).to_document()
    >>> stored_laws(document, document.records[:3]).records
    3
    """

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([getattr(record, name) for record in records], dtype=np.float64)

    return FittedLaws(
        member_mean=column("mean_with"),
        member_sd=column("sd_with"),
        nonmember_mean=column("mean_without"),
        nonmember_sd=column("sd_without"),
        question=document.question,
        fraction=document.fraction,
        observes=cast(Observed, document.observes),
        trusted=np.array([record.trusted for record in records]),
        largest_share=column("largest_share"),
        warnings=(),
        diagnostics=Diagnostics(0, 0.0, converged=True, smoothing_gap=0.0, lumpy=0.0, led=0.0),
        provenance=Provenance(question=document.question),
    )
