"""Numbers that float64, or an approximation, does not resolve: every verb marks them.

Forty points of a smooth function at noise_variance 1e-10: the audit resolves no record, and the
numbers that come out look harmless.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import leakscope
from leakscope import lood
from leakscope.cli import main
from leakscope.results import read_result

UNRESOLVED = "40 of 40 records are not resolved by float64 at noise_variance 1e-10"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("trust")
    before = os.getcwd()
    os.chdir(here)
    x = np.linspace(0.0, 1.0, 40)
    pairs = zip(x.tolist(), np.sin(3 * x).tolist(), strict=True)
    lines = [f"{a!r},{b!r},p{i // 4}" for i, (a, b) in enumerate(pairs)]
    (here / "line.csv").write_text("x,y,who\n" + "\n".join(lines) + "\n")
    common = ["audit", "line.csv", "--target", "y", "--no-sensitivity", "--top", "0"]
    assert main([*common, "--ignore", "who", "--noise-variance", "1e-10", "--run-dir", "run"]) == 0
    assert main([*common, "--group", "who", "--noise-variance", "1e-14", "--run-dir", "who"]) == 0
    assert main([*common, "--ignore", "who", "--noise-variance", "0.1", "--run-dir", "sound"]) == 0
    yield here
    os.chdir(before)


def test_the_audit_cannot_tell(folder):
    document = read_result(folder / "run" / "result.json")
    assert document.untrusted == 40
    assert max(record.advantage for record in document.records) < 0.9  # and so looks harmless
    assert "Cannot tell: float64 does not resolve 40 of 40" in document.verdict
    assert document.doubt.startswith(UNRESOLVED)
    assert read_result(folder / "sound" / "result.json").doubt is None


def test_the_gate_does_not_pass(folder, capsys):
    arguments = ["audit", "line.csv", "--target", "y", "--ignore", "who", "--no-sensitivity"]
    arguments += ["--noise-variance", "1e-10", "--run-dir", "gate", "--fail-above"]
    assert main([*arguments, "advantage=0.99"]) == 4
    assert "40 of 40 records are not resolved by float64" in capsys.readouterr().err


@pytest.mark.parametrize(
    "target",
    [["--target-advantage", "0.9"], ["--target-tpr", "0.9"], ["--target-epsilon", "50"]],
    ids=lambda target: target[0],
)
def test_advice_neither_calls_it_met_nor_drops_by_it(folder, capsys, target):
    capsys.readouterr()
    assert main(["advise", "run", *target, "--repeats", "1", "--json", "-"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert UNRESOLVED in found["sentence"]
    assert UNRESOLVED in printed.err
    assert "meets" not in found["sentence"].split(UNRESOLVED)[0].replace("setting meets", "")
    assert not found["own"]["meets"]
    assert not found["own"]["trusted"]
    assert {option["name"] for option in found["options"]} <= {
        "kernel noise",
        "kernel noise + output noise",
    }
    assert all(option["trusted"] and not option["dropped"] for option in found["options"])
    assert found["options"][0]["meets"]
    assert found["options"][0]["setting"]["noise_variance"] > 1e-10


def test_advice_on_groups_too(folder, capsys):
    capsys.readouterr()
    assert main(["advise", "who", "--target-advantage", "0.9", "--repeats", "1"]) in (0, 2)
    printed = capsys.readouterr()
    assert "already" not in printed.out
    told = " ".join(printed.out.split())
    assert "not positive definite" in printed.err or "not resolved by float64" in told


def test_what_advice_finds_is_resolved(folder):
    found = leakscope.advise("run", leakscope.AuditTarget("advantage", 0.9), repeats=1)
    level = found.best.setting["noise_variance"]
    x = np.loadtxt(folder / "line.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    length = read_result(folder / "run" / "result.json").details.kernel["length_scale"]
    kernel = leakscope.kernels.rbf(length)
    laws = lood.ProcessOnRecords(scaled[:, :1], scaled[:, 1], kernel, level).separation()
    assert laws.trusted.all()
    assert float(leakscope.measures.advantage(laws.law_pair()).max()) <= 0.9 * (1 + 1e-6)


def test_verify_says_so(folder, capsys):
    capsys.readouterr()
    status = main(["verify", "run", "--draws", "200", "--records", "2", "--json", "-"])
    printed = capsys.readouterr()
    assert status in (0, 2, 3, 4), printed.err
    if status == 2:  # or refuses, where the draws themselves cannot be made
        assert "float64" in printed.err or "positive definite" in printed.err
        return
    assert UNRESOLVED in json.loads(printed.out)["warnings"][0]
    assert UNRESOLVED in printed.err


def test_a_query_says_so(folder, capsys):
    capsys.readouterr()
    arguments = ["line.csv", "--target", "y", "--ignore", "who", "--noise-variance", "1e-10"]
    arguments += ["--record", "3", "--starts", "1", "--steps", "2", "--json", "-"]
    assert main(["attack", "query", *arguments]) == 0
    printed = capsys.readouterr()
    assert "float64 does not resolve the numbers" in json.loads(printed.out)["warnings"][0]
    assert "float64 does not resolve the numbers" in printed.err


def test_compare_says_so(folder, capsys):
    capsys.readouterr()
    assert main(["compare", "sound", "run", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any(f"in the second run, {UNRESOLVED}" in sentence for sentence in found["warnings"])
    assert main(["compare", "sound", "run", "--fail-if-worse"]) == 3


def test_the_report_says_so(folder):
    assert main(["report", "run"]) == 0
    page = next((folder / "run").glob("*.html")).read_text(encoding="utf-8")
    assert f"<strong>Not trusted.</strong> {UNRESOLVED}" in page
    assert '<td>failed</td><td>a check was made, and did not pass</td><td class="n">40</td>' in page


def test_estimators_carry_it(folder):
    x = np.linspace(0.0, 1.0, 40)[:, None]
    model = leakscope.AuditedRegressor(noise_variance=1e-10).fit(x, np.sin(3 * x[:, 0]))
    assert not model.trusted_.any()


def test_an_approximation_that_is_too_coarse_is_not_trusted(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    rows = np.column_stack([X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)])
    names = ",".join([*"abcdef", "y"])
    np.savetxt("wide.csv", rows, delimiter=",", header=names, comments="")
    common = ["audit", "wide.csv", "--target", "y", "--no-sensitivity", "--run-dir"]
    coarse = ["--route", "nystrom", "--inducing", "20", "--fail-above", "advantage=0.9999999"]
    capsys.readouterr()
    assert main([*common, "coarse", *coarse]) == 4
    assert "known no better than to 10%" in capsys.readouterr().err
    document = read_result(folder / "coarse" / "result.json")
    assert document.untrusted == 200  # as many again were solved exactly
    assert "200 are not known to 10%" in document.verdict
    assert "known no better than to 10%" in document.doubt
    fine = ["--route", "nystrom", "--inducing", "400", "--fail-above", "advantage=0.9999999"]
    assert main([*common, "fine", *fine]) == 0
    assert read_result(folder / "fine" / "result.json").untrusted == 0
