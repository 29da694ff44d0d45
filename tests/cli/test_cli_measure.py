from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

from leakscope.cli import main
from leakscope.results import read_result

ISSUE = ["measure", "--member", "normal:0,1.4", "--nonmember", "normal:0,0.7"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_issues_command(here, capsys):
    assert main([*ISSUE, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    content = json.loads(out)
    # Two centred normals: the likelihood ratio crosses 1 at +-c.
    crossing = np.sqrt(2 * np.log(2) / (1 / 0.7**2 - 1 / 1.4**2))
    advantage = 2 * (norm.cdf(crossing / 0.7) - norm.cdf(crossing / 1.4))
    assert content["advantage"] == pytest.approx(advantage, rel=1e-12)
    assert content["kl"] == pytest.approx(np.log(2) + 0.25 / 2 - 0.5, rel=1e-12)
    assert content["kl_reverse"] == pytest.approx(-np.log(2) + 4 / 2 - 0.5, rel=1e-12)
    assert 0.5 < content["auc"] < 1
    assert set(content["tpr_at_fpr"]) == {"0.1", "0.01", "0.001", "1e-05"}
    assert set(content["epsilon_at_delta"]) == {"1e-05"}
    assert list(here.iterdir()) == []


def test_table_for_people(capsys):
    assert main([*ISSUE, "--fpr", "0.05,0.001"]) == 0
    out, _ = capsys.readouterr()
    assert "TPR at FPR 0.05" in out
    assert "epsilon at delta 1e-05" in out
    assert "interval" not in out
    assert "no differential-privacy guarantee" in " ".join(out.split())


@pytest.mark.parametrize(
    "law",
    [
        "normal:1,2",
        "normal: -1 , 2e+0",
        "mixture:0.5*0,1+0.5*0,3",
        "mixture:5e-1*+0,1+0.5*-1,3e+0",
        "spike:0.2,0.5,1",
        "mvn:0,0/1,0.5;0.5,2",
    ],
)
def test_equal_laws_of_every_kind_give_nothing_away(capsys, law):
    assert main(["measure", "--member", law, "--nonmember", law, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["advantage"] == pytest.approx(0.0, abs=1e-9)
    assert content["auc"] == pytest.approx(0.5, abs=1e-9)


def test_scores_with_intervals(here, capsys):
    rng = np.random.default_rng(0)
    np.save("members.npy", rng.normal(1.0, 1.0, size=400))
    np.savetxt("others.csv", rng.normal(0.0, 1.0, size=300))
    command = ["measure", "--member-scores", "members.npy", "--nonmember-scores", "others.csv"]
    assert main([*command, "--json", "scores.json"]) == 0
    out, _ = capsys.readouterr()
    assert "95% interval" in out
    document = read_result("scores.json")
    interval = document.intervals["auc"]
    low, high = interval.low, interval.high
    assert low < document.auc < high
    assert low < norm.cdf(1 / np.sqrt(2)) < high
    assert main([*command, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["auc"] == document.auc


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--member", "normal:0,-1", "--nonmember", "normal:0,1"], "sigma must be positive"),
        (["--member", "normal:0", "--nonmember", "normal:0,1"], "2 numbers"),
        (["--member", "normal:0,", "--nonmember", "normal:0,1"], "2 numbers"),
        (["--member", "normal:nan,1", "--nonmember", "normal:0,1"], "must be finite"),
        (["--member", "normal:0,nan", "--nonmember", "normal:0,1"], "sigma must be"),
        (["--member", "normal:a,1", "--nonmember", "normal:0,1"], "2 numbers"),
        (["--member", "normal", "--nonmember", "normal:0,1"], "is not a distribution"),
        (["--member", "cauchy:0,1", "--nonmember", "normal:0,1"], "is not a distribution"),
        (["--member", "normal:0,1", "--nonmember", "spike:0,1,1"], "must be of one kind"),
        (["--member", "mixture:0,1", "--nonmember", "normal:0,1"], "numbers"),
        (["--member", "mvn:0,0", "--nonmember", "mvn:0/1"], "numbers"),
        (["--member", "mvn:0,0/1,0", "--nonmember", "mvn:0/1"], "d x d"),
        (["--member", "normal:0,1"], "Two are needed"),
        ([], "one source"),
        (["--member", "normal:0,1", "--member-scores", "x.npy"], "one source"),
        (["--member-scores", "x.npy", "--nonmember-scores", "x.npy"], "There is no file x.npy"),
        ([*ISSUE[1:], "--fpr", "0.1,2"], "less than 1"),
        ([*ISSUE[1:], "--fpr", "a"], "--fpr: 'a' is not a list of numbers"),
        ([*ISSUE[1:], "--delta", "0"], "greater than 0"),
        ([*ISSUE[1:], "--confidence", "1.5"], "confidence"),
        ([*ISSUE[1:], "--json", "no/where.json"], "There is no folder"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(here, capsys, arguments, sentence):
    assert main(["measure", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert list(here.iterdir()) == []
