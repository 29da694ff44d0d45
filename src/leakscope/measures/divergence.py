"""Kullback-Leibler and Rényi divergences between the two laws of a pair."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import LawPair
from leakscope.measures import empirical_estimates
from leakscope.measures.dispatch import Direction, is_empirical, oriented, over_pairs, samples
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS


def kl(
    pair: LawPair,
    direction: Direction = "nonmember_to_member",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray | Estimate:
    """Kullback-Leibler divergence in nats; by default KL(nonmember || member).

    The default is the direction of the paper **lood** (Def. C.3); ``"member_to_nonmember"``
    gives KL(member || nonmember).

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import kl
    >>> pair = LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7))
    >>> round(float(kl(pair)), 6), round(float(kl(pair, "member_to_nonmember")), 6)
    (0.318147, 0.806853)
    """
    turned = oriented(pair, direction)
    if is_empirical(pair):
        return empirical_estimates.kl(*samples(pair), direction, confidence, as_key(random_state))
    return over_pairs(turned, lambda ratio: ratio.renyi(1.0))


def jeffreys(pair: LawPair) -> FloatArray:
    """Jeffreys divergence: the sum of the Kullback-Leibler divergences of both directions.

    It keeps its digits where each of the two is a small difference of large terms.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import jeffreys
    >>> round(float(jeffreys(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))), 6)
    1.125
    """
    if is_empirical(pair):
        raise InputError("jeffreys: for scores add the estimates of kl in both directions.")
    return over_pairs(pair, lambda ratio: ratio.jeffreys())


def renyi(pair: LawPair, order: float, direction: Direction = "nonmember_to_member") -> FloatArray:
    """Rényi divergence of any order > 0, by default D_order(nonmember || member).

    Order 1 is the Kullback-Leibler divergence and order infinity the largest log likelihood
    ratio.  Where the integral diverges the result is infinite.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import renyi
    >>> float(renyi(LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0)), order=2.0))
    1.0
    """
    if not order > 0.0:
        raise InputError(f"renyi: the order must be above zero, but it is {order!r}.")
    if is_empirical(pair):
        raise InputError("renyi: no honest estimate exists for scores; use kl or advantage.")
    return over_pairs(oriented(pair, direction), lambda ratio: ratio.renyi(float(order)))
