"""Both laws of every record's prediction, for models with one output, from the cavity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.cavity import Cavity, force_variance, solve_cavity
from leakscope.fitted.losses import LOSSES, hermite
from leakscope.fitted.problem import ConvexProblem

Question = Literal["pool", "population", "known_others"]

# Entries of G looked at for the largest neighbours; beyond it a sample of the records is taken.
NEIGHBOUR_BUDGET = 6e7

# Below this spread of the predictions the loss is quadratic over it, and smoothing changes nothing.
_NARROW = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionLaws:
    """The moments of each record's score in and out, and how well they are known.

    Attributes
    ----------
    mean_in, sd_in, mean_out, sd_out
        Of the prediction z (one output) or of the own label's log-odds (several).
    rounds, change, converged
        Of the cavity.
    smoothing_gap
        Median over the records of smoothed sd over plain sd, less one; 0 where nothing is smoothed.
    largest_share
        The largest share of one other record in the variance; NaN where it was not looked at.
    yield_in, yield_out
        x' H^{-1} x of models with and without the record: what a posterior draw of unit variance
        adds to the variance of the prediction; None for several classes.
    moved
        How far the record moves the coefficients, as a Euclidean norm; known others only.
    """

    mean_in: FloatArray
    sd_in: FloatArray
    mean_out: FloatArray
    sd_out: FloatArray
    rounds: int
    change: float
    converged: bool
    smoothing_gap: float
    largest_share: FloatArray
    yield_in: FloatArray | None = None
    yield_out: FloatArray | None = None
    moved: FloatArray | None = None


def scalar_laws(problem: ConvexProblem, question: Question, fraction: float) -> PredictionLaws:
    """The laws of the predictions under the pool or the population question."""
    cavity = solve_cavity(problem, fraction)
    pooled = force_variance(cavity.moments, cavity.variance, fraction)
    if question == "population":
        # Fresh others: the finite pool's correction goes.  The force is taken at the pool's
        # spread, because the pool's mean is itself one draw of the population's law.
        source = fraction * cavity.moments.square
        variance = cavity.spread(source)
    else:
        source, variance = pooled, cavity.variance
    variance = np.maximum(variance, _smallest(problem, variance))
    mean_in, sd_in = pushed(problem, cavity.mean, variance, cavity.kappa)
    return PredictionLaws(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=cavity.mean,
        sd_out=np.sqrt(variance),
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=_smoothing_gap(problem, cavity, fraction),
        largest_share=_largest_share(cavity, source),
        yield_in=_with_record(problem, mean_in, cavity.kappa),
        yield_out=cavity.kappa,
    )


def _with_record(problem: ConvexProblem, z: FloatArray, kappa: FloatArray) -> FloatArray:
    """kappa / (1 + kappa h): the record's own curvature stiffens the model at itself."""
    h = problem.sample_weights * LOSSES[problem.loss].curvature(z, problem.y)
    return np.asarray(kappa / (1.0 + kappa * h))


def pushed(
    problem: ConvexProblem, mean: FloatArray, variance: FloatArray, kappa: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of N(mean, variance) pushed through prox_kappa."""
    loss, weight, y = LOSSES[problem.loss], problem.sample_weights, problem.y
    if loss.quadratic:
        return loss.prox(mean, kappa * weight, y), np.sqrt(variance) / (1.0 + kappa * weight)
    spread = np.sqrt(variance)
    nodes, shares = hermite(9)
    first, second = np.zeros(len(y)), np.zeros(len(y))
    centre = loss.prox(mean, kappa * weight, y)
    for node, share in zip(nodes, shares, strict=True):
        moved = loss.prox(mean + node * spread, kappa * weight, y) - centre
        first += share * moved
        second += share * moved**2
    return centre + first, np.sqrt(np.maximum(second - first**2, 0.0))


def _smallest(problem: ConvexProblem, variance: FloatArray) -> float:
    """A floor for records whose prediction does not vary at all (rows of zeros)."""
    scale = float(np.median(variance))
    return max(1e-14 * scale, 1e-300)


def _smoothing_gap(problem: ConvexProblem, cavity: Cavity, fraction: float) -> float:
    if LOSSES[problem.loss].quadratic or float(np.max(cavity.variance)) < _NARROW**2:
        return 0.0
    plain = solve_cavity(problem, fraction, nodes=1, start=cavity, tolerance=1e-2)
    ratio = np.sqrt(cavity.variance / np.maximum(plain.variance, 1e-300))
    return float(np.median(ratio) - 1.0)


def _largest_share(cavity: Cavity, source: FloatArray) -> FloatArray:
    size = len(source)
    result = np.full(size, np.nan)
    rows = max(1, min(512, int(4e6 / size)))
    starts = np.arange(0, size, rows)
    looked = max(1, int(NEIGHBOUR_BUDGET / size / rows))
    if looked < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, looked).astype(int)]
    for start in starts:
        part = slice(int(start), min(int(start) + rows, size))
        result[part] = cavity.contributions(source, part).max(axis=1)
    return result
