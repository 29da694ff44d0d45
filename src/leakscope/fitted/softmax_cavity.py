"""Both laws of the own label's log-odds from one fit, for models with several classes.

The cavity as in `cavity`, but z and F are vectors, and kappa, c, t and V blocks of C x C:
kappa = (I - g c)^{-1} g, c = f E[F'] (I - f kappa E[F'])^{-1},
t = f E[F F'] - f^2 E[F] E[F]' - f^2 E[F'] V E[F'], t' = (I + c kappa) t (I + kappa c) and
V_i = (I + kappa c) [sum over j != i of G_ij t'_j G_ij'] (I + c kappa).

Up to `DENSE` coefficients the Hessian is inverted whole in each round (`solve_softmax`).  Beyond
that (`solve_many`) a factorisation of Hbar costs as much as several shadow fits, and a step with
it next to nothing.  So the first rounds take the predictions without the record as points: then
the mean model minimises f sum_j M_{(1-f) k_j}[l_j] + theta' Lambda theta / 2, M the Moreau
envelope, and all is in closed form: with p at the proximal point, c = diag(a) - a a'/sum(a) with
a = f w p / (1 + (1-f) k w p), and E[F'] likewise with a = w p / (1 + k w p).  The last rounds
average over the sigma points.  There everything is in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.cavity import PredictionLaws, Question, Shares, too_small
from leakscope.fitted.losses import (
    Codes,
    SoftmaxMoments,
    centred,
    diagonal_yield,
    one_hot,
    own_log_odds,
    pushed_blocks,
    sigma_points,
    softmax,
    softmax_moments,
    softmax_prox,
    square_root,
)
from leakscope.fitted.problem import ConvexProblem
from leakscope.fitted.responses import DenseSoftmax, StructuredSoftmax

SoftmaxResponse = DenseSoftmax | StructuredSoftmax

# Arrays of records x C x C that are there at once; measured: 21 to 24 with 30 and 60 classes.
BLOCKS_AT_ONCE = 22

# Coefficients up to which the Hessian is inverted whole.
DENSE = 2500

TOLERANCE = 4e-3
MAX_ROUNDS = 60
# Sigma points at least, and the seeds that turn them, in the rounds and for the laws.
POINTS, SEED, LAWS_SEED = 24, 20261, 4077

# Many coefficients.  Where the rounds stop: V per record, whose draws alone are off by more.
MANY_TOLERANCE = 0.1
MANY_ROUNDS = 8
# Steps of the mean model without a spread, and with one, for each factorisation.
STEPS = 3
HELD = 3
# Class by class the curvature is too low in some directions, so a whole step would overshoot.
_UNCOUPLED_STEP = 0.6
# By how much less kappa moves in the next round: 0.14, 0.021, 0.006 on Location-30.
_STILL_TO_COME = 1.0 / 6.0
# Draws in the rounds, and for the last variance.
ROUND_DRAWS = 16
LAST_DRAWS = 192
# Draws that tell smoothed from plain: both see the same ones, and all records are averaged.
_GAP_DRAWS = 8

# Rows of G that may be looked at: so many entries, or so many rows for each coefficient where the
# Hessian is inverted whole; a few where each row is solved for.
_NEIGHBOUR_BUDGET = 1.6e7
_ROWS_PER_COEFFICIENT = 12
_ROWS_SOLVED_FOR = 64
# What the draws leave in a total, and in a leverage, where they are not exact.
_DRAWN = 1.5


@dataclass(frozen=True, eq=False)
class SoftmaxCavity:
    """Where the rounds ended, as in `cavity.Cavity`; ``diagonal`` is the diagonal yield."""

    mean: FloatArray
    variance: FloatArray
    kappa: FloatArray
    diagonal: FloatArray
    curvature: FloatArray
    moments: SoftmaxMoments
    response: SoftmaxResponse
    rounds: int
    change: float
    converged: bool


def _spread(
    response: SoftmaxResponse,
    c: FloatArray,
    kappa: FloatArray,
    t: FloatArray,
    draws: int = 0,
) -> FloatArray:
    """V_i where the records' forces have covariance t_j beyond what Hbar carries."""
    inner = response.spread(_amplified(c, kappa, t), draws)
    reply = _unit(inner) + kappa @ c
    return _symmetric(reply @ inner @ np.swapaxes(reply, 1, 2))


