"""Lower bounds on epsilon from one training with canaries.

Against the worst mechanism there is (a linear programme over all of them), exact sums, the bounds
that jax_privacy gives, and mechanisms of known epsilon.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.sparse import coo_matrix

from leakscope.measures.canaries import (
    FORMS,
    Choice,
    chance_of_guesses,
    choices,
    epsilon_of_mu,
    lower_bound,
    of_any,
    of_gaussian,
    right_guesses,
    surplus_of_guesses,
)


def worst_chance(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """The largest chance of v right guesses over every (epsilon, delta)-private mechanism.

    A linear programme in P(T = t | S = s), for all coins s and all ways t to make r guesses; the
    slacks of each pair of neighbours sum to delta at most.
    """
    coins = list(itertools.product((-1, 1), repeat=m))
    ways = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    place = {(s, t): i for i, (s, t) in enumerate(itertools.product(coins, ways))}
    near = [(s, (*s[:i], -s[i], *s[i + 1 :])) for s in coins for i in range(m)]
    size = len(place)
    cells: list[tuple[int, int, float]] = []
    limits: list[float] = []
    for pair, (s, other) in enumerate(near):
        slacks = [size + pair * len(ways) + j for j in range(len(ways))]
        for j, t in enumerate(ways):
            row = len(limits)
            cells += [(row, place[s, t], 1.0), (row, place[other, t], -exp(epsilon))]
            cells.append((row, slacks[j], -1.0))
            limits.append(0.0)
        cells += [(len(limits), slack, 1.0) for slack in slacks]
        limits.append(delta)
    rows, columns, values = zip(*cells, strict=True)
    width = size + len(near) * len(ways)
    at_most = coo_matrix((values, (rows, columns)), shape=(len(limits), width)).tocsr()
    whole = [(i, place[s, t]) for i, s in enumerate(coins) for t in ways]
    sums = coo_matrix((np.ones(size), tuple(zip(*whole, strict=True))), shape=(len(coins), width))
    aim = np.zeros(width)
    for (s, t), i in place.items():
        if sum(a * b == 1 for a, b in zip(s, t, strict=True)) >= v:
            aim[i] = -1.0 / len(coins)
    found = linprog(aim, A_ub=at_most, b_ub=limits, A_eq=sums.tocsr(), b_eq=np.ones(len(coins)))
    assert found.status == 0
    return -float(found.fun)


@pytest.mark.parametrize(
    ("m", "r", "v"), [(3, 3, 3), (3, 3, 2), (4, 4, 4), (4, 2, 2), (4, 4, 3), (3, 1, 1)]
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.02), (0.0, 0.1), (1.5, 0.005)])
def test_no_mechanism_exceeds_either_bound(
    m: int, r: int, v: int, epsilon: float, delta: float
) -> None:
    worst = worst_chance(m, r, v, epsilon, delta)
    assert worst <= chance_of_guesses(m, r, v, epsilon, delta) + 1e-7
    # The surplus grows with the level: at the worst chance there is none.
    assert surplus_of_guesses(m, r, v, worst, of_any(epsilon, delta)) <= 1e-7
    if delta == 0.0 and r == m:
        # Randomised response is the worst, and the bound is what it does.
        assert worst == pytest.approx(chance_of_guesses(m, r, v, epsilon, delta), abs=1e-7)


@pytest.mark.parametrize(("m", "r", "v"), [(40, 30, 25), (200, 200, 150), (500, 64, 60)])
def test_theorem_5_2_by_exact_sums(m: int, r: int, v: int) -> None:
    delta = Fraction(1, 10_000)
    for odds in (1, 2, 5):  # e^epsilon
        q = Fraction(odds, odds + 1)
        law = [comb(r, w) * q**w * (1 - q) ** (r - w) for w in range(r + 1)]
        steepest = max(sum(law[v - i : v]) / i for i in range(1, v + 1))
        exact = sum(law[v:]) + 2 * m * delta * steepest
        found = chance_of_guesses(m, r, v, float(np.log(odds)), float(delta))
        assert found == pytest.approx(min(1.0, float(exact)), rel=1e-9)


def test_the_gaussian_recursion_is_the_best_of_its_constraints() -> None:
    """A linear programme in the chances p_t; the curve by 400 of its tangents."""
    m, r, v, mu = 24, 12, 10, 0.7
    t = np.arange(r + 1)
    points = np.linspace(-5.0, 5.0, 400)
    from scipy.stats import norm

    slopes = np.exp(-0.5 * (points + mu) ** 2 + 0.5 * points**2)
    heights = norm.cdf(points + mu) - slopes * norm.cdf(points)
    rows, limits = [], []
    for i in range(1, r + 1):
        right = np.where(t >= i, t, 0) / m
        wrong = np.where(t >= i - 1, r - t, 0) / m
        rows += [right - slope * wrong for slope in slopes]
        limits += list(heights)
    found = linprog(
        -(t >= v).astype(float), A_ub=rows, b_ub=limits, A_eq=[np.ones(r + 1)], b_eq=[1]
    )
    best = -float(found.fun)
    assert surplus_of_guesses(m, r, v, 0.998 * best, of_gaussian(mu)) < 0.0
    assert surplus_of_guesses(m, r, v, 1.002 * best, of_gaussian(mu)) > 0.0


# jax_privacy 2.0.0: auditing._epsilon_one_run(0, m, r, v, 0.05, delta), and _epsilon_one_run_fdp.
JAX_PRIVACY = [
    (100, 100, 80, 1e-05, 0.958086, 2.130336),
    (1000, 100, 95, 1e-05, 2.165176, 3.323300),
    (1000, 1000, 620, 1e-05, 0.380339, 0.736354),
    (1000, 50, 50, 1e-06, 2.781889, 4.540357),
    (5000, 300, 270, 1e-06, 1.872161, 2.903855),
    (200, 30, 29, 0.0001, 1.708007, 2.494535),
]


@pytest.mark.parametrize(("m", "r", "v", "delta", "by_theorem", "gaussian"), JAX_PRIVACY)
def test_as_tight_as_jax_privacy(
    m: int, r: int, v: int, delta: float, by_theorem: float, gaussian: float
) -> None:
    found = {
        form: lower_bound(form, m, [Choice(r, 0)], [v], delta=delta, level=0.05).epsilon
        for form in FORMS
    }
    assert chance_of_guesses(m, r, v, by_theorem, delta) == pytest.approx(0.05, rel=1e-4)
    assert found["any"] > by_theorem - 2e-6
    assert found["gaussian"] == pytest.approx(gaussian, abs=1e-5)


def test_the_choices_follow_from_the_number_of_canaries() -> None:
    for m in (2, 15, 16, 33, 1000):
        tried = choices(m)
        assert len(set(tried)) == len(tried)
        assert tried[0].guesses == m
        assert all(one.guesses <= m for one in tried)


def test_no_coins_no_epsilon() -> None:
    """Scores that know nothing; also a file sorted by inclusion whose scores are all equal."""
    rng = np.random.default_rng(5)
    m, tried = 80, choices(80)
    claimed = 0
    for trial in range(300):
        coins = rng.random(m) < 0.5
        scores = rng.normal(size=m) if trial % 2 else np.zeros(m)
        right = right_guesses(scores, np.sort(coins), tried, rng)
        found = [lower_bound(f, m, tried, right, delta=1e-5, level=0.2).epsilon for f in FORMS]
        claimed += max(found) > 0.0
    # At most one in five, and four standard errors.
    assert claimed <= 60 + 4 * (300 * 0.2 * 0.8) ** 0.5


def test_a_gaussian_mechanism_is_bounded_below_its_epsilon() -> None:
    rng = np.random.default_rng(6)
    m, delta, tried = 400, 1e-5, choices(400)
    mu = brentq(lambda mu: epsilon_of_mu(mu, delta) - 4.0, 0.1, 4.0)
    seen = {form: [] for form in FORMS}
    for _ in range(30):
        coins = rng.random(m) < 0.5
        right = right_guesses(rng.normal(size=m) + mu * coins, coins, tried, rng)
        for form in FORMS:
            seen[form].append(lower_bound(form, m, tried, right, delta=delta, level=0.05).epsilon)
    for form in FORMS:
        assert max(seen[form]) < 4.0
    assert np.median(seen["any"]) > 0.7
    assert np.median(seen["gaussian"]) > np.median(seen["any"])


def test_the_epsilon_of_a_gaussian_mechanism() -> None:
    # Cor. 2.13 of Dong, Roth and Su.
    from scipy.stats import norm

    mu, epsilon = 1.3, epsilon_of_mu(1.3, 1e-4)
    delta = norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-4, rel=1e-8)
