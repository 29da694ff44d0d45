"""The flow of loss-normalised descent in the limit of vanishing loss, in JAX.

Once all points are classified, descent grows the norm and turns the direction ever more slowly:
a turn takes a time that grows with the margin, so the KKT point is approached logarithmically.
In the limit only the direction moves: theta' = -theta + sum_i lambda_i y_i grad f(x_i), where the
multipliers keep the points of the margin on it.  Its rest points are the KKT points.  A step of
size s needs lambda from a quadratic problem of n unknowns,

    min over lambda >= 0 of lambda' G lambda / 2 - lambda' (2 q + g (1 - q)),

G the Gram matrix of the gradients y_i grad f(x_i) and q the margins, with the least of them near
1: at g = 0 the solution keeps every margin point where it is to first order, and g draws those
that have drifted back.  (The gradient of f along theta is 2 f, by homogeneity.)  What is left of
the drift is small and is removed by the descent that follows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.relu.descent import Problem

FIRST_STEP = 0.02
LAST_STEP = 2e-4
GAIN = 10.0
SMOOTHING = 0.9
INNER_STEPS = 30


def flow_steps(count: int) -> FloatArray:
    """Sizes of ``count`` steps: constant for the first half, then falling geometrically."""
    late = np.clip(2.0 * np.arange(count) / max(count, 1) - 1.0, 0.0, 1.0)
    return np.asarray(FIRST_STEP * (LAST_STEP / FIRST_STEP) ** late)


@lru_cache(maxsize=8)
def compiled_flow(count: int) -> Any:
    """``count`` steps of the flow from (w, v); networks with a misclassified point stay put.

    The third result is the factor by which weights outside the span of the data shrink.
    """
    import jax
    import jax.numpy as jnp

    def run(w: Any, v: Any, problem: Problem, sizes: Any) -> tuple[Any, Any, Any]:
        between = jnp.einsum("bnr,bmr->bnm", problem.z, problem.z)
        labels = problem.y[:, :, None] * problem.y[:, None, :]
        after = jnp.maximum(jnp.einsum("bkr,bnr->bkn", w, problem.z), 0.0)
        least = jnp.min(problem.y * jnp.einsum("bk,bkn->bn", v, after), axis=1)
        fit = least > 0.0
        root = jnp.sqrt(jnp.where(fit, least, 1.0))

        def step(i: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            w, v, multipliers = state
            size = jnp.where(fit, sizes[i], 0.0)
            before = jnp.einsum("bkr,bnr->bkn", w, problem.z)
            active, after = before > 0.0, jnp.maximum(before, 0.0)
            q = problem.y * jnp.einsum("bk,bkn->bn", v, after)
            slopes = jnp.where(active, v[..., None], 0.0)
            gram = labels * (
                jnp.einsum("bkn,bkm->bnm", after, after)
                + between * jnp.einsum("bkn,bkm->bnm", slopes, slopes)
            )
            new = nonnegative_minimiser(gram, 2.0 * q + GAIN * (1.0 - q), multipliers)
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


def nonnegative_minimiser(gram: Any, towards: Any, start: Any) -> Any:
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
