"""Adversaries that learn the two laws from draws: histograms and kernel densities, cross-fitted.

Each gives every draw a score, an estimate of log p(member)/p(nonmember), learnt on one half of the
draws and applied to the other.  On the draws that taught it, an adversary finds differences in pure
noise: the paper **linear**'s, two histograms compared bin by bin, is biased upwards by about
sqrt(bins/draws).  Learnt on others it is biased downwards, since it knows less than the best one.

A likelihood ratio does not change when both samples go through one invertible map, so observations
are first mapped to normal scores by the pooled ranks of the half that teaches.  Narrow laws, heavy
tails and any units are then all alike.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage, special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

Adversary = Literal["histogram", "kernel_density"]

# Draws of each kind that a half must hold.
LEAST_DRAWS = 8

# Points of the grid on which a density of normal scores is tabulated, and its ends.
GRID, REACH = 2048, 6.0

# Beyond one number, densities are sums over at most this many draws.
CENTRES = 2000
MOST_NUMBERS = 4


def cross_fitted_scores(
    member: ArrayLike,
    nonmember: ArrayLike,
    adversary: Adversary = "kernel_density",
    *,
    second_half: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Scores of all draws, each by what the other half taught; high for members.

    Parameters
    ----------
    member, nonmember
        (draws,) or (draws, d): what the attacker saw; d up to 4, and 1 for the histogram.
    adversary
        ``"histogram"``: bins of equal pooled frequency.  ``"kernel_density"``: normal kernels
        with Silverman's bandwidth.
    second_half
        Which draws make the second half; every other one where left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import cross_fitted_scores
    >>> rng = np.random.default_rng(0)
    >>> inside, outside = cross_fitted_scores(rng.normal(1.0, 1.0, 500), rng.normal(size=500))
    >>> bool(np.mean(inside > 0.0) > np.mean(outside > 0.0) + 0.3)
    True
    """
    if adversary not in get_args(Adversary):
        raise InputError(
            f"adversary must be one of {', '.join(get_args(Adversary))}, not {adversary!r}."
        )
    sides = [_draws(side, name) for side, name in ((member, "member"), (nonmember, "nonmember"))]
    numbers = sides[0].shape[1]
    most = 1 if adversary == "histogram" else MOST_NUMBERS
    if sides[1].shape[1] != numbers or numbers > most:
        raise InputError(
            f"the {adversary} adversary sees up to {most} number{'s' * (most > 1)} a draw, as many "
            f"for members as for nonmembers, but they are {numbers} and {sides[1].shape[1]}: "
            "let the experiment return a score instead."
        )
    later = second_half or tuple(np.arange(len(side)) % 2 == 1 for side in sides)
    scores = [np.empty(len(side)) for side in sides]
    for half in (False, True):
        taught = [side[mask == half] for side, mask in zip(sides, later, strict=True)]
        if min(len(draws) for draws in taught) < LEAST_DRAWS:
            raise InputError(f"an adversary needs {LEAST_DRAWS} draws of each kind in each half.")
        learn = _histogram if adversary == "histogram" else _kernel_density
        asked = [side[mask != half] for side, mask in zip(sides, later, strict=True)]
        for k, found in enumerate(learn(taught, asked)):
            scores[k][later[k] != half] = found
    return scores[0], scores[1]


def _draws(values: ArrayLike, name: str) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or 0 in found.shape:
        raise InputError(f"{name} draws must be (draws,) or (draws, d), not {found.shape}.")
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found).all(axis=1)))
        raise InputError(f"the {name} draw in row {row} is not finite.")
    return found


def _histogram(taught: list[FloatArray], asked: list[FloatArray]) -> list[FloatArray]:
    pooled = np.concatenate(taught)[:, 0]
    bins = max(2, int(2.0 * len(pooled) ** (1.0 / 3.0)))
    edges = np.unique(np.quantile(pooled, np.arange(1, bins) / bins))
    counts = [
        np.bincount(np.searchsorted(edges, side[:, 0], side="right"), minlength=len(edges) + 1)
        for side in taught
    ]
    # Half a draw in every bin keeps an empty one from saying more than it knows.
    logs = [
        np.log(count + 0.5) - np.log(len(side)) for count, side in zip(counts, taught, strict=True)
    ]
    ratio = logs[0] - logs[1]
    return [ratio[np.searchsorted(edges, side[:, 0], side="right")] for side in asked]


def _kernel_density(taught: list[FloatArray], asked: list[FloatArray]) -> list[FloatArray]:
    pooled = np.sort(np.concatenate(taught), axis=0)
    taught = [_normal_scores(side, pooled) for side in taught]
    asked = [_normal_scores(side, pooled) for side in asked]
    log_density = _tabulated if pooled.shape[1] == 1 else _summed
    logs = [log_density(side, asked) for side in taught]
    return [one - other for one, other in zip(logs[0], logs[1], strict=True)]


def _normal_scores(side: FloatArray, pooled: FloatArray) -> FloatArray:
    """Ranks among the pooled draws, ties halved, as quantiles of the normal law."""
    mapped = np.empty_like(side)
    for j in range(side.shape[1]):
        below = np.searchsorted(pooled[:, j], side[:, j], side="left")
        rank = 0.5 * (below + np.searchsorted(pooled[:, j], side[:, j], side="right"))
        mapped[:, j] = special.ndtri((rank + 0.5) / (len(pooled) + 1.0))
    return mapped


def _bandwidth(values: FloatArray) -> float:
    """Silverman's rule, (4/(d+2))^(1/(d+4)) n^(-1/(d+4)) times a robust spread."""
    count, numbers = values.shape
    quarters = np.quantile(values, [0.25, 0.75], axis=0)
    spreads = np.minimum(values.std(axis=0), (quarters[1] - quarters[0]) / 1.349)
    # A law that is narrow beside the other keeps a kernel of some width; one unit is all draws.
    spread = max(float(np.mean(spreads)), 0.02)
    power = 1.0 / (numbers + 4.0)
    return float(spread * (4.0 / (numbers + 2.0)) ** power * count ** (-power))


def _tabulated(side: FloatArray, asked: list[FloatArray]) -> list[FloatArray]:
    """Log density by a fine histogram, smoothed; looked up by linear interpolation."""
    edges = np.linspace(-REACH, REACH, GRID + 1)
    centres, step = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    counts = np.histogram(np.clip(side[:, 0], -REACH, REACH), edges)[0].astype(np.float64)
    smooth = ndimage.gaussian_filter1d(counts, _bandwidth(side) / step, mode="constant", truncate=6)
    # Half a draw spread over the scores' own law: tails say no more than the draws can.
    floor = 0.5 * np.exp(-0.5 * centres**2) / np.sqrt(2.0 * np.pi) * step
    table = np.log((smooth + floor) / (len(side) + 0.5))
    return [np.interp(values[:, 0], centres, table) for values in asked]


def _summed(side: FloatArray, asked: list[FloatArray]) -> list[FloatArray]:
    width = _bandwidth(side)
    centres = side[:: max(1, -(-len(side) // CENTRES))]
    found = []
    for values in asked:
        logs = np.empty(len(values))
        for start in range(0, len(values), 1000):
            block = values[start : start + 1000]
            squares = ((block[:, None, :] - centres[None]) ** 2).sum(axis=2) / (2.0 * width**2)
            kernel = special.logsumexp(-squares, axis=1) - side.shape[1] * np.log(width)
            floor = np.log(0.5) - 0.5 * (block**2).sum(axis=1)
            logs[start : start + 1000] = np.logaddexp(kernel, floor) - np.log(len(centres) + 0.5)
        found.append(logs)
    return found
