"""A lower bound on epsilon from one training with canaries, each included by a fair coin.

An attacker names some canaries as included and some as left out, and abstains on the others.  A
private training limits how many of these guesses can be right, so that many right ones contradict
a small epsilon.  Two forms:

- *any mechanism*: Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846), Theorem 5.2, or Mahloujifar,
  Melis and Chaudhuri 2024 (arXiv 2410.22235) with the trade-off function of (epsilon, delta),
  whichever shows more;
- *Gaussian mechanism*: the latter with the trade-off function of two unit normals at a distance mu.
  Tighter, and only for such mechanisms.

Symbols: m canaries, r guesses, v of them right, S the coins, T the guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc, expit, gammaln, ndtr, ndtri, xlogy

from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import epsilon_at_delta

Form = Literal["any", "gaussian"]
FORMS: tuple[Form, ...] = ("any", "gaussian")

# Fewer guesses than these are not worth a share of the error: all right, they show little.
FEWEST_GUESSES = 16
# An epsilon or a mu beyond this is told as this.
LARGEST = 100.0
# An epsilon and a mu are found to so many units.
CLOSE = 1e-9


@dataclass(frozen=True)
class Choice:
    """How many canaries are named as included (the highest scores) and as left out (the lowest)."""

    included: int
    left_out: int

    @property
    def guesses(self) -> int:
        """All of them: r."""
        return self.included + self.left_out


@dataclass(frozen=True)
class Bound:
    """A lower bound, the choice that gave it, and how many of its guesses were right."""

    epsilon: float
    mu: float | None
    choice: Choice
    right: int


def choices(canaries: int) -> tuple[Choice, ...]:
    """Numbers of guesses to try, without a look at the scores: by halves, on both sides and on top.

    Examples
    --------
    >>> from leakscope.measures.canaries import choices
    >>> [(one.included, one.left_out) for one in choices(40)]
    [(20, 20), (10, 10), (20, 0)]
    """
    both: list[Choice] = []
    top: list[Choice] = []
    guesses = canaries
    while not both or guesses >= FEWEST_GUESSES:
        both.append(Choice(guesses - guesses // 2, guesses // 2))
        if FEWEST_GUESSES <= guesses <= canaries // 2:
            top.append(Choice(guesses, 0))
        guesses //= 2
    return (*both, *top)


def chance_of_coins(included: int, canaries: int) -> float:
    """Of a count at least as far from one half, if the coins are fair.

    Examples
    --------
    >>> from leakscope.measures.canaries import chance_of_coins
    >>> chance_of_coins(0, 3), chance_of_coins(5, 10)
    (0.25, 1.0)
    """
    fewer = min(included, canaries - included)
    return min(1.0, 2.0 * float(betainc(canaries - fewer, fewer + 1, 0.5)))


def right_guesses(
    scores: NDArray[np.float64],
    included: NDArray[np.bool_],
    tried: Sequence[Choice],
    rng: np.random.Generator,
) -> list[int]:
    """How many guesses of each choice are right; equal scores stand in an order drawn by ``rng``.

    By the file's order they must not: a file that is sorted by inclusion would name them.
    """
    order = np.lexsort((rng.random(len(scores)), -scores))
    coins = included[order]
    # Of the first k how many were included, and of the last k how many were not.
    top = np.concatenate([[0], np.cumsum(coins)])
    bottom = np.concatenate([[0], np.cumsum(~coins[::-1])])
    return [int(top[one.included] + bottom[one.left_out]) for one in tried]


def chance_of_guesses(
    canaries: int, guesses: int, right: int, epsilon: float, delta: float
) -> float:
    """The largest chance that an (epsilon, delta)-private training has of so many right guesses.

    Theorem 5.2 of arXiv 2305.08846: ``P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i`` with W
    binomial of r guesses, each right with chance ``e^epsilon / (1 + e^epsilon)``.

    Examples
    --------
    Randomised response reaches it at delta 0: ten of ten guesses right.

    >>> from leakscope.measures.canaries import chance_of_guesses
    >>> round(chance_of_guesses(10, 10, 10, epsilon=0.0, delta=0.0) * 1024, 12)
    1.0
    """
    if right <= 0:
        return 1.0
    q, wrong = expit(epsilon), expit(-epsilon)
    reached = float(betainc(right, guesses - right + 1, q))
    steepest, first, size = 0.0, 1, 64
    # From i on the slope is at most 1 / i: later terms cannot be the steepest.
    mass = 0.0
    while delta > 0.0 and first <= right and steepest < 1.0 / first:
        steps = np.arange(first, min(first + size, right + 1))
        w = right - steps
        log_mass = (
            gammaln(guesses + 1.0)
            - gammaln(w + 1.0)
            - gammaln(guesses - w + 1.0)
            + xlogy(w, q)
            + xlogy(guesses - w, wrong)
        )
        below = mass + np.cumsum(np.exp(log_mass))
        steepest = max(steepest, float(np.max(below / steps)))
        mass, first, size = float(below[-1]), first + size, 2 * size
    return min(1.0, reached + 2.0 * canaries * delta * steepest)


def surplus_of_guesses(
    canaries: int,
    guesses: int,
    right: int,
    level: float,
    least_wrong: Callable[[float], float],
) -> float:
    """By how much so many right guesses with chance ``level`` overfill a trade-off function.

    Positive: no mechanism with that trade-off function f has so many right with that chance.  With
    ``p_t`` the chance of t right guesses, R_i = sum of t p_t / m and H_i = sum of (r - t) p_t / m,
    both over t >= i.  A turned coin makes a right guess a wrong one and leaves the others, so that
    R_i <= 1 - f(H_{i-1}), averaged over canaries and coins (1 - f is concave); this and what
    follows is the recursion of arXiv 2410.22235 for two buckets.  From i = v down H is given the
    least that it can have; at the end R_0 + H_0 must be r / m.

    ``least_wrong`` is the inverse of 1 - f: the least H for an R.
    """
    r = level * right / canaries
    h = level * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        least = least_wrong(r)
        if least <= h:
            break
        r = min(r + i / (guesses - i) * (least - h), 1.0)
        h = least
    return r + h - guesses / canaries


def of_any(epsilon: float, delta: float) -> Callable[[float], float]:
    """The least share of wrong guesses for a share of right ones, if (epsilon, delta)-private."""
    grown = math.exp(epsilon)
    return lambda r: max(0.0, (r - delta) / grown, 1.0 - delta - grown * (1.0 - r))


def of_gaussian(mu: float) -> Callable[[float], float]:
    """The same of a mu-Gaussian mechanism: ``Phi(Phi^-1(r) - mu)``."""
    return lambda r: float(ndtr(ndtri(r) - mu))


def lower_bound(
    form: Form,
    canaries: int,
    tried: Sequence[Choice],
    right: Sequence[int],
    *,
    delta: float,
    level: float,
) -> Bound:
    """The largest lower bound on epsilon that one of the choices gives.

    ``level`` is the chance of a bound that is too high.  Each choice has an equal share of it
    (Bonferroni), so that the best may be taken.

    Examples
    --------
    >>> from leakscope.measures.canaries import Choice, lower_bound
    >>> found = lower_bound("any", 1000, [Choice(50, 50)], [95], delta=1e-5, level=0.05)
    >>> round(found.epsilon, 3)
    2.165
    """
    share = level / len(tried)
    best, of = 0.0, 0
    for place, (choice, count) in enumerate(zip(tried, right, strict=True)):
        surplus = _surplus(form, canaries, choice.guesses, count, delta, share)
        # Most choices are ruled out by one look at the best so far.
        if surplus(best) > 0.0:
            best, of = _last_positive(surplus, best), place
    mu = best if form == "gaussian" else None
    epsilon = best if mu is None else epsilon_of_mu(mu, delta)
    return Bound(epsilon, mu, tried[of], right[of])


def _surplus(
    form: Form, canaries: int, guesses: int, right: int, delta: float, share: float
) -> Callable[[float], float]:
    """Positive where an epsilon, or a mu, is contradicted.

    For any mechanism there are two bounds on the chance of so many right guesses, and the smaller
    is one too: Theorem 5.2 is exact at delta 0, the other keeps its digits where m delta is large.
    """
    if form == "gaussian":
        return lambda mu: surplus_of_guesses(canaries, guesses, right, share, of_gaussian(mu))
    return lambda epsilon: max(
        share - chance_of_guesses(canaries, guesses, right, epsilon, delta),
        surplus_of_guesses(canaries, guesses, right, share, of_any(epsilon, delta)),
    )


def _last_positive(surplus: Callable[[float], float], low: float) -> float:
    high = max(1.0, 2.0 * low)
    while surplus(high) > 0.0:
        low, high = high, 2.0 * high
        if low >= LARGEST:
            return LARGEST
    return float(brentq(surplus, low, high, xtol=CLOSE))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The epsilon at delta of a mu-Gaussian mechanism.

    Examples
    --------
    >>> from leakscope.measures.canaries import epsilon_of_mu
    >>> round(epsilon_of_mu(1.0, 1e-5), 3)
    4.377
    """
    if mu <= 0.0:
        return 0.0
    pair = LawPair(member=Normal(mu, 1.0), nonmember=Normal(0.0, 1.0))
    return float(np.asarray(epsilon_at_delta(pair, delta)))


def largest_bound(
    form: Form, canaries: int, tried: Sequence[Choice], *, delta: float, level: float
) -> float:
    """The bound if every guess had been right: no attack can show more with these canaries."""
    right = [one.guesses for one in tried]
    return lower_bound(form, canaries, tried, right, delta=delta, level=level).epsilon
