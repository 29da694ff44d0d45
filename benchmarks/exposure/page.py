"""The page of ``score.py``'s numbers, with its two pictures."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Line = dict[str, Any]

FEW, LIRA = "few models", "LiRA, own variance"
SHOWN = {LIRA: "LiRA", "LiRA, bayes variance": "BaVarIA-n", FEW: "few"}
GROUPS = {"new": "new", "seen": "seen before", "chosen": "chosen on"}

HEAD = """# A handful of models against hundreds

Made by `python benchmarks/exposure/score.py` with the estimator {version}, from {truths} truths of
200 to 400 models each (`benchmarks/exposure/networks.py` and `trees.py`; the two marked (given) are
older), at most 2,500 records of each. The first 64 models are the budgets', the others the truth.
Numbers are means over disjoint choices of models: two at 4, 8 and 16 models, one at 2 and 32; of
the peers four at up to 16 models, two at 32, one at 64. All were scored on one machine; a digest of
the code is kept with each number, and they agree.

Three groups of truths ([few_models.md](../few_models.md)):

- **new**: they had no part in any choice. The estimator of `5fe4fc2` was judged by them once; what
  changed since (counting, the level) was chosen on other, small tables;
- **seen before**: earlier forms of it were judged by them, so that what they showed was known;
- **chosen on**: its first form was chosen on these.
"""

# Predictors of the last table, with the budgets that are shown.
PEERS = (
    (LIRA, (8, 16, 32, 64)),
    ("LiRA, bayes variance", (4, 16, 32)),
    ("LiRA, shared variance", (4, 32)),
    ("LiRA, offline", (4, 16, 32)),
    ("RMIA", (4, 16, 32)),
    ("ensemble loss", (2, 4, 8, 16, 32)),
    ("LT-IQR", (2, 4, 16)),
    ("QMIA", (2, 4, 8)),
    ("loss of one model", (1,)),
    ("kernel, rbf", (0,)),
    ("kernel, linear", (0,)),
)


class Numbers:
    """The lines, averaged over the choices of models."""

    def __init__(self, lines: Sequence[Line], groups: dict[str, str]) -> None:
        order = list(GROUPS)
        self.nulls = [line for line in lines if line["kind"] == "null"]
        self.groups = groups
        self.truths = sorted(
            {line["truth"] for line in lines if line["kind"] != "null"},
            key=lambda name: (order.index(groups[name]), name),
        )
        self._levels: dict[tuple[str, int], list[Line]] = defaultdict(list)
        self._entries: dict[tuple[str, int, str], list[Line]] = defaultdict(list)
        for line in lines:
            self._levels[line["truth"], line["budget"]].append(line)
            for entry in line.get("entries", ()):
                self._entries[line["truth"], entry["budget"], entry["name"]].append(entry)

    def of(self, truth: str, budget: int, name: str, number: str) -> float:
        """Mean rank correlation, precision or seconds of a predictor; NaN where it has none."""
        found = self._entries.get((truth, budget, name), [])
        return float(np.mean([entry[number] for entry in found])) if found else float("nan")

    def rank(self, truth: str, budget: int, name: str = FEW) -> float:
        return self.of(truth, budget, name, "rank")

    def precision(self, truth: str, budget: int, name: str = FEW) -> float:
        return self.of(truth, budget, name, "precision")

    def level(self, truth: str, budget: int, number: str, at: int | None = None) -> float:
        found = [line[number] for line in self._levels[truth, budget] if number in line]
        return float(np.mean(found if at is None else [each[at] for each in found]))

    def tpr_ratio(self, truth: str, budget: int) -> float:
        predicted = self.level(truth, budget, "tpr_predicted", 0)
        return predicted / self.level(truth, budget, "tpr_corrected", 0)

    def label(self, truth: str) -> str:
        return truth.removeprefix("test_").replace("_", " ")

    def group(self, truth: str) -> str:
        return GROUPS[self.groups[truth]]

    def shown(self, name: str) -> str:
        return SHOWN.get(name, name)

    def in_group(self, group: str) -> list[str]:
        return [truth for truth in self.truths if self.groups[truth] == group]


def write_page(
    lines: Sequence[Line], groups: dict[str, str], path: Path, before: Sequence[Line] = ()
) -> None:
    """``before`` has the lines of an earlier estimator, which are set beside these."""
    found = Numbers(lines, groups)
    peers = [line for line in lines if line["kind"] not in ("ours", "null")]
    earlier = Numbers([*peers, *before], groups) if before else None
    parts = [HEAD.format(version=_version(), truths=len(found.truths))]
    parts += [
        "## What was asked\n",
        *_asked(found, earlier),
        "",
        "## Who ranks best\n",
        *_best(found),
    ]
    parts += ["", "## Ranks\n", *_ranks(found), "", "## Levels\n", *_levels(found)]
    parts += ["", "## Nulls\n", *_nulls(found, earlier), "", "## Peers\n", *_peers(found)]
    parts += ["", "## Cost\n", *_cost(found), "", "## Left out\n", LEFT_OUT]
    parts += ["", "## Again\n", AGAIN]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    from pictures import pictures

    pictures(found, path.parent)


LEFT_OUT = (
    "BASE is RMIA in other words (arXiv 2603.11799). The generalised leverage score (arXiv "
    "2602.15919) needs the last layer of a trained network and its exact definition, neither of "
    "which was at hand; the notes of the given truths have 0.00 for the plain leverage of the last "
    "layer on CIFAR-10. A dash stands where a truth has no material: traces of training were kept "
    "for the new networks only, and the records behind the given CIFAR-10 truth and the linear "
    "probes are not in the archive. Peers are our own code of their formulas, not their packages."
)


AGAIN = """```text
python benchmarks/exposure/datasets.py --data FOLDER --fashion FOLDER --to exposure_data.npz
python benchmarks/exposure/networks.py exposure_data.npz --out truths --models 320
python benchmarks/exposure/trees.py exposure_data.npz --out truths --models 264
python benchmarks/exposure/score.py truths --given FOLDER --data exposure_data.npz --processes 2
```

