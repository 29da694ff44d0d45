"""Three attackers of one model, as the laws have them and as counted with models fitted again.

    python benchmarks/attackers.py heart.csv --models 4000

``heart.csv`` is processed.cleveland.data of the UCI repository (no header; rows with a ? are left
out).  For the pool and the insider, models are fitted on random 0.5 and 0.95 of the records, and
for the outsider on fresh samples of a made population where the truth is known.  Counted: the
likelihood ratio of the laws, record by record, on answers of models with and without the record.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from leakscope import fitted, measures

C = 0.015


def model() -> LogisticRegression:
    """The model of the form."""
    return LogisticRegression(C=C, solver="newton-cholesky", tol=1e-9)


def own_log_odds(fit: Any, X: Any, y: Any) -> Any:
    """The score that the attacker sees."""
    return np.where(y == 1, 1.0, -1.0) * fit.decision_function(X)


FPRS = (0.01, 0.001)


def counted(laws: Any, member: Any, other: Any, row: int) -> list[float]:
    """The best advantage, fitted on one half; FPR and TPR at the thresholds of the laws."""

    def ratio(s: Any) -> Any:
        a = (s - laws.member_mean[row]) / laws.member_sd[row]
        b = (s - laws.nonmember_mean[row]) / laws.nonmember_sd[row]
        return 0.5 * (b * b - a * a) - np.log(laws.member_sd[row] / laws.nonmember_sd[row])

    drawn = np.random.default_rng(row).standard_normal(400_000)
    null = np.sort(ratio(laws.nonmember_mean[row] + laws.nonmember_sd[row] * drawn))
    member, other = ratio(member), ratio(other)
    grid = np.quantile(np.concatenate([member[::2], other[::2]]), np.linspace(0.0, 1.0, 200))
    gain = [(member[::2] > t).mean() - (other[::2] > t).mean() for t in grid]
    best = grid[int(np.argmax(gain))]
    found = [float((member[1::2] > best).mean() - (other[1::2] > best).mean())]
    for fpr in FPRS:
        threshold = null[int((1.0 - fpr) * len(null))]
        found += [float((other > threshold).mean()), float((member > threshold).mean())]
    return found


def report(name: str, laws: Any, rows: Any, found: Any) -> None:
    """One line: the largest by the laws, and of these records what is said and what was counted."""
    pair = laws.law_pair()
    advantage = measures.advantage(pair)
    tpr = [measures.tpr_at_fpr(pair, fpr) for fpr in FPRS]
    seen = np.mean(found, axis=0)
    cells = [f"{advantage.max():.3f}", f"{tpr[1].max():.4f}"]
    cells.append(f"{advantage[rows].mean():.3f} / {seen[0]:.3f}")
    for place, values in enumerate(tpr):
        fpr, rate = seen[1 + 2 * place], seen[2 + 2 * place]
        cells.append(f"{values[rows].mean():.4f} / {rate:.4f} at {100 * fpr:.2f}%")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


HEAD = (
    "| attacker | largest advantage | largest TPR at 0.1% | advantage, said / counted | TPR at 1% "
    "FPR, said / counted at FPR | TPR at 0.1% FPR, said / counted at FPR |\n"
    "|---|---|---|---|---|---|"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heart")
    parser.add_argument("--models", type=int, default=8000)
    asked = parser.parse_args()
    table = pd.read_csv(asked.heart, header=None, na_values="?").dropna().to_numpy(dtype=float)
    y = (table[:, -1] > 0).astype(int)
    X = StandardScaler().fit_transform(table[:, :-1])
    rng = np.random.default_rng(0)
    print(HEAD)
    for name, fraction in (("pool", 0.5), ("insider", 0.95), ("knows 99 of 100", 0.99)):
        laws = fitted.laws_of(model().fit(X, y), X, y, fraction=fraction)
        rows = np.argsort(-measures.tpr_at_fpr(laws.law_pair(), 0.001))[:20]
        inside = rng.random((asked.models, len(y))) < fraction
        # Two of the records that are looked at are tossed for, so that there are nonmembers.
        tossed = rng.integers(len(rows), size=(asked.models, 2))
        scores = np.empty((asked.models, len(rows)))
        for draw in range(asked.models):
            inside[draw, rows[tossed[draw]]] = rng.random(2) < 0.5
            fit = model().fit(X[inside[draw]], y[inside[draw]])
            scores[draw] = own_log_odds(fit, X[rows], y[rows])
        found = [
            counted(laws, scores[inside[:, row], k], scores[~inside[:, row], k], int(row))
            for k, row in enumerate(rows)
        ]
        report(name, laws, rows, found)
    # A population: normal features, labels of a logistic model; fresh others in every fit.
    beta = np.linspace(-0.6, 0.6, 13)

    def drawn(count: int) -> tuple[Any, Any]:
        features = rng.standard_normal((count, 13))
        return features, (rng.random(count) < special.expit(features @ beta)).astype(int)

    X, y = drawn(297)
    laws = fitted.laws_of(model().fit(X, y), X, y, question="population")
    rows = np.argsort(-measures.tpr_at_fpr(laws.law_pair(), 0.001))[:20]
    own = X[rows], y[rows]
    without, within = np.empty((asked.models, len(rows))), np.empty((asked.models, len(rows)))
    for draw in range(asked.models):
        features, labels = drawn(297)
        without[draw] = own_log_odds(model().fit(features, labels), *own)
        row = draw % len(rows)
        features[0], labels[0] = own[0][row], own[1][row]
        within[draw] = own_log_odds(model().fit(features, labels), *own)
    every = np.arange(asked.models) % len(rows)
    found = [
        counted(laws, within[every == k, k], without[:, k], int(row)) for k, row in enumerate(rows)
    ]
    report("outsider, of a made population", laws, rows, found)
    print(f"{asked.models} models each; means over the 20 records with the largest TPR at 0.1%")


if __name__ == "__main__":
    main()