def _amplified(c: FloatArray, kappa: FloatArray, t: FloatArray) -> FloatArray:
    """t' = (I + c kappa) t (I + kappa c)."""
    factor = _unit(t) + c @ kappa
    return np.asarray(factor @ t @ np.swapaxes(factor, 1, 2))


def pooled_force(found: SoftmaxMoments, fraction: float) -> FloatArray:
    """t_j of the pool; none where all of it is trained on, whatever smoothing leaves of it."""
    if fraction == 1.0:
        return np.zeros_like(found.square)
    mean = fraction * found.force
    return np.asarray(
        fraction * found.square - mean[:, :, None] * mean[:, None, :] - fraction**2 * found.linear
    )


def _yield(response: SoftmaxResponse, c: FloatArray) -> FloatArray:
    """kappa = (I - g c)^{-1} g."""
    g = response.leverage
    return centred(_symmetric(np.linalg.solve(_unit(g) - g @ c, g)))


def _unit(blocks: FloatArray) -> FloatArray:
    """The identity of C x C, in the precision of these blocks."""
    return np.eye(blocks.shape[-1], dtype=blocks.dtype)


def _symmetric(blocks: npt.NDArray[Any]) -> FloatArray:
    """The mean of every block and its transpose."""
    return np.asarray(0.5 * (blocks + np.swapaxes(blocks, 1, 2)))


def _centred_logits(X: npt.NDArray[Any], theta: FloatArray) -> FloatArray:
    """X theta without the mean over the classes, in the precision of X."""
    z = X @ theta.astype(X.dtype)
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _typical_sd(v: FloatArray, fraction: float) -> float:
    """The root mean variance of a logit, in whose units a step is small; 1 if nothing varies."""
    if fraction == 1.0:
        return 1.0
    return float(np.sqrt(max(float(np.mean(np.einsum("icc->ic", v))), 1e-300)))


def _block_change(old: FloatArray, new: FloatArray) -> float:
    """The relative change of the blocks, record by record, in the root mean square."""
    change = np.sqrt(np.einsum("icd,icd->i", new - old, new - old))
    size = np.sqrt(np.einsum("icd,icd->i", new, new))
    return float(np.sqrt(np.mean((change / np.maximum(size, 1e-300)) ** 2)))


def released(problem: ConvexProblem) -> FloatArray:
    """The released coefficients to start from, or zeros: d x C."""
    assert problem.X is not None
    if problem.coefficients is None:
        return np.zeros((problem.X.shape[1], problem.classes))
    return np.array(problem.coefficients, dtype=np.float64)


def _require_room(problem: ConvexProblem, order: int) -> None:
    """Refuse what does not fit: C x C blocks, the design, and a matrix of this order."""
    assert problem.X is not None
    size, classes = problem.records, problem.classes
    require_memory(
        BLOCKS_AT_ONCE * 8 * size * classes**2 + 4 * 8 * order**2 + 4 * problem.X.nbytes,
        f"The laws of {size} records in {classes} classes",
        "use fewer records",
    )


