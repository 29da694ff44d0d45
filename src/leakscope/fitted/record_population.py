"""What the records of one data set have in common, from a few models of each.

Every record has four unknowns: the mean log-odds over models that were not trained on it, u; their
standard deviation, s; the mean over models that were, m; and theirs, r.  The records are taken as
draws from one population:

* u has any smooth density;
* log s is normal around a broken line of u;
* m is normal around a broken line of u, tilted by how far log s lies off its own line;
* log r is normal around another such line.

The lines, the spreads around them and the density are fitted to all records by EM, in which the
noise of few models is part of the likelihood (`record_posterior.py`): nothing is regressed on a
noisy mean as if it were the truth.
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
# With one model on a side its noise cannot be seen: the share of the variance between records that
# it is taken to be, and the spread of m around its line in units of s.
NOISE_SHARE, SHIFT_SPREAD = 0.2, 0.1
# Spread of log s and of log r around their lines, where it cannot be seen and where the fit starts.
LOG_SPREAD, LOG_RATIO_SPREAD = 0.25, 0.13
LEAST_SPREAD = 0.01
# Weak beliefs, in records' worth, which decide only where the models are too few: the spread of
# log s and of log r, that of m in units of s, and how m and log r go with log s.
SPREAD_BELIEF, SHIFT_BELIEF, TILT_BELIEF = 100.0, 12.0, 30.0
TILT_OF_LOG_R = 0.8
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


@dataclass(frozen=True)
class Population:
    """The population's lines, spreads and density; ``knots`` are values of u."""

    knots: FloatArray
    tilt_knots: FloatArray
    grid: FloatArray
    log_density: FloatArray
    log_s: FloatArray
    log_s_spread: float
    mean_in: FloatArray
    mean_in_tilt: FloatArray
    mean_in_spread: FloatArray
    log_r: FloatArray
    log_r_tilt: FloatArray
    log_r_spread: float

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

    def expected_in(self, u: FloatArray, off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of m and of log r, for records with this u whose log s is ``off`` its line."""
        mean = line(u, self.knots, self.mean_in)
        mean = mean + off * np.interp(u, self.tilt_knots, self.mean_in_tilt)
        log_r = np.interp(u, self.knots, self.log_r)
        return mean, log_r + off * np.interp(u, self.tilt_knots, self.log_r_tilt)

    def relative_spread_in(self, u: FloatArray) -> FloatArray:
        """Standard deviation of m around its mean, in units of s."""
        return np.asarray(np.interp(u, self.knots, self.mean_in_spread))


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
        variance = np.full(count, NOISE_SHARE * total)
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
    # The shift is fitted and not m, since a straight m is one without bends in any knots.
    mean_in = knots + _least_squares(basis, sums.mean_in - follows - u, np.ones(sums.records))
    if df_in.sum() == 0:
        residual = (sums.mean_in - follows - basis @ mean_in) ** 2
        variance_in = _smooth_ratio(basis, residual, np.ones(sums.records))
    low, high = float(noisy.min()), float(noisy.max())
    margin = 0.05 * (high - low) + sums.floor
    grid = np.linspace(low - margin, high + margin, DENSITY_POINTS)
    tilts = 3 if count > 2 else count
    return Population(
        knots=knots,
        tilt_knots=knots[[0, len(knots) // 2, -1]] if count > 2 else knots,
        grid=grid,
        log_density=_smoothed_log_density(grid, spread, np.ones(sums.records)),
        log_s=0.5 * np.log(np.maximum(variance, floor)),
        log_s_spread=LOG_SPREAD,
        mean_in=mean_in,
        mean_in_tilt=np.zeros(tilts),
        mean_in_spread=np.full(count, SHIFT_SPREAD),
        log_r=0.5 * np.log(np.maximum(variance_in, floor)),
        log_r_tilt=np.full(tilts, TILT_OF_LOG_R),
        log_r_spread=LOG_RATIO_SPREAD,
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
    gram = gram + BENDS * scale * bends.T @ bends + 1e-9 * scale * np.eye(columns)
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
    """What one pass over the records says of the population, node by node of (record, s, u).

    ``weight`` sums to one for every record; ``log_r`` is an expectation at the node.
    ``score`` and ``information`` are the two sums whose ratio multiplies the variance of m around
    its line: the squared gap between a record's own mean and the line over the variance that it
    should have, twice over, and once over.
    """

    weight: FloatArray
    u: FloatArray
    log_s: FloatArray
    score: FloatArray
    information: FloatArray
    s: FloatArray
    log_r: FloatArray
    log_r_variance: FloatArray
    squares_out: FloatArray
    df_out: FloatArray
    squares_in: FloatArray
    df_in: FloatArray


def tilt_hats(u: FloatArray, population: Population) -> FloatArray:
    """The functions of which the tilts are sums: constant beyond the last knots."""
    knots = population.tilt_knots
    return hats(np.clip(u, knots[0], knots[-1]), knots)


def mean_line(
    population: Population, design: FloatArray, y: FloatArray, weight: FloatArray
) -> FloatArray:
    """The line of m and its tilt, from ``y``, the shifts; they may only fall with u."""
    count = len(population.knots)
    spread = population.log_s_spread
    mean = _joint(design, y, weight, count, spread, 0.0, float(len(y)))
    at_knots = np.clip(design[:, :count], 0.0, None).T @ weight
    shift = falling(mean[:count], at_knots)
    # No stretch of records is less exposed than not at all; what is cut off there is taken from
    # the others, so that the mean over all records stays what was seen.
    seen, positive = float(at_knots @ shift), np.maximum(shift, 0.0)
    total = float(at_knots @ positive)
    mean[:count] = population.knots + positive * (max(seen, 0.0) / total if total > 0 else 0.0)
    return mean


def refitted(
    population: Population, found: Moments, mean: FloatArray, sees_out: bool, sees_in: bool
) -> Population:
    """The M step: lines and spreads again, from the expected unknowns of all records."""
    w, u = found.weight, found.u
    knots, total = population.knots, float(found.weight.sum())
    basis = hats(np.clip(u, knots[0], knots[-1]), knots)
    log_s, log_s_spread = population.log_s, population.log_s_spread
    if sees_out:
        # The lines of log s and log r are those whose mean variances are the observed ones: the
        # likelihood would bend them to what else it cannot explain.
        variance = _smooth_ratio(basis, w * found.squares_out, w * found.df_out)
        log_s = 0.5 * np.log(variance) - log_s_spread**2
        log_s_spread = _spread(float((found.log_s - basis @ log_s) ** 2 @ w), total, LOG_SPREAD)
    off = found.log_s - basis @ log_s
    tilts = tilt_hats(u, population)
    design = np.hstack([basis, tilts * off[:, None]]) if sees_out else basis
    count = basis.shape[1]

    at_knots = np.clip(basis, 0.0, None).T @ w
    spread = population.mean_in_spread
    if sees_in:
        hat = np.clip(basis, 0.0, None) * w[:, None]
        score, information = hat.T @ found.score, hat.T @ found.information
        whole = float(np.sqrt(np.mean(spread**2)))
        whole = float(_stepped(whole, score.sum(), information.sum(), SHIFT_SPREAD))
        spread = _stepped(spread, score, information, whole)
    ratio_line = _joint(design, found.log_r, w, count, log_s_spread, TILT_OF_LOG_R, total)
    log_r_spread = population.log_r_spread
    if sees_in:
        squares = (found.log_r - design @ ratio_line) ** 2 + found.log_r_variance
        log_r_spread = _spread(float(squares @ w), total, LOG_RATIO_SPREAD)
        variance = _smooth_ratio(basis, w * found.squares_in, w * found.df_in)
        tilt = (
            np.interp(population.knots, population.tilt_knots, ratio_line[count:])
            if sees_out
            else TILT_OF_LOG_R
        )
        between = log_r_spread**2 + (tilt * log_s_spread) ** 2
        ratio_line[:count] = 0.5 * np.log(variance) - between
    ratio_line[:count] = log_s - np.maximum(falling(log_s - ratio_line[:count], at_knots), 0.0)
    return replace(
        population,
        log_density=_smoothed_log_density(population.grid, u, w),
        log_s=log_s,
        log_s_spread=log_s_spread,
        mean_in=mean[:count],
        mean_in_tilt=mean[count:] if sees_out else population.mean_in_tilt,
        mean_in_spread=spread,
        log_r=ratio_line[:count],
        log_r_tilt=ratio_line[count:] if sees_out else population.log_r_tilt,
        log_r_spread=log_r_spread,
    )


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


def _stepped(
    spread: FloatArray | float, score: FloatArray, information: FloatArray, belief: float
) -> FloatArray:
    """A step of the spread of m towards where the likelihood and the belief are largest.

    EM's own step is slow where the noise is the larger part; this one has the same fixed point,
    where the derivative is zero, and multiplies.
    """
    square = np.square(spread)
    top = score + SHIFT_BELIEF * belief**2 / square**2
    bottom = information + SHIFT_BELIEF / square
    return np.maximum(spread * np.sqrt(np.clip(top / bottom, 0.25, 4.0)), LEAST_SPREAD)


def _joint(
    design: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    count: int,
    spread: float,
    tilt: float,
    records: float,
) -> FloatArray:
    """Coefficients of a broken line and of its tilt, which is believed to be near ``tilt``."""
    gram = design.T @ (design * weight[:, None])
    right = design.T @ (weight * y)
    scale = float(np.trace(gram[:count, :count])) / count
    if count > 2:
        bends = np.diff(np.eye(count), n=2, axis=0)
        gram[:count, :count] += BENDS * scale * bends.T @ bends
    gram += 1e-6 * scale * np.eye(len(gram))
    belief = TILT_BELIEF * spread**2 * float(weight.sum()) / records
    tilts = np.arange(count, len(gram))
    gram[tilts, tilts] += belief
    right[tilts] += belief * tilt
    return np.asarray(np.linalg.solve(gram, right))


def _spread(squares: float, total: float, belief: float) -> float:
    held = SPREAD_BELIEF * belief**2
    return float(np.sqrt((squares + held) / (total + SPREAD_BELIEF)))
