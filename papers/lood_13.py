"""lood Fig. 13: climbing the mean distance over pictures ends beside the record, not at it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from papers.binomial_share import share_of
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_8 import auc_at
from papers.lood_images import load_images

NOISE = 0.01

# The paper's count: more than half of the trials have an AUC lower by more than this.
AUC_GAP = 0.025


def make(order: Order) -> Made:
    """Fifty records, each searched from random pictures by climbing the mean distance."""
    key = order.key.child(13)
    trials, starts = (50, 4) if order.full else (24, 4)
    noise = order.knobs["noise_variance"]
    images = load_images(order.data, order.whole("records"), key.child(0), ten_classes=True)
    X, y = images.X, images.y
    kernel = kernels.rbf().resolved(X)
    rows = key.child(1).generator().permutation(len(y))[:trials]
    order.step(f"{trials} searches by mean distance")
    table: list[dict[str, Any]] = []
    searches: list[lood.QuerySearch] = []
    for row in rows:
        found = lood.search_query(
            X,
            y,
            leave_out=[int(row)],
            kernel=kernel,
            noise_variance=noise,
            objective="mean_distance",
            starts=starts,
            box=(0.0, 1.0),
            random_state=key.child(2, int(row)),
        )
        searches.append(found)
        there, own = auc_at(X, y, int(row), np.vstack([found.query, X[[row]]]), kernel, noise)
        table.append(
            {
                "record": int(row),
                "mean distance ratio": found.ratio,
                "AUC gap": own - there,
                "relative distance": float(found.relative_distance[0]),
                "source": "simulation",
            }
        )
    frame = pd.DataFrame(table)
    higher = share_of(frame["mean distance ratio"] > 1.0 + 1e-6)
    lower = share_of(frame["AUC gap"] > AUC_GAP)
    never = float(frame["AUC gap"].min())
    near = share_of(frame["relative distance"] < 1.0)
    same = int((frame["relative distance"] < 1e-3).sum())
    slope = float(frame["mean distance ratio"].corr(frame["AUC gap"], method="spearman"))
    shown = np.argsort(-frame["AUC gap"].to_numpy())[:2]
    ordered = frame.sort_values("AUC gap", ignore_index=True)
    ordered["trial"] = np.arange(1, len(ordered) + 1)
    return Made(
        panels=(
            Panel(
                "AUC at the record less AUC at the query",
                ordered,
                x="trial",
                y="AUC gap",
                x_title="trial, by gap",
                y_title="AUC gap",
                kind="scatter",
            ),
            Panel(
                "The same gap over how much more the query is influenced",
                frame,
                x="mean distance ratio",
                y="AUC gap",
                x_title="mean distance of query / of record",
                y_title="AUC gap",
                kind="scatter",
            ),
        ),
        claims=(
            judge(
                "in most trials the optimised query has a higher mean distance than the record",
                "Fig. 13",
                f"in {higher} of {trials} trials, up to "
                f"{frame['mean distance ratio'].max():.3f} times",
                as_printed=images.told(higher.above(0.5)),
            ),
            judge(
                "and, in every trial, a lower AUC",
                "Fig. 13",
                f"AUC at the record less AUC at the query: {never:.1e} at least, median "
                f"{frame['AUC gap'].median():.3f}",
                as_printed=images.told(bool(never >= -1e-9)),
            ),
            judge(
                "in more than half of the trials the AUC is lower by more than 0.025",
                "Fig. 13(c)",
                f"in {lower} of {trials} trials",
                as_printed=images.told(lower.above(0.5)),
            ),
            judge(
                "the query is similar but not identical to the record in a majority of cases",
                "App. F.3",
                f"nearer to the record than its nearest neighbour in {near}, identical in {same} "
                f"of {trials}",
                as_printed=images.told(near.above(0.5) if same < trials // 2 else False),
            ),
        ),
        pictures=tuple(
            images.strip(
                f"record {rows[j]} and the query that it influences most; mean distance "
                f"{frame['mean distance ratio'][j]:.2f} times, AUC lower by "
                f"{frame['AUC gap'][j]:.3f}",
                [X[rows[j]], searches[j].query[0]],
            )
            for j in shown
        ),
        settings={
            **images.settings,
            "trials": trials,
            "starts": starts,
            "noise_variance": noise,
            "length_scale": kernel.length_scale,
        },
        notes=(
            *images.notes,
            f"Rank correlation of the two ratios in the second panel: {slope:+.2f}. The paper says "
            "nothing of it.",
        ),
    )


FIGURES = (
    Figure(
        "lood-13",
        "lood",
        "Fig. 13",
        "climbing the mean distance over pictures, and what it does to the attack",
        make,
        full="one core, 5 minutes; --data for the pictures",
        knobs={"noise_variance": NOISE, "records": 1000},
        quick={"records": 100},
    ),
)
