"""Fig. 6 of **linear**: the variances of a ridge model's prediction at members and at others."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from leakscope import linear
from leakscope.laws import Law, NormalMixture
from leakscope.linear import GaussianDesign, RecordNorms
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_3 import ERRATUM, LARGE, RIDGES, at, whole_design, within
from papers.linear_records import growing_norms
from papers.mean_interval import Mean, mean_interval

SIDES = ("member", "non-member")
RATIOS = (1.1, 1.5, 2.0, 4.0, 10.0, 30.0, 100.0)
COLUMNS = ["p/n", "variance", "n lambda", "source", "low", "high"]
KNOBS = {"n": 1_000, "D": 10_000_000, "sigma": 1.0}
Cells = dict[tuple[float, float], tuple[Mean, Mean]]
Records = dict[float, tuple[GaussianDesign, RecordNorms]]  # by p/n


def make(order: Order) -> Made:
    """Thm 4.1's two variances at one record, with the finite-n law's; printed form dashed."""
    whole = whole_design(order)
    n = whole.n
    ratios = within(whole, tuple(sorted({*np.geomspace(1.05, 100.0, 40).tolist(), *RATIOS})))
    sizes = sorted({round(ratio * n) for ratio in ratios})
    records = dict(zip(sizes, growing_norms(sizes, whole.dim, 1, order.key.child(0)), strict=True))
    rows: dict[str, list[tuple[float, float, str, str, float, float]]] = {s: [] for s in SIDES}
    order.step("Thm 4.1")
    for ridge, (p, norms) in itertools.product(RIDGES[1:], records.items()):
        for source, printed in (("theory", False), ("printed", True)):
            found = variances(at(whole, p, ridge), norms, printed=printed)
            for side, value in zip(SIDES, found, strict=True):
                if side == "member" or not printed:
                    rows[side].append((p / n, value, f"{n * ridge:g}", source, np.nan, np.nan))
    order.step("finite-n law")
    draws = 10_000 if order.full else 400
    chosen: Records = {
        ratio: (at(whole, p, 0.0), records[p])
        for ratio in RATIOS
        if (p := round(ratio * n)) in records
    }
    exact: Cells = {}
    for ridge, (ratio, (design, norms)) in itertools.product(RIDGES[1:], chosen.items()):
        key = order.key.child(1, design.p, round(1e3 * ridge))
        ridged = at(design, design.p, ridge)
        pair = linear.law_pair(ridged, norms, draws=draws, random_state=key)
        both = [mean_interval(_variances_of(law)) for law in (pair.member, pair.nonmember)]
        exact[ratio, ridge] = both[0], both[1]
        for side, one in zip(SIDES, both, strict=True):
            place = (design.p / n, one.value, f"{n * ridge:g}", "simulation", one.low, one.high)
            rows[side].append(place)
    panels = tuple(
        Panel(
            f"variance of the prediction, {side}", pd.DataFrame(rows[side], columns=COLUMNS),
            x="p/n", y="variance", series="n lambda", low="low", high="high", x_log=True,
            y_log=True,
        )
        for side in SIDES
    )  # fmt: skip
    claims = (_meets(exact, chosen), _both_fall(exact, chosen), _easier(exact, chosen))
    settings = {**order.knobs, "ridges": RIDGES[1:], "designs": draws}
    notes = (
        "The text does not say which ridges are drawn; lambda is as in Fig. 7, and p/n the axis.",
        "The caption has the two variances' symbols the wrong way round: sigma_0 is for test "
        "points (Thm 4.1).",
    )
    return Made(panels, claims, settings=settings, notes=notes)


def _variances_of(law: Law) -> FloatArray:
    """The variance of the prediction in each design, at the one record."""
    assert isinstance(law, NormalMixture)
    return np.asarray(law.sigmas[0] ** 2)


def variances(
    design: GaussianDesign, norms: RecordNorms, *, printed: bool = False
) -> tuple[float, float]:
    """sigma_1^2 and sigma_0^2 of Thm 4.1 at one record."""
    found = linear.ridge_variances(design, norms, printed=printed)
    return float(found[0][0]), float(found[1][0])


def _meets(exact: Cells, records: Records) -> Claim:
    """Relative differences against 4 standard errors and 1% for what the limit leaves out."""
    share, gap, place = {}, {}, {}
    for printed in (True, False):
        worst = (0.0, 0.0, "")
        for (ratio, ridge), both in exact.items():
            design, norms = records[ratio]
            formula = variances(at(design, design.p, ridge), norms, printed=printed)
            for side, value, one in zip(SIDES, formula, both, strict=True):
                off = abs(value / one.value - 1.0)
                allowed = 4.0 * one.stderr / one.value + 0.01
                where = f"{side}, p/n = {ratio:g}, lambda = {ridge:g}"
                worst = max(worst, (off / allowed, off, where))
        share[printed], gap[printed], place[printed] = worst
    return judge(
        "Thm 4.1 gives the variances of the prediction", "Thm 4.1, Fig. 6",
        f"largest difference from the finite-n law: as printed {gap[True]:.1%} ({place[True]}), "
        f"corrected {gap[False]:.2%}",
        as_printed=share[True] < 1.0, corrected=share[False] < 1.0, erratum=ERRATUM,
    )  # fmt: skip


def _both_fall(exact: Cells, records: Records) -> Claim:
    """From one ridge to the next, at every p/n and on both sides, beyond the draws' errors."""
    scores = []
    for side in (0, 1):
        for ratio in records:
            line = [exact[ratio, ridge][side] for ridge in RIDGES[1:]]
            scores += [
                (a.value - b.value) / np.hypot(a.stderr, b.stderr)
                for a, b in itertools.pairwise(line)
            ]
    formula = []
    for (design, norms), side in itertools.product(records.values(), (0, 1)):
        line_ = [variances(at(design, design.p, ridge), norms)[side] for ridge in RIDGES[1:]]
        formula += [b < a for a, b in itertools.pairwise(line_)]
    return judge(
        "more ridge lowers the variance at members, and at others", "Fig. 6, Sec. 4.1",
        f"finite-n law: {sum(s > 2.0 for s in scores)} of {len(scores)} steps are down by two "
        f"standard errors or more, the least {min(scores):+.1f}; the corrected formula falls in "
        f"{sum(formula)} of {len(formula)}",
        as_printed=all(formula) and min(scores) > -4.0,
    )  # fmt: skip