The truths of networks take 10 minutes on one H200, most of it for convolutional ones: seven of 34
(of convolutional networks, two on Fashion-MNIST and three on CIFAR-10, and two probes of pictures)
were not made again for this page. Those of trees and the scores take some 30 minutes of one core
each. `--before FILE` sets an earlier estimator's numbers (`score.py --only ours null --no-page
--numbers FILE` with its code) beside these. Each number is kept with a digest of the code that made
it: the last command goes on after a kill, and makes again only what a change of the code touched.
The new truths are those whose names begin with `test_`: rows of adult.test, the test pictures of
Fashion-MNIST, pictures of cars and planes that no earlier truth has, half of Location-30 and all
digits, with models that no earlier truth has (dropout, weight decay, augmentation, other depths).
"""


def _version() -> str:
    found = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", "src/leakscope/fitted"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"of `{found.stdout.strip()}`" if found.stdout.strip() else "of an unknown version"


Test = tuple[str, Callable[[str], bool]]


def _tests(found: Numbers) -> list[Test]:
    """The aims, each with what one truth must show."""
    tests: list[Test] = []
    for budget, theirs in ((4, 16), (4, 32), (8, 32), (16, 64)):
        for words, number in (("rank", found.rank), ("precision at 1%", found.precision)):
            tests.append(
                (
                    f"{words}: {budget} models at least LiRA's with {theirs}",
                    lambda t, b=budget, k=theirs, n=number: n(t, b) >= n(t, k, LIRA),  # type: ignore[misc]
                )
            )
    for words, number in (("rank", found.rank), ("precision at 1%", found.precision)):
        tests.append(
            (
                f"{words}: 4 models at least the ensemble loss's with 4",
                lambda t, n=number: n(t, 4) >= n(t, 4, "ensemble loss"),  # type: ignore[misc]
            )
        )
    for budget in (4, 16):
        tests += [
            (
                f"coverage 93 to 97%, {budget} models",
                lambda t, b=budget: 0.93 <= found.level(t, b, "cover") <= 0.97,
            ),
            (
                f"coverage of the top 1% at least 90%, {budget} models",
                lambda t, b=budget: found.level(t, b, "cover_top") >= 0.9,
            ),
            (
                f"mean TPR at 1% within 10% of the truth's, {budget} models",
                lambda t, b=budget: abs(found.tpr_ratio(t, b) - 1.0) <= 0.1,
            ),
            (
                f"median FPR between 0.8% and 1.25%, {budget} models",
                lambda t, b=budget: 0.008 <= found.level(t, b, "fpr", 1) <= 0.0125,
            ),
        ]
    return tests


def _on_trees(found: Numbers) -> str:
    """The aim for forests and boosting alone: with 8 models the ranks of LiRA with 64."""
    cells = []
    for group in GROUPS:
        kept = [t for t in found.in_group(group) if "forest" in t or "boosting" in t]
        met = sum(found.rank(t, 8) >= found.rank(t, 64, LIRA) for t in kept)
        cells.append(f"{met} of {len(kept)}")
    return f"| trees, rank: 8 models at least LiRA's with 64 | {' | '.join(cells)} | |"


def _asked(found: Numbers, earlier: Numbers | None) -> list[str]:
    """How often each aim is met, in each group, and on the mean where it is a difference.

    Where an earlier estimator had another count, that stands first.
    """
    had = _tests(earlier) if earlier else _tests(found)
    lines = [
        f"| aim, met on | {' | '.join(GROUPS.values())} | mean difference, new |",
        "|---" * (len(GROUPS) + 2) + "|",
    ]
    differences = [
        np.mean([number(t, b) - number(t, k, LIRA) for t in found.in_group("new")])
        if found.in_group("new")
        else np.nan
        for b, k in ((4, 16), (4, 32), (8, 32), (16, 64))
        for number in (found.rank, found.precision)
    ]
    for at, (words, test) in enumerate(_tests(found)):
        cells = []
        for group in GROUPS:
            truths = found.in_group(group)
            now, then = (sum(map(tried, truths)) for tried in (test, had[at][1]))
            cells.append(f"{f'{then} → ' * (then != now)}{now} of {len(truths)}")
        last = f"{differences[at]:+.2f}" if at < len(differences) else ""
        lines.append(f"| {words} | {' | '.join(cells)} | {last} |")
    overall = "Over all new truths, the mean coverage is " + _coverage(found)
    if earlier:
        overall += (
            f" That of the estimator of `5fe4fc2` on the same truths is {_coverage(earlier)} An "
            "arrow leads from what it had."
        )
    return [*lines, _on_trees(found), "", overall]


def _coverage(found: Numbers) -> str:
    return (
        f"{_over(found, 4, 'cover'):.1%} at 4 models and "
        f"{_over(found, 16, 'cover'):.1%} at 16, in the top 1% {_over(found, 4, 'cover_top'):.1%} "
        f"and {_over(found, 16, 'cover_top'):.1%}."
    )


def _over(found: Numbers, budget: int, number: str) -> float:
    truths = found.in_group("new") or found.truths
    return float(np.mean([found.level(truth, budget, number) for truth in truths]))


def _best(found: Numbers) -> list[str]:
    """The winner of each truth at each budget among all that can be scored there."""
    budgets = (2, 4, 8, 16, 32)
    names = [FEW, *(name for name, _ in PEERS if not name.startswith("kernel"))]
    new = found.in_group("new")
    ahead = {number: dict.fromkeys(budgets, 0) for number in ("rank", "precision")}
    rows = []
    for truth in found.truths:
        cells = []
        for budget in budgets:
            told = []
            for number, won in ahead.items():
                values = {name: found.of(truth, budget, name, number) for name in names}
                values = {name: value for name, value in values.items() if value == value}
                best = max(values, key=lambda name: (round(values[name], 2), name == FEW))
                won[budget] += best == FEW and truth in new
                theirs = "" if best == FEW else f"{SHOWN.get(best, best)} {values[best]:.2f}, "
                told.append(f"{theirs}ours {values[FEW]:.2f}")
            cells.append(f"{told[0]} ({told[1]})")
        rows.append(f"| {found.label(truth)} | {found.group(truth)} | {' | '.join(cells)} |")

    def counts(number: str) -> str:
        return ", ".join(str(count) for count in ahead[number].values())

    return [
        "The best predictor with so many models, its rank correlation and ours; in brackets the "
        "same for precision at 1%. Where a peer wins, it is named. To two digits ours is first, "
        f"or first with others, in ranks on {counts('rank')} of the {len(new)} new truths with 2, "
        f"4, 8, 16 and 32 models, and in precision on {counts('precision')}. The ensemble loss "
        "ranks about as well; it has no levels and no intervals.\n",
        "| truth | group | 2 models | 4 | 8 | 16 | 32 |",
        "|---" * 7 + "|",
        *rows,
    ]


def _table(found: Numbers, columns: Iterable[tuple[str, int]]) -> list[str]:
    columns = list(columns)
    heads = [SHOWN.get(n, n) + (f", {b}" if b else "") for n, b in columns]
    lines = [
        f"| truth | group | ceiling | {' | '.join(heads)} |",
        "|---" * (len(columns) + 3) + "|",
    ]
    for truth in found.truths:
        cells = []
        for name, budget in columns:
            rank = found.rank(truth, budget, name)
            both = f"{rank:.2f}, {found.precision(truth, budget, name):.2f}"
            cells.append(both if rank == rank else "–")
        ceiling = found.level(truth, 64, "ceiling")
        half = found.level(truth, 64, "precision_of_half")
        group = found.group(truth)
        told = f"| {found.label(truth)} | {group} | {ceiling:.2f}, {half:.2f} |"
        lines.append(f"{told} {' | '.join(cells)} |")
    return lines


def _ranks(found: Numbers) -> list[str]:
    columns = [(FEW, b) for b in (2, 4, 8, 16, 32)] + [(LIRA, b) for b in (16, 32, 64)]
    words = (
        "Rank correlation with the truth's (mean in − mean out)/sd, then the share of the truly "
        "top 1% among the predicted top 1%. The ceiling is the rank correlation that a perfect "
        "predictor would reach against so noisy a truth, and the share of one half of the truth's "
        "models in the top 1% of the other half.\n"
    )
    picture = "![Rank correlation by number of models](exposure_ranks.png)\n"
    return [words, picture, *_table(found, columns)]


def _peers(found: Numbers) -> list[str]:
    words = (
        "The same two numbers. With `LiRA, offline` the models with a record play the attacked "
        "one in turn; LT-IQR and QMIA are means over the models with the record; kernels see no "
        "model at all, only the records (noise variance a tenth of the prior's). QMIA attacks by "
        "its margin, which is large for records that are easy anyway: it was not made to rank.\n"
    )
    return [words, *_table(found, [(name, b) for name, budgets in PEERS for b in budgets])]


def _levels(found: Numbers) -> list[str]:
    def rates(truth: str, budget: int, name: str) -> str:
        low, middle, high = (100 * found.level(truth, budget, name, k) for k in range(3))
        return f"{middle:.2f}% ({low:.2f} to {high:.1f})"

    def tprs(truth: str, budget: int, at: int) -> str:
        names = ("tpr_predicted", "tpr_corrected", "tpr_observed")
        return " / ".join(f"{found.level(truth, budget, name, at):.4f}" for name in names)

    lines = [
        "Coverage of 95% intervals of the advantage (the truth's own noise counted in) over all "
        "records and over the predicted top 1%; mean TPR at an FPR of 1% and 0.1%: predicted / the "
        "truth's / as observed, before the truth's own noise is taken off (by a bootstrap); each "
        "record's FPR at a nominal 1%, median and 10% to 90%, and LiRA's beside it.\n",
        "![Predicted and true TPR at 1% FPR](exposure_levels.png)\n",
        "| truth | group | models | covered | top 1% | TPR at 1% | at 0.1% | FPR at 1% | LiRA's |",
        "|---" * 9 + "|",
    ]
    for truth in found.truths:
        for budget in (4, 16):
            cells = [found.label(truth), GROUPS[found.groups[truth]], str(budget)]
            cells.append(f"{found.level(truth, budget, 'cover'):.3f}")
            cells.append(f"{found.level(truth, budget, 'cover_top'):.2f}")
            cells += [tprs(truth, budget, 0), tprs(truth, budget, 1)]
            cells += [rates(truth, budget, "fpr"), rates(truth, budget, "fpr_lira")]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _nulls(found: Numbers, earlier: Numbers | None) -> list[str]:
    def silent(numbers: Numbers, name: str, budget: int) -> tuple[int, str]:
        claims = [
            line["claims"]
            for line in numbers.nulls
            if (line["truth"], line["budget"]) == (name, budget)
        ]
        return len(claims), f"{np.mean(np.equal(claims, 0)):.0%}" if claims else ""

    lines = ["| null | group | models | runs | runs that name no record |", "|---" * 5 + "|"]
    for name in sorted({line["truth"] for line in found.nulls}):
        for budget in sorted({line["budget"] for line in found.nulls}):
            runs, share = silent(found, name, budget)
            if runs:
                told = name.removeprefix("null_").removeprefix("test_").replace("_", " ")
                had = silent(earlier, name, budget)[1] if earlier else share
                share = share if had == share else f"{had} → {share}"
                group = GROUPS[found.groups[name]]
                lines.append(f"| {told} | {group} | {budget} | {runs} | {share} |")
    return lines


def _cost(found: Numbers) -> list[str]:
    lines = [
        "Seconds of one core for up to 2,500 records, the training of the models not counted; mean "
        "over the truths, beside other work.\n",
        "| predictor | 0 models | 2 | 4 | 8 | 16 | 32 | 64 |",
        "|---" * 8 + "|",
    ]
    for name in (FEW, *(name for name, _ in PEERS)):
        cells = []
        for budget in (0, 2, 4, 8, 16, 32, 64):
            seconds = [found.of(truth, budget, name, "seconds") for truth in found.truths]
            kept = [value for value in seconds if value == value]
            cells.append(f"{np.mean(kept):.2g}" if kept else "–")
        lines.append(f"| {SHOWN.get(name, name)} | {' | '.join(cells)} |")
    return lines
