"""What the estimators share: the model family that their settings name, and its audit.

Warnings that ``leakscope.audit`` would show (a constant column, a repeated record with another
target) are not shown by ``fit``: a search fits hundreds of times.  They are in
``result_.warnings``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.audit import audit_subject
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.results.document import DatasetEntry
from leakscope.settings import AuditSettings, kernel_options, validated
from leakscope.subjects.arrays import checked_ids, leaving_units
from leakscope.subjects.process.choices import kernel_from_settings
from leakscope.subjects.process.routes import RoutePlan
from leakscope.subjects.process.subject import GaussianProcess

# The options of the named kernels, each a parameter of the estimators.
KERNEL_OPTIONS = kernel_options()

# The settings of an audit that are not the kernel's, each a parameter of the estimators.
MODEL_OPTIONS = ("noise_variance", "fit_kernel_scale", "route", "inducing", "error")


def chosen_kernel(estimator: Any) -> kernels.Kernel:
    """The kernel that an estimator's parameters name, or the kernel given."""
    given = {name: _plain(getattr(estimator, name)) for name in KERNEL_OPTIONS}
    kernel = estimator.kernel
    if isinstance(kernel, str):
        return kernel_from_settings(validated(AuditSettings, kernel=kernel, **given))
    if not isinstance(kernel, kernels.Kernel):
        raise InputError(
            "kernel must be the name of one or one from leakscope.kernels, but it is a "
            f"{type(kernel).__name__}."
        )
    doubled = [name for name, value in given.items() if value is not None]
    if doubled:
        raise InputError(
            f"{doubled[0]} belongs to a kernel given by name; this {type(kernel).__name__} has "
            "its own parameters."
        )
    return kernel


def audited(
    estimator: Any,
    features: FloatArray,
    targets: FloatArray,
    *,
    kernel: kernels.Kernel,
    record_ids: Sequence[Any] | None,
    groups: Sequence[Any] | None = None,
    sensitivity: bool = False,
    target_name: str = "y",
) -> Audit:
    """The audit of the estimator's model family on these records; it shows no warnings."""
    settings = validated(
        AuditSettings,
        **{name: _plain(getattr(estimator, name)) for name in MODEL_OPTIONS},
        sensitivity=sensitivity,
    )
    ids, labels = leaving_units(checked_ids(record_ids, len(features)), groups)
    level, plan = RoutePlan.of(settings)
    subject = GaussianProcess(
        lood.Process(features, targets, kernel, level, groups=labels),
        plan,
        ids=ids,
        dataset=DatasetEntry(
            name="arrays",
            records=features.shape[0],
            features=features.shape[1],
            outputs=1 if targets.ndim == 1 else targets.shape[1],
            target_name=target_name,
            steps=[],
        ),
        settings={
            **{name: getattr(settings, name) for name in MODEL_OPTIONS},
            "sensitivity": sensitivity,
            "scaling": "none",
        },
    )
    return audit_subject(subject)


def own_ids(X: Any) -> list[int | str] | None:
    """The ids that a pandas frame brings along: its index, unless it merely counts.

    An index of several levels, or one that repeats, is no id: records are then known by their row
    numbers.
    """
    if not isinstance(X, pd.DataFrame) or X.index.nlevels > 1:
        return None
    index = X.index
    if index.equals(pd.RangeIndex(len(X))) or bool(index.hasnans):
        return None
    integral = pd.api.types.is_integer_dtype(index)
    ids: list[int | str] = [int(value) if integral else str(value) for value in index]
    return ids if len(set(ids)) == len(ids) else None


def _plain(value: Any) -> Any:
    """A NumPy number, as grids are made of, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
