"""The largest relative error of every measure against the stored values at 50 digits.

python benchmarks/accuracy_against_mpmath.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "measures"))

from test_against_mpmath import BOUND, SCALARS, Stored

from leakscope import measures

KINDS = list(BOUND)


def main() -> None:
    stored = {kind: Stored(kind) for kind in KINDS}
    print("| measure | " + " | ".join(KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    counts = " | ".join(str(len(stored[kind].pairs)) for kind in KINDS)
    print(f"| pairs | {counts} |")
    for name, measure in SCALARS.items():
        row(name, [stored[kind].worst(measure, name)[0] for kind in KINDS])
    for order in ("0.5", "2", "8"):
        row(f"renyi {order}", [_renyi(stored[kind], order) for kind in KINDS])
    for fpr in stored["normal"].pairs[0]["tpr_at_fpr"]:
        row(f"tpr at fpr {fpr}", [_tpr(stored[kind], fpr) for kind in KINDS])
    for direction in ("member_to_nonmember", "nonmember_to_member"):
        row(f"epsilon at 1e-5, {direction}", [_epsilon(stored[k], direction) for k in KINDS])


def row(name: str, errors: list[float | None]) -> None:
    cells = " | ".join("–" if e is None else f"{e:.0e}" for e in errors)
    print(f"| {name} | {cells} |", flush=True)


def _renyi(stored: Stored, order: str) -> float:
    def measure(pair):
        return measures.renyi(pair, float(order), "member_to_nonmember")

    return stored.worst(measure, "renyi", order)[0]


def _tpr(stored: Stored, fpr: str) -> float | None:
    if fpr not in stored.pairs[0]["tpr_at_fpr"]:
        return None
    return stored.worst(lambda p: measures.tpr_at_fpr(p, float(fpr)), "tpr_at_fpr", fpr)[0]


def _epsilon(stored: Stored, direction: str) -> float:
    def measure(pair):
        return measures.epsilon_at_delta(pair, 1e-5, direction)

    return stored.worst(measure, "epsilon_at_delta", "1e-05", direction)[0]


if __name__ == "__main__":
    main()
