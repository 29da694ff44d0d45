"""lood Fig. 5: does GELU leak more than ReLU, under the process and in trained networks?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from papers.binomial_share import share_of, side_of
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_networks import KNOBS, QUICK, Trained, by_process, trained
from papers.lood_section_6 import on_sphere

ERRATUM = "lood 1"

# The paper's figure shows so many records; verdicts are on all that were retrained.
SHOWN = 20


def make(order: Order) -> Made:
    """AUC of each record under both activations, of the process and of networks."""
    relu, gelu = (trained(order, name) for name in ("relu", "gelu"))
    rows = relu.records
    ranked = np.argsort(-relu.auc)[:SHOWN]
    process, networks = [], []
    for name, found in (("ReLU", relu), ("GELU", gelu)):
        process.append(
            pd.DataFrame(
                {
                    "place": np.arange(1, len(ranked) + 1),
                    "record": rows[ranked],
                    "AUC": found.predicted.auc[rows][ranked],
                    "activation": name,
                    "source": "theory",
                }
            )
        )
        networks.append(
            pd.DataFrame(
                {
                    "place": np.arange(1, len(ranked) + 1),
                    "record": rows[ranked],
                    "AUC": found.auc[ranked],
                    "low": found.low[ranked],
                    "high": found.high[ranked],
                    "activation": name,
                    "source": "retraining",
                }
            )
        )
    return Made(
        panels=(
            Panel(
                f"Under the process, depth {relu.scale.depth}",
                pd.concat(process, ignore_index=True),
                x="place",
                y="AUC",
                series="activation",
                x_title="record, by AUC of ReLU networks",
                y_title="AUC of the attack under the NNGP",
                kind="scatter",
            ),
            Panel(
                "Trained networks",
                pd.concat(networks, ignore_index=True),
                x="place",
                y="AUC",
                series="activation",
                low="low",
                high="high",
                x_title="record, by AUC of ReLU networks",
                y_title="AUC of the attack on networks",
                kind="scatter",
            ),
        ),
        claims=(_process(relu, gelu), _networks(relu, gelu)),
        settings={**relu.settings, "learning_rate, GELU": gelu.trainer.learning_rate},
        notes=(*relu.notes, f"The {min(SHOWN, len(rows))} most exposed records are shown."),
    )


def _process(relu: Trained, gelu: Trained) -> Claim:
    gap = gelu.predicted.auc - relu.predicted.auc
    more = share_of(gap > 0.0)
    sphere, y = on_sphere(relu.problem.X), relu.problem.y
    areas = {}
    for phi in ("relu", "gelu"):
        start = lood.edge_of_chaos(phi, variance=2.0)
        kernel = kernels.nngp(relu.scale.depth, phi, start.weight_variance, start.bias_variance)
        areas[phi] = by_process(kernel(sphere), y, relu.noise_variance).auc
    edge = share_of(areas["gelu"] > areas["relu"])
    return judge(
        "under the process every record leaks more with GELU than with ReLU",
        "Fig. 5, Section 6",
        f"weight variance 2, no bias, as the paper: higher with GELU for {more} of {more.total} "
        f"records, by {gap.mean():+.3f} on average; on a sphere at the edge of chaos, as Prop. G.1 "
        f"assumes: for {edge}",
        as_printed=more.every,
        corrected=edge.every,
        erratum=ERRATUM,
    )


def _networks(relu: Trained, gelu: Trained) -> Claim:
    gap = gelu.auc - relu.auc
    error = 1.96 * float(gap.std(ddof=1)) / np.sqrt(len(gap))
    mean = float(gap.mean())
    return judge(
        "trained networks leak more with GELU than with ReLU",
        "Fig. 5",
        f"{len(gap)} records: AUC higher with GELU for {share_of(gap > 0.0)}, by {mean:+.3f} +- "
        f"{error:.3f} (95% over records)",
        as_printed=side_of(mean - error, mean + error, 0.0),
    )


FIGURES = (
    Figure(
        "lood-5",
        "lood",
        "Fig. 5",
        "ReLU against GELU, under the process and in trained networks",
        make,
        full="one H200, 10 minutes, with --data; docs/benchmarks/retraining.md has a run",
        knobs=KNOBS,
        quick=QUICK,
    ),
)
