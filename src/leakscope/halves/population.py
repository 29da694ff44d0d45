"""What a few models say of each record, and what the records of one data set have in common.

The models.  Two models trained on complementary halves err in opposite directions: what one
training set has too much of, the other lacks.  So the mean over the models with a record and the
mean over those without it are correlated, the more the less the training sets overlap, and their
difference is noisier than two independent means would make it.  The share of the variance that
follows the composition of the training set (the rest is the seed) is measured from the models.

The population.  Every record has four unknowns: the mean log-odds over models that were not trained
on it, u; their standard deviation, s; the mean over models that were, m; and theirs, r.  The
records are taken as draws from one population, in which everything that training on a record does
goes to zero together:

* u has any smooth density, and log s is normal around a broken line of u;
* the shift m - u has the mean d(u) s(u) (s / s(u))^t, where d is a broken line that only falls with
  u, s(u) the line of s and t smaller where d is large; its variance is in proportion to that mean
  and to s, and nine times as large for one record in ten;
* log r lies below log s by a broken line of u, with a spread that grows with d.

The lines and the spread of the shift are fitted to all records by EM, in which the noise of few
models is part of the likelihood: nothing is regressed on a noisy mean as if it were the truth.
Records share the models' noise, so that thousands of them say no more than `RecordSums.directions`
independent ones would, and are given that weight against weak beliefs.

The posterior.  Given u and s the log-odds without the record are independent of those with it, and
given r too the mean m is normal and drops out in closed form.  What is left is a sum over nodes of
(log s, u, log r), placed for every record where its likelihood and the population leave mass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

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
# What a bend costs a fitted line, in shares of the weight of the records at a knot.
BENDS = 0.02
# One knot of the broken lines for this many records, from 2 to 11 of them; the outermost knots
# leave this share of the records beyond them.
RECORDS_PER_KNOT, FEWEST_KNOTS, MOST_KNOTS, BEYOND = 60, 2, 11, 0.003
DENSITY_POINTS = 81
# Spread of log s around its line, where it cannot be seen, and how many directions of the models'
# noise that belief counts for.
LOG_SPREAD, SPREAD_BELIEF = 0.22, 35.0
# The root of a shift's variance over its mean and s; the belief counts as so many records, and
# more than the last number, twice what was ever seen, is noise that was taken for it.
SHIFT_SPREAD, SHIFT_BELIEF, MOST_SPREAD = 0.2, 4.0, 0.6
# A few records are off by more: shares of the records, and how many times the variance they have.
SHARES, TIMES = np.array([0.9, 0.1]), np.array([1.0, 9.0])
# The power of s in a small shift, its standard deviation over data sets, and how fast it falls
# with the shift in units of s.
SHIFT_POWER, POWER_BELIEF, POWER_FALLS = 2.0, 0.5, 0.6
# Spread of log r around its line where the shift is large, the shift in units of s at which it is
# half of that, and what is left without a shift: of log r, and of the shift in units of s.
RATIO_SPREAD, RATIO_HALF, LEAST_RATIO_SPREAD, LEAST_SHIFT_SPREAD = 0.3, 1.0, 0.03, 0.02
# How fast log r ceases to follow log s where the shift in units of s grows.
RATIO_LOOSENS = 0.3
# The shift of the hardest records in units of s, where the models show none.
LEAST_SHIFT = 0.1
# Standard deviations of what the lines of log s and log r bend and rise by from knot to knot.
BEND, SLOPE = 0.3, 0.3
# How many nodes of s, u and r: for the posterior, and for the fit of the population.
FINE, COARSE = (7, 9, 5), (5, 7, 5)
REACH = 2.7
# Nodes of log r around its mean, in standard deviations of the population, and their distance.
R_REACH = 2.2
BLOCK = 1000
ROUNDS = 20
# The population has some twenty numbers; more records than these do not make them better known.
MOST_FITTED = 1500


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
    def fewest(self) -> FloatArray:
        """(N,) how many models there are on the side that has fewer."""
        return np.minimum(self.n_out, self.n_in)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.n_out)

    def take(self, rows: NDArray[np.int64] | slice) -> RecordSums:
        """Those of some records only."""
        arrays = {name: value[rows] for name, value in vars(self).items() if np.ndim(value)}
        return replace(self, **arrays)


def means_and_squares(scores: FloatArray, mask: Mask) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For every record, over the models of the mask: how many, their mean, and squares about it."""
    count = mask.sum(axis=0).astype(np.float64)
    mean = np.where(mask, scores, 0.0).sum(axis=0) / np.maximum(count, 1.0)
    squares = np.where(mask, (scores - mean) ** 2, 0.0).sum(axis=0)
    return count, mean, squares


