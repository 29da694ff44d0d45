"""Loss-normalised gradient descent on many two-layer networks at once, in JAX.

A step follows the gradient of log L, not of L: sum_i p_i y_i grad f(x_i) with weights p_i that are
a softmax of the margins for the exponential loss.  It is the gradient of L divided by L, so it
does not fade as the loss falls, and it is computed from log L, so nothing overflows.  The size of
a step is ``step / (sum_i p_i |grad f(x_i)|^2 + R)``, R the largest norm of a point with its bias
coordinate: the first term bounds the curvature through the softmax, the second that of f itself.

Weights and bias of a neuron are one vector: W = (w, b) against points Z = (x, 1).

**The flow**, in the limit of vanishing loss.  Once all points are classified, descent grows the
norm and turns the direction ever more slowly: a turn takes a time that grows with the margin, so
the KKT point is approached logarithmically.  In the limit only the direction moves:
theta' = -theta + sum_i lambda_i y_i grad f(x_i), where the multipliers keep the points of the
margin on it.  Its rest points are the KKT points.  A step of size s needs lambda from a quadratic
problem of n unknowns,

    min over lambda >= 0 of lambda' G lambda / 2 - lambda' (2 q + g (1 - q)),

G the Gram matrix of the gradients y_i grad f(x_i) and q the margins, with the least of them near
1: at g = 0 the solution keeps every margin point where it is to first order, and g draws those
that have drifted back.  (The gradient of f along theta is 2 f, by homogeneity.)  What is left of
the drift is small and is removed by the descent that follows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

# Beyond it log(1 + exp(-q)) is exp(-q) in float64.
LOG_LOSS_OF_LARGE_MARGIN = 30.0

# Of the flow.
FIRST_STEP = 0.02
LAST_STEP = 2e-4
GAIN = 10.0
SMOOTHING = 0.9
INNER_STEPS = 30


class State(NamedTuple):
    """Weights W (B, k, r+1) and v (B, k), and since the last check: scaling, multipliers."""

    w: Any
    v: Any
    shrunk: Any
    multipliers: Any


class Problem(NamedTuple):
    """Points Z (B, n, r+1), labels (B, n), squared norms (B, n), the largest norm (B,)."""

    z: Any
    y: Any
    squared: Any
    radius: Any


def loss_weights(q: Any, loss: str) -> Any:
    """p = -l'(q_i) / (n L), (B, n), of margins ``q``, without leaving log space."""
    import jax
    import jax.numpy as jnp

    if loss == "exponential":
        return jax.nn.softmax(-q, axis=-1)
    small = jnp.minimum(q, LOG_LOSS_OF_LARGE_MARGIN)
    logs = jnp.where(q > LOG_LOSS_OF_LARGE_MARGIN, -q, jnp.log(jax.nn.softplus(-small)))
    return jnp.exp(-jax.nn.softplus(q) - jax.nn.logsumexp(logs, axis=-1)[:, None])


def margins(w: Any, v: Any, problem: Problem) -> tuple[Any, Any]:
    """Pre-activations (B, k, n) and margins y_i f(x_i) (B, n)."""
    import jax.numpy as jnp

    before = jnp.einsum("bkr,bnr->bkn", w, problem.z)
    return before, problem.y * jnp.einsum("bk,bkn->bn", v, jnp.maximum(before, 0.0))


def one_step(state: State, problem: Problem, size: Any, cap: Any, loss: str) -> State:
    """One step of every network; norms are held where the least margin is above ``cap``."""
    import jax.numpy as jnp

    before, q = margins(state.w, state.v, problem)
    active = before > 0.0
    p = loss_weights(q, loss)
    pull = jnp.einsum(
        "bkn,bnr->bkr", jnp.where(active, (p * problem.y)[:, None, :], 0.0), problem.z
    )
    # sum_i c_i relu(W_j . z_i) = W_j . pull_j, so the slope in v needs no second pass.
    slope_v = jnp.sum(state.w * pull, axis=-1)
    sizes = jnp.sum(jnp.maximum(before, 0.0) ** 2, axis=1) + problem.squared * jnp.sum(
        jnp.where(active, (state.v**2)[..., None], 0.0), axis=1
    )
    eta = size / (jnp.sum(p * sizes, axis=-1) + problem.radius)
    least = jnp.min(q, axis=-1)
    held = jnp.where(least > cap, jnp.sqrt(cap / jnp.maximum(least, cap)), 1.0)
    move = held * eta
    return State(
        held[:, None, None] * state.w + (move[:, None] * state.v)[..., None] * pull,
        held[:, None] * state.v + move[:, None] * slope_v,
        held * state.shrunk,
        held[:, None] * state.multipliers + move[:, None] * p,
    )


@lru_cache(maxsize=8)
def compiled_run(steps: int, loss: str) -> Any:
    """``steps`` steps and the residual along them, compiled once a shape."""
    import jax
    import jax.numpy as jnp

    def run(
        w: Any, v: Any, outside: Any, problem: Problem, size: Any, caps: Any
    ) -> tuple[State, Any]:
        ones = jnp.ones_like(v[:, 0])
        begin = State(w, v, ones, jnp.zeros_like(problem.y))
        end = jax.lax.fori_loop(
            0, steps, lambda i, s: one_step(s, problem, size, caps[i], loss), begin
        )
        return end, residual(begin, end, outside * end.shrunk**2, problem)

    return jax.jit(run)


