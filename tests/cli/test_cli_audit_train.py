"""``leakscope audit --train``: the screen, the run, its options, and going on where it stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from leakscope.cli import main

TRAIN = """
import numpy as np

def train(X, y, seed):
    rng = np.random.default_rng(seed)
    weights = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ (2.0 * y - 1.0))
    weights = 4.0 * weights + 0.1 * rng.normal(size=len(weights))
    print("trained")
    return lambda asked: 1.0 / (1.0 + np.exp(-(asked @ weights)))

def fails(X, y, seed):
    raise RuntimeError("out of patience")

def wrong(X, y, seed):
    return lambda asked: np.zeros((len(asked), 5))
"""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
LABEL = np.where(X[:, 0] + RNG.normal(size=80) > 0, "yes", "no")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_code_of_a_user.py").write_text(TRAIN)
    rows = ["a,b,c,answer", *(f"{p},{q},{r},{v}" for (p, q, r), v in zip(X, LABEL, strict=True))]
    Path("table.csv").write_text("\n".join(rows))
    return Path("table.csv")


class Answer(NamedTuple):
    code: int
    out: str
    error: str


Run = Callable[..., Answer]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Answer:
        code = main(list(arguments))
        return Answer(code, *capsys.readouterr())

    return call


OWN = ("--target", "answer", "--task", "classification", "--train", "own_code_of_a_user:train")


def test_one_screen_that_leads_with_the_answer(table: Path, run: Run) -> None:
    code, out, error = run("audit", str(table), *OWN)
    assert code == 0, error
    lines = out.strip().splitlines()
    assert len(lines) <= 24
    assert lines[0].startswith("Examined: own_code_of_a_user:train, 4 models of halves")
    assert "Most exposed: record" in out
    assert "advantage (95%)" in out
    assert "trained" not in out
    folder = Path("leakscope-runs")
    kept = list(folder.glob("models-table-*"))
    assert len(kept) == 1
    run_directory = next(folder.glob("*-audit-table"))
    document = json.loads((run_directory / "result.json").read_text())
    assert document["kind"] == "audit_model"
    assert document["models"] == 4
    assert {"advantage_low", "tpr_at_fpr_0_001_high"} <= set(document["records"][0])
    assert document["provenance"]["question"] == "pool"


def test_more_models_go_on_and_json_holds_nothing_else(table: Path, run: Run) -> None:
    assert run("audit", str(table), *OWN, "--models", "2").code == 0
    code, out, error = run("audit", str(table), *OWN, "--json", "-")
    assert code == 0, error
    assert json.loads(out)["models"] == 4
    # The two models of before were not trained again: three tries and two models print.
    assert error.count("trained\n") == 3 + 2


def test_an_estimator_by_name_reads_classes(table: Path, run: Run) -> None:
    name = "sklearn.tree:DecisionTreeClassifier"
    code, out, error = run("audit", str(table), "--target", "answer", "--train", name)
    assert code == 0, error
    assert out.startswith("Examined: DecisionTreeClassifier(), 4 models")


def test_a_gate_and_a_report(table: Path, run: Run) -> None:
    code, _, error = run(
        "audit", str(table), *OWN, "--fail-above", "advantage=0.01", "--run-dir", "run"
    )
    assert code == 3
    assert "above the limit, advantage 0.01" in error
    found = run("report", "run", "--output", "report.html")
    assert found.code == 0, found.error
    page = Path("report.html").read_text()
    assert "own_code_of_a_user:train" in page
    assert 'data-key="advantage_low"' in page
    assert '<button type="button">95%</button>' in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--train", "own_code_of_a_user"), "needs module:function"),
        (("--train", "no_such_module:f"), "cannot be imported"),
        (("--train", "own_code_of_a_user:nothing"), "has no function nothing"),
        ((*OWN[2:], "--models", "3"), "--models: input should be a multiple of 2"),
        ((*OWN[2:], "--models", "1"), "--models: input should be a multiple of 2"),
        ((*OWN[2:], "--model", "logistic"), "--model does not go with --train"),
        ((*OWN[2:], "--kernel", "rbf"), "--kernel does not go with --train"),
        (("--models", "4"), "--models belongs to --train"),
        (("--train", "own_code_of_a_user:fails"), "Model 1: .*out of patience"),
        (("--train", "own_code_of_a_user:wrong"), "5 scores per record, and there are 2 classes"),
        (("--train", "sklearn.tree:DecisionTreeRegressor"), "does not suit the target"),
    ],
)
def test_bad_input_is_one_sentence(
    table: Path, run: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    given = arguments if "--task" in arguments else (*arguments, "--task", "classification")
    code, out, error = run("audit", str(table), "--target", "answer", *given)
    assert code == 2
    assert out == ""
    assert re.search(sentence, error), error
    assert not list(Path("leakscope-runs").glob("*-audit-table"))
