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
from papers.linear_3 import ERRATUM, RIDGES, Cell, increases, meets_formula
from papers.linear_records import (
    each_record,
    finite_n_advantage,
    growing_norms,
    histogram_of_law,
    theory_advantage,
)
from papers.mean_interval import Mean, around, mean_interval

N, DIM = 100, 3_000
# The authors' values of p, and those that --quick draws.
SIZES = (
    105, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 210, 220, 230, 240, 250, 275, 300, 325,
    350, 400, 500, 600, 800, 1_000, 1_250, 1_500, 2_000, 3_000,
)  # fmt: skip
FEW = (110, 130, 160, 200, 250, 300, 400, 600, 1_000, 3_000)
PREDICTIONS = 50_000
MATRICES_AT = ((2.0, 2.0), (2.0, 5.0), (4.0, 5.0))


def make(order: Order) -> Made:
    """Histograms at each p and ridge, Thm 4.1 beside them, and some whole matrices."""
    sizes, count, designs, matrices = (SIZES, 10, 8_000, 400) if order.full else (FEW, 4, 800, 40)
    order.step("Thm 4.1")
    rows = []
    grid = np.unique(np.geomspace(1.05 * N, DIM, 40).astype(int)).tolist()
    for ridge, p in itertools.product(RIDGES, grid):
        for source, printed in (("theory", False), ("printed", True)):
            if not (printed and ridge == 0.0):
                design = GaussianDesign(N, p, DIM, 1.0, ridge)
                value = theory_advantage(design, printed=printed)
                rows.append((p / N, value, f"{N * ridge:g}", source, np.nan, np.nan))
    order.step("histograms")
    records = growing_norms(sizes, DIM, count, order.key.child(0))
    seen: dict[Cell, Mean] = {}
    for ridge, (p, norms) in itertools.product(RIDGES, zip(sizes, records, strict=True)):
        labels = (p, round(1e3 * ridge))
        batch = linear.law_pair(
            GaussianDesign(N, p, DIM, 1.0, ridge), norms, draws=designs,
            random_state=order.key.child(1, *labels),
        )  # fmt: skip
        generator = order.key.child(2, *labels).generator()
        found = [
            histogram_of_law(pair, generator, draws=PREDICTIONS) for pair in each_record(batch)
        ]
        seen[p / N, ridge] = mean_interval(found)
    rows += [
        (ratio, one.value, f"{N * ridge:g}", "simulation", one.low, one.high)
        for (ratio, ridge), one in seen.items()
    ]
    columns = ["p/n", "advantage", "n lambda", "source", "low", "high"]
    panel = Panel(
        "ridge: advantage at n = 100, D = 3,000", pd.DataFrame(rows, columns=columns), x="p/n",
        y="advantage", series="n lambda", low="low", high="high", x_log=True,
    )  # fmt: skip
    order.step("finite-n law and whole matrices")
    exact = _exact(order, designs)
    whole = {
        cell: _whole(cell, matrices, order.key.child(4, k)) for k, cell in enumerate(MATRICES_AT)
    }
    claims = (
        increases(exact, N, DIM, "App. E, Fig. 7"),
        meets_formula(exact, N, DIM, "App. E, Fig. 7"),
        _matrices(whole),
        _closest(seen),
    )
    settings = {
        "n": N, "D": DIM, "sigma": 1.0, "n lambda": [N * ridge for ridge in RIDGES],
        "p": sizes, "records": count, "predictions": PREDICTIONS, "designs": designs,
        "matrices": matrices,
    }  # fmt: skip
    notes = [
        "Ridges and values of p as in the authors' code; predictions are drawn from the exact "
        "finite-n law, with whole matrices beside it at three cells.",
        "Solid: Thm 4.1 corrected; dashed: as printed.",
    ]
    if not order.full:
        notes.append(f"{count} records x0 in place of 10, and {len(FEW)} of the {len(SIZES)} p.")
    return Made((panel,), claims, settings=settings, notes=tuple(notes))


def _exact(order: Order, designs: int) -> dict[Cell, Mean]:
    """The finite-n law without histograms: no bias from bins, and an honest standard error."""
    found = {}
    for ratio, ridge in itertools.product((1.5, 2.0, 4.0, 10.0), RIDGES):
        design = GaussianDesign(N, round(ratio * N), DIM, 1.0, ridge)
        key = order.key.child(3, design.p, round(1e3 * ridge))
        one = finite_n_advantage(design, 4 * designs, key)
        found[ratio, ridge] = around(one.value, one.stderr)
    return found


def _whole(cell: Cell, matrices: int, key: Key) -> ScoredAdvantage:
    design = GaussianDesign(N, round(cell[0] * N), DIM, 1.0, cell[1])
    norms = RecordNorms.nodes(design, 3, 1)
    pair = linear.law_pair(design, norms, method="simulated", draws=matrices, random_state=key)
    return scored_advantage(pair, norms.weight, designs=matrices)


def _matrices(whole: dict[Cell, ScoredAdvantage]) -> Claim:
    """Nothing but matrices and solves: 4 standard errors, and 1/n for what the limit leaves out."""
    words, inside = [], {True: True, False: True}
    for (ratio, ridge), one in whole.items():
        design = GaussianDesign(N, round(ratio * N), DIM, 1.0, ridge)
        values = {printed: theory_advantage(design, printed=printed) for printed in (True, False)}
        for printed, value in values.items():
            inside[printed] &= abs(value - one.value) < 4.0 * one.stderr + 1.0 / N
        words.append(
            f"p/n = {ratio:g}, lambda = {ridge:g}: {one.value:.3f} +- {one.stderr:.3f}, printed "
            f"{values[True]:.3f}, corrected {values[False]:.3f}"
        )
    return judge(
        "the experiment verifies Thm 4.1", "App. E, Fig. 7", "whole matrices: " + "; ".join(words),
        as_printed=inside[True], corrected=inside[False], erratum=ERRATUM,
    )  # fmt: skip


def _closest(seen: dict[Cell, Mean]) -> Claim:
    """Which form the histograms are nearer to, over all cells with a ridge other than 0 and 1."""
    errors = {}
    for printed in (True, False):
        gaps = [
            theory_advantage(GaussianDesign(N, round(ratio * N), DIM, 1.0, ridge), printed=printed)
            - one.value
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
        full="one core, five minutes",
    ),
)  # fmt: skip
