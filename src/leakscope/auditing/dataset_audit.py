"""From a dataset as read to every record's leakage: a fitted model's, or a Gaussian process's."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakscope import lood
from leakscope.auditing.checks import oddities
from leakscope.auditing.file_models import classifies
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.auditing.model_audit import MODEL_STAGES, audit_named_model
from leakscope.auditing.model_result import ModelAuditResult
from leakscope.auditing.process_audit import SENSITIVITY_STAGES, STAGES, OnStage, audit_process
from leakscope.auditing.result import AuditResult
from leakscope.auditing.routes import RoutePlan
from leakscope.auditing.subgroups import exposure_by
from leakscope.auditing.units import leaving_units
from leakscope.data import Dataset, Task, doubts, from_frame, pictured, prepare, two_classes
from leakscope.errors import InputError
from leakscope.results import DatasetEntry
from leakscope.settings import (
    AUDIT_DEFAULTS,
    DATA_DEFAULTS,
    MODEL_DEFAULTS,
    STAND_IN_COEFFICIENTS,
    STAND_IN_RECORDS,
    AuditSettings,
    Missing,
    ModelSettings,
    described,
)


def audit_by_settings(
    dataset: Dataset,
    settings: AuditSettings = AUDIT_DEFAULTS,
    chosen: ModelSettings = MODEL_DEFAULTS,
    *,
    on_stage: OnStage | None = None,
) -> AuditResult | ModelAuditResult:
    """Audit a dataset as read, as ``leakscope audit`` does.

    The model that is named; a Gaussian process, where any of its settings is given; otherwise a
    stand-in that is fitted as a person would fit it, ridge for a quantity and logistic for
    classes.  Where none can be fitted the Gaussian process stands in, and a warning says why.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import AuditSettings
    >>> diabetes = data.read_example("diabetes")
    >>> auditing.audit_by_settings(diabetes).model.name
    'Ridge(alpha=2.154)'
    >>> auditing.audit_by_settings(diabetes, AuditSettings(kernel="rbf")).kernel["name"]
    'rbf'
    """
    _require_one_model(settings, chosen)
    why = None if chosen.model is not None or settings.of_process() else none_fitted(dataset)
    if why is None and not settings.of_process():
        return audit_named_model(dataset, chosen, settings, on_stage=on_stage)
    if chosen.model_fields_set and why is not None:
        option = described(ModelSettings, min(chosen.model_fields_set)).option
        raise InputError(f"{option} needs a fitted model, and none was fitted, because {why}.")
    result = audit_dataset(dataset, settings, on_stage=on_stage)
    return result if why is None else replace(result, warnings=(fallen_back(why), *result.warnings))


def audit_stages(
    dataset: Dataset, settings: AuditSettings, chosen: ModelSettings
) -> tuple[str, ...]:
    """The stages that :func:`audit_by_settings` will go through.

    Examples
    --------
    >>> from leakscope import auditing, data, settings
    >>> wine = data.read_example("wine")
    >>> auditing.audit_stages(wine, settings.AUDIT_DEFAULTS, settings.MODEL_DEFAULTS)[:2]
    ('check', 'fit')
    """
    if chosen.model is not None or not (settings.of_process() or none_fitted(dataset)):
        return MODEL_STAGES
    skipped = () if settings.sensitivity else SENSITIVITY_STAGES
    return tuple(name for name in STAGES if name not in skipped)


def none_fitted(dataset: Dataset) -> str | None:
    """Why no model is fitted where none is given, in words; None where one is."""
    records, features = dataset.features.shape
    if dataset.group is not None:
        return "whole groups leave, and what a group changes is known of a Gaussian process only"
    if dataset.picture is not None:
        return "the records are pictures"
    if records < STAND_IN_RECORDS:
        return f"there are {records} records only, of which a penalty cannot be chosen"
    if dataset.target.ndim == 2:
        return f"there are {dataset.target.shape[1]} targets, and ridge regression takes one"
    values, often = np.unique(dataset.target.astype(str), return_counts=True)
    if len(values) == 1:
        return "the target is the same for every record"
    if dataset.task == "regression":
        return None
    if int(often.min()) == 1:
        return "a class has one record only"
    coefficients = features * len(values)
    if len(values) > 2 and coefficients > STAND_IN_COEFFICIENTS:
        return (
            f"{features} features and {len(values)} classes make {coefficients} coefficients "
            "(--model logistic fits them all the same)"
        )
    return None


def fallen_back(why: str) -> str:
    """What is said where a Gaussian process stands in for want of a fitted model."""
    return (
        f"no model was given, and none was fitted, because {why}: a Gaussian process stands in, "
        "and its noise is assumed."
    )


def _require_one_model(settings: AuditSettings, chosen: ModelSettings) -> None:
    """Refuse what belongs to a Gaussian process beside a model, and to a model beside none."""
    process = settings.of_process()
    if chosen.model is None:
        own = ("C", "alpha", "gamma")
        for name in ModelSettings.model_fields:
            if name not in chosen.model_fields_set or getattr(chosen, name) is None:
                continue
            option = described(ModelSettings, name).option
            if name in own:
                raise InputError(
                    f"{option} belongs to --model; name one, such as --model logistic."
                )
            if process:
                raise InputError(
                    f"{option} belongs to a fitted model; leave out "
                    f"{described(AuditSettings, process[0]).option}."
                )
    elif process:
        field = AuditSettings.model_fields[process[0]]
        option = described(AuditSettings, process[0]).option
        option = f"--no-{option[2:]}" if field.default is True else option
        raise InputError(f"{option} belongs to the Gaussian process; leave it out with --model.")


def audit_dataset(
    dataset: Dataset, settings: AuditSettings, *, on_stage: OnStage | None = None
) -> AuditResult:
    """Audit a Gaussian process on a dataset as read: scaled and coded first, as the settings say.

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
        error=settings.error,
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
    return replace(result, subgroups=exposure_by(prepared.by, result.advantage, labels))


