"""From a dataset to every record's leakage."""

from __future__ import annotations

import time
import warnings as python_warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope import kernels, lood
from leakscope.auditing.checks import (
    checked_features,
    checked_ids,
    checked_targets,
    oddities,
    without_intercept,
)
from leakscope.auditing.choice_reasons import choices, why_not_compared
from leakscope.auditing.explanation import Explanation
from leakscope.auditing.explanation import explain as explain_records
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.auditing.measured import measured
from leakscope.auditing.result import AuditResult
from leakscope.auditing.routes import Computed, RoutePlan, Wanted, compute
from leakscope.auditing.subgroups import exposure_by, of_groups
from leakscope.auditing.units import leaving_units
from leakscope.data import Dataset, RecordId, Task, doubts, from_frame, pictured, prepare
from leakscope.results import DatasetEntry
from leakscope.settings import DATA_DEFAULTS, AuditSettings, Missing

OnStage = Callable[[str], None]

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


def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: kernels.Kernel | None = None,
    noise_variance: float | str = DEFAULTS.noise_variance,
    fit_kernel_scale: bool = DEFAULTS.fit_kernel_scale,
    sensitivity: bool = DEFAULTS.sensitivity,
    route: Wanted = DEFAULTS.route,
    inducing: int = DEFAULTS.inducing,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult:
    """How much a Gaussian process trained on (X, y) gives away about each of its records.

    For each record the law of the model's latent value at that record is computed with the record
    in the training set and without it, all from one factorisation
    (:func:`leakscope.lood.all_records`), and the two are compared.

    X and y are used as they are: nothing is scaled, centred or encoded, and the prior mean is
    zero.  ``noise_variance`` is in squared units of y, and sets the level of every number.

    Parameters
    ----------
    X
        Records by features, numbers.
    y
        One target per record, or a table of C outputs.
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
    AuditResult
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


def audit_process(
    process: lood.Process,
    plan: RoutePlan,
    *,
    ids: tuple[RecordId, ...],
    dataset: DatasetEntry,
    settings: dict[str, Any],
    on_stage: OnStage | None,
    explained: int = 0,
    warnings: tuple[str, ...] | None = None,
    picture: tuple[int, ...] | None = None,
) -> AuditResult:
    """Compute what is asked for; warnings are in the result, for the caller to show.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import auditing, kernels, lood
    >>> from leakscope.results import DatasetEntry
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> process = lood.Process(X, y, kernels.rbf(1.0), noise_variance=0.1)
    >>> told = DatasetEntry(name="arrays", records=3, features=1, outputs=1, target_name="y",
    ...                     steps=[])
    >>> plan = auditing.RoutePlan("dense", 2, False, None, False)
    >>> auditing.audit_process(process, plan, ids=("a", "b", "c"), dataset=told, settings={},
    ...                        on_stage=None).ranking()[0]
    'c'
    """
    timing: dict[str, float] = {}
    with _stage("check", timing, on_stage):
        named = ids if process.groups is None else tuple(range(process.records))
        found = oddities(process.features, process.targets, named) if warnings is None else warnings
        found = (*found, *without_intercept(process.features, process.kernel.describe()))
    computed = compute(process, plan, lambda name: _stage(name, timing, on_stage))
    process = computed.process
    with _stage("measure", timing, on_stage):
        found_by_rows = measured(computed.laws)
    # Without a comparison the reasons are words only, and no stage of their own.
    quick = why_not_compared(computed, plan) is not None
    with nullcontext() if quick else _stage("compare", timing, on_stage):
        chosen = choices(computed, plan, found_by_rows.advantage, picture=picture)
    described = process.kernel.describe()
    if computed.noise_choice is not None and plan.fit_kernel_scale:
        described["fitted_scale"] = process.kernel_scale
    explanations: tuple[Explanation, ...] = ()
    if explained and process.groups is None:
        with _stage("explain", timing, on_stage):
            explanations = explain_records(
                process,
                computed.laws,
                rows=np.argsort(-found_by_rows.kl, kind="stable")[:explained].tolist(),
                record_ids=ids,
            )
    return AuditResult(
        record_ids=ids,
        kl=found_by_rows.kl,
        kl_reverse=found_by_rows.kl_reverse,
        advantage=found_by_rows.advantage,
        auc=found_by_rows.auc,
        laws=computed.laws,
        process=process,
        sweep=computed.sweep,
        route_reason=computed.route_reason,
        noise_choice=computed.noise_choice,
        approximation=computed.approximation,
        kernel=described,
        dataset=dataset,
        settings=settings,
        created=datetime.now(UTC),
        timing=timing,
        warnings=(*found, *_cautions(computed)),
        explanations=explanations,
        choices=chosen,
    )


def _cautions(computed: Computed) -> tuple[str, ...]:
    """What a user must know about how the numbers were got."""
    found: list[str] = []
    if computed.approximation is not None:
        found.append(
            f"this audit is {computed.route_reason}; compared with the exact one "
            f"{computed.approximation.sentence()}."
        )
    if computed.noise_choice is not None and computed.noise_choice.at_bound:
        found.append(f"{computed.noise_choice.sentence()}: give noise_variance a number instead.")
    if computed.sweep is not None and computed.sweep.refused:
        levels = ", ".join(f"{level:.2g}" for level in computed.sweep.refused)
        found.append(f"float64 cannot factorise at noise_variance {levels}, left out of the sweep.")
    return tuple(found)


@contextmanager
def _stage(name: str, timing: dict[str, float], on_stage: OnStage | None) -> Iterator[None]:
    if on_stage is not None:
        on_stage(name)
    start = time.perf_counter()
    yield
    timing[name] = time.perf_counter() - start
