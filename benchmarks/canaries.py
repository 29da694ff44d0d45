"""Canaries: does the lower bound on epsilon hold, and how tight is it?

Run ``python benchmarks/canaries.py --environments DIR``; it prints two markdown tables in about ten
minutes.  The first is of scores that know nothing, and of Gaussian mechanisms whose epsilon is
known.  The second puts the same scores to jax_privacy, in an environment of its own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from leakscope.measures.canaries import (
    FORMS,
    choices,
    epsilon_of_mu,
    lower_bound,
    right_guesses,
)

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from environments import ask

DELTA, LEVEL = 1e-5, 0.05
SIZES = (100, 1_000, 10_000)
EPSILONS = (0.0, 1.0, 4.0, 8.0)


def trained(m: int, epsilon: float, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and coins of one training: a Gaussian mechanism, each canary in its own direction."""
    rng = np.random.default_rng([m, round(10 * epsilon), trial])
    coins = rng.random(m) < 0.5
    mu = brentq(lambda mu: epsilon_of_mu(mu, DELTA) - epsilon, 0.0, 10.0) if epsilon else 0.0
    return rng.normal(size=m) + mu * coins, coins


def bounds(scores: np.ndarray, coins: np.ndarray) -> list[float]:
    tried = choices(len(coins))
    right = right_guesses(scores, coins, tried, np.random.default_rng(0))
    return [
        lower_bound(form, len(coins), tried, right, delta=DELTA, level=LEVEL).epsilon
        for form in FORMS
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--raced", type=int, default=20)
    options = parser.parse_args()
    print(f"Delta {DELTA:g}, confidence {1 - LEVEL:.0%}, {options.repeats} trainings a row.\n")
    print("| epsilon | canaries | too high, any | too high, Gaussian | median, any | Gaussian |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for m in SIZES:
            repeats = options.repeats if m < 10_000 else options.repeats // 5
            found = np.array([bounds(*trained(m, epsilon, i)) for i in range(repeats)])
            high = (found > epsilon).mean(0)
            middle = np.median(found, axis=0)
            print(
                f"| {epsilon:g} | {m:,} | {high[0]:.3f} | {high[1]:.3f} | {middle[0]:.2f} | "
                f"{middle[1]:.2f} |",
                flush=True,
            )
    print(f"\nThe same scores, mean of {options.raced} trainings:\n")
    print("| epsilon | canaries | any | Theorem 5.2, jax_privacy | Gaussian | f-DP, jax_privacy |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS[1:]:
        for m in SIZES:
            trials = [trained(m, epsilon, i) for i in range(options.raced)]
            own = np.mean([bounds(*one) for one in trials], axis=0)
            arrays = {"scores": np.array([s for s, _ in trials])}
            arrays["coins"] = np.array([c for _, c in trials])
            asked = {"delta": DELTA, "level": LEVEL}
            peer = ask(
                "jax-privacy", "peer_jax_privacy.py", asked, arrays, options.environments, threads=1
            )
            print(
                f"| {epsilon:g} | {m:,} | {own[0]:.2f} | {np.mean(peer['theorem']):.2f} | "
                f"{own[1]:.2f} | {np.mean(peer['gaussian']):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
