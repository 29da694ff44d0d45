"""Advice on the user's own model: which penalty, features, records or noise meets a target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope._numerics.keys import Key
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.model_options import (
    ModelPricing,
    answer_noise_options,
    dropping_options,
    fewer_features_options,
    penalty_options,
)
from leakscope.advising.own_model import OwnModel
from leakscope.advising.ranked_options import (
    CONSTANT_TARGET,
    FOLDS,
    LEAST_UNITS,
    POINTS,
    REPEATS,
    OnStage,
    Ranked,
    by_size,
    ranked,
)
from leakscope.advising.released_error import Folds
from leakscope.data import RecordId
from leakscope.errors import InputError
from leakscope.results import AssumptionEntry
from leakscope.settings import AdviseSettings

ONLY_TRUSTED = (
    "Noise on the answers of the model as it is was not tried: the numbers of some records are not "
    "trusted, and noise does not change that.  Dropping takes such records first."
)


def model_options(
    model: OwnModel,
    names: Sequence[RecordId],
    target: AuditTarget,
    settings: AdviseSettings,
    *,
    random_state: int | np.random.Generator | Key | None,
    on_stage: OnStage | None,
) -> Ranked:
    """Search every change of a fitted model for the one that meets the target; rank by cost."""

    def begin(stage: str) -> None:
        if on_stage is not None:
            on_stage(stage)

    if model.records < LEAST_UNITS:
        raise InputError(
            f"advice needs at least {LEAST_UNITS} records, but there are {model.records}."
        )
    if settings.questions != "own":
        raise InputError(
            "questions anywhere are bounded for Gaussian processes with an rbf or matern kernel "
            "only; leave out --questions any."
        )
    begin("audit")
    count = model.records
    folds = Folds.of(
        np.arange(count),
        count=min(FOLDS, count) if settings.folds is None else settings.folds,
        repeats=by_size(REPEATS, count, 1) if settings.repeats is None else settings.repeats,
        random_state=random_state,
    )
    seed = random_state if isinstance(random_state, int) else 0
    pricing = ModelPricing(
        model, names, target, folds, by_size(POINTS, count, 4), settings.check, seed
    )
    own = pricing.option("as audited", pricing.own, "Change nothing", [pricing.own])
    notes = [CONSTANT_TARGET] if own.r_squared is None and model.loss == "square" else []
    options = []
    doubt = _doubt(pricing)
    if not own.meets:
        begin("penalty")
        options += penalty_options(pricing)
        begin("features")
        options += fewer_features_options(pricing)
        begin("dropping")
        options += dropping_options(pricing, settings.most_dropped)
        if pricing.own.laws.trusted.all():
            begin("output noise")
            options += answer_noise_options(pricing)
        else:
            notes.append(ONLY_TRUSTED)
    if model.observes == "label":
        notes.append("Only labels are answered, and a label takes no normal noise.")
    return Ranked(own, ranked(options), folds, notes, _assumptions(folds), doubt)


def _doubt(pricing: ModelPricing) -> str | None:
    """What is said where it takes the laws of records that are not trusted to tell; else None."""
    trusted = pricing.own.laws.trusted
    untrusted = int(np.count_nonzero(~trusted))
    if pricing.own.trusted:
        return None
    return (
        f"Cannot tell whether the model as it is meets {pricing.target.words}: the numbers of "
        f"{untrusted} of {len(trusted)} records are not trusted, as one other record carries most "
        "of what varies there."
    )


def _assumptions(folds: Folds) -> list[AssumptionEntry]:
    return [
        AssumptionEntry(
            statement="the attacker asks once, at the record's own point",
            holds=None,
            evidence="as in the audit; more answers average noise on them away",
        ),
        AssumptionEntry(
            statement="transformers, and which features and records are kept, stay fixed when a "
            "record leaves",
            holds=None,
            evidence="each option is fitted and audited again on what it keeps",
        ),
        AssumptionEntry(
            statement="the price of an option is that of data like these",
            holds=None,
            evidence=f"{folds.count}-fold cross-validation of your model, repetitions: "
            f"{len(folds.number)}; what to drop was chosen once, on all records",
        ),
    ]
