"""lood Fig. 8: reconstruction under dense and convolutional networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from leakscope import kernels, lood, measures
from papers.arrays import FloatArray
from papers.binomial_share import share_of
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel, Picture
from papers.lood_images import load_images

NOISE = 0.01

# "Similar": LOOD within a tenth, and the AUC within what the paper calls a gap (Fig. 13).
SIMILAR = 0.9
AUC_GAP = 0.025

# "Consistently": in so many of the searches at least.
CONSISTENTLY = 0.9

# What a ratio of 1 may exceed it by.
ROUNDING = 1e-8

# Pictures of so many runs per network.
SHOWN = 2


def conv_net(depth: int, input_shape: tuple[int, int, int]) -> Any:
    """3 x 3 convolutions with ReLU, flattened, and a linear read-out."""
    layers: list[Any] = []
    for _ in range(depth):
        layers += [kernels.conv(3, weight_variance=2.0), kernels.activation("relu")]
    return kernels.sequential(*layers, kernels.flatten(), kernels.dense(), input_shape=input_shape)


def auc_at(
    X: FloatArray,
    y: FloatArray,
    record: int,
    queries: FloatArray,
    kernel: kernels.Kernel,
    noise: float,
) -> FloatArray:
    """(q,) AUC of the best attack on a record at each query, asked alone."""
    found = [
        lood.distinguish(
            X, y, leave_out=[record], queries=query[None, :], kernel=kernel, noise_variance=noise
        ).sufficient_pair()
        for query in queries
    ]
    return np.array([float(np.asarray(measures.auc(pair))) for pair in found])


def make(order: Order) -> Made:
    """A few records under each network, eight starts each."""
    key = order.key.child(8)
    chosen, starts = (10, 4) if order.full else (8, 4)
    depth, noise = order.whole("depth"), order.knobs["noise_variance"]
    images = load_images(order.data, order.whole("records"), key.child(0), ten_classes=True)
    X, y = images.X, images.y
    rows = key.child(1).generator().permutation(len(y))[:chosen]
    networks = {
        f"dense, depth {depth}": kernels.nngp(depth=depth),
        f"convolutional, depth {depth}": conv_net(depth, images.input_shape),
    }
    table: list[dict[str, Any]] = []
    shown: list[Picture] = []
    for name, kernel in networks.items():
        order.step(name)
        found = lood.search_each(
            X,
            y,
            records=[int(row) for row in rows],
            kernel=kernel,
            noise_variance=noise,
            climb="lood",
            starts=starts,
            box=(0.0, 1.0),
            random_state=key.child(2),
        )
        for row, one in zip(rows, found, strict=True):
            there, own = auc_at(X, y, int(row), np.vstack([one.query, X[[row]]]), kernel, noise)
            table.append(
                {
                    "network": name,
                    "record": int(row),
                    "LOOD at the record": one.lood_at_record,
                    "LOOD at the query": one.lood,
                    "AUC at the record": own,
                    "AUC at the query": there,
                    "source": "simulation",
                }
            )
        shown += [
            images.strip(
                f"{name}: record {row} and the query found; LOOD {one.lood_at_record:.3g} and "
                f"{one.lood:.3g}",
                [X[row], one.query[0]],
            )
            for row, one in list(zip(rows, found, strict=True))[:SHOWN]
        ]
    frame = pd.DataFrame(table)
    ratio = frame["LOOD at the query"] / frame["LOOD at the record"]
    gap = (frame["AUC at the record"] - frame["AUC at the query"]).abs()
    similar = share_of((ratio >= SIMILAR) & (gap <= AUC_GAP))
    ends = [float(frame["LOOD at the record"].min()), float(frame["LOOD at the record"].max())]
    line = pd.DataFrame(
        {
            "network": "equal",
            "LOOD at the record": ends,
            "LOOD at the query": ends,
            "source": "theory",
        }
    )
    return Made(
        panels=(
            Panel(
                "LOOD of the record and of the query found",
                pd.concat([frame, line], ignore_index=True),
                x="LOOD at the record",
                y="LOOD at the query",
                series="network",
                x_title="KL LOOD at the record (nats)",
                y_title="KL LOOD at the query (nats)",
            ),
        ),
        claims=(
            judge(
                "the optimised query consistently has similar LOOD and AUC to the record",
                "Fig. 8",
                f"{len(frame)} searches of {starts} starts: LOOD within a tenth and AUC within "
                f"{AUC_GAP} in {similar}; ratio of LOOD from {ratio.min():.4f}, median "
                f"{ratio.median():.4f}, to {ratio.max():.4f}",
                as_printed=images.told(similar.above(CONSISTENTLY)),
            ),
            judge(
                "no query has a higher LOOD than the record itself, under any of these networks",
                "Section 4, Fig. 8",
                f"largest ratio of {len(frame)} searches: 1 {ratio.max() - 1.0:+.0e}",
                as_printed=bool(ratio.max() <= 1.0 + ROUNDING),
            ),
        ),
        pictures=tuple(shown),
        settings={
            **images.settings,
            "searched": [int(row) for row in rows],
            "starts": starts,
            "depth": depth,
            "noise_variance": noise,
        },
        notes=images.notes,
    )


FIGURES = (
    Figure(
        "lood-8",
        "lood",
        "Fig. 8",
        "reconstruction under dense and convolutional networks",
        make,
        full="one H200, 5 minutes, with --data",
        knobs={"noise_variance": NOISE, "depth": 5, "records": 1000},
        quick={"depth": 2, "records": 60},
    ),
)
