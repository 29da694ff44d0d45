"""Runs for the tests of the report, written as ``leakscope audit`` writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from leakscope.cli import main

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<!--<script>",
    '"><img src=x onerror=window.hacked=2>',
    "{{ 7*7 }}",
    "${alert(1)}",
    "a\u2028b",
    "\u202eevil",
    "&lt;b&gt;",
    "'; window.hacked=3; '",
    "=cmd|' /C calc'!A0",
    "unbroken" * 14,
)

# As they are shown: a sign that turns the writing round is not.
SHOWN = tuple(name.replace("\u202e", "\ufffd") for name in HOSTILE)


def write_csv(folder: Path, records: int = 40) -> Path:
    """A table with hostile ids and column names, quoted as CSV asks."""
    rng = np.random.default_rng(0)
    lines = ['who,"<img src=x onerror=window.hacked=4>",b,"y</script>"']
    for i, (a, b) in enumerate(rng.normal(size=(records, 2))):
        name = HOSTILE[i] if i < len(HOSTILE) else f"person {i}"
        quoted = name.replace('"', '""')
        # The first are made outliers, so that they come first.
        y = (100.0 - i) if i < len(HOSTILE) else a - b
        lines.append(f'"{quoted}",{a},{b},{y}')
    path = folder / "<b>hostile.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def hostile_run(folder: Path, noise: str = "0.1") -> Path:
    data = write_csv(folder)
    run = folder / "run"
    command = [
        "audit",
        str(data),
        "--target",
        "y</script>",
        "--id",
        "who",
        "--model",
        "rbf",
        "--set",
        f"noise_variance={noise}",
        "--run-dir",
        str(run),
    ]
    assert main(command) == 0
    return run


def example_run(folder: Path, example: str) -> Path:
    run = folder / example
    assert (
        main(["audit", "--example", example, "--model", "rbf", "--run-dir", str(run), "--top", "0"])
        == 0
    )
    return run
