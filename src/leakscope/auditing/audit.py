"""From a dataset to every record's leakage."""

from __future__ import annotations

import time
import warnings as python_warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from numpy.typing import ArrayLike

from leakscope import kernels, lood, measures
from leakscope._numerics.memory import require_memory
from leakscope.auditing.checks import (
    FloatArray,
    checked_features,
    checked_ids,
    checked_targets,
    oddities,
    require_varied_kernel,
)
from leakscope.auditing.result import AuditResult
from leakscope.errors import InputError
from leakscope.io.datasets import Dataset, RecordId
from leakscope.io.preparation import prepare
from leakscope.io.results import DatasetEntry
from leakscope.io.settings import AuditSettings

OnStage = Callable[[str], None]

STAGES = ("check", "kernel", "factorise", "measure")


def audit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: kernels.Kernel | None = None,
    noise_variance: float = 0.01,
    record_ids: Sequence[Any] | None = None,
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
        One target a record, or a table of C outputs.
    kernel
        From :mod:`leakscope.kernels`; an RBF whose length scale is the median distance between
        records where left out.
    noise_variance
        The variance of the noise on y.
    record_ids
        Distinct ids, one a record; row numbers from 0 where left out.
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
    """
    features = checked_features(X)
    targets = checked_targets(y, len(features))
    result = _audit(
        features,
        targets,
        kernel=kernel if kernel is not None else kernels.rbf(),
        noise_variance=noise_variance,
        ids=checked_ids(record_ids, len(features)),
        dataset=_entry("arrays", features, targets, "y", ()),
        settings={"noise_variance": noise_variance, "scaling": "none"},
        on_stage=on_stage,
    )
    for sentence in result.warnings:
        python_warnings.warn(sentence, stacklevel=2)
    return result


def audit_dataset(
    dataset: Dataset, settings: AuditSettings, *, on_stage: OnStage | None = None
) -> AuditResult:
    """Audit a dataset as read: scale and code it first, as the settings say.

    Warnings are in the result, for the caller to show.
    """
    if on_stage is not None:
        on_stage("check")
    prepared = prepare(dataset, scaling=settings.scaling)
    found = oddities(dataset.features, prepared.target, dataset.record_ids, dataset.feature_names)
    return _audit(
        prepared.features,
        prepared.target,
        kernel=kernels.rbf(settings.length_scale, settings.kernel_variance),
        noise_variance=settings.noise_variance,
        ids=prepared.record_ids,
        dataset=_entry(
            prepared.name, prepared.features, prepared.target, prepared.target_name, prepared.steps
        ),
        settings=settings.model_dump(),
        on_stage=on_stage,
        warnings=found,
    )


def _audit(
    features: FloatArray,
    targets: FloatArray,
    *,
    kernel: kernels.Kernel,
    noise_variance: float,
    ids: tuple[RecordId, ...],
    dataset: DatasetEntry,
    settings: dict[str, Any],
    on_stage: OnStage | None,
    warnings: tuple[str, ...] | None = None,
) -> AuditResult:
    if not isinstance(kernel, kernels.Kernel):
        raise InputError(
            f"kernel must be one from leakscope.kernels, but it is a {type(kernel).__name__}."
        )
    timing: dict[str, float] = {}
    with _stage("check", timing, on_stage):
        found = oddities(features, targets, ids) if warnings is None else warnings
        count = len(features)
        require_memory(
            8 * count * count + 24 * features.size,
            f"the kernel matrix of {count} records",
            "audit fewer records, or use a machine with more memory",
        )
    with _stage("kernel", timing, on_stage):
        resolved = kernel.resolved(features)
        matrix = resolved(features)
        require_varied_kernel(matrix)
    with _stage("factorise", timing, on_stage):
        laws = lood.all_records(matrix, targets, noise_variance=noise_variance, overwrite=True)
    with _stage("measure", timing, on_stage):
        pair = laws.law_pair()
        kl = _exact(measures.kl(pair))
        kl_reverse = _exact(measures.kl(pair, "member_to_nonmember"))
        advantage = _exact(measures.advantage(pair))
        auc = _exact(measures.auc(pair))
    return AuditResult(
        record_ids=ids,
        kl=kl,
        kl_reverse=kl_reverse,
        advantage=advantage,
        auc=auc,
        laws=laws,
        kernel=resolved.describe(),
        dataset=dataset,
        settings=settings,
        created=datetime.now(UTC),
        timing=timing,
        warnings=found,
    )


def _entry(
    name: str,
    features: FloatArray,
    targets: FloatArray,
    target_name: str,
    steps: tuple[str, ...],
) -> DatasetEntry:
    return DatasetEntry(
        name=name,
        records=features.shape[0],
        features=features.shape[1],
        outputs=1 if targets.ndim == 1 else targets.shape[1],
        target_name=target_name,
        steps=list(steps),
    )


def _exact(found: FloatArray | measures.Estimate) -> FloatArray:
    """A measure of the audit's own laws: they are exact, so it is never an estimate."""
    if isinstance(found, measures.Estimate):
        raise TypeError("an audit's laws are exact, but a measure of them came out as an estimate")
    return found


@contextmanager
def _stage(name: str, timing: dict[str, float], on_stage: OnStage | None) -> Iterator[None]:
    if on_stage is not None:
        on_stage(name)
    start = time.perf_counter()
    yield
    timing[name] = time.perf_counter() - start