def audit_frame(
    frame: Any,
    *,
    target: str,
    id_column: str | None = None,
    task: Task | None = None,
    missing: Missing = DATA_DEFAULTS.missing,
    ignore: Sequence[str] = (),
    group_column: str | None = None,
    by: str | Sequence[str] = (),
    na_values: Sequence[str] = DATA_DEFAULTS.na_values,
    settings: AuditSettings = AUDIT_DEFAULTS,
    model: ModelSettings = MODEL_DEFAULTS,
    on_stage: OnStage | None = None,
) -> AuditResult | ModelAuditResult:
    """Audit a pandas, polars or Arrow table in memory: encoded and scaled, as a file would be.

    Parameters
    ----------
    frame
        The table.
    target, id_column, task, missing, ignore, group_column, by, na_values
        As in :func:`leakscope.data.read_dataset`; where ``task`` is left out, a target of two
        whole numbers is taken as classes, unless a Gaussian process is asked for.
    settings, model
        As in :func:`leakscope.auditing.audit_by_settings`: which model is named, or the kernel and
        noise of a Gaussian process; a stand-in is fitted where both are left out.
    on_stage
        Called with the name of each stage as it begins.

    Examples
    --------
    >>> import pandas as pd
    >>> import leakscope
    >>> frame = pd.DataFrame({"age": [31, 45, 28, 39, 52, 90], "smokes": [True, False] * 3,
    ...                       "cost": [1.0, 3.0, 1.5, 2.0, 3.2, 0.0]}, index=list("abcdef"))
    >>> from leakscope.settings import AuditSettings
    >>> rbf = AuditSettings(kernel="rbf")
    >>> result = leakscope.audit_frame(frame, target="cost", settings=rbf)
    >>> result.ranking()[0], result.explanations[0].neighbours[0]
    ('f', 'b')
    """

    def read(task: Task | None) -> Dataset:
        return from_frame(
            frame,
            target=target,
            id_column=id_column,
            task=task,
            missing=missing,
            ignore=ignore,
            group_column=group_column,
            by=by,
            na_values=na_values,
        )

    if task is None:
        dataset = read("classification" if classifies(model) else None)
        if model.model is None and not settings.of_process() and two_classes(dataset):
            dataset = read("classification")
    else:
        dataset = read(task)
    result = audit_by_settings(dataset, settings, model, on_stage=on_stage)
    for sentence in result.warnings:
        python_warnings.warn(sentence, stacklevel=2)
    return result