def record_sums(log_odds: FloatArray, trained_on: Mask) -> RecordSums:
    """Sums over the models, for levelled log-odds of shape models x records."""
    n_out, mean_out, squares_out = means_and_squares(log_odds, ~trained_on)
    n_in, mean_in, squares_in = means_and_squares(log_odds, trained_on)
    overlap = _overlap(trained_on)
    directions = noise_directions(log_odds, overlap)
    share = composition_share(log_odds, trained_on, overlap, directions)
    # Sum of the overlaps between the models with the record and those without it.
    together = (trained_on * (overlap @ ~trained_on)).sum(axis=0)
    correlation = share * together / np.sqrt(n_out * n_in)
    return RecordSums(
        n_out=n_out,
        mean_out=mean_out,
        squares_out=squares_out,
        n_in=n_in,
        mean_in=mean_in,
        squares_in=squares_in,
        correlation=np.clip(correlation, -MOST_SHARE, MOST_SHARE),
        floor=max(1e-3 * float(np.std(mean_out)), 1e-9),
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
        count, mean, _ = means_and_squares(log_odds, mask)
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
    residual: FloatArray, count: FloatArray, order: NDArray[np.int64]
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


def line(u: FloatArray, knots: FloatArray, values: FloatArray) -> FloatArray:
    """The broken line through ``values`` at ``knots``, constant slope beyond the last ones."""
    inside = np.interp(u, knots, values)
    left = (values[1] - values[0]) / (knots[1] - knots[0])
    right = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
    return np.asarray(
        inside + np.minimum(u - knots[0], 0.0) * left + np.maximum(u - knots[-1], 0.0) * right
    )


def hats(u: FloatArray, knots: FloatArray) -> FloatArray:
    """The functions of which every broken line is a sum, one column for each knot."""
    cell = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, len(knots) - 2)
    along = (u - knots[cell]) / (knots[cell + 1] - knots[cell])
    found = np.zeros((len(u), len(knots)))
    rows = np.arange(len(u))
    found[rows, cell] = 1.0 - along
    found[rows, cell + 1] += along
    return found


def falling(values: FloatArray, weight: FloatArray) -> FloatArray:
    """The nearest values that never rise; their mean stays."""
    return np.asarray(isotonic_regression(values, weights=weight + 1e-9, increasing=False).x)


def bends(cost: FloatArray) -> FloatArray:
    """The sum of squared second differences, each times its cost, as a matrix."""
    knots = len(cost)
    apart = np.diff(np.eye(knots), n=2, axis=0) if knots > 2 else np.zeros((0, knots))
    return np.asarray(apart.T @ (apart * cost[1:-1, None]))


