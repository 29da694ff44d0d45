"""What a training can be asked to do otherwise: fewer epochs, weight decay, shallower trees."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from leakscope.auditing.own_training import OwnTraining, training_of
from leakscope.errors import InputError

# Options that a sentence names.
MOST_SHOWN = 8


def options_of(training: OwnTraining) -> dict[str, Any]:
    """What can be changed of a training, with its present values.

    Of an estimator its parameters, of a function its keyword arguments that have a default.

    Examples
    --------
    >>> from leakscope.auditing import OwnTraining, options_of
    >>> def train(X, y, seed, epochs=20, *, weight_decay=0.0): ...
    >>> options_of(OwnTraining(train, "train", "classification"))
    {'epochs': 20, 'weight_decay': 0.0}
    """
    if training.is_estimator:
        return dict(training.subject.get_params())
    try:
        parameters = list(inspect.signature(training.subject).parameters.values())
    except (TypeError, ValueError):
        return {}
    return {one.name: one.default for one in parameters[3:] if one.default is not one.empty}


def with_options(training: OwnTraining, options: Mapping[str, Any]) -> OwnTraining:
    """The same training with some of its options changed.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope.auditing import OwnTraining, with_options
    >>> tree = OwnTraining(DecisionTreeClassifier(), "a tree", "classification")
    >>> with_options(tree, {"max_depth": 2}).name
    'DecisionTreeClassifier(max_depth=2)'
    """
    known = options_of(training)
    for name in options:
        if name not in known:
            there = ", ".join(f"{key}={value!r}" for key, value in list(known.items())[:MOST_SHOWN])
            more = " and more" if len(known) > MOST_SHOWN else ""
            has = f"it has {there}{more}" if known else "it has none"
            raise InputError(
                f"{training.name} has no option {name!r}: {has}. An option of a function is a "
                "keyword argument with a default, train(X, y, seed, epochs=20)."
            )
    if not options:
        return training
    if training.is_estimator:
        from sklearn.base import clone

        changed = clone(training.subject).set_params(**options)
        return training_of(changed, training.task, training.time_limit)
    told = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return training_of(
        partial(training.subject, **options),
        training.task,
        training.time_limit,
        name=f"{training.name} with {told}",
    )
