"""From arrays to every record's leakage."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import kernels, lood
from leakscope.auditing.checks import checked_features, checked_ids, checked_targets
from leakscope.auditing.dataset_audit import fallen_back, none_fitted
from leakscope.auditing.model_audit import audit_model, audit_named_model
from leakscope.auditing.model_result import ModelAuditResult
from leakscope.auditing.process_audit import OnStage, audit_process
from leakscope.auditing.result import AuditResult
from leakscope.auditing.routes import RoutePlan, Wanted
from leakscope.auditing.trained_audit import audit_trained
from leakscope.auditing.units import leaving_units
from leakscope.data import Dataset, RecordId, array_doubts, pictured, two_classes
from leakscope.errors import InputError
from leakscope.results import DatasetEntry
from leakscope.settings import (
    AUDIT_DEFAULTS,
    MODEL_DEFAULTS,
    TRAINING_DEFAULTS,
    AuditSettings,
    ModelSettings,
    validated,
)


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
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> ModelAuditResult: ...


@overload
def audit(
    X: Any,
    y: Any,
    *,
    train: Any,
    models: int = ...,
    keep: str | Path | None = None,
    record_ids: Sequence[Any] | None = None,
) -> ModelAuditResult: ...


@overload
def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: kernels.Kernel | str,
    noise_variance: float | str | None = None,
    fit_kernel_scale: bool | None = None,
    sensitivity: bool | None = None,
    route: Wanted | None = None,
    inducing: int | None = None,
    error: float | None = None,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult: ...


@overload
def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    noise_variance: float | str,
    fit_kernel_scale: bool | None = None,
    sensitivity: bool | None = None,
    route: Wanted | None = None,
    inducing: int | None = None,
    error: float | None = None,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult: ...


@overload
def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    question: str = ...,
    fraction: float | None = None,
    observes: str | None = None,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: OnStage | None = None,
) -> AuditResult | ModelAuditResult: ...


def audit(
    X: Any,
    y: Any,
    *,
    model: Any = None,
    train: Any = None,
    models: int = TRAINING_DEFAULTS.models,
    keep: str | Path | None = None,
    kernel: kernels.Kernel | str | None = None,
    noise_variance: float | str | None = None,
    fit_kernel_scale: bool | None = None,
    sensitivity: bool | None = None,
    route: Wanted | None = None,
    inducing: int | None = None,
    error: float | None = None,
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

    With ``train``, any other estimator or a training function of your own, a few models of it are
    trained on halves of the records (:func:`leakscope.auditing.audit_trained`, which has a seed, a
    time limit for each model, processes and Dask besides).

    Without either a stand-in is fitted, as a person would: ridge regression, or logistic regression
    where y is text, booleans or two whole numbers; features standardised, the penalty by
    cross-validation.  Where none can be fitted a Gaussian process stands in, and a warning says
    why.

    With ``kernel``, or any other parameter of a Gaussian process, that process is audited.  For
    each record the law of its latent value at that record is computed with the record in the
    training set and without it, all from one factorisation (:func:`leakscope.lood.all_records`),
    and the two are compared.  X and y are then used as they are: nothing is scaled, centred or
    encoded, and the prior mean is zero.  ``noise_variance`` is in squared units of y, and sets the
    level of every number.

    Parameters
    ----------
    X
        Records by features, numbers.
    y
        One target per record, numbers or classes; a Gaussian process also takes a table of C
        outputs.
    model
        Your own model, fitted on X and y: ridge, kernel ridge, logistic, Poisson regression and
        others, or a pipeline that ends in one (:func:`leakscope.fitted.from_sklearn`).
    train
        A scikit-learn estimator that need not be fitted, or a function ``train(X, y, seed)`` that
        returns a predictor.
    models, keep
        With ``train``: how many models, an even number, and a directory that keeps each one's
        answers, so that none is trained twice.
    kernel
        From :mod:`leakscope.kernels`, or a kernel's name, such as ``"rbf"``: its length scale is
        then the median distance between records.
    noise_variance
        The variance of the noise on y, 0.01 where left out; or ``"marginal_likelihood"`` or
        ``"leave_one_out"`` (the predictive score), to have the data choose it.
    fit_kernel_scale
        Have the same criterion choose a factor of the kernel too.
    sensitivity
        Whether to sweep the noise variance over two decades (four more audits) and, up to 5,000
        records, to audit under other kernels and at the noise the data would choose (six more);
        each record's range of ranks over either is in the result.
    route
        ``"dense"``, ``"features"`` or ``"nystrom"``; ``"auto"`` chooses by kernel and size, and the
        result says which and why.
    inducing, error
        Of the approximate route, nystrom: the most records that may stand for all, and the
        relative error of a record's KL up to which it is trusted.
    question, fraction, observes, sample_weight
        Of a fitted model, as in :func:`leakscope.fitted.laws_of`; ``sample_weight`` with ``model``
        only.
    record_ids
        Distinct ids, one per record; a data frame's index, or row numbers from 0, where left out.
    groups
        Who each record belongs to, such as a person: all records with the same value leave
        together, and the result has one entry per group, under that value.
    explain
        How many of the most exposed records to explain (``explanations`` of the result).
    on_stage
        Called with the name of each stage as it begins.

    Returns
    -------
    ModelAuditResult or, of a Gaussian process, AuditResult
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

    Any estimator, by four models of halves of the records:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = leakscope.audit(X, y, train=DecisionTreeClassifier(min_samples_leaf=5))
    >>> found.models, found.to_frame().columns[:2].tolist()
    (4, ['record_id', 'advantage'])
    """
    given: dict[str, Any] = {
        "noise_variance": noise_variance,
        "fit_kernel_scale": fit_kernel_scale,
        "sensitivity": sensitivity,
        "route": route,
        "inducing": inducing,
        "error": error,
    }
    process = {name: value for name, value in given.items() if value is not None}
    own = [*(["kernel"] if kernel is not None else []), *process]
    if model is not None and train is not None:
        raise InputError("give model, which is fitted, or train, which is to be; not both.")
    if model is not None:
        _require_no_process(own, groups)
        return _warned(
            audit_model(
                model,
                X,
                y,
                question=question,
                fraction=fraction,
                observes=observes,
                sample_weight=sample_weight,
                record_ids=record_ids,
                explain=explain,
                on_stage=on_stage,
            )
        )
    if sample_weight is not None:
        raise InputError("sample_weight belongs to model; pass one.")
    if train is not None:
        _require_no_process(own, groups)
        return _warned(audit_trained(X, y, train, models=models, keep=keep, record_ids=record_ids))
    told: dict[str, Any] = {"question": question, "fraction": fraction, "observes": observes}
    asked = {k: value for k, value in told.items() if value != getattr(MODEL_DEFAULTS, k)}
    features = checked_features(X)
    ids = checked_ids(record_ids, len(features), X)
    why = None
    if not own:
        dataset = _dataset(features, y, ids, groups)
        why = none_fitted(dataset)
        if why is None:
            chosen = validated(ModelSettings, **asked)
            usual = AuditSettings(explain=explain)
            return _warned(audit_named_model(dataset, chosen, usual, on_stage=on_stage))
    if asked:
        reason = f"and {own[0]} asks for a Gaussian process" if own else f"but {why}"
        raise InputError(f"{min(asked)} needs a fitted model, {reason}.")
    result = _process_audit(features, y, ids, kernel, groups, explain, process, on_stage)
    if why is not None:
        result = replace(result, warnings=(fallen_back(why), *result.warnings))
    return _warned(result)


