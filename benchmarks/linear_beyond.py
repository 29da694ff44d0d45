"""The two figures of docs/linear.md beyond the paper: real attackers, and ways to train.

    python benchmarks/linear_beyond.py docs/figures

Numbers are those of ``leakscope plan linear --attacker-models`` and ``--defences``, the latter at
finer settings; the pictures are drawn as those of the papers are.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

import leakscope
from leakscope.linear import GaussianDesign
from leakscope.linear.defences import Defence
from leakscope.planning.linear_defences import compared_defences
from papers import Figure, Made, Order, Panel, reproduce
from papers.panels import figure_png

MODELS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


def attackers(order: Order) -> Made:
    """Advantage and TPR at 1% of LiRA over its shadow models, beside who knows the laws."""
    design = GaussianDesign(100, 400, 3000, 1.0, ridge=1.0)
    plan = leakscope.plan_linear(
        design, method="asymptotic", attacker_models=MODELS, fpr=[0.01], random_state=order.key
    )
    panels = []
    for who in ("label_hidden", "label_known"):
        rows = []
        for one in plan.rivals:
            if one.attacker != who:
                continue
            for count in MODELS if one.models is None else (one.models,):
                rows.append((count, one.advantage, one.tpr_at_fpr["0.01"], one.name))
        table = pd.DataFrame(rows, columns=["shadow models", "advantage", "TPR", "attacker"])
        told = who.replace("_", " ")
        panels += [
            Panel(f"{title}, {told}", table, x="shadow models", y=y, series="attacker", x_log=True)
            for y, title in (("advantage", "advantage"), ("TPR", "TPR at FPR 1%"))
        ]
    return Made(tuple(panels), ())


def defences(order: Order) -> Made:
    """Leakage against error, a curve for each way to train; noise is on a good ridge's answers."""
    design = GaussianDesign(100, 80, 100, 0.5)
    ways = [
        *(Defence("ridge", lam) for lam in (0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0, 10.0)),
        *(Defence("early stopping", steps) for steps in (1, 2, 3, 4, 5, 7, 10, 14, 20, 30)),
        *(Defence("noisy descent", noise, steps=5) for noise in (0.0, 0.05, 0.1, 0.15, 0.2)),
        *(Defence("bagging", share) for share in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)),
    ]
    noised = [Defence("output noise", noise) for noise in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    found = [
        *compared_defences(design, ways, draws=80, key=order.key),
        *compared_defences(replace(design, ridge=0.3), noised, draws=80, key=order.key),
    ]
    names = {"output noise": "noise on ridge 0.3", "noisy descent": "noisy descent, 5 steps"}
    rows = [
        (
            one.generalization_error,
            one.advantage_label_known,
            one.advantage,
            one.tpr_at_fpr_label_known["0.01"],
            names.get(one.defence, one.defence),
            "simulation",
            place,
        )
        for place, one in enumerate(found)
    ]
    columns = ["error", "label known", "label hidden", "TPR", "way to train", "source", "order"]
    table = pd.DataFrame(rows, columns=columns)
    return Made(
        tuple(
            Panel(title, table, x="error", y=y, series="way to train", y_title=of, joined=True)
            for y, of, title in (
                ("label known", "advantage", "advantage, label known"),
                ("TPR", "TPR", "TPR at FPR 1%, label known"),
                ("label hidden", "advantage", "advantage, label hidden"),
            )
        ),
        (),
    )


def main() -> None:
    folder = Path(sys.argv[1])
    for name, make in (("attackers", attackers), ("defences", defences)):
        figure = Figure(f"linear-{name}", "linear", "beyond the paper", name, make)
        (folder / f"linear_{name}.png").write_bytes(figure_png(reproduce(figure)))


if __name__ == "__main__":
    main()
