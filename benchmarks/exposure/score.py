"""All predictors on all truths, and the page, by one command.

``python benchmarks/exposure/score.py truths --data exposure_data.npz --processes 2``

``truths`` is one folder or several with what ``networks.py`` and ``trees.py`` wrote; ``--given
FOLDER`` holds the two older ones (cifar_resnet.npz, location_mlp.npz).  ``--data`` names the
archives of ``datasets.py``, for predictors that look at the records.  Every number is kept with a
digest of the code that made it: the same command goes on after a kill, and scores again what the
code has changed.  Writes ``docs/benchmarks/exposure.md`` with its pictures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from levels import FPRS, levels
from predictors import (
    components,
    kernel_leakage,
    lira_levels,
    log_odds_predictors,
    quantile_margins,
    records_of,
    trace_range,
)
from scipy.stats import rankdata
from truth_files import distance, laws, read_truth

import leakscope
from leakscope.fitted import few_models

FEW = "few models"
# The first models of a truth are for the budgets, the others are the truth.
KEPT_FOR_BUDGETS = 64
# For each budget, the first models of the choices that are scored: disjoint ones.
STARTS = {
    **dict.fromkeys((1, 2, 4, 8, 16), (0, 16, 32, 48)),
    32: (0, 32),
    64: (0,),
}
OURS = {2: (0,), 4: (0, 32), 8: (0, 32), 16: (0, 32), 32: (0,)}
LEVELS_AT = (4, 16)
NULLS = {4: range(0, 160, 4), 16: range(160, 320, 16)}

# What chose the estimator: the two given truths, and one of each pair of trainings.
CHOSEN = (
    "adult_mlp_long",
    "adult_forest_leaf5",
    "adult_boosting_short",
    "cifar_probe_short",
    "cifar_resnet_long",
    "digits_mlp_long",
    "fashion_cnn_short",
    "location_mlp_short",
)
# Truths of before the files named their data; the pictures behind the given one are not kept.
OLDER = {"adult": "adult", "digits": "digits", "location": "location", "fashion": "fashion"}
OLDER_RESNETS = ("cifar_resnet_short", "cifar_resnet_long")

OUR_FILES = ("estimate", "population", "counting")


def group(name: str) -> str:
    """Whether a truth chose the estimator, was seen by an earlier form of it, or is new."""
    if name.startswith(("test_", "null_test")):
        return "new"
    return "chosen" if name in CHOSEN or name.endswith("(given)") else "seen"


@lru_cache(maxsize=1)
def digests() -> dict[str, str]:
    """Of the code behind each kind of number."""
    here, package = Path(__file__).parent, Path(leakscope.__file__).parent
    attackers = package / "attacking" / "score_attacks.py"
    ours = [package / "halves" / f"{name}.py" for name in OUR_FILES]
    files = {
        "peers": [here / "predictors.py", here / "truth_files.py", attackers],
        "records": [here / "predictors.py", here / "truth_files.py"],
        "ours": [here / "levels.py", here / "truth_files.py", *ours],
        "null": ours,
    }
    return {
        kind: hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
        for kind, paths in files.items()
    }


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def precision(predicted: np.ndarray, true: np.ndarray) -> float:
    count = max(1, len(true) // 100)
    top = set(np.argsort(-predicted, kind="stable")[:count])
    return len(top & set(np.argsort(-true, kind="stable")[:count])) / count


@dataclass(frozen=True)
class Task:
    """One file, one budget and one choice of models, for ours or for all peers."""

    kind: str
    path: Path
    name: str
    budget: int
    start: int
    archives: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name} {self.budget} {self.start} {digests()[self.kind]}"


def scored(task: Task) -> dict[str, Any]:
    """Everything about one task."""
    began = time.process_time()
    found = {"peers": _peers, "records": _records, "ours": _ours, "null": _null}[task.kind](task)
    return {
        "kind": task.kind,
        "truth": task.name,
        "budget": task.budget,
        "start": task.start,
        **found,
        "all_seconds": time.process_time() - began,
    }


def _models(task: Task) -> tuple[np.ndarray, ...]:
    truth = read_truth(task.path)
    rows, far = slice(task.start, task.start + task.budget), slice(KEPT_FOR_BUDGETS, None)
    scores, mask = truth.log_odds, truth.trained_on
    return scores[rows], mask[rows], scores[far], mask[far]


def _true(far: np.ndarray, far_mask: np.ndarray) -> np.ndarray:
    u, s, _, m, r, _ = laws(far, far_mask)
    return distance(u, s, m, r)


class Entries:
    """The two numbers of each predictor against the truth, and the seconds that it took."""

    def __init__(self, true: np.ndarray) -> None:
        self.true, self.found = true, []
        self.began = time.process_time()

    def add(self, name: str, budget: int, predicted: np.ndarray) -> None:
        entry = {"name": name, "budget": budget, "seconds": time.process_time() - self.began}
        entry["rank"] = rank_correlation(predicted, self.true)
        entry["precision"] = precision(predicted, self.true)
        self.found.append(entry)
        self.began = time.process_time()


def _peers(task: Task) -> dict[str, Any]:
    few, few_mask, far, far_mask = _models(task)
    entries = Entries(_true(far, far_mask))
    for name, predicted in log_odds_predictors(few, few_mask):
        entries.add(name, task.budget, predicted)
    if task.budget > 1:
        traced = trace_range(read_truth(task.path), slice(task.start, task.start + task.budget))
        if traced is not None:
            entries.add("LT-IQR", task.budget, traced)
    found: dict[str, Any] = {"entries": entries.found}
    if task.budget >= 4:
        u, s = laws(far, far_mask)[:2]
        found |= lira_levels(few, few_mask, u, s, FPRS)
    if task.budget == 64:
        half = len(far) // 4 * 2
        first = _true(far[:half], far_mask[:half])
        second = _true(far[half:], far_mask[half:])
        agreement = rank_correlation(first, second)
        found["ceiling"] = float(np.sqrt(max(2 * agreement / (1 + agreement), 0.0)))
        found["precision_of_half"] = precision(first, second)
        found["truth_models"], found["records"] = far.shape
    return found


def _records(task: Task) -> dict[str, Any]:
    """What looks at the records: with no model, and with each number of models."""
    truth = read_truth(task.path)
    older = "cifar" if task.name in OLDER_RESNETS else OLDER.get(task.name.partition("_")[0])
    data = truth.data or older
    records = records_of(truth, data, task.archives)
    if records is None:
        return {"entries": []}
    entries = Entries(_true(*_models(task)[2:]))
    for name, predicted, seconds in kernel_leakage(records):
        entries.add(name, 0, predicted)
        entries.found[-1]["seconds"] = seconds
    seen, margins = components(records), np.empty((0, len(records.y)))
    for budget in (2, 4, 8):
        more = [quantile_margins(truth, seen, model) for model in range(len(margins), budget)]
        margins, mask = np.vstack([margins, *more]), truth.trained_on[:budget]
        entries.add("QMIA", budget, np.where(mask, margins, 0.0).sum(0) / mask.sum(0))
    return {"entries": entries.found}


def _ours(task: Task) -> dict[str, Any]:
    few, few_mask, far, far_mask = _models(task)
    entries = Entries(_true(far, far_mask))
    answer = few_models(few, few_mask, fpr=FPRS)
    entries.add(FEW, task.budget, answer.advantage.value)
    found: dict[str, Any] = {"entries": entries.found, "claims": int(answer.exposed.sum())}
    if task.budget in LEVELS_AT:
        found |= levels(answer, far, far_mask)
    return found


def _null(task: Task) -> dict[str, Any]:
    truth = read_truth(task.path)
    rows = slice(task.start, task.start + task.budget)
    answer = few_models(truth.log_odds[rows], truth.trained_on[rows])
    return {"claims": int(answer.exposed.sum())}


def tasks_of(files: dict[str, Path], kinds: list[str], archives: tuple[Path, ...]) -> list[Task]:
    """Those of one truth together, as each process keeps the last one it has read."""
    found = []
    for name, path in files.items():
        if name.startswith("null"):
            models = len(read_truth(path).log_odds)
            found += [
                Task("null", path, name, budget, start)
                for budget, starts in NULLS.items()
                for start in starts
                if start + budget <= models and "null" in kinds
            ]
            continue
        for kind, budgets in (("records", {0: (0,)}), ("peers", STARTS), ("ours", OURS)):
            if kind in kinds:
                found += [
                    Task(kind, path, name, budget, start, archives)
                    for budget, starts in budgets.items()
                    for start in starts
                ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truths", type=Path, nargs="+")
    parser.add_argument("--given", type=Path)
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["records", "peers", "ours", "null"])
    parser.add_argument("--groups", nargs="*", default=["chosen", "seen", "new"])
    parser.add_argument("--numbers", type=Path, default=Path("exposure.jsonl"))
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/exposure.md"))
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--before", type=Path, help="--numbers of an earlier estimator")
    given = parser.parse_args()
    files = {path.stem: path for folder in given.truths for path in sorted(folder.glob("*.npz"))}
    if given.given is not None:
        older = sorted(given.given.glob("*.npz"))
        files |= {f"{path.stem} (given)": path for path in older}
    files = {name: path for name, path in files.items() if group(name) in given.groups}
    tasks = tasks_of(files, given.only, tuple(given.data))
    lines = given.numbers.read_text().splitlines() if given.numbers.exists() else []
    done = {line["key"]: line for line in map(json.loads, lines)}
    left = [task for task in tasks if task.key not in done]
    print(f"{len(tasks)} numbers, {len(left)} to make", flush=True)
    start = time.perf_counter()
    with given.numbers.open("a") as stream, ProcessPoolExecutor(given.processes) as pool:
        jobs = {pool.submit(scored, task): task for task in left}
        for job in as_completed(jobs):
            found = {"key": jobs[job].key, **job.result()}
            stream.write(json.dumps(found) + "\n")
            stream.flush()
            done[found["key"]] = found
    if left:
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
    if not given.no_page:
        from page import write_page

        earlier = given.before.read_text().splitlines() if given.before else []
        write_page(
            [done[task.key] for task in tasks],
            {name: group(name) for name in files},
            given.page,
            [line for line in map(json.loads, earlier) if line["truth"] in files],
        )


if __name__ == "__main__":
    main()