@dataclass
class _Rounds:
    """The state between rounds: theta, the laws without the record, kappa and its diagonal k."""

    problem: ConvexProblem
    fraction: float
    X: Any
    theta: FloatArray
    z: FloatArray
    m: FloatArray
    kappa: FloatArray
    k: FloatArray
    v: FloatArray
    force: FloatArray

    @classmethod
    def start(cls, problem: ConvexProblem, fraction: float, kind: npt.DTypeLike) -> _Rounds:
        """From the released coefficients, without a spread and a yield, in this precision."""
        assert problem.X is not None
        X = problem.X.astype(kind)
        theta = released(problem)
        z = _centred_logits(X, theta)
        blocks = np.zeros((*z.shape, problem.classes), dtype=kind)
        empty = np.zeros_like(z)
        return cls(problem, fraction, X, theta, z, z, blocks, empty, blocks, empty)

    @property
    def codes(self) -> Codes:
        return self.problem.y.astype(np.intp)

    @property
    def penalty(self) -> FloatArray:
        return self.problem.penalty_at(self.fraction)

    def smoothed(self) -> tuple[SoftmaxMoments, float]:
        """The moments of the force over the spread, and how far m moved to follow z.

        It is one Newton step of m - f k E[F(m + eps)] = z; the force moves with it.
        """
        points = sigma_points(self.problem.classes, POINTS, SEED)
        root = square_root(self.v) if np.any(self.v) else None
        weights = self.problem.sample_weights
        found = softmax_moments(self.m, root, self.k, self.codes, weights, points)
        away = self.m - self.fraction * self.k * found.force - self.z
        away -= away.mean(axis=1, keepdims=True)
        if np.any(self.k):
            matrix = _unit(found.slope) - self.fraction * self.k[:, :, None] * found.slope
            away = np.asarray(np.linalg.solve(matrix, away[:, :, None])[:, :, 0])
        self.m = self.m - away
        self.force = found.force - (found.slope @ away[:, :, None])[:, :, 0]
        return found, float(np.sqrt(np.mean(away**2)))

    def plain(self) -> SoftmaxMoments:
        """The forces of the records where they are in, without a spread but to first order."""
        weight = self.problem.sample_weights[:, None].astype(np.float32)
        target = one_hot(self.codes, self.z.shape[1], np.float32)
        kw = (1.0 - self.fraction) * self.k * weight
        first = self.z - 0.5 * kw * (softmax(self.z) - target)
        p = softmax(softmax_prox(self.z, kw, target, first))
        self.force = weight * (p - target)
        self.m = self.z + self.fraction * self.k * self.force
        self.m = self.m - self.m.mean(axis=1, keepdims=True)
        # diag(a) - a a' / sum(a)
        a = weight * p / (1.0 + self.k * weight * p)
        scaled = a / np.sqrt(np.maximum(a.sum(axis=1, keepdims=True), 1e-30))
        slope = -scaled[:, :, None] * scaled[:, None, :]
        slope[:, np.arange(a.shape[1]), np.arange(a.shape[1])] += a
        linear = slope @ self.v @ slope
        square = self.force[:, :, None] * self.force[:, None, :] + linear
        return SoftmaxMoments(self.force, slope, square, linear)

    def curvature(self, found: SoftmaxMoments) -> FloatArray:
        """c = f E[F'] (I - f kappa E[F'])^{-1}."""
        slope = self.fraction * found.slope
        return _symmetric(np.linalg.solve(_unit(slope) - slope @ self.kappa, slope))

    def descend(self, response: SoftmaxResponse, whole: float = 1.0) -> float:
        """One step of the mean model, in the root mean square over the predictions."""
        pull = (self.X.T @ self.force).astype(np.float64)
        step = response.step(self.fraction * pull + self.penalty[:, None] * self.theta)
        moved = _centred_logits(self.X, step)
        longest = float(np.max(np.abs(moved)))
        reach = 4.0 * max(1.0, 0.25 * float(np.max(np.abs(self.z))))
        scale = min(whole, reach / max(longest, 1e-30))
        self.theta = self.theta - scale * step
        self.z = _centred_logits(self.X, self.theta)
        self.m = self.m - scale * moved
        return scale * float(np.sqrt(np.mean(moved**2)))

    def descend_plainly(self, response: SoftmaxResponse, whole: float = 1.0) -> SoftmaxMoments:
        """Some steps of the mean model without a spread, which cost next to nothing."""
        found = self.plain()
        for _ in range(STEPS):
            self.descend(response, whole)
            found = self.plain()
        return found

    def ended(
        self,
        c: FloatArray,
        found: SoftmaxMoments,
        response: SoftmaxResponse,
        rounds: int,
        change: float,
        tolerance: float,
    ) -> SoftmaxCavity:
        """The last state, as the cavity."""
        settled = change <= tolerance
        return SoftmaxCavity(
            self.m, self.v, self.kappa, self.k, c, found, response, rounds, change, settled
        )


