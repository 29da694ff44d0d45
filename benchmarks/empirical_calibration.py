"""Null calibration and coverage of the empirical measures, before and after correction.

Run ``python benchmarks/empirical_calibration.py``; it prints two markdown tables in under a minute.
"Before" is what is often done: the plug-in value, and an interval that takes the threshold chosen
on the same scores as given (Clopper-Pearson or Wald).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import integrate, stats

from leakscope.measures import empirical_estimates as ee
from leakscope.measures.empirical_kl import kl
from leakscope.measures.empirical_ranks import binomial_lower, binomial_upper

Floats = npt.NDArray[np.float64]
Triple = tuple[Floats, Floats, Floats]
ROWS = 400
SIZES = [(20, 30), (100, 100), (1000, 500)]
FPR, EPSILON, DELTA = 0.1, 0.5, 0.01


def rates(member: Floats, nonmember: Floats) -> tuple[npt.NDArray[np.int64], ...]:
    """Count members and nonmembers at or above every pooled score."""
    cuts = np.sort(np.concatenate([member, nonmember], -1), -1)
    top = member.shape[-1] - np.stack(
        [np.searchsorted(a, c) for a, c in zip(np.sort(member, -1), cuts, strict=True)]
    )
    bottom = nonmember.shape[-1] - np.stack(
        [np.searchsorted(a, c) for a, c in zip(np.sort(nonmember, -1), cuts, strict=True)]
    )
    return top.astype(np.int64), bottom.astype(np.int64)


def at_best(quality: Floats, *counts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    best = quality.argmax(-1)[:, None]
    return [np.take_along_axis(count, best, -1)[:, 0] for count in counts]


def naive_auc(member: Floats, nonmember: Floats) -> Triple:
    value = ee.auc(member, nonmember).value
    wins = [
        stats.rankdata(np.concatenate([a, b], -1), axis=-1)[:, : a.shape[-1]]
        - stats.rankdata(a, axis=-1)
        for a, b in ((member, nonmember), (nonmember, member))
    ]
    n, m = member.shape[-1], nonmember.shape[-1]
    variance = (wins[0] / m).var(-1, ddof=1) / n + (wins[1] / n).var(-1, ddof=1) / m
    half = 1.96 * np.sqrt(variance)
    return value, value - half, value + half


def naive_tpr(member: Floats, nonmember: Floats) -> Triple:
    value = ee.tpr_at_fpr(member, nonmember, FPR).value
    n = member.shape[-1]
    hits = np.rint(value * n).astype(np.int64)
    return value, binomial_lower(hits, n, 0.025), binomial_upper(hits, n, 0.025)


def naive_delta(epsilon: float) -> Callable[[Floats, Floats], Triple]:
    def measure(member: Floats, nonmember: Floats) -> Triple:
        n, m, weight = member.shape[-1], nonmember.shape[-1], np.exp(epsilon)
        top, bottom = rates(member, nonmember)
        x, y = at_best(top / n - weight * bottom / m, top, bottom)
        p, q = x / n, y / m
        value = np.maximum(p - weight * q, 0)
        half = 1.96 * np.sqrt(p * (1 - p) / n + weight**2 * q * (1 - q) / m)
        return value, np.maximum(value - half, 0), value + half

    return measure


def naive_epsilon(member: Floats, nonmember: Floats) -> Triple:
    n, m = member.shape[-1], nonmember.shape[-1]
    top, bottom = rates(member, nonmember)
    low = np.maximum(binomial_lower(top, n, 0.025) - DELTA, 1e-300) / binomial_upper(
        bottom, m, 0.025
    )
    plugin = np.log(np.maximum((top + 0.5) / (n + 1) - DELTA, 1e-300) / ((bottom + 0.5) / (m + 1)))
    bound = np.maximum(np.log(low).max(-1), 0)
    return np.maximum(plugin.max(-1), 0), bound, np.full(len(bound), np.inf)


def naive_kl(member: Floats, nonmember: Floats) -> Triple:
    """Ten bins at pooled quantiles, one half added to each count, delta-method interval."""
    edges = np.quantile(np.concatenate([member, nonmember], -1), np.linspace(0, 1, 11)[1:-1], -1)
    shares = []
    for sample in (nonmember, member):
        below = (sample[:, None, :] < edges.T[:, :, None]).sum(-1)
        counts = np.diff(np.pad(below, ((0, 0), (1, 1)), constant_values=(0, 0))[:, :-1], axis=-1)
        counts = np.concatenate([counts, sample.shape[-1] - below[:, -1:]], -1) + 0.5
        shares.append(counts / counts.sum(-1, keepdims=True))
    p, q = shares
    log_ratio = np.log(p / q)
    value = (p * log_ratio).sum(-1)
    spread = ((p * log_ratio**2).sum(-1) - value**2) / nonmember.shape[-1]
    spread += ((p**2 / q).sum(-1) - 1) / member.shape[-1]
    half = 1.96 * np.sqrt(np.maximum(spread, 0))
    return value, value - half, value + half


def ours(measure: Callable[[Floats, Floats], ee.Estimate]) -> Callable[[Floats, Floats], Triple]:
    def run(member: Floats, nonmember: Floats) -> Triple:
        found = measure(member, nonmember)
        return found.value, found.low, found.high

    return run


MEASURES: dict[str, tuple[Callable[[Floats, Floats], Triple], ...]] = {
    "auc": (naive_auc, ours(ee.auc)),
    f"tpr at fpr {FPR}": (naive_tpr, ours(lambda a, b: ee.tpr_at_fpr(a, b, FPR))),
    "advantage": (naive_delta(0.0), ours(ee.advantage)),
    f"delta at epsilon {EPSILON}": (
        naive_delta(EPSILON),
        ours(lambda a, b: ee.delta_at_epsilon(a, b, EPSILON)),
    ),
    f"epsilon at delta {DELTA}": (
        naive_epsilon,
        ours(lambda a, b: ee.epsilon_at_delta(a, b, DELTA, direction="member_to_nonmember")),
    ),
    "kl": (naive_kl, ours(kl)),
}


class Law:
    """A pair of laws on a finite set of values, with every true measure by summation."""

    def __init__(self, values: Floats, member: Floats, nonmember: Floats) -> None:
        self.values, self.p, self.q = values, member / member.sum(), nonmember / nonmember.sum()
        self.fpr = np.append(0, np.cumsum(self.q[::-1]))
        self.tpr = np.append(0, np.cumsum(self.p[::-1]))

    def draw(self, generator: np.random.Generator, n: int, m: int) -> tuple[Floats, Floats]:
        return (
            generator.choice(self.values, (ROWS, n), p=self.p),
            generator.choice(self.values, (ROWS, m), p=self.q),
        )

    def truth(self, name: str) -> float:
        if name == "auc":
            return float(integrate.trapezoid(self.tpr, self.fpr))
        if name.startswith("tpr"):
            return float(np.interp(FPR, self.fpr, self.tpr))
        if name.startswith("kl"):
            return float(np.sum(self.q * np.log(self.q / self.p)))
        if name.startswith("epsilon"):
            use = (self.fpr > 0) & (self.tpr > DELTA)
            ratio = (self.tpr[use] - DELTA) / self.fpr[use]
            return float(np.log(ratio.max()))
        weight = 1.0 if name == "advantage" else np.exp(EPSILON)
        return float(np.max(self.tpr - weight * self.fpr))


def normal(shift: float, width: float, scale: float = 1.0) -> Law:
    values = np.arange(-5.0, 5.0 + shift, width)
    edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
    return Law(values, np.diff(stats.norm.cdf(edges, shift, scale)), np.diff(stats.norm.cdf(edges)))


def heavy() -> Law:
    """Return normal members and Laplace nonmembers: hard for KL(nonmember || member)."""
    values = np.arange(-7.0, 7.0, 0.001)
    return Law(values, stats.norm.pdf(values), stats.laplace.pdf(values))


NULLS = {
    "continuous": normal(0.0, 0.0005),
    "three values": Law(np.arange(3.0), np.ones(3), np.ones(3)),
}
LEAKS = {
    "normal, shift 0.5": normal(0.5, 0.0005),
    "normal, shift 1": normal(1.0, 0.0005),
    "normal, shift 2": normal(2.0, 0.0005),
    "normal, member sd 0.7": normal(0.0, 0.0005, 0.7),
    "normal members, Laplace nonmembers": heavy(),
    "normal, shift 1, rounded to 0.5": normal(1.0, 0.5),
    "two values, 0.3 and 0.1": Law(np.arange(2.0), np.array([0.7, 0.3]), np.array([0.9, 0.1])),
}


def main() -> None:
    start = time.perf_counter()
    print(f"Intervals at 95%, {ROWS} data sets each; before -> after correction.\n")
    print("| null scores | measure | sizes | interval excludes no leakage | mean value |")
    print("|---|---|---|---|---|")
    for law_name, law in NULLS.items():
        for name, pair in MEASURES.items():
            for sizes in SIZES:
                scores = law.draw(np.random.default_rng(sizes), *sizes)
                truth = max(law.truth(name), 0.0)
                cells = []
                for value, low, high in (measure(*scores) for measure in pair):
                    away = ((low > truth + 1e-12) | (high < truth - 1e-12)).mean()
                    cells.append((f"{away:.3f}", f"{np.nanmean(value):.3f}"))
                columns = " | ".join(f"{a} -> {b}" for a, b in zip(*cells, strict=True))
                print(f"| {law_name} | {name} | {sizes[0]}, {sizes[1]} | {columns} |")
    print("\n| scores | measure | sizes | truth | mean value | coverage | median interval after |")
    print("|---|---|---|---|---|---|---|")
    for law_name, law in LEAKS.items():
        for name, pair in MEASURES.items():
            for sizes in SIZES:
                scores = law.draw(np.random.default_rng(sizes), *sizes)
                truth = law.truth(name)
                cells = []
                for value, low, high in (measure(*scores) for measure in pair):
                    inside = ((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean()
                    cells.append((f"{np.nanmean(value):.3f}", f"{inside:.3f}"))
                columns = " | ".join(f"{a} -> {b}" for a, b in zip(*cells, strict=True))
                middle = f"{np.median(low):.3f} to {np.median(high):.3f}"
                print(
                    f"| {law_name} | {name} | {sizes[0]}, {sizes[1]} | {truth:.3f} | {columns} "
                    f"| {middle} |"
                )
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
