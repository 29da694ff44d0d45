"""``leakscope compare``: table, JSON, page, gate and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leakscope.cli import main
from leakscope.results import read_result


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    rows = np.random.default_rng(0).normal(size=(40, 2))
    for name, count in (("all", 40), ("some", 36)):
        lines = [f"<b>p{i}</b>,{a},{b},{a - b}" for i, (a, b) in enumerate(rows[:count])]
        (folder / f"{name}.csv").write_text("who,a,b,y\n" + "\n".join(lines) + "\n")
    common = ["--target", "y", "--id", "who", "--top", "0", "--no-sensitivity"]
    for run, data, noise in (("before", "all", "0.01"), ("after", "some", "0.5")):
        options = ["--noise-variance", noise, "--run-dir", str(folder / run)]
        assert main(["audit", str(folder / f"{data}.csv"), *common, *options]) == 0
    assert main(["audit", "--example", "wine", *common[4:], "--run-dir", str(folder / "wine")]) == 0
    laws = ["--member", "normal:1,1", "--nonmember", "normal:0,1"]
    assert main(["measure", *laws, "--json", str(folder / "measure.json")]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(runs, monkeypatch):
    monkeypatch.chdir(runs)


def test_a_table_for_people(capsys):
    assert main(["compare", "before", "after", "--fail-if-worse"]) == 0
    out, err = capsys.readouterr()
    assert "noise_variance as used  " in out
    assert "36 records are in both" in out
    assert "4 are in the first only" in out
    assert "Largest decreases" in out
    assert "No improvement can be claimed" in " ".join(out.split())
    assert err == ""


def test_the_gate_fails_with_status_three(capsys):
    assert main(["compare", "after", "before", "--fail-if-worse"]) == 3
    assert "leakscope: the largest advantage rises from" in capsys.readouterr().err
    assert main(["compare", "after", "before"]) == 0
    assert main(["compare", "after", "before", "--fail-if-worse", "--tolerance", "1"]) == 0


def test_json_and_result_files(capsys):
    assert main(["compare", "before/result.json", "after", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["kind"] == "compare"
    assert len(content["records"]) == 36
    assert main(["compare", "before", "after", "--json", "c.json", "--redact", "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "<b>p" not in out
    assert "36 records are in both" in out
    assert "<b>p" not in Path("c.json").read_text()
    assert read_result("c.json").redacted
    assert Path("c.json").stat().st_mode & 0o777 == 0o600


def test_a_page(capsys):
    assert main(["compare", "before", "after", "--html", "c.html"]) == 0
    assert "Comparison: c.html (" in capsys.readouterr().out
    path = Path("c.html")
    assert path.stat().st_mode & 0o777 == 0o600
    page = path.read_text(encoding="utf-8")
    assert "As sensitive as the data." in page
    assert "&lt;b&gt;p" in page
    assert "<b>p" not in page
    assert main(["compare", "before", "after", "--html", "r.html", "--redact"]) == 0
    redacted = Path("r.html").read_text(encoding="utf-8")
    assert "aggregates only" in redacted
    assert "&lt;b&gt;p" not in redacted
    assert "\\u003cb\\u003ep" not in redacted


def test_other_data(capsys):
    assert main(["compare", "before", "wine"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no id column in common" in out
    assert "are in both" not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["before", "absent"], "There is no file absent"),
        (["before", "measure.json"], "kind measure; compare takes two runs"),
        (["before", "after", "--tolerance", "-1"], "tolerance must be zero or more"),
        (["before", "after", "--top", "-1"], "--top must be zero or more"),
        (["before", "after", "--html", "c.txt"], "does not end in .html"),
        (["before", "after", "--json", "no/where.json"], "There is no folder no"),
    ],
)
def test_refusals(arguments, sentence, capsys):
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
