"""Models of an audited training, trained again; and the laws that its result holds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import cast

import numpy as np

from leakscope.auditing.half_models import train_halves
from leakscope.auditing.model_result import Examined
from leakscope.auditing.own_training import training_of
from leakscope.data import Task
from leakscope.fitted import Diagnostics, FittedLaws, Observed, ShadowScores
from leakscope.laws import Provenance
from leakscope.results import ModelAuditDocument, ModelAuditRecord
from leakscope.running import open_cells


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
