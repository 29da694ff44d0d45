"""lood Fig. 4: is the record itself the query that reveals most?

(a) a sine, all queries; (b) pictures, queries beside the record; (c) the same on trained networks.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from leakscope.attacking import likelihood_ratio
from leakscope.measures import Estimate, auc
from leakscope.verifying import choose_records
from papers.binomial_share import side_of
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_images import load_images
from papers.lood_networks import (
    KNOBS as NETWORK_KNOBS,
)
from papers.lood_networks import (
    QUICK,
    SMALL,
    by_process,
    problem,
    scale_of,
    trainer_of,
)
from papers.lood_perturbed import beside, directions, scales, scan
from papers.lood_sine import HIGH, KNOBS, LOW

NOISE = 0.01

# The curves that are drawn, as in the paper.
DRAWN = 5

# Queries within so many grey levels are near the record; from FAR on they are far.
NEAR, FAR = 10.0, 40.0

# The paper's peaks on networks: mean and deviation over 70 records.
PUBLISHED_PEAK = (-2.375, 5.978)


def make_a(order: Order) -> Made:
    """KL over all queries for three records of a sine."""
    X = np.linspace(LOW, HIGH, order.whole("records"))
    noise, kernel = order.knobs["noise_variance"], kernels.rbf(order.knobs["length_scale"])
    queries = np.unique(np.append(np.linspace(LOW, HIGH, 4001 if order.full else 801), X))
    found = lood.influence(X[:, None], np.sin(X), queries[:, None], kernel, noise)
    peaks = queries[np.argmax(found.kl, axis=1)]
    chosen = sorted({len(X) * place // 20 for place in (0, 7, 14)})
    rows = [
        pd.DataFrame(
            {
                "query": queries,
                "kl": found.kl[i],
                "record": f"S = {X[i]:.2f}",
                "source": "theory",
            }
        )
        for i in chosen
    ]
    away = float(np.max(np.abs(peaks - X)))
    return Made(
        panels=(
            Panel(
                "LOOD over the query, RBF",
                pd.concat(rows, ignore_index=True),
                x="query",
                y="kl",
                series="record",
                x_title="query Q",
                y_title="KL LOOD (nats)",
                y_log=True,
            ),
        ),
        claims=(
            judge(
                "LOOD is greatest where the query is the differing record",
                "Fig. 4(a)",
                f"all {len(X)} records: the largest of {len(queries)} queries is at most "
                f"{away:.1e} away from the record",
                as_printed=away == 0.0,
            ),
        ),
        settings={**order.knobs, "queries": len(queries)},
        notes=(f"{_spelled(len(X))} evenly spaced points: the paper does not say which.",),
    )


def _spelled(count: int) -> str:
    return "Twenty" if count == 20 else f"{count:,}"


def make_b(order: Order) -> Made:
    """KL along random directions through pictures."""
    key = order.key.child(4, 1)
    count, depth, noise = (
        70 if order.full else 24,
        order.whole("depth"),
        order.knobs["noise_variance"],
    )
    images = load_images(order.data, order.whole("records"), key.child(0))
    chosen = key.child(1).generator().permutation(len(images.y))[:count]
    count = len(chosen)
    x = scales(101 if order.full else 41)
    R = directions(count, images.X.shape[1], key.child(2))
    order.step(f"{count} scans of {len(x)} queries")
    found = scan(images.X, images.y, chosen, kernels.nngp(depth=depth), x, R, noise_variance=noise)
    excess = float(np.max(found.kl.max(axis=1) / found.own) - 1.0)
    left = float(np.median(found.kl[:, [0, -1]].mean(axis=1) / found.own))
    rows = [
        pd.DataFrame(
            {"x": x, "kl": found.kl[j], "record": f"record {chosen[j]}", "source": "theory"}
        )
        for j in range(min(DRAWN, count))
    ]
    return Made(
        panels=(
            Panel(
                f"LOOD beside the record, NNGP of depth {depth}",
                pd.concat(rows, ignore_index=True),
                x="x",
                y="kl",
                series="record",
                x_title="perturbation x (grey levels of 255)",
                y_title="KL LOOD (nats)",
            ),
        ),
        claims=(
            judge(
                "the record itself reveals more than any perturbation of it: the peak is at "
                "x = 0.000 with deviation 0.000",
                "Fig. 4(b)",
                f"{count} records: peak at {found.peaks.mean():.3f} +- {found.peaks.std():.3f}; "
                f"the largest LOOD is 1 {excess:+.0e} times the record's own; at x = 50 a median "
                f"of {left:.0%} is left",
                as_printed=bool((found.peaks == 0.0).all() and excess < 1e-8),
            ),
        ),
        settings={
            **images.settings,
            "scanned": count,
            "scales": len(x),
            "depth": depth,
            "noise_variance": noise,
        },
        notes=images.notes,
    )


def make_c(order: Order) -> Made:
    """AUC of attacks on trained networks along the same directions."""
    key = order.key.child(4, 2)
    scale = scale_of(order.size, order.knobs)
    count, points = (20, 21) if order.full else (8, 11)
    models = scale.models
    data = problem(order.data, scale, key.child(0))
    X, y = data.X, data.y
    predicted = by_process(kernels.nngp(scale.depth)(X), y, order.knobs["noise_variance"]).auc
    chosen = choose_records(predicted, count, random_state=key.child(1))
    x = scales(points)
    R = directions(count, X.shape[1], key.child(2))
    # A direction is in grey levels; the inputs are standardised.
    asked = beside(X[chosen], x, R * (255.0 * data.grey_level))
    trainer = trainer_of(X, scale, "relu")
    included = np.ones((models, len(y)), dtype=bool)
    order.step("networks with all records")
    queries = asked.reshape(-1, X.shape[1])
    members = trainer.train(X, y[:, None], included, queries, key.child(3)).answers[:, :, 0]
    members = members.reshape(models, count, points)
    area, low, high = (np.empty((count, points)) for _ in range(3))
    order.step(f"networks without each of {count} records")
    for j, record in enumerate(chosen):
        included[:, record] = False
        others = trainer.train(
            X, y[:, None], included, asked[j], key.child(4, int(record))
        ).answers[:, :, 0]
        included[:, record] = True
        for place in range(points):
            found = auc(likelihood_ratio(members[:, j, place], others[:, place]))
            assert isinstance(found, Estimate)
            area[j, place], low[j, place], high[j, place] = found.value, found.low, found.high
    near, far = np.abs(x) <= NEAR, np.abs(x) >= FAR
    drop = area[:, near].mean(axis=1) - area[:, far].mean(axis=1)
    error = 1.96 * float(drop.std(ddof=1)) / np.sqrt(count)
    peaks = np.array([float(np.mean(x[row == row.max()])) for row in area])
    spread = 1.96 * float(peaks.std(ddof=1)) / np.sqrt(count)
    mean, width = PUBLISHED_PEAK
    rows = [
        pd.DataFrame(
            {
                "x": x,
                "AUC": area[j],
                "low": low[j],
                "high": high[j],
                "record": f"record {chosen[j]}",
                "source": "retraining",
            }
        )
        for j in np.argsort(-area.max(axis=1))[:DRAWN]
    ]
    middle = pd.DataFrame(
        {"x": x, "AUC": area.mean(axis=0), "record": "mean of all records", "source": "theory"}
    )
    return Made(
        panels=(
            Panel(
                "Attacks on networks beside the record",
                pd.concat([*rows, middle], ignore_index=True),
                x="x",
                y="AUC",
                series="record",
                low="low",
                high="high",
                x_title="perturbation x (grey levels of 255)",
                y_title="AUC of the attack on networks",
            ),
        ),
        claims=(
            judge(
                "attacks on networks do best near the differing record",
                "Fig. 4(c)",
                f"{count} records: AUC within {NEAR:g} grey levels less AUC beyond {FAR:g}: "
                f"{drop.mean():.3f} +- {error:.3f} (95%)",
                as_printed=side_of(float(drop.mean()) - error, float(drop.mean()) + error, 0.0),
            ),
            judge(
                f"the best perturbation is x = {mean} +- {width}, that is, about the record",
                "Fig. 4(c)",
                f"peak at {peaks.mean():.1f} +- {peaks.std():.1f}, its mean known to "
                f"+- {spread:.1f} (95%)",
                as_printed=bool(abs(peaks.mean() - mean) < spread + width)
                if spread < 2.0 * width
                else None,
            ),
        ),
        settings={
            "data": data.name,
            **vars(scale),
            "records": count,
            "scales": points,
            "learning_rate": trainer.learning_rate,
        },
        notes=(
            *data.notes,
            *(() if order.full else (SMALL,)),
            "The line is the mean of the measured AUCs over all records.",
        ),
    )


FIGURES = (
    Figure(
        "lood-4a",
        "lood",
        "Fig. 4(a)",
        "LOOD over all queries on a sine, RBF",
        make_a,
        full="one core, seconds",
        knobs={**KNOBS, "records": 20},
    ),
    Figure(
        "lood-4b",
        "lood",
        "Fig. 4(b)",
        "LOOD of pictures at queries beside the record, under the process of a network",
        make_b,
        full="one core, a minute; --data for the pictures",
        knobs={"noise_variance": NOISE, "depth": 10, "records": 1000},
        quick={"records": 150},
    ),
    Figure(
        "lood-4c",
        "lood",
        "Fig. 4(c)",
        "attacks on trained networks at queries beside the record",
        make_c,
        full="one H200, 2 minutes, with --data (20 records; the paper has 70)",
        knobs=NETWORK_KNOBS,
        quick=QUICK,
    ),
)