def _easier(exact: Cells, records: Records) -> Claim:
    """The laws are zero-mean normals: what tells them apart is the ratio of the variances."""
    rises, seen = {}, {}
    for ratio, (design, norms) in records.items():
        line = [variances(at(design, design.p, ridge), norms) for ridge in RIDGES[1:]]
        apart = [abs(np.log(member / other)) for member, other in line]
        rises[ratio] = all(a < b for a, b in itertools.pairwise(apart))
        first, last = (exact[ratio, ridge] for ridge in (RIDGES[1], RIDGES[-1]))
        seen[ratio] = (first[0].value / first[1].value, last[0].value / last[1].value)
    words = "; ".join(f"{a:.2f} to {b:.2f} at p/n = {ratio:g}" for ratio, (a, b) in seen.items())
    # Farther out the ratio hardly changes, and the draws need not show it.
    nearest = [ratio for ratio in records if ratio >= LARGE[0]][:2]
    return judge(
        "the two laws become easier to tell apart with more ridge", "Fig. 6, caption",
        f"variance at members over that at others, finite-n law, least to largest ridge: {words}; "
        f"by the corrected formula it moves away from 1 at every step for {sum(rises.values())} of "
        f"{len(rises)} p/n",
        as_printed=all(rises.values())
        and all(seen[ratio][1] > seen[ratio][0] for ratio in nearest),
    )  # fmt: skip


FIGURES = (
    Figure(
        "linear-6", "linear", "Fig. 6", "ridge: variances at members and at others", make,
        full="one core, one minute", knobs=KNOBS,
    ),
)  # fmt: skip
