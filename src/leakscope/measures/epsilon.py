"""Epsilon and delta of one pair of laws: the hockey-stick divergence and its inverse.

These are numbers about the pair at hand, not a differential-privacy guarantee: that would have to
hold for every pair of neighbouring datasets.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import LawPair
from leakscope.measures import empirical_estimates
from leakscope.measures.dispatch import (
    AnyDirection,
    Direction,
    as_levels,
    is_empirical,
    over_pairs,
    samples,
)
from leakscope.measures.estimate import Estimate
from leakscope.measures.ratio import Ratio
from leakscope.settings import MEASURE_DEFAULTS

_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "member_to_nonmember": ("member_to_nonmember",),
    "nonmember_to_member": ("nonmember_to_member",),
    "both": ("member_to_nonmember", "nonmember_to_member"),
}


def epsilon_at_delta(
    pair: LawPair,
    delta: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray | Estimate:
    """The least epsilon >= 0 with P(S) <= exp(epsilon) Q(S) + delta for every event S.

    ``"member_to_nonmember"`` takes P the member law and Q the nonmember law,
    ``"nonmember_to_member"`` the other way round, and ``"both"``, the default, the larger of the
    two.  This is the pair's epsilon and no differential-privacy guarantee.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import epsilon_at_delta
    >>> pair = LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7))
    >>> round(float(epsilon_at_delta(pair, 1e-5, "member_to_nonmember")), 5)
    27.7166
    >>> round(float(epsilon_at_delta(pair, 1e-5, "nonmember_to_member")), 5)
    0.69264
    """
    directions = _directions(direction)
    levels, shape = as_levels(delta, "delta", 0.0, 1.0, "a probability between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.epsilon_at_delta(
            *samples(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return found.reshape((*pair.batch_shape, *shape))
    with np.errstate(divide="ignore"):
        log_delta = np.log(levels)[None, :]

    def measure(ratio: Ratio) -> FloatArray:
        # without any delta the largest likelihood ratio counts
        usual = ratio.epsilon_at(np.where(np.isneginf(log_delta), -1.0, log_delta))
        if np.isneginf(log_delta).any():
            pure = np.maximum(ratio.renyi(np.inf), 0.0)[:, None]
            usual = np.where(np.isneginf(log_delta), pure, usual)
        return usual

    return _larger(pair, measure, directions, levels.size, shape)


def delta_at_epsilon(
    pair: LawPair,
    epsilon: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray | Estimate:
    """The hockey-stick divergence: the largest P(S) - exp(epsilon) Q(S) over events S.

    Directions as in `epsilon_at_delta`; at epsilon = 0 it is the advantage.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import delta_at_epsilon
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> delta_at_epsilon(pair, [0.0, 1.0]).round(6)
    array([0.382925, 0.126937])
    """
    directions = _directions(direction)
    levels, shape = as_levels(epsilon, "epsilon", -1e300, 1e300, "a finite number")
    if is_empirical(pair):
        found = empirical_estimates.delta_at_epsilon(
            *samples(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return found.reshape((*pair.batch_shape, *shape))

    def measure(ratio: Ratio) -> FloatArray:
        whole = np.broadcast_to(levels, (ratio.size, levels.size)).copy()
        return np.exp(ratio.log_excess(whole))

    return _larger(pair, measure, directions, levels.size, shape)


def _directions(direction: str) -> tuple[Direction, ...]:
    if direction not in _DIRECTIONS:
        raise InputError(
            "direction must be member_to_nonmember, nonmember_to_member or both, "
            f"but it is {direction!r}."
        )
    return _DIRECTIONS[direction]


def _larger(
    pair: LawPair,
    measure: Callable[[Ratio], FloatArray],
    directions: tuple[Direction, ...],
    columns: int,
    shape: tuple[int, ...],
) -> FloatArray:
    def largest(ratio: Ratio) -> FloatArray:
        values = [
            measure(ratio if one == "member_to_nonmember" else ratio.reversed())
            for one in directions
        ]
        return np.asarray(np.max(values, axis=0))

    flat = over_pairs(pair, largest, (columns,))
    return np.asarray(flat.reshape((*pair.batch_shape, *shape)))
