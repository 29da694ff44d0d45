"""The advantage over random designs, with an honest standard error.

A mixture's total variation, computed from finitely many drawn components, is biased upwards: the
test is chosen by the draws that score it.  Here one half of the designs chooses the region in which
the attacker says "member" and the other half scores it, and then the halves change roles.  Each
design's score is an unbiased draw of the advantage of a test that it had no part in choosing; the
test itself falls short of the best only to second order, because at the region's edges both
densities are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture

FloatArray = NDArray[np.float64]

_STEPS = np.concatenate([np.linspace(0.0, 3.0, 46), np.linspace(3.2, 9.0, 25)])
_LEVELS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


@dataclass(frozen=True)
class ScoredAdvantage:
    """An advantage and the standard error that the random designs leave in it.

    Examples
    --------
    >>> from leakscope.defences import ScoredAdvantage
    >>> ScoredAdvantage(0.25, 0.001).value
    0.25
    """

    value: float
    stderr: float


def scored_advantage(
    pair: LawPair, weights: FloatArray | None = None, *, choosing: int = 400
) -> ScoredAdvantage:
    """The advantage averaged over the batch of ``pair``, whose components are random designs.

    Parameters
    ----------
    pair
        Normals or mixtures whose k-th component, in every pair of the batch, belongs to the k-th
        design; member and non-member designs are independent of each other.
    weights
        Of the batch; equal where left out.
    choosing
        How many designs of a half choose the tests, at most.

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.defences import scored_advantage
    >>> pair = linear.law_pair(linear.GaussianDesign(100, 400, 3000, 1.0), draws=4000)
    >>> found = scored_advantage(pair)
    >>> round(found.value, 2), found.stderr < 0.001
    (0.26, True)
    """
    batch = int(np.prod(pair.batch_shape, dtype=int))
    flat = pair.reshape(batch)
    share = np.full(batch, 1.0 / batch) if weights is None else np.ravel(weights)
    sides = [_components(law) for law in (flat.member, flat.nonmember)]
    scores: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for first in (True, False):
        chosen, scored = zip(*(_split(side, choosing, first) for side in sides), strict=True)
        totals = [np.zeros(side.shape[-1]) for side in scored]
        for row in range(batch):
            edges = _region(chosen[0][:, row], chosen[1][:, row])
            for total, side in zip(totals, scored, strict=True):
                total += share[row] * _mass(side[:, row], edges)
        for total, kept in zip(totals, scores, strict=True):
            kept.append(total)
    member, nonmember = (np.concatenate(kept) for kept in scores)
    value = float(member.mean() - nonmember.mean())
    variance = sum(float(s.var(ddof=1)) / s.size for s in (member, nonmember) if s.size > 2)
    return ScoredAdvantage(max(value, 0.0), float(np.sqrt(variance)))


def _components(law: object) -> FloatArray:
    """Means and sigmas, (2, batch, components)."""
    if isinstance(law, Normal):
        return np.stack([law.mean[:, None], law.sigma[:, None]])
    if isinstance(law, NormalMixture):
        if law.components > 1 and np.ptp(law.sigmas, axis=-1).max() == 0.0 == np.ptp(law.means):
            return np.stack([law.means[:, :1], law.sigmas[:, :1]])
        return np.stack([law.means, law.sigmas])
    raise InputError(f"A mixture over designs is needed, not a {type(law).__name__}.")


def _split(side: FloatArray, wanted: int, first: bool) -> tuple[FloatArray, FloatArray]:
    """Designs of one half that choose the tests, and the other half, which scores them.

    A single component is the law itself: it does both without bias.
    """
    components = side.shape[-1]
    if components == 1:
        return side, side
    halves = side[..., : components // 2], side[..., components // 2 :]
    choosing, scoring = halves if first else halves[::-1]
    return choosing[..., :wanted], scoring


def _region(member: FloatArray, nonmember: FloatArray) -> FloatArray:
    """Edges (low, high), (2, R), of the intervals in which the member law is the denser."""
    x = _grid([member, nonmember])
    difference = _density(member, x) - _density(nonmember, x)
    above = difference > 0.0
    cells = np.flatnonzero(above[1:] != above[:-1])
    run, rise = x[cells + 1] - x[cells], difference[cells + 1] - difference[cells]
    at = x[cells] - difference[cells] * run / rise
    ends = np.concatenate([[-np.inf] if above[0] else [], at, [np.inf] if above[-1] else []])
    return ends.reshape(-1, 2).T


def _grid(laws: list[FloatArray]) -> FloatArray:
    points = []
    for means, sigmas in laws:
        order = np.argsort(sigmas)[(np.round(_LEVELS * (sigmas.size - 1))).astype(int)]
        reach = sigmas[order][:, None] * _STEPS
        points += [(means[order][:, None] + reach).ravel(), (means[order][:, None] - reach).ravel()]
    return np.unique(np.concatenate(points))


def _density(law: FloatArray, x: FloatArray) -> FloatArray:
    means, sigmas = law
    z = (x[:, None] - means) / sigmas
    return np.asarray((np.exp(-0.5 * z * z) / sigmas).mean(axis=-1))


def _mass(law: FloatArray, edges: FloatArray) -> FloatArray:
    """Each component's probability of the region."""
    means, sigmas = law
    low, high = edges[..., None]
    between = special.ndtr((high - means) / sigmas) - special.ndtr((low - means) / sigmas)
    return np.asarray(between.sum(axis=0))
