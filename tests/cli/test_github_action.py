"""The workflow in docs/howto/elsewhere.md: its commands run, pass and fail as it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from leakscope.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "elsewhere.md"


def steps() -> list[str]:
    yaml = pytest.importorskip("yaml")
    block = PAGE.read_text(encoding="utf-8").split("```yaml leakage.yml\n")[1].split("```")[0]
    workflow = yaml.safe_load(block)
    assert workflow["permissions"] == {"contents": "read"}
    told = [step.get("run", "") for step in workflow["jobs"]["audit"]["steps"]]
    return [command for command in told if command.startswith("leakscope ")]


@pytest.mark.parametrize(("records", "status"), [(400, 0), (12, 3)])
def test_the_gate_passes_and_fails(tmp_path, monkeypatch, records, status):
    """Of twelve records one is confirmed above the limit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(records, 2))
    y = (X[:, 0] + 2.0 * rng.normal(size=records) > 0).astype(int)
    rows = "".join(f"{a:.4f},{b:.4f},{c}\n" for (a, b), c in zip(X, y, strict=True))
    (tmp_path / "train.csv").write_text(f"a,b,y\n{rows}")
    monkeypatch.chdir(tmp_path)
    audit, report = steps()
    assert main(shlex.split(audit)[1:]) == status
    assert main(shlex.split(report)[1:]) == 0
    assert "Redacted" in (tmp_path / "report.html").read_text()
