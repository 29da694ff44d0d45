"""Measures of Gaussian pairs: leakscope, riskcal (closed form and by losses), dp-accounting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from environments import ask
from rows import Row, least

from leakscope import measures
from leakscope.laws import LawPair, Normal

PAIRS, DELTA = 40, 1e-5
RATES = np.array([0.1, 0.01, 1e-3, 1e-5])


def compare(folder: Path, threads: int) -> list[Row]:
    distances = np.geomspace(0.1, 5.0, PAIRS)
    pair = LawPair(Normal(distances, 1.0), Normal(np.zeros(PAIRS), 1.0))

    def both() -> tuple[np.ndarray, np.ndarray]:
        return measures.advantage(pair), measures.tpr_at_fpr(pair, RATES)

    seconds, (advantage, tpr) = least(both, 5)
    epsilon_seconds, epsilon = least(lambda: measures.epsilon_at_delta(pair, DELTA), 5)
    arrays = {"distances": distances, "rates": RATES}
    found = ask("riskcal", "peer_riskcal.py", {"delta": DELTA}, arrays, folder, threads=threads)
    tpr = tpr if tpr.shape == (PAIRS, len(RATES)) else tpr.T
    question = f"advantage and TPR at 4 FPRs of {PAIRS} Gaussian pairs"

    def row(peer: str, key: str, seconds_key: str) -> Row:
        off = max(
            float(np.max(np.abs(np.array(found[key]["advantage"]) - advantage))),
            float(np.max(np.abs(np.array(found[key]["tpr"]) - tpr))),
        )
        return Row(question, peer, found[seconds_key], seconds, f"largest difference {off:.1e}")

    off = float(np.max(np.abs(np.array(found["epsilon"]) / epsilon - 1.0)))
    return [
        row("riskcal 1.5.1, closed form for Gaussians", "closed", "closed seconds"),
        row("riskcal 1.5.1, by privacy losses", "direct", "direct seconds"),
        Row(
            f"epsilon at delta {DELTA:g} of {PAIRS} Gaussian pairs",
            "dp-accounting",
            found["accounting seconds"],
            epsilon_seconds,
            f"largest relative difference {off:.1e}",
        ),
    ]
