"""Fig. 1 of **relu**, the experiment of its Section 5: who is on the margin, against d."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from leakscope.relu import SphereData, TrainingPlan, coverage
from papers.binomial_share import Share
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.mean_interval import around
from papers.relu_margin import MarginRow, margin_experiment

DIMENSIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
FEW = (1, 5, 10, 20, 50, 100, 200, 500)
KNOBS = {"n": 20, "width": 10_000}
COLUMNS = ["d", "share", "series", "source", "low", "high"]
# Sec. 5: "about 80%" of test points are below the margin at d = 20.
ABOVE_AT_20 = 0.2


def make(order: Order) -> Made:
    """Networks on 20 points of the sphere for each d, trained until near a KKT point."""
    dimensions: Sequence[int]
    n = order.whole("n")
    if order.full:
        plan = TrainingPlan(width=order.whole("width"), steps=40_000, flow_steps=8_000)
        dimensions, networks, tests = DIMENSIONS, 50, 5_000
    else:
        plan = TrainingPlan(width=order.whole("width"), steps=4_000, flow_steps=800)
        dimensions, networks, tests = FEW, 8, 500
    found = margin_experiment(
        dimensions, n=n, plan=plan, networks=networks, test_points=tests,
        random_state=order.key.child(0),
        progress=lambda row: order.step(f"d = {row.features} trained"),
    )  # fmt: skip
    fitted = [row for row in found.rows if row.fitted]
    table = _table(fitted)
    training = table[table["series"].str.startswith("training")]
    test = table[table["series"].str.startswith("test")]
    read = pd.DataFrame(
        [(20, ABOVE_AT_20, "the text, about", "published", np.nan, np.nan)], columns=COLUMNS
    )
    shared = {"x": "d", "y": "share", "series": "series", "low": "low", "high": "high"}
    far = test[(test["d"] >= 20) & (test["share"] > 0.0)]
    panels = (
        Panel("(a) training points on the margin", training, x_log=True, **shared),  # type: ignore[arg-type]
        Panel(
            "(b) test points on or above the margin", pd.concat([test, read], ignore_index=True),
            x_log=True, **shared,  # type: ignore[arg-type]
        ),
        Panel("(c) the same from d = 20 on", far, x_log=True, y_log=True, **shared),  # type: ignore[arg-type]
    )  # fmt: skip
    order.step("coverage")
    by_d = {row.features: row for row in found.rows}
    claims = (
        _more_on_margin(fitted),
        _fewer_above(fitted),
        _nearly_all(by_d[100]),
        _about_eighty(by_d[20]),
        _one_dimension(by_d[1], n),
        _theorem_covers(order, n),
    )
    settings = {
        "n": n, "width": plan.width, "networks": networks, "test_points": tests,
        "steps": plan.steps, "flow_steps": plan.flow_steps,
        "fitted": {row.features: row.fitted for row in found.rows},
        "largest_kkt_residual": {row.features: row.residual_largest for row in fitted},
    }  # fmt: skip
    notes = [
        "Labels are fair coins; shares are means over the networks that fit their points.",
        "What (b) and (c) draw apart is not in the text; (c) is here the larger dimensions.",
    ]
    if not order.full:
        notes.append(
            f"Width {plan.width} in place of 10,000, {networks} networks a dimension in place of "
            f"50, {tests} test points in place of 5,000."
        )
    return Made(panels, claims, settings=settings, notes=tuple(notes))


def _table(rows: Sequence[MarginRow]) -> pd.DataFrame:
    found = []
    for row in rows:
        for name, share, error in (
            ("training, within 1%", row.train_1, row.train_1_error),
            ("training, within 5%", row.train_5, row.train_5_error),
            ("test, on or above", row.test_above, row.test_above_error),
        ):
            one = around(share, 0.0 if np.isnan(error) else error, max(row.fitted - 1, 1))
            ends = max(one.low, 0.0), min(one.high, 1.0)
            found.append((row.features, share, name, "retraining", *ends))
    return pd.DataFrame(found, columns=COLUMNS)


def _trend(values: list[tuple[float, float]]) -> tuple[float, float]:
    """Last less first, and the least step, in standard errors of at least 0.001.

    Where every network has the same share the standard error is zero, which is not certainty.
    """

    def score(low: tuple[float, float], high: tuple[float, float]) -> float:
        error = np.sqrt(np.nansum(np.square([low[1], high[1]])))
        return float((high[0] - low[0]) / max(error, 0.001))

    steps = [score(a, b) for a, b in itertools.pairwise(values)]
    return score(values[0], values[-1]), min(steps)


def _more_on_margin(rows: Sequence[MarginRow]) -> Claim:
    total, least = _trend([(row.train_5, row.train_5_error) for row in rows])
    return judge(
        "as d grows, more training points lie on the margin", "Sec. 5, Fig. 1(a)",
        "within 5%: " + ", ".join(f"{row.train_5:.2f} at d = {row.features}" for row in rows)
        + f"; last less first {total:.0f} standard errors, least step {least:+.1f}",
        as_printed=total > 4.0 and least > -3.0,
    )  # fmt: skip


def _fewer_above(rows: Sequence[MarginRow]) -> Claim:
    total, least = _trend([(-row.test_above, row.test_above_error) for row in rows])
    return judge(
        "as d grows, fewer test points lie on or above the margin", "Sec. 5, Fig. 1(b, c)",
        ", ".join(f"{row.test_above:.4f} at d = {row.features}" for row in rows)
        + f"; first less last {total:.0f} standard errors, least step {least:+.1f}",
        as_printed=total > 4.0 and least > -3.0,
    )  # fmt: skip


def _nearly_all(row: MarginRow) -> Claim:
    """Nearly all: 98% or more."""
    one = around(row.test_above, row.test_above_error, max(row.fitted - 1, 1))
    return judge(
        "at d = 100 nearly all test points are below the margin", "Sec. 5",
        f"{1.0 - one.value:.2%} of them, at least {1.0 - one.high:.2%} with 95% confidence",
        as_printed=True if one.high < 0.02 else False if one.low > 0.02 else None,
    )  # fmt: skip


def _about_eighty(row: MarginRow) -> Claim:
    """About 80%: between 75% and 85%."""
    one = around(1.0 - row.test_above, row.test_above_error, max(row.fitted - 1, 1))
    inside = 0.75 <= one.value <= 0.85
    reaches = one.low <= 0.85 and one.high >= 0.75
    return judge(
        "at d = 20 about 80% of test points are below the margin", "Sec. 5",
        f"{one.value:.1%}, 95% interval {one.low:.1%} to {one.high:.1%}",
        as_printed=True if inside else None if reaches else False,
    )  # fmt: skip


def _one_dimension(row: MarginRow, n: int) -> Claim:
    return judge(
        "the experiment covers d from 1 on", "Sec. 5",
        f"at d = 1 the sphere has two points: {row.fitted} of {row.networks} networks fit their "
        f"{n} labels",
        as_printed=row.fitted > 0, erratum="relu 7",
    )  # fmt: skip


def _theorem_covers(order: Order, n: int) -> Claim:
    """Whether every one of n points is proven to be on the margin, at d = n^2."""
    trials = 1_000 if order.full else 200
    found = coverage(SphereData(n**2), n, trials=trials, random_state=order.key.child(1))
    printed, sharp = (Share(round(x * trials), trials) for x in (found.printed, found.gram))
    return judge(
        f"for {n} points Thm 4.2 asks for d = {n**2:,} or so", "Sec. 5",
        f"training sets at d = {n**2:,} that it covers: {printed} with the constants of its "
        f"lemmas, {sharp} with the whole Gram matrix in their place",
        as_printed=printed.above(0.5), corrected=sharp.above(0.5),
        erratum="relu 5",
    )  # fmt: skip


FIGURES = (
    Figure(
        "relu-1", "relu", "Fig. 1(a-c)", "training and test points against the margin, d to 1,000",
        make, full="one H200, 5 minutes (docs/benchmarks/relu_margin.md)",
        knobs=KNOBS, quick={"width": 100},
    ),
)  # fmt: skip
