"""The options of all verbs: how many there are, what they take, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer

import leakscope
from leakscope.cli import app, main

# What fits a screen, and what a person can look through.
MOST = 24
MOST_OF_ALL = 220


def commands():
    group = typer.main.get_command(app)
    for name, verb in group.commands.items():
        for part, command in (getattr(verb, "commands", None) or {"": verb}).items():
            options = [p.name for p in command.params if p.param_type_name == "option"]
            yield f"{name} {part}".strip(), options


def test_no_verb_has_more_options_than_a_screen():
    assert dict(commands())
    for name, options in commands():
        assert len(options) <= MOST + ("help" in options), name
    assert sum(len(options) for _, options in commands()) <= MOST_OF_ALL


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    rows = "".join(f"{a:.5f},{b:.5f},{c:.5f}\n" for (a, b), c in zip(X, y, strict=True))
    (tmp_path / "d.csv").write_text("a,b,y\n" + rows + "1.0,,0.5\n")
    (tmp_path / "mine.py").write_text(
        "import sklearn.tree\nTREE = sklearn.tree.DecisionTreeRegressor\n"
    )
    return tmp_path / "d.csv"


def audited(*more: str) -> dict:
    place = "result.json"
    line = ["audit", "d.csv", "--target", "y", "--read", "missing=drop", "--top", "0"]
    assert main([*line, *more, "--json", place]) in (0, 3, 4)
    with open(place, encoding="utf-8") as stream:
        return json.load(stream)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (("--model", "ridge", "--set", "alpha=2"), "Ridge(alpha=2)"),
        (("--model", "kernel_ridge", "--set", "alpha=1", "--set", "gamma=0.5"), "KernelRidge"),
        (("--model", "rbf", "--set", "noise_variance=0.5"), "rbf"),
        (("--model", "matern", "--set", "nu=2.5"), "matern"),
        (("--model", "mine:TREE", "--models", "4"), "DecisionTreeRegressor"),
    ],
)
def test_a_models_parameters_are_set(table, more, name):
    assert name.lower() in audited(*more)["model"]["name"].lower()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_command_line_and_python_agree(table):
    told = audited("--model", "ridge", "--set", "alpha=2", "--attacker", "insider")
    frame = __import__("pandas").read_csv(table)
    found = leakscope.audit_frame(
        frame, target="y", missing="drop", model="ridge", alpha=2.0, attacker="insider"
    )
    assert told["fraction"] == found.fraction == 0.95
    ours = {record["record_id"]: record["advantage"] for record in told["records"]}
    for record in found.records:
        assert record.advantage == pytest.approx(ours[record.record_id], rel=1e-9)


@pytest.mark.parametrize(
    ("more", "token"),
    [
        (("--set", "depth=3"), "--set"),
        (("--model", "ridge", "--set", "C=1"), "--set"),
        (("--model", "rbf", "--set", "noise_variance=-1"), "noise_variance"),
        (("--model", "rbf", "--secret", "a"), "secret"),
        (("--model", "ridge", "--set", "alpha"), "KEY=VALUE"),
        (("--model", "ridge", "--models", "4"), "models"),
        (("--read", "colour=red"), "--read"),
        (("--read", "sample=-1"), "sample"),
        (("--attacker", "nobody"), "--attacker"),
        (("--top", "-1"), "--top"),
        (("--example", "iris"), "not both"),
        (("--json", "d.csv"), "overwrite"),
        (("--run-dir", "run", "--json", "run/a.json"), "run"),
    ],
)
def test_bad_options_are_one_sentence(table, capsys, more, token):
    line = ["audit", "d.csv", "--target", "y", "--read", "missing=drop", *more]
    assert main(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert token in err
    assert "Traceback" not in err
    assert table.read_text().startswith("a,b,y")


def test_what_was_removed_says_what_to_use(capsys):
    assert main(["audit", "d.csv", "--C", "1"]) == 2
    assert "--set C=VALUE" in capsys.readouterr().err
