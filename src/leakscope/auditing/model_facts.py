"""How large a fitted model is beside its data, and how far it does better on them than on others.

Both come from what the audit has: the problem that was fitted, and the laws of every score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.laws import Normal
from leakscope.results import FitEntry

# What an attacker sees that is above zero where the model prefers the record's own label.
SCORES_OF_LABEL = ("log_odds", "scores")


def fit_entry(model: fitted.FittedModel, laws: fitted.FittedLaws) -> FitEntry:
    """The number of parameters, and the score of a record in the training set and out of it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from leakscope import fitted
    >>> from leakscope.auditing.model_facts import fit_entry
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = fitted.from_sklearn(LogisticRegression(C=0.1).fit(X, y), X, y)
    >>> found = fit_entry(model, fitted.laws_of(model))
    >>> found.parameters, found.score, 0.0 < found.gap < 0.05
    (31, 'accuracy', True)
    """
    sides = ((laws.member_mean, laws.member_sd), (laws.nonmember_mean, laws.nonmember_sd))
    score = "R²"
    values: list[float] = []
    if laws.observes in SCORES_OF_LABEL:
        score = "accuracy"
        values = [float(special.ndtr(mean / sd).mean()) for mean, sd in sides]
    elif laws.observes == "prediction" and model.problems[0].loss == "square":
        y = model.problems[0].y
        spread = float(np.sum((y - y.mean()) ** 2))
        if spread > 0.0:
            errors = [float(np.sum((y - mean) ** 2 + sd**2)) for mean, sd in sides]
            values = [1.0 - error / spread for error in errors]
    training, left_out = values or (None, None)
    return FitEntry(
        parameters=_parameters(model), score=score, training=training, left_out=left_out
    )


def measured_fit(
    scores: FloatArray, trained_on: NDArray[np.bool_], y: NDArray[Any], task: str
) -> FitEntry:
    """The same of models that were trained: scores where a record was used, and where it was not.

    ``scores`` (models x records) are log-odds of the own label, or residuals of a quantity.
    """
    if task == "classification":
        good = (scores > 0.0).astype(np.float64)
        values = [float(good[trained_on].mean()), float(good[~trained_on].mean())]
        score = "accuracy"
    else:
        spread = float(np.var(np.asarray(y, dtype=np.float64)))
        squares = scores**2
        errors = [float(squares[trained_on].mean()), float(squares[~trained_on].mean())]
        values = [1.0 - error / spread for error in errors] if spread > 0.0 else []
        score = "R²"
    training, left_out = values or (None, None)
    return FitEntry(parameters=None, score=score, training=training, left_out=left_out)


def one_threshold_of(laws: fitted.FittedLaws) -> dict[str, float]:
    """What one threshold on the score of the own label achieves; empty for other answers."""
    pair = laws.law_pair()
    normal = isinstance(pair.member, Normal) and isinstance(pair.nonmember, Normal)
    if laws.observes not in SCORES_OF_LABEL or not normal:
        return {}
    return measures.one_threshold(pair)


def _parameters(model: fitted.FittedModel) -> int | None:
    total = 0
    for problem in model.problems:
        if problem.X is None:
            return None
        total += problem.X.shape[1] * (problem.classes if problem.loss == "softmax" else 1)
    return total
