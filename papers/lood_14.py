"""lood Figs. 14 to 19: the records and the queries found for them, as pictures, by their LOOD gap.

Beside them what theory says of each run: LOOD grows with rho^2, the squared correlation of the
answers at the query and at the record given all other records (docs/attack_query.md).  Whoever
climbs it from a start with rho < 0 climbs towards rho = -1, which no query reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from leakscope import lood
from papers.arrays import FloatArray
from papers.binomial_share import share_of
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel, Picture
from papers.lood_2 import NOISE, Likeness, Runs, likeness, searched

# "High visual precision": so much of the picture's variation.
PRECISE = 0.9

# The paper's six figures; a smaller run is one sheet.
PARTS = 6

# Pairs side by side on a sheet.
COLUMNS = {"quick": 20, "full": 28}

# What a number at or below zero is drawn at on a logarithmic axis.
LEAST = 1e-12


def make(order: Order) -> Made:
    """The runs of lood-2 that climb LOOD, as the paper does."""
    runs = searched(order, ("lood",))
    found = runs.found["lood"]
    alike = likeness(runs.images, found)
    order.step("the correlation at each start")
    start = start_correlations(runs, order.knobs["noise_variance"])
    gap = np.array([one.lood_at_record - one.lood for one in found])
    ratio = np.array([one.ratio for one in found])
    back = np.array([bool(one.recovered.any()) for one in found])
    precise = share_of(alike.own >= PRECISE)
    rising, falling = (share_of(back[side]) for side in (start > 0.0, start <= 0.0))
    return Made(
        panels=(_gaps(gap, alike), _starts(start, ratio, back)),
        claims=(
            judge(
                "the optimised query generally recovers the record with high visual precision",
                "Section 4, Figs. 14 to 19",
                f"of {len(found)} queries {precise} have a correlation of at least {PRECISE:g} "
                f"with the record's picture; median {np.median(alike.own):.3f}",
                as_printed=runs.images.told(precise.above(0.5)),
            ),
            judge(
                "sorted by the gap of LOOD, the pictures are sorted by how alike they are",
                "Figs. 14 to 19",
                _sorted(gap, alike).told,
                as_printed=runs.images.told(_sorted(gap, alike).holds),
            ),
        ),
        pictures=sheets(runs, gap, parts=PARTS if order.full else 1, columns=COLUMNS[order.size]),
        settings={
            **runs.images.settings,
            "runs": len(found),
            "depth": runs.depth,
            "noise_variance": order.knobs["noise_variance"],
        },
        notes=(
            *runs.images.notes,
            *(() if order.full else ("A network of depth 3 in place of 10.",)),
            "The runs are those of lood-2 that climb LOOD. Record above, query below; the smallest "
            "gap of LOOD comes first.",
            f"By the start: with a positive correlation {rising} end at the record, otherwise "
            f"{falling}.",
        ),
    )


def start_correlations(runs: Runs, noise_variance: float) -> FloatArray:
    """(runs,) the correlation given all other records at the query where each run began."""
    found, (X, y) = runs.found["lood"], (runs.images.X, runs.images.y)
    rows = np.array([one.leave_out[0] for one in found])
    # As search_each draws them.
    begin = np.concatenate(
        [runs.starts.child(int(row)).generator().uniform(size=(1, X.shape[1])) for row in rows]
    )
    there = lood.influence(X, y, begin, runs.kernel, noise_variance)
    own = lood.all_records(runs.kernel(X), y, noise_variance=noise_variance)
    each = np.arange(len(rows))
    # Without the record: its covariance with the query, and both variances.
    covariance = there.weight[rows, each]
    variance = there.variance_with + there.variance_added[rows, each]
    return np.asarray(covariance / np.sqrt(variance * own.variance_without[rows]))


@dataclass(frozen=True)
class _Sorted:
    told: str
    holds: bool | None


def _sorted(gap: FloatArray, alike: Likeness) -> _Sorted:
    """Spearman's correlation of gap and likeness; Fisher's interval tells it from 0."""
    first, second = (np.argsort(np.argsort(values)) for values in (gap, alike.own))
    found = float(np.corrcoef(first, second)[0, 1])
    reach = 1.96 / np.sqrt(len(gap) - 3)
    low, high = np.tanh(np.arctanh(found) + np.array([-reach, reach]))
    told = f"rank correlation of gap and likeness {found:.2f} [{low:.2f}, {high:.2f}]"
    return _Sorted(told, True if high < 0.0 else False if low > 0.0 else None)


def sheets(runs: Runs, gap: FloatArray, *, parts: int, columns: int) -> tuple[Picture, ...]:
    """Record over query, by gap, in so many sheets."""
    found = runs.found["lood"]
    order = np.argsort(gap, kind="stable")
    made = []
    for part, places in enumerate(np.array_split(order, parts)):
        chosen = [found[int(place)] for place in places]
        made.append(
            runs.images.sheet(
                f"part {part + 1} of {parts}: gaps of LOOD from {max(gap[places[0]], 0.0):.2g} to "
                f"{gap[places[-1]]:.2g}",
                runs.images.X[[one.leave_out[0] for one in chosen]],
                [one.query[0] for one in chosen],
                columns,
            )
        )
    return tuple(made)


def _gaps(gap: FloatArray, alike: Likeness) -> Panel:
    table = pd.DataFrame(
        {"gap": np.maximum(gap, LEAST), "likeness": alike.own, "source": "simulation"}
    )
    return Panel(
        "The gap of LOOD, and how alike the pictures are",
        table,
        x="gap",
        y="likeness",
        x_log=True,
        x_title="LOOD of the record minus LOOD of the query (nats)",
        y_title="correlation with the record's picture",
        kind="scatter",
    )


def _starts(start: FloatArray, ratio: FloatArray, back: FloatArray) -> Panel:
    table = pd.DataFrame(
        {
            "start": start,
            "ratio": ratio,
            "ended": np.where(back, "at the record", "elsewhere"),
            "source": "simulation",
        }
    )
    return Panel(
        "Where a run begins decides where it ends",
        table,
        x="start",
        y="ratio",
        series="ended",
        x_title="correlation with the record's answer at the start",
        y_title="LOOD of the query / LOOD of the record",
        kind="scatter",
    )


FIGURES = (
    Figure(
        "lood-14",
        "lood",
        "Figs. 14 to 19",
        "records and the queries found for them, as pictures",
        make,
        full="one H200, 12 minutes, with --data",
        knobs={"noise_variance": NOISE},
    ),
)
