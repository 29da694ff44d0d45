"""Runs of one small model, as the command line writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope.cli import main


def write_table(path: Path, records: int = 80, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records, 3))
    y = np.where(X[:, 0] + rng.normal(size=records) > 0, "ill", "well")
    lines = [f"p{i},{','.join(map(str, X[i].tolist()))},{y[i]}" for i in range(records)]
    path.write_text("who,a,b,c,y\n" + "\n".join(lines) + "\n")
    return path


def audit_run(table: Path, run: Path, *more: str) -> Path:
    common = ["--target", "y", "--id", "who", "--task", "classification", "--model", "logistic"]
    options = more or ("--set", "C=0.1")
    assert main(["audit", str(table), *common, *options, "--run-dir", str(run)]) == 0
    return run


@pytest.fixture(scope="session")
def filed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with table.csv, its audit in ``run`` and the verification beside it."""
    folder = tmp_path_factory.mktemp("decide")
    audit_run(write_table(folder / "table.csv"), folder / "run")
    verify = ["verify", str(folder / "run"), "--models", "100", "--records", "4"]
    assert main([*verify, "--json", str(folder / "run" / "verify.json")]) in (0, 3)
    return folder
