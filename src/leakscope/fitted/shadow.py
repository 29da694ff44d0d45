"""Shadow models of the user's own estimator, for checking the laws that need none.

Each model is fitted on its own random part of the records.  The scores are the ones that the laws
are about, so that the two can be laid side by side (`shadow_check`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.fitted.known_others import own_log_odds
from leakscope.fitted.model import require_fraction
from leakscope.fitted.refitting import fit_again, fresh_copy, inner_model
from leakscope.fitted.sklearn_parts import class_names


@dataclass(frozen=True, eq=False)
class ShadowScores:
    """What shadow models showed.

    Attributes
    ----------
    scores
        Models x records: each model's score at each record.
    trained_on
        Models x records: whether the model was fitted on the record.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ShadowScores
    >>> inside = np.array([[True, False], [False, True], [True, False], [False, True]])
    >>> found = ShadowScores(np.array([[2.0, 0.0], [0.0, 3.0], [4.0, 1.0], [1.0, 5.0]]), inside)
    >>> found.moments()[0].tolist()  # mean in
    [3.0, 4.0]
    """

    scores: FloatArray
    trained_on: npt.NDArray[np.bool_]

    @property
    def models(self) -> int:
        """How many models there are."""
        return len(self.scores)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean in, sd in, mean out and sd out of every record."""
        found: list[FloatArray] = []
        for chosen in (self.trained_on, ~self.trained_on):
            count = np.maximum(chosen.sum(axis=0), 1)
            mean = np.where(chosen, self.scores, 0.0).sum(axis=0) / count
            square = np.where(chosen, (self.scores - mean) ** 2, 0.0).sum(axis=0)
            found += [mean, np.sqrt(square / np.maximum(count - 1, 1))]
        return found[0], found[1], found[2], found[3]


def shadow_models(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    models: int = 256,
    fraction: float = 0.5,
    sample_weight: npt.ArrayLike | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> ShadowScores:
    """Fit the estimator again on random parts of the records and score all records each time.

    A pipeline's transformers stay as fitted, as the laws assume; so does what a search chose.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = load_diabetes(return_X_y=True)
    >>> fitted.shadow_models(Ridge().fit(X, y), X, y, models=4).scores.shape
    (4, 442)
    """
    fraction = require_fraction(fraction, whole=False)
    if models < 2:
        raise InputError(f"At least two shadow models are needed, but {models} were asked for.")
    inner, design = inner_model(estimator, X)
    labels = np.ravel(np.asarray(y))
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    fresh = fresh_copy(inner)
    # A model of fewer classes would have other scores.
    needed = len(getattr(inner, "classes_", np.unique(labels)[:2]))
    key = as_key(random_state)
    scores = np.empty((models, len(labels)))
    trained_on = np.empty((models, len(labels)), dtype=np.bool_)
    for number in range(models):
        chosen = key.child(number).generator().random(len(labels)) < fraction
        if len(np.unique(labels[chosen])) < needed:
            raise InputError(
                "A shadow training set lacks a class; use more records of the rarest one, or a "
                "larger fraction."
            )
        part = None if weights is None else weights[chosen]
        fit_again(fresh, inner, design[chosen], labels[chosen], part)
        scores[number] = score_records(fresh, design, labels)
        trained_on[number] = chosen
    return ShadowScores(scores, trained_on)


def score_records(estimator: Any, X: Any, y: npt.NDArray[Any]) -> FloatArray:
    """The score that the laws are about: own label's log-odds or margin, or the prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = np.arange(4.0)[:, None], np.arange(4.0)
    >>> fitted.score_records(Ridge(alpha=1e-9).fit(X, y), X, y).round(3).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    if hasattr(estimator, "decision_function"):
        codes = np.searchsorted(estimator.classes_, y)
        score = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if score.ndim == 1:
            return np.asarray(np.where(codes == 1, score, -score))
        if "LogisticRegression" in class_names(estimator):
            return np.asarray(own_log_odds(score, codes))
        return np.asarray(score[np.arange(len(codes)), codes])
    prediction = np.asarray(estimator.predict(X), dtype=np.float64).reshape(len(y))
    if "PoissonRegressor" in class_names(estimator):
        return np.log(prediction)
    return prediction
