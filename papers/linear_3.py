"""Fig. 3 of **linear**: the advantage against p/n and against the ridge (Thm 4.1)."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from leakscope import InputError
from leakscope.linear import GaussianDesign
from leakscope.planning import linear_advantage
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_records import (
    finite_n_advantage,
    growing_norms,
    theory_advantage,
)
from papers.mean_interval import Mean, around

KNOBS = {"n": 1_000, "D": 10_000_000, "sigma": 1.0, "records": 100}
# The ratios lambda of the authors' ridge experiment (Fig. 7): n lambda = 0, 30, 100, 200, 500.
RIDGES = (0.0, 0.3, 1.0, 2.0, 5.0)
# "Much above 1"; and everything that is drawn.
LARGE = (4.0, 10.0, 30.0, 100.0)
SMALL = (1.1, 1.3, 1.6, 2.0)
ERRATUM = "linear 1"
SECTION = "linear 4"

Cell = tuple[float, float]  # p/n, lambda


def whole_design(order: Order) -> GaussianDesign:
    """The design that uses all D features, with the n and sigma that were asked for."""
    dim = order.whole("D")
    return GaussianDesign(order.whole("n"), dim, dim, order.knobs["sigma"])


def at(whole: GaussianDesign, p: int, ridge: float) -> GaussianDesign:
    """The same with p features and a ridge."""
    return GaussianDesign(whole.n, p, whole.dim, whole.sigma, ridge)


def within(whole: GaussianDesign, ratios: tuple[float, ...]) -> tuple[float, ...]:
    """The ratios p/n for which there are as many features."""
    found = tuple(ratio for ratio in ratios if round(ratio * whole.n) <= whole.dim)
    if not found or found[-1] < LARGE[0]:
        raise InputError(f"D must be {LARGE[0]:g} times n or more.")
    return found


def make_3a(order: Order) -> Made:
    """Advantage against p/n, a curve for each ridge; Thm 4.1 corrected and as printed."""
    whole = whole_design(order)
    n = whole.n
    ratios = np.geomspace(1.04, 1_000.0, 120 if order.full else 60)
    sizes = sorted({round(ratio * n) for ratio in within(whole, tuple(ratios.tolist()))})
    records = growing_norms(sizes, whole.dim, order.whole("records"), order.key.child(0))
    order.step("Thm 4.1")
    rows = []
    for ridge, (p, norms) in itertools.product(RIDGES, zip(sizes, records, strict=True)):
        for source, printed in (("theory", False), ("printed", True)):
            if printed and ridge == 0.0:
                continue
            value = theory_advantage(at(whole, p, ridge), norms, printed=printed)
            rows.append((p / n, value, f"{n * ridge:g}", source, np.nan, np.nan))
    exact = finite_n(order, within(whole, (*SMALL, *LARGE[:3])), RIDGES)
    rows += [
        (ratio, one.value, f"{n * ridge:g}", "simulation", one.low, one.high)
        for (ratio, ridge), one in exact.items()
    ]
    columns = ["p/n", "advantage", "n lambda", "source", "low", "high"]
    panel = Panel(
        "advantage against p/n", pd.DataFrame(rows, columns=columns), x="p/n", y="advantage",
        series="n lambda", low="low", high="high", x_log=True,
    )  # fmt: skip
    claims = (
        meets_formula(exact, whole, "Thm 4.1, Fig. 3(a)"),
        increases(exact, whole, "Sec. 4.1, Fig. 3(a)"),
        _never_falls(exact),
        _harms_privacy(whole),
    )
    return Made((panel,), claims, settings=_settings(order), notes=_notes("n lambda", n))


def make_3b(order: Order) -> Made:
    """Advantage against the ridge, a curve for each p/n."""
    whole = whole_design(order)
    n = whole.n
    ratios = within(whole, (2.0, 3.0, *LARGE))
    sizes = [round(ratio * n) for ratio in ratios]
    records = growing_norms(sizes, whole.dim, order.whole("records"), order.key.child(0))
    order.step("Thm 4.1")
    ridges = np.geomspace(0.01, 10.0, 60 if order.full else 30).tolist()
    rows = []
    for ridge, (p, norms) in itertools.product(ridges, zip(sizes, records, strict=True)):
        for source, printed in (("theory", False), ("printed", True)):
            value = theory_advantage(at(whole, p, ridge), norms, printed=printed)
            rows.append((n * ridge, value, f"{p / n:g}", source, np.nan, np.nan))
    table = pd.DataFrame(rows, columns=["n lambda", "advantage", "p/n", "source", "low", "high"])
    exact = finite_n(order, ratios, (0.1, 1.0, 10.0))
    points = [
        (n * ridge, one.value, f"{ratio:g}", "simulation", one.low, one.high)
        for (ratio, ridge), one in exact.items()
    ]
    both = pd.concat([table, pd.DataFrame(points, columns=table.columns)], ignore_index=True)
    panel = Panel(
        "advantage against the ridge", both, x="n lambda", y="advantage", series="p/n",
        low="low", high="high", x_log=True,
    )  # fmt: skip
    claims = (
        _curves_rise(table),
        increases(exact, whole, "Sec. 4.1, Fig. 3(b)"),
        meets_formula(exact, whole, "Thm 4.1, Fig. 3(b)"),
    )
    return Made((panel,), claims, settings=_settings(order), notes=_notes("p/n", n))


def finite_n(
    order: Order, ratios: tuple[float, ...], ridges: tuple[float, ...]
) -> dict[Cell, Mean]:
    """The exact law's advantage, over records, with the error of its designs."""
    order.step("finite-n law")
    whole = whole_design(order)
    draws = 8_000 if order.full else 600
    found = {}
    for ratio, ridge in itertools.product(ratios, ridges):
        design = at(whole, round(ratio * whole.n), ridge)
        key = order.key.child(1, design.p, round(1e3 * ridge))
        one = finite_n_advantage(design, draws, key)
        found[ratio, ridge] = around(one.value, one.stderr)
    return found


