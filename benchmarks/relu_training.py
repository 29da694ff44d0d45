"""Training 50 networks together, one after another, and in the batches leakscope chooses.

    python benchmarks/relu_training.py [--repeats 3]

The same steps from the same weights, so the same final residual; the least time of the repeats,
compilation apart.  On a CPU training is bound by arithmetic and by its caches.
"""

from __future__ import annotations

import argparse
import os
import time

import jax
import numpy as np

from leakscope.relu import SphereData, TrainingPlan, train
from leakscope.relu.training import batch_size

NETWORKS, POINTS, DIMENSION = 50, 20, 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--widths", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    print("width  one by one  all together  chosen (batch)   chosen / better  residuals apart")
    x, y = SphereData(DIMENSION).training_sets(NETWORKS, POINTS, 1)
    for width in options.widths:
        plan = TrainingPlan(
            width=width, steps=options.steps, flow_steps=options.steps // 8, check_every=10**6
        )
        chosen = batch_size(width, POINTS, POINTS, NETWORKS)
        sizes = {"one": 1, "all": NETWORKS, "chosen": chosen}
        best = dict.fromkeys(sizes, np.inf)
        residual = {}
        for turn in range(options.repeats + 1):
            for name, size in sizes.items():
                begin = time.perf_counter()
                residual[name] = train(x, y, plan, batch=size, random_state=2).residual
                if turn:  # the first turn compiles
                    best[name] = min(best[name], time.perf_counter() - begin)
        apart = max(np.abs(residual[name] - residual["one"]).max() for name in sizes)
        ratio = best["chosen"] / min(best["one"], best["all"])
        print(
            f"{width:5d}  {best['one']:8.2f} s  {best['all']:10.2f} s  {best['chosen']:6.2f} s "
            f"({chosen:2d})  {ratio:15.2f}  {apart:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
