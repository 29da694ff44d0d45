"""What the records of one data set have in common, from a few models of each.

Every record has four unknowns: the mean log-odds over models that were not trained on it, u; their
standard deviation, s; the mean over models that were, m; and theirs, r.  The records are taken as
draws from one population, in which everything that training on a record does goes to zero together:

* u has any smooth density, and log s is normal around a broken line of u;
* the shift m - u has the mean d(u) s(u) (s / s(u))^t, where d is a broken line that only falls with
  u, s(u) the line of s and t smaller where d is large; its variance is in proportion to that mean
  and to s, and nine times as large for one record in ten;
* log r lies below log s by a broken line of u, with a spread that grows with d.

The lines and the spread of the shift are fitted to all records by EM, in which the noise of few
models is part of the likelihood (`record_posterior.py`): nothing is regressed on a noisy mean as if
it were the truth.  Records share the models' noise, so that thousands of them say no more than
`RecordSums.directions` independent ones would, and are given that weight against weak beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.broken_lines import bends, falling, fitted_line, hats, line
from leakscope.fitted.record_sums import RecordSums

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

    @cached_property
    def _slack(self) -> float:
        return float(self.grid[1] - self.grid[0])

    def log_prior_u(self, u: FloatArray) -> FloatArray:
        """Log density of u; beyond the grid it falls like an exponential law's."""
        inside = np.interp(u, self.grid, self.log_density)
        beyond = np.maximum(self.grid[0] - u, 0.0) + np.maximum(u - self.grid[-1], 0.0)
        return np.asarray(inside - 0.5 * beyond / self._slack)

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
    seen = float(at_knots @ sizes)
    if seen > 0.0:
        return positive * (seen / float(at_knots @ positive)), power
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
