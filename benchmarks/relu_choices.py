"""What training choices do to the margin attack: early stopping, weight decay, width, label noise.

    python benchmarks/relu_choices.py

n = 20 points of the sphere in d = 100, labels by the sign of the first coordinate, 8 networks a
row, 500 fresh points each.  The attacker knows the margin (Cor. 4.3), which for a network that was
not trained to the end is the least |f| of its training points.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from leakscope import measures
from leakscope.relu import KnownMargin, SphereData, TrainingPlan, scores_law_pair, train


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=8)
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    end = TrainingPlan(width=300, steps=options.steps, flow_steps=options.steps // 4)
    change = dataclasses.replace
    rows = {"to the end (KKT)": end, "plain descent, no flow": change(end, flow_steps=0)}
    rows |= {f"stop at loss {s:g}": change(end, stop_loss=s) for s in (0.5, 0.1, 0.01, 0.001)}
    rows |= {f"weight decay {s:g}": change(end, weight_decay=s) for s in (0.1, 0.01, 0.001)}
    rows |= {f"width {s}": change(end, width=s) for s in (30, 1000)}
    rows |= {f"label noise {s:g}": change(end, label_noise=s) for s in (0.1, 0.3)}
    law = SphereData(100)
    x, _ = law.training_sets(options.networks, 20, 1)
    y = np.where(x[:, :, 0] >= 0.0, 1.0, -1.0)
    tests = np.stack([law.sample(options.tests, 100 + i) for i in range(options.networks)])
    truth = np.where(tests[:, :, 0] >= 0.0, 1.0, -1.0)
    print(
        "choice                  fitted  test accuracy  on margin 5%  residual  AUC by nearness"
        "          TPR at 1% FPR         AUC by |f|"
    )
    for name, plan in rows.items():
        trained = train(x, y, plan, random_state=2)
        own, new = trained.margins * trained.y, trained.outputs(tests)
        margin = np.abs(own).min(axis=1)
        attack = KnownMargin(margin)
        pair = scores_law_pair(attack.attack(own).scores.ravel(), attack.attack(new).scores.ravel())
        size = scores_law_pair(
            (np.abs(own) / margin[:, None]).ravel(), (np.abs(new) / margin[:, None]).ravel()
        )
        auc, tpr, plain = measures.auc(pair), measures.tpr_at_fpr(pair, 0.01), measures.auc(size)
        print(
            f"{name:22s}  {trained.correct.mean():6.2f}  {(np.sign(new) == truth).mean():13.3f}  "
            f"{(np.abs(own) <= 1.05 * margin[:, None]).mean():12.3f}  "
            f"{trained.residual.mean():8.3f}  "
            f"{float(auc.value):.4f} [{float(auc.low):.4f}, {float(auc.high):.4f}]  "
            f"{float(tpr.value):.3f} [{float(tpr.low):.3f}, {float(tpr.high):.3f}]  "
            f"{float(plain.value):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
