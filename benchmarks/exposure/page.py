"""The page of ``score.py``'s numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = dict[str, Any]
HEAD = """# A handful of models against hundreds

Made by `python benchmarks/exposure/score.py` from truths of 240 to 256 models each
(`benchmarks/exposure/networks.py` and `trees.py`). The first 64 models are the budgets', the others
are the truth; each number is a mean over up to four disjoint choices of models. The estimator
([few_models.md](../few_models.md)) was chosen on the truths marked \\* and mended on the two nulls;
the other truths were not used to choose it; only the normality of their scores was seen before.
"""


def write_page(numbers: dict[str, Any], path: Path) -> None:
    runs: list[Run] = numbers["runs"]
    truths = list(dict.fromkeys((run["chosen"], run["truth"]) for run in runs))

    def mean(key: tuple[bool, str], budget: int, number: Callable[[Run], float]) -> float:
        kept = [r for r in runs if (r["chosen"], r["truth"]) == key and r["budget"] == budget]
        return float(np.mean([number(run) for run in kept]))

    def both(key: tuple[bool, str], budget: int, name: str) -> str:
        rank = mean(key, budget, lambda run: run["rank"].get(name, np.nan))
        top = mean(key, budget, lambda run: run["precision"].get(name, np.nan))
        return f"{rank:.2f}, {top:.2f}"

    def label(key: tuple[bool, str]) -> str:
        return key[1].replace("_", " ") + (" \\*" if key[0] else "")

    lines = [HEAD, "## Ranks", ""]
    lines.append(
        "Rank correlation with the truth's (mean in − mean out)/sd, then the share of the truly "
        "top 1% among the predicted top 1%. The ceiling is what a perfect predictor would reach "
        "against so noisy a truth.\n"
    )
    columns = [("few models", b) for b in (2, 4, 8, 16)]
    columns += [("LiRA, own variance", b) for b in (16, 32, 64)]
    columns += [("LiRA, shared variance", 32), ("RMIA", 4), ("ensemble loss", 4)]
    lines.append("| truth | ceiling | " + " | ".join(f"{n}, {b}" for n, b in columns) + " |")
    lines.append("|---" * (len(columns) + 2) + "|")
    for key in truths:
        cells = [both(key, budget, name) for name, budget in columns]
        ceiling = mean(key, 64, lambda run: run["ceiling"])
        lines.append(f"| {label(key)} | {ceiling:.2f} | " + " | ".join(cells) + " |")

    lines += ["", "## Levels", ""]
    lines.append(
        "At 4 and at 16 models: coverage of 95% intervals of the advantage (the truth's own noise "
        "counted in) over all records and over the predicted top 1%; mean TPR at an FPR of 1% and "
        "0.1%, predicted / observed (the observed one reads high by the truth's own noise, 0.003 "
        "to 0.006 at 1%); each record's FPR at a nominal 1%, median and 10% to 90%, and LiRA's "
        "beside it; seconds of one core.\n"
    )
    lines.append(
        "| truth | models | covered | top 1% | TPR at 1% | at 0.1% | FPR at 1% | LiRA's FPR | s |"
    )
    lines.append("|---" * 9 + "|")

    def rates(key: tuple[bool, str], budget: int, name: str) -> str:
        low, middle, high = (mean(key, budget, lambda r, k=k: r[name][k]) for k in range(3))
        return f"{100 * middle:.2f}% ({100 * low:.2f} to {100 * high:.1f})"

    def tprs(key: tuple[bool, str], budget: int, at: int) -> str:
        predicted = mean(key, budget, lambda run: run["tpr_predicted"][at])
        return f"{predicted:.4f} / {mean(key, budget, lambda run: run['tpr_observed'][at]):.4f}"

    for key in truths:
        for budget in (4, 16):
            lines.append(
                f"| {label(key)} | {budget} | {mean(key, budget, lambda r: r['cover']):.3f} | "
                f"{mean(key, budget, lambda r: r['cover_top']):.2f} | {tprs(key, budget, 0)} | "
                f"{tprs(key, budget, 1)} | {rates(key, budget, 'fpr')} | "
                f"{rates(key, budget, 'fpr_lira')} | "
                f"{mean(key, budget, lambda r: r['seconds']):.0f} |"
            )
    lines += ["", "## Nulls", "", "| truth | models | runs | runs that name no record |"]
    lines.append("|---|---|---|---|")
    for name in sorted({run["truth"] for run in numbers["nulls"]}):
        for budget in (4, 16):
            claims = [
                run["claims"]
                for run in numbers["nulls"]
                if run["truth"] == name and run["budget"] == budget
            ]
            if claims:
                share = np.mean(np.array(claims) == 0)
                lines.append(
                    f"| {name.replace('_', ' ')} | {budget} | {len(claims)} | {share:.0%} |"
                )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
