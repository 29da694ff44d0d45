"""lood Fig. 11: Algorithm 1 finds a record that is not its own most influenced query."""

from __future__ import annotations

import numpy as np

from papers.claims import judge
from papers.figure import Figure, Made, Order
from papers.lood_sine import (
    HIGH,
    KNOBS,
    LOW,
    PUBLISHED_POINT,
    grid,
    marked_panel,
    shown,
    sine,
)

# Other draws of the ten points, to see whether the printed S* is one of them.
REDRAWN = {"quick": 12, "full": 200}


def make(order: Order) -> Made:
    """The gradient at S over S, and the mean distance over the query under S*."""
    key = order.key.child(11)
    data = shown(order)
    S = data.worst
    places = np.linspace(LOW, HIGH, 401 if order.full else 101)
    gradient = np.array([float(data.self_influence(float(s)).gradient[0]) for s in places])
    at_worst = float(data.self_influence(S).gradient[0])
    queries = grid(order, S)
    distance = data.at(S, queries).mean_distance[-1]
    Q, own = float(queries[np.argmax(distance)]), float(distance[queries == S][0])
    redrawn = REDRAWN[order.size]
    order.step(f"{redrawn} other draws of the points")
    others = np.abs([sine(key.child(1, number), order.knobs).worst for number in range(redrawn)])
    far = np.abs(places) > 4.8
    return Made(
        panels=(
            marked_panel(
                "Gradient of M(Q) at Q = S, Prop. 5.1",
                "gradient",
                places,
                {"gradient": gradient},
                {"S*": S, "the paper's S*": PUBLISHED_POINT},
                data,
                x_title="differing record S",
                y_title="gradient of M at S",
            ),
            marked_panel(
                "Mean distance under S*",
                "M(Q)",
                queries,
                {"M(Q)": distance},
                {"S*": S, "Q*": Q},
                data,
                y_title="mean distance M(Q)",
            ),
        ),
        claims=(
            judge(
                "Algorithm 1 finds a record at which the gradient is not zero, larger than "
                "elsewhere",
                "Fig. 11(a)",
                f"S* = {S:.3f}: gradient {at_worst:.3g}; largest on a grid of {len(places)}: "
                f"{np.abs(gradient).max():.3g}",
                as_printed=bool(abs(at_worst) >= np.abs(gradient).max() * (1.0 - 1e-6) > 0.0),
            ),
            judge(
                "the paper's draw gave S* = 3.899",
                "Fig. 11",
                f"{redrawn} other draws have |S*| from {others.min():.2f} to {others.max():.2f}, "
                f"median {np.median(others):.2f}",
                # Few draws need not reach as far as the paper's one.
                as_printed=True if others.min() <= PUBLISHED_POINT <= others.max() else None,
            ),
            judge(
                "under S* the most influenced query is not S*",
                "Fig. 11(b)",
                f"Q* = {Q:.3f}, where the mean distance is {distance.max() / own:.3f} times as "
                "large",
                as_printed=bool(abs(Q - S) > data.same and distance.max() > own),
            ),
            judge(
                "the gradient is small where S is far from the data and where its label is "
                "predicted, and large in between",
                "Prop. 5.1, App. F.1",
                f"largest |gradient| beyond |S| = 4.8: {np.abs(gradient[far]).max():.3g}, over "
                f"the data ({data.x.min():.2f} to {data.x.max():.2f}): "
                f"{_over_data(places, gradient, data.x):.3g}, overall "
                f"{np.abs(gradient).max():.3g}",
                as_printed=bool(
                    max(np.abs(gradient[far]).max(), _over_data(places, gradient, data.x))
                    < 0.5 * np.abs(gradient).max()
                ),
            ),
        ),
        settings={
            **order.knobs,
            "S*": S,
            "queries": len(queries),
            "other draws of the points": redrawn,
        },
        notes=(f"The {data.count} points are drawn anew: the paper does not print its own.",),
    )


def _over_data(places: np.ndarray, gradient: np.ndarray, x: np.ndarray) -> float:
    inside = (places >= x.min()) & (places <= x.max())
    return float(np.abs(gradient[inside]).max())


FIGURES = (
    Figure(
        "lood-11",
        "lood",
        "Fig. 11",
        "the gradient of the mean distance at the record, and a record that is not its own peak",
        make,
        full="one core, seconds",
        knobs=KNOBS,
    ),
)
