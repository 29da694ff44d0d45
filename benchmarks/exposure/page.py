"""The page of ``score.py``'s numbers, with its two pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Run = dict[str, Any]
Key = tuple[str, str]

HEAD = """# A handful of models against hundreds

Made by `python benchmarks/exposure/score.py truths --chosen FOLDER` from truths of 200 to 400
models each (`benchmarks/exposure/networks.py` and `trees.py`; the two marked (given) are older),
at most 2,500 records of each, chosen at random. The first 64 models are the budgets', the others
are the truth. Numbers at 4 models are means of two disjoint choices of models; at other budgets
there is one. With 32 models and more only the peers were scored.

The estimator ([few_models.md](../few_models.md)) was chosen on the truths marked \\*: the two given
ones, and one of each pair of trainings. It is **judged on the eight others**; an earlier version
of it had been scored on all.
"""

JUDGED = "## What was asked, on the truths that were not used to choose\n"

PEERS = (
    ("LiRA, own variance", (8, 16, 32, 64)),
    ("LiRA, bayes variance", (4, 16, 32)),
    ("LiRA, shared variance", (4, 32)),
    ("RMIA", (4, 16)),
    ("ensemble loss", (2, 4, 16)),
    ("loss of one model", (1,)),
)


class Numbers:
    """The runs, averaged over the choices of models."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.keys: list[Key] = list(dict.fromkeys(_key(run) for run in runs))
        self.chosen = {_key(run): bool(run["chosen"]) for run in runs}

    def mean(self, key: Key, budget: int, number: Callable[[Run], float]) -> float:
        kept = [r for r in self.runs if _key(r) == key and r["budget"] == budget]
        return float(np.mean([number(run) for run in kept]))

    def rank(self, key: Key, budget: int, name: str) -> float:
        return self.mean(key, budget, lambda run: run["rank"][name])

    def precision(self, key: Key, budget: int, name: str) -> float:
        return self.mean(key, budget, lambda run: run["precision"][name])

    def label(self, key: Key) -> str:
        return key[0].replace("_", " ") + key[1] + (" \\*" if self.chosen[key] else "")


def _key(run: Run) -> Key:
    return run["truth"], " (given)" if run["given"] else ""


