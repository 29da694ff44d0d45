"""Membership attackers on scores: what they learn from models' answers.

**One record**, from the answers of models with it (member) and without it (nonmember):
`likelihood_ratio` gives every model a score, higher for member.

**Every record**, from a table of models and records: `lira`, `rmia` and `ensemble_loss` give one
number for every record that ranks it, and LiRA gives laws too.  BASE (Lassila et al. 2025) was
shown to be RMIA in other words.

Scores go through :mod:`leakscope.measures` like any others.  What an attacker has to learn from
models, it learns from others than it scores: they are cut in two halves, and each half is scored by
what was learnt on the other.  Scored by what they taught, models of a record that leaks nothing
would seem to leak.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical, Normal
from leakscope.laws.pair import LawPair, Provenance

# A variance that was estimated from few models may be far too small by chance.
LEAST_MODELS = 4

# What the prior of BaVarIA counts for, in models.
PRIOR_MODELS = 4.0

Variance = Literal["own", "bayes", "shared"]


def likelihood_ratio(member: ArrayLike, nonmember: ArrayLike) -> LawPair:
    """The online likelihood-ratio attack (LiRA): normal laws fitted to the record's answers.

    Parameters
    ----------
    member, nonmember
        (models,) or (models, outputs): answers at the record, of models with it and without it.

    References
    ----------
    N. Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022; here
    with the models' answers in the place of their logits.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import measures
    >>> from leakscope.attacking import likelihood_ratio
    >>> rng = np.random.default_rng(0)
    >>> pair = likelihood_ratio(rng.normal(2.0, 1.0, 40), rng.normal(0.0, 1.0, 40))
    >>> found = measures.auc(pair)
    >>> bool(found.low > 0.7)
    True
    """
    inside, outside = _models(member, "member"), _models(nonmember, "nonmember")
    scored = [np.empty(len(inside)), np.empty(len(outside))]
    for half in (0, 1):
        learnt_in, learnt_out = inside[half::2], outside[half::2]
        for scores, answers in zip(scored, (inside, outside), strict=True):
            asked = answers[1 - half :: 2]
            scores[1 - half :: 2] = _log_normal(asked, learnt_in) - _log_normal(asked, learnt_out)
    return _pair(scored[0], scored[1], "likelihood ratio of normal laws (online LiRA)")


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
    """
    scores = np.asarray(log_odds, dtype=np.float64)
    laws: list[Normal] = []
    for mask in (trained_on, ~trained_on):
        count = mask.sum(axis=0)
        if (count < 1).any() or (variance != "shared" and (count < 2).any()):
            raise InputError("LiRA needs two models with each record and two without it.")
        mean = np.mean(scores, axis=0, where=mask)
        squares = np.sum((scores - mean) ** 2, axis=0, where=mask)
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
    """
    scores = np.asarray(log_odds, dtype=np.float64)
    log_p = -np.logaddexp(0.0, -scores)
    p = np.exp(log_p)
    means = [np.mean(p, axis=0, where=mask) for mask in (trained_on, ~trained_on)]
    ratio = log_p - np.log(0.5 * (means[0] + means[1]))
    total = np.zeros(scores.shape[1])
    for row, mask in zip(ratio, trained_on, strict=True):
        others = np.sort(row[~mask])
        total += np.where(mask, np.searchsorted(others, row) / len(others), 0.0)
    return np.asarray(total / trained_on.sum(axis=0))


def ensemble_loss(log_odds: FloatArray, trained_on: NDArray[np.bool_]) -> FloatArray:
    """Minus the mean log-odds of the models without the record: the harder, the more exposed."""
    return np.asarray(-np.mean(log_odds, axis=0, where=~trained_on))


def _models(answers: ArrayLike, name: str) -> FloatArray:
    found = np.asarray(answers, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) < LEAST_MODELS:
        raise InputError(
            f"an attack needs the answers of at least {LEAST_MODELS} {name} models, one row a "
            f"model, but the shape is {found.shape}."
        )
    return found


def _log_normal(asked: FloatArray, learnt: FloatArray) -> FloatArray:
    """Log density of the predictive law of a normal sample, summed over outputs."""
    count = len(learnt)
    spread = np.std(learnt, axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / count)
    spread = np.maximum(spread, 1e-12 * (1.0 + np.abs(learnt).max(axis=0)))
    # Student's law is what a normal sample of this size predicts; the plug-in normal trusts a
    # small variance too much.
    density = stats.t.logpdf(asked, count - 1, loc=learnt.mean(axis=0), scale=spread)
    return np.asarray(np.sum(density, axis=1))


def _pair(member: FloatArray, nonmember: FloatArray, source: str) -> LawPair:
    return LawPair(
        Empirical(member),
        Empirical(nonmember),
        Provenance(
            question="leave_one_out",
            adjacency="removed",
            observes="scores",
            random=("training",),
            attacker_knows_label=True,
            method="empirical",
            source=f"retrained models; {source}",
        ),
    )
