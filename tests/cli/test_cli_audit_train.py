"""``leakscope audit --train``: the screen, the run, its options, and going on where it stopped."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import leakscope
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
    for name in ("users_code", "as_in_python"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("users_code.py").write_text(TRAIN)
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


OWN = ("--target", "answer", "--task", "classification", "--train", "users_code:train")


def test_one_screen_that_leads_with_the_answer(table: Path, run: Run) -> None:
    code, out, error = run("audit", str(table), *OWN)
    assert code == 0, error
    lines = out.strip().splitlines()
    assert len(lines) <= 24
    assert lines[0].startswith("Examined: users_code:train, 4 models of halves")
    assert re.search("Most exposed( for sure)?( by advantage)?: record", out)
    assert "advantage (95%)" in out
    assert "trained" not in out.splitlines()
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
    # With four models some intervals begin at nothing, and none lies above the limit.
    assert code == 4
    assert "not known to be within the limit" in error
    found = run("report", "run", "--output", "report.html")
    assert found.code == 0, found.error
    page = Path("report.html").read_text()
    assert "users_code:train" in page
    assert 'data-key="advantage_low"' in page
    assert '<button type="button">95%</button>' in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--train", "users_code"), "needs module:function"),
        (("--train", "no_such_module:f"), "cannot be imported"),
        (("--train", "users_code:nothing"), "has no function nothing"),
        ((*OWN[2:], "--models", "3"), "--models: input should be a multiple of 2"),
        ((*OWN[2:], "--models", "1"), "--models: input should be a multiple of 2"),
        ((*OWN[2:], "--model", "logistic"), "--model does not go with --train"),
        ((*OWN[2:], "--kernel", "rbf"), "--kernel does not go with --train"),
        (("--models", "4"), "--models belongs to a training"),
        (("--train", "users_code:fails"), "Model 1: .*out of patience"),
        (("--train", "users_code:wrong"), "5 scores per record, and there are 2 classes"),
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


AS_IN_PYTHON = """
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

named = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough"),
    LogisticRegression(class_weight={"no": 1.0, "yes": 2.0}),
)
lasso = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough"),
    Lasso(alpha=0.5),
)

def array(X, y, seed):
    with open("handed.txt", "a") as log:
        log.write(f"{type(X).__name__} {X.shape[1]} {X.max():.3f} {sorted(set(y.tolist()))}\\n")
    weights = np.linalg.solve(X[:, :].T @ X + np.eye(X.shape[1]), X.T @ (2.0 * y - 1.0))
    weights = weights + 0.01 * np.random.default_rng(seed).normal(size=len(weights))
    return lambda asked: 1.0 / (1.0 + np.exp(-(asked @ weights)))
"""


@pytest.fixture
def people(table: Path) -> Path:
    """In units of their own: ages in years, a target of thousands."""
    Path("as_in_python.py").write_text(AS_IN_PYTHON)
    cost = 1000.0 * X[:, 0] + 300.0 * X[:, 1] + 20000.0
    rows = [
        f"{20.0 + 5.0 * p},{q},{'north' if r > 0 else 'south'},{c},{v}"
        for (p, q, r), c, v in zip(X, cost, LABEL, strict=True)
    ]
    Path("people.csv").write_text("\n".join(["age,b,region,cost,answer", *rows]))
    return Path("people.csv")


def test_what_is_trained_is_what_the_user_trains(people: Path, run: Run) -> None:
    """Columns under their names, text as text, numbers and targets in their own units."""
    import as_in_python
    import pandas as pd

    frame = pd.read_csv(people)
    for name, target, other in (("named", "answer", "cost"), ("lasso", "cost", "answer")):
        code, out, error = run(
            "audit", str(people), "--target", target, "--ignore", other, "--run-dir", name,
            "--train", f"as_in_python:{name}",
        )  # fmt: skip
        assert code == 0, error
        assert "Handed to the training: columns age, b, region as they stand; target" in out
        features = frame.drop(columns=["cost", "answer"])
        own = leakscope.audit(features, frame[target], train=getattr(as_in_python, name))
        stored = leakscope.Audit.open(Path(name))
        found = dict(zip(stored.record_ids, stored.advantage, strict=True))
        assert [found[i] for i in range(80)] == pytest.approx(own.advantage.tolist())


def test_a_function_of_arrays_gets_one_that_is_not_scaled(people: Path, run: Run) -> None:
    code, out, error = run(
        "audit", str(people), "--target", "answer", "--ignore", "cost", "--run-dir", "run",
        "--train", "as_in_python:array",
    )  # fmt: skip
    assert code == 0, error
    assert "an array of 4 columns, not scaled, categories as 0 and 1; target answer, 2" in " ".join(
        out.split()
    )
    largest = 20.0 + 5.0 * X[:, 0].max()
    handed = Path("handed.txt").read_text().splitlines()
    assert all(line.startswith("ndarray 4 ") and line.endswith("[0, 1]") for line in handed)
    assert f"{largest:.3f}" in " ".join(handed)
    # Advice trains on the same; and on what a function became since, nothing rests.
    advised = ("advise", "run", "--target-advantage", "0.9", "--json", "-")
    assert run(*advised).code == 0
    Path("as_in_python.py").write_text(AS_IN_PYTHON.replace("0.01 *", "0.02 *"))
    sys.modules.pop("as_in_python")
    importlib.invalidate_caches()
    shutil.rmtree("__pycache__", ignore_errors=True)
    code, _, error = run(*advised)
    assert code == 2
    assert "no longer what was audited" in error


def test_more_seeds_are_not_worse(table: Path, run: Run) -> None:
    """One training under two seeds: their intervals overlap, and that is not called worse."""
    for seed in ("0", "3"):
        assert run("audit", str(table), *OWN, "--seed", seed, "--run-dir", f"s{seed}").code == 0
    codes = [run("compare", *pair, "--fail-if-worse") for pair in (("s0", "s3"), ("s3", "s0"))]
    assert {found.code for found in codes} <= {0, 4}
    assert 4 in {found.code for found in codes}
    unsure = next(found for found in codes if found.code == 4)
    assert "Cannot tell whether the second run is worse" in unsure.out
    assert "their intervals overlap" in unsure.error


def test_the_upper_end_decides_what_a_gate_passes(table: Path, run: Run) -> None:
    from leakscope.auditing.gate import judged

    assert run("audit", str(table), *OWN, "--models", "16", "--run-dir", "run").code == 0
    audit = leakscope.Audit.open(Path("run"))
    assert audit.untrusted > 0
    assert audit.known.all()
    high, low = (audit.table.of(f"advantage_{end}") for end in ("high", "low"))
    assert judged(audit, {"advantage": float(high.max()) + 1e-9}) == ([], [])
    between = 0.5 * (float(audit.advantage.max()) + float(high.max()))
    exceeded, unknown = judged(audit, {"advantage": between})
    assert exceeded == []
    assert f"{np.count_nonzero(high > between)} of 80" in unknown[0]
    exceeded, _ = judged(audit, {"advantage": float(low.max()) - 1e-9})
    assert exceeded[0].startswith("1 of 80 records is above the limit")
    # Measures without an interval in the table have that of the posterior.
    auc = float(audit.auc.max())
    assert judged(audit, {"auc": auc + 1e-6})[1]
    found = run("decide", "run", "--threshold-advantage", f"{between:.6f}", "--output", "signed")
    assert found.code == 4, found.error
    assert f"Whether it is met is not known: intervals reach {high.max():.3g}." in " ".join(
        found.out.split()
    )
