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
    Law,
    MultivariateNormal,
    Normal,
    NormalMixture,
    ScalarLaw,
    SpikeAndSlab,
)
from leakscope.laws.pair import LawPair
from leakscope.measures.density_ratio import ratio_of_densities
from leakscope.measures.discrete_ratio import DiscreteRatio
from leakscope.measures.multivariate_ratio import MultivariateRatio, canonical_form
from leakscope.measures.normal_mixture_ratio import MixturePair, NormalMixtureRatio
from leakscope.measures.normal_ratio import NormalRatio
from leakscope.measures.ratio import IndexArray, Ratio
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
        return ratio_of_densities(member, nonmember)
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
    blocks = [block for rows, part in _alike(pair.reshape(size)) for block in _blocks(rows, part)]
    result = np.empty((size, *columns))

    def work(number: int) -> None:
        rows, part, inside = blocks[number]
        ratio = ratio_of(part if inside is None else part.take(inside))
        result[rows] = measure(ratio).reshape((ratio.size, *columns))

    in_threads(work, range(len(blocks)))
    return np.asarray(result.reshape((*pair.batch_shape, *columns)))


Rows = slice | IndexArray


def _blocks(rows: Rows, part: LawPair) -> list[tuple[Rows, LawPair, slice | None]]:
    """Blocks of ``part``, which are the batch's ``rows``: their rows, and where in the part."""
    size = part.batch_shape[0]
    # as many blocks as cores, or a multiple, so that none waits for another
    block = min(_block_size(part), max(1024, -(-size // usable_cores())))
    if 0 < size <= block:
        return [(rows, part, None)]
    inside = [slice(start, min(start + block, size)) for start in range(0, size, block)]
    return [(one if isinstance(rows, slice) else rows[one], part, one) for one in inside]


def _alike(pair: LawPair) -> list[tuple[Rows, LawPair]]:
    """A flat batch in parts that cost a pair as much: mixtures by how many components they have.

    Components without weight in either law are left out, and those of one component are normals.
    """
    member, nonmember = pair.member, pair.nonmember
    whole: list[tuple[Rows, LawPair]] = [(slice(None), pair)]
    if not (isinstance(member, NormalMixture) and isinstance(nonmember, NormalMixture)):
        return whole
    most = max(member.components, nonmember.components)
    laws = member.padded(most), nonmember.padded(most)
    weighs = [law.raw_weights > 0.0 for law in laws]
    either = weighs[0] | weighs[1]
    normal = (weighs[0].sum(axis=-1) == 1) & (weighs[1].sum(axis=-1) == 1)
    count = np.where(normal, 1, either.sum(axis=-1))
    if most > 1 and np.all(count == most):
        return whole
    found: list[tuple[Rows, LawPair]] = []
    for number in np.unique(count).tolist():
        rows = np.flatnonzero(count == number)
        sides: list[Law] = []
        for law, own in zip(laws, weighs, strict=True):
            # a law of one component has its own; mixtures keep all those that either law has
            wanted = own if number == 1 else either
            at = np.argsort(~wanted[rows], axis=-1, kind="stable")[:, :number]
            weights, means, sigmas = (
                np.take_along_axis(a[rows], at, axis=-1)
                for a in (law.raw_weights, law.means, law.sigmas)
            )
            if number == 1:
                sides.append(Normal(means[:, 0], sigmas[:, 0]))
            else:
                sides.append(NormalMixture(weights, means, sigmas))
        found.append((rows, LawPair(sides[0], sides[1], pair.provenance)))
    return found


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
