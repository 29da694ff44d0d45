"""Leakage against error of several ways to train a linear model, on the same designs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.linear.defences import Defence, defended_moments
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.law_pair import pair_of_moments, population_provenance
from leakscope.linear.moments import Moments
from leakscope.measures.drawn_designs import ScoredAdvantage, scored_advantage, scored_tpr
from leakscope.results.plan import LinearDefence
from leakscope.settings.plan import LinearAttacker

# A prediction whose variance given the label is less, in label variances, is the label.
_EXACT = 1e-9

_LABELS = 20

# Whole matrices that the defences are compared on.
DRAWS = 60

# Multiplications of linear systems, on one core.
_A_SECOND = 1.5e10


def usual_defences(design: GaussianDesign) -> tuple[Defence, ...]:
    """The design's own model, and each defence over a range of its setting.

    Bags keep clear of as many records as features, where least squares has no second moment.
    """
    shares = [
        share
        for share in (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
        if design.ridge > 0.0 or abs(max(1, round(share * design.n)) - design.p) > 3
    ]
    return (
        Defence("none"),
        *(Defence("ridge", lam) for lam in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)),
        *(Defence("early stopping", steps) for steps in (1, 2, 3, 5, 10, 20, 30)),
        *(Defence("noisy descent", noise) for noise in (0.03, 0.1, 0.2, 0.4)),
        *(Defence("bagging", share) for share in shares),
        *(Defence("output noise", noise) for noise in (0.25, 0.5, 1.0, 2.0)),
    )


def compared_defences(
    design: GaussianDesign,
    defences: Sequence[Defence] | None = None,
    *,
    fpr: Sequence[float] = (0.01,),
    draws: int | None = None,
    key: Key,
) -> tuple[LinearDefence, ...]:
    """Error, both attackers' advantage and TPR of each defence, averaged over records.

    Examples
    --------
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.linear import GaussianDesign
    >>> from leakscope.linear.defences import Defence
    >>> from leakscope.planning.linear_defences import compared_defences
    >>> some = [Defence("none"), Defence("early stopping", 5)]
    >>> found = compared_defences(GaussianDesign(20, 40, 60, 1.0), some, draws=40, key=Key(0))
    >>> [(one.defence, one.advantage_label_known < 1.0) for one in found]
    [('none', False), ('early stopping', True)]
    """
    chosen = usual_defences(design) if defences is None else tuple(defences)
    norms = RecordNorms.nodes(design, 3, 1)
    count = DRAWS if draws is None else draws
    sides = defended_moments(design, chosen, norms, draws=count, key=key)
    return tuple(_compared(one, *two, norms, fpr) for one, two in zip(chosen, sides, strict=True))


def defence_seconds(design: GaussianDesign) -> float:
    """About how long the usual defences take on one core; bags' systems are most of it."""
    n, p = float(design.n), float(design.p)
    solved = 0.0
    for one in usual_defences(design):
        if one.name == "bagging":
            size = max(1.0, round(one.setting * n))
            solved += one.bags * min(size, p) ** 2 * (2.0 * min(size, p) / 3.0 + max(size - p, 0.0))
    whole = n * p * min(n, p) + 10.0 * min(n, p) ** 3
    # The design, and the same with each of three records in it.
    return 5.0 + DRAWS * 4.0 * (solved + whole + n * design.dim) / _A_SECOND


def _compared(
    defence: Defence,
    member: Moments,
    nonmember: Moments,
    norms: RecordNorms,
    fpr: Sequence[float],
) -> LinearDefence:
    error = norms.weight @ (nonmember.label - 2.0 * nonmember.covariance + nonmember.prediction)
    spread = float(error.std(ddof=1)) / math.sqrt(error.size)
    hidden, hidden_tpr = _attacked(member, nonmember, norms.weight, "label_hidden", fpr)
    slope, left = member.given_label()
    if np.all(left <= _EXACT * member.label) and np.all(slope > 0.0):
        known, known_tpr = ScoredAdvantage(1.0, 0.0), dict.fromkeys(hidden_tpr, 1.0)
    else:
        known, known_tpr = _attacked(member, nonmember, norms.weight, "label_known", fpr)
    return LinearDefence(
        defence=defence.name,
        setting=float(defence.setting),
        generalization_error=float(error.mean()),
        generalization_error_stderr=spread,
        advantage=hidden.value,
        advantage_stderr=hidden.stderr,
        advantage_label_known=known.value,
        advantage_label_known_stderr=known.stderr,
        tpr_at_fpr={f"{level:g}": value for level, value in hidden_tpr.items()},
        tpr_at_fpr_label_known={f"{level:g}": value for level, value in known_tpr.items()},
    )


def _attacked(
    member: Moments,
    nonmember: Moments,
    weight: FloatArray,
    attacker: LinearAttacker,
    fpr: Sequence[float],
) -> tuple[ScoredAdvantage, dict[float, float]]:
    """One attacker's advantage and TPR on mixtures over the designs, which both sides share."""
    if attacker == "label_known":
        member, nonmember = (_spread(side) for side in (member, nonmember))
    told = population_provenance(
        attacker, None, method="simulated", source="linear Exp. 1, other estimators", assumptions=()
    )
    # evenly likely labels: a test at a low FPR says nothing at some of them, and all at others
    labels = special.ndtri(0.5 + 0.5 * (np.arange(_LABELS) + 0.5) / _LABELS)
    pair = pair_of_moments(member, nonmember, attacker=attacker, labels=labels, provenance=told)
    if attacker == "label_known":
        weight = np.repeat(weight, _LABELS) / _LABELS
    designs = member.prediction.shape[1]
    tpr = scored_tpr(pair, weight, fpr=fpr, designs=designs)
    return scored_advantage(pair, weight, designs=designs), tpr


def _spread(side: Moments) -> Moments:
    """With a little variance given the label in designs that all but repeat it."""
    slope, _ = side.given_label()
    least = slope * side.covariance + 0.01 * _EXACT * side.label
    return side._replace(prediction=np.maximum(side.prediction, least))
