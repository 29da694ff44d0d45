"""lood App. E.1: several queries asked together reveal no more than the record alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope import kernels, lood
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_images import load_images

NOISE = 0.01

# (depth, queries).  Each pair is a programme of its own to compile, so that few are quick.
QUICK = ((2, 1), (2, 2), (2, 4), (2, 8))
FULL = tuple((depth, count) for depth in (2, 4, 6, 8, 10) for count in (1, 2, 4, 8))

# "Almost unchanged": within this share of the LOOD of the best single query.
UNCHANGED = 0.01

# Sets of queries that climb together.
TOGETHER = 100


def ratios(
    X: FloatArray,
    y: FloatArray,
    records: NDArray[np.intp],
    kernel: kernels.Kernel,
    queries: int,
    key: Key,
    *,
    noise_variance: float,
    steps: int = 300,
) -> FloatArray:
    """(records,) LOOD of the best queries over LOOD of the record itself, one start each.

    All records share one factorisation.
    """
    found: list[lood.QuerySearch] = []
    for begin in range(0, len(records), TOGETHER):
        found += lood.search_each(
            X,
            y,
            records=[int(row) for row in records[begin : begin + TOGETHER]],
            kernel=kernel,
            noise_variance=noise_variance,
            queries=queries,
            climb="lood",
            steps=steps,
            step_size=0.02,
            box=(0.0, 1.0),
            random_state=key,
        )
    return np.array([one.ratio for one in found])


def make(order: Order) -> Made:
    """Ratios for depths and numbers of queries."""
    key = order.key.child(61)
    chosen, noise = 500 if order.full else 16, order.knobs["noise_variance"]
    images = load_images(order.data, order.whole("records"), key.child(0))
    rows = key.child(1).generator().permutation(len(images.y))[:chosen]
    table: list[dict[str, Any]] = []
    for depth, count in FULL if order.full else QUICK:
        order.step(f"depth {depth}, {count} queries")
        found = ratios(
            images.X,
            images.y,
            rows,
            kernels.nngp(depth=depth),
            count,
            key.child(2, depth, count),
            noise_variance=noise,
            steps=300 if order.full else 200,
        )
        table.append(
            {
                "depth": f"depth {depth}",
                "queries": count,
                "ratio": float(np.median(found)),
                "low": float(found.min()),
                "high": float(found.max()),
                "found": float(np.mean(found > 0.99)),
                "source": "simulation",
            }
        )
    frame = pd.DataFrame(table)
    largest = float(frame["high"].max())
    medians = frame.groupby("queries")["ratio"].median()
    return Made(
        panels=(
            Panel(
                "LOOD of several queries over that of the record",
                frame,
                x="queries",
                y="ratio",
                series="depth",
                low="low",
                high="high",
                x_log=True,
                x_title="queries asked together",
                y_title="ratio: median, least and largest",
            ),
        ),
        claims=(
            judge(
                "in all trials the LOOD of the optimised queries is lower than (at most) that of "
                "the record alone",
                "App. E.1",
                f"{len(frame)} cells of {len(rows)} records: largest ratio 1 {largest - 1.0:+.0e}",
                as_printed=largest <= 1.0 + 1e-8,
            ),
            judge(
                "LOOD remains almost unchanged as the number of queries increases",
                "Section 1",
                "the best single query is the record itself, ratio 1; median ratio of searches "
                "from one start with 1, 2, 4, 8 queries: "
                + ", ".join(f"{value:.4f}" for value in medians),
                # From two queries on one of them finds the record; more add nothing to it.
                as_printed=bool((np.abs(medians[medians.index > 1] - 1.0) < UNCHANGED).all()),
            ),
        ),
        settings={
            **images.settings,
            "searched": len(rows),
            "cells": [list(cell) for cell in (FULL if order.full else QUICK)],
            "noise_variance": noise,
        },
        notes=(
            *images.notes,
            "With one query and one start about half of the runs end at the record (Fig. 2); with "
            "more, one of the queries nearly always does.",
        ),
    )


FIGURES = (
    Figure(
        "lood-e1",
        "lood",
        "App. E.1",
        "several queries together against the record alone",
        make,
        full="one H200, 15 minutes, with --data",
        knobs={"noise_variance": NOISE, "records": 10_000},
        quick={"records": 100},
    ),
)
