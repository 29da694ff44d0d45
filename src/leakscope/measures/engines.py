"""Which of the three engines measures a pair of laws, in blocks that fit the cache and the cores.

Normals have closed forms, multivariate normals are quadratic forms, and everything else is atoms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import in_threads, usable_cores
from leakscope.errors import InputError
from leakscope.laws.distributions import (
    Discrete,
    Law,
    MultivariateNormal,
    Normal,
    NormalMixture,
    ScalarLaw,
)
from leakscope.laws.pair import LawPair
from leakscope.measures.atoms import Atoms
from leakscope.measures.densities import DensityAtoms
from leakscope.measures.normals import NormalRatio
from leakscope.measures.quadratic_forms import MultivariateRatio, canonical_form
from leakscope.measures.ratio import Ratio

# Pairs of a block: a normal's temporaries are few, and a density has some thousand atoms.
_NORMALS, _VECTORS, _DENSITIES = 4096, 1024, 32


def ratio_of(pair: LawPair) -> Ratio:
    """The likelihood ratio of a flat batch of pairs."""
    member, nonmember = as_normal(pair.member), as_normal(pair.nonmember)
    if isinstance(member, Normal) and isinstance(nonmember, Normal):
        return NormalRatio.of(member, nonmember)
    if isinstance(member, MultivariateNormal) and isinstance(nonmember, MultivariateNormal):
        return MultivariateRatio(*canonical_form(member, nonmember))
    if isinstance(member, Discrete) and isinstance(nonmember, Discrete):
        return Atoms.of_values(member, nonmember)
    if isinstance(member, ScalarLaw) and isinstance(nonmember, ScalarLaw):
        return DensityAtoms.of_laws(member, nonmember)
    raise InputError(
        f"No measure is known for laws of kind {type(member).__name__}: a law on the real line "
        "needs log_density and cdf (leakscope.laws.ScalarLaw)."
    )


def as_normal(law: Law) -> Law:
    """A mixture of one component as the normal that it is."""
    if isinstance(law, NormalMixture) and law.components == 1:
        return Normal(law.means[..., 0], law.sigmas[..., 0])
    return law


def over_pairs(
    pair: LawPair, measure: Callable[[Ratio], FloatArray], columns: tuple[int, ...] = ()
) -> FloatArray:
    """Apply ``measure``, which returns (B, ...) for B pairs, to the whole batch in blocks.

    The result has shape ``batch_shape + columns``.
    """
    size = int(np.prod(pair.batch_shape, dtype=np.int64))
    flat = pair.reshape(size)
    result = np.empty((size, *columns))
    # as many blocks as cores, or a multiple, so that none waits for another
    block = min(_block_size(pair), max(1024, -(-size // usable_cores())))

    def work(start: int) -> None:
        rows = slice(start, start + block)
        ratio = ratio_of(flat if size <= block else flat.take(rows))
        result[rows] = measure(ratio).reshape((ratio.size, *columns))

    in_threads(work, range(0, size, block))
    return np.asarray(result.reshape((*pair.batch_shape, *columns)))


def _block_size(pair: LawPair) -> int:
    if isinstance(pair.member, Normal):
        return _NORMALS
    if isinstance(pair.member, (MultivariateNormal, Discrete)):
        return _VECTORS
    return _DENSITIES
