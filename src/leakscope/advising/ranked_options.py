"""From an audited model and a target to ranked options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from leakscope._numerics.keys import Key
from leakscope.advising.advice import (
    CONSTANT_TARGET,
    MODEL_FAMILY,
    PRIVACY_OF_CHOOSING,
    Advice,
    Option,
)
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
from leakscope.errors import InputError
from leakscope.laws import Assumption

OnStage = Callable[[str], None]

FOLDS = 5

# Two merged pairs, or two dropped and two left.
LEAST_UNITS = 4

STAGES = ("audit", "output noise", "kernel noise", "features", "dropping", "merging")

# Up to so many records: repetitions of the cross-validation, and settings refitted on a curve.
REPEATS = ((1000, 4), (2500, 2))
POINTS = ((1000, 9), (2500, 6))


def advise(
    model: AuditedModel,
    target: AuditTarget,
    *,
    folds: int | None = None,
    repeats: int | None = None,
    most_dropped: float = 0.5,
    questions: Literal["own", "any"] = "own",
    random_state: int | np.random.Generator | Key | None = None,
    on_stage: OnStage | None = None,
) -> Advice:
    """Search every defence for the setting that meets the target, and rank them by their cost.

    Parameters
    ----------
    model
        What was audited.
    target
        What no record, or group, may exceed.
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

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, advise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> model = AuditedModel(X, y, kernels.rbf(), noise_variance=0.05)
    >>> advice = advise(model, AuditTarget("advantage", 0.2))
    >>> advice.best.meets, [option.name for option in advice.options if not option.meets]
    (True, ['dropping', 'fewer features'])
    """

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
    pricing = Pricing(model, target, chosen, _by_size(POINTS, count, 4), reach)
    own = pricing.option("as audited", pricing.own, "Change nothing", [pricing.own])
    notes = [CONSTANT_TARGET] if model.total_variance == 0.0 else []
    options: list[Option] = []
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
    options.sort(
        key=lambda option: (not option.meets, option.cost if option.meets else option.worst)
    )
    return Advice(
        target=target,
        unit=model.unit,
        own=own,
        options=tuple(options),
        warnings=(PRIVACY_OF_CHOOSING, MODEL_FAMILY),
        notes=tuple(notes),
        assumptions=_assumptions(chosen, questions),
    )


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


def _assumptions(folds: Folds, questions: str) -> tuple[Assumption, ...]:
    repeats = len(folds.number)
    asked = "at the record's own point" if questions == "own" else "anywhere"
    return (
        Assumption(
            f"where answers carry noise, the attacker asks one question, {asked}",
            None,
            "more answers average the noise away; without noise on the answers no question or set "
            "of questions to one trained model tells more than the record's own point",
        ),
        Assumption(
            "scales, components and kernel parameters stay fixed when a record leaves",
            None,
            "as in the audit",
        ),
        Assumption(
            "the price of an option is that of data like these",
            None,
            f"{folds.count}-fold cross-validation, repetitions: {repeats}; what to drop or merge "
            "was chosen once, on all records",
        ),
    )
