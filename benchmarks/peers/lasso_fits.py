"""The LASSO behind the private estimators, against celer, skglm and scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from environments import ask
from rows import Row, least

from leakscope.lasso.estimators import OutputPerturbedLasso
from leakscope.lasso.solver import kkt_violation, solve_lasso

RECORDS, FEATURES, LAM, REPEATS = 1000, 2000, 0.5, 3


def compare(folder: Path, threads: int) -> list[Row]:
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((RECORDS, FEATURES)) / np.sqrt(FEATURES))
    beta = rng.standard_normal(FEATURES) * (rng.random(FEATURES) < 0.1)
    y = X @ beta + 0.1 * rng.standard_normal(RECORDS)
    ours = OutputPerturbedLasso(LAM, 0.1, random_state=0)
    seconds, _ = least(lambda: ours.fit(X, y), REPEATS)
    coef = np.asarray(solve_lasso(X, y, LAM).coef)
    own = kkt_violation(X, y, LAM, coef) / LAM
    question = {"lam": LAM, "repeats": REPEATS}
    found = ask("lasso", "peer_lasso.py", question, {"X": X, "y": y}, folder, threads=threads)
    rows = []
    for name, answer in found.items():
        other = np.array(answer["coef"])
        off = float(np.max(np.abs(other - coef)))
        wrong = kkt_violation(X, y, LAM, other) / LAM
        rows.append(
            Row(
                f"one LASSO fit, n = {RECORDS}, p = {FEATURES}, lambda = {LAM}",
                name,
                answer["seconds"],
                seconds,
                f"coefficients differ by {off:.0e}; KKT violation {wrong:.0e}, ours {own:.0e}",
            )
        )
    return rows
