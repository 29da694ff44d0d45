"""lood App. E.2: how often members of a group of three are recovered, counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from leakscope import kernels
from leakscope.laws import Key
from leakscope.verifying import Interval
from papers.arrays import FloatArray
from papers.binomial_share import all_of, share_of, side_of
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_groups import KNOBS, QUERIES, QUICK, RANKS, GroupRun, run_groups
from papers.lood_images import load_images

# The paper's counts: runs that converged, and runs that recovered the most and the least exposed.
CONVERGED = 0.80
PUBLISHED = {"most exposed": 0.61, "least exposed": 0.08}

ERRATUM = "lood 6"

# A run has converged where the last tenth of its steps changed LOOD by less than this share.
STILL = 0.01

# A share whose interval is wider than this agrees with too much to count as agreement.
NARROW = 0.4

RESAMPLES = 4000


def make(order: Order) -> Made:
    """Ten groups, ten starts each, with one query and with three."""
    key = order.key.child(62)
    groups, starts = (10, 10) if order.full else (8, 8)
    depth, noise = order.whole("depth"), order.knobs["noise_variance"]
    images = load_images(order.data, order.whole("records"), key.child(0))
    order.step(f"{groups} groups of three, {starts} starts each")
    runs = run_groups(
        images.X,
        images.y,
        groups,
        kernels.nngp(depth=depth),
        key.child(1),
        noise_variance=noise,
        starts=starts,
    )
    found = counts(runs, key.child(2))
    return Made(
        panels=(
            Panel(
                "Runs that recover a member of the group",
                _table(found),
                x="member",
                y="share",
                series="queries",
                low="low",
                high="high",
                x_title="member of the group",
                y_title="share of runs",
                kind="bars",
            ),
        ),
        claims=(*_claims(runs, found, key.child(3)), _never_more(runs)),
        settings={
            **images.settings,
            "groups": groups,
            "starts": starts,
            "depth": depth,
            "noise_variance": noise,
        },
        notes=(
            *images.notes,
            "Members are ordered by the group's LOOD at their own point.  The paper does not say "
            "whether its counts are of one query or of three: 'both' has as many runs of either.",
        ),
    )


def shares(runs: list[GroupRun], queries: int | None) -> FloatArray:
    """(groups, 3) share of starts that recovered each member; None pools both kinds of run."""
    asked = QUERIES if queries is None else (queries,)
    found = [
        np.mean([run.found[count].recovered.mean(axis=0) for count in asked], axis=0)
        for run in runs
    ]
    return np.array(found)


def over_groups(values: FloatArray, key: Key) -> Interval:
    """The mean over groups of shares, or differences of shares, with a 95% interval.

    Starts of one group are not independent, so groups are resampled.  That alone is too short for
    a share near 0 or 1: the interval is the hull with Wilson's for one observation per group.
    """
    draws = key.generator().integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    mean, n = float(values.mean()), len(values)
    if values.min() >= 0.0:
        z2 = 1.96**2 / n
        centre = (mean + 0.5 * z2) / (1.0 + z2)
        half = np.sqrt(z2 * mean * (1.0 - mean) + 0.25 * z2**2) / (1.0 + z2)
        low, high = min(low, centre - half), max(high, centre + half)
    return Interval(mean, float(low), float(high))


def counts(runs: list[GroupRun], key: Key) -> dict[str, dict[str, Interval]]:
    """Shares of runs that recover each member, by how many queries were asked together."""
    found: dict[str, dict[str, Interval]] = {}
    for place, (name, asked) in enumerate((("one", 1), ("three", 3), ("both", None))):
        each = shares(runs, asked)
        found[name] = {
            member: over_groups(each[:, rank], key.child(place, rank))
            for rank, member in enumerate(RANKS)
        }
    return found


def _table(found: dict[str, dict[str, Interval]]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "member": member,
            "share": share.value,
            "low": share.low,
            "high": share.high,
            "queries": name,
            "source": "simulation",
        }
        for name, members in found.items()
        for member, share in members.items()
    ]
    rows += [
        {"member": member, "share": value, "queries": "the paper", "source": "published"}
        for member, value in PUBLISHED.items()
    ]
    return pd.DataFrame(rows)


def _claims(
    runs: list[GroupRun], found: dict[str, dict[str, Interval]], key: Key
) -> tuple[Claim, Claim, Claim]:
    traces = [run.found[count].trace for run in runs for count in QUERIES]
    still = np.concatenate(
        [trace[-1] - trace[-len(trace) // 10] < STILL * trace[-1] for trace in traces]
    )
    settled = share_of(still)
    each = shares(runs, None)
    gaps = [
        over_groups(each[:, place] - each[:, place + 1], key.child(place))
        for place in range(each.shape[1] - 1)
    ]
    counted = [(found["both"][member], value) for member, value in PUBLISHED.items()]
    inside = all(share.low <= value <= share.high for share, value in counted)
    known = all(share.high - share.low <= NARROW for share, _ in counted)
    words = [
        f"{name}: "
        + ", ".join(f"{s.value:.0%} [{s.low:.0%}, {s.high:.0%}]" for s in members.values())
        for name, members in found.items()
    ]
    return (
        judge(
            "at least 80% of the runs converge",
            "App. E.2",
            f"{settled} of {settled.total} runs change LOOD by less than 1% in the last tenth of "
            "their steps",
            as_printed=settled.above(CONVERGED),
        ),
        judge(
            "the most exposed member is recovered 61% of the times, the least exposed 8%",
            "App. E.2",
            "most exposed, middle, least exposed, by queries: "
            + "; ".join(words)
            + ("" if known else "; too wide to tell"),
            as_printed=(True if known else None) if inside else False,
            erratum=ERRATUM,
        ),
        judge(
            "the more a member is exposed, the more often it is recovered",
            "App. E.2",
            "most exposed less middle, and middle less least exposed: "
            + ", ".join(f"{g.value:.0%} [{g.low:.0%}, {g.high:.0%}]" for g in gaps)
            + " of runs",
            as_printed=all_of(side_of(g.low, g.high, 0.0) for g in gaps),
        ),
    )


def _never_more(runs: list[GroupRun]) -> Claim:
    largest = max(run.found[count].ratio for run in runs for count in QUERIES)
    return judge(
        "no queries reveal more of a group than its own points",
        "App. E",
        f"largest ratio of LOOD to that at the group's own points: {largest:.6f}",
        as_printed=largest <= 1.0 + 1e-8,
    )


FIGURES = (
    Figure(
        "lood-e2",
        "lood",
        "App. E.2",
        "how often members of a group of three are recovered",
        make,
        full="one core, 10 minutes; --data for the pictures",
        knobs=KNOBS,
        quick=QUICK,
    ),
)
