"""Both laws of the own label's log-odds, for models with several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.known_others import own_log_odds
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.scalar_laws import PredictionLaws, Question
from leakscope.fitted.softmax_cavity import (
    DENSE,
    SoftmaxCavity,
    amplified,
    pooled_force,
    solve_softmax,
)
from leakscope.fitted.softmax_dense import DenseSoftmax
from leakscope.fitted.softmax_loss import (
    BLOCK,
    SoftmaxMoments,
    carried_in,
    prox,
    sigma_points,
    softmax,
    softmax_moments,
    square_root,
)
from leakscope.fitted.softmax_many import LAST_DRAWS, solve_many

# Records whose neighbours are looked at: a sample, or all up to the second number.
_NEIGHBOURS_OF = 32
_NEIGHBOURS_OF_ALL = 4000

# Draws that tell smoothed from plain: both see the same ones, and all records are averaged.
_GAP_DRAWS = 8

_SEED = 4077


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxLaws(PredictionLaws):
    """The laws of the log-odds, with the chance of the right label and the laws of all logits.

    Attributes
    ----------
    right_in, right_out
        The probability that the own label comes out on top.
    logits_in, logits_out
        Mean (N x C) and covariance (N x C x C) of the centred logits.
    own
        The records' classes.
    """

    right_in: FloatArray
    right_out: FloatArray
    logits_in: tuple[FloatArray, FloatArray]
    logits_out: tuple[FloatArray, FloatArray]
    own: FloatArray

    def logit_laws(self) -> list[tuple[FloatArray, FloatArray]]:
        """Mean and covariance of the other classes' logits less the own one, in and out."""
        size, classes = self.logits_in[0].shape
        others = np.array([[c for c in range(classes) if c != own] for own in self.own.astype(int)])
        rows = np.arange(size)
        change = np.zeros((size, classes - 1, classes))
        change[rows[:, None], np.arange(classes - 1), others] = 1.0
        change[rows[:, None], np.arange(classes - 1), self.own.astype(int)[:, None]] -= 1.0
        laws = []
        for mean, covariance in (self.logits_in, self.logits_out):
            moved = change @ covariance @ np.swapaxes(change, 1, 2)
            trace = np.einsum("icc->i", moved) / (classes - 1)
            moved = moved + (1e-9 * trace)[:, None, None] * np.eye(classes - 1)
            laws.append(((change @ mean[:, :, None])[:, :, 0], moved))
        return laws


def softmax_laws(problem: ConvexProblem, question: Question, fraction: float) -> SoftmaxLaws:
    """The laws under the pool or the population question."""
    assert problem.X is not None
    many = problem.classes * problem.X.shape[1] > DENSE
    cavity = solve_many(problem, fraction) if many else solve_softmax(problem, fraction)
    pooled = pooled_force(cavity.moments, fraction)
    source, variance = pooled, cavity.variance
    if question == "population":
        source = fraction * cavity.moments.square
        variance = cavity.spread(source, LAST_DRAWS)
    elif fraction == 1.0:
        variance = np.zeros_like(variance)
    moved = _moved(problem, cavity, variance)
    direction = _direction(cavity.mean, problem.y)
    plain = _plain_force(problem, cavity, fraction)
    return SoftmaxLaws(
        mean_in=moved["in"][0],
        sd_in=moved["in"][1],
        mean_out=moved["out"][0],
        sd_out=moved["out"][1],
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=_gap(cavity, pooled, plain, direction) if fraction < 1.0 else 0.0,
        largest_share=_largest_share(cavity, source, direction),
        right_in=moved["in"][2],
        right_out=moved["out"][2],
        logits_in=(moved["in"][3], moved["in"][4]),
        logits_out=(cavity.mean, variance),
        own=problem.y,
    )


