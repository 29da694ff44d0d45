"""From an audit and a target to the cheapest change: every option searched, priced and ranked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope import __version__
from leakscope._numerics.keys import Key
from leakscope.advising.options import Advising
from leakscope.auditing.gate import FPR, limits_of
from leakscope.data.datasets import Dataset
from leakscope.errors import InputError
from leakscope.results.advice import Advice, AdviceOption, Target
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument
from leakscope.results.reader import Run, result_of, unsealed_note
from leakscope.settings.advise import ADVISE_DEFAULTS, AdviseSettings, Questions
from leakscope.settings.decide import Thresholds
from leakscope.settings.setting import validated
from leakscope.subjects.subject import Subject, Wanted, opened, subject_of


def target_of(thresholds: Thresholds) -> Target:
    """The target that a threshold sets: one is sought at a time.

    Examples
    --------
    >>> from leakscope.advising.advise import target_of
    >>> from leakscope.settings.decide import Thresholds
    >>> target_of(Thresholds(threshold_tpr=0.01)).words
    'TPR at FPR 0.001 <= 0.01'
    """
    limits = limits_of(thresholds)
    if len(limits) != 1:
        raise InputError(
            "Give one target: --target-advantage, --target-tpr, --target-ppv or --target-epsilon"
            f"{', not several' if limits else ''}."
        )
    measure, value = limits[0].measure, limits[0].value
    return Target(measure, value, fpr=FPR if measure == "tpr" else None)


OnStage = Callable[[str], None]

# Two dropped and two left.
LEAST_UNITS = 4

PRIVACY_OF_CHOOSING = (
    "Choosing a defence by looking at private data has a privacy cost of its own, which is not "
    "counted here: the choice, and which records are dropped, depend on the data."
)
SOME_UNTRUSTED = (
    "Noise on the answers of the present model was not tried: the numbers of some {unit}s are not "
    "confirmed, and noise does not change that. Dropping removes such {unit}s first."
)
NONE_TRUSTED = (
    "Neither noise on the answers nor dropping was tried: no {unit}'s numbers are confirmed, so "
    "they cannot guide a choice."
)


def advise(
    audited: Audit | Run | str | Path | Subject | Any,
    target: Target | float,
    *,
    data: str | Path | Dataset | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    most_dropped: float = ADVISE_DEFAULTS.most_dropped,
    questions: Questions = ADVISE_DEFAULTS.questions,
    tries: Mapping[str, Sequence[float]] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
    on_stage: OnStage | None = None,
) -> Advice:
    """Which change keeps every record to a target, and what each costs in error.

    Searched: noise on the answers, what the kind of model says can be changed of it (of a process
    its training noise and the number of features, of a fitted model its penalty and its features,
    of a training the options in ``tries``), dropping the most exposed, and each of these with noise
    on the answers.  Each is priced by cross-validation; the cheapest comes first.

    Parameters
    ----------
    audited
        An audit: in memory, a run, the path of a run directory or a result file; or what is to be
        changed itself, a subject or a :class:`leakscope.lood.ProcessOnRecords`.  An audit in
        memory knows its records; otherwise the data are read.
    target
        What no record, or group, may exceed; a number is an advantage.
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
    >>> model = lood.ProcessOnRecords(X, y, kernels.rbf(), noise_variance=0.05)
    >>> advice = leakscope.advise(model, leakscope.AuditTarget("advantage", 0.2))
    >>> advice.best.meets, [option.name for option in advice.options if not option.meets]
    (True, ['dropping'])
    """
    start = time.perf_counter()
    settings = validated(
        AdviseSettings,
        folds=folds,
        repeats=repeats,
        most_dropped=most_dropped,
        questions=questions,
    )
    if not 0.0 < most_dropped < 1.0:
        raise InputError(
            f"the largest share to drop must lie between 0 and 1, but it is {most_dropped:g}."
        )
    audit, subject = _opened(audited, data)
    if isinstance(target, (int, float)):
        target = Target("advantage", float(target))
    wanted = Wanted(target, settings, tries or {}, random_state)
    if len(subject.ids) < LEAST_UNITS:
        raise InputError(
            f"advice needs at least {LEAST_UNITS} {subject.unit}s, but there are "
            f"{len(subject.ids)}."
        )
    if on_stage is not None:
        on_stage("audit")
    advising = Advising(subject.for_advice(wanted), wanted)
    own = advising.option("as audited", advising.own, "Change nothing", [advising.own])
    doubt = None if own.confirmed else advising.subject.cannot_tell(advising.laws, target)
    options = _options(advising, own, on_stage)
    terms, split = advising.terms, advising.folds
    return Advice(
        leakscope_version=__version__,
        settings={
            "target": target.words,
            "folds": None if split is None else split.count,
            "repeats": None if split is None else len(split.number),
            "most_dropped": most_dropped,
            "questions": questions,
            "tries": {name: list(values) for name, values in (tries or {}).items()},
            "seed": random_state if isinstance(random_state, int) else None,
            "audit": subject.settings if audit is None else audit.settings,
        },
        provenance={} if audit is None else audit.provenance,
        assumptions=[*([] if audit is None else audit.assumptions), *terms.assumptions],
        timing={"advise": time.perf_counter() - start},
        warnings=[
            *unsealed_note(audited),
            *([] if doubt is None else [doubt]),
            PRIVACY_OF_CHOOSING,
            *terms.warnings,
        ],
        dataset=subject.dataset,
        target=target,
        target_label=target.label,
        unit=subject.unit,
        sentence=_sentence(own, options, doubt, target, subject.unit),
        own=own,
        options=options,
        notes=advising.notes,
        # What is assumed to stand for a model is told as that; what was examined, by its name.
        model=None if subject.basis == "assumed" else subject.model,
        loss=terms.loss,
    )


def _opened(audited: Any, data: str | Path | Dataset | None) -> tuple[Audit | None, Subject]:
    """The audit, where there is one, and what it examined."""
    if not isinstance(audited, (ResultDocument, Run, str, Path)):
        return None, subject_of(audited)
    found = result_of(audited)
    if not isinstance(found, Audit):
        raise InputError(
            f"advise needs the result of leakscope audit, and this is one of kind {found.kind}."
        )
    return found, opened(found, data)


def _options(advising: Advising, own: AdviceOption, on_stage: OnStage | None) -> list[AdviceOption]:
    """What can be done, by cost; what cannot meet the target comes last, the nearest first."""
    begin = on_stage or (lambda stage: None)
    options: list[AdviceOption] = []
    laws, unit = advising.laws, advising.subject.unit
    if not own.meets and laws.unknown:
        note = NONE_TRUSTED if laws.unknown == laws.units else SOME_UNTRUSTED
        advising.notes.append(note.format(unit=unit))
    elif not own.meets:
        begin("output noise")
        options += advising.output_noise()
    # Options that were named are tried in any case.
    if not own.meets or advising.wanted.tries:
        for change in advising.subject.changes(advising.wanted):
            begin(change.name)
            options += advising.change(change)
    if not own.meets and laws.unknown < laws.units:
        begin("dropping")
        options += advising.dropping()

    def rank(option: AdviceOption) -> tuple[bool, bool, float]:
        # Null stands for infinite.
        value = option.cost if option.meets else option.worst
        # What is worth nothing is the last way.
        return not option.meets, option.worthless, np.inf if value is None else value

    return sorted(options, key=rank)


def _sentence(
    own: AdviceOption, options: Sequence[AdviceOption], doubt: str | None, target: Target, unit: str
) -> str:
    """The answer in words."""
    best = options[0] if options and options[0].meets else None
    if doubt is not None:
        return doubt if best is None else f"{doubt} {best.sentence}"
    if own.meets:
        worst = np.inf if own.worst is None else own.worst
        return (
            f"The audit's own setting meets {target.words} already: the worst {unit} has "
            f"{target.shown(worst)}."
        )
    if best is None:
        return f"No option that was tried meets {target.words}."
    if best.worthless:
        return (
            f"Only a change that makes the model useless meets {target.words}: {best.name}. "
            f"{best.sentence} Another model, more records or a weaker target would help."
        )
    first = "Cheapest" if best.cost is not None else f"Meets {target.words}"
    return f"{first}: {best.name}. {best.sentence}"
