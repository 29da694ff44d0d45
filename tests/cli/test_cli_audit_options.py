"""``leakscope audit`` as a gate, by subgroup, by group, with reasons, and on mixed tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope.cli import main


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    lines = ["person,age,ward,cost"]
    for row in range(40):
        age = f"{generator.normal(50, 10):.1f}" if row != 5 else ""
        lines.append(f"p{row // 2},{age},{'ab'[row % 4 == 0]},{generator.normal():.3f}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


ARGUMENTS = ["audit", "visits.csv", "--target", "cost", "--group", "person", "--json", "out.json"]


def test_groups_of_a_mixed_table(capsys):
    process = [*ARGUMENTS, "--kernel", "rbf"]
    assert main([*process, "--missing", "impute", "--by", "ward", "--top", "2"]) == 0
    out, _ = capsys.readouterr()
    assert "ranks first of 20" in out
    assert "Ranked by kl, KL(without || with)" in " ".join(out.split())
    assert "Exposure by ward" in out
    with open("out.json", encoding="utf-8") as stream:
        content = json.load(stream)
    assert content["unit"] == "group"
    assert {record["size"] for record in content["records"]} == {2}
    assert {entry["column"] for entry in content["subgroups"]} == {"ward"}
    assert sum(entry["count"] for entry in content["subgroups"]) == 20
    assert any("filled in by the median" in step for step in content["dataset"]["steps"])
    assert content["dataset"]["source"]["group_column"] == "person"
    assert main(["verify", "out.json", "--records", "4"]) == 0
    assert "without each of 4 groups" in " ".join(capsys.readouterr().out.split())
    content["records"][0]["kl"] *= 2.0
    with open("wrong.json", "w", encoding="utf-8") as stream:
        json.dump(content, stream)
    # Numbers that do not follow from the stored laws are refused before anything is drawn.
    assert main(["verify", "wrong.json", "--records", "20"]) == 2
    capsys.readouterr()
    assert main(["verify", "out.json", "--network", "4"]) == 2
    assert "this one is of groups" in capsys.readouterr().err


def test_the_gate_says_which_and_how_many(capsys):
    diabetes = ["audit", "--example", "diabetes", "--no-sensitivity"]
    assert main([*diabetes, "--fail-above", "advantage=0.99", "--fail-above", "kl=1e9"]) == 3
    err = capsys.readouterr().err
    assert "of 442 records are above the limit, advantage 0.99: " in err
    assert "kl above" not in err
    assert main([*diabetes, "--fail-above", "kl=1e9,auc=1"]) == 0
    assert capsys.readouterr().err == ""


def test_what_cannot_be_told_does_not_pass(capsys):
    untold = ["--kernel", "rbf", "--length-scale", "500", "--noise-variance", "1e-9"]
    arguments = ["audit", "--example", "diabetes", "--no-sensitivity", *untold]
    assert main([*arguments, "--fail-above", "kl=1e300"]) == 4
    assert "are not resolved by float64" in capsys.readouterr().err


def test_reasons_are_printed_where_they_are_asked_for(capsys):
    arguments = ["audit", "--example", "diabetes", "--no-sensitivity", "--top", "2"]
    assert main([*arguments, "--json", "plain.json"]) == 0
    assert "Why they are exposed" not in capsys.readouterr().out
    with open("plain.json", encoding="utf-8") as stream:
        assert len(json.load(stream)["explanations"]) == 10
    assert main([*arguments, "--explain"]) == 0
    out = capsys.readouterr().out
    assert "Why they are exposed:\n\n1. Record " in out
    assert "\n3. " not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fail-above", "advantage"], "--fail-above takes advantage=NUMBER"),
        (["--fail-above", "auc=2"], "--fail-above auc must be a number from 0.5 to 1"),
        (["--fail-above", "kl=much"], "--fail-above kl must be a number 0 or more"),
        (["--missing", "guess"], "--missing must be one of error, drop, impute"),
        (["--by", "floor"], "no column 'floor' for the subgroups"),
        ([], "column 'age' is empty in row 5"),
    ],
)
def test_refusals(arguments, sentence, capsys):
    assert main([*ARGUMENTS, *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_options_of_a_file_do_not_go_with_an_example(capsys):
    assert main(["audit", "--example", "iris", "--group", "target"]) == 2
    assert "belong to a file" in capsys.readouterr().err