def meets_formula(exact: dict[Cell, Mean], whole: GaussianDesign, where: str) -> Claim:
    """Both forms against the finite-n law: 4 standard errors, and 1/n for the limit."""
    worst: dict[bool, tuple[float, float, str]] = {}
    for printed in (True, False):
        for (ratio, ridge), one in exact.items():
            if ridge == 0.0:
                continue
            design = at(whole, round(ratio * whole.n), ridge)
            gap = abs(theory_advantage(design, printed=printed) - one.value)
            share = gap / (4.0 * one.stderr + 1.0 / whole.n)
            place = f"p/n = {ratio:g}, lambda = {ridge:g}"
            worst[printed] = max(worst.get(printed, (0.0, 0.0, "")), (share, gap, place))
    return judge(
        "Thm 4.1 gives the advantage of a ridge model", where,
        f"largest difference from the finite-n law: as printed {worst[True][1]:.3f} "
        f"({worst[True][2]}), {worst[True][0]:.1f} times what errors allow; corrected "
        f"{worst[False][1]:.4f}, {worst[False][0]:.2f} times",
        as_printed=worst[True][0] < 1.0, corrected=worst[False][0] < 1.0, erratum=ERRATUM,
    )  # fmt: skip


def increases(
    exact: dict[Cell, Mean], whole: GaussianDesign, where: str, least: float = LARGE[0]
) -> Claim:
    """Along each p/n well above 1: the corrected formula rises, the finite-n law never falls.

    Far out the differences are too small for the draws; somewhere they must be seen to rise.
    """
    cells = [cell for cell in exact if cell[0] >= least]
    steps, ends = _steps(exact, [ratio for ratio, _ in cells])
    theory = {
        (ratio, ridge): theory_advantage(at(whole, round(ratio * whole.n), ridge))
        for ratio, ridge in cells
    }
    rises = all(
        theory[a] < theory[b] for a, b in itertools.pairwise(cells) if a[0] == b[0]
    )  # fmt: skip
    seen = sorted(ratio for ratio, score in ends.items() if score > 4.0)
    falls = min(steps.values()) < -4.0
    return judge(
        "the advantage increases with lambda when p/n is much above 1", where,
        f"p/n of {least:g} and more: the corrected formula {'rises' if rises else 'does not rise'} "
        f"at every step; the finite-n law's least step is {min(steps.values()):+.1f} standard "
        "errors, and from first to last ridge it is seen to rise at p/n = "
        + (", ".join(f"{r:g}" for r in seen) or "none"),
        as_printed=False if falls or not rises else True if seen else None,
    )  # fmt: skip


