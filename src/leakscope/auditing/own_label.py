"""From what a classifier answers to the log-odds of each record's own label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

# A probability of zero counts as half of the smallest that the model gave, but within these: the
# votes of a forest are a share of its trees, and those of a single tree are all or nothing.
LEAST_CHANCE, MOST_CHANCE = 1e-40, 0.25
# Rows of probabilities sum to one up to this; float32 does.
ROUNDING = 1e-3


def own_label_log_odds(table: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    """Log p - log(1 - p) of each record's own class; the others are added up, not taken from one.

    One minus p has no digits left where p is nearly one.
    """
    rest = table.copy()
    rest[np.arange(len(codes)), codes] = 0.0
    own, others = table[np.arange(len(codes)), codes], rest.sum(axis=1)
    positive = np.concatenate([own[own > 0.0], others[others > 0.0]])
    least = np.clip(0.5 * positive.min(initial=1.0), LEAST_CHANCE, MOST_CHANCE)
    return np.asarray(np.log(np.maximum(own, least)) - np.log(np.maximum(others, least)))


def chances(name: str, answers: FloatArray, classes: NDArray[Any], columns: Any) -> FloatArray:
    """Probabilities, records x classes, whatever of the allowed forms the model answers in."""
    count = len(classes)
    if answers.ndim == 1 or answers.shape[1] == 1:
        chance = answers.reshape(len(answers))
        if count != 2:
            raise InputError(
                f"the model of {name} gave one number per record, and there are {count} classes: "
                "one column of probabilities for each class is needed."
            )
        if chance.min() < 0.0 or chance.max() > 1.0:
            raise InputError(
                f"the model of {name} gave one number per record, and not all lie between 0 and 1: "
                f"it must be the probability of the class {classes[1]}."
            )
        return np.stack([1.0 - chance, chance], axis=1)
    if columns is not None:
        # A half may lack a class; its probability is then zero.
        place = {value: at for at, value in enumerate(classes.tolist())}
        known = [place.get(value, -1) for value in np.asarray(columns).tolist()]
        if -1 in known or len(known) != answers.shape[1]:
            raise InputError(f"the model of {name} has other classes than y.")
        table = np.zeros((len(answers), count))
        table[:, known] = answers
        answers = table
    if answers.shape[1] != count:
        raise InputError(
            f"the model of {name} gave {answers.shape[1]} scores per record, and there are {count} "
            "classes: one column for each is needed, in the order of the sorted classes."
        )
    if answers.min() >= 0.0 and answers.max() <= 1.0 + ROUNDING:
        if (np.abs(answers.sum(axis=1) - 1.0) > ROUNDING).any():
            raise InputError(
                f"the model of {name} gave numbers between 0 and 1 that do not sum to 1: give "
                "probabilities, or scores before the softmax."
            )
        return answers
    # Scores before the softmax; the largest is taken off first, so that nothing overflows.
    shifted = np.exp(answers - answers.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