def solve_softmax(problem: ConvexProblem, fraction: float) -> SoftmaxCavity:
    """Rounds with a dense Hessian, until predictions, kappa and V stand still."""
    assert problem.X is not None
    _require_room(problem, problem.classes * problem.X.shape[1])
    now = _Rounds.start(problem, fraction, np.float64)
    change, rounds = np.inf, 0
    while change > TOLERANCE and rounds < MAX_ROUNDS:
        rounds += 1
        found, away = now.smoothed()
        c = now.curvature(found)
        response = DenseSoftmax.at(now.X, now.penalty, c, problem.name)
        step = now.descend(response)
        kappa = _yield(response, c)
        v = _spread(response, c, kappa, pooled_force(found, fraction))
        change = max(
            _block_change(now.kappa, kappa),
            _block_change(now.v, v),
            step / _typical_sd(v, fraction),
            away / _typical_sd(v, fraction),
        )
        # kappa and V swing about their limits, by about a quarter: part of the way back is quicker
        last = change <= TOLERANCE or rounds == MAX_ROUNDS
        relax = 0.8 if rounds > 1 and not last else 1.0
        now.kappa = relax * kappa + (1.0 - relax) * now.kappa
        now.v = relax * v + (1.0 - relax) * now.v
        now.k = diagonal_yield(now.kappa, softmax(now.m - fraction * now.k * now.force))
    found, _ = now.smoothed()
    return now.ended(c, found, response, rounds, change, TOLERANCE)


def solve_many(problem: ConvexProblem, fraction: float) -> SoftmaxCavity:
    """Rounds with a structured Hessian: few factorisations, cheap steps between."""
    _require_room(problem, problem.records)
    now = _Rounds.start(problem, fraction, np.float32)
    # class by class: (H^{-1})_cc is within an eighth of (H_cc)^{-1}, and its factors cost a third
    c = fraction * now.plain().slope * np.eye(problem.classes, dtype=np.float32)
    response = StructuredSoftmax.at(now.X, now.penalty, c, seed=SEED, coupled=False)
    now.kappa = _yield(response, c)
    now.k = diagonal_yield(now.kappa, softmax(now.z))
    found = now.descend_plainly(response, _UNCOUPLED_STEP)
    now.v = _spread(response, c, now.kappa, pooled_force(found, fraction), ROUND_DRAWS)
    rounds, change = 1, np.inf
    while change > MANY_TOLERANCE and rounds < MANY_ROUNDS:
        rounds += 1
        c = now.curvature(now.smoothed()[0])
        response = StructuredSoftmax.at(now.X, now.penalty, c, seed=SEED)
        kappa = _yield(response, c)
        yielded = _block_change(now.kappa, kappa)
        now.kappa, now.k = kappa, diagonal_yield(kappa, softmax(now.z))
        if rounds == 2:
            now.descend_plainly(response)
        for _ in range(HELD):
            found, _ = now.smoothed()
            step = now.descend(response)
            v = _spread(response, c, now.kappa, pooled_force(found, fraction), ROUND_DRAWS)
            change = max(
                _STILL_TO_COME * yielded,
                _block_change(now.v, v),
                step / _typical_sd(v, fraction),
            )
            now.v = v
            if change <= MANY_TOLERANCE:
                break
    found, _ = now.smoothed()
    now.v = _spread(response, c, now.kappa, pooled_force(found, fraction), LAST_DRAWS)
    return now.ended(c, found, response, rounds, change, MANY_TOLERANCE)


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
    own: Codes

    def logit_laws(self) -> list[tuple[FloatArray, FloatArray]]:
        """Mean and covariance of the other classes' logits less the own one, in and out."""
        size, classes = self.logits_in[0].shape
        others = np.array([[c for c in range(classes) if c != own] for own in self.own])
        rows = np.arange(size)
        change = np.zeros((size, classes - 1, classes))
        change[rows[:, None], np.arange(classes - 1), others] = 1.0
        change[rows[:, None], np.arange(classes - 1), self.own[:, None]] -= 1.0
        laws = []
        for mean, covariance in (self.logits_in, self.logits_out):
            moved = change @ covariance @ np.swapaxes(change, 1, 2)
            trace = np.einsum("icc->i", moved) / (classes - 1)
            moved = moved + (1e-9 * trace)[:, None, None] * np.eye(classes - 1)
            laws.append(((change @ mean[:, :, None])[:, :, 0], moved))
        return laws


