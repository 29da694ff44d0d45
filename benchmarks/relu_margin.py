"""Section 5 of relu at full size, the three attackers at d = 1000, and batching on one device.

    python benchmarks/relu_margin.py                        # full size, for one H200
    python benchmarks/relu_margin.py --width 300 --networks 4 --tests 500 --steps 4000

Sections: experiment (width 10,000, n = 20, 50 networks a dimension, 5,000 test points a network),
attackers (Cor. 4.3 to 4.5 on held-back points of three laws) and batching (50 networks together
against one after another, the same steps and residual).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np

from leakscope import measures
from leakscope.relu import (
    BoundedMargin,
    KnownMargin,
    LeakedPoints,
    MixtureData,
    SphereData,
    TrainingPlan,
    coverage,
    normal_data,
    scores_law_pair,
    train,
)
from papers.relu_1 import DIMENSIONS
from papers.relu_margin import margin_experiment

# The attackers' networks are scaled, by homogeneity, to this mean loss: a plausible end.
LOSS = 0.01


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=10_000)
    parser.add_argument("--networks", type=int, default=50)
    parser.add_argument("--tests", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--flow", type=int, default=4000)
    parser.add_argument("--dims", type=int, nargs="*", default=DIMENSIONS)
    parser.add_argument("--sections", nargs="*", default=["batching", "attackers", "experiment"])
    parser.add_argument("--out", help="write the table as JSON here")
    options = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}, Python {platform.python_version()}")
    plan = TrainingPlan(width=options.width, steps=options.steps, flow_steps=options.flow)
    for section in options.sections:
        print(f"\n{section}", flush=True)
        {"experiment": experiment, "attackers": attackers, "batching": batching}[section](
            plan, options
        )
    stats = device.memory_stats() or {}
    print(f"\npeak device memory {stats.get('peak_bytes_in_use', 0) / 1e9:.1f} GB")


def experiment(plan: TrainingPlan, options: argparse.Namespace) -> None:
    print(
        "   d  fitted  train on margin 1%      5%             test on or above  within 1%  "
        "within 5%  residual  largest  seconds"
    )
    clock = [time.perf_counter()]

    def line(row) -> None:
        now = time.perf_counter()
        print(
            f"{row.features:4d}  {row.fitted:6d}  {row.train_1:.4f} +- {row.train_1_error:.4f}     "
            f"{row.train_5:.4f} +- {row.train_5_error:.4f}  {row.test_above:.5f} +- "
            f"{row.test_above_error:.5f}  {row.test_1:.5f}    {row.test_5:.5f}    "
            f"{row.residual:.4f}    {row.residual_largest:.4f}   {now - clock[0]:.1f}",
            flush=True,
        )
        clock[0] = now

    found = margin_experiment(
        options.dims,
        plan=plan,
        networks=options.networks,
        test_points=options.tests,
        random_state=5,
        progress=line,
    )
    if options.out:
        with open(options.out, "w", encoding="utf-8") as stream:
            json.dump(found.to_dict(), stream)


def attackers(plan: TrainingPlan, options: argparse.Namespace) -> None:
    d, n, fresh = 1000, 20, 1000
    axis = np.eye(4, d) * 5.0
    laws = {
        "sphere": SphereData(d),
        "normal": normal_data(np.zeros(d)),
        "mixture of 4": MixtureData(np.concatenate([axis[:2], -axis[:2]])),
    }
    shorter = dataclasses.replace(plan, steps=max(plan.steps // 2, 1))
    print(
        f"d = {d}, n = {n}, {options.networks} networks, scaled to a loss of {LOSS}; means of the "
        "mixture have length 5"
    )
    for name, law in laws.items():
        x, y = law.training_sets(options.networks, n, 1)
        trained = train(x, y, shorter, random_state=2)
        tests = np.stack([law.sample(fresh, 1000 + i) for i in range(len(x))])
        scale = _scale_to_loss(trained.margins)[:, None]
        own, new = scale * trained.margins * y, scale * trained.outputs(tests)
        covered = coverage(law, n, trials=100, random_state=3)
        print(
            f"{name}: KKT residual {trained.residual.mean():.4f}, training points within 1% of the "
            f"margin {(trained.margins <= 1.01 * trained.margin[:, None]).mean():.4f}, training "
            f"sets covered by margin_bounds {covered.gram:.2f}, by the paper's constants "
            f"{covered.corrected:.2f}"
        )
        margin = np.abs(own).min(axis=1)
        attacks = {
            "known margin (Cor. 4.3)": KnownMargin(margin),
            "leaked point (Cor. 4.4)": LeakedPoints(own[:, :1]),
            "bounded margin (Cor. 4.5)": BoundedMargin(),
        }
        for attacker, knowledge in attacks.items():
            # The leaked point is not held back, so it does not count as a member.
            inside, outside = knowledge.attack(own[:, 1:]), knowledge.attack(new)
            pair = scores_law_pair(inside.scores.ravel(), outside.scores.ravel())
            auc, tpr = measures.auc(pair), measures.tpr_at_fpr(pair, 0.01)
            print(
                f"  {attacker:26s} AUC {float(auc.value):.4f} [{float(auc.low):.4f}, "
                f"{float(auc.high):.4f}]  TPR at 1% FPR {float(tpr.value):.4f} "
                f"[{float(tpr.low):.4f}, {float(tpr.high):.4f}]  decisions: TPR "
                f"{inside.member.mean():.4f}, FPR {outside.member.mean():.5f}",
                flush=True,
            )


def _scale_to_loss(margins: np.ndarray) -> np.ndarray:
    """The factor of f at which each network's mean exponential loss is `LOSS`."""
    low, high = np.zeros(len(margins)), 100.0 / margins.min(axis=1)
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = np.exp(-middle[:, None] * margins).mean(axis=1) > LOSS
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def batching(plan: TrainingPlan, options: argparse.Namespace) -> None:
    steps = max(plan.steps // 10, 100)
    short = dataclasses.replace(
        plan, steps=steps, flow_steps=max(plan.flow_steps // 10, 1), check_every=steps
    )
    x, y = SphereData(100).training_sets(options.networks, 20, 1)
    alone = dataclasses.replace(short)
    train(x[:1], y[:1], alone, batch=1, random_state=2)
    begin = time.perf_counter()
    single = train(x, y, alone, batch=1, random_state=2)
    loop = time.perf_counter() - begin
    train(x, y, short, random_state=2)
    begin = time.perf_counter()
    together = train(x, y, short, random_state=2)
    batch = time.perf_counter() - begin
    apart = np.abs(single.residual - together.residual).max()
    print(
        f"{options.networks} networks, d = 100, {steps} steps and {short.flow_steps} of the flow: "
        f"one after another {loop:.2f} s, together {batch:.2f} s, ratio {loop / batch:.2f}; "
        f"residuals {single.residual.mean():.5f} and {together.residual.mean():.5f}, at most "
        f"{apart:.1e} apart"
    )


if __name__ == "__main__":
    main()
