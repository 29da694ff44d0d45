"""The model of a finished audit: fitted again from its data as it was, or read from its file."""

from __future__ import annotations

from pathlib import Path

from leakscope.auditing.file_models import file_fit
from leakscope.auditing.model_result import Examined
from leakscope.auditing.named_models import named_fit
from leakscope.auditing.reopened import taken_from_result
from leakscope.auditing.trained_audit import training_and_target
from leakscope.data import Dataset, RecordId, Source, prepare, read_again, read_model
from leakscope.errors import InputError
from leakscope.results import ModelAuditDocument
from leakscope.settings import AuditSettings, ModelSettings, TrainingSettings, validated


def examined_again(
    document: ModelAuditDocument, data: str | Path | Dataset | None = None
) -> tuple[Examined, tuple[RecordId, ...]]:
    """The model that an audit examined, with its records and their ids.

    Parameters
    ----------
    document
        The result of an audit of a model, or of a training, by name.
    data
        Where the data are now, or the dataset itself as it was read; where left out, they are
        read from where the result says.

    Raises
    ------
    InputError
        Where the model was an estimator in memory, which no file holds, or the data have changed.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import ModelSettings
    >>> diabetes = data.read_example("diabetes")
    >>> result = auditing.audit_named_model(diabetes, ModelSettings(model="ridge", alpha=1.0))
    >>> examined, ids = auditing.examined_again(result.to_document())
    >>> examined.estimator.alpha, len(ids)
    (1.0, 442)
    """
    told, entry = document.settings, document.dataset.source
    trained = document.models is not None and entry is not None
    if told.get("model") is None and not trained:
        raise InputError(
            f"the estimator of this audit ({document.model.name}) was in memory, and no file holds "
            "it; take the result that leakscope.audit returned."
        )
    with taken_from_result():
        kind: type[TrainingSettings | ModelSettings] = (
            TrainingSettings if trained else ModelSettings
        )
        chosen = validated(kind, **{k: told[k] for k in kind.model_fields})
        usual = validated(AuditSettings, scaling=told["scaling"], seed=told["seed"])
    if isinstance(data, Dataset):
        if entry is not None and data.source is not None and data.source.digest != entry.digest:
            raise InputError("these are not the data that the result is about.")
        read = data
    elif entry is None:
        raise InputError("the audit was of a table in memory, and its result has no data to read.")
    else:
        read = read_again(Source(**entry.model_dump()), data)
    prepared = prepare(read, scaling=usual.scaling)
    if isinstance(chosen, TrainingSettings):
        training, y, _ = training_and_target(read, prepared, chosen)
        return Examined(training.subject, prepared.features, y), prepared.record_ids
    if chosen.file is not None:
        file = read_model(chosen.file)
        if file.sha256 != document.model.file_sha256:
            raise InputError(f"{chosen.file} is not the model that was audited; it has changed.")
        own = file_fit(read, prepared, file, chosen)
        return (
            Examined(own.estimator, own.X, own.y, feature_names=prepared.feature_names),
            prepared.record_ids,
        )
    fit = named_fit(read, prepared, chosen, seed=usual.seed)
    again = Examined(fit.estimator, fit.X, fit.y, feature_names=prepared.feature_names)
    return again, prepared.record_ids
