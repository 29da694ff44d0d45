"""The figure of docs/linear.md: bias of the histogram and of the mixture, in three data models.

    python benchmarks/linear_bias_figure.py docs/figures/linear_bias.png

Needs matplotlib, which leakscope itself does not.  For every number of designs (mixture) or draws
(histogram) the mean of an estimate over repetitions, less a long run over 30,000 designs of its
own; bars are two standard errors of that mean, the long run's included.
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from linear_histogram import World, models

from leakscope._numerics.keys import Key
from leakscope.measures import population_measures, scored_advantage
from papers.linear_histogram import histogram_advantage

PANELS = {
    "latent text 20/40": "latent space, n = 20, p = 40",
    "fourier text 12/8": "Fourier series, n = 12, p = 8",
    "relu published 20/100": "random ReLU, n = 20, p = 100",
}
POOL, LONG = 20_000, 30_000
DESIGNS = [10, 30, 100, 300, 1000, 2000]
DRAWS = [1000, 3000, 10_000, 30_000, 100_000]
STYLES = {
    "histogram, text": ("tab:red", "s-"),
    "histogram, published": ("tab:orange", "D-"),
    "mixture, plugged in": ("tab:blue", "o--"),
    "mixture, scored by other designs": ("tab:blue", "o-"),
}

Curves = dict[str, tuple[list[int], list[float], list[float]]]


def biases(world: World, truth: float, spread: float) -> Curves:
    rng = np.random.default_rng(3)
    found: Curves = {name: ([], [], []) for name in STYLES}

    def note(name: str, size: int, values: list[float]) -> None:
        error = np.hypot(np.std(values, ddof=1) / np.sqrt(len(values)), spread)
        for column, value in zip(
            found[name], (size, np.mean(values) - truth, 2.0 * error), strict=True
        ):
            column.append(value)  # type: ignore[arg-type]

    for size in DESIGNS:
        repeats = min(POOL // size, 200)
        parts = [slice(k * size, (k + 1) * size) for k in range(repeats)]
        pairs = [world.pair(part) for part in parts]
        note(
            "mixture, plugged in",
            size,
            [population_measures(pair).advantage for pair in pairs[:40]],
        )
        note(
            "mixture, scored by other designs",
            size,
            [scored_advantage(pair, designs=size).value for pair in pairs],
        )
    for size in DRAWS:
        repeats = min(40, 1_000_000 // size)
        drawn = [world.predictions(slice(0, POOL), size, rng) for _ in range(repeats)]
        for convention in ("text", "published"):
            values = [histogram_advantage(*pair, convention=convention) for pair in drawn]  # type: ignore[arg-type]
            note(f"histogram, {convention}", size, values)
    return found


def main() -> None:
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), sharey=True)
    for axis, (name, title) in zip(axes, PANELS.items(), strict=True):
        world = World(models()[name], POOL + LONG, Key(11))
        last = slice(POOL, None)
        run = scored_advantage(world.pair(last), designs=LONG)
        for label, (sizes, values, errors) in biases(world, run.value, run.stderr).items():
            colour, style = STYLES[label]
            axis.errorbar(
                sizes, values, errors, fmt=style, color=colour, label=label, ms=4, lw=1.2, capsize=2
            )
            print(
                name,
                label,
                [f"{size}: {value:+.4f}" for size, value in zip(sizes, values, strict=True)],
            )
        axis.axhline(0.0, color="black", lw=0.8)
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=0.003, linscale=0.8)
        axis.set_yticks([-0.1, -0.01, -0.003, 0.0, 0.003, 0.01, 0.1])
        axis.set_yticklabels(["-0.1", "-0.01", "-0.003", "0", "0.003", "0.01", "0.1"])
        axis.set_title(f"{title}: advantage {run.value:.3f}", fontsize=9)
        axis.set_xlabel("designs (mixture) or draws (histogram)", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("estimate less long run", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0.0, 0.07, 1.0, 1.0))
    figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
