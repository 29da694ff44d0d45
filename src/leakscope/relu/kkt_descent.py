"""Points and multipliers that make a network a KKT point: descent from many starts at once.

Haim et al. (2022) minimise |theta - sum_i lambda_i y_i grad f(x_i)|^2 over points and multipliers.
Over the distinct neurons u_k, with shares c_k of the mass, masses m_i = lambda_i y_i and
z_i = (x_i, 1), that is, as a share of |theta|^2,

    1/2 sum over k of c_k (|r_k|^2 + (u_k . r_k)^2),    r_k = u_k - sum over i of m_i s_ki z_i,

where s_ki is the slope of the ReLU; the second part are the output weights.  Two forms:

- smoothed, as theirs: s_ki = sigmoid(sharpness u_k . z_i), sharper as the descent goes on.
- with the slopes as variables in [0, 1], because trained networks rest on many kinks, where any
  slope will do.  A slope that does not fit its pre-activation p costs lambda (relu(p) - s p),
  which is zero exactly on the subdifferential and positive elsewhere.  Complementarity is added:
  all points with a multiplier have one margin, |theta|^2 / (2 sum lambda) by homogeneity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision
from leakscope.relu.distinct_neurons import DistinctNeurons

RATE = 0.02  # of Adam, for the points in units of their scale
SLOPE_RATE = 5.0  # the slopes' logits move so much faster
SHARPNESS = (3.0, 300.0)
PENALTY = (0.1, 1.0)


class Descended(NamedTuple):
    """Where S starts of p points ended.

    ``points`` (S, p, d), ``masses`` (S, p), and as shares: ``stationarity`` (S,), the root of the
    objective; ``complementarity`` (S,), root mean square of y f(x) / margin - 1 by multiplier;
    ``slopes`` (S,), what slopes off the subdifferential cost; ``total`` (S,), what was minimised.
    """

    points: FloatArray
    masses: FloatArray
    stationarity: FloatArray
    complementarity: FloatArray
    slopes: FloatArray
    total: FloatArray


def descend(
    neurons: DistinctNeurons,
    points: FloatArray,
    masses: FloatArray,
    *,
    steps: int,
    smoothed: bool,
    scale: float,
    margin: float | None,
    box: tuple[FloatArray, FloatArray] | None,
) -> Descended:
    """Adam on all starts together, in float64; ``points`` (S, p, d) and ``masses`` (S, p)."""
    features = points.shape[2]
    low, high = (np.full(features, -np.inf), np.full(features, np.inf)) if box is None else box
    # -1 stands for a margin that is not known
    given = -1.0 if margin is None else margin
    with double_precision():
        import jax.numpy as jnp

        # neurons without mass change nothing, and spare a compilation for every K
        more = 2 ** max(int(np.ceil(np.log2(len(neurons)))), 2) - len(neurons)
        vectors = np.pad(neurons.vectors, ((0, more), (0, 0)))
        sign, mass = np.pad(neurons.sign, (0, more)), np.pad(neurons.mass, (0, more))
        z = np.concatenate([points, np.ones((*points.shape[:2], 1))], axis=2)
        logits = np.einsum("k,kr,spr->skp", sign, vectors, z)
        arrays = (vectors, sign, mass, low, high, given, scale)
        problem = _Problem(*(jnp.asarray(one) for one in arrays))
        run = _compiled(steps, smoothed)
        state, parts = run(tuple(map(jnp.asarray, (points, masses, logits))), problem)
        x, m, _ = (np.asarray(one) for one in state)
        stationarity, complementarity, slopes, total = (np.asarray(one) for one in parts)
    return Descended(x, m, np.sqrt(stationarity), np.sqrt(complementarity), slopes, total)


class _Problem(NamedTuple):
    vectors: Any
    sign: Any
    mass: Any
    low: Any
    high: Any
    margin: Any
    scale: Any


@cache
def _compiled(steps: int, smoothed: bool) -> Callable[[Any, _Problem], Any]:
    import jax
    import jax.numpy as jnp

    def cost(state: Any, problem: _Problem, at: Any) -> Any:
        x, m, logits = state
        z = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)
        share = problem.mass / problem.mass.sum()
        before = problem.sign[:, None] * (problem.vectors @ z.T)
        sharpness = SHARPNESS[0] * (SHARPNESS[1] / SHARPNESS[0]) ** at
        slopes = jax.nn.sigmoid(sharpness * before if smoothed else logits)
        rest = problem.vectors - slopes @ (m[:, None] * z)
        along = jnp.sum(problem.vectors * rest, axis=1)
        stationarity = 0.5 * jnp.sum(share * (jnp.sum(rest**2, axis=1) + along**2))
        size = jnp.abs(m)
        whole = jnp.sum(size) + 1e-300
        # |theta|^2 is twice the mass at a KKT point
        margin = jnp.where(problem.margin > 0.0, problem.margin, problem.mass.sum() / whole)
        after = jnp.maximum(before, 0.0)
        off = jnp.sign(m) * ((problem.mass * problem.sign) @ after) / margin - 1.0
        complementarity = jnp.sum(size * off**2) / whole
        gap = jnp.sum(share[:, None] * size * (after - slopes * before))
        outside = jnp.maximum(x - problem.high, 0.0) + jnp.maximum(problem.low - x, 0.0)
        total = stationarity + jnp.sum((outside / problem.scale) ** 2)
        if not smoothed:
            penalty = PENALTY[0] * (PENALTY[1] / PENALTY[0]) ** at
            total = total + complementarity + penalty * gap
        return total, (stationarity, complementarity, gap)

    slope_of = jax.vmap(jax.value_and_grad(cost, has_aux=True), in_axes=(0, None, None))

    @jax.jit
    def run(state: Any, problem: _Problem) -> Any:
        def step(carry: Any, t: Any) -> Any:
            now, first, second = carry
            rates = (RATE * problem.scale, RATE, SLOPE_RATE * RATE)
            _, slope = slope_of(now, problem, jnp.minimum(t / (0.6 * steps), 1.0))
            first = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, slope)
            second = jax.tree.map(lambda a, g: 0.99 * a + 0.01 * g**2, second, slope)
            cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * t / steps))
            fresh, fresh2 = 1.0 - 0.9 ** (t + 1.0), 1.0 - 0.99 ** (t + 1.0)
            now = tuple(
                one - rate * cosine * (a / fresh) / (jnp.sqrt(b / fresh2) + 1e-12)
                for one, a, b, rate in zip(now, first, second, rates, strict=True)
            )
            return (now, first, second), None

        zero = jax.tree.map(jnp.zeros_like, state)
        (state, _, _), _ = jax.lax.scan(step, (state, zero, zero), jnp.arange(steps))
        (total, parts), _ = slope_of(state, problem, 1.0)
        return state, (*parts, total)

    return run
