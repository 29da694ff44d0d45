"""lood Fig. 10: where the training set is normalised by its own statistics, the bound fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from leakscope import lood
from papers.arrays import FloatArray
from papers.binomial_share import share_of, side_of
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_8 import conv_net
from papers.lood_images import load_images

NOISE = 0.01

# A ratio above 1 by more than this is not rounding.
ABOVE = 1e-6

# The paper's "slightly".
SLIGHTLY = 2.0


def make(order: Order) -> Made:
    """Searches under normalisation by each training set's own mean and deviation."""
    key = order.key.child(10)
    searched, starts = (20, 8) if order.full else (8, 4)
    depth = order.whole("depth")
    images = load_images(order.data, order.whole("records"), key.child(0), ten_classes=True)
    X, y = images.X, images.y
    kernel = conv_net(depth, images.input_shape)
    rows = key.child(1).generator().permutation(len(y))[:searched]
    table: list[dict[str, Any]] = []
    best: list[lood.QuerySearch] = []
    for row in rows:
        order.step(f"record {row}")
        found = lood.search_query(
            X,
            y,
            leave_out=[int(row)],
            kernel=kernel,
            noise_variance=order.knobs["noise_variance"],
            climb="lood",
            starts=starts,
            steps=300 if order.full else 200,
            box=(0.0, 1.0),
            normalise_channels=images.channels,
            random_state=key.child(2, int(row)),
        )
        best.append(found)
        table.append(
            {
                "record": int(row),
                "LOOD at the record": found.lood_at_record,
                "ratio": found.ratio,
                "mean pixel, query": float(found.query.mean()),
                "mean pixel, record": float(X[row].mean()),
                "source": "simulation",
            }
        )
    frame = pd.DataFrame(table)
    higher = (frame["ratio"] > 1.0 + ABOVE).to_numpy()
    darker = (frame["mean pixel, query"] - frame["mean pixel, record"]).to_numpy()[higher]
    excess = float(frame["ratio"].max()) - 1.0
    words, verdict = _darker(darker)
    ranked = np.argsort(-frame["ratio"].to_numpy())[:2]
    return Made(
        panels=(
            Panel(
                "LOOD of the best query over LOOD of the record",
                frame,
                x="LOOD at the record",
                y="ratio",
                x_log=True,
                x_title="KL LOOD at the record (nats)",
                y_title="ratio of LOOD, query to record",
                kind="scatter",
            ),
        ),
        claims=(
            judge(
                "with data-dependent normalisation queries exist with a slightly higher LOOD than "
                "the record",
                "App. D.4, Fig. 10",
                f"{share_of(higher)} of {len(frame)} searches exceed it; largest ratio 1 "
                f"{excess:+.1e}",
                # None found in a few searches does not say that there are none.
                as_printed=bool(frame["ratio"].max() <= SLIGHTLY) if higher.any() else None,
            ),
            judge(
                "such a query is darker than the record",
                "Fig. 10",
                words,
                as_printed=images.told(verdict),
            ),
        ),
        pictures=tuple(
            images.strip(
                f"record {best[j].leave_out[0]} and the query found; LOOD "
                f"{best[j].lood_at_record:.4g} and {best[j].lood:.4g}",
                [X[best[j].leave_out[0]], best[j].query[0]],
            )
            for j in ranked
        ),
        settings={
            **images.settings,
            "searched": searched,
            "starts": starts,
            "depth": depth,
            "noise_variance": order.knobs["noise_variance"],
        },
        notes=(
            *images.notes,
            "For a network without bias there is no largest LOOD under such normalisation: at the "
            "mean of one training set the answer is 0 for certain, and not for the other's "
            "(docs/attack_query.md).",
        ),
    )


def _darker(change: FloatArray) -> tuple[str, bool | None]:
    """Whether the mean pixel falls, and in words; too few searches cannot tell."""
    if len(change) < 3:
        return f"only {len(change)} searches found such a query", None
    mean = float(change.mean())
    error = 1.96 * float(change.std(ddof=1)) / np.sqrt(len(change))
    words = (
        f"mean pixel (0 to 1) of query less record over {len(change)} searches: {mean:+.1e} +- "
        f"{error:.1e} (95%)"
    )
    return words, side_of(-mean - error, -mean + error, 0.0)


FIGURES = (
    Figure(
        "lood-10",
        "lood",
        "Fig. 10",
        "queries that reveal more than the record, under data-dependent normalisation",
        make,
        full="one H200, 10 minutes, with --data",
        knobs={"noise_variance": NOISE, "depth": 5, "records": 500},
        quick={"depth": 2, "records": 60},
    ),
)
