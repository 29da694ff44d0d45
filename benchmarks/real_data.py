"""Audits of real data: time, memory, verdict, and whether planted records are found.

    python benchmarks/real_data.py [--fashion DIR] [--size 10000]

DIR holds Fashion-MNIST's four .gz files (Debian: dataset-fashion-mnist, /usr/share/datasets).  The
audits run as a user runs them, `leakscope audit` in a process of its own; the peak memory is the
process's.  Then records are planted: an outlier (six standard deviations off in every feature; a
picture turned to its negative and shuffled), a flipped label (four standard deviations to the other
side for regression), and an outlier twice.  Counted: how many stand in the top 1% by KL, and how
many by the disagreement of their label.  Two settings of the noise: the default, and the one that
the data choose by marginal likelihood.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from leakscope import audit
from leakscope.data import Dataset, read_dataset, read_example
from leakscope.settings import AuditSettings

EXAMPLES = ("breast_cancer", "diabetes", "digits")
PLANTED = 20


def fashion(folder: Path, size: int) -> dict[str, np.ndarray]:
    """The first records of the training set, as X (n, 28, 28) and y."""
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as stream:
        X = np.frombuffer(stream.read(), dtype=np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as stream:
        y = np.frombuffer(stream.read(), dtype=np.uint8, offset=8)
    return {"X": X[:size], "y": y[:size].astype(np.int64)}


def as_a_user(arguments: list[str]) -> tuple[float, float, str]:
    """Seconds, peak memory in MB and the verdict of `leakscope audit` in its own process."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "leakscope", "audit", *arguments]
        command += ["--run-dir", str(Path(place, "run"))]
        start = time.perf_counter()
        output = Path(place, "output.txt")
        with output.open("w") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream)
            # wait4 tells this process's own peak; RUSAGE_CHILDREN has the largest of all so far.
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        text = output.read_text()
    if process.returncode:
        raise RuntimeError(text)
    peak = used.ru_maxrss / 1e3
    words = " ".join(text.split())
    start_of_verdict = max(words.find("not examined.") + len("not examined. "), 0)
    return seconds, peak, words[start_of_verdict : start_of_verdict + 200]


def plant(data: Dataset, rows: np.ndarray, kind: str) -> tuple[Dataset, list[tuple[int, ...]]]:
    """The dataset with planted records, and which rows belong together."""
    X, y = np.array(data.features, dtype=float), data.target.copy()
    rng = np.random.default_rng(int(rows[0]))
    pictures = X.shape[1] in (64, 784)
    groups: list[tuple[int, ...]] = []
    extra_X, extra_y = [], []
    for row in rows.tolist():
        if kind == "flipped label":
            y[row] = flipped(data, row, rng)
            groups.append((row,))
            continue
        if pictures:
            X[row] = rng.permutation(X.max() - X[row])
        else:
            X[row] += rng.choice([-6.0, 6.0], size=X.shape[1]) * data.features.std(axis=0)
        if kind == "outlier twice":
            extra_X.append(X[row])
            extra_y.append(y[row])
            groups.append((row, len(X) + len(extra_X) - 1))
        else:
            groups.append((row,))
    if extra_X:
        X, y = np.vstack([X, extra_X]), np.append(y, extra_y)
    changed = replace(data, features=X, target=y, record_ids=tuple(range(len(X))), source=None)
    return changed, groups


def flipped(data: Dataset, row: int, rng: np.random.Generator) -> float:
    if data.task == "classification":
        others = [value for value in np.unique(data.target).tolist() if value != data.target[row]]
        return rng.choice(others)
    centre, scale = data.target.mean(), data.target.std()
    side = np.sign(data.target[row] - centre) or 1.0
    return float(data.target[row] - 4.0 * scale * side)


def found(data: Dataset, kind: str, noise: float | str, at_once: int) -> tuple[int, int, int]:
    """Of the planted: how many in the top 1% by KL, by disagreement, and how many there were."""
    settings = AuditSettings(sensitivity=False, explain=0, noise_variance=noise)
    rows = np.random.default_rng(5).permutation(len(data.features))[:PLANTED]
    by_kl = by_label = total = 0
    for start in range(0, PLANTED, at_once):
        changed, groups = plant(data, rows[start : start + at_once], kind)
        result = audit(changed, settings=settings)
        top = int(np.ceil(len(changed.features) / 100))
        frame = result.to_frame()
        kl = set(frame["record_id"].head(top))
        label = set(frame.sort_values("disagreement", ascending=False)["record_id"].head(top))
        by_kl += sum(any(row in kl for row in group) for group in groups)
        by_label += sum(any(row in label for row in group) for group in groups)
        total += len(groups)
    return by_kl, by_label, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fashion", type=Path, help="the folder with Fashion-MNIST")
    parser.add_argument("--size", type=int, default=10_000, help="records of Fashion-MNIST")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| data | records | features | s | peak MB | verdict |\n|---|---|---|---|---|---|")
    datasets = {name: read_example(name) for name in EXAMPLES}
    arguments = {name: ["--example", name] for name in EXAMPLES}
    with tempfile.TemporaryDirectory() as place:
        if options.fashion is not None:
            whole = Path(place, "fashion_mnist.npz")
            np.savez(whole, **fashion(options.fashion, options.size))
            arguments["fashion_mnist"] = [str(whole), "--task", "classification"]
            few = Path(place, "fashion_mnist_2000.npz")
            np.savez(few, **fashion(options.fashion, 2000))
            datasets["fashion_mnist (2000)"] = read_dataset(few, task="classification")
        for name, given in arguments.items():
            seconds, peak, verdict = as_a_user(given)
            data = datasets.get(name)
            shape = f"{len(data.features)} | {data.features.shape[1]}" if data else (
                f"{options.size} | 784"
            )  # fmt: skip
            print(f"| {name} | {shape} | {seconds:.1f} | {peak:.0f} | {verdict} |", flush=True)
    print("\n| data | noise | planted | top 1% by KL | top 1% by disagreement | of |")
    print("|---|---|---|---|---|---|")
    for name, data in datasets.items():
        at_once = 5 if len(data.features) > 1000 else 1
        for noise in (0.01, "marginal_likelihood"):
            for kind in ("outlier", "flipped label", "outlier twice"):
                kl, label, total = found(data, kind, noise, at_once)
                print(f"| {name} | {noise} | {kind} | {kl} | {label} | {total} |", flush=True)


if __name__ == "__main__":
    main()