def write_page(numbers: dict[str, Any], path: Path) -> None:
    found = Numbers(numbers["runs"])
    lines = [HEAD, JUDGED, *_asked(found), "", "## Ranks\n", *_ranks(found)]
    lines += ["", "## Peers\n", *_peers(found), "", "## Levels\n", *_levels(found)]
    lines += ["", "## Nulls\n", *_nulls(numbers["nulls"]), "", "## Left out\n"]
    lines.append(
        "BASE is RMIA in other words (arXiv 2603.11799). The truths hold log-odds only, so that "
        "what needs more could not be scored on them: the interquartile range of the loss over "
        "training (needs traces), quantile regression and generalised leverage (need the records "
        "and a network). A first look at one network is in the notes of the given truths: 0.52 "
        "for the former on CIFAR-10, as ensemble loss there, with one model."
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pictures(found, path.parent)


def _asked(found: Numbers) -> list[str]:
    """How often each aim is met, on the truths that were judged, and on all."""
    ours, lira = "few models", "LiRA, own variance"
    tests: list[tuple[str, Callable[[Key], bool]]] = []
    for budget, theirs in ((4, 16), (4, 32), (8, 32), (16, 64)):
        for words, number in (("rank", found.rank), ("precision at 1%", found.precision)):
            tests.append(
                (
                    f"{words}: {budget} models at least LiRA's with {theirs}",
                    lambda key, b=budget, t=theirs, n=number: n(key, b, ours) >= n(key, t, lira),  # type: ignore[misc]
                )
            )
    tests.append(
        (
            "rank: 4 models at least the ensemble loss's with 4",
            lambda key: found.rank(key, 4, ours) >= found.rank(key, 4, "ensemble loss"),
        )
    )
    for budget in (4, 16):
        tests += [
            (
                f"coverage 93 to 97%, {budget} models",
                lambda key, b=budget: 0.93 <= found.mean(key, b, lambda r: r["cover"]) <= 0.97,
            ),
            (
                f"coverage of the top 1% at least 90%, {budget} models",
                lambda key, b=budget: found.mean(key, b, lambda r: r["cover_top"]) >= 0.9,
            ),
            (
                f"mean TPR at 1% within 10% of the truth's, {budget} models",
                lambda key, b=budget: abs(_tpr_ratio(found, key, b) - 1.0) <= 0.1,
            ),
            (
                f"median FPR between 0.8% and 1.25%, {budget} models",
                lambda key, b=budget: 0.008 <= found.mean(key, b, lambda r: r["fpr"][1]) <= 0.0125,
            ),
        ]
    judged = [key for key in found.keys if not found.chosen[key]]
    lines = ["| aim | judged | all |", "|---|---|---|"]
    for words, test in tests:
        one, all_of_them = (sum(test(key) for key in keys) for keys in (judged, found.keys))
        lines.append(f"| {words} | {one} of {len(judged)} | {all_of_them} of {len(found.keys)} |")
    return lines


def _tpr_ratio(found: Numbers, key: Key, budget: int) -> float:
    predicted = found.mean(key, budget, lambda r: r["tpr_predicted"][0])
    return predicted / found.mean(key, budget, lambda r: r["tpr_corrected"][0])


def _table(found: Numbers, columns: Sequence[tuple[str, int]], heads: Sequence[str]) -> list[str]:
    lines = [f"| truth | ceiling | {' | '.join(heads)} |", "|---" * (len(columns) + 2) + "|"]
    for key in found.keys:
        cells = [
            f"{found.rank(key, b, n):.2f}, {found.precision(key, b, n):.2f}" for n, b in columns
        ]
        ceiling = found.mean(key, 64, lambda run: run["ceiling"])
        lines.append(f"| {found.label(key)} | {ceiling:.2f} | {' | '.join(cells)} |")
    return lines


def _ranks(found: Numbers) -> list[str]:
    columns = [("few models", b) for b in (2, 4, 8, 16)]
    columns += [("LiRA, own variance", b) for b in (16, 32, 64)]
    heads = [f"{'few' if name == 'few models' else 'LiRA'}, {b}" for name, b in columns]
    words = (
        "Rank correlation with the truth's (mean in − mean out)/sd, then the share of the truly "
        "top 1% among the predicted top 1%. The ceiling is what a perfect predictor would reach "
        "against so noisy a truth.\n"
    )
    return [
        words,
        "![Rank correlation by number of models](exposure_ranks.png)\n",
        *_table(found, columns, heads),
    ]


def _peers(found: Numbers) -> list[str]:
    columns = [(name, budget) for name, budgets in PEERS for budget in budgets]
    heads = [f"{n}, {b}".replace("LiRA, bayes variance", "BaVarIA-n") for n, b in columns]
    return ["The same two numbers.\n", *_table(found, columns, heads)]


def _levels(found: Numbers) -> list[str]:
    def rates(key: Key, budget: int, name: str) -> str:
        low, middle, high = (found.mean(key, budget, lambda r, k=k: r[name][k]) for k in range(3))
        return f"{100 * middle:.2f}% ({100 * low:.2f} to {100 * high:.1f})"

    def tprs(key: Key, budget: int, at: int) -> str:
        names = ("tpr_predicted", "tpr_corrected", "tpr_observed")
        return " / ".join(f"{found.mean(key, budget, lambda r, n=n: r[n][at]):.4f}" for n in names)

    lines = [
        "Coverage of 95% intervals of the advantage (the truth's own noise counted in) over all "
        "records and over the predicted top 1%; mean TPR at an FPR of 1% and 0.1%: predicted / the "
        "truth's / as observed, before the truth's own noise is taken off (by a bootstrap); each "
        "record's FPR at a nominal 1%, median and 10% to 90%, and LiRA's beside it; seconds of one "
        "core, on a busy machine.\n",
        "![Predicted and true TPR at 1% FPR](exposure_levels.png)\n",
        "| truth | models | covered | top 1% | TPR at 1% | at 0.1% | FPR at 1% | LiRA's FPR | s |",
        "|---" * 9 + "|",
    ]
    for key in found.keys:
        for budget in (4, 16):
            lines.append(
                f"| {found.label(key)} | {budget} | "
                f"{found.mean(key, budget, lambda r: r['cover']):.3f} | "
                f"{found.mean(key, budget, lambda r: r['cover_top']):.2f} | "
                f"{tprs(key, budget, 0)} | {tprs(key, budget, 1)} | {rates(key, budget, 'fpr')} | "
                f"{rates(key, budget, 'fpr_lira')} | "
                f"{found.mean(key, budget, lambda r: r['seconds']):.1f} |"
            )
    return lines


def _nulls(nulls: Sequence[Run]) -> list[str]:
    lines = ["| truth | models | runs | runs that name no record |", "|---|---|---|---|"]
    for name in sorted({run["truth"] for run in nulls}):
        claims = np.array([run["claims"] for run in nulls if run["truth"] == name])
        share = float(np.mean(claims == 0))
        lines.append(f"| {name.replace('_', ' ')} | 4 | {len(claims)} | {share:.0%} |")
    return lines


def pictures(found: Numbers, folder: Path) -> None:
    """Ranks by budget, one panel a truth; and predicted levels against true ones."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 6, figsize=(15, 7), sharex=True, layout="constrained")
    styles = (
        ("few models", (2, 4, 8, 16), "C0", "o"),
        ("LiRA, own variance", (4, 8, 16, 32, 64), "C1", "s"),
        ("LiRA, bayes variance", (4, 8, 16, 32, 64), "C3", "^"),
        ("ensemble loss", (2, 4, 8, 16, 32, 64), "C2", "."),
    )
    for key, panel in zip(found.keys, axes.flat, strict=False):
        for name, budgets, colour, marker in styles:
            shown = "BaVarIA-n" if "bayes" in name else name.split(",")[0]
            values = [found.rank(key, budget, name) for budget in budgets]
            panel.plot(budgets, values, color=colour, marker=marker, ms=4, label=shown)
        ceiling = found.mean(key, 64, lambda run: run["ceiling"])
        panel.axhline(ceiling, color="0.6", ls=":", lw=1)
        panel.set_title(found.label(key).replace("\\*", "*"), fontsize=9)
        panel.set_xscale("log", base=2)
        panel.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
        panel.set_ylim(min(0.0, panel.get_ylim()[0]), 1.0)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("models")
    figure.supylabel("rank correlation (dotted: ceiling)")
    figure.savefig(folder / "exposure_ranks.png", dpi=80)
    plt.close(figure)

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
    for panel, budget in zip(axes, (4, 16), strict=True):
        for key in found.keys:
            true = found.mean(key, budget, lambda r: r["tpr_corrected"][0])
            ours = found.mean(key, budget, lambda r: r["tpr_predicted"][0])
            theirs = found.mean(key, budget, lambda r: r["tpr_lira"][0])
            filled = "none" if found.chosen[key] else "C0"
            panel.plot(true, ours, "o", color="C0", markerfacecolor=filled)
            panel.plot(true, theirs, "s", color="C1", ms=4)
        ends = np.array([0.009, 0.9])
        panel.plot(ends, ends, color="0.5", lw=1)
        panel.fill_between(ends, 0.9 * ends, 1.1 * ends, color="0.5", alpha=0.2)
        panel.set(xscale="log", yscale="log", title=f"{budget} models", xlabel="true mean TPR")
    axes[0].set_ylabel("predicted mean TPR at 1% FPR")
    axes[0].plot([], [], "o", color="C0", label="few models (hollow: chosen on)")
    axes[0].plot([], [], "s", color="C1", ms=4, label="LiRA")
    axes[0].legend(fontsize=8)
    figure.savefig(folder / "exposure_levels.png", dpi=80)
    plt.close(figure)
