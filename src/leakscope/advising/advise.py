"""From an audit and a target to the cheapest defence: the options priced, ranked and told."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from leakscope import __version__
from leakscope._numerics.keys import Key
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.model_advice import model_options
from leakscope.advising.own_model import LOSSES, OwnModel
from leakscope.advising.ranked_options import OnStage, Ranked, ranked_options
from leakscope.advising.streamed_advice import AnsweredRun, streamed_options
from leakscope.advising.training_advice import training_options
from leakscope.auditing import (
    Audited,
    AuditResult,
    Examined,
    ModelAuditResult,
    audit_document,
    data_of,
    examined_again,
    process_of_run,
)
from leakscope.data import Dataset, RecordId
from leakscope.errors import InputError
from leakscope.lood import Process
from leakscope.results import (
    Advice,
    AdviceTarget,
    AuditDocument,
    DatasetEntry,
    ModelAuditDocument,
    Run,
    StreamedAuditDocument,
    result_of,
)
from leakscope.settings import ADVISE_DEFAULTS, AdviseSettings, Questions, validated

PRIVACY_OF_CHOOSING = (
    "To choose a defence by looking at private data has a privacy cost of its own, which is not "
    "included here: what is chosen, and which records are dropped or merged, depends on the "
    "records."
)
MODEL_FAMILY = (
    "The advice speaks of a Gaussian process with the audit's kernel, one draw of which is "
    "released; your model was not examined.  leakscope verify compares the audit with models that "
    "are really trained."
)


def advise(
    audited: Audited | Process,
    target: AuditTarget,
    *,
    data: str | Path | Dataset | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    most_dropped: float = ADVISE_DEFAULTS.most_dropped,
    questions: Questions = ADVISE_DEFAULTS.questions,
    check: int | None = None,
    tries: Mapping[str, Sequence[float]] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
    on_stage: OnStage | None = None,
) -> Advice:
    """Which defence keeps every record to a target, and what each costs in error.

    Searched: noise on the answers, training noise (of a fitted model: its penalty), fewer
    features, dropping or merging the most exposed, and pairs of these with noise on the answers.
    Each is priced by cross-validation; the cheapest comes first.  Of an audit of a training, noise
    on the answers and the options of the training in ``tries``.

    Parameters
    ----------
    audited
        An audit: its result in memory, a run, the path of a run directory or a result file; or
        the process itself.  A result in memory knows its records; otherwise the data are read.
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
        Without output noise an option of a process holds for every set of questions.
    check
        Of an audit of a fitted model: how many shadow models check each option that meets the
        target; none where left out.
    tries
        Of an audit of a training: its options, by name, with the values to try one at a time.
        Each is trained as often as the audit did, on the same halves and with the same seeds.
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
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> model = lood.Process(X, y, kernels.rbf(), noise_variance=0.05)
    >>> advice = leakscope.advise(model, leakscope.AuditTarget("advantage", 0.2))
    >>> advice.best.meets, [option.name for option in advice.options if not option.meets]
    (True, ['dropping', 'fewer features'])
    """
    start = time.perf_counter()
    document: AuditDocument | ModelAuditDocument | StreamedAuditDocument | None = None
    model: Process | OwnModel | Examined | AnsweredRun
    names: Sequence[RecordId]
    fitted_model = _fitted_model(audited)
    if fitted_model is not None and fitted_model.models is not None:
        document = fitted_model
        model, names = _examined(audited, fitted_model, data)
        told = fitted_model.dataset
    elif tries:
        raise InputError(
            "--try changes options of a training, and this audit is not one of a training "
            "(audit --train)."
        )
    elif (streamed := _streamed(audited)) is not None:
        model, names = streamed, ()
        document, told = streamed.document, streamed.document.dataset
    elif fitted_model is not None:
        document = fitted_model
        model, names = _own_model(audited, fitted_model, data)
        told = fitted_model.dataset
    elif isinstance(audited, Process):
        model, names, told = audited, range(audited.units), _arrays(audited)
    elif isinstance(audited, AuditResult) and data is None:
        document = audited.to_document()
        model, names, told = audited.process, audited.record_ids, audited.dataset
    else:
        document = audit_document(audited, "advise")
        prepared = data_of(document, data)
        model, names = process_of_run(document, prepared)
        told = DatasetEntry.of(prepared)
    settings = validated(
        AdviseSettings,
        folds=folds,
        repeats=repeats,
        most_dropped=most_dropped,
        questions=questions,
        check=check,
    )
    if isinstance(model, Examined):
        assert isinstance(document, ModelAuditDocument)
        known = audited if isinstance(audited, ModelAuditResult) else document
        found = training_options(known, model, tries or {}, target, on_stage=on_stage)
    elif isinstance(model, OwnModel):
        found = model_options(
            model, names, target, settings, random_state=random_state, on_stage=on_stage
        )
    elif isinstance(model, AnsweredRun):
        found = streamed_options(model, target, settings)
    else:
        found = ranked_options(
            model, names, target, settings, random_state=random_state, on_stage=on_stage
        )
    of_process = isinstance(model, (Process, AnsweredRun))
    warnings = [PRIVACY_OF_CHOOSING, *([MODEL_FAMILY] if of_process else [])]
    if found.doubt is not None:
        warnings.insert(0, found.doubt)
    if isinstance(document, AuditDocument) and document.approximate:
        warnings.append("The audit was approximate; the advice is by exact laws.")
    return Advice(
        leakscope_version=__version__,
        settings={
            "target": target.words,
            "folds": None if found.folds is None else found.folds.count,
            "repeats": None if found.folds is None else len(found.folds.number),
            "most_dropped": most_dropped,
            "questions": questions,
            "check": check,
            "tries": {name: list(values) for name, values in (tries or {}).items()},
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
        unit="group" if isinstance(model, Process) and model.groups is not None else "record",
        sentence=_sentence(found, target, model.unit if isinstance(model, Process) else "record"),
        own=found.own,
        options=found.options,
        notes=found.notes,
        model=document.model if isinstance(document, ModelAuditDocument) else None,
        loss=_loss(model, document),
    )


def _streamed(audited: Audited | Process) -> AnsweredRun | None:
    """The run of a streamed audit, with its answers; None where it is something else."""
    if isinstance(audited, Run):
        place, document = audited.directory, audited.document
    elif isinstance(audited, (str, Path)):
        place, document = Path(audited), result_of(audited)
    else:
        return None
    if not isinstance(document, StreamedAuditDocument):
        return None
    return AnsweredRun(place.parent if place.name == "result.json" else place, document)


def _fitted_model(audited: Audited | Process) -> ModelAuditDocument | None:
    """What is stored of the audit of a fitted model; None where it is something else."""
    if isinstance(audited, ModelAuditResult):
        return audited.to_document()
    if isinstance(audited, (Process, AuditResult)):
        return None
    document = result_of(audited)
    return document if isinstance(document, ModelAuditDocument) else None


def _own_model(
    audited: Audited | Process, document: ModelAuditDocument, data: str | Path | Dataset | None
) -> tuple[OwnModel, Sequence[RecordId]]:
    """The model that was audited: as it is in memory, fitted again or read from its file."""
    examined, names = _examined(audited, document, data)
    return OwnModel.of(examined, document.question, document.fraction, document.observes), names


def _examined(
    audited: Audited | Process, document: ModelAuditDocument, data: str | Path | Dataset | None
) -> tuple[Examined, Sequence[RecordId]]:
    """What was audited, and its records: as it is in memory, or read again."""
    if isinstance(audited, ModelAuditResult) and data is None:
        return audited.examined, audited.record_ids
    return examined_again(document, data)


def _loss(model: object, document: object) -> str:
    if isinstance(model, OwnModel):
        return LOSSES[model.loss]
    log_odds = isinstance(document, ModelAuditDocument) and document.observes == "log_odds"
    return LOSSES["logistic" if log_odds else "square"]


def _sentence(found: Ranked, target: AuditTarget, unit: str) -> str:
    """The answer in words."""
    best = found.options[0] if found.options and found.options[0].meets else None
    if found.doubt is not None:
        return found.doubt if best is None else f"{found.doubt} {best.sentence}"
    if found.own.meets:
        worst = np.inf if found.own.worst is None else found.own.worst
        return (
            f"The audit's own setting meets {target.words} already: the worst {unit} has "
            f"{target.shown(worst)}."
        )
    if best is None:
        return f"No option that was tried meets {target.words}."
    return f"Cheapest: {best.name}. {best.sentence}"


def _arrays(model: Process) -> DatasetEntry:
    """What is told of a model in memory."""
    return DatasetEntry(
        name="arrays in memory",
        records=len(model.features),
        features=model.features.shape[1],
        outputs=1 if model.targets.ndim == 1 else model.targets.shape[1],
        target_name="target",
        steps=[],
    )
