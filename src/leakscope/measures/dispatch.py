"""From a pair of laws to its likelihood ratio, in blocks that fit the cache and the cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import in_threads, usable_cores
from leakscope.errors import InputError
from leakscope.laws.distributions import (
    Bernoulli,
    Discrete,
    Empirical,
    MultivariateNormal,
    Normal,
    NormalMixture,
    ScalarLaw,
    SpikeAndSlab,
)
from leakscope.laws.pair import LawPair
from leakscope.measures.density_ratio import DensityRatio
from leakscope.measures.discrete_ratio import DiscreteRatio
from leakscope.measures.multivariate_ratio import MultivariateRatio, canonical_form
from leakscope.measures.normal_mixture_ratio import MixturePair, NormalMixtureRatio
from leakscope.measures.normal_ratio import NormalRatio
from leakscope.measures.ratio import Ratio
from leakscope.measures.spike_and_slab_ratio import SpikeAndSlabRatio

Direction = Literal["nonmember_to_member", "member_to_nonmember"]
AnyDirection = Literal["nonmember_to_member", "member_to_nonmember", "both"]

_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "member_to_nonmember": ("member_to_nonmember",),
    "nonmember_to_member": ("nonmember_to_member",),
    "both": ("member_to_nonmember", "nonmember_to_member"),
}


def ratio_of(pair: LawPair) -> Ratio:
    """The likelihood ratio of a flat batch of pairs."""
    member, nonmember = pair.member, pair.nonmember
    if isinstance(member, Normal) and isinstance(nonmember, Normal):
        return NormalRatio.of(member, nonmember)
    if isinstance(member, NormalMixture) and isinstance(nonmember, NormalMixture):
        return NormalMixtureRatio(MixturePair.of(member, nonmember))
    if isinstance(member, SpikeAndSlab) and isinstance(nonmember, SpikeAndSlab):
        return SpikeAndSlabRatio(member, nonmember)
    if isinstance(member, Bernoulli) and isinstance(nonmember, Bernoulli):
        return DiscreteRatio.of_bernoulli(member, nonmember)
    if isinstance(member, Discrete) and isinstance(nonmember, Discrete):
        return DiscreteRatio.of(member, nonmember)
    if isinstance(member, MultivariateNormal) and isinstance(nonmember, MultivariateNormal):
        return MultivariateRatio(*canonical_form(member, nonmember))
    if isinstance(member, ScalarLaw) and isinstance(nonmember, ScalarLaw):
        return DensityRatio.of(member, nonmember)
    raise InputError(
        f"No measure is known for laws of kind {type(member).__name__}: a law on the real line "
        "needs log_density and cdf (leakscope.laws.ScalarLaw)."
    )


def over_pairs(
    pair: LawPair, measure: Callable[[Ratio], FloatArray], columns: tuple[int, ...] = ()
) -> FloatArray:
    """Apply ``measure``, which returns (B, ...) for B pairs, to the whole batch in blocks.

    The result has shape ``batch_shape + columns``.  Blocks keep the temporaries small, so that
    the time a pair stays flat from a thousand pairs to a million, and run on all cores.
    """
    size = int(np.prod(pair.batch_shape, dtype=np.int64))
    flat = pair.reshape(size)
    # as many blocks as cores, or a multiple, so that none waits for another
    block = min(_block_size(flat), max(1024, -(-size // usable_cores())))
    result = np.empty((size, *columns))

    def work(start: int) -> None:
        stop = min(start + block, size)
        part = flat if size <= block else flat.take(slice(start, stop))
        result[start:stop] = measure(ratio_of(part)).reshape((stop - start, *columns))

    in_threads(work, range(0, size, block))
    return np.asarray(result.reshape((*pair.batch_shape, *columns)))


def oriented(pair: LawPair, direction: Direction) -> LawPair:
    """The pair turned so that its member law is the first law of ``direction``."""
    if direction == "member_to_nonmember":
        return pair
    if direction == "nonmember_to_member":
        return pair.swapped()
    raise InputError(
        f"direction must be nonmember_to_member or member_to_nonmember, but it is {direction!r}."
    )


def directions_of(direction: str) -> tuple[Direction, ...]:
    """The one direction, or both."""
    if direction not in _DIRECTIONS:
        raise InputError(
            "direction must be member_to_nonmember, nonmember_to_member or both, "
            f"but it is {direction!r}."
        )
    return _DIRECTIONS[direction]


def as_levels(
    value: npt.ArrayLike, name: str, low: float, high: float, wanted: str
) -> tuple[FloatArray, tuple[int, ...]]:
    """Check a number or an array of levels (an FPR, a delta); return it flat and its shape."""
    try:
        levels = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or an array of numbers.") from None
    bad = ~((levels >= low) & (levels <= high))
    if bad.any():
        raise InputError(f"{name} must be {wanted}, but it is {float(levels[bad][0])!r}.")
    return levels.ravel(), levels.shape


def is_empirical(pair: LawPair) -> bool:
    """Whether the pair is of samples, whose measures are estimates."""
    return isinstance(pair.member, Empirical)


def samples(pair: LawPair) -> tuple[FloatArray, FloatArray]:
    """The member and nonmember samples of an empirical pair."""
    member, nonmember = pair.member, pair.nonmember
    if not isinstance(member, Empirical) or not isinstance(nonmember, Empirical):
        raise InputError("This measure needs a pair of Empirical laws.")
    return member.samples, nonmember.samples


def _block_size(pair: LawPair) -> int:
    member, nonmember = pair.member, pair.nonmember
    if isinstance(member, SpikeAndSlab):
        return 128
    if isinstance(member, NormalMixture) and isinstance(nonmember, NormalMixture):
        components = member.components + nonmember.components
        cells = min(52 * components, 1600)
        return max(1, min(1024, int(5e7 / (cells * (36.0 * components + 512.0)))))
    if isinstance(member, ScalarLaw) and not isinstance(member, (Normal, Bernoulli, Discrete)):
        return 32
    # A normal pair's temporaries are few: more of them share what a block costs.
    return 4096 if isinstance(member, Normal) else 1024
