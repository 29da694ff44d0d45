"""Advice on a training, in its own terms: the options that the user names, each really trained.

Every setting is trained as often as the audit did, on the same halves and with the same seeds, and
each model is asked about the half that it has not seen: that is the price, and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.option_pricing import PricedSetting, Terms
from leakscope.advising.own_model import HeldOutScores
from leakscope.advising.ranked_options import OnStage, Ranked, ranked
from leakscope.advising.released_error import Folds
from leakscope.auditing import (
    Examined,
    ModelAuditResult,
    OwnTraining,
    audit_training_with,
    noise_for,
    options_of,
    with_options,
)
from leakscope.errors import InputError
from leakscope.results import AdviceOption, AssumptionEntry, ModelAuditDocument

NOT_SEEN = "two models do not show how much trainings differ, and the level rests on other data"

# Options that a note proposes.
MOST_PROPOSED = 6


@dataclass(frozen=True)
class PricedTraining(PricedSetting):
    """A setting of the training, and the ends of the worst record's interval where it has one."""

    low: float | None = field(default=None, kw_only=True)
    high: float | None = field(default=None, kw_only=True)


def training_options(
    audited: ModelAuditResult | ModelAuditDocument,
    examined: Examined,
    tries: Mapping[str, Sequence[float]],
    target: AuditTarget,
    *,
    on_stage: OnStage | None,
) -> Ranked:
    """Train every setting that is named, audit it, and rank the options by their cost."""
    _require_measured(target)
    if on_stage is not None:
        on_stage("audit")
    document = audited.to_document() if isinstance(audited, ModelAuditResult) else audited
    result = (
        audited
        if isinstance(audited, ModelAuditResult)
        else audit_training_with(examined, document, {})
    )
    training = OwnTraining(examined.estimator, document.model.name, _task(result))
    present = options_of(training)
    own = _priced({}, result, target)
    terms = Terms(
        target,
        own,
        "record",
        _variance(result),
        f"the {_loss(result)} on the half that a model has not seen",
        "its",
        NOT_SEEN,
    )
    told = _option(terms, "as audited", own, "Change nothing", [own])
    options, notes = [], [] if tries else [_proposal(training, present)]
    for name, values in tries.items():
        with_options(training, dict.fromkeys([name], values[0]))
        if on_stage is not None:
            on_stage("training")
        along = []
        for value in values:
            same = name in present and present[name] == value
            try:
                found = result if same else audit_training_with(examined, document, {name: value})
            except InputError as error:
                # What else was tried is not lost for one value that cannot be trained.
                notes.append(f"{name}={value} is left out: {error}")
                continue
            along.append(_priced({name: float(value)}, found, target))
        if not along:
            continue
        best = min(along, key=lambda each: _place(each, target))
        words = f"Train with {name}={best.setting[name]:g} instead of {present.get(name)}"
        options.append(_option(terms, name, best, words, along, *_interval(best, result, target)))
    if not told.meets and own.trusted:
        options += _noise_option(terms, result)
    if len(np.unique(np.asarray(examined.y))) > 2 and _task(result) == "classification":
        notes.append(
            "Accuracy counts a record as right where its class has more than half of the chance."
        )
    doubt = None if own.trusted else f"Cannot tell whether {target.words} is met: {NOT_SEEN}."
    return Ranked(told, ranked(options), _halves(result), notes, _assumptions(result), doubt)


