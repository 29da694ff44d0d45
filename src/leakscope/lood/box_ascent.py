"""Climbing LOOD inside a box: projected Adam from all starts at once, or L-BFGS-B from each."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.kernels import Kernel
from leakscope.lood.search_objective import Climb, Problem, slope

# Untyped on purpose: the stubs of this function change from one release to the next.
_minimize: Any = optimize.minimize

# Adam's decay rates and floor (Kingma & Ba 2015).
FIRST, SECOND, FLOOR = 0.9, 0.999, 1e-12

# The last step as a share of the first; in between the steps shrink along a cosine.
LAST_STEP = 1e-3


class _State(NamedTuple):
    place: jax.Array
    first: jax.Array
    second: jax.Array
    best: jax.Array
    height: jax.Array


def adam(
    kernel: Kernel,
    climb: Climb,
    problem: Problem,
    starts: FloatArray,
    box: tuple[FloatArray, FloatArray],
    *,
    steps: int,
    step_size: float,
) -> tuple[FloatArray, FloatArray]:
    """The best place of each start, (S, q, d), and LOOD along the way, (steps + 1, S).

    ``step_size`` is a share of the box's width in each feature.  Called with JAX in 64 bits.
    """
    low, high = box
    places, trace = _adam(kernel, climb, steps, problem, jnp.asarray(starts), low, high, step_size)
    return np.asarray(places), np.asarray(trace)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _adam(
    kernel: Kernel,
    climb: Climb,
    steps: int,
    problem: Problem,
    starts: jax.Array,
    low: jax.Array,
    high: jax.Array,
    step_size: float,
) -> tuple[jax.Array, jax.Array]:
    width = high - low

    def step(state: _State, number: jax.Array) -> tuple[_State, jax.Array]:
        height, value, uphill = slope(kernel, climb, problem, state.place)
        better = height > state.height
        # In units of the box, so that one step size serves features of every scale.
        uphill = uphill * width
        first = FIRST * state.first + (1.0 - FIRST) * uphill
        second = SECOND * state.second + (1.0 - SECOND) * uphill**2
        count = number + 1.0
        direction = (first / (1.0 - FIRST**count)) / (
            jnp.sqrt(second / (1.0 - SECOND**count)) + FLOOR
        )
        shrink = LAST_STEP + (1.0 - LAST_STEP) * 0.5 * (1.0 + jnp.cos(jnp.pi * number / steps))
        moved = _State(
            place=jnp.clip(state.place + step_size * shrink * width * direction, low, high),
            first=first,
            second=second,
            best=jnp.where(better[:, None, None], state.place, state.best),
            height=jnp.where(better, height, state.height),
        )
        return moved, value

    nothing = jnp.zeros_like(starts)
    begin = _State(
        jnp.clip(starts, low, high), nothing, nothing, starts, jnp.full(len(starts), -jnp.inf)
    )
    # The last of steps + 1 looks moves nothing that is used.
    state, trace = jax.lax.scan(step, begin, jnp.arange(steps + 1, dtype=starts.dtype))
    return state.best, trace


def l_bfgs(
    kernel: Kernel,
    climb: Climb,
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
    width = high - low
    found = [_l_bfgs(kernel, climb, problem, start, low, width, steps) for start in starts]
    return np.array([place for place, _ in found]), np.array([trace for _, trace in found]).T


def _l_bfgs(
    kernel: Kernel,
    climb: Climb,
    problem: Problem,
    start: FloatArray,
    low: FloatArray,
    width: FloatArray,
    steps: int,
) -> tuple[FloatArray, list[float]]:
    trace: list[float] = []
    latest = [0.0]

    def falling(unit: FloatArray) -> tuple[float, FloatArray]:
        place = jnp.asarray((low + unit * width).reshape(1, *start.shape))
        height, value, uphill = slope(kernel, climb, problem, place)
        latest[0] = float(value[0])
        return -float(height[0]), -np.asarray(uphill[0]).ravel() * width

    def note(place: FloatArray) -> None:
        trace.append(latest[0])

    # A feature whose box has no width stays at zero: its gradient here is zero.
    unit = np.divide(start.ravel() - low, width, out=np.zeros_like(low), where=width > 0.0)
    falling(unit)
    note(unit)
    found = _minimize(
        falling,
        unit,
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(0.0, 1.0),
        callback=note,
        options={"maxiter": steps, "maxfun": 4 * steps, "ftol": 1e-14, "gtol": 1e-9},
    )
    falling(found.x)
    trace += [latest[0]] * (steps + 1 - len(trace))
    return (low + found.x * width).reshape(start.shape), trace[: steps + 1]
