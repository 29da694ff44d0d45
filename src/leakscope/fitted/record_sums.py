"""What a few models say of each record: counts, means, sums of squares, and a correlation.

Two models trained on complementary halves err in opposite directions: what one training set has
too much of, the other lacks.  So the mean over the models with a record and the mean over those
without it are correlated, the more the less the training sets overlap, and their difference is
noisier than two independent means would make it.  The share of the variance that follows the
composition of the training set (the rest is the seed) is measured from the models themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray

Mask = NDArray[np.bool_]

# Share of the variance that follows the training set, where the models are too few to show it, and
# how many independent directions it counts for beside what they show.
COMPOSITION_SHARE, SHARE_BELIEF = 0.5, 5.0
# Hundreds of models of ten kinds showed no larger share; models that vary in few directions do
# by chance, and the noise that is left over would be next to nothing.
MOST_SHARE = 0.85
# The number of independent directions, and how many pairs of models' differences it counts for.
DIRECTIONS, DIRECTIONS_BELIEF = 60.0, 1.0
# A line over all records is known at each place from this part of them.
LINE_PARTS = 1.5


@dataclass(frozen=True)
class RecordSums:
    """Number of models, mean and sum of squares about it, for every record: out of and in training.

    ``correlation`` is that of the two means; ``floor`` the smallest standard deviation that is
    told from zero; ``directions`` the number of independent directions of the models' noise.
    """

    n_out: FloatArray
    mean_out: FloatArray
    squares_out: FloatArray
    n_in: FloatArray
    mean_in: FloatArray
    squares_in: FloatArray
    correlation: FloatArray
    floor: float
    directions: float

    @property
    def line_error(self) -> FloatArray:
        """Standard error of the population's shift, in units of s: all records share the noise."""
        own = 1.0 / self.n_out + 1.0 / self.n_in
        own = own - 2.0 * self.correlation / np.sqrt(self.n_out * self.n_in)
        return np.sqrt(own * LINE_PARTS / self.directions)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.n_out)

    def take(self, rows: NDArray[np.int64] | slice) -> RecordSums:
        """Those of some records only."""
        return RecordSums(
            self.n_out[rows],
            self.mean_out[rows],
            self.squares_out[rows],
            self.n_in[rows],
            self.mean_in[rows],
            self.squares_in[rows],
            self.correlation[rows],
            floor=self.floor,
            directions=self.directions,
        )


def record_sums(log_odds: FloatArray, trained_on: Mask) -> RecordSums:
    """Sums over the models, for levelled log-odds of shape models x records."""
    found: list[FloatArray] = []
    for mask in (~trained_on, trained_on):
        count = mask.sum(axis=0).astype(np.float64)
        mean = np.where(mask, log_odds, 0.0).sum(axis=0) / count
        squares = np.where(mask, (log_odds - mean) ** 2, 0.0).sum(axis=0)
        found += [count, mean, squares]
    overlap = _overlap(trained_on)
    directions = noise_directions(log_odds, overlap)
    share = composition_share(log_odds, trained_on, overlap, directions)
    # Sum of the overlaps between the models with the record and those without it.
    together = (trained_on * (overlap @ ~trained_on)).sum(axis=0)
    correlation = share * together / np.sqrt(found[0] * found[3])
    floor = max(1e-3 * float(np.std(found[1])), 1e-9)
    return RecordSums(
        n_out=found[0],
        mean_out=found[1],
        squares_out=found[2],
        n_in=found[3],
        mean_in=found[4],
        squares_in=found[5],
        correlation=np.clip(correlation, -MOST_SHARE, MOST_SHARE),
        floor=floor,
        directions=directions,
    )


def composition_share(
    log_odds: FloatArray, trained_on: Mask, overlap: FloatArray, directions: float
) -> float:
    """Share of the variance between models that follows which records they were trained on.

    Residuals of the models with and without a record are multiplied with each other, and over all
    records these products are regressed on the overlap of the two training sets.
    """
    without = ~trained_on
    order = np.argsort(np.where(without, log_odds, 0.0).sum(axis=0) / without.sum(axis=0))
    standard: list[FloatArray] = []
    for mask in (trained_on, without):
        count = mask.sum(axis=0)
        mean = np.where(mask, log_odds, 0.0).sum(axis=0) / count
        residual = np.where(mask, log_odds - mean, 0.0)
        standard.append(residual / np.sqrt(_local_variance(residual, count, order)))
    product = (standard[0] * (overlap @ standard[1])).sum(axis=0)
    rows = trained_on * (overlap @ without)
    columns = without * (overlap @ trained_on)
    n_in, n_out = trained_on.sum(axis=0), without.sum(axis=0)
    squares = (trained_on * (overlap**2 @ without)).sum(axis=0)
    centred = (
        squares
        - (rows**2).sum(axis=0) / n_out
        - (columns**2).sum(axis=0) / n_in
        + rows.sum(axis=0) ** 2 / (n_in * n_out)
    )
    # One product for every pair of models beyond the first and every two directions.
    known = directions * float(centred.mean()) / 2.0
    top = known * float(product.sum()) / max(float(centred.sum()), 1e-300)
    share = (top + SHARE_BELIEF * COMPOSITION_SHARE) / (known + SHARE_BELIEF)
    return float(np.clip(share, -0.5, MOST_SHARE))


def noise_directions(log_odds: FloatArray, overlap: FloatArray) -> float:
    """In how many independent directions the models differ from each other.

    Differences of two models, complementary ones where there are, are vectors over the records.
    They would be orthogonal to each other if every record had noise of its own; their mean squared
    cosine is one over the number of directions in which models vary, a few dozen for a network.
    """
    above = np.triu_indices(len(overlap), 1)
    free, chosen = set(range(len(overlap))), []
    for at in np.argsort(overlap[above], kind="stable"):
        one, other = int(above[0][at]), int(above[1][at])
        if {one, other} <= free:
            free -= {one, other}
            chosen.append((one, other))
    apart = np.stack([log_odds[one] - log_odds[other] for one, other in chosen])
    apart = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-300)
    squares = np.square((apart @ apart.T)[np.triu_indices(len(chosen), 1)])
    total = float(squares.sum()) + DIRECTIONS_BELIEF / DIRECTIONS
    return min((len(squares) + DIRECTIONS_BELIEF) / total, float(log_odds.shape[1]))


def _local_variance(
    residual: FloatArray, count: NDArray[np.int64], order: NDArray[np.int64]
) -> FloatArray:
    """The mean variance of records with similar log-odds: never a record's own, which is noisy."""
    found = np.empty(len(count))
    for part in np.array_split(order, int(np.clip(len(order) // 50, 1, 20))):
        df = max(float((count[part] - 1).sum()), 1.0)
        found[part] = (residual[:, part] ** 2).sum() / df
    return found + 1e-24


def _overlap(trained_on: Mask) -> FloatArray:
    """Correlation of the training sets of every two models: -1 for complementary halves."""
    centred = trained_on - trained_on.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    length = np.where(length > 0.0, length, 1.0)
    return np.asarray(centred @ centred.T / np.outer(length, length))
