"""A row of the table: one question, a peer's time and ours in the same run, and the agreement."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """``agreement`` says how far the answers are apart, or how good each is."""

    question: str
    peer: str
    peer_seconds: float
    seconds: float
    agreement: str

    @property
    def ratio(self) -> float:
        return self.peer_seconds / self.seconds


def least(action: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least time of a few runs, and what the last one gave."""
    best, found = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        found = action()
        best = min(best, time.perf_counter() - start)
    return best, found


def table(rows: list[Row]) -> str:
    lines = [
        "| question | peer | peer, s | leakscope, s | peer / leakscope | answers |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = f"{row.ratio:.3g}" + (" (the peer wins)" if row.ratio < 1.0 else "")
        lines.append(
            f"| {row.question} | {row.peer} | {row.peer_seconds:.3g} | {row.seconds:.3g} | "
            f"{ratio} | {row.agreement} |"
        )
    return "\n".join(lines)