def fitted_line(basis: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted least squares; bends of the line cost a little, so that empty stretches are safe."""
    gram = basis.T @ (basis * weight[:, None])
    least = 1e-6 * float(np.trace(gram)) / len(gram)
    gram = gram + bends(BENDS * np.diag(gram) + least) + least * np.eye(len(gram))
    return np.asarray(np.linalg.solve(gram, basis.T @ (weight * y)))


def falls(size: FloatArray) -> FloatArray:
    """What is left of the power of s in a shift of this size."""
    return np.asarray(1.0 / (1.0 + POWER_FALLS * size))


def ratio_spread(size: FloatArray) -> FloatArray:
    """Standard deviation of log r around its line, by the shift in units of s."""
    return np.hypot(RATIO_SPREAD * size / (size + RATIO_HALF), LEAST_RATIO_SPREAD)


@dataclass(frozen=True)
class Population:
    """The population's lines, spreads and density; ``knots`` are values of u.

    ``log_ratio`` is how far log r lies below log s; ``weight`` what a record counts for, because
    records share the models' noise.
    """

    knots: FloatArray
    grid: FloatArray
    log_density: FloatArray
    log_s: FloatArray
    log_s_spread: float
    sizes: FloatArray
    shift_power: float
    shift_spread: float
    log_ratio: FloatArray
    weight: float

    def log_prior_u(self, u: FloatArray) -> FloatArray:
        """Log density of u; beyond the grid it falls like an exponential law's."""
        inside = np.interp(u, self.grid, self.log_density)
        beyond = np.maximum(self.grid[0] - u, 0.0) + np.maximum(u - self.grid[-1], 0.0)
        return np.asarray(inside - 0.5 * beyond / (self.grid[1] - self.grid[0]))

    def expected_log_s(self, u: FloatArray) -> FloatArray:
        """Log s that records with this u have on average."""
        return np.asarray(np.interp(u, self.knots, self.log_s))

    def size(self, u: FloatArray) -> FloatArray:
        """The mean shift of records with this u, in units of s."""
        return np.maximum(line(u, self.knots, self.sizes), 0.0)

    def expected_shift(self, u: FloatArray, off: FloatArray) -> FloatArray:
        """Mean of m - u for records with this u whose log s is ``off`` its line."""
        size = self.size(u)
        return np.asarray(
            size * np.exp(self.expected_log_s(u) + self.shift_power * falls(size) * off)
        )

    def shift_variance(
        self, shift: FloatArray, s: FloatArray, line_error: FloatArray
    ) -> FloatArray:
        """Variance of m - u around ``shift``, which a few models show with an error of its own.

        The line is nowhere below zero, and so does not err by more than it is.
        """
        around = self.shift_spread**2 * shift * s + (LEAST_SHIFT_SPREAD * s) ** 2
        own = np.minimum(shift, line_error) ** 2
        return np.asarray(around[..., None] * TIMES + own[..., None])

    def expected_log_r(self, u: FloatArray, off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log r for records with this u and ``off``."""
        log_s = self.expected_log_s(u)
        size = self.size(u)
        mean = log_s - np.interp(u, self.knots, self.log_ratio) + off / (1.0 + RATIO_LOOSENS * size)
        return np.asarray(mean), ratio_spread(size)


def first_guess(sums: RecordSums) -> Population:
    """Where EM starts: lines through means that are shrunken as their noise demands.

    A line through the noisy means themselves would be too flat, and EM takes long to steepen it.
    """
    noisy = sums.mean_out
    count = int(np.clip(sums.records // RECORDS_PER_KNOT, FEWEST_KNOTS, MOST_KNOTS))
    # Closer together towards the ends, where lines bend and the most exposed records are.
    places = 0.5 - (0.5 - BEYOND) * np.cos(np.pi * np.arange(count) / (count - 1))
    total = float(np.var(noisy)) + sums.floor**2
    floor = sums.floor**2
    df_out, df_in = sums.n_out - 1.0, sums.n_in - 1.0
    knots = _spread_apart(np.quantile(noisy, places), sums)
    basis = hats(noisy, knots)
    if df_out.sum() > 0:
        variance = _smooth_ratio(basis, sums.squares_out, df_out)
    else:
        # One model on each side: how far apart the two are shows the noise, once what goes with
        # their mean is taken off.
        apart = sums.mean_in - sums.mean_out
        middle = 0.5 * (sums.mean_in + sums.mean_out)
        along = hats(middle, _spread_apart(np.quantile(middle, places), sums))
        rest = apart - along @ fitted_line(along, apart, np.ones(sums.records))
        variance = _smooth_ratio(basis, rest**2, 2.0 - 2.0 * sums.correlation)
    noise = np.clip(basis @ variance, floor, None) / sums.n_out
    kept = np.clip(1.0 - float(noise.mean()) / total, 0.05, 1.0)
    centre = float(noisy.mean())
    u = centre + kept * (noisy - centre)
    # The density of u is as wide as u is, wider than that of its shrunken guesses.
    spread = centre + np.sqrt(kept) * (noisy - centre)
    knots = _spread_apart(np.quantile(spread, places), sums)
    basis = hats(u, knots)
    if df_in.sum() > 0:
        variance_in = _smooth_ratio(basis, sums.squares_in, df_in)
    else:
        variance_in = variance
    # Where the mean without a record errs upwards, the mean with it errs downwards.
    ratio = np.sqrt(np.clip(basis @ variance_in, floor, None) / sums.n_in / noise)
    follows = sums.correlation * ratio * (noisy - u)
    log_s = 0.5 * np.log(np.maximum(variance, floor))
    inverse = np.exp(-basis @ log_s)
    sizes = fitted_line(basis, (sums.mean_in - follows - u) * inverse, np.ones(sums.records))
    low, high = float(noisy.min()), float(noisy.max())
    margin = 0.05 * (high - low) + sums.floor
    grid = np.linspace(low - margin, high + margin, DENSITY_POINTS)
    log_r = 0.5 * np.log(np.maximum(variance_in, floor))
    return Population(
        knots=knots,
        grid=grid,
        log_density=_log_density(on_grid(grid, spread, np.ones(sums.records))),
        log_s=log_s,
        log_s_spread=log_s_spread(sums),
        sizes=np.maximum(falling(sizes, np.ones(count)), 0.0),
        shift_power=SHIFT_POWER,
        shift_spread=SHIFT_SPREAD,
        log_ratio=np.maximum(falling(log_s - log_r, np.ones(count)), 0.0),
        weight=min(1.0, sums.directions / sums.records),
    )


def log_s_spread(sums: RecordSums) -> float:
    """Spread of log s among records with similar log-odds, from how unequal their squares are.

    If all had one s, the mean square of a sum of squares would be 1 + 2/df of its squared mean; a
    normal spread of log s multiplies this by exp(4 spread^2).
    """
    df = sums.n_out - 1.0
    seen = df > 0.0
    if not seen.any():
        return LOG_SPREAD
    order = np.argsort(np.where(seen, sums.mean_out, np.inf), kind="stable")[: int(seen.sum())]
    found = []
    for part in np.array_split(order, max(1, len(order) // RECORDS_PER_KNOT // 2)):
        each = sums.squares_out[part] / df[part]
        mean = max(float(each.mean()), sums.floor**2)
        found.append(float(np.mean((each / mean) ** 2) / np.mean(1.0 + 2.0 / df[part])))
    square = 0.25 * np.log(max(float(np.mean(found)), 1.0))
    weight = SPREAD_BELIEF / (SPREAD_BELIEF + sums.directions)
    # All records share the line's own error.
    error = 0.5 / (float(df[seen].mean()) * sums.directions)
    return float(np.sqrt(weight * LOG_SPREAD**2 + (1.0 - weight) * min(square, 0.36) + error))


def _spread_apart(knots: FloatArray, sums: RecordSums) -> FloatArray:
    """Knots that many records share are moved apart, so that the line has a slope between them."""
    least = max(1e-3 * float(knots[-1] - knots[0]), sums.floor)
    out = knots.copy()
    for k in range(1, len(out)):
        out[k] = max(out[k], out[k - 1] + least)
    return out


def _smooth_ratio(basis: FloatArray, top: FloatArray, bottom: FloatArray) -> FloatArray:
    weights = np.clip(basis, 0.0, None)
    overall = max(float(top.sum() / bottom.sum()), 1e-18)
    return np.asarray((weights.T @ top + overall) / (weights.T @ bottom + 1.0))


def _variance_line(
    values: FloatArray,
    fixed: FloatArray | float,
    spread: FloatArray,
    found: Moments,
    basis: FloatArray,
    squares: FloatArray,
    df: FloatArray,
    sums: RecordSums,
) -> FloatArray:
    """A step towards the line which, added to ``fixed``, is that of log standard deviations.

    A record's variance is one over a gamma variable, so that the logarithm of its root has the
    variance ``spread``, and its sum of squares is F-distributed: a few wild ones count for little.
    """
    prior_df = 0.5 / spread
    expected = found.places * np.exp(2.0 * (basis @ (values + fixed - spread)))
    total = expected.sum(axis=1)
    design = np.einsum("nu,nuk->nk", expected, basis) / total[:, None]
    prior = design @ prior_df
    ratio = squares / (np.maximum(df, 1.0) * total)
    surprise = (df + prior) * ratio / (prior + df * ratio) - 1.0
    information = 2.0 * df * prior / (df + prior + 2.0)
    # The records around a knot say no more than the directions of the models' noise.
    share = 1.0 / (1.0 + design @ design.sum(axis=0) / sums.directions)
    slopes = np.diff(np.eye(len(values)), axis=0)
    stiff = bends(np.full(len(values), BEND**-2.0)) + slopes.T @ slopes / SLOPE**2
    gram = design.T @ (design * (share * information)[:, None]) + stiff
    right = design.T @ (share * df * surprise) - stiff @ values
    step = np.linalg.solve(gram + 1e-3 * np.eye(len(values)), right)
    return np.asarray(values + np.clip(step, -0.5, 0.5))


def on_grid(grid: FloatArray, u: FloatArray, weight: FloatArray) -> FloatArray:
    """The mass of each row of ``u``, shared between the two nearest points of the grid, summed."""
    place = np.clip((u - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.000001).ravel()
    cell = place.astype(np.int64)
    upper = weight.ravel() * (place - cell)
    mass = np.bincount(cell, weight.ravel() - upper, len(grid))
    return np.asarray(mass + np.bincount(cell + 1, upper, len(grid)))


def _log_density(mass: FloatArray) -> FloatArray:
    reach = np.arange(-6, 7)
    kernel = np.exp(-0.5 * (reach / 1.5) ** 2)
    smooth = np.convolve(mass, kernel / kernel.sum(), mode="same") / mass.sum()
    return np.asarray(np.log(smooth + 1e-6 / len(mass)))


@dataclass(frozen=True)
class Moments:
    """What one pass over the records says of the population, record by record.

    ``places`` are the probabilities of the places ``u`` given the mean without the record alone,
    ``density`` is the mass of u on the grid.  ``score`` and ``information`` are the two sums whose
    ratio multiplies the variance of the shift around its mean: its squared gap over the variance
    that it should have, twice over, and once over.  The last four are for the shift's line: its
    design, the shift, its inverse variance, and the derivative by the power of s.
    """

    u: FloatArray
    places: FloatArray
    density: FloatArray
    score: FloatArray
    information: FloatArray
    design: FloatArray
    shift: FloatArray
    precision: FloatArray
    by_power: FloatArray


def refitted(population: Population, found: Moments, sums: RecordSums) -> Population:
    """The M step: lines and spreads again, from the expected unknowns of all records."""
    df_out, df_in = sums.n_out - 1.0, sums.n_in - 1.0
    sees_out, sees_in = bool(df_out.any()), bool(df_in.any())
    weight, knots = population.weight, population.knots
    basis = hats(np.clip(found.u.ravel(), knots[0], knots[-1]), knots).reshape(*found.u.shape, -1)
    log_s, log_s_spread = population.log_s, population.log_s_spread
    if sees_out:
        alike = np.full(len(log_s), log_s_spread**2)
        log_s = _variance_line(log_s, 0.0, alike, found, basis, sums.squares_out, df_out, sums)
    sizes, power = _shift_line(population, found, sees_out)
    spread, ratio = population.shift_spread, population.log_ratio
    if sees_in:
        spread = _stepped(
            spread, weight * float(found.score.sum()), weight * float(found.information.sum())
        )
        loose = log_s_spread / (1.0 + RATIO_LOOSENS * sizes)
        between = ratio_spread(sizes) ** 2 + loose**2
        line_r = _variance_line(-ratio, log_s, between, found, basis, sums.squares_in, df_in, sums)
        ratio = np.maximum(falling(-line_r, np.einsum("nu,nuk->k", found.places, basis)), 0.0)
    return replace(
        population,
        log_density=_log_density(found.density.sum(axis=0)),
        log_s=log_s,
        sizes=sizes,
        shift_power=power,
        shift_spread=spread,
        log_ratio=ratio,
    )


def _shift_line(population: Population, found: Moments, sees_out: bool) -> tuple[FloatArray, float]:
    """The shift in units of s, which falls with u and is nowhere below zero; its power of s."""
    power = population.shift_power
    if sees_out:
        gap = found.shift - found.design @ population.sizes
        weight = population.weight * found.precision
        top = float((weight * found.by_power) @ gap) + (SHIFT_POWER - power) / POWER_BELIEF**2
        bottom = float(weight @ found.by_power**2) + 1.0 / POWER_BELIEF**2
        power = float(np.clip(power + np.clip(top / bottom, -0.2, 0.2), 0.0, 3.0))
    sizes = fitted_line(found.design, found.shift, found.precision)
    sizes = falling(sizes, found.precision @ found.design**2)
    # No stretch of records is less exposed than not at all; what is cut off there is taken from
    # the others, so that the mean over all records stays what was seen.
    at_knots, positive = found.design.sum(axis=0), np.maximum(sizes, 0.0)
    seen, held = float(at_knots @ sizes), float(at_knots @ positive)
    # Beyond the outermost knots records count against the next, so that either may be negative.
    if seen > 0.0 and held > 0.0:
        return positive * (seen / held), power
    # The models show no shift at all.  Whatever little there is, hard records have more of it.
    knots = population.knots
    return LEAST_SHIFT * (knots[-1] - knots) / (knots[-1] - knots[0]), power


def _stepped(spread: float, score: float, information: float) -> float:
    """A step of the shift's spread towards where the likelihood and the belief are largest.

    EM's own step is slow where the noise is the larger part; this one has the same fixed point,
    where the derivative is zero, and multiplies.
    """
    square = spread**2
    top = score + SHIFT_BELIEF * SHIFT_SPREAD**2 / square**2
    bottom = information + SHIFT_BELIEF / square
    return min(float(spread * np.sqrt(np.clip(top / bottom, 0.25, 4.0))), MOST_SPREAD)


@dataclass(frozen=True)
class Nodes:
    """A block of records' nodes and their probabilities; axes are (record, s, u, r, share).

    The last axis is whether the record's shift is one of the few with a large variance.  Given a
    node, m is normal with mean ``m`` and variance ``m_variance``; ``gap`` is how far the
    record's own mean is from the population's, ``total`` the variance which that should have, and
    ``shift`` the population's.  ``alone`` are the probabilities of (s, u) from the log-odds
    without the record only, ``off`` how far log s is off its line, and ``follows`` the error
    expected in the mean with the record.
    """

    u: FloatArray
    log_s: FloatArray
    log_r: FloatArray
    probability: FloatArray
    m: FloatArray
    m_variance: FloatArray
    gap: FloatArray
    total: FloatArray
    shift: FloatArray
    alone: FloatArray
    off: FloatArray
    follows: FloatArray
    s_step: FloatArray
    r_step: FloatArray
    u_step: FloatArray


def nodes(sums: RecordSums, population: Population, counts: tuple[int, int, int] = FINE) -> Nodes:
    """Nodes and probabilities of the records in ``sums``, one block."""
    s_nodes, u_nodes, r_nodes = counts
    df_out, df_in = sums.n_out - 1.0, sums.n_in - 1.0
    line_s = population.expected_log_s(sums.mean_out)
    line_r, _ = population.expected_log_r(sums.mean_out, np.zeros_like(line_s))
    # Log r follows log s, so that both sums of squares say where s is.
    log_s, s_step = _spread_nodes(
        sums.squares_out + sums.squares_in * np.exp(2.0 * (line_s - line_r)),
        df_out + df_in,
        line_s,
        population.log_s_spread,
        s_nodes,
    )
    s = np.exp(log_s)
    z = np.linspace(-3.2, 3.2, u_nodes)
    noise = s / np.sqrt(sums.n_out)[:, None]
    u = sums.mean_out[:, None, None] + noise[:, :, None] * z
    off = log_s[:, :, None] - population.expected_log_s(u)
    log_p = (
        -0.5 * z * z
        + population.log_prior_u(u)
        - 0.5 * (off / population.log_s_spread) ** 2
        + _log_squares(sums.squares_out, df_out, log_s)[:, :, None]
    )
    alone = np.exp(log_p - log_p.max(axis=(1, 2), keepdims=True))
    alone /= alone.sum(axis=(1, 2), keepdims=True)
    mean_r, spread_r = population.expected_log_r(u, off)
    q = np.linspace(-R_REACH, R_REACH, r_nodes)
    log_r = mean_r[..., None] + spread_r[..., None] * q
    error_in = np.exp(log_r) / np.sqrt(sums.n_in)[:, None, None, None]
    correlation = sums.correlation[:, None, None, None]
    shift = population.expected_shift(u, off)
    line_error = sums.line_error[:, None, None] * s[:, :, None]
    around = population.shift_variance(shift, s[:, :, None], line_error)[:, :, :, None]
    total = around + ((1.0 - correlation**2) * error_in**2)[..., None]
    # The mean without the record errs by -z of its standard errors; the mean with it follows.
    gap = (sums.mean_in[:, None, None] - u - shift)[..., None] + (
        correlation * error_in * z[:, None]
    )
    gap = gap[..., None]
    log_q = log_p[..., None] - 0.5 * q**2 + _log_squares(sums.squares_in, df_in, log_r)
    log_q = log_q[..., None] + np.log(SHARES) - 0.5 * np.log(total) - 0.5 * gap**2 / total
    log_q -= log_q.max(axis=(1, 2, 3, 4), keepdims=True)
    probability = np.exp(log_q)
    probability /= probability.sum(axis=(1, 2, 3, 4), keepdims=True)
    gain = around / total
    middle = error_in[:, s_nodes // 2, u_nodes // 2, r_nodes // 2]
    return Nodes(
        u=u,
        log_s=log_s,
        log_r=log_r,
        probability=probability,
        m=(u + shift)[..., None, None] + gain * gap,
        m_variance=around * (1.0 - gain),
        gap=gap,
        total=total,
        shift=shift,
        alone=alone,
        off=off,
        follows=-np.einsum("nsu,u->n", alone, z) * sums.correlation * middle,
        s_step=s_step,
        r_step=spread_r * (q[1] - q[0]),
        u_step=noise * (z[1] - z[0]),
    )


def fit_population(sums: RecordSums, rounds: int = ROUNDS) -> Population:
    """EM over at most ``MOST_FITTED`` records, evenly chosen by rank of their means."""
    if sums.records > MOST_FITTED:
        order = np.argsort(sums.mean_out, kind="stable")
        places = np.linspace(0, sums.records - 1, MOST_FITTED).round().astype(np.int64)
        sums = sums.take(order[places])
    population = first_guess(sums)
    for _ in range(rounds):
        parts = [
            _moments(nodes(block, population, COARSE), block, population)
            for block, _ in blocks(sums)
        ]
        joined = Moments(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(Moments)
            )
        )
        population = refitted(population, joined, sums)
    return population


def blocks(sums: RecordSums) -> Iterator[tuple[RecordSums, slice]]:
    """The records a block at a time, with where each block lies."""
    for start in range(0, sums.records, BLOCK):
        rows = slice(start, min(start + BLOCK, sums.records))
        yield sums.take(rows), rows


def _moments(found: Nodes, sums: RecordSums, population: Population) -> Moments:
    """What one block says of the population.

    What the shift's line is regressed on are expectations given the log-odds without the record,
    and not those with it: a line that chose each record's u to suit m would prove itself.
    """
    p = found.probability
    weight = p.sum(axis=(3, 4))
    inverse = p / found.total
    size = found.shift * np.exp(found.log_s)[:, :, None]
    knots = population.knots
    middle = found.u[:, found.u.shape[1] // 2]
    basis = hats(found.u.ravel(), knots).reshape(*found.u.shape, -1)
    left = falls(population.size(found.u))
    tilted = found.alone * np.exp(
        population.expected_log_s(found.u) + population.shift_power * left * found.off
    )
    expected = np.einsum("nsu,nsu->n", found.alone, found.u)
    return Moments(
        u=middle,
        places=_places(middle, sums, population),
        density=on_grid(population.grid, found.u, weight)[None],
        score=np.einsum("nsu,c,nsurc->n", size, TIMES, inverse / found.total * found.gap**2),
        information=np.einsum("nsu,c,nsurc->n", size, TIMES, inverse),
        design=np.einsum("nsu,nsuk->nk", tilted, basis),
        shift=sums.mean_in - found.follows - expected,
        precision=1.0 / (found.total @ SHARES).reshape(len(p), -1).mean(axis=1),
        by_power=np.einsum("nsu,nsu->n", found.alone * left * found.off, found.shift),
    )


def _places(u: FloatArray, sums: RecordSums, population: Population) -> FloatArray:
    """Probabilities of each record's places ``u``, given its mean without it and nothing else.

    Lines of variances are regressed on them.  If the sums of squares had a say in where u is,
    records with large ones would be moved to where the line is high, and raise it further.  What is
    far from its mean has a large s, and counts for more: a Student law is a mixture of normals.
    """
    df = 0.5 / population.log_s_spread**2
    log_s = population.expected_log_s(u)
    square = ((sums.mean_out[:, None] - u) / np.exp(log_s)) ** 2 * sums.n_out[:, None]
    log_p = population.log_prior_u(u) - log_s - 0.5 * (df + 1.0) * np.log1p(square / df)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True) * (df + square) / (df + 1.0))


def _spread_nodes(
    squares: FloatArray, df: FloatArray, expected: FloatArray, spread: float, count: int
) -> tuple[FloatArray, FloatArray]:
    """Nodes of a log standard deviation around the shrunken one, and their distance."""
    prior_df = 0.5 / spread**2
    shrunken = (prior_df * np.exp(2.0 * expected) + squares) / (prior_df + df)
    width = REACH / np.sqrt(2.0 * (prior_df + df))
    step = 2.0 * width / (count - 1)
    return 0.5 * np.log(shrunken)[:, None] + step[:, None] * np.arange(
        -(count // 2), count // 2 + 1
    ), step


def _log_squares(squares: FloatArray, df: FloatArray, log_s: FloatArray) -> FloatArray:
    """Log likelihood of each record's sum of squares, over nodes of its log standard deviation."""
    shape = (-1, *[1] * (log_s.ndim - 1))
    inverse = np.exp(np.minimum(-2.0 * log_s, 60.0))
    return np.asarray(-df.reshape(shape) * log_s - 0.5 * squares.reshape(shape) * inverse)
