"""Both laws of every record's prediction from one fit, for models with one output: the cavity.

Each record is in the training set with probability f.  Take record j away: the model without it
predicts m + eps at x_j, eps ~ N(0, v_j), and yields kappa_j per unit of force.  If j then joins,
its prediction falls to prox_kappa(m + eps), where it pulls with force F.  On average over both
cases the prediction is zbar_j = m_j - f kappa_j E[F_j], and all zbar together are what the
mean model predicts, which balances f sum_j E[F_j] x_j + Lambda theta = 0.

One round makes a Newton step towards that balance and renews kappa and v:

- c_j = f E[F'] / (1 - f kappa E[F']), Hbar = sum_j c_j x_j x_j' + Lambda, g_j = x_j' Hbar^{-1} x_j;
- kappa_j = g_j / (1 - c_j g_j);
- t_j = f E[F^2] - f^2 E[F]^2 - f^2 E[F']^2 v_j, the variance of the force beyond what Hbar carries;
- v_i = (1 - c_i g_i)^{-2} sum_{j != i} G_ij^2 t_j / (1 - c_j g_j)^2.

For the square loss every expectation is in closed form; else nine Gauss-Hermite nodes.

The law *in* is the law *out* pushed through prox_kappa.  What makes a record's law is its own
weight kappa_i, a matter of its features; its own surprise, the force F_i; and the shares that the
other records have in v_i (`neighbours_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.fitted.losses import LOSSES, NODES, Loss, Moments, hermite, moments
from leakscope.fitted.problem import ConvexProblem, FittedModel
from leakscope.fitted.responses import FeatureResponse, FunctionResponse, Response

Question = Literal["pool", "population", "known_others"]

TOLERANCE = 3e-4
# Without an average over a curved loss the rounds are short, and tighter ones cost little.
QUADRATIC_TOLERANCE = 2e-5
MAX_ROUNDS = 200

# Rows of G that may be looked at: so many entries, or so many rows for each column of the design,
# which is what the rounds cost.  Where that is not all of them, bounds come first.
NEIGHBOUR_BUDGET = 6e7
ROWS_PER_COLUMN = 40
# Below this share no other record is heavy, and an upper bound says enough.
HEAVY = 0.05

# Training sets vary in size by about this many standard deviations.  What that changes of the
# spread is computed where they are small, or where the coefficients take up much of them.
_SIZES = 2.0
# With fewer records in a training set, or out of it, the sum over them is far from a normal.
_LEAST = 12
_FEW, _MUCH = 0.2, 0.5

# Below this spread of the predictions the loss is quadratic over it, and smoothing changes nothing.
_NARROW = 0.1


@dataclass(frozen=True, eq=False)
class Cavity:
    """Where the rounds ended.

    ``mean`` and ``variance`` are m_i and v_i, the law of the prediction without the record; kappa
    is how far one unit of force moves it when the record joins; ``moments`` are those of the
    record's force when it is in; ``change`` is the last round's largest relative change.
    """

    mean: FloatArray
    variance: FloatArray
    kappa: FloatArray
    moments: Moments
    response: Response
    rounds: int
    change: float
    converged: bool


def start_and_response(
    problem: ConvexProblem, fraction: float
) -> tuple[FloatArray, Callable[[FloatArray, FloatArray, FloatArray], Response]]:
    """First predictions, and how the model responds to curvatures, forces and predictions.

    In feature space where there are fewer features than records, in function space otherwise,
    which starts from nothing: the first steps cost little beside the rest.
    """
    size, name = problem.records, problem.name
    if problem.X is not None and problem.X.shape[1] <= size:
        theta = problem.coefficients
        first = np.zeros(size) if theta is None else np.asarray(problem.X @ theta)
        return first, partial(FeatureResponse.at, problem.X, problem.penalty_at(fraction), name)
    require_memory(
        3 * 8 * size * size, f"The laws of {size} records under a kernel", "use fewer records"
    )
    return np.zeros(size), partial(FunctionResponse.at, problem.kernel_at(fraction), name)


def force_variance(found: Moments, v: FloatArray, fraction: float) -> FloatArray:
    """t_j of the pool; none where every record is in, and nothing is drawn."""
    if fraction == 1.0:
        return np.zeros_like(v)
    t = fraction * found.square - (fraction * found.force) ** 2 - (fraction * found.slope) ** 2 * v
    return np.asarray(np.maximum(t, 0.0))


def solve_cavity(
    problem: ConvexProblem,
    fraction: float,
    *,
    nodes: int = NODES,
    start: Cavity | None = None,
    tolerance: float | None = None,
) -> Cavity:
    """Iterate the rounds until predictions, kappa and v stand still."""
    loss = LOSSES[problem.loss]
    if tolerance is None:
        tolerance = QUADRATIC_TOLERANCE if loss.quadratic else TOLERANCE
    m, respond = start_and_response(problem, fraction)
    y, weight = problem.y, problem.sample_weights
    limit = loss.longest_step
    kappa, v = np.zeros(len(y)), np.zeros(len(y))
    if start is not None:
        m, kappa, v = start.mean, start.kappa, start.variance
    found = moments(loss, m, v, kappa, y, weight, nodes=nodes)
    z = m - fraction * kappa * found.force
    change, rounds, converged = np.inf, 0, False
    stride = _Stride()
    while True:
        c = fraction * found.slope / (1.0 - fraction * kappa * found.slope)
        response = respond(c, fraction * found.force, z)
        rounds += 1
        step = response.prediction - z
        longest = float(np.max(np.abs(step)))
        reach = limit * max(1.0, 0.25 * float(np.max(np.abs(z))))
        step *= min(1.0, reach / longest) if longest > 0.0 else 1.0
        new_kappa = response.leverage / response.slack
        new_v = response.spread(force_variance(found, v, fraction))
        change = max(
            float(np.max(np.abs(step) / np.sqrt(np.maximum(new_v, 1e-300))))
            if fraction < 1.0
            else float(np.max(np.abs(step)) / max(float(np.std(z)), 1e-300)),
            largest_change(new_kappa, kappa),
            largest_change(new_v, v),
        )
        converged = change <= tolerance
        before = z
        if converged or rounds >= MAX_ROUNDS:
            z, kappa, v = z + step, new_kappa, new_v
        else:
            z, (kappa, v) = z + step, stride.taken(kappa, v, new_kappa, new_v)
        m, found = without(loss, y, weight, z, m + z - before, kappa, v, fraction, nodes)
        if converged or rounds >= MAX_ROUNDS:
            break
    return Cavity(m, v, kappa, found, response, rounds, change, converged)


def without(
    loss: Loss,
    y: FloatArray,
    weight: FloatArray,
    z: FloatArray,
    m: FloatArray,
    kappa: FloatArray,
    v: FloatArray,
    fraction: float,
    nodes: int,
) -> tuple[FloatArray, Moments]:
    """Solve m - f kappa E[F(m + eps)] = z for m by Newton steps; the slope is above 1 - f."""
    low = np.full(len(z), -np.inf)
    high = np.full(len(z), np.inf)
    found = moments(loss, m, v, kappa, y, weight, nodes=nodes)
    for _ in range(50):
        residual = m - fraction * kappa * found.force - z
        scale = 1e-11 + 1e-7 * np.sqrt(v)
        if np.all(np.abs(residual) <= scale):
            break
        low = np.where(residual < 0.0, np.maximum(low, m), low)
        high = np.where(residual > 0.0, np.minimum(high, m), high)
        target = m - residual / np.maximum(1.0 - fraction * kappa * found.slope, 1e-3)
        outside = (target <= low) | (target >= high)
        middle = 0.5 * (np.where(np.isfinite(low), low, m) + np.where(np.isfinite(high), high, m))
        m = np.where(outside & (residual != 0.0), middle, target)
        found = moments(loss, m, v, kappa, y, weight, nodes=nodes)
    return m, found


@dataclass
class _Stride:
    """Longer steps of kappa and v while they keep creeping in one direction, in logarithms.

    With separable data and a small penalty the scale of kappa and v is nearly free, and plain
    rounds drift along it for hundreds of rounds.
    """

    length: float = 1.0
    last: FloatArray | None = None

    def taken(
        self, kappa: FloatArray, v: FloatArray, new_kappa: FloatArray, new_v: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Where the next round starts."""
        if min(float(np.min(part)) for part in (kappa, v, new_kappa, new_v)) <= 0.0:
            return new_kappa, new_v
        step = np.concatenate([np.log(new_kappa / kappa), np.log(new_v / v)])
        if self.last is not None:
            size = float(np.linalg.norm(step) * np.linalg.norm(self.last))
            agreement = float(step @ self.last) / size if size > 0.0 else 0.0
            if agreement > 0.7 and np.linalg.norm(step) > 0.6 * np.linalg.norm(self.last):
                self.length = min(1.5 * self.length, 32.0)
            elif agreement < 0.2:
                self.length = max(0.4 * self.length, 0.5)
        self.last = step
        move = np.clip((self.length - 1.0) * step, -1.0, 1.0)
        first, second = np.split(np.exp(move), 2)
        return np.asarray(new_kappa * first), np.asarray(new_v * second)


