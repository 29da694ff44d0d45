"""Reconstruction with many inputs by the KKT residual: how many records come back.

    python benchmarks/relu_kkt_reconstruction.py [--networks 10]

Standard normal records, coin-flip labels, networks trained by `relu.train`; those that fit their
records are attacked.  Columns: networks that fitted, the median KKT residual on the training set,
distinct neurons and records that hold the network (multiplier above 1e-3 of the largest), on
average, and the networks whose equations K (d + 1) + n suffice for n (d + 1) unknowns.  Then for
the descent, for the objective of Haim et al. alone and for the differences of neurons: the share
of the records that hold the network that come back within a tenth of the distance to the nearest
other record, and the precision of the candidates; `agreed` are the candidates that more than half
of the solutions have; `left` is the median KKT residual of the network on the points found, and
`as well` counts the networks that those explain as well as their own records do.  `random` is the
recall of as many draws from the records' own mean and covariance; `s` is seconds for a descent.
Then early stopping, other choices of the attacker and of training, and a descent that is started
near the records themselves, on networks with equations enough.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np

from leakscope import relu
from leakscope.relu.kkt_reconstruction import descend, distinct_neurons

PLAN = relu.TrainingPlan(width=100, initial_scale=0.1, steps=12_000)


@dataclass(frozen=True)
class Victim:
    network: relu.TwoLayerNetwork
    x: np.ndarray
    held: np.ndarray
    residual: float


def victims(d: int, n: int, count: int, plan: relu.TrainingPlan) -> list[Victim]:
    x, y = relu.normal_data(np.zeros(d)).training_sets(count, n, random_state=1)
    trained = relu.train(x, y, plan, random_state=1)
    found = []
    for i in np.flatnonzero(trained.correct):
        network = trained.network(int(i))
        kkt = relu.kkt_residual(network, x[i], y[i])
        held = kkt.multipliers > 1e-3 * kkt.multipliers.max()
        found.append(Victim(network, x[i], held, kkt.residual))
    return found


@dataclass
class Count:
    held: int = 0
    back: int = 0
    random: float = 0.0
    candidates: int = 0
    right: int = 0
    agreed: int = 0
    agreed_right: int = 0
    distinct: int = 0
    enough: int = 0
    as_well: int = 0
    residual: list[float] | None = None
    seconds: float = 0.0

    def recall(self) -> str:
        return f"{self.back / max(self.held, 1):8.2f}"

    def precision(self) -> str:
        return f"{self.right / max(self.candidates, 1):6.2f}"


def attack(found: list[Victim], points: float = 1.0, **options: object) -> Count:
    count = Count(residual=[])
    begin = time.perf_counter()
    for one in found:
        n, d = one.x.shape
        answer = relu.reconstruct_points(one.network, points=round(points * n), **options)  # type: ignore[arg-type]
        own = relu.point_recovery(answer.x, one.x)
        count.held += int(one.held.sum())
        count.back += int(own.recovered[one.held].sum())
        count.random += own.baseline_recall * one.held.sum()
        agreed = np.array([(c.agreement or 0.0) > 0.5 for c in answer.candidates], dtype=bool)
        count.candidates += len(own.right)
        count.right += int(own.right.sum())
        count.agreed += int(agreed.sum())
        count.agreed_right += int(own.right[agreed].sum())
        count.distinct += answer.distinct
        held = int(one.held.sum())
        count.enough += answer.distinct * (d + 1) + held >= held * (d + 1)
        if answer.residual is not None and count.residual is not None:
            count.residual.append(answer.residual)
            count.as_well += answer.residual <= one.residual
    count.seconds = time.perf_counter() - begin
    return count


def cells(networks: int) -> None:
    print(
        f"{'d':>3s}{'n':>4s}{'fit':>5s}{'KKT':>9s}{'K':>6s}{'hold':>6s}{'enough':>8s}"
        f"{'descent':>9s}{'prec':>6s}{'agreed':>12s}{'left':>9s}{'as well':>9s}"
        f"{'Haim':>8s}{'prec':>6s}{'differ':>8s}{'prec':>6s}{'random':>8s}{'s':>6s}"
    )
    for d in (2, 5, 10, 20):
        for n in (5, 10, 20):
            found = victims(d, n, networks, PLAN)
            own = attack(found)
            haim = attack(found, method="smoothed")
            differ = attack(found, method="differences")
            fit = len(found)
            print(
                f"{d:3d}{n:4d}{fit:5d}{np.median([v.residual for v in found]):9.1e}"
                f"{own.distinct / fit:6.1f}{own.held / fit:6.1f}{own.enough:8d}"
                f" {own.recall()}{own.precision()}{own.agreed_right:6d} of{own.agreed:3d}"
                f"{np.median(own.residual or [np.nan]):9.1e}{own.as_well:9d}"
                f"{haim.recall()}{haim.precision()}{differ.recall()}{differ.precision()}"
                f"{own.random / own.held:8.2f}{own.seconds / fit:6.1f}",
                flush=True,
            )


def early(networks: int) -> None:
    print("\nearly stopping, d = 2, n = 5: loss at which training stops")
    print(f"{'loss':>8s}{'fit':>5s}{'KKT':>9s}{'K':>6s}{'descent':>9s}{'prec':>6s}{'agreed':>12s}")
    for loss in (0.3, 0.1, 1e-2, 1e-4, 1e-8, None):
        found = victims(2, 5, networks, replace(PLAN, stop_loss=loss))
        own = attack(found)
        print(
            f"{'flow' if loss is None else format(loss, 'g'):>8s}{len(found):5d}"
            f"{np.median([v.residual for v in found]):9.1e}{own.distinct / len(found):6.1f}"
            f" {own.recall()}{own.precision()}{own.agreed_right:6d} of{own.agreed:3d}",
            flush=True,
        )


def choices(networks: int) -> None:
    print("\nother choices, d = 2: recall at n = 5, n = 10")
    sets = [victims(2, n, networks, PLAN) for n in (5, 10)]
    margins = [[float(np.abs(one.network(one.x)).min()) for one in found] for found in sets]
    for name, options in (
        ("as above", {}),
        ("twice as many points", {"points": 2.0}),
        ("four times the starts", {"starts": 128}),
        ("a box of 2.5", {"box": (-2.5, 2.5)}),
        ("no differences", {"method": "descent"}),
    ):
        print(f"{name:24s}" + "".join(attack(found, **options).recall() for found in sets))  # type: ignore[arg-type]
    known = []
    for found, values in zip(sets, margins, strict=True):
        parts = [attack([one], margin=m) for one, m in zip(found, values, strict=True)]
        known.append(sum(p.back for p in parts) / sum(p.held for p in parts))
    print(f"{'margin known':24s}" + "".join(f"{value:8.2f}" for value in known), flush=True)
    for width, scale in ((100, 1e-4), (500, 1e-4), (500, 0.1)):
        plan = replace(PLAN, width=width, initial_scale=scale)
        own = [attack(victims(2, n, networks, plan)) for n in (5, 10)]
        text = f"width {width}, start {scale:g}"
        print(f"{text:24s}" + "".join(one.recall() for one in own), flush=True)


def near(networks: int) -> None:
    print("\nstarted near the records, equations enough: recall for noise 0.1, 0.3, 1")
    for d, n in ((5, 10), (10, 10), (20, 20)):
        found = victims(d, n, networks, PLAN)
        row = []
        for noise in (0.1, 0.3, 1.0):
            back = held = 0
            for one in found:
                neurons, x = distinct_neurons(one.network), one.x[one.held]
                if len(neurons) * (d + 1) + len(x) < len(x) * (d + 1):
                    continue
                rng = np.random.default_rng(0)
                start = x + noise * rng.standard_normal((8, *x.shape))
                masses = np.sign(one.network(x)) / np.sqrt((start**2).sum(axis=2) + 1.0)
                ended = descend(
                    neurons,
                    start,
                    masses,
                    steps=2000,
                    smoothed=False,
                    scale=1.0,
                    margin=None,
                    box=None,
                )
                best = int(np.argmin(ended.total))
                back += int(relu.point_recovery(ended.points[best], x).recovered.sum())
                held += len(x)
            row.append(f"{back:5d} of{held:4d}")
        print(f"d = {d}, n = {n}" + "".join(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=10)
    asked = parser.parse_args()
    begin = time.perf_counter()
    cells(asked.networks)
    early(asked.networks)
    choices(asked.networks)
    near(asked.networks)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
