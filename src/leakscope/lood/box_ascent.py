"""Climbing LOOD inside a box: projected Adam from all starts at once, or L-BFGS-B from each."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from leakscope.kernels import Kernel
from leakscope.lood.search_objective import Objective, Problem, log_lood_and_slope

FloatArray = NDArray[np.float64]

# Adam's decay rates and floor (Kingma & Ba 2015).
FIRST, SECOND, FLOOR = 0.9, 0.999, 1e-12

# The last step as a share of the first; in between the steps shrink along a cosine.
LAST_STEP = 1e-3


class _State(NamedTuple):
    place: jax.Array
    first: jax.Array
    second: jax.Array
    best: jax.Array
    best_value: jax.Array


def adam(
    kernel: Kernel,
    objective: Objective,
    problem: Problem,
    starts: FloatArray,
    box: tuple[FloatArray, FloatArray],
    *,
    steps: int,
    step_size: float,
) -> tuple[FloatArray, FloatArray]:
    """The best place of each start, (S, q, d), and the objective along the way, (steps + 1, S).

    ``step_size`` is a share of the box's width in each feature.  Called with JAX in 64 bits.
    """
    low, high = box
    places, trace = _adam(
        kernel, objective, steps, problem, jnp.asarray(starts), low, high, step_size
    )
    return np.asarray(places), np.exp(np.asarray(trace))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _adam(
    kernel: Kernel,
    objective: Objective,
    steps: int,
    problem: Problem,
    starts: jax.Array,
    low: jax.Array,
    high: jax.Array,
    step_size: float,
) -> tuple[jax.Array, jax.Array]:
    width = high - low

    def look(state: _State, slope_wanted: jax.Array) -> tuple[_State, jax.Array, jax.Array]:
        value, slope = log_lood_and_slope(kernel, objective, problem, state.place)
        better = value > state.best_value
        return (
            state._replace(
                best=jnp.where(better[:, None, None], state.place, state.best),
                best_value=jnp.where(better, value, state.best_value),
            ),
            value,
            slope * slope_wanted,
        )

    def step(state: _State, number: jax.Array) -> tuple[_State, jax.Array]:
        state, value, slope = look(state, jnp.ones(()))
        # In units of the box, so that one step size serves features of every scale.
        slope = slope * width
        first = FIRST * state.first + (1.0 - FIRST) * slope
        second = SECOND * state.second + (1.0 - SECOND) * slope**2
        count = number + 1.0
        direction = (first / (1.0 - FIRST**count)) / (
            jnp.sqrt(second / (1.0 - SECOND**count)) + FLOOR
        )
        shrink = LAST_STEP + (1.0 - LAST_STEP) * 0.5 * (1.0 + jnp.cos(jnp.pi * number / steps))
        place = jnp.clip(state.place + step_size * shrink * width * direction, low, high)
        return state._replace(place=place, first=first, second=second), value

    nothing = jnp.zeros_like(starts)
    begin = _State(
        jnp.clip(starts, low, high), nothing, nothing, starts, jnp.full(len(starts), -jnp.inf)
    )
    state, trace = jax.lax.scan(step, begin, jnp.arange(steps, dtype=starts.dtype))
    state, last, _ = look(state, jnp.zeros(()))
    return state.best, jnp.concatenate([trace, last[None]])


def l_bfgs(
    kernel: Kernel,
    objective: Objective,
    problem: Problem,
    starts: FloatArray,
    box: tuple[FloatArray, FloatArray],
    *,
    steps: int,
) -> tuple[FloatArray, FloatArray]:
    """As :func:`adam`, by SciPy's L-BFGS-B, one start after another.

    A start that stops early keeps its last value for the rest of the trace.
    """
    low, high = (np.broadcast_to(side, starts.shape[1:]).ravel() for side in box)
    width = np.where(high > low, high - low, 1.0)
    places, traces = [], []
    for start in starts:
        values: list[float] = []

        def falling(unit: FloatArray, shape: tuple[int, ...] = start.shape) -> tuple[float, FloatArray]:
            place = jnp.asarray((low + unit * width).reshape(1, *shape))
            value, slope = log_lood_and_slope(kernel, objective, problem, place)
            return -float(value[0]), -np.asarray(slope[0]).ravel() * width

        def note(intermediate_result: optimize.OptimizeResult) -> None:
            values.append(-float(intermediate_result.fun))

        unit = np.clip((start.ravel() - low) / width, 0.0, 1.0)
        values.append(-falling(unit)[0])
        found = optimize.minimize(
            falling,
            unit,
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, (high > low).astype(float)),
            callback=note,
            options={"maxiter": steps, "maxfun": 4 * steps, "ftol": 1e-14, "gtol": 1e-9},
        )
        values += [-float(found.fun)] * (steps + 1 - len(values))
        places.append((low + found.x * width).reshape(start.shape))
        traces.append(values[: steps + 1])
    return np.array(places), np.exp(np.array(traces).T)
