"""leakscope plan linear: keys, targets, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import main
from leakscope.results import read_result
from leakscope.results.plan import LinearPlan

BASE = ["plan", "linear", "--n", "100", "--p", "400", "--dim", "3000", "--sigma", "1"]
KEYS = {
    "advantage",
    "advantage_label_known",
    "advantage_stderr",
    "kl",
    "auc",
    "tpr_at_fpr",
    "generalization_error",
    "sigma_member",
    "sigma_nonmember",
    "method",
    "assumptions",
}


def run(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main([*BASE, "--json", "-", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("method", ["exact", "asymptotic", "simulated"])
def test_every_method_prints_the_same_keys(capsys: pytest.CaptureFixture[str], method: str) -> None:
    more = ["--draws", "20"] if method == "simulated" else []
    found = run(capsys, "--ridge", "0", "--method", method, *more)
    assert set(found) >= KEYS
    assert found["method"] == method
    assert found["advantage_label_known"] == 1.0
    assert found["advantage"] == pytest.approx(0.263, abs=0.02)
    assert (found["advantage_stderr"] == 0.0) == (method == "asymptotic")


def test_target(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--method", "asymptotic", "--target-advantage", "0.3")
    features, noise = found["targets"]
    assert features["setting"] < 100
    assert noise["advantage"] <= 0.3
    assert noise["generalization_error"] > found["generalization_error"]
    hidden = run(
        capsys, "--method", "asymptotic", "--target-advantage", "0.3", "--attacker", "label_hidden"
    )
    assert hidden["targets"][0]["setting"] == pytest.approx(454, abs=1)
    assert hidden["targets"][1]["setting"] == 0.0


def test_noise_lowers_both(capsys: pytest.CaptureFixture[str]) -> None:
    plain, noisy = (
        run(capsys, "--method", "asymptotic", "--output-noise", level) for level in ("0", "1")
    )
    assert noisy["advantage"] < plain["advantage"]
    assert noisy["advantage_label_known"] < 0.5


def test_json_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    assert main([*BASE, "--method", "asymptotic", "--json", str(path)]) == 0
    assert "label hidden" in capsys.readouterr().out
    assert json.loads(path.read_text())["kind"] == "plan_linear"


@pytest.mark.parametrize("knob", ["p", "ridge", "noise", "answers"])
def test_curve_is_a_table_and_comes_back_from_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], knob: str
) -> None:
    path = tmp_path / "plan.json"
    more = ["--method", "asymptotic", "--output-noise", "1", "--curve", knob]
    assert main([*BASE, *more, "--json", str(path)]) == 0
    assert f"\n{knob} " in capsys.readouterr().out
    found = read_result(path)
    assert isinstance(found, LinearPlan)
    assert found.curve is not None
    assert len(found.curve.settings) == len(found.curve.advantage_label_known) >= 5
    if knob == "noise":
        assert found.curve.advantage_label_known[0] == 1.0
    if knob == "answers":
        # one fresh answer is what the plan itself is about
        assert found.curve.advantage[0] == pytest.approx(found.advantage)
        assert found.curve.generalization_error[-1] == pytest.approx(found.generalization_error)


def test_curve_over_settings_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--method", "asymptotic", "--curve", "p", "--settings", "50,400")
    assert found["curve"]["settings"] == [50.0, 400.0]
    assert found["curve"]["advantage"][1] == pytest.approx(found["advantage"])


def test_memoised_answers_are_one_answer(capsys: pytest.CaptureFixture[str]) -> None:
    noise = ["--method", "asymptotic", "--output-noise", "1"]
    one = run(capsys, *noise)
    memoised = run(capsys, *noise, "--answers", "50", "--memoise")
    fresh = run(capsys, *noise, "--answers", "50")
    assert memoised["advantage_label_known"] == one["advantage_label_known"]
    assert fresh["advantage_label_known"] > one["advantage_label_known"]
    # an answer costs its own noise, whoever averages it
    assert one["generalization_error"] == fresh["generalization_error"]


@pytest.mark.parametrize(
    ("world", "size"),
    [("latent", "4"), ("fourier", "64"), ("relu", "40")],
)
def test_the_other_worlds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], world: str, size: str
) -> None:
    path = tmp_path / "plan.json"
    small = ["plan", "linear", "--n", "20", "--p", "12", "--dim", size, "--model", world]
    small += ["--records", "3", "--draws", "8", "--seed", "1"]
    more = ["--curve", "noise_nonmembers", "--settings", "0,1", "--target-advantage", "0.2"]
    assert main([*small, *more, "--json", str(path)]) == 0
    assert "records = 3" in capsys.readouterr().out
    found = read_result(path)
    assert isinstance(found, LinearPlan)
    assert found.settings["model"] == world
    assert found.curve is not None
    # no noise is the plan itself; members alone stay exact, so the advantage grows with it
    assert found.curve.advantage[0] == pytest.approx(found.advantage)
    assert found.targets[0].advantage is not None
    assert found.targets[0].advantage <= 0.2
    assert main(["verify", str(path)]) == 2
    assert "another world" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--model", "latent", "--ridge", "1"], "--ridge belongs to --model gaussian"),
        (["--model", "fourier", "--p", "4000"], "1 <= p <= times"),
        (["--model", "sphere"], "--model must be one of"),
        (["--p", "4000"], "p must be at most dim"),
        (["--n", "1"], "n must be 2 or more"),
        (["--sigma", "-1"], "sigma must be zero or above"),
        (["--ridge", "nan"], "ridge must be zero or above"),
        (["--method", "magic"], "--method must be one of"),
        (["--attacker", "nobody"], "--attacker must be one of"),
        (["--target-advantage", "1.5"], "between 0 and 1"),
        (["--fpr", "x"], "--fpr"),
        (["--draws", "2"], "At least 8"),
        (["--method", "asymptotic", "--p", "100"], "no asymptotic law"),
        (["--seed", "-3"], "--seed"),
        (["--curve", "depth"], "--curve must be one of"),
        (["--settings", "1,2"], "--settings belongs to --curve"),
        (["--curve", "answers"], "needs noise on every answer"),
        (["--curve", "answers", "--output-noise", "1", "--memoise"], "asking again gives the same"),
        (["--curve", "p", "--settings", "10.5"], "whole numbers"),
        (["--curve", "p", "--settings", "5000"], "p must be at most dim"),
    ],
)
def test_impossible_input(
    capsys: pytest.CaptureFixture[str], change: list[str], sentence: str
) -> None:
    assert main([*BASE, *change]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_number_stands_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The target met as planned, and the curve at the plan's own p, repeat the plan's number."""
    small = ["plan", "linear", "--n", "20", "--p", "40", "--dim", "100", "--seed", "2"]
    more = ["--attacker", "label_hidden", "--target-advantage", "0.06"]
    more += ["--curve", "p", "--settings", "40"]
    assert main([*small, *more, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    noise = found["targets"][1]
    assert noise["setting"] == 0.0
    assert noise["advantage"] == found["curve"]["advantage"][0] == found["advantage"]
    assert noise["advantage_stderr"] == found["advantage_stderr"]


def test_whole_matrices_say_what_stands_in_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["plan", "linear", "--n", "10", "--p", "20", "--dim", "30", "--method", "simulated"]
    assert main([*small, "--draws", "20", "--target-advantage", "0.3"]) == 0
    assert "are of the exact law" in " ".join(capsys.readouterr().out.split())
    assert main([*small, "--draws", "20"]) == 0
    assert "exact law" not in capsys.readouterr().out


def test_a_lasso_is_planned_from_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 20))
    names = [f"g{i}" for i in range(20)]
    frame = pd.DataFrame(X, columns=names).assign(y=X[:, 0] + rng.normal(size=80))
    frame.assign(kind=np.where(X[:, 1] > 0, "a", "b")).to_csv("t.csv", index=False)
    line = ["plan", "lasso", "--data", "t.csv", "--target", "y", "--sigma-eta", "2"]
    assert main([*line, "--noise", "laplace", "--json", "p.json"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "LASSO with Laplace objective perturbation, alpha = 3.63636" in told
    assert "sigma_eta 2 in its units" in told
    assert json.loads(Path("p.json").read_text())["settings"]["noise"] == "laplace"
    for extra, why in (
        (["--alpha", "2"], "--alpha is estimated from --data; leave one of them out."),
        (["--target", "kind"], "column 'kind' holds classes"),
    ):
        assert main([*line, *extra]) == 2
        assert why in capsys.readouterr().err
    assert main(["plan", "lasso", "--sigma-eta", "2"]) == 2
    assert "--alpha is missing; give it, or --data FILE" in capsys.readouterr().err
    assert main([*line[:2], *line[4:], "--alpha", "1", "--rho", "0.1", *LASSO_REST]) == 2
    assert "--target belongs to --data" in capsys.readouterr().err


LASSO_REST = ["--sigma-xi", "0.1", "--lam", "1"]