def parsed_tries(texts: Sequence[str]) -> dict[str, list[float]]:
    """``epochs=5,10`` as a name with its values, whole numbers kept whole.

    Examples
    --------
    >>> from leakscope.advising import parsed_tries
    >>> parsed_tries(["epochs=5,10", "weight_decay=0.01"])
    {'epochs': [5, 10], 'weight_decay': [0.01]}
    """
    found: dict[str, list[float]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            read = [_number(value) for value in values.split(",")]
        except ValueError:
            read = []
        if not name.strip() or not read:
            raise InputError(
                f"--try must name an option and numbers to try, such as epochs=5,10, but it is "
                f"{text!r}."
            )
        found.setdefault(name.strip(), []).extend(read)
    return found


def _number(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(text)
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def _task(result: ModelAuditResult) -> Any:
    return "regression" if result.laws.observes == "residual" else "classification"


def _loss(result: ModelAuditResult) -> str:
    return "squared error" if _task(result) == "regression" else "log loss"


def _variance(result: ModelAuditResult) -> float | None:
    regression = _task(result) == "regression"
    return float(np.var(np.asarray(result.examined.y, dtype=np.float64))) if regression else None


def _halves(result: ModelAuditResult) -> Folds:
    """Two folds for each pair of models: a record is held out by the one that has not seen it."""
    assert result.half_models is not None
    return Folds(result.half_models.trained_on[::2].astype(np.intp), 2)


def _held_out(result: ModelAuditResult) -> HeldOutScores:
    """The own label's log-odds, or the residual, of each record by the models without it."""
    models = result.half_models
    assert models is not None
    scores = np.where(models.trained_on[::2], models.scores[1::2], models.scores[::2])
    task = _task(result)
    loss, aim = ("logistic", 1.0) if task == "classification" else ("square", 0.0)
    aims = np.full(scores.shape[1], aim)
    return HeldOutScores(scores, aims, loss, task, _halves(result))


def _priced(
    setting: Mapping[str, float], result: ModelAuditResult, target: AuditTarget
) -> PricedTraining:
    few = result.few
    assert few is not None
    found = few.advantage if target.measure == "advantage" else few.tpr_at_fpr[target.fpr]
    worst = int(np.argmax(found.value))
    low, high = found.at(worst)
    return PricedTraining(
        setting,
        float(found.value[worst]),
        float(np.median(found.value)),
        _held_out(result).released(),
        bool(result.laws.trusted.all()),
        low=low,
        high=high,
    )


def _place(found: PricedTraining, target: AuditTarget) -> tuple[bool, float]:
    """First what meets the target, by its error; then what comes nearest."""
    met = target.met(found.worst)
    return not met, found.released.error if met else found.worst


def _option(
    terms: Terms,
    name: str,
    found: PricedTraining,
    words: str,
    curve: Sequence[PricedTraining],
    *notes: str,
) -> AdviceOption:
    return terms.option(
        name,
        found,
        words,
        curve,
        notes,
        "does not meet",
        questions="own",
        worst_low=found.low,
        worst_high=found.high,
    )


def _interval(
    found: PricedTraining, result: ModelAuditResult, target: AuditTarget
) -> tuple[str, ...]:
    if found.high is None or not target.met(found.worst) or target.met(found.high):
        return ()
    return (
        f"With {result.models} models the worst record may still have up to "
        f"{target.shown(found.high)}; more models would tell (audit again with --models).",
    )


def _noise_option(terms: Terms, result: ModelAuditResult) -> list[AdviceOption]:
    """The least noise on every answer that meets the target, by the laws of the models trained."""
    target, laws = terms.target, result.laws
    noise = noise_for(laws, target.measured, target.value)
    if not noise:
        return []
    values = target.measured(laws.law_pair(answer_noise=noise))
    found = PricedTraining(
        {"output_sd": noise},
        float(np.max(values)),
        float(np.median(values)),
        _held_out(result).released(noise),
    )
    answered = "log-odds" if _task(result) == "classification" else "prediction"
    words = f"Add fresh normal noise of standard deviation {noise:.2g} to every {answered}"
    note = "An attacker who may ask m times averages the noise down to a variance of 1/m."
    return [_option(terms, "output noise", found, words, [found], note)]


def _proposal(training: OwnTraining, present: Mapping[str, Any]) -> str:
    numbers = {
        name: value
        for name, value in present.items()
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    }
    if not numbers:
        return (
            "No other way to train was tried.  Give the function options, train(X, y, seed, "
            "epochs=20), and name values: --try epochs=5,10."
        )
    there = ", ".join(f"{name}={value}" for name, value in list(numbers.items())[:MOST_PROPOSED])
    return (
        f"No other way to train was tried.  Name options of {training.name} with values, such as "
        f"--try {next(iter(numbers))}=...; it has {there}."
    )


def _require_measured(target: AuditTarget) -> None:
    if target.measure == "epsilon":
        raise InputError(
            "a few models show no epsilon; give --target-advantage or --target-tpr for a training."
        )
    if target.measure == "tpr" and target.fpr not in (1e-2, 1e-3):
        raise InputError(
            "of a training the TPR is known at --fpr 0.01 and 0.001; give one of them."
        )


def _assumptions(result: ModelAuditResult) -> list[AssumptionEntry]:
    return [
        AssumptionEntry(
            statement="the attacker asks once, at the record's own point",
            holds=None,
            evidence="as in the audit",
        ),
        AssumptionEntry(
            statement="a setting changes every model of half the records as it changes yours",
            holds=None,
            evidence=f"each setting was trained {result.models} times, on the same halves and with "
            "the same seeds",
        ),
    ]
