"""From a dataset to every record's leakage."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from numpy.typing import ArrayLike

from leakscope import kernels, lood
from leakscope.auditing.checks import (
    checked_features,
    checked_ids,
    checked_targets,
    oddities,
)
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.auditing.model_audit import audit_model
from leakscope.auditing.model_result import ModelAuditResult
from leakscope.auditing.process_audit import OnStage, audit_process
from leakscope.auditing.result import AuditResult
from leakscope.auditing.routes import RoutePlan, Wanted
from leakscope.auditing.subgroups import exposure_by, of_groups
from leakscope.auditing.units import leaving_units
from leakscope.data import Dataset, Task, doubts, from_frame, pictured, prepare
from leakscope.errors import InputError
from leakscope.results import DatasetEntry
from leakscope.settings import DATA_DEFAULTS, MODEL_DEFAULTS, AuditSettings, Missing

DEFAULTS = AuditSettings()

STAGES = (
    "check",
    "kernel",
    "factorise",
    "sensitivity",
    "conditions",
    "measure",
    "compare",
    "explain",
)

# Those that --no-sensitivity skips.
SENSITIVITY_STAGES = ("sensitivity", "compare")


@overload
def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    model: None = None,
    kernel: kernels.Kernel | None = None,
    noise_variance: float | str = ...,
    fit_kernel_scale: bool = ...,
    sensitivity: bool = ...,
    route: Wanted = ...,
    inducing: int = ...,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult: ...


@overload
def audit(
    X: Any,
    y: Any,
    *,
    model: Any,
    question: str = ...,
    fraction: float | None = None,
    observes: str | None = None,
    sample_weight: ArrayLike | None = None,
    record_ids: Sequence[Any] | None = None,
    on_stage: OnStage | None = None,
) -> ModelAuditResult: ...


def audit(
    X: Any,
    y: Any,
    *,
    model: Any = None,
    kernel: kernels.Kernel | None = None,
    noise_variance: float | str = DEFAULTS.noise_variance,
    fit_kernel_scale: bool = DEFAULTS.fit_kernel_scale,
    sensitivity: bool = DEFAULTS.sensitivity,
    route: Wanted = DEFAULTS.route,
    inducing: int = DEFAULTS.inducing,
    question: str = MODEL_DEFAULTS.question,
    fraction: float | None = None,
    observes: str | None = None,
    sample_weight: ArrayLike | None = None,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult | ModelAuditResult:
    """How much a model trained on (X, y) gives away about each of its records.

    With ``model``, a fitted scikit-learn estimator, that model is examined
    (:func:`leakscope.fitted.laws_of`): no kernel and no noise variance is assumed.

    Without it a Gaussian process stands in.  For each record the law of its latent value at that
    record is computed with the record in the training set and without it, all from one
    factorisation (:func:`leakscope.lood.all_records`), and the two are compared.

    X and y are used as they are: nothing is scaled, centred or encoded, and the prior mean is
    zero.  ``noise_variance`` is in squared units of y, and sets the level of every number.

    Parameters
    ----------
    X
        Records by features, numbers.
    y
        One target per record, or a table of C outputs.
    model
        Your own model, fitted on X and y: ridge, kernel ridge, logistic, Poisson regression and
        others, or a pipeline that ends in one (:func:`leakscope.fitted.from_sklearn`).
    kernel
        From :mod:`leakscope.kernels`; an RBF whose length scale is the median distance between
        records where left out.
    noise_variance
        The variance of the noise on y; or ``"marginal_likelihood"`` or ``"leave_one_out"`` (the
        predictive score), to have the data choose it.
    fit_kernel_scale
        Have the same criterion choose a factor of the kernel too.
    sensitivity
        Whether to sweep the noise variance over two decades (four more audits) and, up to 5,000
        records, to audit under other kernels and at the noise the data would choose (six more);
        each record's range of ranks over either is in the result.
    route
        ``"dense"``, ``"features"`` or ``"fitc"``; ``"auto"`` chooses by kernel and size, and the
        result says which and why.
    inducing
        How many records stand for all in the approximate route, fitc.
    question, fraction, observes, sample_weight
        With ``model`` only, as in :func:`leakscope.fitted.laws_of`.
    record_ids
        Distinct ids, one per record; row numbers from 0 where left out.
    groups
        Who each record belongs to, such as a person: all records with the same value leave
        together, and the result has one entry per group, under that value.
    explain
        How many of the most exposed records to explain (``AuditResult.explanations``).
    on_stage
        Called with the name of each stage as it begins.

    Returns
    -------
    AuditResult or, with ``model``, ModelAuditResult
        Frozen; ``.to_frame()`` has the most exposed record first.

    Raises
    ------
    InputError
        One sentence that names the row, the column or the size.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> y = np.array([1.0, 1.1, 0.9, -1.0])
    >>> result = leakscope.audit(X, y, kernel=leakscope.kernels.rbf(1.0), noise_variance=0.1)
    >>> frame = result.to_frame()
    >>> frame[["record_id", "kl", "advantage"]].round(3).values.tolist()
    [[3.0, 8.441, 0.657], [1.0, 0.104, 0.148], [2.0, 0.097, 0.136], [0.0, 0.083, 0.127]]
    >>> frame[["rank_low", "rank_high"]].values.tolist()
    [[1, 1], [2, 4], [2, 4], [3, 4]]
    """
    if model is not None:
        _require_no_stand_in(
            kernel=kernel,
            noise_variance=noise_variance,
            fit_kernel_scale=fit_kernel_scale,
            route=route,
            inducing=inducing,
            groups=groups,
            explain=explain,
        )
        found = audit_model(
            model,
            X,
            y,
            question=question,
            fraction=fraction,
            observes=observes,
            sample_weight=sample_weight,
            record_ids=record_ids,
            on_stage=on_stage,
        )
        for sentence in found.warnings:
            python_warnings.warn(sentence, stacklevel=2)
        return found
    if fraction is not None or observes is not None or sample_weight is not None:
        raise InputError("fraction, observes and sample_weight belong to model; pass one.")
    features = checked_features(X)
    targets = checked_targets(y, len(features))
    ids, labels = leaving_units(checked_ids(record_ids, len(features)), groups)
    level, plan = RoutePlan.of(
        noise_variance,
        fit_kernel_scale=fit_kernel_scale,
        route=route,
        inducing=inducing,
        sensitivity=sensitivity,
    )
    process = lood.Process(
        features,
        targets,
        kernel if kernel is not None else kernels.by_name(DEFAULTS.kernel),
        level,
        groups=labels,
    )
    settings = {
        "noise_variance": noise_variance,
        "fit_kernel_scale": fit_kernel_scale,
        "sensitivity": sensitivity,
        "route": route,
        "inducing": inducing,
        "scaling": "none",
    }
    result = audit_process(
        process,
        plan,
        ids=ids,
        dataset=DatasetEntry(
            name="arrays",
            records=features.shape[0],
            features=features.shape[1],
            outputs=1 if targets.ndim == 1 else targets.shape[1],
            target_name="y",
            steps=[],
        ),
        settings=settings,
        explained=explain,
        on_stage=on_stage,
        picture=pictured(features),
    )
    for sentence in result.warnings:
        python_warnings.warn(sentence, stacklevel=2)
    return result


def _require_no_stand_in(**given: Any) -> None:
    """Refuse what belongs to the Gaussian process where a model is to be examined."""
    usual = {**DEFAULTS.model_dump(), "kernel": None, "groups": None, "explain": 0}
    wrong = [name for name, value in given.items() if value is not None and value != usual[name]]
    if "groups" in wrong:
        raise InputError(
            "with a model the unit is the record, and a group's laws are not known; leave out "
            "groups, or the model."
        )
    if wrong:
        raise InputError(
            f"{wrong[0]} belongs to the audit of a Gaussian process, and nothing is assumed of "
            f"your own model; leave out {wrong[0]}, or the model."
        )


def audit_dataset(
    dataset: Dataset, settings: AuditSettings, *, on_stage: OnStage | None = None
) -> AuditResult:
    """Audit a dataset as read: scale and code it first, as the settings say.

    Warnings are in the result, for the caller to show.

    Examples
    --------
    >>> from leakscope import data, settings
    >>> from leakscope.auditing import audit_dataset
    >>> settings = settings.AuditSettings(noise_variance=0.05, sensitivity=False)
    >>> audit_dataset(data.read_example("diabetes"), settings).ranking()[:3]
    (256, 304, 123)
    """
    if on_stage is not None:
        on_stage("check")
    prepared = prepare(dataset, scaling=settings.scaling)
    found = (
        *oddities(dataset.features, prepared.target, dataset.record_ids, dataset.feature_names),
        *doubts(dataset),
    )
    ids, labels = leaving_units(prepared.record_ids, prepared.group)
    level, plan = RoutePlan.of(
        settings.noise_variance,
        fit_kernel_scale=settings.fit_kernel_scale,
        route=settings.route,
        inducing=settings.inducing,
        sensitivity=settings.sensitivity,
    )
    process = lood.Process(
        prepared.features,
        prepared.target,
        kernel_from_settings(settings),
        level,
        groups=labels,
        task=prepared.task,
    )
    result = audit_process(
        process,
        plan,
        ids=ids,
        dataset=DatasetEntry.of(prepared),
        settings=settings.model_dump(),
        explained=settings.explain,
        on_stage=on_stage,
        warnings=found,
        picture=dataset.picture or pictured(dataset.features),
    )
    if prepared.by is None or prepared.by_name is None:
        return result
    values = prepared.by
    if labels is not None:
        values = of_groups(values, labels, len(ids))
    found_by = exposure_by(values, result.advantage, prepared.by_name)
    return replace(result, by=prepared.by_name, subgroups=found_by)


def audit_frame(
    frame: Any,
    *,
    target: str,
    id_column: str | None = None,
    task: Task = "regression",
    missing: Missing = DATA_DEFAULTS.missing,
    ignore: Sequence[str] = (),
    group_column: str | None = None,
    by: str | None = None,
    settings: AuditSettings | None = None,
    on_stage: OnStage | None = None,
) -> AuditResult:
    """Audit a pandas, polars or Arrow table in memory: encoded and scaled, as a file would be.

    Parameters
    ----------
    frame
        The table.
    target, id_column, task, missing, ignore, group_column, by
        As in :func:`leakscope.data.read_dataset`.
    settings
        Kernel, noise and scaling; the defaults of ``leakscope audit`` where left out.
    on_stage
        Called with the name of each stage as it begins.

    Examples
    --------
    >>> import pandas as pd
    >>> import leakscope
    >>> frame = pd.DataFrame({"age": [31, 45, 28, 39, 52, 90], "smokes": [True, False] * 3,
    ...                       "cost": [1.0, 3.0, 1.5, 2.0, 3.2, 0.0]}, index=list("abcdef"))
    >>> result = leakscope.audit_frame(frame, target="cost")
    >>> result.ranking()[0], result.explanations[0].neighbours[0]
    ('f', 'b')
    """
    dataset = from_frame(
        frame,
        target=target,
        id_column=id_column,
        task=task,
        missing=missing,
        ignore=ignore,
        group_column=group_column,
        by=by,
    )
    result = audit_dataset(dataset, settings or AuditSettings(), on_stage=on_stage)
    for sentence in result.warnings:
        python_warnings.warn(sentence, stacklevel=2)
    return result
