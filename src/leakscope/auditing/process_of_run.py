"""The process that a stored result is about, from its resolved kernel and its data."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from leakscope import kernels, lood
from leakscope.auditing.units import leaving_units
from leakscope.data import Dataset, RecordId, reason
from leakscope.errors import InputError


class StoredModel(Protocol):
    """What a result says of its model: those of an audit and of a query have it."""

    kernel: dict[str, Any]
    noise_variance: float
    settings: dict[str, Any]


def process_of_run(
    document: StoredModel, prepared: Dataset
) -> tuple[lood.Process, tuple[RecordId, ...]]:
    """The process a result is about, and the ids of what leaves it.

    The kernel, its scale and the noise are the result's own, to the last digit; nothing is chosen
    again.

    Parameters
    ----------
    document
        The stored result of an audit or of an attack by queries.
    prepared
        Its data, prepared as the audit had them.

    Raises
    ------
    InputError
        Where the result does not say of a process what it should.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import AuditSettings
    >>> settings = AuditSettings(sensitivity=False)
    >>> wine = data.read_example("wine")
    >>> result = auditing.audit_dataset(wine, settings)
    >>> again, ids = auditing.process_of_run(
    ...     result.to_document(), data.prepare(wine, scaling=settings.scaling))
    >>> bool((again.separation().kl == result.laws.kl).all()), ids == result.record_ids
    (True, True)
    """
    by_group = getattr(document, "unit", "record") == "group"
    if by_group and prepared.group is None:
        raise InputError("the audit was of groups, but its data name no group column.")
    names, groups = leaving_units(prepared.record_ids, prepared.group if by_group else None)
    try:
        description = dict(document.kernel)
        scale = float(description.pop("fitted_scale", 1.0))
        if not (np.isfinite(scale) and scale > 0.0):
            raise ValueError(f"fitted_scale is {scale:g}")
        kernel = kernels.from_description(description)
        given = kernel
        settings = document.settings
        if "kernel" in settings and "length_scale" in description:
            # The median distance between records, where no other number was asked for.
            given = kernels.from_description(
                description | {"length_scale": settings.get("length_scale")}
            )
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        words = str(error).rstrip(".") if isinstance(error, InputError) else reason(error)
        raise InputError(f"the result's kernel cannot be used: {words}.") from error
    process = lood.Process(
        prepared.features,
        prepared.target,
        kernel,
        document.noise_variance,
        kernel_scale=scale,
        groups=groups,
        task=prepared.task,
        given=given,
    )
    return process, names
