"""From a model's answers to the scores that an attacker looks at.

A score is the log-odds of a record's own label, or for a quantity the residual, prediction minus
target.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.single_fit.losses import label_log_odds

# What a model is asked for, a classifier by preference first.
ANSWERS = ("predict_proba", "decision_function", "predict")
# Answers are squared and summed.
LARGEST = 1e150
# A probability of zero counts as half of the smallest that the model gave, but within these: the
# votes of a forest are a share of its trees, and those of a single tree are all or nothing.
LEAST_CHANCE, MOST_CHANCE = 1e-40, 0.25
# Rows of probabilities sum to one up to this; float32 does.
ROUNDING = 1e-3
# So many records are asked about again, in other order.  Answers may differ by this share of their
# spread (root mean squares): bfloat16 rounds to 0.002, dropout of 1% that is left on makes 0.02, of
# 10% 0.07 to 0.11, batch normalisation by the batch 0.03 (perceptrons on digits).
ASKED_AGAIN, REPEATED = 200, 0.01


def alike(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether answers about the same records are the same, but for the rounding of a network."""
    if first.shape != second.shape or first.dtype.kind not in "fiub":
        return bool(np.array_equal(first, second))
    if not np.isfinite(first).all():
        return bool(np.array_equal(first, second, equal_nan=True))
    first, second = (each.astype(np.float64) for each in (first, second))
    return bool(np.mean((first - second) ** 2) <= REPEATED**2 * np.mean(first.var(axis=0)))


def numbers(answers: Any, count: int, name: str) -> FloatArray:
    """Finite numbers, (count,) or (count, columns), or a sentence that says what came instead."""
    table = np.asarray(answers)
    if table.dtype.kind not in "fiub":
        raise InputError(f"{name} answered with {table.dtype}, and not with numbers.")
    table = table.astype(np.float64)
    if table.ndim not in (1, 2) or len(table) != count:
        raise InputError(
            f"the model of {name} answered {count} records with an array of shape {table.shape}: "
            "one row per record is needed."
        )
    bad = ~(np.abs(table) <= LARGEST).reshape(count, -1).all(axis=1)
    if bad.any():
        raise InputError(
            f"the model of {name} gave an answer that is not finite, or beyond {LARGEST:g}, for "
            f"record {int(np.argmax(bad))} (counting from 0)."
        )
    return table


def residuals(answers: FloatArray, y: NDArray[Any], name: str) -> FloatArray:
    """(N,) predictions less targets."""
    if answers.size != len(y):
        raise InputError(
            f"the model of {name} answered {len(y)} records with an array of shape "
            f"{answers.shape}: one number per record is needed."
        )
    return np.asarray(answers.reshape(len(y)) - y)


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


def own_label_margin(
    answers: FloatArray, classes: NDArray[Any], columns: Any, y: NDArray[Any], name: str
) -> FloatArray:
    """Decision values as scores: that of a record's own class against the others.

    Taken as log-odds before a softmax, without the softmax, so that nothing saturates.
    """
    codes = np.searchsorted(classes, y)
    margins = answers.reshape(len(y), -1)
    if margins.shape[1] == 1 and len(classes) == len(columns) == 2:
        return np.asarray(np.where(codes == 1, 1.0, -1.0) * margins[:, 0])
    if margins.shape[1] != len(classes) or len(columns) != len(classes):
        raise InputError(
            f"the model of {name} gave {margins.shape[1]} decision values per record, and there "
            f"are {len(classes)} classes: one for each is needed."
        )
    return label_log_odds(margins, codes)


def chances(answers: FloatArray, classes: NDArray[Any], columns: Any, name: str) -> FloatArray:
    """Probabilities, records x classes, whatever of the allowed forms the model answers in."""
    count = len(classes)
    if answers.ndim == 1 or answers.shape[1] == 1:
        chance = answers.reshape(len(answers))
        if count != 2 or chance.min() < 0.0 or chance.max() > 1.0:
            raise InputError(
                f"the model of {name} gave one number per record: with two classes it must be the "
                "probability of the second, and with more one column for each class is needed."
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
