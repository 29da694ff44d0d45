"""What the records of one data set have in common, from a few models of each.

Every record has four unknowns: the mean log-odds over models that were not trained on it, u; their
standard deviation, s; the mean over models that were, m; and theirs, r.  The records are taken as
draws from one population, in which everything that training on a record does goes to zero together:

* u has any smooth density, and log s is normal around a broken line of u;
* the shift m - u has the mean D(u) (s / s(u))^t, where D is a broken line that only falls with u
  and s(u) is the line of s, and a spread around it in proportion to that mean;
* log r lies below log s by a broken line of u, with a spread in proportion to D(u) / s(u).

The lines and spreads are fitted to all records by EM, in which the noise of few models is part of
the likelihood (`record_posterior.py`): nothing is regressed on a noisy mean as if it were the
truth.  Records share the models' noise, so that thousands of them say no more of a spread than
`RecordSums.directions` independent ones would, and are given that weight against a weak belief.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.record_sums import RecordSums

# One knot of the broken lines for this many records, from 2 to 9 of them.
RECORDS_PER_KNOT, FEWEST_KNOTS, MOST_KNOTS = 60, 2, 9
DENSITY_POINTS = 81
# Spread of log s around its line, where it cannot be seen and where the fit starts.
LOG_SPREAD = 0.25
# The shift's spread as a share of its mean, and its power of s; the beliefs count as so many
# records for the former, and have this standard deviation for the latter.
SHIFT_SPREAD, SHIFT_BELIEF = 0.3, 12.0
SHIFT_POWER, POWER_BELIEF = 1.2, 0.7
# Spread of log r around its line where the shift is large, the shift in units of s at which it is
# half of that, and what is left without a shift: of log r, and of the shift in units of s.
RATIO_SPREAD, RATIO_HALF, LEAST_RATIO_SPREAD, LEAST_SHIFT_SPREAD = 0.2, 0.5, 0.03, 0.04
# How fast log r ceases to follow log s where the shift in units of s grows.
RATIO_LOOSENS = 0.3
SPREAD_BELIEF = 100.0
# The shift of the hardest records in units of s, where the models show none.
LEAST_SHIFT = 0.1
# What a bend of a line costs, in shares of the weight of the records at a knot.
BENDS = 0.02


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
    shift: FloatArray
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

    def expected_shift(self, u: FloatArray, off: FloatArray) -> FloatArray:
        """Mean of m - u for records with this u whose log s is ``off`` its line."""
        along = np.maximum(line(u, self.knots, self.shift), 0.0)
        return np.asarray(along * np.exp(self.shift_power * off))

    def shift_variance(
        self, shift: FloatArray, s: FloatArray, line_error: FloatArray
    ) -> FloatArray:
        """Variance of m - u around ``shift``, which a few models show with an error of its own.

        The line is nowhere below zero, and so does not err by more than it is.
        """
        around = (self.shift_spread * shift) ** 2 + (LEAST_SHIFT_SPREAD * s) ** 2
        return np.asarray(around + np.minimum(shift, line_error) ** 2)

    def expected_log_r(self, u: FloatArray, off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of log r for records with this u and ``off``."""
        log_s = self.expected_log_s(u)
        size = np.maximum(line(u, self.knots, self.shift), 0.0) / np.exp(log_s)
        mean = log_s - np.interp(u, self.knots, self.log_ratio) + off / (1.0 + RATIO_LOOSENS * size)
        return np.asarray(mean), ratio_spread(size)


