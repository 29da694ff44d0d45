from __future__ import annotations

import json
import os

import numpy as np
import pytest

from leakscope.cli import main
from leakscope.results import read_result

OPTIONS = {"output noise", "kernel noise", "fewer features", "dropping"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Audits of a quantity, of classes and of people, each of a small table."""
    here = tmp_path_factory.mktemp("advise")
    before = os.getcwd()
    os.chdir(here)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=40)
    kinds = np.array(["red", "green", "blue"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    lines = [
        f"r{i},p{i // 3},{a:.5f},{b:.5f},{c:.5f},{t:.5f},{kind}"
        for i, ((a, b, c), t, kind) in enumerate(zip(X, y, kinds, strict=True))
    ]
    (here / "data.csv").write_text("id,person,a,b,c,y,kind\n" + "\n".join(lines) + "\n")
    common = ["--id", "id", "--no-sensitivity", "--noise-variance", "0.05", "--top", "0"]
    audits = {
        "quantity": ["--target", "y", "--ignore", "person", "--ignore", "kind"],
        "classes": ["--target", "kind", "--task", "classification", "--ignore", "person"],
        "people": ["--target", "y", "--group", "person", "--ignore", "kind"],
    }
    for name, options in audits.items():
        assert main(["audit", "data.csv", *options, *common, "--run-dir", name]) == 0
    yield here
    os.chdir(before)


def advised(capsys, *arguments: str) -> dict:
    capsys.readouterr()
    assert main(["advise", *arguments, "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert "privacy cost of its own" in printed.err
    return json.loads(printed.out)


def test_options_are_ranked_and_the_audit_is_what_was_audited(folder, capsys):
    found = advised(capsys, "quantity", "--target-advantage", "0.2", "--repeats", "2")
    audit = read_result(folder / "quantity" / "result.json")
    assert found["own"]["worst"] == pytest.approx(max(r.advantage for r in audit.records), rel=1e-9)
    assert found["own"]["median"] == pytest.approx(audit.median_advantage, rel=1e-9)
    assert {option["name"] for option in found["options"]} >= OPTIONS
    meeting = [option for option in found["options"] if option["meets"]]
    assert meeting == found["options"][: len(meeting)]
    assert [o["cost"] for o in meeting] == sorted(o["cost"] for o in meeting)
    assert all(option["worst"] <= 0.2 for option in meeting)
    assert all(option["worst"] > 0.2 for option in found["options"][len(meeting) :])
    assert all("Does not meet" in o["sentence"] for o in found["options"][len(meeting) :])
    assert all(len(option["curve"]) >= 2 for option in found["options"])
    dropping = next(o for o in found["options"] if o["name"] == "dropping")
    assert len(dropping["dropped"]) == dropping["setting"]["dropped"]
    assert set(dropping["dropped"]) <= {record.record_id for record in audit.records}


def test_training_noise_that_was_advised_meets_the_target_when_audited(folder, capsys):
    """The advice applied by hand: a second audit finds what the advice promised."""
    found = advised(capsys, "quantity", "--target-advantage", "0.2", "--repeats", "1")
    option = next(o for o in found["options"] if o["name"] == "kernel noise")
    noise = str(option["setting"]["noise_variance"])
    options = ["--target", "y", "--ignore", "person", "--ignore", "kind", "--id", "id"]
    options += ["--noise-variance", noise, "--no-sensitivity", "--run-dir", "again"]
    assert main(["audit", "data.csv", *options]) == 0
    again = read_result(folder / "again" / "result.json")
    assert max(r.advantage for r in again.records) == pytest.approx(option["worst"], rel=1e-6)
    found = advised(capsys, "again", "--target-advantage", "0.21", "--repeats", "1")
    assert found["options"] == []
    assert "meets advantage <= 0.21 already" in found["sentence"]


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (["--target-tpr", "0.02", "--fpr", "0.01"], "TPR at FPR 0.01"),
        (["--target-epsilon", "2", "--delta", "0.001"], "epsilon at delta 0.001"),
    ],
)
def test_other_targets(folder, capsys, target, label):
    found = advised(capsys, "quantity", *target, "--repeats", "1")
    assert found["target_label"] == label
    assert all(o["worst"] <= found["target"]["value"] for o in found["options"] if o["meets"])
    assert any(option["meets"] for option in found["options"])


def test_classes_have_an_accuracy(folder, capsys):
    found = advised(capsys, "classes", "--target-advantage", "0.3", "--repeats", "1")
    assert found["dataset"]["outputs"] == 3
    assert all(0.0 <= option["accuracy"] <= 1.0 for option in found["options"])
    assert main(["advise", "classes", "--target-advantage", "0.3", "--repeats", "1"]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_people_leave_as_a_whole(folder, capsys):
    found = advised(capsys, "people", "--target-advantage", "0.4", "--repeats", "1")
    audit = read_result(folder / "people" / "result.json")
    assert found["unit"] == "group"
    assert found["own"]["worst"] == pytest.approx(max(r.advantage for r in audit.records), rel=1e-9)
    dropped = [o for o in found["options"] if o["dropped"]]
    assert all(name.startswith("p") for option in dropped for name in option["dropped"])


def test_questions_anywhere_need_more_noise(folder, capsys):
    arguments = ("quantity", "--target-advantage", "0.2", "--repeats", "1", "--questions")
    sd = []
    for where in ("own", "any"):
        found = advised(capsys, *arguments, where)
        noise = next(o for o in found["options"] if o["name"] == "output noise")
        assert noise["questions"] == where
        sd.append(noise["setting"]["output_sd"])
    assert sd[0] < sd[1]
    assert main(["advise", "people", "--target-advantage", "0.2", "--questions", "any"]) == 2
    assert "for records" in capsys.readouterr().err


def test_a_kernel_and_noise_that_the_data_chose(folder, capsys):
    options = [
        "--target",
        "y",
        "--ignore",
        "person",
        "--ignore",
        "kind",
        "--id",
        "id",
        "--top",
        "0",
    ]
    options += ["--kernel", "matern", "--noise-variance", "leave_one_out", "--fit-kernel-scale"]
    assert main(["audit", "data.csv", *options, "--run-dir", "fitted"]) == 0
    found = advised(capsys, "fitted", "--target-advantage", "0.1", "--repeats", "1")
    audit = read_result(folder / "fitted" / "result.json")
    assert audit.details.kernel["fitted_scale"] != 1.0
    assert found["own"]["worst"] == pytest.approx(max(r.advantage for r in audit.records), rel=1e-8)


def test_a_page_and_a_file(folder, capsys):
    arguments = ["advise", "quantity", "--target-advantage", "0.2", "--repeats", "1"]
    assert main([*arguments, "--html", "advice.html", "--json", "advice.json"]) == 0
    assert "names no record" in capsys.readouterr().out
    page = (folder / "advice.html").read_text()
    assert oct((folder / "advice.html").stat().st_mode & 0o777) == "0o600"
    assert "error_against_leakage" in page
    assert "privacy cost of its own" in page
    assert ">r1<" not in page
    assert read_result("advice.json").kind == "advice"


def test_the_same_seed_gives_the_same_advice(folder, capsys):
    arguments = ("quantity", "--target-advantage", "0.2", "--repeats", "1", "--seed")
    first, second, other = (advised(capsys, *arguments, seed) for seed in ("3", "3", "4"))
    assert first["options"] == second["options"]
    assert first["own"]["error"] != other["own"]["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quantity"], "Give one target"),
        (["quantity", "--target-advantage", "0.2", "--target-tpr", "0.1"], "not several"),
        (["quantity", "--target-advantage", "1.5"], "between 0 and 1"),
        (["quantity", "--target-tpr", "0.0005"], "which guessing reaches"),
        (["quantity", "--target-advantage", "0.2", "--folds", "99"], "folds must be from 2"),
        (["quantity", "--target-advantage", "0.2", "--most-dropped", "1"], "largest share"),
        (["quantity", "--target-advantage", "0.2", "--html", "x.png"], "does not end in .html"),
        (["nowhere", "--target-advantage", "0.2"], "There is no file nowhere"),
        (["data.csv", "--target-advantage", "0.2"], "is not JSON"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(folder, capsys, arguments, words):
    capsys.readouterr()
    assert main(["advise", *arguments]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_data_that_moved_or_changed(folder, capsys):
    text = (folder / "data.csv").read_text()
    (folder / "moved.csv").write_text(text)
    (folder / "changed.csv").write_text(text.replace("r1,p0,", "r1,p0,9"))
    arguments = ["advise", "quantity", "--target-advantage", "0.2", "--repeats", "1", "--data"]
    assert main([*arguments, "moved.csv"]) == 0
    assert main([*arguments, "changed.csv"]) == 2
    assert "have changed since" in capsys.readouterr().err


@pytest.fixture(scope="module")
def small(folder):
    """Audits of four records, and of eight with one and the same target."""
    rows = ["a,b,y", "1,2,3", "2,2,4", "9,1,5", "4,5,1"]
    (folder / "four.csv").write_text("\n".join(rows) + "\n")
    rows = [f"{i},{(i * i) % 5},0.1" for i in range(8)]
    (folder / "constant.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    for name in ("four", "constant"):
        options = ["--target", "y", "--no-sensitivity", "--run-dir", name]
        assert main(["audit", f"{name}.csv", *options]) == 0
    return folder


def test_four_records_and_no_folds_asked_for(small, capsys):
    assert advised(capsys, "four", "--target-advantage", "0.2")["settings"]["folds"] == 4


def test_a_constant_target_has_a_price_and_no_r_squared(small, capsys):
    found = advised(capsys, "constant", "--target-advantage", "0.2")
    assert all(option["r_squared"] is None for option in found["options"])
    assert all(option["cost"] is not None for option in found["options"])
    assert main(["advise", "constant", "--target-advantage", "0.2", "--html", "same.html"]) == 0
    assert "R2 has no value" in " ".join(capsys.readouterr().out.split())


def test_a_small_target_is_shown_with_its_digits(folder, capsys):
    arguments = ["advise", "quantity", "--target-advantage", "1e-5", "--repeats", "1"]
    assert main(arguments) == 0
    page = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in page.splitlines()}
    assert " 1e-05 " in rows["output noise"]
    assert " yes " in rows["output noise"]
    assert "0.0000" not in page
