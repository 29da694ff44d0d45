"""lood Fig. 12: the most influenced query for records far from, near and among the others."""

from __future__ import annotations

import numpy as np

from papers.claims import judge
from papers.figure import Figure, Made, Order
from papers.lood_sine import KNOBS, grid, marked_panel, shown

PLACES = (-5.0, 0.0, 5.0)

# How near the paper's "approximately coincides" is taken: a quarter of the kernel's length scale.
NEARLY = 0.25


def make(order: Order) -> Made:
    """The mean distance over the query for three differing records."""
    data = shown(order)
    panels, best, heights = [], {}, {}
    for place in (*PLACES, data.worst):
        queries = grid(order, place)
        # The most influenced query may lie outside [-5, 5] for a record at its edge.
        queries = np.unique(np.concatenate([queries, queries + 3.0, queries - 3.0]))
        distance = data.at(place, queries).mean_distance[-1]
        best[place] = float(queries[np.argmax(distance)])
        heights[place] = float(distance.max())
        title = f"S = {place:.0f}" if place in PLACES else f"S = S* of Fig. 11, {place:.3f}"
        panels.append(
            marked_panel(
                title,
                "M(Q)",
                queries,
                {"M(Q)": distance},
                {"S": place, "Q*": best[place]},
                data,
                y_title="mean distance M(Q)",
            )
        )
    far = [abs(best[place] - place) for place in (-5.0, 5.0)]
    middle = abs(best[data.worst] - data.worst)
    return Made(
        panels=tuple(panels),
        claims=(
            judge(
                "where S is far from the data (-5 and 5) the most influenced query is nearly S",
                "App. F.1, Fig. 12",
                f"Q* is {far[0]:.3f} and {far[1]:.3f} away from S",
                as_printed=bool(max(far) < NEARLY * data.length_scale),
            ),
            judge(
                "where S is among the data (0) it may be elsewhere, and the mean distance is very "
                "small",
                "App. F.1, Fig. 12",
                f"Q* = {best[0.0]:.2f}; the mean distance is at most {heights[0.0]:.2g}, against "
                f"{heights[-5.0]:.2g} and {heights[5.0]:.2g} for the far ones",
                as_printed=bool(heights[0.0] < 0.01 * min(heights[-5.0], heights[5.0])),
            ),
            judge(
                "between the two, S is not its own most influenced query",
                "Prop. 5.1",
                f"S* = {data.worst:.2f}: Q* is {middle:.2f} away",
                as_printed=bool(middle > max(far)),
            ),
        ),
        settings={**order.knobs, "S": [*PLACES, data.worst]},
        notes=(
            f"The {data.count} points are drawn anew: the paper does not print its own. They "
            "are those of Fig. 7 and 11, and the fourth panel is Fig. 11's record, for comparison.",
        ),
    )


FIGURES = (
    Figure(
        "lood-12",
        "lood",
        "Fig. 12",
        "the mean distance over the query for records far from and among the others",
        make,
        full="one core, seconds",
        knobs=KNOBS,
    ),
)
