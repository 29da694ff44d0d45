"""Advantage: the best test's TPR minus its FPR, which is the total variation distance."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.laws import LawPair
from leakscope.measures import empirical_estimates
from leakscope.measures.dispatch import is_empirical, over_pairs, samples
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS


def advantage(
    pair: LawPair,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray | Estimate:
    """The membership advantage: max over tests of TPR - FPR, between 0 and 1.

    It is the total variation distance of the two laws (Prop. 3.1 of the paper **linear**).
    Relative accuracy also for nearly equal laws.  For empirical laws it is the advantage of the
    best threshold on the score, estimated with an interval.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import advantage
    >>> float(advantage(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))).__round__(6)
    0.322675
    """
    if is_empirical(pair):
        return empirical_estimates.advantage(*samples(pair), confidence, as_key(random_state))
    return over_pairs(pair, lambda ratio: ratio.advantage())


def overlap(pair: LawPair) -> FloatArray:
    """One minus the advantage, with its own digits when the advantage is nearly one.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import overlap
    >>> f"{float(overlap(LawPair(Normal(20.0, 1.0), Normal(0.0, 1.0)))):.4e}"
    '1.5240e-23'
    """
    if is_empirical(pair):
        from leakscope.errors import InputError

        raise InputError("overlap: samples cannot tell an overlap near zero; use advantage.")
    return over_pairs(pair, lambda ratio: np.exp(ratio.log_overlap()))