def _moved(
    problem: ConvexProblem, cavity: SoftmaxCavity, variance: FloatArray
) -> dict[str, list[FloatArray]]:
    """Mean and sd of the log-odds, chance of the right label, mean and covariance of the logits."""
    size, classes = cavity.mean.shape
    points = sigma_points(classes, 24, _SEED)
    root = square_root(variance)
    weight, codes = problem.sample_weights, problem.y.astype(np.intp)
    found: dict[str, list[FloatArray]] = {
        name: [
            np.empty(size),
            np.empty(size),
            np.empty(size),
            np.empty((size, classes)),
            np.empty((size, classes, classes)),
        ]
        for name in ("in", "out")
    }
    for start in range(0, size, BLOCK):
        part = slice(start, min(start + BLOCK, size))
        w = weight[part, None, None]
        target = np.zeros((len(w), 1, classes))
        target[np.arange(len(w)), 0, codes[part]] = 1.0
        kw = cavity.diagonal[part, None, :] * w
        centre = cavity.mean[part, None, :]
        eps = points @ np.swapaxes(root[part], 1, 2)
        first = prox(centre, kw, target, centre - 0.5 * kw * (softmax(centre) - target))
        inside = prox(centre + eps, kw, target, first + carried_in(softmax(first), kw, eps))
        for name, z in (("in", inside), ("out", centre + eps)):
            store = found[name]
            swapped = np.ascontiguousarray(np.swapaxes(z, 0, 1))
            score = own_log_odds(swapped, problem.y[part])
            store[0][part] = score.mean(axis=0)
            store[1][part] = score.std(axis=0)
            store[2][part] = _right(swapped, codes[part])
            z = z - z.mean(axis=2, keepdims=True)
            store[3][part] = z.mean(axis=1)
            away = z - z.mean(axis=1, keepdims=True)
            store[4][part] = np.swapaxes(away, 1, 2) @ away / z.shape[1]
    return found


def _right(z: FloatArray, codes: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    """The chance that the own logit is the largest: the margin taken as normal over the points."""
    rows = np.arange(z.shape[1])
    own = z[:, rows, codes]
    others = z.copy()
    others[:, rows, codes] = -np.inf
    margin = own - others.max(axis=-1)
    spread = np.maximum(margin.std(axis=0), 1e-12)
    return np.asarray(special.ndtr(margin.mean(axis=0) / spread))


def _direction(mean: FloatArray, y: FloatArray) -> FloatArray:
    """The gradient of the own label's log-odds with respect to the logits, N x C."""
    rows, codes = np.arange(len(y)), y.astype(int)
    others = mean.copy()
    others[rows, codes] = -np.inf
    gradient = -softmax(others)
    gradient[rows, codes] = 1.0
    return np.asarray(gradient)


def _plain_force(problem: ConvexProblem, cavity: SoftmaxCavity, fraction: float) -> FloatArray:
    """t_j by the delta method at the mean prediction."""
    found = softmax_moments(
        cavity.mean,
        None,
        cavity.diagonal,
        problem.y.astype(np.intp),
        problem.sample_weights,
        np.zeros((1, problem.classes)),
    )
    linear = found.slope @ cavity.variance @ found.slope
    return pooled_force(
        SoftmaxMoments(found.force, found.slope, found.square + linear, linear), fraction
    )


def _gap(
    cavity: SoftmaxCavity, smoothed: FloatArray, plain: FloatArray, direction: FloatArray
) -> float:
    """Median of smoothed over plain sd of the log-odds, less one."""
    pair = [
        np.einsum("ic,icd,id->i", direction, cavity.spread(t, _GAP_DRAWS), direction)
        for t in (smoothed, plain)
    ]
    return float(np.median(np.sqrt(pair[0] / np.maximum(pair[1], 1e-300))) - 1.0)


def _largest_share(cavity: SoftmaxCavity, source: FloatArray, direction: FloatArray) -> FloatArray:
    """The largest neighbour of each record, or of a sample where there are many coefficients."""
    size = len(direction)
    t = amplified(cavity.curvature, cavity.kappa, source)
    reply = direction + (direction[:, None, :] @ cavity.kappa @ cavity.curvature)[:, 0, :]
    looked = np.arange(size)
    if not isinstance(cavity.response, DenseSoftmax) or size > _NEIGHBOURS_OF_ALL:
        looked = np.unique(np.linspace(0, size - 1, _NEIGHBOURS_OF).astype(int))
    result = np.full(size, np.nan)
    for start in range(0, len(looked), 16):
        records = looked[start : start + 16]
        rows = np.swapaxes(cavity.response.rows(records, reply[records]), 0, 1)
        part = ((rows @ t) * rows).sum(axis=2)
        part[records, np.arange(len(records))] = 0.0
        result[records] = part.max(axis=0) / np.maximum(part.sum(axis=0), 1e-300)
    return result
