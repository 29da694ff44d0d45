"""Fig. 2 of **linear**: the advantage against p/n, in the limit and at n = 100."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from leakscope import linear
from leakscope.laws import Key
from leakscope.linear import GaussianDesign, RecordNorms
from leakscope.measures import ScoredAdvantage, scored_advantage
from leakscope.planning import linear_advantage
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_records import (
    each_record,
    finite_n_advantage,
    growing_norms,
    histogram_of_law,
    theory_advantage,
)
from papers.mean_interval import Mean, around, mean_interval

COLUMNS = ["p/n", "advantage", "series", "source", "low", "high"]

# Read off the paths of the authors' Fig. 2(b): means over 20 records, good to 0.01 or 0.02.
READ = {
    110: 0.488, 120: 0.357, 130: 0.271, 150: 0.154, 160: 0.112, 170: 0.076, 180: 0.050,
    190: 0.032, 200: 0.027, 210: 0.037, 230: 0.073, 275: 0.144, 300: 0.173, 350: 0.223,
    500: 0.328, 800: 0.443, 1500: 0.564, 2000: 0.609,
}  # fmt: skip
READING = 0.02

FORMULA, HISTOGRAM, EXACT = "Eq. (4)", "histograms", "finite-n law"
MATRICES = "whole matrices"


def make_2a(order: Order) -> Made:
    """Eq. (4) at 100 records, n = 1,000, D = 10 million; the finite-n law at some p/n."""
    n, dim, count = (int(order.knobs[name]) for name in ("n", "D", "records"))
    sigma = order.knobs["sigma"]
    sizes = sorted({p for k in range(1, 234, 2) if n < (p := round(1.04**k * n)) <= dim})
    order.step("Eq. (4)")
    records = growing_norms(sizes, dim, count, order.key.child(0))
    theory = {
        p: theory_advantage(GaussianDesign(n, p, dim, sigma), norms)
        for p, norms in zip(sizes, records, strict=True)
    }
    order.step("finite-n law")
    draws = 20_000 if order.full else 4_000
    exact = {
        p: linear_advantage(
            GaussianDesign(n, p, dim, sigma), attacker="label_hidden", draws=draws,
            random_state=order.key.child(1, p),
        )
        for ratio in (1.04, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1_000.0)
        if (p := round(ratio * n)) <= dim
    }  # fmt: skip
    rows = [(p / n, value, FORMULA, "theory", np.nan, np.nan) for p, value in theory.items()]
    for p, found in exact.items():
        one = around(found.value, found.stderr)
        rows.append((p / n, one.value, EXACT, "simulation", one.low, one.high))
    panel = Panel(
        "advantage against p/n", pd.DataFrame(rows, columns=COLUMNS), x="p/n", y="advantage",
        series="series", low="low", high="high", x_log=True,
    )  # fmt: skip
    claims = (
        _dips_at_two(theory, n, dim, sigma), _rises(theory, n), _approaches_one(n, sigma),
    )  # fmt: skip
    settings = {"n": n, "D": dim, "sigma": sigma, "records": count, "designs": draws}
    notes = (
        f"The points are ours: the exact law at n = {n:,}, which the paper says has no closed "
        "form.",
    )
    return Made((panel,), claims, settings=settings, notes=notes)


def _dips_at_two(theory: dict[int, float], n: int, dim: int, sigma: float) -> Claim:
    """Records differ in norm by a few percent, so that the mean is not zero at any one p."""
    below = [value for p, value in theory.items() if p <= 1.9 * n]
    falls = all(a > b for a, b in itertools.pairwise(below))
    least = min(theory, key=lambda p: theory[p])
    design = GaussianDesign(n, 2 * n, dim, sigma)
    typical = theory_advantage(design, RecordNorms.typical(design))
    return judge(
        "the advantage falls while p/n < 2 and is zero at p/n = 2", "Sec. 3.2, Fig. 2(a)",
        f"it falls from {below[0]:.2f} at p/n = {min(theory) / n:.3g} to its least, "
        f"{theory[least]:.3f}, at p/n = {least / n:.2f}; at the record of average norm it is "
        f"{typical:.4f} at p/n = 2",
        as_printed=falls and abs(least / n - 2.0) < 0.1 and typical < 1.0 / n,
    )  # fmt: skip


def _rises(theory: dict[int, float], n: int) -> Claim:
    beyond = [value for p, value in theory.items() if p >= 2.1 * n]
    rises = all(a < b for a, b in itertools.pairwise(beyond))
    return judge(
        "for p/n > 2 the advantage rises with the number of parameters", "Sec. 3.2, Fig. 2",
        f"from {beyond[0]:.3f} to {beyond[-1]:.3f} over {len(beyond)} values of p, each above the "
        "one before" if rises else "it does not rise everywhere",
        as_printed=rises,
    )  # fmt: skip


def _approaches_one(n: int, sigma: float) -> Claim:
    """p = D, with D growing: the shortfall must fall with each step and come near zero."""
    sizes = [n * 10**k for k in (2, 4, 6, 8)]
    short = [1.0 - theory_advantage(GaussianDesign(n, d, d, sigma)) for d in sizes]
    return judge(
        "the advantage approaches 1 as p/n grows without bound", "Sec. 3.2",
        "one minus it is " + ", ".join(f"{value:.1e}" for value in short)
        + " at p = D = " + ", ".join(f"{size:.0e}" for size in sizes),
        as_printed=all(b < a / 2 for a, b in itertools.pairwise(short)),
    )  # fmt: skip


def make_2b(order: Order) -> Made:
    """Histograms of 100,000 predictions at n = 100, D = 3,000, beside Eq. (4) and the exact law."""
    n, dim, sigma = int(order.knobs["n"]), int(order.knobs["D"]), order.knobs["sigma"]
    printed = (n, dim, sigma) == (100, 3_000, 1.0)
    count, designs, matrices = (20, 20_000, 400) if order.full else (8, 2_000, 40)
    # The ratios p/n that were read off the figure.
    sizes = [round(p * n / 100) for p in READ]
    records = growing_norms(sizes, dim, count, order.key.child(0))
    order.step("histograms")
    seen: dict[int, Mean] = {}
    gaps: dict[int, float] = {}
    for p, norms in zip(sizes, records, strict=True):
        design = GaussianDesign(n, p, dim, sigma)
        batch = linear.law_pair(design, norms, draws=designs, random_state=order.key.child(1, p))
        generator = order.key.child(2, p).generator()
        pairs = each_record(batch)
        seen[p] = mean_interval([histogram_of_law(pair, generator) for pair in pairs])
        gaps[p] = abs(scored_advantage(batch).value - theory_advantage(design, norms))
    order.step("whole matrices")
    whole = {
        p: _whole(GaussianDesign(n, p, dim, sigma), matrices, order.key.child(3, p))
        for p in (round(ratio * n) for ratio in (1.5, 3.0, 8.0, 20.0))
    }
    exact = {
        p: finite_n_advantage(GaussianDesign(n, p, dim, sigma), designs, order.key.child(4, p))
        for p in whole
    }
    grid = np.unique(np.geomspace(1.06 * n, 20 * n, 60).astype(int)).tolist()
    line = {p: theory_advantage(GaussianDesign(n, p, dim, sigma)) for p in grid}
    rows = [(p / n, value, FORMULA, "theory", np.nan, np.nan) for p, value in line.items()]
    for p, one in seen.items():
        rows.append((p / n, one.value, HISTOGRAM, "simulation", one.low, one.high))
    for p, found in whole.items():
        one = around(found.value, found.stderr)
        rows.append((p / n, one.value, MATRICES, "simulation", one.low, one.high))
    rows += [
        (p / n, y, "read off the figure", "published", np.nan, np.nan)
        for p, y in (READ if printed else {}).items()
    ]
    panel = Panel(
        f"advantage at n = {n:,}, D = {dim:,}", pd.DataFrame(rows, columns=COLUMNS), x="p/n",
        y="advantage", series="series", low="low", high="high", x_log=True,
    )  # fmt: skip
    claims = (
        _agrees(gaps, whole, exact, line),
        _rises_at_finite_n(seen, n),
        *([meets_reading("Fig. 2(b)", READ, seen, count)] if printed else []),
    )
    settings = {
        "n": n, "D": dim, "sigma": sigma, "records": count, "predictions": 100_000,
        "designs": designs, "matrices": matrices,
    }  # fmt: skip
    notes = [
        "Predictions for the histograms are drawn from the exact finite-n law; whole matrices, one "
        "solve each, stand beside it at four values of p.",
        "Bins as in the authors' code: 149 between the 0.01 and the 99.99 percentile.",
    ]
    if not order.full:
        notes.append(f"{count} records x0 in place of 20.")
    return Made((panel,), claims, settings=settings, notes=tuple(notes))


def _whole(design: GaussianDesign, matrices: int, key: Key) -> ScoredAdvantage:
    """The advantage from whole matrices; member and non-member share them but for one row."""
    norms = RecordNorms.nodes(design, 3, 1)
    pair = linear.law_pair(design, norms, method="simulated", draws=matrices, random_state=key)
    return scored_advantage(pair, norms.weight)


def _agrees(
    gaps: dict[int, float],
    whole: dict[int, ScoredAdvantage],
    exact: dict[int, ScoredAdvantage],
    line: dict[int, float],
) -> Claim:
    """A twentieth of the curve's range is what an eye sees on the figure.

    The finite-n law stands for the experiment, so it must itself meet whole matrices.
    """
    worst = max(gaps, key=lambda p: gaps[p])
    elsewhere = sorted(gaps.values())[-2]
    bound = (max(line.values()) - min(line.values())) / 20.0
    scores = [
        abs(exact[p].value - one.value) / np.hypot(exact[p].stderr, one.stderr)
        for p, one in whole.items()
    ]
    return judge(
        "the asymptotic formula agrees very closely with the experiment", "Sec. 3.2, Fig. 2(b)",
        f"largest difference from the finite-n law {gaps[worst]:.3f} at p = {worst}, elsewhere "
        f"{elsewhere:.3f} at most (bound {bound:.3f}, a twentieth of the curve's range); that law "
        f"is within {max(scores):.1f} standard errors of whole matrices",
        as_printed=gaps[worst] < bound and max(scores) < 4.0,
    )  # fmt: skip


def _rises_at_finite_n(seen: dict[int, Mean], n: int) -> Claim:
    beyond = {p: one for p, one in seen.items() if p >= 2.3 * n}
    values = [one.value for one in beyond.values()]
    steps = [a < b for a, b in itertools.pairwise(values)]
    return judge(
        "for p/n > 2, increasing the number of parameters increases the advantage", "Fig. 2(b)",
        f"from {values[0]:.3f} at p = {min(beyond)} to {values[-1]:.3f} at p = {max(beyond)}, up "
        f"at {sum(steps)} of {len(steps)} steps",
        as_printed=all(steps),
    )  # fmt: skip


def meets_reading(where: str, read: dict[int, float], seen: dict[int, Mean], records: int) -> Claim:
    """Whether every value read off a figure comes back: see `off_the_reading`."""
    worst, p = off_the_reading(read, seen, records)
    return judge(
        "the experiment gives the values that are drawn", where,
        f"largest difference from the {len(read)} values read off it, in units of what reading and "
        f"both standard errors allow, {worst:.2f} (p = {p}: read {read[p]:.3f}, here "
        f"{seen[p].value:.3f} +- {seen[p].stderr:.3f})",
        as_printed=worst < 1.0,
    )  # fmt: skip


def off_the_reading(
    read: dict[int, float], seen: dict[int, Mean], records: int
) -> tuple[float, int]:
    """The largest difference over what is allowed: 0.02 for reading, 2.5 standard errors of both.

    The paper's own standard error, over 20 records, is ours rescaled.
    """
    shares = {
        p: abs(value - seen[p].value)
        / (READING + 2.5 * seen[p].stderr * (1.0 + records / 20.0) ** 0.5)
        for p, value in read.items()
    }
    worst = max(shares, key=lambda p: shares[p])
    return shares[worst], worst


FIGURES = (
    Figure(
        "linear-2a", "linear", "Fig. 2(a)", "advantage against p/n in the limit", make_2a,
        full="one core, one minute",
        knobs={"n": 1_000, "D": 10_000_000, "sigma": 1.0, "records": 100},
    ),
    Figure(
        "linear-2b", "linear", "Fig. 2(b)", "advantage at n = 100, D = 3,000", make_2b,
        full="one core, three minutes", knobs={"n": 100, "D": 3_000, "sigma": 1.0},
    ),
)  # fmt: skip