def _settled(
    problem: ConvexProblem,
    fraction: float,
    solve: Callable[[ConvexProblem, float], SoftmaxCavity],
) -> SoftmaxCavity:
    """The rounds' end; a sentence where they run away, as with hardly a penalty."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = solve(problem, fraction)
    except np.linalg.LinAlgError:
        found = None
    if found is None or not (np.isfinite(found.mean).all() and np.isfinite(found.variance).all()):
        raise InputError(
            f"{problem.name} follows its {problem.records} records so closely that the laws of its "
            "answers have no spread which can be computed; use a larger penalty."
        )
    return found


def softmax_laws(problem: ConvexProblem, question: Question, fraction: float) -> SoftmaxLaws:
    """The laws under the pool or the population question."""
    assert problem.X is not None
    many = problem.classes * problem.X.shape[1] > DENSE
    cavity = _settled(problem, fraction, solve_many if many else solve_softmax)
    source, variance = pooled_force(cavity.moments, fraction), cavity.variance
    if question == "population":
        source = fraction * cavity.moments.square
        variance = _spread(cavity.response, cavity.curvature, cavity.kappa, source, LAST_DRAWS)
    elif fraction == 1.0:
        variance = np.zeros_like(variance)
    codes = problem.y.astype(np.intp)
    inside, outside = _moved(problem, cavity, variance)
    direction = _direction(cavity.mean, codes)
    return SoftmaxLaws(
        mean_in=inside[0],
        sd_in=inside[1],
        mean_out=outside[0],
        sd_out=outside[1],
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=_gap(problem, cavity, fraction, direction) if fraction < 1.0 else 0.0,
        shares=_shares(cavity, source, direction),
        by_size=_spread_by_size(problem, fraction),
        right_in=inside[2],
        right_out=outside[2],
        logits_in=(inside[3], inside[4]),
        logits_out=(cavity.mean, variance),
        own=codes,
    )


def _moved(
    problem: ConvexProblem, cavity: SoftmaxCavity, variance: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Five arrays of the records in, and five of them out, from the sigma points.

    Mean and sd of the log-odds, the chance of the right label, and mean and covariance of the
    centred logits.
    """
    points = sigma_points(problem.classes, POINTS, LAWS_SEED)
    codes, mean = problem.y.astype(np.intp), cavity.mean.astype(np.float64)
    blocks = pushed_blocks(
        mean, square_root(variance), cavity.diagonal, codes, problem.sample_weights, points
    )
    inside, outside = [], []
    for part, _, _, _, without, joined in blocks:
        inside.append(_summed_up(joined, codes[part]))
        outside.append(_summed_up(without, codes[part]))
    return (
        [np.concatenate(parts) for parts in zip(*inside, strict=True)],
        [np.concatenate(parts) for parts in zip(*outside, strict=True)],
    )


def _summed_up(z: FloatArray, codes: Codes) -> tuple[FloatArray, ...]:
    """The five arrays of a block of records, from their logits, records x points x C."""
    swapped = np.ascontiguousarray(np.swapaxes(z, 0, 1))
    score = own_log_odds(swapped, codes)
    # the own logit is the largest: its margin is taken as normal over the points
    rows = np.arange(len(codes))
    others = swapped.copy()
    others[:, rows, codes] = -np.inf
    margin = swapped[:, rows, codes] - others.max(axis=-1)
    right = special.ndtr(margin.mean(axis=0) / np.maximum(margin.std(axis=0), 1e-12))
    z = z - z.mean(axis=2, keepdims=True)
    away = z - z.mean(axis=1, keepdims=True)
    covariance = np.swapaxes(away, 1, 2) @ away / z.shape[1]
    return score.mean(axis=0), score.std(axis=0), right, z.mean(axis=1), covariance


def _direction(mean: FloatArray, codes: Codes) -> FloatArray:
    """The gradient of the own label's log-odds with respect to the logits, N x C."""
    rows = np.arange(len(codes))
    others = mean.copy()
    others[rows, codes] = -np.inf
    gradient = -softmax(others)
    gradient[rows, codes] = 1.0
    return np.asarray(gradient)


