"""From an audit and a target to the cheapest defence: the options priced, ranked and told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__
from leakscope._numerics.keys import Key
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.audited_model import AuditedModel
from leakscope.advising.ranked_options import OnStage, Ranked, ranked_options
from leakscope.auditing import (
    Audited,
    audit_document,
    data_of,
    kernel_from_settings,
    settings_of,
    taken_from_result,
)
from leakscope.data import Dataset, RecordId
from leakscope.errors import InputError
from leakscope.results import Advice, AdviceTarget, AuditDocument, DatasetEntry
from leakscope.settings import ADVISE_DEFAULTS, Questions

PRIVACY_OF_CHOOSING = (
    "To choose a defence by looking at private data has a privacy cost of its own, which no number "
    "here counts: what is chosen, and which records are dropped or merged, depends on the records."
)
MODEL_FAMILY = (
    "The advice speaks of a Gaussian process with the audit's kernel, one draw of which is "
    "released; your model was not examined.  leakscope verify compares the audit with models that "
    "are really trained."
)


def advise(
    audited: Audited | AuditedModel,
    target: AuditTarget,
    *,
    data: str | Path | Dataset | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    most_dropped: float = ADVISE_DEFAULTS.most_dropped,
    questions: Questions = ADVISE_DEFAULTS.questions,
    random_state: int | np.random.Generator | Key | None = None,
    on_stage: OnStage | None = None,
) -> Advice:
    """Which defence keeps every record to a target, and what each costs in error.

    Searched: noise on the answers, training noise, fewer features, dropping or merging the most
    exposed, and pairs of these with noise on the answers.  Each is priced by cross-validation; the
    cheapest comes first.

    Parameters
    ----------
    audited
        An audit: its result in memory, a run, the path of a run directory or a result file; or
        the model itself.
    target
        What no record, or group, may exceed.
    data
        Where the data are now, or the dataset itself, where the result does not say.
    folds, repeats
        Of the cross-validation that prices each option.  Where left out: 5 folds, or as many as
        there are records or groups where those are fewer; 4 repetitions up to 1,000 records, 2 up
        to 2,500 and 1 above.
    most_dropped
        The largest share of records to drop.
    questions
        ``own``: output noise is for one question at the record's own point, as the audit asks;
        ``any``: for one question anywhere, by a bound, for rbf and matern kernels and records.
        Without output noise an option holds for every set of questions, either way.
    random_state
        Of the folds; nothing else is random.
    on_stage
        Called with the name of each stage as it begins.

    Returns
    -------
    Advice
        The options, and what to say of them.

    Raises
    ------
    InputError
        Where it is not an audit, its data cannot be read or have changed, or there are too few
        records.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import advising, kernels
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> model = advising.AuditedModel(X, y, kernels.rbf(), noise_variance=0.05)
    >>> advice = leakscope.advise(model, leakscope.AuditTarget("advantage", 0.2))
    >>> advice.best.meets, [option.name for option in advice.options if not option.meets]
    (True, ['dropping', 'fewer features'])
    """
    start = time.perf_counter()
    document = None
    names: Sequence[RecordId]
    if isinstance(audited, AuditedModel):
        model, names, told = audited, range(audited.units), _arrays(audited)
    else:
        document = audit_document(audited, "advise")
        prepared = data_of(document, data)
        model, names = _model(document, prepared)
        told = DatasetEntry.of(prepared)
    found = ranked_options(
        model,
        names,
        target,
        folds=folds,
        repeats=repeats,
        most_dropped=most_dropped,
        questions=questions,
        random_state=random_state,
        on_stage=on_stage,
    )
    warnings = [PRIVACY_OF_CHOOSING, MODEL_FAMILY]
    if document is not None and document.route == "fitc":
        warnings.append("The audit was approximate (FITC); the advice is by exact laws.")
    return Advice(
        leakscope_version=__version__,
        settings={
            "target": target.words,
            "folds": found.folds.count,
            "repeats": len(found.folds.number),
            "most_dropped": most_dropped,
            "questions": questions,
            "seed": random_state if isinstance(random_state, int) else None,
            "audit": {} if document is None else document.settings,
        },
        provenance={} if document is None else document.provenance,
        assumptions=[*([] if document is None else document.assumptions), *found.assumptions],
        timing={"advise": time.perf_counter() - start},
        warnings=warnings,
        dataset=told,
        target=AdviceTarget(
            measure=target.measure,
            value=target.value,
            fpr=target.fpr if target.measure == "tpr" else None,
            delta=target.delta if target.measure == "epsilon" else None,
        ),
        target_label=target.label,
        unit="record" if model.groups is None else "group",
        sentence=_sentence(found, target, model.unit),
        own=found.own,
        options=found.options,
        notes=found.notes,
    )


def _sentence(found: Ranked, target: AuditTarget, unit: str) -> str:
    """The answer in words."""
    if found.own.meets:
        worst = np.inf if found.own.worst is None else found.own.worst
        return (
            f"The audit's own setting meets {target.words} already: the worst {unit} has "
            f"{target.shown(worst)}."
        )
    if not (found.options and found.options[0].meets):
        return f"No option that was tried meets {target.words}."
    return f"Cheapest: {found.options[0].name}. {found.options[0].sentence}"


def _arrays(model: AuditedModel) -> DatasetEntry:
    """What is told of a model in memory."""
    return DatasetEntry(
        name="arrays in memory",
        records=len(model.features),
        features=model.features.shape[1],
        outputs=1 if model.targets.ndim == 1 else model.targets.shape[1],
        target_name="target",
        steps=[],
    )


def _model(document: AuditDocument, prepared: Dataset) -> tuple[AuditedModel, tuple[RecordId, ...]]:
    """The model that was audited, and the ids of what leaves it."""
    names, labels = _units(document, prepared)
    with taken_from_result():
        scale = float(document.kernel.get("fitted_scale", 1.0))
    model = AuditedModel(
        prepared.features,
        prepared.target,
        kernel_from_settings(settings_of(document)),
        document.noise_variance,
        kernel_scale=scale,
        groups=labels,
        task=prepared.task,
    )
    return model, names


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
