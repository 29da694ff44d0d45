"""What others do with the same models: LiRA in its forms, RMIA, and the loss of an ensemble.

BASE (Lassila et al. 2025) was shown to be RMIA in other words.

For comparison only; `few_models` uses none of them.  Each gives one number for every record that
ranks it, and LiRA gives laws too.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, Provenance

Variance = Literal["own", "bayes", "shared"]

# What the prior of BaVarIA counts for, in models.
PRIOR_MODELS = 4.0


def lira(
    log_odds: FloatArray,
    trained_on: NDArray[np.bool_],
    *,
    variance: Variance = "own",
    offline: bool = False,
) -> LawPair:
    """LiRA's two normals of every record (Carlini et al. 2022).

    Parameters
    ----------
    log_odds, trained_on : arrays, models x records
    variance : {"own", "bayes", "shared"}
        Each record's own variances; those with a conjugate prior around the shared ones, which
        counts for four models (as BaVarIA does, Brännvall 2026); or one for all records with it
        and one for all without.
    offline : bool
        Only models without the record are used; the law with it is then the law without it, one
        standard deviation higher for every record, which leaves the level to tell records apart.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import lira
    >>> rng = np.random.default_rng(0)
    >>> mask = np.arange(8)[:, None] % 2 == np.arange(30) % 2
    >>> lira(rng.normal(size=(8, 30)), mask).batch_shape
    (30,)
    """
    scores = np.asarray(log_odds, dtype=np.float64)
    laws: list[Normal] = []
    for mask in (trained_on, ~trained_on):
        count = mask.sum(axis=0)
        if (count < 1).any() or (variance != "shared" and (count < 2).any()):
            raise InputError("LiRA needs two models with each record and two without it.")
        mean = np.where(mask, scores, 0.0).sum(axis=0) / count
        squares = np.where(mask, (scores - mean) ** 2, 0.0).sum(axis=0)
        df = np.maximum(count - 1, 1)
        shared = squares.sum() / max(float((count - 1).sum()), 1.0)
        each = {
            "own": squares / df,
            "bayes": (squares + PRIOR_MODELS * shared) / (count - 1 + PRIOR_MODELS),
            "shared": np.full(len(count), shared),
        }[variance]
        laws.append(Normal(mean, np.sqrt(each + 1e-4 * shared + 1e-18)))
    member, nonmember = laws
    if offline:
        member = Normal(nonmember.mean + nonmember.sigma, nonmember.sigma)
    return LawPair(
        member,
        nonmember,
        Provenance(question="leave_one_out", observes="scores", method="empirical", source="LiRA"),
    )


def rmia(log_odds: FloatArray, trained_on: NDArray[np.bool_]) -> FloatArray:
    """RMIA's ratio for every record, averaged over the models with it (Zarifzadeh et al. 2024).

    The record's probability under a model with it, over its mean probability, ranked among the same
    ratios of records that the model was not trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import rmia
    >>> rng = np.random.default_rng(0)
    >>> mask = np.arange(4)[:, None] % 2 == np.arange(30) % 2
    >>> rmia(rng.normal(size=(4, 30)), mask).shape
    (30,)
    """
    scores = np.asarray(log_odds, dtype=np.float64)
    log_p = -np.logaddexp(0.0, -scores)
    p = np.exp(log_p)
    mean_in = np.where(trained_on, p, 0.0).sum(axis=0) / trained_on.sum(axis=0)
    mean_out = np.where(trained_on, 0.0, p).sum(axis=0) / (~trained_on).sum(axis=0)
    ratio = log_p - np.log(0.5 * (mean_in + mean_out))
    total = np.zeros(scores.shape[1])
    for row, mask in zip(ratio, trained_on, strict=True):
        others = np.sort(row[~mask])
        total += np.where(mask, np.searchsorted(others, row) / len(others), 0.0)
    return np.asarray(total / trained_on.sum(axis=0))


def ensemble_loss(log_odds: FloatArray, trained_on: NDArray[np.bool_]) -> FloatArray:
    """Minus the mean log-odds of the models without the record: the harder, the more exposed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import ensemble_loss
    >>> scores = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ensemble_loss(scores, np.array([[True, False], [False, True]])).tolist()
    [-3.0, -2.0]
    """
    out = ~trained_on
    return np.asarray(-np.where(out, log_odds, 0.0).sum(axis=0) / out.sum(axis=0))
