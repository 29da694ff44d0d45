"""The mean model over training sets drawn from the pool, and the law of each prediction without i.

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.feature_space import FeatureResponse, FeatureSpace
from leakscope.fitted.function_space import FunctionResponse, FunctionSpace
from leakscope.fitted.losses import LOSSES, NODES, Moments, moments
from leakscope.fitted.problem import ConvexProblem

TOLERANCE = 3e-4
# Without an average over a curved loss the rounds are short, and tighter ones cost little.
QUADRATIC_TOLERANCE = 2e-5
MAX_ROUNDS = 200

# The most that a Newton step may move a prediction, where the loss is not quadratic.
_LONGEST_STEP = {"logistic": 4.0, "poisson": 1.0}


@dataclass(frozen=True, eq=False)
class Cavity:
    """Where the rounds ended.

    Attributes
    ----------
    mean, variance
        m_i and v_i: the law of the prediction at record i from training sets without it.
    kappa
        How far one unit of force moves the prediction when the record joins.
    moments
        E[F], E[F'] and E[F^2] of the record's force when it is in.
    response
        The response matrix at the end, for neighbours and for other variances.
    rounds, change
        How many rounds it took, and the largest relative change of the last one.
    converged
        Whether ``change`` fell below the tolerance.
    """

    fraction: float
    mean: FloatArray
    variance: FloatArray
    kappa: FloatArray
    moments: Moments
    response: FeatureResponse | FunctionResponse
    rounds: int
    change: float
    converged: bool

    def spread(self, t: FloatArray) -> FloatArray:
        """v_i where the records' forces have variance t_j beyond what Hbar carries."""
        slack = self.response.slack
        source = t / slack**2
        total = self.response.carried(source) - self.response.leverage**2 * source
        return np.asarray(np.maximum(total, 0.0) / slack**2)

    def contributions(self, t: FloatArray, part: slice) -> FloatArray:
        """The share of each record j (columns) in v_i (rows) of a block of records."""
        block = self.response.rows(part) ** 2
        block *= (t / self.response.slack**2).astype(block.dtype)
        index = np.arange(len(t))[part]
        block[np.arange(len(index)), index] = 0.0
        return np.asarray(block / np.maximum(block.sum(axis=1, keepdims=True), 1e-300))


def space_of(problem: ConvexProblem, fraction: float) -> FeatureSpace | FunctionSpace:
    """Features where there are fewer of them than records, functions otherwise."""
    if problem.X is not None and problem.X.shape[1] <= problem.records:
        return FeatureSpace.of(problem, fraction)
    return FunctionSpace.of(problem, fraction)


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
    max_rounds: int = MAX_ROUNDS,
) -> Cavity:
    """Iterate the rounds until predictions, kappa and v stand still."""
    loss = LOSSES[problem.loss]
    if tolerance is None:
        tolerance = QUADRATIC_TOLERANCE if loss.quadratic else TOLERANCE
    space = space_of(problem, fraction)
    y, weight = problem.y, problem.sample_weights
    limit = _LONGEST_STEP.get(problem.loss, np.inf)
    if start is None:
        m = space.start(problem.coefficients)
        kappa, v = np.zeros(len(y)), np.zeros(len(y))
    else:
        m, kappa, v = start.mean, start.kappa, start.variance
    found = moments(loss, m, v, kappa, y, weight, nodes=nodes)
    z = m - fraction * kappa * found.force
    change, rounds, converged = np.inf, 0, False
    stride = _Stride()
    while True:
        c = fraction * found.slope / (1.0 - fraction * kappa * found.slope)
        response = space.respond(c, fraction * found.force, z)
        rounds += 1
        step = response.prediction - z
        longest = float(np.max(np.abs(step)))
        reach = limit * max(1.0, 0.25 * float(np.max(np.abs(z))))
        step *= min(1.0, reach / longest) if longest > 0.0 else 1.0
        new_kappa = response.leverage / response.slack
        cavity = Cavity(fraction, m, v, kappa, found, response, rounds, change, converged)
        new_v = cavity.spread(force_variance(found, v, fraction))
        change = max(
            float(np.max(np.abs(step) / np.sqrt(np.maximum(new_v, 1e-300))))
            if fraction < 1.0
            else float(np.max(np.abs(step)) / max(float(np.std(z)), 1e-300)),
            _largest_change(new_kappa, kappa),
            _largest_change(new_v, v),
        )
        converged = change <= tolerance
        before = z
        if converged or rounds >= max_rounds:
            z, kappa, v = z + step, new_kappa, new_v
        else:
            z, (kappa, v) = z + step, stride.taken(kappa, v, new_kappa, new_v)
        m, found = _without(problem, z, m + z - before, kappa, v, fraction, nodes)
        if converged or rounds >= max_rounds:
            break
    return Cavity(fraction, m, v, kappa, found, response, rounds, change, converged)


def _without(
    problem: ConvexProblem,
    z: FloatArray,
    m: FloatArray,
    kappa: FloatArray,
    v: FloatArray,
    fraction: float,
    nodes: int,
) -> tuple[FloatArray, Moments]:
    """Solve m - f kappa E[F(m + eps)] = z for m by Newton steps; the slope is above 1 - f."""
    loss, weight = LOSSES[problem.loss], problem.sample_weights
    low = np.full(len(z), -np.inf)
    high = np.full(len(z), np.inf)
    found = moments(loss, m, v, kappa, problem.y, weight, nodes=nodes)
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
        found = moments(loss, m, v, kappa, problem.y, weight, nodes=nodes)
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


def _largest_change(new: FloatArray, old: FloatArray) -> float:
    scale = np.maximum(np.abs(new), 1e-12 * float(np.max(np.abs(new))) + 1e-300)
    return float(np.max(np.abs(new - old) / scale))