def largest_change(new: FloatArray, old: FloatArray) -> float:
    """The largest relative change of an entry."""
    scale = np.maximum(np.abs(new), 1e-12 * float(np.max(np.abs(new))) + 1e-300)
    return float(np.max(np.abs(new - old) / scale))


@dataclass(frozen=True, eq=False)
class Shares:
    """How unequally the other records share in each record's variance; NaN where nobody looked.

    With s_j the share of record j, which sum to one over the others:

    Attributes
    ----------
    largest
        (N,) the largest s_j, or an upper bound of it where that is below `HEAVY`.
    squares, cubes
        (N,) the sum of s_j^2, and the size of the sum of s_j^1.5 with the signs of the moves, or
        without them, which is more: kurtosis and skewness of the score come from them.
    heavy
        (N,) the sum of the shares that are above `HEAVY`.
    """

    largest: FloatArray
    squares: FloatArray
    cubes: FloatArray
    heavy: FloatArray

    @classmethod
    def unknown(cls, size: int) -> Shares:
        """Nobody looked at anybody."""
        return cls(*(np.full(size, np.nan) for _ in range(4)))

    def bound(self, upper: FloatArray) -> npt.NDArray[np.intp]:
        """Note upper bounds of the largest shares; the records that they do not settle."""
        clear = upper <= HEAVY
        # a sum of s^a is at most the largest s to the power of a - 1
        self.largest[clear] = self.squares[clear] = upper[clear]
        self.cubes[clear], self.heavy[clear] = np.sqrt(upper[clear]), 0.0
        return np.flatnonzero(~clear)

    def note(self, records: npt.NDArray[np.intp], moves: npt.NDArray[np.floating]) -> None:
        """Note how far all records (columns) move the scores of these (rows), up to a factor."""
        parts = moves**2
        total = np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(parts.dtype).tiny)
        share = parts / total
        self.largest[records] = share.max(axis=1)
        self.squares[records] = np.einsum("ij,ij->i", share, share)
        self.cubes[records] = np.abs(np.einsum("ij,ij->i", share, moves / np.sqrt(total)))
        self.heavy[records] = np.where(share > HEAVY, share, 0.0).sum(axis=1)


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
    shares
        How unequally the other records share in the variance.
    by_size
        How many times the spread is as large in training sets two standard deviations smaller than
        the mean one; infinite where some are empty, or interpolate.
    yields
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
    shares: Shares
    by_size: FloatArray
    yields: tuple[FloatArray, FloatArray] | None = None
    moved: FloatArray | None = None


