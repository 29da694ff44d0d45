"""lood Fig. 3: one group of three pictures, reconstructed by three queries and by one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from papers.claims import judge
from papers.figure import Figure, Made, Order, Panel, Picture
from papers.lood_groups import GROUP, KNOBS, QUICK, RANKS, GroupRun, run_group
from papers.lood_images import Images, load_images

# Rows of the paper's figure: random initialisations.
SHOWN = 3

# "Slightly higher", and "very similar".
SLIGHTLY, SIMILAR = 1.5, 0.9


def make(order: Order) -> Made:
    """Pictures for three starts, and LOOD for all of them."""
    key = order.key.child(3)
    starts, depth, noise = (
        20 if order.full else 12,
        order.whole("depth"),
        order.knobs["noise_variance"],
    )
    images = load_images(order.data, order.whole("records"), key.child(0))
    rows = key.child(1).generator().choice(len(images.y), GROUP, replace=False)
    kernel = kernels.nngp(depth=depth)
    order.step(f"a group of three, {starts} starts")
    run = run_group(
        images.X, images.y, rows, kernel, key.child(2), noise_variance=noise, starts=starts
    )
    three, one = run.found[3], run.found[1]
    every = int(three.recovered.all(axis=1).sum())
    by_rank = three.recovered.sum(axis=0)
    # The member that the best single query comes nearest to.
    target = run.members.index(int(one.nearest[0]))
    ratio = one.lood / run.single[target]
    return Made(
        panels=(_panel(run), _recovered(run)),
        claims=(
            judge(
                "the records with the highest LOOD can be recovered, and for certain starts all",
                "Fig. 3",
                f"of {starts} starts with three queries {by_rank[0]}, {by_rank[1]} and "
                f"{by_rank[2]} recover the most exposed, the middle and the least exposed record, "
                f"{every} all three",
                # Some starts or none: that no start finds all need not be so for more of them.
                as_printed=(True if every else None) if by_rank[0] else False,
            ),
            judge(
                "the best single query has a very similar, slightly higher LOOD than the record "
                "that it recovers",
                "Section 4, Fig. 3",
                f"LOOD of the group {one.lood:.3f} at the query, {run.single[target]:.3f} at the "
                f"{RANKS[target]} record: {ratio:.4f} times",
                as_printed=bool(1.0 - 1e-6 <= ratio <= SLIGHTLY),
            ),
            judge(
                "three queries together come very close to the LOOD of the group's own points",
                "Section 4",
                f"best of {starts} starts: {three.ratio:.4f} of it",
                as_printed=images.told(bool(SIMILAR <= three.ratio <= 1.0 + 1e-8)),
            ),
        ),
        pictures=_pictures(images, run, kernel, noise),
        settings={
            **images.settings,
            "group": list(run.members),
            "starts": starts,
            "depth": depth,
            "noise_variance": noise,
        },
        notes=(*images.notes, "Members are ordered by the group's LOOD at their own point."),
    )


def _panel(run: GroupRun) -> Panel:
    rows = [
        pd.DataFrame(
            {
                "start": np.arange(1, len(found.values) + 1),
                "LOOD": np.sort(found.values)[::-1],
                "query": f"{count} quer{'y' if count == 1 else 'ies'}",
                "source": "simulation",
            }
        )
        for count, found in run.found.items()
    ]
    starts = [1, len(run.found[1].values)]
    levels = {"the group's own points": run.found[3].lood_at_record}
    levels |= {f"its {rank} record": float(v) for rank, v in zip(RANKS, run.single, strict=True)}
    rows += [
        pd.DataFrame({"start": starts, "LOOD": level, "query": name, "source": "theory"})
        for name, level in levels.items()
    ]
    return Panel(
        "LOOD of the group where starts end",
        pd.concat(rows, ignore_index=True),
        x="start",
        y="LOOD",
        series="query",
        x_title="start, by LOOD",
        y_title="KL LOOD of the group (nats)",
    )


def _recovered(run: GroupRun) -> Panel:
    rows = [
        {
            "member": rank,
            "share": float(found.recovered[:, place].mean()),
            "queries": str(count),
            "source": "simulation",
        }
        for count, found in run.found.items()
        for place, rank in enumerate(RANKS)
    ]
    return Panel(
        "Starts that recover a member",
        pd.DataFrame(rows),
        x="member",
        y="share",
        series="queries",
        x_title="member of the group",
        y_title="share of starts",
        kind="bars",
    )


def _pictures(
    images: Images, run: GroupRun, kernel: kernels.Kernel, noise: float
) -> tuple[Picture, ...]:
    without = lood.distinguish(
        images.X,
        images.y,
        leave_out=list(run.members),
        kernel=kernel,
        noise_variance=noise,
    ).mean_without
    labels = images.y[list(run.members)]
    right = ["right" if m * y > 0.0 else "wrong" for m, y in zip(without, labels, strict=True)]
    shown = [
        images.strip(
            "the group: "
            + ", ".join(
                f"{rank}, predicted {word} without it"
                for rank, word in zip(RANKS, right, strict=True)
            ),
            images.X[list(run.members)],
        )
    ]
    three, one = run.found[3], run.found[1]
    for start in np.argsort(-three.values)[:SHOWN]:
        shown.append(
            images.strip(
                f"three queries together, start {start + 1}: LOOD {three.values[start]:.3g} of "
                f"{three.lood_at_record:.3g}",
                three.queries[start],
            )
        )
    for start in np.argsort(-one.values)[:SHOWN]:
        shown.append(
            images.strip(
                f"one query, start {start + 1}: LOOD {one.values[start]:.3g}", one.queries[start]
            )
        )
    return tuple(shown)


FIGURES = (
    Figure(
        "lood-3",
        "lood",
        "Fig. 3",
        "a group of three pictures reconstructed by queries that climb LOOD",
        make,
        full="one core, 3 minutes; --data for the pictures",
        knobs=KNOBS,
        quick=QUICK,
    ),
)
