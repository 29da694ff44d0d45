"""Fig. 7 of **linear**: the ridge experiment at n = 100, by histograms of predictions."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from leakscope import linear
from leakscope.laws import Key
from leakscope.linear import GaussianDesign, RecordNorms
from leakscope.measures import ScoredAdvantage, scored_advantage
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_3 import (
    ERRATUM,
    RIDGES,
    Cell,
    at,
    increases,
    meets_formula,
    whole_design,
    within,
)
from papers.linear_records import (
    each_record,
    finite_n_advantage,
    growing_norms,
    histogram_of_law,
    theory_advantage,
)
from papers.mean_interval import Mean, around, mean_interval

KNOBS = {"n": 100, "D": 3_000, "sigma": 1.0}
# The authors' values of p at n = 100, and those that --quick draws.
SIZES = (
    105, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 210, 220, 230, 240, 250, 275, 300, 325,
    350, 400, 500, 600, 800, 1_000, 1_250, 1_500, 2_000, 3_000,
)  # fmt: skip
FEW = (110, 130, 160, 200, 250, 300, 400, 600, 1_000, 3_000)
PREDICTIONS = 50_000
MATRICES_AT = ((2.0, 2.0), (2.0, 5.0), (4.0, 5.0))


def make(order: Order) -> Made:
    """Histograms at each p and ridge, Thm 4.1 beside them, and some whole matrices."""
    drawn, count, designs, matrices = (SIZES, 10, 8_000, 400) if order.full else (FEW, 4, 800, 40)
    whole = whole_design(order)
    n = whole.n
    ratios = within(whole, tuple(p / 100 for p in drawn))
    sizes = sorted({round(ratio * n) for ratio in ratios})
    order.step("Thm 4.1")
    rows = []
    grid = np.unique(np.geomspace(max(1.05 * n, n + 2), whole.dim, 40).astype(int)).tolist()
    for ridge, p in itertools.product(RIDGES, grid):
        for source, printed in (("theory", False), ("printed", True)):
            if not (printed and ridge == 0.0):
                value = theory_advantage(at(whole, p, ridge), printed=printed)
                rows.append((p / n, value, f"{n * ridge:g}", source, np.nan, np.nan))
    order.step("histograms")
    records = growing_norms(sizes, whole.dim, count, order.key.child(0))
    seen: dict[Cell, Mean] = {}
    for ridge, (p, norms) in itertools.product(RIDGES, zip(sizes, records, strict=True)):
        labels = (p, round(1e3 * ridge))
        batch = linear.law_pair(
            at(whole, p, ridge), norms, draws=designs,
            random_state=order.key.child(1, *labels),
        )  # fmt: skip
        generator = order.key.child(2, *labels).generator()
        found = [
            histogram_of_law(pair, generator, draws=PREDICTIONS) for pair in each_record(batch)
        ]
        seen[p / n, ridge] = mean_interval(found)
    rows += [
        (ratio, one.value, f"{n * ridge:g}", "simulation", one.low, one.high)
        for (ratio, ridge), one in seen.items()
    ]
    columns = ["p/n", "advantage", "n lambda", "source", "low", "high"]
    panel = Panel(
        f"ridge: advantage at n = {n:,}, D = {whole.dim:,}", pd.DataFrame(rows, columns=columns),
        x="p/n", y="advantage", series="n lambda", low="low", high="high", x_log=True,
    )  # fmt: skip
    order.step("finite-n law and whole matrices")
    exact = _exact(order, whole, designs)
    solved = {
        cell: _solved(whole, cell, matrices, order.key.child(4, k))
        for k, cell in enumerate(MATRICES_AT)
    }
    claims = (
        increases(exact, whole, "App. E, Fig. 7"),
        meets_formula(exact, whole, "App. E, Fig. 7"),
        _matrices(whole, solved),
        _closest(whole, seen),
    )
    settings = {
        **order.knobs, "n lambda": [n * ridge for ridge in RIDGES],
        "p": sizes, "records": count, "predictions": PREDICTIONS, "designs": designs,
        "matrices": matrices,
    }  # fmt: skip
    notes = [
        "Ridges and values of p as in the authors' code; predictions are drawn from the exact "
        "finite-n law, with whole matrices beside it at three cells.",
        "Solid: Thm 4.1 corrected; dashed: as printed.",
    ]
    if not order.full:
        notes.append(f"{count} records x0 in place of 10, and {len(sizes)} of the {len(SIZES)} p.")
    return Made((panel,), claims, settings=settings, notes=tuple(notes))


def _exact(order: Order, whole: GaussianDesign, designs: int) -> dict[Cell, Mean]:
    """The finite-n law without histograms: no bias from bins, and an honest standard error."""
    found = {}
    for ratio, ridge in itertools.product(within(whole, (1.5, 2.0, 4.0, 10.0)), RIDGES):
        design = at(whole, round(ratio * whole.n), ridge)
        key = order.key.child(3, design.p, round(1e3 * ridge))
        one = finite_n_advantage(design, 4 * designs, key)
        found[ratio, ridge] = around(one.value, one.stderr)
    return found


def _solved(whole: GaussianDesign, cell: Cell, matrices: int, key: Key) -> ScoredAdvantage:
    design = at(whole, round(cell[0] * whole.n), cell[1])
    norms = RecordNorms.nodes(design, 3, 1)
    pair = linear.law_pair(design, norms, method="simulated", draws=matrices, random_state=key)
    return scored_advantage(pair, norms.weight, designs=matrices)


def _matrices(whole: GaussianDesign, solved: dict[Cell, ScoredAdvantage]) -> Claim:
    """Nothing but matrices and solves: 4 standard errors, and 1/n for what the limit leaves out."""
    words, inside = [], {True: True, False: True}
    for (ratio, ridge), one in solved.items():
        design = at(whole, round(ratio * whole.n), ridge)
        values = {printed: theory_advantage(design, printed=printed) for printed in (True, False)}
        for printed, value in values.items():
            inside[printed] &= abs(value - one.value) < 4.0 * one.stderr + 1.0 / whole.n
        words.append(
            f"p/n = {ratio:g}, lambda = {ridge:g}: {one.value:.3f} +- {one.stderr:.3f}, printed "
            f"{values[True]:.3f}, corrected {values[False]:.3f}"
        )
    return judge(
        "the experiment verifies Thm 4.1", "App. E, Fig. 7", "whole matrices: " + "; ".join(words),
        as_printed=inside[True], corrected=inside[False], erratum=ERRATUM,
    )  # fmt: skip


def _closest(whole: GaussianDesign, seen: dict[Cell, Mean]) -> Claim:
    """Which form the histograms are nearer to, over all cells with a ridge other than 0 and 1."""
    errors = {}
    for printed in (True, False):
        gaps = [
            theory_advantage(at(whole, round(ratio * whole.n), ridge), printed=printed) - one.value
            for (ratio, ridge), one in seen.items()
            if ridge not in (0.0, 1.0)
        ]
        errors[printed] = float(np.sqrt(np.mean(np.square(gaps))))
    return judge(
        "the experiment resembles the theoretical curves of Fig. 3(a)", "App. E",
        f"root mean square difference of the histograms from the printed formula "
        f"{errors[True]:.3f}, from the corrected one {errors[False]:.3f}",
        as_printed=errors[True] <= errors[False], corrected=errors[False] < errors[True],
        erratum=ERRATUM,
    )  # fmt: skip


FIGURES = (
    Figure(
        "linear-7", "linear", "Fig. 7", "the ridge experiment at n = 100, D = 3,000", make,
        full="one core, five minutes", knobs=KNOBS,
    ),
)  # fmt: skip