def _steps(
    exact: dict[Cell, Mean], ratios: list[float]
) -> tuple[dict[tuple[float, float, float], float], dict[float, float]]:
    """Differences along lambda in standard errors: each step, and first to last."""
    steps, ends = {}, {}
    for ratio in dict.fromkeys(ratios):
        line = [(ridge, one) for (place, ridge), one in exact.items() if place == ratio]
        for (low, a), (high, b) in itertools.pairwise(line):
            steps[ratio, low, high] = (b.value - a.value) / np.hypot(a.stderr, b.stderr)
        first, last = line[0][1], line[-1][1]
        ends[ratio] = (last.value - first.value) / np.hypot(first.stderr, last.stderr)
    return steps, ends


def _never_falls(exact: dict[Cell, Mean]) -> Claim:
    ratios = sorted({ratio for ratio, _ in exact})
    steps, _ = _steps(exact, ratios)
    down = {place: score for place, score in steps.items() if score < -4.0}
    words = "no step down beyond four standard errors"
    if down:
        ratio, low, high = min(down, key=lambda place: down[place])
        places = sorted({place for place, _, _ in down})
        above = [place for place in ratios if place > places[-1]]
        words = (
            f"it falls at p/n = {', '.join(f'{place:g}' for place in places)}"
            + (f", not from {above[0]:g} on" if above else "")
            + f"; at p/n = {ratio:g} from "
            f"{exact[ratio, low].value:.3f} at lambda = {low:g} to {exact[ratio, high].value:.3f} "
            f"at {high:g}"
        )
    return judge(
        "increasing lambda never decreases the advantage, at any p/n that is drawn", "Sec. 4.1",
        words, as_printed=not down, erratum=SECTION,
    )  # fmt: skip


def _harms_privacy(whole: GaussianDesign) -> Claim:
    """Both attackers, in the limit, at p/n = 4."""
    low, high = (at(whole, 4 * whole.n, ridge) for ridge in (RIDGES[1], RIDGES[-1]))
    hidden = [theory_advantage(design) for design in (low, high)]
    known = [
        linear_advantage(design, attacker="label_known", method="asymptotic").value
        for design in (low, high)
    ]
    return judge(
        "stronger ridge regularisation harms privacy", "Fig. 3, caption",
        f"p/n = 4, lambda = {low.ridge:g} to {high.ridge:g}: {hidden[0]:.3f} to {hidden[1]:.3f} "
        f"for an attacker without the label, {known[0]:.3f} to {known[1]:.3f} for one who has it",
        as_printed=hidden[1] > hidden[0] and known[1] > known[0],
        corrected=hidden[1] > hidden[0], erratum=SECTION,
    )  # fmt: skip


def _curves_rise(table: pd.DataFrame) -> Claim:
    falls = {}
    for source in ("printed", "theory"):
        curves = table[table["source"] == source].groupby("p/n", sort=False)
        worst = {str(name): float(np.diff(c["advantage"]).min()) for name, c in curves}
        falls[source] = {name: step for name, step in worst.items() if step < -1e-6}
    where = ", ".join(falls["printed"]) or "none"
    return judge(
        "every curve rises with lambda", "Fig. 3(b)",
        f"curves that fall somewhere, n lambda from {table['n lambda'].min():,.0f} to "
        f"{table['n lambda'].max():,.0f}: with the printed formula those "
        f"of p/n = {where}; corrected: {', '.join(falls['theory']) or 'none'}",
        as_printed=not falls["printed"], corrected=not falls["theory"], erratum=ERRATUM,
    )  # fmt: skip


def _settings(order: Order) -> dict[str, object]:
    return {**order.knobs, "designs": 8_000 if order.full else 600}


def _notes(curves: str, n: int) -> tuple[str, ...]:
    return (
        f"The text does not say which values of {curves} are drawn; lambda is as in Fig. 7.",
        f"Lines: Thm 4.1, corrected; dashed: as printed; points: the exact law at n = {n:,}.",
    )


FIGURES = (
    Figure(
        "linear-3a", "linear", "Fig. 3(a)", "ridge: advantage against p/n", make_3a,
        full="one core, two minutes", knobs=KNOBS,
    ),
    Figure(
        "linear-3b", "linear", "Fig. 3(b)", "ridge: advantage against lambda", make_3b,
        full="one core, two minutes", knobs=KNOBS,
    ),
)  # fmt: skip
