"""Reconstruction from exact one-dimensional maximum-margin networks: how much, and how sure.

    python benchmarks/relu_reconstruction.py [--sets 200]

Random training sets of 3 to 15 records, coin-flip labels; records normal, or uniform on [-10, 10].
For Algorithm 1 as printed, for every linear piece, and for the moments of the multipliers:
precision (least and mean, over networks with candidates), the share of the margin's records
recovered (no candidates counts as zero), networks without a candidate, and the proven share
(guarantee).  Then the same candidates from queries alone, with their number; and the margin from
the weights alone, on the first sets.  Sets with one label, close around zero, give a constant
network, whose weights are the same for all such sets: they are counted apart.  Last, trained
networks.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from leakscope import relu
from papers.relu_algorithm_1 import training_set


def training_sets(kind: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [training_set(kind, np.random.default_rng(seed)) for seed in range(count)]


def forms(best: list[relu.MaxMarginNetwork]) -> None:
    heading = f"{'form':10s}{'precision':>18s}{'recovered':>11s}{'no candidate':>14s}"
    print(heading + f"{'guarantee':>18s}{'seconds':>9s}")
    for form in ("printed", "pieces", "moments"):
        begin = time.perf_counter()
        found = [relu.reconstruct(one, form=form) for one in best]
        seconds = time.perf_counter() - begin
        precision = [one.precision for one in found if one.precision is not None]
        guarantee = [one.guarantee for one in found if one.guarantee is not None]
        recall = np.mean([one.margin_recall for one in found])
        empty = sum(not one.candidates for one in found)
        print(
            f"{form:10s}{min(precision):9.3f}{np.mean(precision):9.4f}{recall:11.4f}"
            f"{empty:8d} of {len(best)}{min(guarantee):9.3f}{np.mean(guarantee):9.4f}{seconds:9.1f}"
        )


def what_is_missed(best: list[relu.MaxMarginNetwork]) -> None:
    flat = [one for one in best if len(relu.pieces(one.network)) == 1]
    missed = on = 0
    for one in best:
        if len(relu.pieces(one.network)) > 1:
            found = relu.reconstruct(one)
            missed += round((1.0 - (found.margin_recall or 0.0)) * one.on_margin.sum())
            on += int(one.on_margin.sum())
    print(
        f"constant networks {len(flat)}; in the others {missed} of {on} records on the margin are "
        "missed, all inside constant pieces"
    )


def black_box(best: list[relu.MaxMarginNetwork]) -> None:
    worst, queries, same = 0.0, [], 0
    for one in best:
        own, asked = relu.reconstruct(one.network), relu.reconstruct_from_queries(one.network)
        queries.append(asked.queries)
        if len(own.x) == len(asked.x):
            same += 1
            worst = max(worst, float(np.abs(own.x - asked.x).max(initial=0.0)))
    print(
        f"queries alone: {same} of {len(best)} with the same candidates, largest difference "
        f"{worst:.1e}; queries {np.mean(queries):.0f} on average, {max(queries)} at most"
    )


def unknown_margin(best: list[relu.MaxMarginNetwork]) -> None:
    begin = time.perf_counter()
    right = sum(abs(relu.scan_margin(one.network).best - 1.0) < 1e-6 for one in best)
    seconds = (time.perf_counter() - begin) / len(best)
    print(f"margin from the weights alone: right for {right} of {len(best)} ({seconds:.1f} s each)")


def trained() -> None:
    """Networks as people get them: six records, one change of label, width 100, descent."""
    x, y = [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        x.append(np.sort(rng.uniform(-2.0, 2.0, 6))[:, None])
        y.append(np.where(np.arange(6) < rng.integers(1, 6), 1.0, -1.0) * rng.choice([-1, 1]))
    nets = relu.train(np.array(x), np.array(y), relu.TrainingPlan(width=100), random_state=0)
    rows = [
        (float(nets.residual[i]), relu.reconstruct(
            nets.network(i), margin=float(nets.margin[i]), tolerance=2e-3, training=(x[i], y[i])
        ))
        for i in range(16)
        if nets.margin[i] > 0.0
    ]  # fmt: skip
    print(
        f"\ntrained networks, tolerance 2e-3: {len(rows)} of 16 fit their records; KKT residual "
        f"{min(r for r, _ in rows):.1e} to {max(r for r, _ in rows):.1e}; precision at least "
        f"{min(f.precision or 0.0 for _, f in rows):.3f}, recovered at least "
        f"{min(f.margin_recall or 0.0 for _, f in rows):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    count = parser.parse_args().sets
    for kind in ("normal", "uniform"):
        begin = time.perf_counter()
        best = [relu.max_margin_network(x, y) for x, y in training_sets(kind, count)]
        seconds = time.perf_counter() - begin
        gap = max(abs(one.gap) for one in best)
        exact = sum(abs(one.gap) < 1e-11 and one.stationarity < 1e-10 for one in best)
        print(
            f"\n{kind} records: {count} networks in {seconds:.1f} s; largest gap {gap:.1e}, "
            f"{exact} at machine precision"
        )
        forms(best)
        what_is_missed(best)
        black_box(best)
        unknown_margin(best[:40])
    trained()


if __name__ == "__main__":
    main()