def scalar_laws(problem: ConvexProblem, question: Question, fraction: float) -> PredictionLaws:
    """The laws of the predictions under the pool or the population question."""
    cavity = solve_cavity(problem, fraction)
    pooled = force_variance(cavity.moments, cavity.variance, fraction)
    if question == "population":
        # Fresh others: the finite pool's correction goes.  The force is taken at the pool's
        # spread, because the pool's mean is itself one draw of the population's law.
        source = fraction * cavity.moments.square
        variance = cavity.response.spread(source)
    else:
        source, variance = pooled, cavity.variance
    # a floor for records whose prediction does not vary at all (rows of zeros)
    variance = np.maximum(variance, max(1e-14 * float(np.median(variance)), 1e-300))
    loss, weight = LOSSES[problem.loss], problem.sample_weights
    mean_in, sd_in = pushed(loss, problem.y, weight, cavity.mean, variance, cavity.kappa)
    h = weight * loss.curvature(mean_in, problem.y)
    return PredictionLaws(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=cavity.mean,
        sd_out=np.sqrt(variance),
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=_smoothing_gap(problem, cavity, fraction),
        shares=_shares(cavity.response, source, cavity.moments.force),
        by_size=_spread_by_size(problem, cavity, fraction),
        # the record's own curvature stiffens the model at itself
        yields=(cavity.kappa / (1.0 + cavity.kappa * h), cavity.kappa),
    )


