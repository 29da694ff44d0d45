"""All measures of 50,000 pairs of normals: leakscope in one call against a loop over SciPy.

Both compute the same numbers (checked here) in the same run: advantage, overlap, KL both ways,
Rényi of order 2, AUC, TPR at four FPRs, epsilon at a delta and delta at an epsilon, both ways.
The loop is what one writes without this package: closed-form level sets, normal tails in logs
(without logs it gets epsilon wrong in the second digit), `brentq` for the inverse questions and
`quad` for the AUC.  Two loops: one calls `scipy.stats.norm`, one is tuned by hand and calls
`scipy.special.log_ndtr` on plain floats.  They are timed on a sample of the pairs.

    python benchmarks/measures_of_normals.py
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable

import numpy as np
import scipy
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import norm

from leakscope import measures
from leakscope.laws import LawPair, Normal
from leakscope.measures.pair_measures import Summary

FPR = (0.1, 0.01, 0.001, 1e-5)
DELTA, EPSILON, ORDER = 1e-5, 1.0, 2.0
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def region(d: float, s: float, t: float) -> tuple[float, float, bool]:
    """Ends of the level set l = t of N(d, s^2) against N(0, 1), and whether l > t lies outside."""
    a, b, c = 0.5 * (1.0 - 1.0 / s**2), d / s**2, -0.5 * (d / s) ** 2 - math.log(s) - t
    if abs(a) < 1e-12:
        return (-math.inf, -c / b, True) if b > 0.0 else (-c / b, math.inf, True)
    disc = b * b - 4.0 * a * c
    if disc <= 0.0:
        return (0.0, 0.0, a > 0.0)
    root = math.sqrt(disc)
    low, high = sorted(((-b - root) / (2.0 * a), (-b + root) / (2.0 * a)))
    return low, high, a > 0.0


LogCdf = Callable[[float], float]


def log_mass(log_cdf: LogCdf, d: float, s: float, ends: tuple[float, float, bool]) -> float:
    """Log mass of N(d, s^2) between the ends, or outside them."""
    low, high, outside = (ends[0] - d) / s, (ends[1] - d) / s, ends[2]
    if outside:
        left, right = log_cdf(low), log_cdf(-high)
        larger = max(left, right)
        return larger + math.log1p(math.exp(min(left, right) - larger))
    if low > 0.0:
        low, high = -high, -low
    left, right = log_cdf(low), log_cdf(high)
    return right + math.log1p(-math.exp(left - right)) if right > left else -math.inf


def hockey_stick(log_cdf: LogCdf, d: float, s: float, epsilon: float) -> float:
    ends = region(d, s, epsilon)
    up, down = log_mass(log_cdf, d, s, ends), log_mass(log_cdf, 0.0, 1.0, ends) + epsilon
    return -math.exp(up) * math.expm1(down - up) if up > -math.inf else 0.0


def one_pair(d: float, s: float, log_cdf: LogCdf = log_ndtr) -> list[float]:
    """Every number of the summary for one pair, with SciPy."""
    r, back_d = 1.0 / s, -d / s

    def epsilon_at(shift: float, scale: float) -> float:
        high = 1.0
        while hockey_stick(log_cdf, shift, scale, high) > DELTA:
            high *= 2.0
        return brentq(
            lambda e: hockey_stick(log_cdf, shift, scale, e) - DELTA, 0.0, high, xtol=1e-12
        )

    def llr(x: float) -> float:
        return 0.5 * x * x - 0.5 * ((x - d) / s) ** 2 - math.log(s)

    def density(x: float) -> float:
        return math.exp(-0.5 * ((x - d) / s) ** 2) / (s * math.sqrt(2.0 * math.pi))

    advantage = hockey_stick(log_cdf, d, s, 0.0)
    kl = 0.5 * (r * r + back_d**2 - 1.0 - 2.0 * math.log(r))
    kl_reverse = 0.5 * (s * s + d * d - 1.0 - 2.0 * math.log(s))
    spread = ORDER + (1.0 - ORDER) * r * r
    renyi = math.inf
    if spread > 0.0:
        renyi = math.log(r) * -1.0 + 0.5 * math.log(spread) / (1.0 - ORDER)
        renyi += 0.5 * ORDER * back_d**2 / spread
    auc = (
        1.0
        - quad(
            lambda x: density(x) * math.exp(log_mass(log_cdf, 0.0, 1.0, region(d, s, llr(x)))),
            d - 9.0 * s,
            d + 9.0 * s,
            points=[d, -d / (s * s - 1.0)],
            limit=200,
        )[0]
    )
    tpr = []
    vertex, outside = -d / (s * s - 1.0), s > 1.0

    def ends_at(h: float) -> tuple[float, float, bool]:
        return vertex - h, vertex + h, outside

    def log_fpr(h: float, target: float) -> float:
        return log_mass(log_cdf, 0.0, 1.0, ends_at(h)) - target

    for fpr in FPR:
        h = brentq(log_fpr, 1e-12, abs(vertex) + 9.0, args=(math.log(fpr),))
        tpr.append(math.exp(log_mass(log_cdf, d, s, ends_at(h))))
    epsilon = max(epsilon_at(d, s), epsilon_at(back_d, r))
    delta = max(hockey_stick(log_cdf, d, s, EPSILON), hockey_stick(log_cdf, back_d, r, EPSILON))
    return [advantage, 1.0 - advantage, kl, kl_reverse, auc, renyi, *tpr, epsilon, delta]


def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(20261115)
    return generator.normal(size=size), np.exp(0.5 * generator.normal(size=size))


def call(d: np.ndarray, s: np.ndarray) -> Summary:
    pair = LawPair(Normal(d, s), Normal(0.0, 1.0))
    return measures.summary(pair, fpr=FPR, delta=(DELTA,), epsilon=(EPSILON,), order=(ORDER,))


def main() -> None:
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}\n"
    )
    d, s = draw(50_000)
    call(d[:1000], s[:1000])
    found = call(d, s)
    ours = min(_timed(d, s) for _ in range(3))
    names = [
        *("advantage", "overlap", "kl", "kl_reverse", "auc", f"renyi_{ORDER:g}"),
        *(f"tpr_at_fpr_{x:g}" for x in FPR),
        f"epsilon_at_delta_{DELTA:g}",
        f"delta_at_epsilon_{EPSILON:g}",
    ]
    print("| route, 50,000 pairs, 12 measures | seconds | ratio | farthest from leakscope |")
    print("|---|---|---|---|")
    print(f"| leakscope, one call | {ours:.2f} | 1 | |")
    loops = (("scipy.stats.norm", norm.logcdf, 20), ("scipy.special.log_ndtr", log_ndtr, 400))
    for name, log_cdf, count in loops:
        start = time.perf_counter()
        looped = [one_pair(float(d[i]), float(s[i]), log_cdf) for i in range(count)]
        theirs = (time.perf_counter() - start) / count * d.size
        with np.errstate(invalid="ignore"):
            apart = np.abs(found.to_frame()[names].to_numpy()[:count] / np.array(looped) - 1.0)
        print(
            f"| loop over {name} ({count} pairs timed, scaled) | {theirs:.0f} "
            f"| {theirs / ours:.0f} | {np.nanmax(apart):.0e} |"
        )
    print()
    print("| pairs | microseconds a pair | relative to 1,000 pairs |\n|---|---|---|")
    first = None
    for size in SIZES:
        d, s = draw(size)
        best = min(_timed(d, s) for _ in range(3 if size <= 50_000 else 1)) / size * 1e6
        first = first or best
        print(f"| {size:,} | {best:.1f} | {best / first:.2f} |")


def _timed(d: np.ndarray, s: np.ndarray) -> float:
    start = time.perf_counter()
    call(d, s)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
