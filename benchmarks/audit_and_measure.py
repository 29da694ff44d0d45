"""What `audit` predicts of a logistic regression, and what `measure` finds in its own scores.

    python benchmarks/audit_and_measure.py heart_cleveland.csv

The last column is the target: above zero is ill.  Rows with a question mark are left out.  The
model is fitted on a random half of the records, its log-odds of every record's own label are
measured, members against the others, and the audit of the same estimator on all records says what
one threshold on such scores should achieve.  Twenty halves, because one has wide intervals.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import leakscope

HALVES = 20


def main(path: str) -> None:
    """Print both, and how many of the halves' intervals hold the predicted number."""
    text = Path(path).read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    table = np.array([row for row in rows if "?" not in row], dtype=np.float64)
    X, y = StandardScaler().fit_transform(table[:, :-1]), (table[:, -1] > 0.0).astype(int)
    audited = leakscope.audit(X, y, model=LogisticRegression(tol=1e-8).fit(X, y))
    predicted = audited.one_threshold
    print(audited.verdict)
    found = []
    for seed in range(HALVES):
        inside = np.random.default_rng(seed).random(len(y)) < 0.5
        model = LogisticRegression(tol=1e-8).fit(X[inside], y[inside])
        score = (2 * y - 1) * model.decision_function(X)
        found.append(leakscope.measure(score[inside], score[~inside], fpr=(0.1,), seed=seed))
    for name, expected in (
        ("auc", predicted["auc"]),
        ("advantage", predicted["advantage"]),
    ):
        values = np.array([getattr(one, name) for one in found])
        held = sum(one.intervals[name].low <= expected <= one.intervals[name].high for one in found)
        print(
            f"{name}: predicted {expected:.4f}; measured {values.mean():.4f} on average (standard "
            f"error {values.std(ddof=1) / HALVES**0.5:.4f}), {values.min():.3f} to "
            f"{values.max():.3f}; {held} of {HALVES} intervals hold the predicted number"
        )


if __name__ == "__main__":
    main(sys.argv[1])
