"""lood Fig. 9: one search, step by step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_images import load_images

NOISE = 0.01

# Pictures after so many steps, as in the paper.
SHOWN = (10, 20)

# Larger steps than a search takes as a rule: the paper's run is nearly done after 20.
STEP_SIZE = 0.1

# "Converges": within a hundredth of the record's own LOOD.
CONVERGED = 0.99


def make(order: Order) -> Made:
    """Runs of 10, 20 and many steps from the same random pictures."""
    key = order.key.child(9)
    starts, steps = (8, 300) if order.full else (8, 100)
    depth, noise = order.whole("depth"), order.knobs["noise_variance"]
    images = load_images(order.data, order.whole("records"), key.child(0), ten_classes=True)
    row = int(key.child(1).generator().integers(len(images.y)))
    runs = {}
    for count in (*SHOWN, steps):
        order.step(f"{count} steps")
        runs[count] = lood.search_query(
            images.X,
            images.y,
            leave_out=[row],
            kernel=kernels.nngp(depth=depth),
            noise_variance=noise,
            climb="lood",
            starts=starts,
            steps=count,
            step_size=STEP_SIZE,
            box=(0.0, 1.0),
            random_state=key.child(2),
        )
    last = runs[steps]
    best = int(np.argmax(last.values))
    own = last.lood_at_record
    trace = last.trace[:, best]
    begin = key.child(2).generator().uniform(size=(starts, 1, images.X.shape[1]))[best, 0]
    rows = [
        pd.DataFrame(
            {
                "iteration": np.arange(steps + 1),
                "LOOD": last.trace[:, start],
                "run": "the run that is shown" if start == best else f"start {start + 1}",
                "source": "theory",
            }
        )
        for start in (best, *(s for s in range(starts) if s != best))
    ]
    rows.append(
        pd.DataFrame(
            {"iteration": [0, steps], "LOOD": own, "run": "at the record", "source": "theory"}
        )
    )
    reached = np.flatnonzero(trace >= CONVERGED * own)
    pictures = [
        images.strip(
            f"the record, LOOD {own:.3g}; and the query before the first step, {trace[0]:.3g}",
            [images.X[row], begin],
        )
    ]
    pictures += [
        images.picture(
            f"after a run of {count} steps: LOOD {runs[count].values[best]:.3g}",
            runs[count].queries[best, 0],
        )
        for count in runs
    ]
    after = {count: float(runs[count].values[best]) / own for count in runs}
    return Made(
        panels=(
            Panel(
                "LOOD along the way",
                pd.concat(rows, ignore_index=True),
                x="iteration",
                y="LOOD",
                series="run",
                y_log=True,
                x_title="iterations",
                y_title="KL LOOD (nats)",
            ),
        ),
        claims=(
            judge(
                "the LOOD of the query converges",
                "Fig. 9(d)",
                f"from {trace[0] / own:.1e} of the record's own to {trace[-1] / own:.4f}"
                + (f"; 99% after {reached[0]} steps" if len(reached) else ""),
                as_printed=bool(trace[-1] >= CONVERGED * own),
            ),
            judge(
                "a query begun at a random picture starts to recover the record as it climbs",
                "Fig. 9(a)-(c)",
                f"share of the record's LOOD: {trace[0] / own:.1e} before, "
                + ", ".join(f"{value:.3f} after {count} steps" for count, value in after.items()),
                as_printed=bool(
                    trace[0] / own < after[SHOWN[0]] < after[SHOWN[1]] <= after[steps] + 1e-8
                ),
            ),
        ),
        pictures=tuple(pictures),
        settings={
            **images.settings,
            "record": row,
            "starts": starts,
            "steps": steps,
            "step_size": STEP_SIZE,
            "depth": depth,
            "noise_variance": noise,
        },
        notes=(
            *images.notes,
            "The search shrinks its steps along a cosine, so that a run of 10 steps is not the "
            "beginning of a longer one; each picture is the end of a run of its own.",
        ),
    )


FIGURES = (
    Figure(
        "lood-9",
        "lood",
        "Fig. 9",
        "a search for the most revealing query, step by step",
        make,
        full="one core, 2 minutes; --data for the pictures",
        knobs={"noise_variance": NOISE, "depth": 5, "records": 1000},
        quick={"depth": 3, "records": 100},
    ),
)