def residual(begin: State, end: State, outside: Any, problem: Problem) -> Any:
    """The KKT residual along the path since the last check, (B,): the largest of three parts.

    The displacement D = theta(t) - a theta(0), a the scaling in between, is a sum of gradients
    with nonnegative multipliers at the points on the way.  A neuron that rests on a kink crosses
    it to and fro, so D averages its two one-sided gradients: the freedom that the subdifferential
    has there comes for free.  The stationarity is min over s of |theta - s D| / |theta|.  It
    speaks of the points on the way; the drift, the sine of the angle between theta(0) and
    theta(t), says how near to theta(t) they are.  The third part is complementarity.  ``outside``
    is the squared norm of the weights outside the span of the data, which no gradient explains.
    """
    import jax.numpy as jnp

    def product(one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
        return jnp.sum(one[0] * other[0], axis=(1, 2)) + jnp.sum(one[1] * other[1], axis=1)

    shrunk = end.shrunk[:, None]
    here, there = (end.w, end.v), (begin.w, begin.v)
    moved = (end.w - shrunk[..., None] * begin.w, end.v - shrunk * begin.v)
    length, size = product(moved, moved), product(here, here)
    best = jnp.maximum(product(moved, here), 0.0) / jnp.where(length > 0.0, length, 1.0)
    rest = (end.w - best[:, None, None] * moved[0], end.v - best[:, None] * moved[1])
    stationarity = jnp.sqrt((product(rest, rest) + outside) / (size + outside))
    cosine = jnp.clip(product(here, there) / jnp.sqrt(product(there, there) * size), 0.0, 1.0)
    drift = jnp.sqrt((1.0 - cosine) * (1.0 + cosine))
    q = margins(end.w, end.v, problem)[1]
    least = jnp.min(q, axis=-1)
    excess = jnp.sum(end.multipliers * (q - least[:, None]), axis=-1)
    scale = jnp.maximum(least, 0.0) * jnp.sum(end.multipliers, axis=-1)
    off = jnp.where(scale > 0.0, excess / jnp.where(scale > 0.0, scale, 1.0), jnp.inf)
    return jnp.maximum(jnp.maximum(stationarity, drift), off)


def flow(w: Any, v: Any, problem: Problem, count: int) -> tuple[Any, Any, Any]:
    """``count`` steps of the flow from (w, v); networks with a misclassified point stay put.

    The steps are of one size for the first half, then fall geometrically.  The third result is the
    factor by which weights outside the span of the data shrink.
    """
    late = np.clip(2.0 * np.arange(count) / max(count, 1) - 1.0, 0.0, 1.0)
    sizes = FIRST_STEP * (LAST_STEP / FIRST_STEP) ** late
    moved: tuple[Any, Any, Any] = _compiled_flow(count)(w, v, problem, sizes)
    return moved


@lru_cache(maxsize=8)
def _compiled_flow(count: int) -> Any:
    import jax
    import jax.numpy as jnp

    def run(w: Any, v: Any, problem: Problem, sizes: Any) -> tuple[Any, Any, Any]:
        between = jnp.einsum("bnr,bmr->bnm", problem.z, problem.z)
        labels = problem.y[:, :, None] * problem.y[:, None, :]
        least = jnp.min(margins(w, v, problem)[1], axis=1)
        fit = least > 0.0
        root = jnp.sqrt(jnp.where(fit, least, 1.0))

        def step(i: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            w, v, multipliers = state
            size = jnp.where(fit, sizes[i], 0.0)
            before, q = margins(w, v, problem)
            active, after = before > 0.0, jnp.maximum(before, 0.0)
            slopes = jnp.where(active, v[..., None], 0.0)
            gram = labels * (
                jnp.einsum("bkn,bkm->bnm", after, after)
                + between * jnp.einsum("bkn,bkm->bnm", slopes, slopes)
            )
            new = _nonnegative_minimiser(gram, 2.0 * q + GAIN * (1.0 - q), multipliers)
            multipliers = SMOOTHING * multipliers + (1.0 - SMOOTHING) * new
            pull = jnp.einsum(
                "bkn,bnr->bkr",
                jnp.where(active, (multipliers * problem.y)[:, None, :], 0.0),
                problem.z,
            )
            moved = jnp.sum(w * pull, axis=-1)
            grow = size[:, None]
            return (
                (1.0 - grow[..., None]) * w + grow[..., None] * v[..., None] * pull,
                (1.0 - grow) * v + grow * moved,
                multipliers,
            )

        begin = (w / root[:, None, None], v / root[:, None], jnp.zeros_like(problem.y))
        w, v, _ = jax.lax.fori_loop(0, count, step, begin)
        kept = jnp.where(fit, jnp.prod(1.0 - sizes), 1.0)
        return w * root[:, None, None], v * root[:, None], kept

    return jax.jit(run)


def _nonnegative_minimiser(gram: Any, towards: Any, start: Any) -> Any:
    """Accelerated projected gradient for x'Gx/2 - x't over x >= 0, batched, from ``start``."""
    import jax
    import jax.numpy as jnp

    bound = jnp.max(jnp.sum(jnp.abs(gram), axis=-1), axis=-1)[:, None]
    bound = jnp.where(bound > 0.0, bound, 1.0)

    def step(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        last, ahead, clock = state
        slope = jnp.einsum("bnm,bm->bn", gram, ahead) - towards
        new = jnp.maximum(ahead - slope / bound, 0.0)
        later = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * clock * clock))
        return new, new + (clock - 1.0) / later * (new - last), later

    found, _, _ = jax.lax.fori_loop(
        0, INNER_STEPS, step, (start, start, jnp.ones_like(bound[0, 0]))
    )
    return found
