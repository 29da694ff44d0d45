"""Stdout holds the answer alone, outputs stay where they were asked for, nothing is half done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import main

NOISY = """
import ctypes, os
from sklearn.linear_model import Ridge
def fit(X, y, seed):
    os.write(1, b"from the descriptor\\n")
    ctypes.CDLL(None).puts(b"from C")
    ctypes.CDLL(None).fflush(None)
    print("from Python")
    os.chdir("/")
    return Ridge().fit(X, y)
"""
MEASURE = ["measure", "--member", "normal:1,1", "--nonmember", "normal:0,1"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=X @ [1.0, 2.0] + rng.normal(size=24))
    frame.to_csv("d.csv", index=False)
    frame.to_parquet("d.parquet")
    (tmp_path / "noisy.py").write_text(NOISY)
    return tmp_path


def leakscope(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leakscope", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload,no-any-return]


def test_stdout_holds_json_alone_and_outputs_stay_where_they_were_asked_for(table: Path) -> None:
    line = ["audit", "d.csv", "--target", "y", "--train", "noisy:fit", "--models", "2"]
    found = leakscope(*line, "--json", "-", "--run-dir", "run", cwd=table)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["kind"] == "audit_model"
    for words in ("from the descriptor", "from C", "from Python"):
        assert words in found.stderr
    assert (table / "run" / "result.json").is_file()
    again = leakscope(*line[:-1], "4", "--json", "a.json", "--run-dir", "two", cwd=table)
    assert again.returncode == 0, again.stderr
    assert (table / "a.json").is_file()
    assert again.stdout.startswith("Examined")
    assert again.stdout.endswith("Run directory: two\n")


def test_a_closed_stdout_is_told(table: Path) -> None:
    command = f"{sys.executable} -m leakscope {' '.join(MEASURE)} --json - >&-"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr == "leakscope: stdout is closed, and --json - writes there; name a file.\n"
    command = command.replace("--json -", "--json answer.json")
    assert subprocess.run(["bash", "-c", command], cwd=table).returncode == 0
    assert (table / "answer.json").is_file()


def test_signs_that_stdout_lacks_are_written_out(table: Path) -> None:
    rows = "näme,a,y\n" + "".join(f"Zoë{i},{i % 7},{i % 5}\n" for i in range(24))
    (table / "é.csv").write_text(rows, encoding="utf-8")
    line = ["audit", "é.csv", "--target", "y", "--id", "näme", "--model", "ridge", "--alpha", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    found = leakscope(*line, "--run-dir", "one", cwd=table, env=environment)
    assert found.returncode == 0, found.stderr
    assert "Zo\\xeb" in found.stdout
    found = leakscope(*line, "--run-dir", "two", "--json", "-", cwd=table, env=environment)
    assert found.returncode == 0, found.stderr
    assert "Zoë" in json.dumps(json.loads(found.stdout), ensure_ascii=False)


def test_the_loser_of_two_audits_leaves_nothing(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another audit takes the run directory after it was found to be free."""
    from leakscope.results import audit as results_audit

    write = results_audit.Audit.write

    def beaten(self: object, place: Path, **more: object) -> Path:
        place.mkdir()
        (place / "result.json").write_text("the winner's")
        return write(self, place, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(results_audit.Audit, "write", beaten)
    line = ["audit", "d.csv", "--target", "y", "--model", "ridge", "--alpha", "1"]
    assert main([*line, "--run-dir", "run", "--json", "answer.json"]) == 2
    assert "run is already there" in capsys.readouterr().err
    assert not (table / "answer.json").exists()
    assert [one.name for one in table.iterdir() if one.name.startswith(".")] == []


def test_a_stream_that_is_refused_leaves_no_directory(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_parquet("d.parquet")
    frame.loc[20, "a"] = None
    frame.to_parquet("nulls.parquet", row_group_size=5)
    line = ["audit", "nulls.parquet", "--target", "y", "--model", "ridge", "--stream"]
    assert main([*line, "--run-dir", "run", "--json", "a.json"]) == 2
    assert "missing" in capsys.readouterr().err
    assert not (table / "run").exists()
    (table / "run").mkdir()
    assert main([*line, "--run-dir", "run"]) == 2
    assert not list((table / "run").iterdir())


def test_a_refused_sacro_report_leaves_no_page(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv("d.csv").assign(name=[f"p{i}" for i in range(24)])
    frame.assign(name=[f"p{i % 12}" for i in range(24)]).to_csv("named.csv", index=False)
    line = ["audit", "named.csv", "--target", "y", "--group", "name", "--model", "ridge"]
    assert main([*line, "--alpha", "1", "--run-dir", "run"]) == 0
    assert main(["report", "run", "--sacro", "s.json", "--output", "p.html"]) == 2
    assert "SACRO-ML" in capsys.readouterr().err
    assert not (table / "p.html").exists()
    assert main(["report", "run", "--sacro", "no/such/s.json", "--output", "p.html"]) == 2
    assert not (table / "p.html").exists()
