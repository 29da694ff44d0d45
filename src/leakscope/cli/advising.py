"""From an audit's result to the advice on it: the data read again, the options as a document."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__
from leakscope.advising import Advice, AuditedModel, AuditTarget, Defence, Option
from leakscope.advising import advise as advise_on
from leakscope.auditing.kernel_choice import kernel_from_settings
from leakscope.cli.audit_checks import settings_of
from leakscope.data import Dataset, Source, prepare, read_again
from leakscope.data.datasets import RecordId
from leakscope.data.regular_files import is_folder
from leakscope.errors import InputError
from leakscope.results import AuditDocument, read_result
from leakscope.results.advice import AdviceDocument, AdviceOption, AdviceTargetEntry
from leakscope.results.document import AssumptionEntry, DatasetEntry


def read_audit(run: Path) -> AuditDocument:
    """The result of an audit, from its run directory or its file."""
    document = read_result(run / "result.json" if is_folder(run) else run)
    if not isinstance(document, AuditDocument):
        raise InputError(f"{run} holds a result of kind {document.kind}; advise takes an audit's.")
    return document


def advised(
    document: AuditDocument,
    target: AuditTarget,
    *,
    data: Path | None,
    folds: int | None,
    repeats: int | None,
    most_dropped: float,
    questions: Literal["own", "any"],
    seed: int,
    on_stage: Callable[[str], None] | None,
) -> AdviceDocument:
    """Read the data again, search the options, and write them down with the records' own ids."""
    start = time.perf_counter()
    if document.dataset.source is None:
        raise InputError("the audit was of arrays in memory, and its result has no data to read.")
    source = Source(**document.dataset.source.model_dump())
    prepared = prepare(read_again(source, data), scaling=settings_of(document).scaling)
    names, labels = _units(document, prepared)
    model = AuditedModel(
        prepared.features,
        prepared.target,
        kernel_from_settings(settings_of(document)),
        document.noise_variance,
        kernel_scale=_scale(document),
        groups=labels,
        task=prepared.task,
    )
    advice = advise_on(
        model,
        target,
        folds=folds,
        repeats=repeats,
        most_dropped=most_dropped,
        questions=questions,
        random_state=seed,
        on_stage=on_stage,
    )
    settings = {
        "target": target.words,
        "folds": advice.own.released.by_fold.shape[1],
        "repeats": len(advice.own.released.by_fold),
        "most_dropped": most_dropped,
        "questions": questions,
        "seed": seed,
        "audit": document.settings,
    }
    return _document(document, prepared, model, advice, names, settings, start)


def _units(
    document: AuditDocument, prepared: Dataset
) -> tuple[tuple[RecordId, ...], NDArray[np.intp] | None]:
    """The ids of what leaves, and each record's number among them where those are groups."""
    if document.unit == "record":
        return tuple(prepared.record_ids), None
    if prepared.group is None:
        raise InputError("the audit was of groups, but its data name no group column.")
    place: dict[RecordId, int] = {}
    numbers = [place.setdefault(value, len(place)) for value in prepared.group]
    return tuple(place), np.array(numbers, dtype=np.intp)


def _scale(document: AuditDocument) -> float:
    scale = document.kernel.get("fitted_scale", 1.0)
    if not isinstance(scale, (int, float)):
        raise InputError(f"the result's fitted_scale is no number, but {scale!r}.")
    return float(scale)


def _document(
    document: AuditDocument,
    prepared: Dataset,
    model: AuditedModel,
    advice: Advice,
    names: tuple[RecordId, ...],
    settings: dict[str, object],
    start: float,
) -> AdviceDocument:
    told = advice.to_dict()
    warnings = list(advice.warnings)
    if document.route == "fitc":
        warnings.append("The audit was approximate (FITC); the advice is by exact laws.")
    return AdviceDocument(
        leakscope_version=__version__,
        settings=settings,
        provenance=document.provenance,
        assumptions=[
            *(AssumptionEntry(**entry.model_dump()) for entry in document.assumptions),
            *(
                AssumptionEntry(statement=a.statement, holds=a.holds, evidence=a.evidence)
                for a in advice.assumptions
            ),
        ],
        timing={"advise": time.perf_counter() - start},
        warnings=warnings,
        dataset=DatasetEntry.of(prepared),
        target=AdviceTargetEntry(**told["target"]),
        target_label=advice.target.label,
        unit=document.unit,
        sentence=advice.sentence,
        own=_entry(advice.own, model, names),
        options=[_entry(option, model, names) for option in advice.options],
        notes=list(advice.notes),
    )


def _entry(option: Option, model: AuditedModel, names: tuple[RecordId, ...]) -> AdviceOption:
    dropped, merged = _touched(option.defence, model, names)
    return AdviceOption(**option.to_dict(), dropped=dropped, merged=merged)


def _touched(
    defence: Defence, model: AuditedModel, names: tuple[RecordId, ...]
) -> tuple[list[RecordId], list[list[RecordId]]]:
    """Ids of the units dropped, and of the records that share a row."""
    rows = defence.rows
    if rows is None:
        return [], []
    dropped = [names[unit] for unit in np.unique(model.labels[rows < 0])]
    if not defence.merges:
        return dropped, []
    shared = [np.flatnonzero(rows == row) for row in np.flatnonzero(np.bincount(rows) > 1)]
    return dropped, [[names[record] for record in members] for members in shared]
