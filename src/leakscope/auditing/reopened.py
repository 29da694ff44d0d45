"""A finished audit taken up again by another verb: its document, its settings and its data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakscope.auditing.model_result import ModelAuditResult
from leakscope.auditing.result import AuditResult
from leakscope.data import Dataset, Source, prepare, read_again, reason
from leakscope.errors import InputError
from leakscope.results import AuditDocument, ModelAuditDocument, QueryAttack, Run, result_of
from leakscope.settings import LARGEST, LEAST, AuditSettings, validated

Audited = AuditResult | ModelAuditResult | AuditDocument | Run | str | Path


def audit_document(audited: Audited, verb: str) -> AuditDocument:
    """What is stored of an audit: of a result in memory, a run, or a path of either.

    Raises
    ------
    InputError
        Where it is the result of something else.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> auditing.audit_document(result, "advise").records[0].record_id
    2
    """
    if isinstance(audited, AuditResult):
        return audited.to_document()
    document = (
        audited.to_document() if isinstance(audited, ModelAuditResult) else result_of(audited)
    )
    if isinstance(document, ModelAuditDocument):
        raise InputError(
            f"{verb} takes the audit of a Gaussian process, and this one is of a fitted model "
            f"({document.model.name}); report and verify take it."
        )
    if not isinstance(document, AuditDocument):
        where = f"{audited} holds" if isinstance(audited, (str, Path)) else "this is"
        raise InputError(
            f"{where} a result of kind {document.kind}; {verb} takes that of an audit."
        )
    return document


@contextmanager
def taken_from_result() -> Iterator[None]:
    """What a result's free-form parts hold, taken over; a sentence where it is not what it was.

    A result's schema leaves its settings open, so that anyone may have put anything there.

    Examples
    --------
    >>> from leakscope import auditing
    >>> with auditing.taken_from_result():
    ...     {}["scaling"]
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: the result's settings cannot be used: 'scaling' is missing.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"the result's settings cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else reason(error)
        raise InputError(f"the result's settings cannot be used: {what}.") from error


def settings_of(document: AuditDocument | QueryAttack) -> AuditSettings:
    """The settings that a result says it was made with, checked again.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> auditing.settings_of(result.to_document()).scaling
    'none'
    """
    told = {k: v for k, v in document.settings.items() if k in AuditSettings.model_fields}
    with taken_from_result():
        if "scaling" not in told:
            raise KeyError("scaling")
        if not LEAST <= document.noise_variance <= LARGEST:
            raise ValueError(f"noise_variance is {document.noise_variance:g}")
        return validated(AuditSettings, **told)


def data_in_memory(result: AuditResult) -> Dataset:
    """The records of an audit in memory, as it used them: of arrays there is nothing to read.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> auditing.data_in_memory(result).features.shape
    (3, 1)
    """
    process = result.process
    grouped = process.groups is not None
    names = result.record_ids
    return Dataset(
        name=result.dataset.name,
        features=process.features,
        target=process.targets,
        record_ids=tuple(range(process.records)) if grouped else names,
        feature_names=tuple(str(column) for column in range(result.dataset.features)),
        target_name=result.dataset.target_name,
        task=process.task,
        group=tuple(names[unit] for unit in process.labels.tolist()) if grouped else None,
    )


def data_of(
    document: AuditDocument | QueryAttack, data: str | Path | Dataset | None = None
) -> Dataset:
    """The data of a result, prepared as they were: read again, or as given.

    Parameters
    ----------
    document
        The result.
    data
        Where the data are now, or the dataset itself as it was read; where left out, they are
        read from where the result says.

    Raises
    ------
    InputError
        Where they cannot be read, or are not those that the result is about.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import AuditSettings
    >>> result = auditing.audit_dataset(data.read_example("wine"), AuditSettings(sensitivity=False))
    >>> auditing.data_of(result.to_document()).features.shape
    (178, 13)
    """
    scaling = settings_of(document).scaling
    entry = document.dataset.source
    if isinstance(data, Dataset):
        if entry is not None and data.source is not None and data.source.digest != entry.digest:
            raise InputError("these are not the data that the result is about.")
        return prepare(data, scaling=scaling)
    if entry is None:
        raise InputError("the audit was of arrays in memory, and its result has no data to read.")
    return prepare(read_again(Source(**entry.model_dump()), data), scaling=scaling)
