"""The most features, or the least noise, with which a linear model keeps to a target advantage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import optimize

from leakscope import linear
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.linear import Attacker, GaussianDesign, LinearMethod, OutputNoise
from leakscope.planning.linear_answer import DRAWS, linear_advantage
from leakscope.results import LinearTarget
from leakscope.settings import LINEAR_PLAN_DEFAULTS, LinearDesignSettings, default_of

# The squares of larger standard deviations, and theirs, leave float64.
LARGEST = 1e75

ANSWERS: int = default_of(LinearDesignSettings, "answers")
RandomState = int | np.random.Generator | Key | None


def largest_p(
    design: GaussianDesign,
    target: float,
    *,
    attacker: Attacker = LINEAR_PLAN_DEFAULTS.attacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: RandomState = None,
) -> LinearTarget:
    """The largest number of features, up to dim, whose advantage is at most ``target``.

    The designs are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.

    The advantage is not monotone in p (it falls up to p = 2n and rises beyond), so the asymptotic
    law is scanned from the top, and the place it points to settled with ``method``; whole matrices
    being dear, the exact law stands in for ``"simulated"``.

    Examples
    --------
    >>> from leakscope.planning import largest_p
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> largest_p(design, 0.3, attacker="label_hidden", method="asymptotic").setting
    454.0
    """
    _check(target)
    settled: LinearMethod = "asymptotic" if method == "asymptotic" else "exact"
    key = as_key(random_state)

    def advantage(p: int, route: LinearMethod) -> float:
        trial = replace(design, p=p)
        if route == "asymptotic" and design.ridge == 0.0 and abs(p - design.n) <= 1:
            return 1.0
        return linear_advantage(
            trial,
            attacker=attacker,
            method=route,
            noise=noise,
            draws=draws,
            random_state=key.child(0),
        ).value

    grid = _grid(design)
    rough = np.array([advantage(int(p), "asymptotic") for p in grid])
    for index in np.flatnonzero(rough <= target + 0.02)[::-1]:
        if advantage(int(grid[index]), settled) > target:
            continue
        low = int(grid[index])
        high = int(grid[index + 1]) if index + 1 < grid.size else low
        while high - low > 1:
            middle = (low + high) // 2
            if advantage(middle, settled) <= target:
                low = middle
            else:
                high = middle
        goal = _Goal("features", target, attacker, settled, draws, key)
        return _found(goal, replace(design, p=low), noise, float(low))
    return LinearTarget(
        knob="features",
        target=target,
        attacker=attacker,
        setting=None,
        advantage=None,
        advantage_stderr=None,
        generalization_error=None,
    )


def least_noise(
    design: GaussianDesign,
    target: float,
    *,
    attacker: Attacker = LINEAR_PLAN_DEFAULTS.attacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    answers: int = ANSWERS,
    memoised: bool = False,
    draws: int | None = None,
    random_state: RandomState = None,
) -> LinearTarget:
    """The least standard deviation of noise on every answer whose advantage is at most ``target``.

    More noise never helps the attacker (data processing), so this is one root.  The setting is
    the noise of one answer; with k fresh answers it grows with the square root of k.  The designs
    are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.

    Examples
    --------
    >>> from leakscope.planning import least_noise
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> one, four = (
    ...     least_noise(design, 0.3, answers=k, method="asymptotic").setting for k in (1, 4)
    ... )
    >>> round(four / one, 6)
    2.0
    """
    _check(target)
    settled: LinearMethod = "asymptotic" if method == "asymptotic" else "exact"
    key = as_key(random_state)

    def excess(sigma: float, route: LinearMethod) -> float:
        noise = OutputNoise(sigma, answers=answers, memoised=memoised) if sigma > 0.0 else None
        return (
            linear_advantage(
                design,
                attacker=attacker,
                method=route,
                noise=noise,
                draws=draws,
                random_state=key.child(0),
            ).value
            - target
        )

    if excess(0.0, settled) <= 0.0:
        sigma = 0.0
    else:
        sigma = _root(lambda x: excess(x, settled))
        while excess(sigma, settled) > 0.0:
            sigma *= 1.0005
    noise = OutputNoise(sigma, answers=answers, memoised=memoised) if sigma > 0.0 else None
    goal = _Goal("noise on every answer", target, attacker, settled, draws, key)
    return _found(goal, design, noise, sigma)


def _root(excess: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > LARGEST:
            raise InputError(
                f"Noise of standard deviation {low:.3g} does not meet this target, and the square "
                "of more leaves float64; choose a larger one."
            )
    if low == 0.0:
        low = high / 2.0
        while excess(low) <= 0.0:
            low, high = low / 2.0, low
    return float(optimize.brentq(excess, low, high, xtol=1e-9, rtol=1e-4))


def _grid(design: GaussianDesign) -> np.ndarray[Any, np.dtype[np.intp]]:
    spread = np.geomspace(1, design.dim, 40).round().astype(int)
    near = design.n + np.array([-1, 0, 1, 2])
    around = (design.n * np.array([0.5, 0.9, 1.1, 1.5, 2.0, 2.5])).astype(int)
    points = np.concatenate([spread, near, around])
    return np.unique(points[(points >= 1) & (points <= design.dim)])


@dataclass(frozen=True)
class _Goal:
    """What was looked for, against whom, and from which designs."""

    knob: Literal["features", "noise on every answer"]
    target: float
    attacker: Attacker
    method: LinearMethod
    draws: int | None
    key: Key


def _found(
    goal: _Goal, design: GaussianDesign, noise: OutputNoise | None, setting: float
) -> LinearTarget:
    """What the setting that was found gives away, and what it costs."""
    found = linear_advantage(
        design,
        attacker=goal.attacker,
        method=goal.method,
        noise=noise,
        draws=goal.draws,
        random_state=goal.key.child(0),
    )
    # an answer's own noise is what it costs, however many answers the attacker averages
    error = linear.generalization_error(
        design,
        method=goal.method,
        noise=noise,
        draws=DRAWS[goal.method] if goal.draws is None else goal.draws,
        random_state=goal.key.child(1),
    )
    return LinearTarget(
        knob=goal.knob,
        target=goal.target,
        attacker=goal.attacker,
        setting=setting,
        advantage=found.value,
        advantage_stderr=found.stderr,
        generalization_error=error.value,
    )


def _check(target: float) -> None:
    if not 0.0 < target < 1.0:
        raise InputError(
            f"A target advantage must lie between 0 and 1, both excluded, but it is {target!r}."
        )