def pushed(
    loss: Loss,
    y: FloatArray,
    weight: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    kappa: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of N(mean, variance) pushed through prox_kappa."""
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


def _smoothing_gap(problem: ConvexProblem, cavity: Cavity, fraction: float) -> float:
    if LOSSES[problem.loss].quadratic or float(np.max(cavity.variance)) < _NARROW**2:
        return 0.0
    plain = solve_cavity(problem, fraction, nodes=1, start=cavity, tolerance=1e-2)
    ratio = np.sqrt(cavity.variance / np.maximum(plain.variance, 1e-300))
    return float(np.median(ratio) - 1.0)


def smaller_share(fraction: float, records: int) -> float:
    """The share of the records in a training set two standard deviations smaller than the mean.

    Fresh others of the released number vary as much as halves do, in what they determine.
    """
    varied = fraction * (1.0 - fraction) if fraction < 1.0 else 0.25
    return fraction - _SIZES * float(np.sqrt(varied / records))


def too_small(fraction: float, records: int) -> bool:
    """Whether training sets hold, or leave out, too few records for the sum to be near a normal."""
    out = records if fraction == 1.0 else (1.0 - fraction) * records
    return min(fraction * records, out) < _LEAST


def _spread_by_size(problem: ConvexProblem, cavity: Cavity, fraction: float) -> FloatArray:
    """How many times larger the sd is in small training sets; 1 where that need not be asked."""
    size, less = problem.records, smaller_share(fraction, problem.records)
    if too_small(fraction, size):
        return np.full(size, np.inf)
    taken = float(np.sum(1.0 - cavity.response.slack))
    if fraction - less <= _FEW * fraction and taken <= _MUCH * fraction * size:
        return np.ones(size)
    if problem.X is not None and np.count_nonzero(problem.penalty_at(1.0) == 0.0) >= less * size:
        return np.full(size, np.inf)
    other = solve_cavity(problem, less, start=cavity, tolerance=1e-2)
    before, after = cavity.variance, other.variance
    if fraction == 1.0:
        before = cavity.response.spread(cavity.moments.square)
        after = other.response.spread(less * other.moments.square)
    return np.sqrt(np.maximum(after, 1e-300) / np.maximum(before, 1e-300))


def _shares(response: Response, source: FloatArray, force: FloatArray) -> Shares:
    """Of every record where the rows of G are not too many; else bounds, and rows for the rest."""
    pull = np.copysign(np.sqrt(source), force)
    size = len(source)
    found = Shares.unknown(size)
    allowed = int(max(NEIGHBOUR_BUDGET / size, ROWS_PER_COLUMN * response.columns))
    doubtful = np.arange(size)
    if allowed < size:
        doubtful = found.bound(_largest_at_most(response, source, allowed))[:allowed]
    for part in _few_rows(doubtful, size):
        found.note(part, response.moves(pull, part))
    return found


def _largest_at_most(response: Response, source: FloatArray, allowed: int) -> FloatArray:
    """An upper bound of every record's largest share, from ``allowed`` columns of G.

    G_ij^2 is at most g_i g_j.  The records with the largest g_j t_j are looked at one by one, and
    the first of the others bounds all of them.
    """
    t = source / response.slack**2
    total = np.maximum(response.from_others(t), 0.0)
    loads = response.leverage * t
    order = np.argsort(-loads)
    largest = response.leverage * loads[order[allowed]]
    for part in _few_rows(order[:allowed], len(source)):
        # G is symmetric: the rows of the heavy ones are their columns
        block = response.rows(part) ** 2 * t[part, None]
        block[np.arange(len(part)), part] = 0.0
        largest = np.maximum(largest, block.max(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0.0, largest / total, np.inf))


def _few_rows(records: npt.NDArray[np.intp], size: int) -> Iterator[npt.NDArray[np.intp]]:
    """The records in blocks whose rows of G fit in the cache."""
    rows = max(1, min(512, int(4e6 / size)))
    for start in range(0, len(records), rows):
        yield records[start : start + rows]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What makes the laws of a few records.

    Attributes
    ----------
    weight, surprise
        (k,) kappa and the size of the force, each over the median of all records.
    others, shares
        (k, m) the rows of the records with the largest shares in its variance, and these shares.
    """

    weight: FloatArray
    surprise: FloatArray
    others: npt.NDArray[np.intp]
    shares: FloatArray


def neighbours_of(
    model: FittedModel, rows: Sequence[int], *, fraction: float, most: int = 3
) -> Neighbours | None:
    """What makes the laws of these records; None of a model with a shared loss of all classes.

    ``fraction`` is that of the laws, ``most`` how many others of each record are named.
    """
    if model.problems[0].loss == "softmax":
        return None
    chosen = np.asarray(rows, dtype=np.intp)
    kept = min(most, model.records - 1)
    weight, surprise = np.empty(len(chosen)), np.empty(len(chosen))
    others = np.empty((len(chosen), kept), dtype=np.intp)
    shares = np.empty((len(chosen), kept))
    for number in np.unique(model.own[chosen]).tolist():
        cavity = solve_cavity(model.problems[number], fraction)
        force = np.abs(cavity.moments.force)
        source = force_variance(cavity.moments, cavity.variance, fraction)
        if fraction == 1.0:
            # Fresh others: the finite pool's correction goes, as in the laws of the population.
            source = cavity.moments.square
        for place in np.flatnonzero(model.own[chosen] == number).tolist():
            row = int(chosen[place])
            weight[place] = cavity.kappa[row] / np.median(cavity.kappa)
            surprise[place] = force[row] / max(float(np.median(force)), 1e-300)
            share = cavity.response.moves(np.sqrt(source), np.array([row]))[0] ** 2
            share = share / max(float(share.sum()), 1e-300)
            others[place] = np.argsort(-share, kind="stable")[:kept]
            shares[place] = share[others[place]]
    return Neighbours(weight, surprise, others, shares)
