"""From an audited model and a target to ranked options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.option_pricing import Pricing
from leakscope.advising.released_error import Folds
from leakscope.advising.searched_options import (
    dropping_options,
    fewer_features_options,
    kernel_noise_options,
    merging_option,
    output_noise_option,
)
from leakscope.data import RecordId
from leakscope.errors import InputError
from leakscope.lood import Process, Separation
from leakscope.results import AdviceOption, AssumptionEntry
from leakscope.settings import AdviseSettings

OnStage = Callable[[str], None]

FOLDS = 5

# Kernel matrices held at once by the widest stage: the matrix, its eigenvectors and their
# squares, the work of the decomposition and the blocks of a fold.
MATRICES = 6

NOT_BY_UNRESOLVED = (
    "Only more training noise was searched: noise on the answers, dropping, merging and fewer "
    "features would be chosen by numbers that float64 does not resolve."
)

# Two merged pairs, or two dropped and two left.
LEAST_UNITS = 4

# In their order for a training, a fitted model and a process, each of which has some of them.
ADVICE_STAGES = (
    "audit",
    "training",
    "penalty",
    "output noise",
    "kernel noise",
    "features",
    "dropping",
    "merging",
)

CONSTANT_TARGET = (
    "The target is the same for every record: there is no variance to compare an error with, so "
    "that R2 has no value; errors and costs are in squared units of the target as used."
)

# Up to so many records: repetitions of the cross-validation, and settings refitted on a curve.
REPEATS = ((1000, 4), (2500, 2))
POINTS = ((1000, 9), (2500, 6))


@dataclass(frozen=True)
class Ranked:
    """The audit's own setting and the options, ranked; how they were priced, and on what terms.

    Without ``folds`` the price is by leave-one-out.  ``doubt`` says what float64 does not resolve
    of the audit's own setting; None where nothing.
    """

    own: AdviceOption
    options: list[AdviceOption]
    folds: Folds | None
    notes: list[str]
    assumptions: list[AssumptionEntry]
    doubt: str | None


def ranked_options(
    model: Process,
    names: Sequence[RecordId],
    target: AuditTarget,
    settings: AdviseSettings,
    *,
    random_state: int | np.random.Generator | Key | None,
    on_stage: OnStage | None,
) -> Ranked:
    """Search every defence for the setting that meets the target, and rank them by their cost."""

    def begin(stage: str) -> None:
        if on_stage is not None:
            on_stage(stage)

    if model.units < LEAST_UNITS:
        raise InputError(
            f"advice needs at least {LEAST_UNITS} {model.unit}s, but there are {model.units}."
        )
    folds, repeats, questions = settings.folds, settings.repeats, settings.questions
    reach = _reach(model, questions)
    if model.phi is None:
        require_memory(
            8 * MATRICES * model.records**2,
            f"advice on {model.records} records, which holds {MATRICES} kernel matrices,",
            "audit a subsample of the records and ask for advice on that, or audit with a kernel "
            "of few features, such as linear",
        )
    begin("audit")
    count = len(model.features)
    chosen = Folds.of(
        model.labels,
        count=min(FOLDS, model.units) if folds is None else folds,
        repeats=by_size(REPEATS, count, 1) if repeats is None else repeats,
        random_state=random_state,
    )
    pricing = Pricing(model, names, target, chosen, by_size(POINTS, count, 4), reach)
    own = pricing.option("as audited", pricing.own, "Change nothing", [pricing.own])
    notes = [CONSTANT_TARGET] if model.total_variance == 0.0 else []
    options: list[AdviceOption] = []
    doubt = doubt_of(pricing.laws, target)
    if doubt is not None:
        begin("kernel noise")
        options = [option for option in kernel_noise_options(pricing) if option.trusted]
        notes.append(NOT_BY_UNRESOLVED)
    elif not own.meets:
        begin("output noise")
        options.append(output_noise_option(pricing))
        begin("kernel noise")
        options += kernel_noise_options(pricing)
        begin("features")
        options += fewer_features_options(pricing)
        begin("dropping")
        options += dropping_options(pricing, settings.most_dropped)
        if model.groups is None:
            begin("merging")
            options.append(merging_option(pricing))
        else:
            notes.append("Merging is of records and was not searched: here groups leave.")
    return Ranked(own, ranked(options), chosen, notes, _assumptions(chosen, questions), doubt)


def ranked(options: list[AdviceOption]) -> list[AdviceOption]:
    """By cost; what cannot meet the target comes last, the nearest first."""
    return sorted(options, key=lambda option: (not option.meets, _rank(option)))


def _rank(option: AdviceOption) -> float:
    """By cost what meets the target, by what is left what does not; null stands for infinite."""
    value = option.cost if option.meets else option.worst
    return np.inf if value is None else value


def doubt_of(laws: Separation, target: AuditTarget) -> str | None:
    """What is to be said where float64 does not resolve some unit; None where it resolves all."""
    untrusted = int(np.count_nonzero(~laws.trusted))
    if not untrusted:
        return None
    return doubt_words(f"{untrusted} of {laws.units} {laws.unit}s", laws.noise_variance, target)


def doubt_words(which: str, noise_variance: float, target: AuditTarget) -> str:
    """The sentence of units that float64 does not resolve."""
    return (
        f"Cannot tell whether the audit's own setting meets {target.words}: float64 does not "
        f"resolve {which} at noise_variance {noise_variance:g}; audit with a larger one."
    )


def _reach(model: Process, questions: str) -> float | None:
    if questions not in ("own", "any"):
        raise InputError(f"questions must be own or any, but it is {questions!r}.")
    if questions == "own":
        return None
    if model.groups is not None or model.reach is None:
        raise InputError(
            "questions anywhere are bounded for records and for rbf and matern kernels only; ask "
            "for advice with questions at the records' own points."
        )
    return model.reach


def by_size(table: tuple[tuple[int, int], ...], count: int, otherwise: int) -> int:
    """What a table has for so many records."""
    return next((value for limit, value in table if count <= limit), otherwise)


def _assumptions(folds: Folds, questions: str) -> list[AssumptionEntry]:
    repeats = len(folds.number)
    asked = "at the record's own point" if questions == "own" else "anywhere"
    return [
        AssumptionEntry(
            statement=f"where answers carry noise, the attacker asks one question, {asked}",
            holds=None,
            evidence="more answers average the noise away; without noise on the answers no "
            "question or set of questions to one trained model tells more than the record's own "
            "point",
        ),
        AssumptionEntry(
            statement="scales, components and kernel parameters stay fixed when a record leaves",
            holds=None,
            evidence="as in the audit",
        ),
        AssumptionEntry(
            statement="the price of an option is that of data like these",
            holds=None,
            evidence=f"{folds.count}-fold cross-validation, repetitions: {repeats}; what to drop "
            "or merge was chosen once, on all records",
        ),
    ]