def first_guess(sums: RecordSums) -> Population:
    """Where EM starts: lines through means that are shrunken as their noise demands.

    A line through the noisy means themselves would be too flat, and EM takes long to steepen it.
    """
    noisy = sums.mean_out
    count = int(np.clip(sums.records // RECORDS_PER_KNOT, FEWEST_KNOTS, MOST_KNOTS))
    total = float(np.var(noisy)) + sums.floor**2
    floor = sums.floor**2
    df_out, df_in = sums.n_out - 1.0, sums.n_in - 1.0
    knots = _spread_apart(np.quantile(noisy, np.linspace(0.01, 0.99, count)), sums)
    basis = hats(noisy, knots)
    if df_out.sum() > 0:
        variance = _smooth_ratio(basis, sums.squares_out, df_out)
    else:
        # One model on each side: how far apart the two are shows the noise, once what goes with
        # their mean is taken off.
        apart = sums.mean_in - sums.mean_out
        middle = 0.5 * (sums.mean_in + sums.mean_out)
        along = hats(
            middle, _spread_apart(np.quantile(middle, np.linspace(0.01, 0.99, count)), sums)
        )
        rest = apart - along @ _least_squares(along, apart, np.ones(sums.records))
        variance = _smooth_ratio(basis, rest**2, 2.0 - 2.0 * sums.correlation)
    noise = np.clip(basis @ variance, floor, None) / sums.n_out
    kept = np.clip(1.0 - float(noise.mean()) / total, 0.05, 1.0)
    centre = float(noisy.mean())
    u = centre + kept * (noisy - centre)
    # The density of u is as wide as u is, wider than that of its shrunken guesses.
    spread = centre + np.sqrt(kept) * (noisy - centre)
    knots = _spread_apart(np.quantile(spread, np.linspace(0.01, 0.99, count)), sums)
    basis = hats(u, knots)
    if df_in.sum() > 0:
        variance_in = _smooth_ratio(basis, sums.squares_in, df_in)
    else:
        variance_in = variance
    # Where the mean without a record errs upwards, the mean with it errs downwards.
    ratio = np.sqrt(np.clip(basis @ variance_in, floor, None) / sums.n_in / noise)
    follows = sums.correlation * ratio * (noisy - u)
    shift = _least_squares(basis, sums.mean_in - follows - u, np.ones(sums.records))
    low, high = float(noisy.min()), float(noisy.max())
    margin = 0.05 * (high - low) + sums.floor
    grid = np.linspace(low - margin, high + margin, DENSITY_POINTS)
    log_s = 0.5 * np.log(np.maximum(variance, floor))
    log_r = 0.5 * np.log(np.maximum(variance_in, floor))
    return Population(
        knots=knots,
        grid=grid,
        log_density=_smoothed_log_density(grid, spread, np.ones(sums.records)),
        log_s=log_s,
        log_s_spread=LOG_SPREAD,
        shift=np.maximum(falling(shift, np.ones(count)), 0.0),
        shift_power=SHIFT_POWER,
        shift_spread=SHIFT_SPREAD,
        log_ratio=np.maximum(falling(log_s - log_r, np.ones(count)), 0.0),
        weight=min(1.0, sums.directions / sums.records),
    )


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


def _least_squares(basis: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted least squares; bends of the line cost a little, so that empty stretches are safe."""
    columns = basis.shape[1]
    gram = basis.T @ (basis * weight[:, None])
    scale = float(np.trace(gram)) / columns
    bends = np.diff(np.eye(columns), n=2, axis=0) if columns > 2 else np.zeros((1, columns))
    gram = gram + BENDS * scale * bends.T @ bends + 1e-6 * scale * np.eye(columns)
    return np.asarray(np.linalg.solve(gram, basis.T @ (weight * y)))


def _smoothed_log_density(grid: FloatArray, u: FloatArray, weight: FloatArray) -> FloatArray:
    step = float(grid[1] - grid[0])
    place = np.clip((u - grid[0]) / step, 0.0, len(grid) - 1.000001)
    cell = place.astype(np.int64)
    share = place - cell
    mass = np.bincount(cell, weight * (1.0 - share), len(grid))
    mass = mass + np.bincount(cell + 1, weight * share, len(grid))
    reach = np.arange(-6, 7)
    kernel = np.exp(-0.5 * (reach / 1.5) ** 2)
    mass = np.convolve(mass, kernel / kernel.sum(), mode="same") / weight.sum()
    return np.asarray(np.log(mass + 1e-6 / len(grid)))


@dataclass(frozen=True)
class Moments:
    """What one pass over the records says of the population.

    Node by node of (record, s, u): ``weight``, which sums to one for every record, ``u``,
    ``log_s`` and the record's sums of squares.  ``score`` and ``information`` are the two sums
    whose ratio multiplies the variance of the shift around its mean: its squared gap over the
    variance that it should have, twice over, and once over.  Record by record: the design of the
    shift's line, the shift, its inverse variance, and the derivative by the power of s.
    """

    weight: FloatArray
    u: FloatArray
    log_s: FloatArray
    score: FloatArray
    information: FloatArray
    squares_out: FloatArray
    df_out: FloatArray
    squares_in: FloatArray
    df_in: FloatArray
    design: FloatArray
    shift: FloatArray
    precision: FloatArray
    by_power: FloatArray


def refitted(population: Population, found: Moments, sees_out: bool, sees_in: bool) -> Population:
    """The M step: lines and spreads again, from the expected unknowns of all records."""
    w, u, knots = found.weight, found.u, population.knots
    basis = hats(np.clip(u, knots[0], knots[-1]), knots)
    at_knots = np.clip(basis, 0.0, None).T @ w
    log_s, log_s_spread = population.log_s, population.log_s_spread
    if sees_out:
        # The lines of log s and log r are those whose mean variances are the observed ones: the
        # likelihood would bend them to what else it cannot explain.
        variance = _smooth_ratio(basis, w * found.squares_out, w * found.df_out)
        log_s = 0.5 * np.log(variance) - log_s_spread**2
        squares = float((found.log_s - basis @ log_s) ** 2 @ w)
        log_s_spread = float(
            np.sqrt((squares + SPREAD_BELIEF * LOG_SPREAD**2) / (float(w.sum()) + SPREAD_BELIEF))
        )
    shift, power = _shift_line(population, found, sees_out)
    spread, ratio = population.shift_spread, population.log_ratio
    if sees_in:
        spread = _stepped(
            spread,
            population.weight * float(found.score @ w),
            population.weight * float(found.information @ w),
        )
        size = shift / np.exp(log_s)
        loose = log_s_spread / (1.0 + RATIO_LOOSENS * size)
        between = ratio_spread(size) ** 2 + loose**2
        variance = _smooth_ratio(basis, w * found.squares_in, w * found.df_in)
        ratio = log_s - 0.5 * np.log(variance) + between
        ratio = np.maximum(falling(ratio, at_knots), 0.0)
    return replace(
        population,
        log_density=_smoothed_log_density(population.grid, u, w),
        log_s=log_s,
        log_s_spread=log_s_spread,
        shift=shift,
        shift_power=power,
        shift_spread=spread,
        log_ratio=ratio,
    )


def _shift_line(population: Population, found: Moments, sees_out: bool) -> tuple[FloatArray, float]:
    """The line of the shift, which only falls with u and is nowhere below zero, and its power."""
    power = population.shift_power
    if sees_out:
        gap = found.shift - found.design @ population.shift
        weight = population.weight * found.precision
        top = float((weight * found.by_power) @ gap) + (SHIFT_POWER - power) / POWER_BELIEF**2
        bottom = float(weight @ found.by_power**2) + 1.0 / POWER_BELIEF**2
        power = float(np.clip(power + np.clip(top / bottom, -0.2, 0.2), 0.0, 3.0))
    shift = _least_squares(found.design, found.shift, found.precision)
    basis = np.clip(found.design, 0.0, None)
    shift = falling(shift, basis.T @ found.precision)
    at_knots = basis.sum(axis=0)
    # No stretch of records is less exposed than not at all; what is cut off there is taken from
    # the others, so that the mean over all records stays what was seen.
    seen, positive = float(at_knots @ shift), np.maximum(shift, 0.0)
    total = float(at_knots @ positive)
    if seen > 0.0:
        return positive * (seen / total), power
    # The models show no shift at all.  Whatever little there is, hard records have more of it.
    knots = population.knots
    s_typical = float(np.exp(population.log_s.mean()))
    return LEAST_SHIFT * s_typical * (knots[-1] - knots) / (knots[-1] - knots[0]), power


def falling(values: FloatArray, weight: FloatArray) -> FloatArray:
    """The nearest values that never rise (pool adjacent violators); their mean stays."""
    pooled: list[list[float]] = []
    for value, each in zip(values, weight + 1e-9, strict=True):
        pooled.append([float(value), float(each), 1.0])
        while len(pooled) > 1 and pooled[-2][0] < pooled[-1][0]:
            last, before = pooled.pop(), pooled.pop()
            total = last[1] + before[1]
            mean = (last[0] * last[1] + before[0] * before[1]) / total
            pooled.append([mean, total, last[2] + before[2]])
    return np.repeat([p[0] for p in pooled], [int(p[2]) for p in pooled])


def _stepped(spread: float, score: float, information: float) -> float:
    """A step of the shift's spread towards where the likelihood and the belief are largest.

    EM's own step is slow where the noise is the larger part; this one has the same fixed point,
    where the derivative is zero, and multiplies.
    """
    square = spread**2
    top = score + SHIFT_BELIEF * SHIFT_SPREAD**2 / square**2
    bottom = information + SHIFT_BELIEF / square
    return float(spread * np.sqrt(np.clip(top / bottom, 0.25, 4.0)))
