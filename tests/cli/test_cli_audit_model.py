"""``leakscope audit --model``: the first screen, the files, the gate, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from leakscope.cli import main
from leakscope.results import Audit, read_result


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_first_screen_fits_and_leads_with_the_answer(capsys):
    assert main(["audit", "--example", "breast_cancer", "--model", "logistic"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 92
    text = " ".join(out.split())
    assert text.startswith("Examined: LogisticRegression(C=1), C by leave-one-out;")
    assert "TPR 77% at 0.1% FPR and 94% at 1%" in text
    assert "not trusted" in text
    assert "What helps: noise of sd" in text
    assert "your model was not examined" not in text
    assert "warning: For 33% of the records" in err


def test_run_directory_json_and_gate(here, capsys):
    arguments = ["audit", "--example", "diabetes", "--model", "ridge", "--alpha", "1"]
    assert main([*arguments, "--json", "-", "--run-dir", "run"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["kind"] == "audit_model"
    assert content["settings"]["alpha"] == 1.0
    document = read_result(here / "run" / "result.json")
    assert isinstance(document, Audit)
    assert content["records"][0]["record_id"] == document.records[0].record_id == 169
    header = (here / "run" / "records.csv").read_text().splitlines()[0].split(",")
    assert {"tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "trusted"} <= set(header)
    with np.load(here / "run" / "arrays.npz") as arrays:
        assert arrays["member_mean"].shape == (442,)
    assert main([*arguments, "--fail-above", "advantage=0.2"]) == 3
    out, err = capsys.readouterr()
    assert "have an advantage of 0.2 or more" in " ".join(out.split())
    assert "records are above the limit, advantage 0.2: 169," in err
    assert main([*arguments, "--fail-above", "advantage=0.9"]) == 0


def test_gate_does_not_pass_what_is_not_trusted(capsys):
    arguments = ["audit", "--example", "breast_cancer", "--model", "logistic", "--C", "1"]
    assert main([*arguments, "--fail-above", "advantage=0.99"]) == 4
    assert "it is not known whether they are within the limit" in capsys.readouterr().err


def test_file_of_classes_needs_no_task(here, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    rows = ["a,b,c,label"]
    rows += [
        f"{x[0]},{x[1]},{x[4]},{'sick' if k else 'well'}"
        for x, k in zip(X.tolist(), y.tolist(), strict=True)
    ]
    (here / "people.csv").write_text("\n".join(rows) + "\n")
    arguments = ["audit", "people.csv", "--target", "label", "--model", "logistic"]
    assert main([*arguments, "--observes", "label", "--question", "population"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "people, 569 records" in text
    assert "sees the predicted label only; the others are fresh draws" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "logistic"], "predicts classes"),
        (["--model", "ridge", "--C", "1"], "--C does not belong to --model ridge"),
        (["--model", "linear", "--alpha", "1"], "which has no penalty"),
        (["--model", "ridge", "--noise-variance", "0.1"], "--noise-variance belongs to the"),
        (["--model", "ridge", "--no-sensitivity"], "--no-sensitivity belongs to the Gaussian"),
        (["--model", "forest"], "--model: input should be one of ridge"),
        (["--model", "ridge", "--alpha", "0"], "--alpha: input should be greater than 0"),
        (["--model", "ridge", "--fraction", "2"], "--fraction"),
        (["--model", "ridge", "--observes", "label"], "observes must be one of prediction"),
        (["--alpha", "1"], "--alpha belongs to --model"),
    ],
)
def test_bad_options_are_one_sentence(options, sentence, here, capsys):
    assert main(["audit", "--example", "diabetes", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not (here / "leakscope-runs").exists()


def test_one_class_and_negative_counts(here, capsys):
    (here / "one.csv").write_text("a,y\n1,x\n2,x\n3,x\n")
    assert main(["audit", "one.csv", "--target", "y", "--model", "logistic"]) == 2
    assert "one class only" in capsys.readouterr().err
    (here / "two.csv").write_text("a,y\n1,-1\n2,2\n3,0\n")
    assert main(["audit", "two.csv", "--target", "y", "--model", "poisson"]) == 2
    assert "predicts counts" in capsys.readouterr().err
    (here / "three.csv").write_text("a,y\n1,x\n2,x\n3,z\n4,x\n")
    assert main(["audit", "three.csv", "--target", "y", "--model", "logistic"]) == 2
    assert "with --C" in capsys.readouterr().err


def test_report_of_a_model(here, capsys):
    arguments = ["audit", "--example", "breast_cancer", "--model", "logistic", "--C", "1"]
    assert main([*arguments, "--run-dir", "run"]) == 0
    assert main(["report", "run"]) == 0
    page = (here / "run" / "report.html").read_text()
    assert "Leakage audit of LogisticRegression(C=1) on breast_cancer" in page
    assert "Most exposed: record 297 (not trusted), advantage 0.95" in page
    assert "186 of 569 records are not trusted" in page
    assert "not examined" not in page
    assert '"tpr_at_fpr_0_01":' in page
    assert main(["report", "run", "--redact"]) == 0
    redacted = (here / "run" / "report-redacted.html").read_text()
    assert "record 297" not in redacted
    assert "Most exposed: a record (not trusted), advantage 0.95" in redacted
    assert '"records":null' in redacted.replace(" ", "")


def test_verify_by_shadow_models_and_report_of_both(here, capsys):
    arguments = ["audit", "--example", "diabetes", "--model", "ridge", "--alpha", "1"]
    assert main([*arguments, "--run-dir", "run"]) == 0
    told = ["verify", "run", "--models", "120", "--records", "4", "--json", "run/verify.json"]
    assert main(told) == 0
    text = " ".join(capsys.readouterr().out.split())
    verification = json.loads((here / "run" / "verify.json").read_text())
    count = len(verification["checks"])
    agree = f"{count} of {count} checks agree"
    assert agree in text
    assert "120 shadow models of the same estimator" in text
    assert "exactly right numbers would reach" in text
    assert main(["report", "run"]) == 0
    assert agree in (here / "run" / "report.html").read_text()
    assert main(["verify", "run", "--models", "5"]) == 2
    assert "at least 20 shadow models" in capsys.readouterr().err
    assert main(["verify", "run", "--network", "8"]) == 2
    assert "verified by shadow models" in capsys.readouterr().err


def test_verify_refuses_what_shadow_models_do_not_answer(here, capsys):
    arguments = ["audit", "--example", "diabetes", "--model", "ridge", "--alpha", "1"]
    assert main([*arguments, "--question", "population", "--run-dir", "fresh"]) == 0
    assert main(["verify", "fresh"]) == 2
    assert "the pool question can be verified" in capsys.readouterr().err
    assert main([*arguments, "--observes", "residual", "--run-dir", "residual"]) == 0
    assert main(["verify", "residual"]) == 2
    assert "audit with observes prediction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (lambda row: row + 0.5, "1 of 2 columns of X is constant and says nothing: c"),
        (lambda row: 3.5, "none was fitted, because the target is the same for every record"),
        (lambda row: row // 2, "columns of X is constant"),
    ],
)
def test_odd_data_without_a_model_are_said(target, sentence, here, capsys):
    rows = [f"{row % 7},7,{target(row)}" for row in range(40)]
    (here / "odd.csv").write_text("a,c,y\n" + "\n".join(rows) + "\n")
    assert main(["audit", "odd.csv", "--target", "y", "--run-dir", "odd", "--top", "0"]) == 0
    assert sentence in capsys.readouterr().err
