"""What can be changed of a training: the options that the user names, each really trained.

Every setting is trained as often as the audit did, on the same halves and with the same seeds, and
each model is asked about the half that it has not seen: that is the price, and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.data.preparation import target_unit
from leakscope.errors import InputError
from leakscope.results.advice import Target
from leakscope.results.audit import FPRS
from leakscope.results.document import AssumptionEntry
from leakscope.subjects.pricing import (
    ASKED_ONCE,
    LOSSES,
    Folds,
    HeldOutScores,
    Terms,
    commonest_share,
)
from leakscope.subjects.subject import Change, Wanted

if TYPE_CHECKING:
    from leakscope.subjects.training.subject import Training

# Options that a note proposes.
MOST_PROPOSED = 6


def require_measured(target: Target) -> None:
    """Refuse targets that a few models do not show."""
    if target.measure == "epsilon":
        raise InputError(
            "a few models show no epsilon; give --target-advantage or --target-tpr for a training."
        )
    if target.measure == "tpr" and target.fpr not in FPRS:
        raise InputError(
            "of a training the TPR is known at --fpr 0.01 and 0.001; give one of them."
        )


def tried_options(own: Training, tries: Mapping[str, Sequence[float]]) -> list[Change]:
    """One change for each option that is to be tried."""
    return [
        _change(own, name, [{name: value} for value in values], tries)
        for name, values in tries.items()
    ]


def _change(
    own: Training,
    name: str,
    settings: Sequence[Mapping[str, float]],
    tries: Mapping[str, Sequence[float]],
) -> Change:
    """Levels are places in the list of settings."""
    present = own.recipe.options
    own.recipe.with_options({key: tries[key][0] for key in settings[0]})

    # What is trained is kept: it is asked for its laws and then for its price.
    @cache
    def at(level: float) -> Training:
        told = settings[int(level)]
        if all(key in present and present[key] == value for key, value in told.items()):
            return own
        return own.with_recipe(own.recipe.with_options(told))

    def words(level: float) -> str:
        told = settings[int(level)].items()
        changed = (f"{key}={value:g} instead of {present.get(key)}" for key, value in told)
        return f"Train with {' and '.join(changed)}"

    return Change(
        name=name,
        setting=name,
        levels=[float(place) for place in range(len(settings))],
        at=at,
        words=words,
        numbers=lambda level: settings[int(level)],
    )


def halves(own: Training) -> Folds:
    """Two folds for each pair of models: a record is held out by the one that has not seen it."""
    assert own.half_models is not None
    return Folds(own.half_models.trained_on[::2].astype(np.intp), 2)


def unseen_scores(own: Training) -> HeldOutScores:
    """The own label's log-odds, or the residual, of each record by the models without it."""
    models, task = own.half_models, own.recipe.task
    assert models is not None
    scores = np.where(models.trained_on[::2], models.scores[1::2], models.scores[::2])
    loss, aim = ("logistic", 1.0) if task == "classification" else ("square", 0.0)
    return HeldOutScores(scores, np.full(scores.shape[1], aim), loss, task, halves(own))


def terms(own: Training, wanted: Wanted) -> Terms:
    """The loss on the half that a model has not seen, and what could be tried."""
    classes = own.recipe.task == "classification"
    loss = LOSSES["logistic" if classes else "square"]
    answered, unit = "log-odds", ""
    if not classes:
        answered, unit = "prediction", target_unit(own.dataset.steps) or ", in units of the target,"
    notes = [] if wanted.tries else [_proposal(own.recipe.name, own.recipe.options)]
    if classes and len(np.unique(np.asarray(own.y))) > 2:
        notes.append(
            "Accuracy counts a record as right where its class has more than half of the chance."
        )
    return Terms(
        loss=loss,
        priced=f"the {loss} on the half that a model has not seen",
        variance=None if classes else float(np.var(np.asarray(own.y, dtype=np.float64))),
        # Of more classes the accuracy counts too few as right.
        commonest=commonest_share(own.y) if classes and len(np.unique(own.y)) == 2 else None,
        unconfirmed=f"with {own.how.models} models the intervals of some {{unit}}s reach above it",
        noise=f"Add fresh normal noise of standard deviation {{sd:.2g}}{unit} to every {answered}",
        wide=f"With {own.how.models} models the worst record may still have up to {{high}}; more "
        "models would tell (audit again with --models).",
        notes=tuple(notes),
        assumptions=(
            ASKED_ONCE,
            AssumptionEntry(
                statement="a setting changes every model of half the records as it changes yours",
                holds=None,
                evidence=f"each setting was trained {own.how.models} times, on the same halves and "
                "with the same seeds",
            ),
        ),
    )


def _proposal(name: str, present: Mapping[str, Any]) -> str:
    numbers = {
        option: value
        for option, value in present.items()
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    }
    if not numbers:
        return (
            "No other way to train was tried.  Give the function options, train(X, y, seed, "
            "epochs=20), and name values: --try epochs=5,10."
        )
    there = ", ".join(f"{key}={value}" for key, value in list(numbers.items())[:MOST_PROPOSED])
    return (
        f"No other way to train was tried.  Name options of {name} with values, such as "
        f"--try {next(iter(numbers))}=...; it has {there}."
    )
