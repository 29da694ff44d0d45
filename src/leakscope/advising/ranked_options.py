"""From an audited model and a target to ranked options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from leakscope._numerics.keys import Key
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.audited_model import AuditedModel
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
from leakscope.results import AdviceOption, AssumptionEntry

OnStage = Callable[[str], None]

FOLDS = 5

# Two merged pairs, or two dropped and two left.
LEAST_UNITS = 4

STAGES = ("audit", "output noise", "kernel noise", "features", "dropping", "merging")

CONSTANT_TARGET = (
    "The target is the same for every record: there is no variance to compare an error with, so "
    "that R2 has no value; errors and costs are in squared units of the target as used."
)

# Up to so many records: repetitions of the cross-validation, and settings refitted on a curve.
REPEATS = ((1000, 4), (2500, 2))
POINTS = ((1000, 9), (2500, 6))


@dataclass(frozen=True)
class Ranked:
    """The audit's own setting and the options, ranked; how they were priced, and on what terms."""

    own: AdviceOption
    options: list[AdviceOption]
    folds: Folds
    notes: list[str]
    assumptions: list[AssumptionEntry]


def ranked_options(
    model: AuditedModel,
    names: Sequence[RecordId],
    target: AuditTarget,
    *,
    folds: int | None,
    repeats: int | None,
    most_dropped: float,
    questions: Literal["own", "any"],
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
    reach = _reach(model, questions)
    begin("audit")
    count = len(model.features)
    chosen = Folds.of(
        model.labels,
        count=min(FOLDS, model.units) if folds is None else folds,
        repeats=_by_size(REPEATS, count, 1) if repeats is None else repeats,
        random_state=random_state,
    )
    pricing = Pricing(model, names, target, chosen, _by_size(POINTS, count, 4), reach)
    own = pricing.option("as audited", pricing.own, "Change nothing", [pricing.own])
    notes = [CONSTANT_TARGET] if model.total_variance == 0.0 else []
    options: list[AdviceOption] = []
    if not own.meets:
        begin("output noise")
        options.append(output_noise_option(pricing))
        begin("kernel noise")
        options += kernel_noise_options(pricing)
        begin("features")
        options += fewer_features_options(pricing)
        begin("dropping")
        options += dropping_options(pricing, most_dropped)
        if model.groups is None:
            begin("merging")
            options.append(merging_option(pricing))
        else:
            notes.append("Merging is of records and was not searched: here groups leave.")
    # What cannot meet the target comes last, the nearest first.
    options.sort(key=lambda option: (not option.meets, _rank(option)))
    return Ranked(own, options, chosen, notes, _assumptions(chosen, questions))


def _rank(option: AdviceOption) -> float:
    """By cost what meets the target, by what is left what does not; null stands for infinite."""
    value = option.cost if option.meets else option.worst
    return np.inf if value is None else value


def _reach(model: AuditedModel, questions: str) -> float | None:
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


def _by_size(table: tuple[tuple[int, int], ...], count: int, otherwise: int) -> int:
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