def _warned(result: AuditResult | ModelAuditResult) -> AuditResult | ModelAuditResult:
    """The result, its warnings said to whoever called ``audit``."""
    for sentence in result.warnings:
        python_warnings.warn(sentence, stacklevel=3)
    return result


def _dataset(
    features: NDArray[np.float64],
    y: Any,
    ids: tuple[RecordId, ...],
    groups: Sequence[Any] | None,
) -> Dataset:
    """The arrays as a dataset: numbers are a quantity, or classes where there are two of them."""
    labels = np.asarray(y)
    named = labels.ndim == 1 and labels.dtype.kind in "OUSb" and not _all_numbers(labels)
    if named and len(labels) != len(features):
        raise InputError(f"X has {len(features)} records and y has {len(labels)}; they must agree.")
    dataset = Dataset(
        name="arrays",
        features=features,
        target=labels if named else checked_targets(y, len(features)),
        record_ids=ids,
        feature_names=tuple(str(column) for column in range(features.shape[1])),
        target_name="y",
        task="classification" if named else "regression",
        group=None if groups is None else tuple(groups),
    )
    return replace(dataset, task="classification") if two_classes(dataset) else dataset


def _all_numbers(labels: NDArray[Any]) -> bool:
    """Whether an array of objects holds nothing but numbers."""
    return labels.dtype.kind == "O" and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in labels
    )


def _process_audit(
    features: NDArray[np.float64],
    y: Any,
    ids: tuple[RecordId, ...],
    kernel: kernels.Kernel | str | None,
    groups: Sequence[Any] | None,
    explain: int,
    given: dict[str, Any],
    on_stage: OnStage | None,
) -> AuditResult:
    """The audit of a Gaussian process on arrays as they are."""
    targets = checked_targets(y, len(features))
    units, labels = leaving_units(ids, groups)
    usual = {
        name: getattr(AUDIT_DEFAULTS, name)
        for name in (
            "noise_variance",
            "fit_kernel_scale",
            "sensitivity",
            "route",
            "inducing",
            "error",
        )
    }
    settings = {**usual, **given}
    level, plan = RoutePlan.of(**settings)
    if kernel is None or isinstance(kernel, str):
        kernel = kernels.by_name(kernel or AUDIT_DEFAULTS.kernel)
    process = lood.Process(features, targets, kernel, level, groups=labels)
    result = audit_process(
        process,
        plan,
        ids=units,
        dataset=DatasetEntry(
            name="arrays",
            records=features.shape[0],
            features=features.shape[1],
            outputs=1 if targets.ndim == 1 else targets.shape[1],
            target_name="y",
            steps=[],
        ),
        settings={**settings, "scaling": "none"},
        explained=explain,
        on_stage=on_stage,
        picture=pictured(features),
    )
    # Two numbers, such as -1 and 1, are how a process is given two classes.
    two = len(np.unique(targets)) == 2
    told = array_doubts(features, targets, classes=two, groups=groups)
    return replace(result, warnings=(*told, *result.warnings))


def _require_no_process(given: Sequence[str], groups: Sequence[Any] | None) -> None:
    """Refuse what belongs to the Gaussian process where a model is to be examined."""
    if groups is not None:
        raise InputError(
            "with a model single records leave, and what a whole group changes is not known; leave "
            "out groups, or the model."
        )
    if given:
        raise InputError(
            f"{given[0]} belongs to the audit of a Gaussian process, and nothing is assumed of "
            f"your own model; leave out {given[0]}, or the model."
        )
