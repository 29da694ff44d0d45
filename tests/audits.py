"""Audits of each kind in one call, as the tests ask for them, and a model of two spellings."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression

from leakscope.auditing.audit import examined
from leakscope.data import Dataset
from leakscope.results import Audit
from leakscope.settings import AuditSettings, ModelSettings
from leakscope.settings.audit import TrainingSettings
from leakscope.settings.setting import validated
from leakscope.subjects import Asked


def process_audit(
    dataset: Dataset, settings: AuditSettings | None = None, *, on_stage: Any = None
) -> Audit:
    """The Gaussian process of a dataset, also where no option of it is given."""
    given = settings or AuditSettings()
    named = AuditSettings(**{"kernel": given.kernel, **given.model_dump(exclude_unset=True)})
    return examined(Asked(dataset=dataset, settings=named), on_stage=on_stage)


def model_audit(
    dataset: Dataset,
    chosen: ModelSettings | None = None,
    settings: AuditSettings | None = None,
    *,
    on_stage: Any = None,
) -> Audit:
    """A named model, or the stand-in, fitted on a dataset."""
    return examined(
        Asked(
            dataset=dataset,
            settings=settings or AuditSettings(),
            chosen=chosen or ModelSettings(),
        ),
        on_stage=on_stage,
    )


def settings_audit(
    dataset: Dataset,
    settings: AuditSettings | None = None,
    chosen: ModelSettings | None = None,
    *,
    on_stage: Any = None,
) -> Audit:
    """What the settings ask for."""
    return model_audit(dataset, chosen, settings, on_stage=on_stage)


def estimator_audit(
    model: Any, X: Any, y: Any, *, explain: int = 0, on_stage: Any = None, **asked: Any
) -> Audit:
    """A fitted estimator with its records."""
    kept = {name: asked.pop(name) for name in ("sample_weight", "record_ids") if name in asked}
    return examined(
        Asked(X=X, y=y, model=model, chosen=validated(ModelSettings, **asked), **kept),
        explain=explain,
        on_stage=on_stage,
    )


def trained_audit(
    X: Any,
    y: Any,
    train: Any,
    *,
    seed: int = 0,
    record_ids: Any = None,
    on_progress: Any = None,
    **how: Any,
) -> Audit:
    """A training on arrays as they are."""
    told = {name: str(value) if name == "keep" else value for name, value in how.items()}
    return examined(
        Asked(
            X=X,
            y=y,
            train=train,
            record_ids=record_ids,
            settings=AuditSettings(seed=seed),
            training=validated(TrainingSettings, **told),
            on_progress=on_progress,
        ),
        explain=0,
    )


def l1_logistic(share: float, **more: Any) -> LogisticRegression:
    """Logistic regression with this share of L1, which scikit-learn names otherwise before 1.8."""
    if LogisticRegression().penalty == "deprecated":
        return LogisticRegression(l1_ratio=share, **more)
    if share == 1.0:
        return LogisticRegression(penalty="l1", **more)
    return LogisticRegression(penalty="elasticnet", l1_ratio=share, **more)