def _gap(
    problem: ConvexProblem, cavity: SoftmaxCavity, fraction: float, direction: FloatArray
) -> float:
    """Median of smoothed over plain sd of the log-odds, less one.

    Plain is the delta method at the mean prediction.
    """
    found = softmax_moments(
        cavity.mean,
        None,
        cavity.diagonal,
        problem.y.astype(np.intp),
        problem.sample_weights,
        np.zeros((1, problem.classes)),
    )
    linear = found.slope @ cavity.variance @ found.slope
    plain = SoftmaxMoments(found.force, found.slope, found.square + linear, linear)
    smoothed_and_plain = []
    for each in (cavity.moments, plain):
        t = pooled_force(each, fraction)
        v = _spread(cavity.response, cavity.curvature, cavity.kappa, t, _GAP_DRAWS)
        smoothed_and_plain.append(np.einsum("ic,icd,id->i", direction, v, direction))
    smoothed, other = smoothed_and_plain
    return float(np.median(np.sqrt(smoothed / np.maximum(other, 1e-300))) - 1.0)


def _spread_by_size(problem: ConvexProblem, fraction: float) -> FloatArray:
    """1, or infinite where training sets are nearly empty, nearly whole, or nearly interpolate.

    The laws of smaller training sets cost as much as these; a quarter is far from interpolation.
    """
    assert problem.X is not None
    size = problem.records
    free = int(np.count_nonzero(problem.penalty_at(1.0) == 0.0)) * (problem.classes - 1)
    unsteady = too_small(fraction, size) or free > 0.25 * fraction * size
    return np.full(size, np.inf if unsteady else 1.0)


def _shares(cavity: SoftmaxCavity, source: FloatArray, direction: FloatArray) -> Shares:
    """Of every record where the rows of G are not too many; else bounds, and rows for the rest."""
    size, classes = direction.shape
    response, dense = cavity.response, isinstance(cavity.response, DenseSoftmax)
    t = _amplified(cavity.curvature, cavity.kappa, source)
    reply = direction + (direction[:, None, :] @ cavity.kappa @ cavity.curvature)[:, 0, :]
    found, doubtful = Shares.unknown(size), np.arange(size)
    allowed = _ROWS_SOLVED_FOR
    if dense:
        coefficients = classes * response.X.shape[1]
        allowed = int(max(_NEIGHBOUR_BUDGET / size, _ROWS_PER_COEFFICIENT * coefficients))
    if allowed < size:
        upper = _largest_at_most(response, t, reply, allowed // classes)
        upper = upper if dense else _DRAWN * upper
        doubtful = found.bound(upper)[:allowed]
    for start in range(0, len(doubtful), 16):
        records = doubtful[start : start + 16]
        rows = np.swapaxes(response.rows(records, reply[records]), 0, 1)
        part = ((rows @ t) * rows).sum(axis=2)
        part[records, np.arange(len(records))] = 0.0
        found.note(records, np.sqrt(np.maximum(part, 0.0)).T)
    return found


def _largest_at_most(
    response: SoftmaxResponse, t: FloatArray, reply: FloatArray, looked: int
) -> FloatArray:
    """An upper bound of every record's largest share, from the columns of some records.

    The part of j in i is |R_j' G_ji r_i|^2 with t_j = R_j R_j', at most (r_i' g_i r_i) tr(t_j g_j).
    The records with the largest traces are looked at, and the first of the others bounds the rest.
    """
    size, classes = reply.shape
    inner = response.spread(t, LAST_DRAWS)
    total = np.einsum("ic,icd,id->i", reply, inner, reply)
    own = np.einsum("ic,icd,id->i", reply, response.leverage, reply)
    loads = np.einsum("icd,idc->i", t, response.leverage)
    order = np.argsort(-loads)
    largest = own * loads[order[min(looked, size - 1)]]
    root = square_root(t)
    for record in order[:looked].tolist():
        moved = response.rows(np.full(classes, record), root[record].T)
        part = np.square(np.einsum("mic,ic->mi", moved, reply)).sum(axis=0)
        part[record] = 0.0
        largest = np.maximum(largest, part)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0.0, largest / total, np.inf))
