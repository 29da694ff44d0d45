from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope.cli import main
from leakscope.results import read_result


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def audited(here):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=24)
    rows = "\n".join(",".join(f"{v:.6g}" for v in (*x, t)) for x, t in zip(X, y, strict=True))
    (here / "data.csv").write_text(f"a,b,c,y\n{rows}\n")
    arguments = ["audit", "data.csv", "--target", "y", "--noise-variance", "0.1"]
    assert main([*arguments, "--json", "audit.json", "--run-dir", "run", "--no-sensitivity"]) == 0
    return here


def test_an_audit_by_draws(audited, capsys):
    capsys.readouterr()
    assert main(["verify", "audit.json", "--records", "3", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "verify"
    assert (found["agrees"], found["differs"]) == (12, 0)
    assert {"law", "quantity", "predicted", "measured", "stderr", "z", "verdict"} == set(
        found["checks"][0]
    )
    assert main(["verify", "run", "--records", "2", "--json", "verified.json"]) == 0
    assert "was not examined" in " ".join(capsys.readouterr().out.split())
    assert read_result("verified.json").kind == "verify"


def test_a_wrong_audit_differs_with_status_three(audited, capsys):
    content = json.loads((audited / "audit.json").read_text())
    for record in content["records"]:
        # Both: of their difference alone the file's own numbers would tell.
        record["mean_with"] += 1.0
        record["mean_without"] += 1.0
    (audited / "wrong.json").write_text(json.dumps(content))
    assert main(["verify", "wrong.json", "--records", "2"]) == 3
    assert "differs" in capsys.readouterr().out


def test_an_audit_by_ones_own_function_resumes(audited, capsys, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    (audited / "own_model.py").write_text(
        "import numpy as np\n"
        "def train(X, y, seed):\n"
        "    with open('calls', 'a') as log: log.write('x')\n"
        "    noise = 0.3 * np.random.default_rng(seed).normal(size=len(y))\n"
        "    w = np.linalg.lstsq(X, y + noise, rcond=None)[0]\n"
        "    return lambda Q: Q @ w\n"
    )
    arguments = ["verify", "audit.json", "--records", "9", "--train", "own_model:train"]
    arguments += ["--models", "16", "--run-dir", "retrained", "--json", "v.json"]
    assert main(arguments) in (0, 3)
    calls = len((audited / "calls").read_text())
    found = read_result("v.json")
    assert len(found.checks) == 9
    assert found.agreement["records"] == 9
    assert "own_model:train" in found.verdict
    capsys.readouterr()
    assert main(arguments) in (0, 3)
    assert len((audited / "calls").read_text()) == calls
    assert read_result("v.json").checks == found.checks


def test_a_plan_by_whole_matrices(here, capsys):
    arguments = ["plan", "linear", "--n", "20", "--p", "60", "--dim", "100", "--ridge", "0.1"]
    assert main([*arguments, "--json", "plan.json"]) == 0
    capsys.readouterr()
    assert main(["verify", "plan.json", "--draws", "300", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] == 3
    assert found["verified_kind"] == "plan_linear"


def test_a_lasso_plan_by_refits(here, capsys):
    arguments = ["plan", "lasso", "--alpha", "0.5", "--rho", "0.1", "--sigma-xi", "0.1"]
    assert main([*arguments, "--lam", "1", "--sigma-eta", "0.3", "--json", "plan.json"]) == 0
    capsys.readouterr()
    assert main(["verify", "plan.json", "--draws", "8", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["checks"]) == 5
    assert found["differs"] == 0
    assert main([*arguments, "--lam", "0.1", "--sigma-eta", "0.9", "--json", "bad.json"]) == 0
    assert main(["verify", "bad.json"]) == 2


def test_a_query_search_by_draws(audited, capsys):
    attack = ["attack", "query", "data.csv", "--target", "y", "--record", "4", "--starts", "2"]
    assert main([*attack, "--noise-variance", "0.1", "--json", "attack.json"]) == 0
    capsys.readouterr()
    assert main(["verify", "attack.json", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] == 1
    content = json.loads((audited / "attack.json").read_text())
    content["kl_at_record"] *= 1.5
    (audited / "wrong.json").write_text(json.dumps(content))
    assert main(["verify", "wrong.json"]) == 3


def test_refusals(audited, capsys):
    main(["measure", "--member", "normal:0,1", "--nonmember", "normal:0,2", "--json", "m.json"])
    content = json.loads((audited / "audit.json").read_text())
    content["dataset"]["source"] = None
    (audited / "arrays.json").write_text(json.dumps(content))
    (audited / "other.csv").write_text("a,b,c,y\n1,2,3,4\n2,3,4,6\n")
    for arguments, sentence in (
        (["m.json"], "nothing to simulate in a result of the kind 'measure'"),
        (["absent.json"], "There is no file"),
        (["arrays.json"], "arrays in memory"),
        (["audit.json", "--data", "other.csv"], "does not hold the data"),
        (["audit.json", "--train", "a:b", "--network", "4"], "not both"),
        (["audit.json", "--network", "wide"], "--network: 'wide' is not a list of whole numbers"),
        (["audit.json", "--train", "absent_module:f"], "cannot be imported"),
        (["audit.json", "--seed", "-1"], "--seed: input should be greater than or equal to 0"),
        (["m.json", "--network", "4"], "belong to the result of an audit"),
    ):
        capsys.readouterr()
        assert main(["verify", *arguments]) == 2, arguments
        assert sentence in capsys.readouterr().err
