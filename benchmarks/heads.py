"""Heads on frozen embeddings: how exposure falls with examples per class, and heads by Adam.

    python benchmarks/heads.py slope docs/figures/heads_slope.png
    python benchmarks/heads.py adam

``slope``: the mean advantage, and the mean TPR at 1% FPR less 1%, of a linear head's own training
records over the examples per class in a training set, by the laws of one fit; the slope of the
logarithms with its standard error over parts of the records (arXiv 2402.06674 fits such lines to
shadow models of fine-tuned networks, and finds slopes about -1/2).

``adam``: a head trained by Adam for some epochs beside the laws of its optimum: how far away it is,
and what shadow models of the same recipe show.  Needs PyTorch.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from leakscope import fitted
from leakscope.fitted.fitted_laws import NEAREST, OF_SHIFT
from leakscope.fitted.heads import described_by
from leakscope.fitted.shadow import ShadowScores, check_against_shadows
from leakscope.measures import advantage, tpr_at_fpr
from leakscope.single_fit.losses import label_log_odds

DATA = Path(os.environ.get("LEAKSCOPE_DATA", "../shared/data"))
DECAYS = (1e-3, 1e-2)
PARTS = 4
FPR = 0.01

Arrays = tuple[np.ndarray, np.ndarray]


def digits(width: int = 32) -> Arrays:
    """The hidden layer of a network that was trained on one half of digits, on the other half."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    body, head = order[: len(X) // 2], order[len(X) // 2 :]
    net = MLPClassifier((width,), activation="tanh", max_iter=60, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(X[body] / 16, y[body])
    return np.tanh(X[head] / 16 @ net.coefs_[0] + net.intercepts_[0]), y[head]


def cifar(width: int = 64) -> Arrays:
    """Cars and planes: principal components of the second half, whitened, on the first half."""
    with np.load(DATA / "cifar10_car_plane.npz") as held:
        X, y = held["X"].reshape(len(held["y"]), -1) / 255.0, held["y"]
    order = np.random.default_rng(0).permutation(len(X))
    head, body = order[: len(X) // 2], order[len(X) // 2 :]
    mean = X[body].mean(axis=0)
    _, size, axes = np.linalg.svd(X[body] - mean, full_matrices=False)
    scale = np.sqrt(len(body)) / size[:width]
    return (X[head] - mean) @ axes[:width].T * scale, y[head]


def mixture(width: int = 32, classes: int = 5, each: int = 2048) -> Arrays:
    """Normal classes that overlap."""
    rng = np.random.default_rng(1)
    y = np.tile(np.arange(classes), each)
    return rng.normal(size=(len(y), width)) + rng.normal(size=(classes, width))[y] * 0.5, y


WORLDS = {
    "digits, a hidden layer of 32": (digits, (10, 20, 40, 80)),
    "CIFAR cars and planes, 64 components": (cifar, (80, 160, 320, 640, 1280, 2400)),
    "five normal classes in 32 dimensions": (mixture, (32, 64, 128, 256, 512, 1024, 2048)),
}


def exposures(E: np.ndarray, y: np.ndarray, decay: float) -> tuple[float, float]:
    """Mean advantage, and mean TPR at 1% FPR less 1%, over halves of these records."""
    classes = len(np.unique(y))
    rows = np.column_stack([E, np.ones(len(E))])
    problem = fitted.ConvexProblem(
        y=y,
        loss="softmax" if classes > 2 else "logistic",
        classes=classes if classes > 2 else 1,
        X=rows,
        penalty=np.full(rows.shape[1], decay),
        penalty_per_record=True,
    )
    pair = fitted.laws_of(problem).law_pair()
    tpr = float(np.mean(np.asarray(tpr_at_fpr(pair, FPR)))) - FPR
    return float(np.mean(np.asarray(advantage(pair)))), tpr


def line(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The slope of log values (parts x sizes) over log sizes, and its standard error over parts."""
    found = [np.polyfit(np.log(sizes), np.log(row), 1)[0] for row in values]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))


def slope(path: str) -> None:
    import altair
    import pandas as pd

    rows: list[dict[str, object]] = []
    print("| embeddings | weight decay | slope of the advantage | slope of TPR at 1% less 1% |")
    print("|---|---|---|---|")
    for name, (make, sizes) in WORLDS.items():
        E, y = make()
        # Training sets have half of the records.
        half = np.array(sizes) / 2
        for decay in DECAYS:
            found = np.empty((2, PARTS, len(sizes)))
            for part in range(PARTS):
                rng = np.random.default_rng(part)
                order = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
                for place, size in enumerate(sizes):
                    chosen = np.concatenate([each[:size] for each in order])
                    found[:, part, place] = exposures(E[chosen], y[chosen], decay)
            lines = [line(half, values) for values in found]
            shown = " | ".join(f"{value:.2f} ± {error:.2f}" for value, error in lines)
            print(f"| {name} | {decay:g} | {shown} |", flush=True)
            for size, value in zip(half, found[0].mean(axis=0), strict=True):
                rows.append(
                    {"world": name, "line": f"decay {decay:g}", "size": size, "advantage": value}
                )
        top = found[0].mean(axis=0)[0]
        for size in half:
            value = top * (size / half[0]) ** -0.5
            rows.append({"world": name, "line": "slope -1/2", "size": size, "advantage": value})
    log = altair.Scale(type="log")
    chart = (
        altair.Chart(pd.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=altair.X("size", scale=log, title="examples per class in a training set"),
            y=altair.Y("advantage", scale=log, title="mean advantage"),
            color=altair.Color("line", title=None),
            facet=altair.Facet("world", title=None, columns=3),
        )
        .properties(width=230, height=210)
        .resolve_scale(x="independent")
    )
    chart.save(path, scale_factor=1.5)


def recipe(E: np.ndarray, y: np.ndarray, seed: int, epochs: int, decay: float) -> np.ndarray:
    """Weight above, bias below, after so many epochs of Adam in batches of 32."""
    import torch

    torch.manual_seed(seed)
    head = torch.nn.Linear(E.shape[1], int(y.max()) + 1)
    optimiser = torch.optim.Adam(head.parameters(), lr=1e-2, weight_decay=decay)
    inputs, labels = torch.tensor(E, dtype=torch.float32), torch.tensor(y)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(32):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(head(inputs[rows]), labels[rows]).backward()
            optimiser.step()
    parts = head.weight.detach().numpy().T, head.bias.detach().numpy()
    return np.vstack(parts).astype(np.float64)


def adam(models: int) -> None:
    import torch

    torch.set_num_threads(1)
    E, y = (part[:600] for part in digits())
    rows, decay = np.column_stack([E, np.ones(len(E))]), 1e-2
    print("| epochs | distance, sd: median, most | near enough | shift over theirs: all, near |")
    print("|---|---|---|---|", flush=True)
    for epochs in (5, 20, 60, 200):
        theta = recipe(E, y, 10_000, epochs, decay)
        head = {"weight": theta[:-1].T, "bias": theta[-1]}
        model = described_by(head, E, y, weight_decay=decay)
        laws = fitted.laws_of(model)
        assert model.away is not None
        in_sd = np.abs(model.away.scores) / laws.nonmember_sd
        allowed = np.maximum(NEAREST, OF_SHIFT * np.abs(laws.shift) / laws.nonmember_sd)
        near = np.maximum(in_sd, np.median(in_sd)) <= allowed
        begin = time.process_time()
        scores, inside = np.empty((models, len(y))), np.empty((models, len(y)), dtype=np.bool_)
        for number in range(models):
            inside[number] = np.random.default_rng(number).random(len(y)) < 0.5
            part = inside[number]
            there = recipe(E[part], y[part], number, epochs, decay)
            scores[number] = label_log_odds(rows @ there, y.astype(np.float64))
        shadows = ShadowScores(scores, inside)
        check = check_against_shadows(laws, shadows)
        mean_in, _, mean_out, _ = shadows.moments()
        seen, weight = (mean_in - mean_out)[near], (laws.shift / laws.nonmember_sd**2)[near]
        ratio = (
            float((weight * laws.shift[near]).sum() / (weight * seen).sum())
            if near.any()
            else np.nan
        )
        print(
            f"| {epochs} | {np.median(in_sd):.2f}, {in_sd.max():.2f} | {100 * near.mean():.0f}% | "
            f"{check.shift_ratio:.2f}, {ratio:.2f} | sd {check.sd_ratio:.2f} | "
            f"{time.process_time() - begin:.0f} s |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("slope", "adam"))
    parser.add_argument("path", nargs="?")
    parser.add_argument("--models", type=int, default=100)
    given = parser.parse_args()
    if given.what == "slope":
        slope(given.path or sys.exit("slope needs the path of the figure"))
    else:
        adam(given.models)


if __name__ == "__main__":
    main()
